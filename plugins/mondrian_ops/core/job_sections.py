"""The sections of a job: options of an engine, an algorithm or the partitioning, and their readers.

Each reader takes the options of the whole job, and raises JobError on what its section may not say.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Literal, get_args

from mondrian_ops.core import limits
from mondrian_ops.core.options import Options, shown

__all__ = [
    "MOST_CUT_POINTS",
    "DiMondrian",
    "LatticeChoice",
    "Partitioning",
    "Samarati",
    "Spark",
    "SparkShape",
    "Strategy",
    "Tds",
    "names_of",
    "read_di_mondrian",
    "read_partitioning",
    "read_rows_or_share",
    "read_samarati",
    "read_spark",
    "read_tds",
    "rows_of",
]

Strategy = Literal["multidimensional", "quantile"]
LatticeChoice = Literal["first", "minimal", "optimal"]
SparkShape = Literal["fragments", "application"]

MOST_CUT_POINTS = 100


def rows_of(limit: float, rows: int) -> int:
    """How many of ``rows`` rows a limit allows: a number of them or, below 1, a share."""
    return math.floor(limit * rows + 1e-9) if limit < 1 else int(limit)


@dataclass(frozen=True, slots=True)
class Partitioning:
    """How the rows are divided into fragments before they are anonymized.

    ``fragments`` is how many are asked for; ``auto``: as many as are worth a task each. ``sample``
    is the rate of rows the conditions are drawn from, in (0, 1]; ``min_sample`` the rows a sample
    has at least (all rows if there are fewer), 0 for the rate alone. ``max_rows`` is the most rows
    of a fragment, so that it fits a worker's memory: a larger one is cut further, and the sample
    grows as that needs.
    """

    strategy: Strategy = "multidimensional"
    fragments: int | Literal["auto"] = "auto"
    sample: float = 0.001
    seed: int = 0
    min_sample: int = 1000
    max_rows: int = 10_000_000


@dataclass(frozen=True, slots=True)
class Spark:
    """Options of the Spark engine.

    ``connection`` is the id of the Airflow connection, of the type ``spark_connect`` or ``spark``.
    ``shape`` is what one Spark application does: the fragment of one mapped task, or all of them.
    ``conf`` are Spark properties.
    """

    connection: str = "spark_connect_default"
    shape: SparkShape = "fragments"
    conf: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Samarati:
    """Options of full-domain generalization: rows that may be suppressed, and which node wins.

    ``max_suppressed`` is a number of rows or, below 1, a share of them.
    """

    max_suppressed: float = 0
    choice: LatticeChoice = "minimal"

    def suppressible(self, rows: int) -> int:
        """How many of ``rows`` rows may be suppressed."""
        return rows_of(self.max_suppressed, rows)


@dataclass(frozen=True, slots=True)
class Tds:
    """Options of two-phase top-down specialization; ``k_intermediate`` None chooses it."""

    partitions: int = 4
    k_intermediate: int | None = None

    @property
    def parts(self) -> range:
        """The parts of the first phase. One is not specialized twice: for p = 1 the source has the
        result of the second phase alone."""
        return range(self.partitions if self.partitions > 1 else 0)


@dataclass(frozen=True, slots=True)
class DiMondrian:
    """Options of DI-Mondrian: the points that an attribute is cut at, at most, in one step."""

    cut_points: int = 2


def names_of(section: type) -> tuple[str, ...]:
    """The options of a section."""
    return tuple(each.name for each in fields(section))


def read_partitioning(options: Options) -> Partitioning:
    """The section ``partitioning``."""
    section = options.section("partitioning", known=names_of(Partitioning))
    default = Partitioning()
    sample = section.number("sample")
    if sample is not None and not 0 < sample <= 1:
        raise section.error("sample", f"must be a rate above 0 and at most 1, not {sample}")
    return Partitioning(
        strategy=section.choice("strategy", get_args(Strategy), default.strategy),
        fragments=_read_fragments(section),
        sample=default.sample if sample is None else sample,
        seed=_or(section.whole("seed", least=0), default.seed),
        min_sample=_or(section.whole("min_sample", least=0), default.min_sample),
        max_rows=_or(section.whole("max_rows", least=1), default.max_rows),
    )


def _read_fragments(section: Options) -> int | Literal["auto"]:
    if section.get("fragments") == "auto":
        return "auto"
    wanted = section.whole("fragments", least=1, why="or `auto`, as many as are worth a task each")
    return _most(section, "fragments", "fragments", wanted) or "auto"


def read_spark(options: Options) -> Spark:
    """The section ``spark``."""
    section = options.section("spark", known=names_of(Spark))
    default = Spark()
    return Spark(
        connection=section.text("connection") or default.connection,
        shape=section.choice("shape", get_args(SparkShape), default.shape),
        conf=_properties(section),
    )


def _properties(section: Options) -> dict[str, str]:
    """Spark's properties: a mapping, or its short form, a list of texts ``name=value``."""
    conf = section.get("conf")
    if isinstance(conf, Mapping):
        return {str(name): _property(value) for name, value in conf.items()}
    properties = {}
    for path, item in section.items("conf"):
        name, given, value = item.partition("=") if isinstance(item, str) else ("", "", "")
        if not (name.strip() and given):
            raise section.error(path, f"must be a property, name=value, not {shown(item)}")
        properties[name.strip()] = value.strip()
    return properties


def _property(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def read_samarati(options: Options, algorithm: str) -> Samarati:
    """The section ``samarati``; rows suppressed do not go with t."""
    section = options.section("samarati", known=names_of(Samarati))
    suppressed = read_rows_or_share(section, "max_suppressed") or 0
    if suppressed and algorithm == "samarati" and options.number("t") is not None:
        raise section.error(
            "max_suppressed",
            "cannot be had with t, which compares each class with the release as a whole: "
            "without some of its rows it is another; set 0, or remove t",
        )
    return Samarati(
        max_suppressed=suppressed,
        choice=section.choice("choice", get_args(LatticeChoice), "minimal"),
    )


def read_tds(options: Options, k: int) -> Tds:
    """The section ``tds`` of a job with this k."""
    section = options.section("tds", known=names_of(Tds))
    partitions = _most(section, "partitions", "fragments", section.whole("partitions", least=1))
    return Tds(
        partitions=_or(partitions, Tds().partitions),
        k_intermediate=section.whole(
            "k_intermediate", least=k, why="the first phase may not be less strict than k"
        ),
    )


def read_di_mondrian(options: Options) -> DiMondrian:
    """The section ``di_mondrian``."""
    section = options.section("di_mondrian", known=names_of(DiMondrian))
    cut_points = _or(section.whole("cut_points", least=1), DiMondrian().cut_points)
    if cut_points > MOST_CUT_POINTS:
        raise section.error("cut_points", f"must be at most {MOST_CUT_POINTS}, not {cut_points}")
    return DiMondrian(cut_points)


def _most(section: Options, key: str, limit: str, value: int | None) -> int | None:
    if value is not None and value > limits.limit(limit):
        raise section.error(key, limits.exceeded(limit, f"asks for {value:,}", "ask for fewer"))
    return value


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def read_rows_or_share(options: Options, key: str) -> float | None:
    """A number of rows or, below 1, a share of them; see :func:`rows_of`."""
    value = options.number(key)
    if value is None or 0 <= value < 1:
        return value
    if value < 0 or value != int(value):
        raise options.error(
            key, f"must be a number of rows, or a share of them below 1, not {value}"
        )
    return int(value)
