"""The frontier of loss and risk: draw a sample, measure each point of the grid, gather them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from mondrian_ops.lean_imports import import_lean
from mondrian_ops.operators.base import (
    MondrianOperator,
    announce_work,
    check_is_mapped,
    final_errors,
    made_by,
    number_of,
    owner_of,
    whole_of,
    work_of,
)
from mondrian_ops.operators.partition import check_map_length
from mondrian_ops.operators.release_records import check_catalogue, record_frontier
from mondrian_ops.progress import Lines

if TYPE_CHECKING:
    from airflow.sdk import Context


class FrontierSampleOperator(MondrianOperator):
    """Draw the rows on which a grid of k and l is measured; return the points to map over.

    Working files hold the drawn rows until :class:`CleanUpOperator` removes them.

    :param k: the values of k, as numbers or text (templated).
    :param l: the values of l; 1 requires no diversity (templated).
    :param rows: about how many rows to measure; by default 200,000 (templated).
    :param sample: the share of the rows to measure, in place of their number (templated).
    """

    begins_run = True
    template_fields: Sequence[str] = (*MondrianOperator.template_fields, "k", "l", "rows", "sample")

    def __init__(
        self,
        *,
        k: Any,
        l: Any = (1,),  # noqa: E741 - the name of the parameter in every paper
        rows: Any = None,
        sample: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.k = k
        self.l = l
        self.rows = rows
        self.sample = sample

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """Draw the sample, unless all rows are measured; every point carries its description."""
        import_lean()
        from mondrian_ops.pipeline import frontier

        with final_errors():
            job = self.read_job(publishes=False)
            check_catalogue()
            grid = frontier.points(_numbers("k", self.k), _numbers("l", self.l))
            check_map_length(len(grid), "k, l")
            # Apart from that of a release of the same job in this run.
            work = work_of(replace(job, output=f"{str(job.output).rstrip('/')}_frontier"), context)
            announce_work(context, work)
            drawn = frontier.draw(
                job,
                grid,
                work=work,
                owner=owner_of(self, context),
                rows=whole_of("rows", self.rows),
                rate=number_of("sample", self.sample),
                progress=Lines(self.log.info),
            )
        self.log.info("%d points on %d of %d rows", len(grid), drawn.measured, drawn.rows)
        return [{**point, "drawn": drawn.to_dict()} for point in grid]


class FrontierPointOperator(MondrianOperator):
    """Measure one point of the grid; meant to be mapped.

    Returns its figures, or the reason why no release can be made.

    :param point: one of the points that :class:`FrontierSampleOperator` returned (templated).
    """

    template_fields: Sequence[str] = (*MondrianOperator.template_fields, "point")
    template_fields_renderers: ClassVar[dict[str, str]] = {"job": "json", "point": "json"}
    NAME_TEMPLATE: ClassVar[str] = "{{ task.point_name }}"

    def __init__(self, *, point: Mapping[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.point = point

    @property
    def point_name(self) -> str:
        """The point's k and l, as Airflow's grid shows them."""
        return f"k = {self.point['k']}, l = {self.point['l'] or 1}"

    def execute(self, context: Context) -> dict[str, Any]:
        """Anonymize the sample and measure the result, which is not kept."""
        import_lean()
        from mondrian_ops.engines.handover import Sample
        from mondrian_ops.pipeline import frontier

        with final_errors():
            check_is_mapped("point", self.point, "sample")
            point = dict(self.point)
            drawn = Sample.from_dict(point.pop("drawn"))
            job = self.job_of_run(context, drawn.work, publishes=False)
            figures = frontier.measure(job, point, drawn, Lines(self.log.info))
        self.log.info("%s: %s", self.point_name, figures.get("reason", "measured"))
        return figures


class FrontierOperator(MondrianOperator):
    """Gather the points and write them as CSV, as a picture (SVG) and as a page (HTML).

    :param sample: what :class:`FrontierSampleOperator` returned (templated).
    :param points: what the :class:`FrontierPointOperator` tasks returned (templated).
    :param folder: the directory to write to (templated); by default the job's output with
        ``_frontier`` appended.
    """

    template_fields: Sequence[str] = (
        *MondrianOperator.template_fields,
        "sample",
        "points",
        "folder",
    )

    def __init__(
        self, *, sample: Any, points: Any, folder: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.sample = sample
        self.points = points
        self.folder = folder

    def execute(self, context: Context) -> dict[str, Any]:
        """Write the files; return their paths and the number of attainable points."""
        from mondrian_ops import publish, stores
        from mondrian_ops.engines.handover import Sample
        from mondrian_ops.pipeline import frontier
        from mondrian_ops.report import frontier_text

        with final_errors():
            drawn = Sample.from_dict(self.sample[0]["drawn"])
            if publish.WorkDir(drawn.work).is_begun:
                job = self.job_of_run(context, drawn.work, publishes=False)
            else:  # cleared after its run was over
                job = self.read_job(publishes=False)
            folder = frontier.folder_of(job, self.folder, made_by(self, context))
            gathered = frontier.gather(job, drawn, self.points[:])
            written = frontier.write(gathered, folder)
        self.log.info("%s\n%s", stores.shown(folder), frontier_text(gathered))
        record_frontier(context, job, gathered)
        return {
            "output": stores.shown(folder),
            "files": [stores.shown(file) for file in written],
            "points": len(gathered["points"]),
            "attainable": sum("reason" not in point for point in gathered["points"]),
        }


def _numbers(name: str, values: object) -> list[float]:
    """The numbers of a list or of a comma-separated text; blank items are left out."""
    if isinstance(values, str):
        values = values.split(",")
    if not isinstance(values, Iterable):
        values = [values]
    given = [value for value in values if not (isinstance(value, str) and not value.strip())]
    numbers = [number_of(f"{name}[{at}]", value) for at, value in enumerate(given)]
    return [number for number in numbers if number is not None]
