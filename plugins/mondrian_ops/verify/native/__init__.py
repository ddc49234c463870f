"""The loops of the check in C, and the Python that calls them."""
