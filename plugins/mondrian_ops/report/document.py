"""The report of a release as a frozen value, and the one place that reads and writes its JSON.

``_report.json`` is layout 1 (:data:`SCHEMA_VERSION`), which names no ``schema_version``; a later
layout will, and is refused here. Reading checks each type, so whoever shows a report need not. A
key that is not named here is kept, so that a report is written back as it was read.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

__all__ = [
    "HTML_NAME",
    "JSON_NAME",
    "SCHEMA_VERSION",
    "Asked",
    "Attribute",
    "Columns",
    "Fragment",
    "Report",
    "ReportError",
    "json_content",
    "overview",
    "parsed",
]

SCHEMA_VERSION = 1
JSON_NAME = "_report.json"
HTML_NAME = "_report.html"
NAMELESS = "''"
"""How a column is shown whose name is empty."""

Names = tuple[str, ...]
_MOST = 10**30  # no figure is larger, so sums and ratios of figures overflow no float


class ReportError(ValueError):
    """What should be a report is none, or one of a layout that this version does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The job as run (``Job.to_dict()``); named here is what the figures are judged by."""

    k: int
    l: float | None = None  # noqa: E741 - as every paper calls it
    t: float | None = None
    diversity: str = "distinct"
    missing_sensitive: str | None = None
    entity_id: Any = None
    algorithm: str = "mondrian"
    input: str | None = None
    output: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows of the source: ``input`` = ``published`` + ``suppressed``."""

    input: int
    published: int
    suppressed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """NCP and DP of the release, and means per value or class (docs/algorithms.md)."""

    DP: float
    NCP: float
    GCP: float
    LM: float
    C_avg: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """The chance of picking the right row, or person (docs/report.md)."""

    prosecutor_max: float
    prosecutor_avg: float
    journalist_max: float | None = None
    marketer: float | None = None
    rows_at_most_risk: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """A quasi-identifier: mean loss per row, and rows by how much of their value is published.

    ``rows_by_loss``: pairs (loss, rows) of the rows neither exact nor hidden, the losses ascending.
    """

    NCP: float
    LM: float = 0
    generalization: str | None = None
    rows_exact: int | None = None
    rows_star: int | None = None
    rows_by_loss: tuple[tuple[float, int], ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragment:
    """A part that was anonymized by itself; ``where`` is its condition as it may be shown."""

    id: int
    where: str | None = None
    rows: int
    equivalence_classes: int
    DP: float = 0
    NCP: float
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """What each column of the source was taken for; ``index`` is a pandas index, left out."""

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
        roles: Columns = _read(cls, columns, "columns")
        return roles

    @property
    def raw(self) -> Names:
        """The columns that went out raw though the job does not name them."""
        return self.unlisted if self.unlisted_policy == "publish" else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What was used for something that the job may leave open, beside what was asked."""

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
    """How columns were recoded as a whole; ``summary`` says it in words."""

    summary: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What was checked on the files as written, and what failed."""

    passed: bool = False
    checked: Names = ()
    failures: Names = ()
    files: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """``decision`` is asked, approved, rejected, expired or abandoned."""

    decision: str
    by: str | None = None
    at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The report of one release: its job, what was measured, and how it was made."""

    version: str = ""
    created: str = ""
    made_by: str | None = None
    job: Asked
    input: str | None = None
    columns: Columns = field(default_factory=Columns)
    rows: Rows
    achieved: Mapping[str, float | Mapping[str, float] | None]
    equivalence_classes: int
    class_sizes: tuple[tuple[int, int], ...] = ()
    class_persons: tuple[tuple[int, int], ...] | None = None
    metrics: Metrics
    risk: Risk
    levels: Mapping[str, Any] = field(default_factory=dict)
    recoding: Recoding | None = None
    attributes: Mapping[str, Attribute]
    fragments: tuple[Fragment, ...] = ()
    partitioning: Partitioning | None = None
    cut: Choice | None = None
    retrieval: Choice | None = None
    verification: Verification = field(default_factory=Verification)
    timings_s: Mapping[str, float] = field(default_factory=dict)
    notes: Names = ()
    limits: str = ""
    approval: Approval | None = None
    replaces: Mapping[str, Any] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """The dict that it was read from; not to be changed."""

    @classmethod
    def of(cls, report: Report | Mapping[str, Any]) -> Report:
        """The report, or that in a dict as :meth:`to_dict` makes it. Raises ReportError."""
        return report if isinstance(report, Report) else cls.from_dict(report)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Report:
        """The report in a JSON-able dict. Raises ReportError, which names what is wrong where."""
        if _mapping(given, "").get("schema_version", 1) != SCHEMA_VERSION:
            raise _wrong("schema_version", f"this version reads {SCHEMA_VERSION}")
        report: Report = _read(cls, given, "")
        if report.job.k < 1:
            raise _wrong("job.k", "1 or more was expected")
        try:
            return replace(report, given=copy.deepcopy(given))
        except RecursionError:
            raise _wrong("", "it is nested too deeply") from None

    @classmethod
    def from_json(cls, content: bytes) -> Report:
        """The report in the content of its JSON file. Raises ReportError."""
        try:
            given = json.loads(content)
        except (ValueError, RecursionError):
            raise _wrong("", "it is no JSON, or nested too deeply") from None
        return cls.from_dict(given)

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON holds it: the dict that it was read from."""
        return copy.deepcopy(dict(self.given))

    def named(self) -> Report:
        """The report as it is shown: a column whose name is empty is ``''``."""
        columns = self.columns
        roles: dict[str, Any] = {
            role.name: tuple(name or NAMELESS for name in names)
            for role in fields(columns)
            if isinstance(names := getattr(columns, role.name), tuple)
        }
        return replace(
            self,
            attributes={name or NAMELESS: each for name, each in self.attributes.items()},
            levels={name or NAMELESS: level for name, level in self.levels.items()},
            columns=replace(columns, **roles),
        )

    def achieves(self, key: str) -> float | None:
        """The k, l or t achieved; of several sensitive attributes the weakest counts."""
        reached = self.achieved.get(key)
        if not isinstance(reached, Mapping):
            return reached
        worst: Callable[[Iterable[float]], float] = max if key == "t" else min
        return worst(reached.values()) if reached else None

    def overview(self) -> dict[str, float | None]:
        """The figures that a list of releases shows, in one flat dict."""
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


def _wrong(where: str, problem: str) -> ReportError:
    place = where or "the whole"
    return ReportError(f"the report is damaged, or of another version: {place}: {problem}")


@cache
def _kinds(part: type) -> dict[str, Any]:
    """The types of a part's fields, by name."""
    kinds = get_type_hints(part)
    return {each.name: kinds[each.name] for each in fields(part) if each.name != "given"}


def _read(kind: Any, given: object, where: str) -> Any:
    """The value of a type of this module in a value of JSON; ``where`` is its path."""
    if kind is Any:
        return given
    if is_dataclass(kind):
        return _read_part(kind, given, where)
    if get_origin(kind) is UnionType:
        return _read_one_of(get_args(kind), given, where)
    if get_origin(kind) is tuple:
        return _read_tuple(get_args(kind), given, where)
    if get_origin(kind) is Mapping:
        each_kind = get_args(kind)[1]
        items = _mapping(given, where).items()
        return {name: _read(each_kind, each, f"{where}.{name}") for name, each in items}
    return _read_plain(kind, given, where)


def _read_part(part: Any, given: object, where: str) -> Any:
    members = _mapping(given, where)
    values = {
        name: _read(kind, members[name], f"{where}.{name}".lstrip("."))
        for name, kind in _kinds(part).items()
        if name in members
    }
    for each in fields(part):
        if each.default is MISSING and each.default_factory is MISSING and each.name not in values:
            raise _wrong(f"{where}.{each.name}".lstrip("."), "it is missing")
    return part(**values)


def _read_one_of(kinds: tuple[Any, ...], given: object, where: str) -> Any:
    """A value that may be None; of two other types one is a mapping."""
    if given is None and NoneType in kinds:
        return None
    kinds = tuple(kind for kind in kinds if kind is not NoneType)
    return _read(kinds[-1] if isinstance(given, Mapping) else kinds[0], given, where)


def _read_tuple(kinds: tuple[Any, ...], given: object, where: str) -> tuple[Any, ...]:
    """Values of one type (``tuple[x, ...]``), or of one type each."""
    if not isinstance(given, list | tuple):
        raise _wrong(where, "a list was expected")
    if kinds[-1] is Ellipsis:
        kinds = kinds[:1] * len(given)
    if len(kinds) != len(given):
        raise _wrong(where, f"{len(kinds)} values were expected")
    return tuple(
        _read(kind, each, f"{where}.{at}")
        for at, (kind, each) in enumerate(zip(kinds, given, strict=True))
    )


def _read_plain(kind: type, given: object, where: str) -> Any:
    """A text, a truth value, a count (``int``) or a finite number (``float``)."""
    kinds = (int, float) if kind is float else kind
    if not isinstance(given, kinds) or isinstance(given, bool) != (kind is bool):
        raise _wrong(where, f"{_EXPECTED[kind]} was expected")
    least = 0 if kind is int else -_MOST
    if isinstance(given, int | float) and not least <= given <= _MOST:
        raise _wrong(where, f"{_EXPECTED[kind]} within bounds was expected")
    return given


_EXPECTED = {str: "a text", bool: "true or false", int: "a count", float: "a number"}


def _mapping(given: object, where: str) -> Mapping[str, Any]:
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise _wrong(where, "an object was expected")
    return given


def overview(report: Report | Mapping[str, Any]) -> dict[str, float | None]:
    """:meth:`Report.overview` of a report or its dict. Raises ReportError."""
    return Report.of(report).overview()


def json_content(report: Mapping[str, Any]) -> bytes:
    """The content of ``_report.json``."""
    text = json.dumps(report, indent=1, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


def parsed(content: bytes) -> dict[str, Any]:
    """The dict in the content of ``_report.json``, whatever wrote it. Raises ValueError."""
    report: dict[str, Any] = json.loads(content)
    return report
