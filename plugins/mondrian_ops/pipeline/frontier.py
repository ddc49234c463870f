"""The frontier: what each k and l would cost in information and leave in risk.

Nothing is published: each point of the grid is a run whose release is measured, checked and thrown
away, on all rows, or on fragments drawn from them (:mod:`mondrian_ops.pipeline.cluster_sampling`).
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from mondrian_ops import report as reports
from mondrian_ops import storage
from mondrian_ops.core.errors import JobError, PrivacyError, StorageError
from mondrian_ops.core.job import Job
from mondrian_ops.core.options import shown
from mondrian_ops.engines.handover import Sample
from mondrian_ops.engines.run import Dataset
from mondrian_ops.pipeline import cluster_sampling
from mondrian_ops.pipeline.api import discard, run
from mondrian_ops.pipeline.checks import check_columns, check_rows, hierarchies_of
from mondrian_ops.progress import Display, Progress
from mondrian_ops.version import __version__

__all__ = [
    "SAMPLE_ROWS",
    "draw",
    "folder_of",
    "gather",
    "job_at",
    "measure",
    "points",
    "trace",
    "write",
]

SAMPLE_ROWS = 200_000
"""Rows above which a sample is measured, of about so many, unless another size is asked for."""

Point = Mapping[str, Any]
"""``{"k", "l"}``; l is None where no diversity is asked for."""

_UNPUBLISHED: Mapping[str, Any] = {
    "require_approval": False,
    "max_gcp": None,
    "max_risk": None,
    "max_suppressed": None,
    "on_exceeded": "refuse",
    "ledger": None,
    "overlap": "warn",
}
"""What decides whether a release is published, as it is for one that never is."""


def points(ks: Iterable[float], ls: Iterable[float]) -> list[dict[str, Any]]:
    """The grid, by l and then by k, each combination once; l = 1 asks for no diversity.

    Raises JobError where there is none.
    """
    grid = [
        {"k": _plain(k), "l": None if l == 1 else _plain(l)}
        for l in sorted(set(ls))  # noqa: E741 - as every paper calls it
        for k in sorted(set(ks))
    ]
    if not grid:
        raise JobError("k, l: the grid is empty; give at least one k and one l, such as 5 and 1")
    return grid


def job_at(job: Job, point: Point) -> Job:
    """``job`` with the k and l of ``point``, by the local engine, without what changes no class.

    It goes into no ledger, asks nobody, and has no limit: what would exceed one is to be seen.

    Raises JobError where they make no sense for it.
    """
    asked = {**job.to_dict(), "k": point["k"], "l": point["l"]}
    if point["l"] is None:
        asked = {key: value for key, value in asked.items() if key not in ("diversity", "c")}
    if job.tds.k_intermediate is not None:
        asked["tds"] = {**asked["tds"], "k_intermediate": max(point["k"], job.tds.k_intermediate)}
    try:
        found = Job.from_dict(asked, paths_required=False)
    except JobError as error:
        raise JobError(f"k = {shown(point['k'])}, l = {shown(point['l'] or 1)}: {error}") from None
    return replace(found, base_dir=job.base_dir, engine="local", unlisted="drop", **_UNPUBLISHED)


def draw(
    job: Job,
    grid: Sequence[Point],
    *,
    work: str,
    rows: int | None = None,
    rate: float | None = None,
    progress: Progress | None = None,
) -> Sample:
    """Decide what the points are measured on, and draw it into the working files ``work``.

    ``rows`` or ``rate`` is the size of the sample asked for; it is larger where a few fragments
    are larger.

    Raises JobError, InputError or HierarchyError; then nothing is left.
    """
    for point in grid:
        job_at(job, point)
    source = storage.open_source(str(job.input), job.named_columns)
    check_columns(job, source.schema.names)
    dataset = Dataset(job, source, hierarchies_of(job))
    wanted = _wanted(source.rows, rows, rate)
    size = cluster_sampling.size_of(source.rows, wanted, max(point["k"] for point in grid))
    storage.WorkDir(work).create()
    try:
        if size is None or not _can_be_drawn(job):
            return Sample(work, source.rows, source.rows)
        return cluster_sampling.draw(dataset, size, work, progress or Display())
    except BaseException:
        discard(work)
        raise


def measure(
    job: Job, point: Point, drawn: Sample, progress: Progress | None = None
) -> dict[str, Any]:
    """The figures of one point: loss, risk, classes, what is achieved, and the seconds it took.

    A point that cannot be had has a ``reason`` instead.
    """
    started = time.perf_counter()
    there = job_at(job, point)
    try:
        check_rows(there, drawn.rows)
        found = (
            cluster_sampling.measure(there, drawn.work)
            if drawn.drawn
            else _whole(there, drawn.work, progress)
        )
    except PrivacyError as error:
        found = {"reason": str(error)}
    return {**point, **found, "seconds": round(time.perf_counter() - started, 3)}


def gather(job: Job, drawn: Sample, measured: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """All points as one value, in order, as :mod:`mondrian_ops.report.frontier` shows it."""
    return {
        "version": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "input": storage.shown(str(job.input)),
        "algorithm": job.algorithm,
        "cut": job.cut,
        "quasi_identifiers": list(job.quasi_identifier_names),
        "sensitive": list(job.sensitive),
        "rows": drawn.rows,
        "measured": drawn.measured,
        "fragments": drawn.fragments,
        "drawn": drawn.drawn,
        "points": sorted(measured, key=lambda point: (point["l"] or 1, point["k"])),
    }


def folder_of(job: Job, output: str | None = None) -> str:
    """Where the frontier's files go: ``output``, or beside the job's release.

    Raises StorageError where a release lies, JobError where nothing may be written.
    """
    folder = output or f"{str(job.output).rstrip('/')}_frontier"
    storage.check_location("folder", folder, writing=True)
    try:
        names = storage.names_in(folder)
    except FileNotFoundError:
        return folder
    if "_SUCCESS" in names:
        raise StorageError(
            f"{storage.shown(folder)}: holds a release, which nothing else may be written to; "
            "choose another directory for the frontier"
        )
    return folder


def write(frontier: Mapping[str, Any], folder: str) -> list[str]:
    """Write table and pictures into ``folder``; those that are there are replaced."""
    store, path = storage.filesystem(folder)
    store.create_dir(path, recursive=True)
    written = []
    for name, content in reports.frontier_files(frontier).items():
        written.append(storage.joined(folder, name))
        storage.write_file(written[-1], content)
    return written


def trace(
    job: Job,
    grid: Sequence[Point],
    *,
    rows: int | None = None,
    rate: float | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Draw, measure every point and gather them; no working file stays behind."""
    progress = progress or Display()
    work = storage.work_path(str(job.output), uuid.uuid4().hex)
    measured: list[dict[str, Any]] = []
    try:
        drawn = draw(job, grid, work=work, rows=rows, rate=rate, progress=progress)
        told = _counted(progress, measured, len(grid))
        told("points", 0, 0)
        for point in grid:
            measured.append(measure(job, point, drawn, told))
            told("points", 0, 0)
    finally:
        discard(work)
    return gather(job, drawn, measured)


def _plain(number: float) -> float:
    """A whole number without a decimal point."""
    return int(number) if number == int(number) else number


def _can_be_drawn(job: Job) -> bool:
    """Whether fragments are anonymized alone, and can be: none is distributed as all rows are, and
    how many persons are in one is not known before all rows are counted."""
    return not job.recodes_columns and job.t is None and job.entity_id is None


def _wanted(rows: int, asked: int | None, rate: float | None) -> int:
    if asked is not None and rate is not None:
        raise JobError("sample, rows: give one of them")
    if rate is not None:
        if not 0 < rate <= 1:
            raise JobError(f"sample: must be a rate above 0 and at most 1, not {rate}")
        return max(1, round(rate * rows))
    if asked is not None and asked < 1:
        raise JobError(f"rows: must be at least 1, not {asked}")
    return SAMPLE_ROWS if asked is None else asked


def _whole(job: Job, work: str, progress: Progress | None) -> dict[str, Any]:
    """A run over all rows to a private place, removed when its report is there."""
    place = storage.joined(work, f"k{job.k}-l{job.l or 1:g}")
    try:
        report = run(replace(job, output=storage.joined(place, "release")), progress)
    finally:
        discard(place)
    return {
        "achieved": report["achieved"],
        "rows": report["rows"]["published"],
        "suppressed": report["rows"]["suppressed"],
        "equivalence_classes": report["equivalence_classes"],
        **report["metrics"],
        "GCP_error": None,
        "risk_max": report["risk"]["prosecutor_max"],
        "risk_avg": report["risk"]["prosecutor_avg"],
    }


def _counted(progress: Progress, done: Sequence[Any], total: int) -> Callable[..., None]:
    """A callback that tells the points done, whatever step of a point it is called in."""

    def told(_phase: str, _done: int, _total: int) -> None:
        progress("points", len(done), total)

    return told
