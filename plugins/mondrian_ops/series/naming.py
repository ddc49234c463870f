"""Which series an output belongs to, by its name without dates; which night it is, by the dates."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from mondrian_ops import storage
from mondrian_ops.core.dataset_name import dataset_name, dates_in, day_digits
from mondrian_ops.core.errors import JobError
from mondrian_ops.core.job import Job

__all__ = [
    "is_same_night",
    "label_of",
    "name_of_series",
    "output_of",
    "outputs_beside",
    "place_of",
    "series_name",
]


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


def is_same_night(one: str, other: str) -> bool:
    """Whether two outputs of a series have the same dates, in any spelling; midnight may lack."""
    return day_digits(one) == day_digits(other)


def output_of(job: Job) -> str:
    """The output of the job, as another process finds it."""
    return place_of(str(job.output))


def place_of(output: str) -> str:
    """The output as another process finds it."""
    return str(Path(storage.local_path(output)).resolve()) if storage.is_local(output) else output


def outputs_beside(output: str) -> list[str]:
    """What is there under the name of an output's series, the output included."""
    output = place_of(output)
    name = dataset_name(output)
    above = name.partition("*")[0].rpartition("/")[0]
    if not storage.is_local(output) and len(above) < len(_store_of(output)):
        above = _store_of(output)
    found = [above or "/"]
    for part in output[len(above) :].strip("/").split("/"):
        found = [each for folder in found for each in _like(folder, part)]
    return sorted(each for each in found if dataset_name(each) == name)


def _store_of(location: str) -> str:
    """The bucket or namenode of a location."""
    return "/".join(location.split("/")[:3])


def _like(folder: str, part: str) -> list[str]:
    """The directories in a folder that may be other nights' in the place of ``part``."""
    if not _has_digit(part):
        return [storage.joined(folder, part)]
    return [storage.joined(folder, each) for each in _directories_in(folder) if _has_digit(each)]


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


def _directories_in(directory: str) -> Iterable[str]:
    try:
        return [name for name, is_there in storage.names_in(directory).items() if is_there]
    except FileNotFoundError:
        return ()
