"""The search for classes that keep what people have in common, in C."""
