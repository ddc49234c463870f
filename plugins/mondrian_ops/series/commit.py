"""The last step of a night: its release and the rows that wait become current together."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from mondrian_ops import publish, stores
from mondrian_ops.data.pool import NIGHT
from mondrian_ops.engines.handover import SeriesNight
from mondrian_ops.engines.run import Run
from mondrian_ops.errors import MondrianOpsError, StorageError
from mondrian_ops.job.job import Job
from mondrian_ops.series import history, keyed_hashes, nights, waiting


def waiting_in(run: Run) -> list[list[int]]:
    """The rows that wait after the run: pairs of their night and their number, the oldest first."""
    counts: Counter[int] = Counter()
    for fragment in _holding_fragments(run):
        counts.update(run.work.read_held(fragment)[NIGHT].to_pylist())
    return [[origin, counts[origin]] for origin in sorted(counts)]


@contextmanager
def committed(job: Job, run: Run, report: Mapping[str, Any]) -> Iterator[None]:
    """Make the night of the run current around the block, which publishes its release.

    Nothing happens where the job is of no series. Raises StorageError, before the block, if another
    night became current since the rows were gathered.
    """
    night = run.dataset.night
    if night is None:
        yield
        return
    _intend(job, run, night, report)
    try:
        yield
    except MondrianOpsError:  # after any other error another try may still publish
        with suppress(OSError, MondrianOpsError):  # then whoever comes next finds the intention
            if not publish.published(str(job.output), run.work.token):
                nights.withdraw(run.work.token)
        raise
    _conclude(job, run, night, report)


def _intend(job: Job, run: Run, night: SeriesNight, report: Mapping[str, Any]) -> None:
    written = _write_waiting(job, run, night)
    rows = report["rows"]
    outcome = nights.Concluded(
        rows["published"], rows["suppressed"], written, _figures(run, report)
    )
    persons = None
    if job.follows_persons and outcome.published:
        from mondrian_ops.series.intersection import night as of_persons

        persons = of_persons.persons_of(run.work)
    types = keyed_hashes.types_of(job, run.schema)
    nights.intend(night, job, run.work, outcome, persons, types)


def _figures(run: Run, report: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of a release for the catalogue; a night without one has none."""
    if not report["rows"]["published"]:
        return {}
    people = report["series"].get("people", {})
    figures: dict[str, Any] = {
        "loss": report["metrics"]["GCP"],
        "persons": people.get("persons"),
        "least_common": people.get("least_common"),
    }
    of_night = run.draft.boundaries
    if of_night is None:
        return figures
    if of_night.fitted:
        figures["boundaries"] = json.dumps(of_night.boundaries.to_json())
    return {
        **figures,
        "sample_loss": of_night.loss,
        "sample_loss_nightly": of_night.loss_nightly,
        "drift": max(of_night.drift.values(), default=0.0),
    }


def confirm(job: Job, run: Run, report: Mapping[str, Any]) -> None:
    """Make the night current after a killed attempt has published its release.

    Raises StorageError where the catalogue does not have the night, and cannot have it any more.
    """
    if run.dataset.night is not None:
        _conclude(job, run, run.dataset.night, report)


def _conclude(job: Job, run: Run, night: SeriesNight, report: Mapping[str, Any]) -> None:
    """Make the night current; note it again where the catalogue has lost it meanwhile."""
    token = run.work.token
    if not nights.conclude(token):
        try:
            _intend(job, run, night, report)
        except StorageError as error:
            raise StorageError(
                f"series: the release {stores.shown(str(job.output))} is published, but the "
                f"catalogue lost its night, and cannot note it again ({error}); remove the release "
                "before anybody reads it, then run again from the partition task"
            ) from error
        nights.conclude(token)
    files = [each.file for each in history.current(night.series).waiting]
    waiting.remove_used(night.series, night.number, files)


def _write_waiting(job: Job, run: Run, night: SeriesNight) -> list[history.Waiting]:
    """Write the rows that wait after the night."""
    counts = waiting_in(run)
    if not counts:
        return []
    tables = (run.work.read_held(fragment) for fragment in _holding_fragments(run))
    file = waiting.file_of(night.series, night.number, run.work.token)
    tonight = nights.came_of(night, job)
    arrivals = {**dict(night.arrivals), night.number: str(tonight.signature)}
    kept = {origin: arrivals[origin] for origin, _ in counts if origin in arrivals}
    waiting.write(file, run.schema, tables, kept)
    return [history.Waiting(origin, rows, file) for origin, rows in counts]


def _holding_fragments(run: Run) -> list[int]:
    """The fragments that may have rows that wait."""
    if run.dataset.holding is None:
        return []
    return [fragment.id for fragment in run.state.fragments]
