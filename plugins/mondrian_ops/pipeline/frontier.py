"""The frontier: what each k and l costs in information and leaves in risk.

Each point of the grid is a run whose release is checked, measured and thrown away. It takes all
rows, or a sample of fragments (:mod:`mondrian_ops.pipeline.cluster_sampling`).
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from mondrian_ops import publish, stores, tables
from mondrian_ops import report as reports
from mondrian_ops.engines.handover import Sample
from mondrian_ops.engines.run import Dataset
from mondrian_ops.errors import JobError, PrivacyError, StorageError
from mondrian_ops.job.job import Job
from mondrian_ops.job.options import shown
from mondrian_ops.pipeline import cluster_sampling
from mondrian_ops.pipeline.api import run
from mondrian_ops.pipeline.checks import check_columns, check_rows, hierarchies_of
from mondrian_ops.pipeline.fragments import discard
from mondrian_ops.pipeline.replacement import refuse_foreign
from mondrian_ops.progress import Display, Progress
from mondrian_ops.version import __version__

SAMPLE_ROWS = 200_000
"""Above so many rows a sample of about so many is measured, unless the caller names a size."""

Point = Mapping[str, Any]
"""``{"k", "l"}``; l is None for no diversity."""

_OF_PUBLICATION = {
    *("require_approval", "max_gcp", "max_risk", "max_query_error", "max_suppressed"),
    *("on_exceeded", "overlap", "population", "dependencies", "target"),
}
"""Options that decide whether a release is published: a point is measured without them."""


def points(ks: Iterable[float], ls: Iterable[float]) -> list[dict[str, Any]]:
    """The grid, by l and then by k, each combination once; l = 1 stands for no diversity.

    Raises JobError for an empty grid.
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

    Its people are not recorded, and it needs no approval and has no limit, so that a point beyond
    a limit is measured too.

    Raises JobError where k and l make no sense for the job.
    """
    left_out = _OF_PUBLICATION | ({"diversity", "c", "l_width"} if point["l"] is None else set())
    options = {key: value for key, value in job.to_dict().items() if key not in left_out}
    options |= {"k": point["k"], "l": point["l"]}
    if job.tds.k_intermediate is not None:
        k_intermediate = max(point["k"], job.tds.k_intermediate)
        options["tds"] = {**options["tds"], "k_intermediate": k_intermediate}
    try:
        changed = Job.from_dict(options, paths_required=False)
    except JobError as error:
        raise JobError(f"k = {shown(point['k'])}, l = {shown(point['l'] or 1)}: {error}") from None
    return replace(changed, base_dir=job.base_dir, engine="local", unlisted="drop")


def draw(
    job: Job,
    grid: Sequence[Point],
    *,
    work: str,
    rows: int | None = None,
    rate: float | None = None,
    progress: Progress | None = None,
    owner: publish.Owner | None = None,
) -> Sample:
    """Decide which rows the points are measured on, and copy them to the working files ``work``.

    ``rows`` or ``rate`` is the wanted size of the sample; a few large fragments can make it larger.

    Raises JobError, InputError or HierarchyError; then nothing is left.
    """
    for point in grid:
        job_at(job, point)
    others = job.unlisted == "publish"
    source = tables.open_table(
        str(job.input), job.named_columns, others, types=job.types, csv=job.csv
    )
    check_columns(job, source)
    dataset = Dataset(job, source, hierarchies_of(job))
    wanted = _wanted(source.rows, rows, rate)
    size = cluster_sampling.size_of(source.rows, wanted, max(point["k"] for point in grid))
    directory = publish.WorkDir(work)
    directory.create(owner)
    try:
        directory.note_job(job)
        if size is None or not _can_be_drawn(job):
            return Sample(work, source.rows, source.rows)
        return cluster_sampling.draw(dataset, size, work, progress or Display())
    except BaseException:
        discard(work)
        raise


def measure(
    job: Job, point: Point, sample: Sample, progress: Progress | None = None
) -> dict[str, Any]:
    """The figures of one point: loss, risk, classes, achieved k and l, and the seconds it took.

    A point that the dataset cannot satisfy has a ``reason`` instead.
    """
    started = time.perf_counter()
    changed = job_at(job, point)
    try:
        check_rows(changed, sample.rows)
        figures = (
            cluster_sampling.measure(changed, sample.work)
            if sample.drawn
            else _whole(changed, sample.work, progress)
        )
    except PrivacyError as error:
        figures = {"reason": str(error)}
    return {**point, **figures, "seconds": round(time.perf_counter() - started, 3)}


def gather(job: Job, sample: Sample, measured: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """All points as one value, in order, for :mod:`mondrian_ops.report.frontier`."""
    return {
        "version": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "input": stores.shown(str(job.input)),
        "algorithm": job.algorithm,
        "cut": job.cut,
        "quasi_identifiers": list(job.quasi_identifier_names),
        "sensitive": list(job.sensitive),
        "job": {key: each for key, each in job.to_dict().items() if key in reports.OF_CURVE},
        "rows": sample.rows,
        "measured": sample.measured,
        "fragments": sample.fragments,
        "drawn": sample.drawn,
        "points": sorted(measured, key=lambda point: (point["l"] or 1, point["k"])),
    }


def folder_of(job: Job, output: str | None = None, made_by: str | None = None) -> str:
    """Where the frontier's files go: ``output``, or beside the job's release.

    Raises StorageError where a release lies there, JobError where ``made_by`` may not write.
    """
    folder = stores.resolved(output or f"{str(job.output).rstrip('/')}_frontier")
    stores.check_location("folder", folder, writing=True)
    refuse_foreign(folder, made_by)
    try:
        names = stores.names_in(folder)
    except FileNotFoundError:
        return folder
    if "_SUCCESS" in names:
        raise StorageError(
            f"{stores.shown(folder)}: holds a release, and nothing else may be written into it; "
            "choose another directory for the frontier"
        )
    return folder


def write(frontier: Mapping[str, Any], folder: str) -> list[str]:
    """Write table and pictures into ``folder``, over those of an earlier frontier; their paths."""
    store, path = stores.filesystem(folder)
    store.create_dir(path, recursive=True)
    written = []
    for name, content in reports.frontier_files(frontier).items():
        written.append(stores.joined(folder, name))
        stores.write_file(written[-1], content)
    return written


def trace(
    job: Job,
    grid: Sequence[Point],
    *,
    rows: int | None = None,
    rate: float | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Draw rows, measure every point on them, gather the points, and remove the working files."""
    progress = progress or Display()
    work = publish.work_path(str(job.output), uuid.uuid4().hex)
    measured: list[dict[str, Any]] = []
    try:
        sample = draw(job, grid, work=work, rows=rows, rate=rate, progress=progress)

        def points_done(phase: str = "", done: int = 0, total: int = 0) -> None:
            """Progress in points, whatever the step of a point reports."""
            progress("points", len(measured), len(grid))

        points_done()
        for point in grid:
            measured.append(measure(job, point, sample, points_done))
            points_done()
    finally:
        discard(work)
    return gather(job, sample, measured)


def _plain(number: float) -> float:
    """A whole number without a decimal point."""
    return int(number) if number == int(number) else number


def _can_be_drawn(job: Job) -> bool:
    """Whether fragments can be measured alone.

    Recoding needs all rows; some criteria compare with the distribution in all rows; and one
    person's rows can lie in several fragments.
    """
    return not (job.recodes_globally or job.compares_with_whole or job.entity_id is not None)


def _wanted(rows: int, requested: int | None, rate: float | None) -> int:
    if requested is not None and rate is not None:
        raise JobError("sample, rows: give only one of them")
    if rate is not None:
        if not 0 < rate <= 1:
            raise JobError(f"sample: must be a rate above 0 and at most 1, not {rate}")
        return max(1, round(rate * rows))
    if requested is not None and requested < 1:
        raise JobError(f"rows: must be at least 1, not {requested}")
    return SAMPLE_ROWS if requested is None else requested


def _whole(job: Job, work: str, progress: Progress | None) -> dict[str, Any]:
    """The figures of a run over all rows, whose release is removed."""
    place = stores.joined(work, f"k{job.k}-l{job.l or 1:g}")
    try:
        report = run(replace(job, output=stores.joined(place, "release")), progress)
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
        "query_error": (report.get("use", {}).get("query_error") or {}).get("median"),
    }
