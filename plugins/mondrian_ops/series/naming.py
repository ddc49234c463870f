"""Which series an output belongs to, by its name without dates; which night it is, by the dates."""

from __future__ import annotations

import re
from contextlib import suppress

from mondrian_ops import stores
from mondrian_ops.errors import InputError, JobError
from mondrian_ops.job.job import Job
from mondrian_ops.stores import places
from mondrian_ops.stores.dataset_name import dataset_name, day_digits
from mondrian_ops.stores.locations import parts_of
from mondrian_ops.tables.discovery import lies_in

COUNTERFEITS = "_counterfeits.parquet"
"""The file beside a release: what is published of each class that has some, and their number."""

_YEAR = re.compile(r".*(?<!\d)(?:19|20)\d\d")  # of a date whose month and day are directories


def series_name(job: Job) -> str:
    """The name of the job's series: its output without dates.

    Raises JobError where no date is in the output.
    """
    output = output_of(job)
    name = _without_dates(output)
    if name == output:
        raise JobError(
            "output: a series tells its nights apart by the date in it, and there is none in "
            f"{stores.shown(str(job.output))}; add one, such as out/people/2025-06-01"
        )
    return name


def name_of_series(output: str) -> str:
    """The name of the series of an output, which may be relative."""
    return _without_dates(place_of(output))


def is_one_series(one: str, other: str) -> bool:
    """Whether two names are of one series, however they call its store, or the way to it."""
    if one == other:
        return True
    (one_base, one_path), (other_base, other_path) = parts_of(one), parts_of(other)
    if not (one_base and other_base) or one_path != other_path:
        return False
    with suppress(InputError):  # this process does not know the servers of one
        return lies_in(one, other)
    return False


def is_same_night(one: str, other: str) -> bool:
    """Whether two outputs of a series have the same dates, in any spelling; midnight may lack."""
    return day_digits(one) == day_digits(other)


def label_of(output: str) -> str:
    """The digits of an output's dates, which sort as its nights do; empty without a date."""
    place = place_of(output)
    return " ".join(day_digits(place[len(parts_of(place)[0]) :]))


def output_of(job: Job) -> str:
    """The output of the job; see :func:`place_of`."""
    return place_of(str(job.output))


def place_of(output: str) -> str:
    """The output as another process finds it, in one spelling."""
    return places.place_of(output).real(output)


def outputs_beside(output: str) -> list[str]:
    """What is there under the name of an output's series, the output included."""
    output = place_of(output)
    name = _without_dates(output)
    if stores.is_of_table(name):
        return sorted(each for each in _tables_beside(name) if _without_dates(each) == name)
    above = name.partition("*")[0].rpartition("/")[0]
    found = [above or "/"]
    for part in name[len(above) :].strip("/").split("/"):
        if "*" in part:
            found = [each for folder in found for each in _dated(folder)]
        else:
            found = [stores.joined(folder, part) for folder in found]
    return sorted(each for each in found if _without_dates(each) == name)


def _tables_beside(name: str) -> list[str]:
    """The tables in the namespace of a series; the dates may be in names of namespaces below it."""
    from mondrian_ops.tables.iceberg import tables_below

    base, fixed = name.partition("*")[0].rsplit("/", 1)
    return tables_below(base.partition("://")[2], fixed.rpartition(".")[0])


def _without_dates(place: str) -> str:
    """A place with ``*`` for its dates; one in the name of its bucket is no date of a night."""
    store = parts_of(place)[0]
    return store + dataset_name(place[len(store) :])


def _dated(folder: str) -> list[str]:
    """The directories in a folder that may have a date in the name, also one of three levels."""
    here = _numbered(folder)
    years = (each for each in here if _YEAR.fullmatch(each))
    return [
        *here,
        *(day for year in years for month in _numbered(year) for day in _numbered(month)),
    ]


def _numbered(folder: str) -> list[str]:
    """The directories in a folder whose name has a digit."""
    try:
        names = stores.names_in(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [
        stores.joined(folder, name)
        for name, is_directory in names.items()
        if is_directory and any(map(str.isdigit, name))
    ]
