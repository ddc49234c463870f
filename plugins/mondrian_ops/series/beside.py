"""Releases of no series beside the nights of one."""

from __future__ import annotations

import logging

from mondrian_ops import catalogue
from mondrian_ops.errors import JobError, StorageError
from mondrian_ops.job.job import Job
from mondrian_ops.series.naming import name_of_series, output_of
from mondrian_ops.stores.dataset_name import dates_in

_log = logging.getLogger(__name__)


def refuse_beside(job: Job) -> None:
    """Raise JobError if a job without a series would publish beside nights that protect people.

    Such a release can be intersected with theirs. Where no catalogue is given there are no nights.
    One that cannot be reached refuses none, which is logged.
    """
    output = output_of(job)
    if job.series is not None or not dates_in(output):
        return
    try:
        opened = catalogue.current()
    except StorageError:
        return
    if not opened.is_there:
        return
    from mondrian_ops.series.terms import protects

    try:
        with opened.reading() as connection:
            is_protected = protects(connection, name_of_series(output))
    except OSError as error:
        _log.warning(
            "the job goes on, though its output may lie beside a series that protects its people: "
            "%s",
            error,
        )
        return
    if is_protected:
        raise JobError(
            "output: it lies beside the nights of a series that protects its people "
            "(series.protect: intersection); an attacker could compare this release with them and "
            "find people's values; give the job the options of the series, or another output"
        )
