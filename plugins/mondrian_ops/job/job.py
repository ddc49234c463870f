"""The job: one description of an anonymization, checked before any data is touched.

The operators, the command line and ``anonymize()`` all take it, as a mapping from YAML, JSON or
Python. Its options are in :mod:`mondrian_ops.job.job_options`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

from mondrian_ops.errors import JobError
from mondrian_ops.job.checks import check_options
from mondrian_ops.job.job_options import JobOptions
from mondrian_ops.job.options import rows_of
from mondrian_ops.late_methods import dataclass


@dataclass(frozen=True, slots=True)
class Job(JobOptions):
    """A checked anonymization job; build it with :meth:`from_dict`."""

    @classmethod
    def from_dict(
        cls, mapping: Mapping[str, Any], where: str = "job", paths_required: bool = True
    ) -> Job:
        """The job that ``mapping`` describes; ``where`` is its file's name, for messages.

        Raises JobError on an unknown key, a wrong type or an impossible combination; the message
        starts with the key's path and names the value and the remedy.
        """
        try:
            return cls.read(mapping, optional=() if paths_required else ("input", "output"))
        except JobError as error:
            if where == "job":
                raise
            raise JobError(f"{error} (in {where})") from None

    def completed(self) -> Self:
        """The job with ``entity_id`` among its identifiers, and a whole ``l`` as an int."""
        job = self
        if job.entity_id is not None and job.entity_id not in job.identifiers:
            job = replace(job, identifiers=(*job.identifiers, job.entity_id))
        if job.l is not None and job.diversity != "entropy" and job.l == int(job.l):
            job = replace(job, l=int(job.l))
        return job

    def check(self, path: str) -> None:
        """Raise JobError where options contradict each other."""
        check_options(self)

    @property
    def may_ask(self) -> bool:
        """Whether its release may have to wait for a steward's approval."""
        return self.require_approval or self.on_exceeded == "ask"

    @property
    def has_contract(self) -> bool:
        """Whether its releases have to be like the last one of their dataset."""
        return self.series is not None or self.schema is not None

    @property
    def has_grids(self) -> bool:
        """Whether intervals may end on grids; in a series with boundaries they end at these."""
        is_stable = self.series is not None and self.series.boundaries == "stable"
        return not (self.recodes_globally or is_stable)

    def suppressible(self, rows: int) -> int:
        """How many of ``rows`` rows may be left out of the release."""
        if self.algorithm == "samarati":
            return self.samarati.suppressible(rows)
        if self.algorithm != "mondrian":
            return 0
        asked = rows_of(self.mondrian.max_suppressed, rows)
        limit = self.max_suppressed
        return asked if limit is None else min(asked, rows_of(limit, rows))
