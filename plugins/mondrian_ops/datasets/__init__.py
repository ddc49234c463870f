"""Synthetic data for demonstrations, tests and benchmarks; it describes no real person.

A block of rows depends only on the seed and the number of the block, so the same number of rows and
seed give the same data, and fewer rows are the beginning of more.
"""

from mondrian_ops.datasets.generate import generate
from mondrian_ops.datasets.nights import Population, generate_nights, nights
from mondrian_ops.datasets.people import people
from mondrian_ops.datasets.poker import classify, poker

__all__ = [
    "Population",
    "classify",
    "generate",
    "generate_nights",
    "nights",
    "people",
    "poker",
]
