"""Which series an output belongs to, by its name without dates; which night it is, by the dates."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from mondrian_ops import storage
from mondrian_ops.core.dataset_name import dataset_name, dates_in
from mondrian_ops.core.errors import JobError
from mondrian_ops.core.job import Job

__all__ = ["label_of", "name_of_series", "output_of", "outputs_beside", "place_of", "series_name"]


def series_name(job: Job) -> str:
    """The name of the job's series: its output without dates.

    Raises JobError where no date is in the output.
    """
    output = output_of(job)
    if not dates_in(output):
        raise JobError(
            "output: a series tells its nights apart by the date in it, and there is none in "
            f"{storage.shown(str(job.output))}; add one, such as out/people/2025-06-01"
        )
    return dataset_name(output)


def name_of_series(output: str) -> str:
    """The name of the series of an output, which may be relative."""
    return dataset_name(place_of(output))


def label_of(job: Job) -> str:
    """What tells the job's night from the others of its series: the dates in its output."""
    return dates_in(output_of(job))


def output_of(job: Job) -> str:
    """The output of the job, as another process finds it."""
    return place_of(str(job.output))


def place_of(output: str) -> str:
    """The output as another process finds it."""
    return str(Path(storage.local_path(output)).resolve()) if storage.is_local(output) else output


def outputs_beside(output: str) -> list[str]:
    """What lies beside an output under the name of its series, the output included."""
    output = place_of(output)
    above, name = output.rpartition("/")[0], dataset_name(output)
    beside = [storage.joined(above, each) for each in _names_in(above)]
    return sorted(each for each in beside if dataset_name(each) == name)


def _names_in(directory: str) -> Iterable[str]:
    try:
        return storage.names_in(directory)
    except FileNotFoundError:
        return ()
