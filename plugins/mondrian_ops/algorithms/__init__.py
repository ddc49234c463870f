"""The algorithms of the literature, on top of core."""
