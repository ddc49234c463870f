"""Partitioning, cutting, generalizing, measuring and verifying, on codes and counts."""
