"""The report of a release as a frozen value, and the one place that reads and writes its JSON.

``_report.json`` has layout 1 (:data:`SCHEMA_VERSION`) and no ``schema_version``. A later layout
will name its version, and this one refuses it. Reading checks every type, so that the code that
shows a report need not. Unknown keys are kept: a report is written back as it was read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, fields, replace
from typing import Any

from mondrian_ops.late_methods import dataclass
from mondrian_ops.report.json_reading import as_object, copied, read_part, wrong
from mondrian_ops.report.outcome import EXPIRED, FAILED, REFUSED, REJECTED, Outcome
from mondrian_ops.report.risk import RiskBefore
from mondrian_ops.report.use import Use
from mondrian_ops.version import __version__

SCHEMA_VERSION = 1
JSON_NAME = "_report.json"
HTML_NAME = "_report.html"
NAMELESS = "''"
"""What is shown for a column whose name is empty."""

Names = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedJob:
    """The options of the job (``Job.to_dict()``) that the report compares its figures with."""

    k: int
    l: float | None = None  # noqa: E741 - as every paper calls it
    t: float | None = None
    diversity: str = "distinct"
    c: float | None = None
    missing_sensitive: str | None = None
    l_width: Mapping[str, str] = field(default_factory=dict)
    entity_id: Any = None
    algorithm: str = "mondrian"
    output: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts:
    """Rows of the source: ``input`` = ``published`` + ``suppressed``.

    Of a release that is not published, ``checked`` takes the place of ``published``, which is 0. In
    a series, rows that had waited are there too, and others wait for the next night: ``input`` +
    ``waited`` = ``published`` + ``suppressed`` + ``waiting``.
    """

    input: int
    published: int
    suppressed: int
    checked: int | None = None
    waited: int = 0
    waiting: int = 0

    @property
    def in_classes(self) -> int:
        """The rows of all classes, published or not."""
        return self.published if self.checked is None else self.checked


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedBoundaries:
    """The boundaries that nights of a series share, fitted in the night ``since``.

    ``fitted``: why they were fitted in this very night (first, asked, drift), else empty. ``cells``
    and ``drift`` by column: the number of cells, and the share of rows that lie in other cells than
    at the fit. ``loss`` and ``loss_nightly``: of a sample, per row and quasi-identifier, with these
    boundaries and without any.
    """

    since: int
    fitted: str = ""
    cells: Mapping[str, int]
    drift: Mapping[str, float] = field(default_factory=dict)
    loss: float
    loss_nightly: float


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """The persons of a night whose series protects them from whoever intersects its releases.

    ``persons`` are published, of whom ``known_before`` were in an earlier night; ``least_common``:
    the fewest values that any of them is left with after all nights; ``value_changed``: those whose
    value is not one that was left of the nights before, so that they are followed anew.
    ``counterfeits`` are rows that were made up, beside all others, in ``counterfeit_classes``.
    """

    persons: int
    known_before: int
    least_common: int
    value_changed: int
    counterfeits: int = 0
    counterfeit_classes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesNight:
    """The ``night`` of a series, numbered from 1.

    ``waited`` and ``waiting`` are pairs of a night and the number of its rows that had waited for
    this night, or wait after it, the oldest night first; nights of fewer than k rows are counted
    with the next.
    """

    name: str
    night: int
    boundaries: SharedBoundaries | None = None
    waited: tuple[tuple[int, int], ...] = ()
    waiting: tuple[tuple[int, int], ...] = ()
    people: People | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """NCP and DP of the release, and means per value or class (docs/algorithms.md).

    ``GCP_robust`` and ``information_lost``: None in reports of older versions.
    """

    DP: float
    NCP: float
    GCP: float
    LM: float
    C_avg: float
    GCP_robust: float | None = None
    information_lost: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """The chance of picking the right row or, with ``entity_id``, person (docs/report.md).

    ``rows_by_people`` as of `RiskBefore`, after. ``k_map``, ``population_max``, ``population_avg``:
    estimates for a population of which the dataset is a sample.
    """

    prosecutor_max: float
    prosecutor_avg: float
    journalist_max: float | None = None
    marketer: float | None = None
    rows_at_most_risk: int | None = None
    before: RiskBefore | None = None
    rows_by_people: tuple[tuple[int, float], ...] | None = None
    k_map: int | None = None
    population_max: float | None = None
    population_avg: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """A quasi-identifier: the mean loss of its rows, and how many rows lose how much.

    ``rows_by_loss``: pairs (loss, rows), by ascending loss, of the rows that are neither exact nor
    hidden. ``grid``: the step of its intervals' grid, where the values decided it.
    """

    NCP: float
    LM: float = 0
    NCP_robust: float | None = None
    information_lost: float | None = None
    generalization: str | None = None
    rows_exact: int | None = None
    rows_star: int | None = None
    rows_by_loss: tuple[tuple[float, int], ...] | None = None
    grid: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitive:
    """What the classes tell about a sensitive column; None where it was not measured.

    ``narrow``: the share of the people who are in classes all whose values lie within ``width`` of
    one another. ``gain``: by how much a class raises the share of a value at most, from
    ``gain_from`` of all rows to ``gain_to`` of its rows (beta-likeness).
    """

    width: str | None = None
    narrow: float | None = None
    gain: float | None = None
    gain_from: float | None = None
    gain_to: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedCriterion:
    """A criterion of an installed package, as it says itself: ``key`` is its section of the job.

    ``at_most``: what is ``required`` is a ceiling. ``means``: what it means for people.
    """

    key: str
    title: str
    required: float
    at_most: bool
    means: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FragmentFigures:
    """A fragment; ``where`` is its condition as people may see it."""

    id: int
    where: str | None = None
    rows: int
    equivalence_classes: int
    DP: float = 0
    NCP: float
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The role of each column of the source; ``index`` are columns of a pandas index, left out."""

    identifiers: Names = ()
    identifier_policy: str = "drop"
    quasi_identifiers: Names = ()
    sensitive: Names = ()
    unlisted: Names = ()
    unlisted_policy: str | None = None
    index: Names = ()

    @classmethod
    def of(cls, columns: object) -> Columns:
        """The columns in a JSON-able dict. Raises ReportError."""
        roles: Columns = read_part(cls, columns, "columns")
        return roles

    @property
    def raw(self) -> Names:
        """The columns that are published unchanged although the job does not name them."""
        return self.unlisted if self.unlisted_policy == "publish" else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """How the input was read: its ``format`` and number of files, and which texts are missing.

    Of CSV files ``separators``, ``encodings`` and the ``decimal`` mark, and ``numberlike``, the
    columns of text that look like numbers. ``types``, by column: those of the quasi-identifiers,
    and of others those that the job names, or that were found in CSV files.
    """

    format: str
    files: int = 1
    separators: Names = ()
    encodings: Names = ()
    decimal: str = "."
    types: Mapping[str, str] = field(default_factory=dict)
    missing: Names = ()
    numberlike: Names = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """An option that the job may leave to us: its value in the job, and the value used."""

    asked: str | None = None
    used: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitioning:
    """How the rows were divided into fragments."""

    strategy: str | None = None
    asked: Any = None
    fragments: int | None = None
    sample_rows: int | None = None
    merged: int = 0
    reason: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recoding:
    """How whole columns were recoded, in a sentence."""

    summary: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The checks on the files as written, and the failures."""

    passed: bool = False
    checked: Names = ()
    failures: Names = ()
    files: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseCost:
    """What a phase of the run has cost, of all fragments together: on the clock, of processors."""

    seconds: float
    cpu_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """What columns that are published as they are undo, a sentence for each."""

    notes: Names = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The report of one release: what became of it, its job, its figures, and how it was made.

    ``outcome`` is None in reports of earlier versions. ``requested_by`` and ``run_type`` are what
    Airflow says about who asked for the run, and how it began.
    """

    outcome: Outcome | None = None
    version: str = ""
    created: str = ""
    made_by: str | None = None
    requested_by: str | None = None
    run_type: str | None = None
    job: ReportedJob
    input: str | None = None
    source: Source | None = None
    columns: Columns = field(default_factory=Columns)
    rows: RowCounts
    series: SeriesNight | None = None
    achieved: Mapping[str, float | Mapping[str, float] | None]
    criteria: tuple[AddedCriterion, ...] = ()
    equivalence_classes: int
    class_sizes: tuple[tuple[int, int], ...] = ()
    metrics: Metrics
    risk: Risk
    levels: Mapping[str, Any] = field(default_factory=dict)
    recoding: Recoding | None = None
    use: Use | None = None
    attributes: Mapping[str, Attribute]
    sensitive: Mapping[str, Sensitive] = field(default_factory=dict)
    fragments: tuple[FragmentFigures, ...] = ()
    partitioning: Partitioning | None = None
    cut: Choice | None = None
    retrieval: Choice | None = None
    verification: Verification = field(default_factory=Verification)
    timings_s: Mapping[str, float] = field(default_factory=dict)
    phases: Mapping[str, PhaseCost] = field(default_factory=dict)
    dependencies: Dependencies = field(default_factory=Dependencies)
    notes: Names = ()
    limits: str = ""
    policies: Names = ()
    replaces: Mapping[str, Any] = field(default_factory=dict)
    content: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """The dict that the report was read from; do not change it."""

    @classmethod
    def of(cls, report: Report | Mapping[str, Any]) -> Report:
        """The report itself, or the one in a JSON-able dict. Raises ReportError, with the place."""
        if isinstance(report, Report):
            return report
        if as_object(report, "").get("schema_version", 1) != SCHEMA_VERSION:
            raise wrong("schema_version", f"this version reads {SCHEMA_VERSION}")
        read: Report = read_part(cls, _with_figures(report), "")
        if read.job.k < 1:
            raise wrong("job.k", "1 or more was expected")
        try:
            return replace(read, content=copied(dict(report)))
        except RecursionError:
            raise wrong("", "it is nested too deeply") from None

    @classmethod
    def from_json(cls, content: bytes) -> Report:
        """The report in the content of its JSON file. Raises ReportError."""
        try:
            report = json.loads(content)
        except (ValueError, RecursionError):
            raise wrong("", "it is not JSON, or nested too deeply") from None
        return cls.of(report)

    @property
    def state(self) -> str:
        """What became of the release; empty where the report does not say."""
        return self.outcome.state if self.outcome else ""

    @property
    def is_measured(self) -> bool:
        """Whether it has figures; a run can end before there are any."""
        return "rows" in self.content

    def to_dict(self) -> dict[str, Any]:
        """A copy of the dict that the report was read from."""
        return {name: copied(value) for name, value in self.content.items()}

    def named(self) -> Report:
        """The report with ``''`` for a column whose name is empty, as people see it."""
        columns = self.columns
        roles: dict[str, Any] = {
            role.name: tuple(name or NAMELESS for name in names)
            for role in fields(columns)
            if isinstance(names := getattr(columns, role.name), tuple)
        }
        return replace(
            self,
            attributes={name or NAMELESS: part for name, part in self.attributes.items()},
            sensitive={name or NAMELESS: each for name, each in self.sensitive.items()},
            levels={name or NAMELESS: level for name, level in self.levels.items()},
            use=None if self.use is None else self.use.named(NAMELESS),
            columns=replace(columns, **roles),
        )

    def achieves(self, key: str) -> float | None:
        """The k, l or t achieved, of the sensitive column where it is weakest."""
        achieved = self.achieved.get(key)
        if not isinstance(achieved, Mapping):
            return achieved
        weakest: Callable[[Iterable[float]], float] = max if key == "t" else min
        return weakest(achieved.values()) if achieved else None

    def overview(self) -> dict[str, float | None]:
        """The figures that a list of releases shows, in one flat dict, if there are any."""
        if not self.is_measured:
            return {}
        metrics = self.metrics
        return {
            **{f"achieved_{key}": self.achieves(key) for key in ("k", "l", "t")},
            "rows_input": self.rows.input,
            "rows_published": self.rows.published,
            "rows_suppressed": self.rows.suppressed,
            "equivalence_classes": self.equivalence_classes,
            "NCP": metrics.NCP,
            "GCP": metrics.GCP,
            "LM": metrics.LM,
            "DP": metrics.DP,
            "risk": self.risk.prosecutor_max,
            "risk_avg": self.risk.prosecutor_avg,
            "duration_s": round(sum(self.timings_s.values()), 3),
        }


def unmeasured(job: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """The report of a run that ends before there are figures; ``job``: as reports show it."""
    return {
        "outcome": None,
        "version": __version__,
        **more,
        "job": dict(job),
        "input": job.get("input"),
    }


_UNPUBLISHED = (REFUSED, REJECTED, EXPIRED, FAILED)
_NO_FIGURES: Mapping[str, Any] = {
    "rows": {"input": 0, "published": 0, "suppressed": 0},
    "achieved": {},
    "equivalence_classes": 0,
    "metrics": {"DP": 0, "NCP": 0, "GCP": 0, "LM": 0, "C_avg": 0},
    "risk": {"prosecutor_max": 0, "prosecutor_avg": 0},
    "attributes": {},
}


def _with_figures(report: Mapping[str, Any]) -> Mapping[str, Any]:
    """The report; one that :func:`unmeasured` made gets figures, which nothing shows."""
    outcome = report.get("outcome")
    ended = isinstance(outcome, Mapping) and outcome.get("state") in _UNPUBLISHED
    return report if not ended or report.keys() & _NO_FIGURES else {**report, **_NO_FIGURES}


def json_content(report: Mapping[str, Any], indented: bool = True) -> bytes:
    """The content of ``_report.json``; for programs alone it need not be ``indented``."""
    text = json.dumps(report, indent=1 if indented else None, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


def parsed(content: bytes) -> dict[str, Any]:
    """The dict in the content of ``_report.json``, unchecked. Raises ValueError."""
    report: dict[str, Any] = json.loads(content)
    return report
