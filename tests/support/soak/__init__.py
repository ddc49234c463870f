"""What takes long: many nights one after the other, many runs at once."""
