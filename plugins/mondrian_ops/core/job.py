"""The job: one description of an anonymization, checked before any data is touched.

The operators, the command line and ``anonymize()`` all take it, as a mapping from YAML, JSON or
Python. DAG files import this module, so it needs the standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, get_args

from mondrian_ops.core.job_sections import (
    MOST_CUT_POINTS,
    DiMondrian,
    LatticeChoice,
    Partitioning,
    Samarati,
    Spark,
    SparkShape,
    Strategy,
    Tds,
    names_of,
    read_di_mondrian,
    read_partitioning,
    read_rows_or_share,
    read_samarati,
    read_spark,
    read_tds,
    rows_of,
)
from mondrian_ops.core.options import Options
from mondrian_ops.core.quasi_identifier import (
    Generalization,
    QuasiIdentifier,
    read_quasi_identifier,
)

__all__ = [
    "MOST_CUT_POINTS",
    "DiMondrian",
    "Generalization",
    "Job",
    "LatticeChoice",
    "Partitioning",
    "QuasiIdentifier",
    "Samarati",
    "Spark",
    "SparkShape",
    "Strategy",
    "Tds",
    "rows_of",
]

Diversity = Literal["distinct", "entropy", "recursive"]
MissingSensitive = Literal["no_value", "value"]
Distance = Literal["equal", "ordered", "hierarchical"]
IdentifierPolicy = Literal["drop", "redact"]
Unlisted = Literal["drop", "publish"]
Replace = Literal["same", "any"]
Cut = Literal["auto", "median", "gain", "lookahead"]
IntervalStyle = Literal["text", "bounds"]
Retrieval = Literal["auto", "pushdown", "scatter"]
OnExceeded = Literal["refuse", "ask"]
Overlap = Literal["warn", "refuse"]

ALGORITHMS = ("mondrian", "di_mondrian", "samarati", "tds")
RECODING_ALGORITHMS = ("samarati", "tds")
ENGINES = ("local", "spark")
MOST_APPROVAL_HOURS = 365 * 24


@dataclass(frozen=True, slots=True)
class Job:
    """A checked anonymization job; build it with :meth:`from_dict`.

    ``k`` counts rows or, with ``entity_id``, the persons whose rows share a value of that column;
    the column is one of the ``identifiers``, whether it is listed there or not.
    ``l`` with ``diversity`` (and ``c``, for recursive (c, l)-diversity) and ``t`` with
    ``t_distance`` are requirements on the ``sensitive`` columns, None where there is none.
    ``sensitive_hierarchy`` names the hierarchy file of each sensitive column for the hierarchical
    distance. ``missing_sensitive`` says whether l counts the missing value of such a column as one.
    ``max_gcp``, ``max_risk`` and ``max_suppressed`` (a number of rows or, below 1, a
    share of them) are limits on the release; one beyond them is refused, or waits for a steward's
    approval (``on_exceeded``), for ``approval_hours`` at most. ``ledger`` is where releases are
    noted; people who are in one already are an ``overlap``. ``replace``: which earlier release this
    one may take the place of. ``input`` and ``output`` are None for a
    job on a table in memory. ``base_dir`` is not part of the description: the directory of
    the job's file, where its hierarchies may lie.
    """

    input: str | None
    output: str | None
    k: int
    entity_id: str | None = None
    l: float | None = None  # noqa: E741 - the name of the parameter in every paper
    diversity: Diversity = "distinct"
    c: float | None = None
    missing_sensitive: MissingSensitive = "no_value"
    t: float | None = None
    t_distance: Distance = "equal"
    sensitive_hierarchy: Mapping[str, str] = field(default_factory=dict, hash=False)
    identifiers: tuple[str, ...] = ()
    identifier_policy: IdentifierPolicy = "drop"
    quasi_identifiers: tuple[QuasiIdentifier, ...] = ()
    sensitive: tuple[str, ...] = ()
    unlisted: Unlisted = "drop"
    replace: Replace = "same"
    require_approval: bool = False
    approval_hours: float = 72
    max_gcp: float | None = None
    max_risk: float | None = None
    max_suppressed: float | None = None
    on_exceeded: OnExceeded = "refuse"
    ledger: str | None = None
    overlap: Overlap = "warn"
    algorithm: str = "mondrian"
    cut: Cut = "auto"
    relaxed: bool = False
    cut_budget_s: float = 5.0
    interval_style: IntervalStyle = "text"
    partitioning: Partitioning = Partitioning()
    retrieval: Retrieval = "auto"
    engine: str = "local"
    spark: Spark = Spark()
    samarati: Samarati = Samarati()
    tds: Tds = Tds()
    di_mondrian: DiMondrian = DiMondrian()
    base_dir: str | None = field(default=None, compare=False)

    @property
    def recodes_columns(self) -> bool:
        """Whether a value is generalized alike in all rows, not class by class."""
        return self.algorithm in RECODING_ALGORITHMS

    def suppressible(self, rows: int) -> int:
        """How many of ``rows`` rows may be left out of the release."""
        return self.samarati.suppressible(rows) if self.algorithm == "samarati" else 0

    @property
    def may_ask(self) -> bool:
        """Whether its release may have to wait for a steward's approval."""
        return self.require_approval or self.on_exceeded == "ask"

    @property
    def quasi_identifier_names(self) -> tuple[str, ...]:
        """The columns of the quasi-identifier, in the order of the job."""
        return tuple(attribute.name for attribute in self.quasi_identifiers)

    @property
    def named_columns(self) -> tuple[str, ...]:
        """Every column of the source that the job names."""
        return (*self.identifiers, *self.quasi_identifier_names, *self.sensitive)

    @classmethod
    def from_dict(
        cls, mapping: Mapping[str, Any], where: str = "job", paths_required: bool = True
    ) -> Job:
        """The job that ``mapping`` describes; ``where`` is its file's name, for messages.

        Raises JobError on an unknown key, a wrong type or an impossible combination; the message
        starts with the key's path and names the value and the remedy.
        """
        options = Options(
            mapping,
            path="",
            known=_KEYS,
            source="" if where == "job" else where,
            moved=_FLATTENED,
        )
        return _read(options, paths_required)

    def to_dict(self) -> dict[str, Any]:
        """A JSON-able description: what defines the release, and whatever is not a default.

        ``Job.from_dict(job.to_dict()) == job``.
        """
        described: dict[str, Any] = {}
        for each in fields(self):
            if not each.compare:
                continue
            value = getattr(self, each.name)
            if each.name in _ALWAYS_DESCRIBED or value != getattr(_DEFAULTS, each.name):
                described[each.name] = _plain(value)
        return described


def _read(options: Options, paths_required: bool) -> Job:
    source, output = options.text("input"), options.text("output")
    if paths_required and source is None:
        raise options.error("input", "is required: the path or URL of a Parquet or CSV data set")
    if paths_required and output is None:
        raise options.error("output", "is required: the directory of the release")
    k = options.whole("k", least=2, why="a class of one row hides nobody")
    if k is None:
        raise options.error("k", "is required: the least rows that share a combination of values")
    for key, limit in _COUNTED.items():
        options.check_count(key, limit)
    identifiers = options.columns("identifiers")
    entity_id = options.text("entity_id")
    if entity_id is not None:
        identifiers.setdefault(entity_id, "entity_id")
    attributes = _quasi_identifiers(options)
    sensitive = options.columns("sensitive")
    _check_one_role_each(options, identifiers, attributes, sensitive)
    algorithm = options.choice("algorithm", ALGORITHMS, ALGORITHMS[0])
    cut = options.choice("cut", get_args(Cut), "auto")
    relaxed = options.flag("relaxed", False)
    _check_cut_goes_with(options, algorithm, cut, relaxed)
    if relaxed and cut not in ("auto", "median"):
        raise options.error("relaxed", f"goes with cut: median, not {cut}; change one of them")
    style = options.choice("interval_style", get_args(IntervalStyle), "text")
    if algorithm in RECODING_ALGORITHMS:
        _check_recoding(options, algorithm, attributes, style)
    diversity = options.choice("diversity", get_args(Diversity), "distinct")
    distance = options.choice("t_distance", get_args(Distance), "equal")
    return Job(
        **_release_limits(options),
        **_ledger(options),
        input=source,
        output=output,
        k=k,
        entity_id=entity_id,
        l=_l(options, diversity, bool(sensitive)),
        diversity=diversity,
        c=_c(options, diversity),
        missing_sensitive=options.choice(
            "missing_sensitive", get_args(MissingSensitive), "no_value"
        ),
        t=_t(options, distance, bool(sensitive)),
        t_distance=distance,
        sensitive_hierarchy=_sensitive_hierarchy(options, distance, tuple(sensitive)),
        identifiers=tuple(identifiers),
        identifier_policy=options.choice("identifier_policy", get_args(IdentifierPolicy), "drop"),
        quasi_identifiers=tuple(attributes.values()),
        sensitive=tuple(sensitive),
        unlisted=options.choice("unlisted", get_args(Unlisted), "drop"),
        replace=options.choice("replace", get_args(Replace), "same"),
        algorithm=algorithm,
        cut=cut,
        relaxed=relaxed,
        cut_budget_s=_cut_budget(options),
        interval_style=style,
        partitioning=read_partitioning(options),
        retrieval=options.choice("retrieval", get_args(Retrieval), "auto"),
        engine=options.choice("engine", ENGINES, ENGINES[0]),
        spark=read_spark(options),
        samarati=read_samarati(options, algorithm),
        tds=read_tds(options, k),
        di_mondrian=read_di_mondrian(options),
    )


def _quasi_identifiers(options: Options) -> dict[str, QuasiIdentifier]:
    """Path of the item -> quasi-identifier; at least one, none twice."""
    attributes: dict[str, QuasiIdentifier] = {}
    seen: set[str] = set()
    for path, item in options.items("quasi_identifiers", blanks=True):
        attribute = read_quasi_identifier(options, path, item)
        if attribute.name in seen:
            raise options.error(path, f"column {attribute.name!r} is listed twice; remove one")
        seen.add(attribute.name)
        attributes[path] = attribute
    if not attributes:
        raise options.error(
            "quasi_identifiers", "is required: name the columns that other sources know too"
        )
    return attributes


def _check_one_role_each(
    options: Options,
    identifiers: Mapping[str, str],
    attributes: Mapping[str, QuasiIdentifier],
    sensitive: Mapping[str, str],
) -> None:
    taken = dict(identifiers)
    quasi = {attribute.name: path for path, attribute in attributes.items()}
    for role in (quasi, sensitive):
        for name, path in role.items():
            if name in taken:
                raise options.error(
                    path,
                    f"column {name!r} is listed already, at {taken[name]}; a column is either an "
                    "identifier, a quasi-identifier or sensitive, remove it from one of them",
                )
        taken.update(role)


def _check_recoding(
    options: Options,
    algorithm: str,
    attributes: Mapping[str, QuasiIdentifier],
    style: IntervalStyle,
) -> None:
    """Refuse what only algorithms that cut classes can do."""
    if style != "text":
        raise options.error(
            "interval_style", f"{style} cannot be had with algorithm: {algorithm}; remove it"
        )
    for path, attribute in attributes.items():
        if attribute.grid is not None:
            raise options.error(
                path, f"a grid cannot be had with algorithm: {algorithm}; use a ladder"
            )


def _l(options: Options, diversity: Diversity, sensitive: bool) -> float | None:
    value = options.number("l")
    if value is None:
        if diversity != "distinct":
            raise options.error("diversity", f"{diversity} diversity needs l; set l, such as l: 2")
        return None
    if value < 2:
        raise options.error(
            "l", f"must be at least 2, not {value}; leave it out to ask for no diversity"
        )
    if not sensitive:
        raise options.error("l", "needs sensitive: name the columns whose values must be diverse")
    if diversity == "entropy":
        return value
    if value != int(value):
        raise options.error(
            "l", f"must be a whole number for {diversity} diversity, not {value}; or use entropy"
        )
    return int(value)


def _c(options: Options, diversity: Diversity) -> float | None:
    value = options.number("c")
    if value is None:
        if diversity == "recursive":
            raise options.error("c", "is required by recursive diversity, such as c: 3")
        return None
    if diversity != "recursive":
        raise options.error("c", f"goes with diversity: recursive, not {diversity}; remove it")
    if value <= 0:
        raise options.error("c", f"must be above 0, not {value}")
    return value


def _t(options: Options, distance: Distance, sensitive: bool) -> float | None:
    value = options.number("t")
    if value is None:
        if distance != "equal":
            raise options.error(
                "t_distance", f"the {distance} distance needs t; set t or remove it"
            )
        return None
    if not 0 < value <= 1:
        raise options.error(
            "t", f"must be above 0 and at most 1, not {value}; leave it out to ask for none"
        )
    if not sensitive:
        raise options.error("t", "needs sensitive: name the columns whose distribution must stay")
    return value


def _sensitive_hierarchy(
    options: Options, distance: Distance, sensitive: tuple[str, ...]
) -> dict[str, str]:
    section = options.section("sensitive_hierarchy", known=sensitive)
    files = {name: file for name in sensitive if (file := section.text(name)) is not None}
    if files and distance != "hierarchical":
        raise options.error(
            "sensitive_hierarchy",
            f"goes with t_distance: hierarchical, not {distance}; change one or remove it",
        )
    for name in sensitive:
        if distance == "hierarchical" and name not in files:
            raise section.error(name, "is required by t_distance: hierarchical; name its file")
    return files


def _check_cut_goes_with(options: Options, algorithm: str, cut: str, relaxed: bool) -> None:
    if algorithm == "mondrian":
        return
    if cut != "auto":
        raise options.error("cut", f"goes with algorithm: mondrian, not {algorithm}; remove it")
    if relaxed:
        raise options.error("relaxed", f"goes with algorithm: mondrian, not {algorithm}; remove it")


def _cut_budget(options: Options) -> float:
    value = options.number("cut_budget_s")
    if value is None:
        return _DEFAULTS.cut_budget_s
    if value <= 0:
        raise options.error("cut_budget_s", f"must be seconds above 0, not {value}")
    return float(value)


def _release_limits(options: Options) -> dict[str, Any]:
    """The options that decide whether a verified release is published, refused or asked about."""
    hours = options.number("approval_hours")
    if hours is not None and not 0 < hours <= MOST_APPROVAL_HOURS:
        raise options.error(
            "approval_hours",
            f"must be hours above 0 and at most {MOST_APPROVAL_HOURS}, a year, not {hours}",
        )
    limits = {
        "max_gcp": _share(options, "max_gcp"),
        "max_risk": _share(options, "max_risk"),
        "max_suppressed": read_rows_or_share(options, "max_suppressed"),
    }
    on_exceeded = options.choice("on_exceeded", get_args(OnExceeded), "refuse")
    if on_exceeded == "ask" and not any(limit is not None for limit in limits.values()):
        raise options.error(
            "on_exceeded",
            f"ask needs a limit; set {', '.join(limits)}, or require_approval: true to be asked "
            "about every release",
        )
    return {
        "require_approval": options.flag("require_approval", False),
        "approval_hours": _DEFAULTS.approval_hours if hours is None else hours,
        **limits,
        "on_exceeded": on_exceeded,
    }


def _ledger(options: Options) -> dict[str, Any]:
    ledger = options.text("ledger")
    if ledger is None and options.get("overlap") is not None:
        raise options.error("overlap", "needs ledger: name the directory where releases are noted")
    return {"ledger": ledger, "overlap": options.choice("overlap", get_args(Overlap), "warn")}


def _share(options: Options, key: str) -> float | None:
    value = options.number(key)
    if value is not None and not 0 <= value <= 1:
        raise options.error(
            key, f"must be a share from 0 to 1, not {value}; leave it out to set no limit"
        )
    return value


def _plain(value: Any) -> Any:
    """``value`` made of JSON's types."""
    if isinstance(value, (Partitioning, Spark, Samarati, Tds, DiMondrian)):
        return {name: each for name, each in asdict(value).items() if each is not None}
    if isinstance(value, QuasiIdentifier):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return dict(value) if isinstance(value, Mapping) else value


_KEYS = tuple(name for name in names_of(Job) if name != "base_dir")
# The trigger form has these at its top level; in a job they have a section.
_FLATTENED = {name: f"partitioning.{name}" for name in names_of(Partitioning)} | {
    f"{prefix}_{name}": f"{prefix}.{name}"
    for prefix, section in (
        ("spark", Spark),
        ("di_mondrian", DiMondrian),
        ("samarati", Samarati),
        ("tds", Tds),
    )
    for name in names_of(section)
}
_COUNTED = {
    "identifiers": "columns",
    "quasi_identifiers": "quasi_identifiers",
    "sensitive": "sensitive",
}
_DEFAULTS = Job(input=None, output=None, k=0)
_ALWAYS_DESCRIBED = {
    *("k", "l", "identifiers", "quasi_identifiers", "sensitive", "unlisted"),
    *("algorithm", "cut", "partitioning", "retrieval", "engine"),
}
