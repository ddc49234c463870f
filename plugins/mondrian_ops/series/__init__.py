"""The nights of a series: their rows, those of them that wait, and the order of the nights.

A series is the releases of one dataset, told apart by the dates in their outputs. A night begins
with :func:`gather`: the rows of its drop and those that wait become the pool that is anonymized. It
ends with :func:`committed`: its release, the rows that wait from then on, and the night in the
catalogue become current together, whoever is killed in between. :mod:`nights` has the protocol,
:mod:`history` what the catalogue knows, :mod:`waiting` the files of waiting rows.

Each module is imported when one of its names is first used: a job that is of no series starts
without SQLAlchemy.
"""

from mondrian_ops.late_names import late_names

__getattr__ = late_names(__name__)
