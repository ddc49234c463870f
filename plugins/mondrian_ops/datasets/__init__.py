"""Synthetic data for demonstrations, tests and benchmarks; it describes no real person.

Every data set is made of blocks drawn from (seed, number of the block): the same rows and seed
give the same data in whatever batches it is read, and fewer rows give the beginning of more.
"""

from mondrian_ops.datasets.generate import generate
from mondrian_ops.datasets.people import people, people_batches
from mondrian_ops.datasets.poker import classify, poker, poker_batches

__all__ = ["classify", "generate", "people", "people_batches", "poker", "poker_batches"]
