"""The loops of cutting in C, and the Python that calls them."""
