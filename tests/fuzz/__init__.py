"""Fuzzing of what reads text that a person or another program wrote."""
