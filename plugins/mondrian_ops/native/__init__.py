"""How C is compiled, loaded and handed arrays. The loops lie in the rooms that use them."""
