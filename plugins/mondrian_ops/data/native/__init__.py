"""The loops of counting in C, and the Python that calls them."""
