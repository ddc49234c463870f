"""The nights of a series: their rows, those of them that wait, and the order of the nights.

A series is the releases of one dataset, told apart by the dates in their outputs. A night begins
with :func:`gather`: the rows of its drop and those that wait become the pool that is anonymized. It
ends with :func:`committed`: its release, the rows that wait from then on, and the night in the
catalogue become current together, whoever is killed in between. :mod:`nights` has the protocol,
:mod:`history` what the catalogue knows, :mod:`waiting` the files of waiting rows.

Each module is imported when one of its names is first used: a job that is of no series starts
without SQLAlchemy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mondrian_ops.late_names import late_names

if TYPE_CHECKING:
    from mondrian_ops.series.beside import refuse_beside
    from mondrian_ops.series.commit import committed, confirm, waiting_in
    from mondrian_ops.series.counterfeits import content_of, without_counterfeits
    from mondrian_ops.series.gathering import check_types, gather
    from mondrian_ops.series.history import boundaries_of, held, was_held
    from mondrian_ops.series.intersection import Outcome, checked, is_protected
    from mondrian_ops.series.naming import (
        COUNTERFEITS,
        label_of,
        name_of_series,
        output_of,
        place_of,
        series_name,
    )
    from mondrian_ops.series.nights import ask_to_refit, check_new, settle
    from mondrian_ops.series.sweeping import sweep

__all__ = [
    "COUNTERFEITS",
    "Outcome",
    "ask_to_refit",
    "boundaries_of",
    "check_new",
    "check_types",
    "checked",
    "committed",
    "confirm",
    "content_of",
    "gather",
    "held",
    "is_protected",
    "label_of",
    "name_of_series",
    "output_of",
    "place_of",
    "refuse_beside",
    "series_name",
    "settle",
    "sweep",
    "waiting_in",
    "was_held",
    "without_counterfeits",
]

if not TYPE_CHECKING:  # mypy would take any name for one of the package
    __getattr__ = late_names(
        __name__,
        {
            "beside": ("refuse_beside",),
            "commit": ("committed", "confirm", "waiting_in"),
            "counterfeits": ("content_of", "without_counterfeits"),
            "gathering": ("check_types", "gather"),
            "history": ("boundaries_of", "held", "was_held"),
            "intersection": ("Outcome", "checked", "is_protected"),
            "naming": ("COUNTERFEITS", "label_of", "name_of_series", "output_of", "place_of",
                       "series_name"),
            "nights": ("ask_to_refit", "check_new", "settle"),
            "sweeping": ("sweep",),
        },
    )  # fmt: skip
