"""Both engines, held to one contract."""
