"""The loops of finished classes in C, and the Python that calls them."""
