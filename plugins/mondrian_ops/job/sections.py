"""The sections of a job: how its rows are divided, Spark, and what is special to an algorithm.

:mod:`mondrian_ops.job.series_options` has the section of a series.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from mondrian_ops.job.options import ROWS_OR_SHARE, Options, option, rows_of
from mondrian_ops.late_methods import dataclass

# Sections of the trigger form, closed at first; an option without a section is always in view.
PRIVACY = "More on privacy"
APPROVAL = "Approval and limits"
ALGORITHM = "Algorithm"
PARTITIONING = "Partitioning"
SPARK = "Engine and Spark"


@dataclass(frozen=True, slots=True)
class Partitioning(Options):
    """How the rows are divided into fragments before they are anonymized."""

    strategy: Literal["multidimensional", "quantile"] = option(
        "multidimensional",
        text="How the rows are divided into fragments.",
        choices={
            "multidimensional": "by cuts, as Mondrian chooses them",
            "quantile": "by the quantiles of one quasi-identifier",
        },
        form=PARTITIONING,
    )
    fragments: int | Literal["auto"] = option(
        "auto",
        text="The number of fragments. In Airflow each fragment is a mapped task. A fragment that "
        "is too small to meet the requirements is merged with others.",
        choices={"auto": "as many as give each task enough work"},
        details="There are fewer if the data does not allow as many, or if `samarati` or `tds` "
        "would leave too few rows of a class in one file; the report says so. Any number is "
        "possible, not only powers of two.",
        see="[Choose the number of fragments](#choose-the-number-of-fragments)",
        minimum=1,
        limit="fragments",
        form=PARTITIONING,
    )
    sample: float = option(
        0.001,
        text="The share of the rows that is sampled to decide how the rows are divided into "
        "fragments.",
        noun="a rate",
        above=0,
        maximum=1,
        form=PARTITIONING,
    )
    seed: int = option(
        0,
        text="The seed of the sample. The same input, job and seed give the same classes; the "
        "order of the rows, and the values of rows that are made up, are random each time.",
        minimum=0,
        form=PARTITIONING,
    )
    min_sample: int = option(
        1000,
        text="The minimum number of rows in the sample; all rows if there are fewer. With 0 "
        "`sample` alone decides.",
        minimum=0,
        form=None,
    )
    max_rows: int = option(
        10_000_000,
        title="Maximum rows of a fragment",
        text="A fragment with more rows is divided, because it must fit into a worker's memory. "
        "Ten million rows of ten columns take about 1.5 GB.",
        details="It limits every number of `fragments`; the sample grows if that needs more rows. "
        "With `series.protect: intersection` all rows of a night are one fragment, which one "
        "worker must hold.",
        minimum=1,
        form=PARTITIONING,
    )


@dataclass(frozen=True, slots=True)
class Spark(Options):
    """How the Spark engine is reached and used."""

    connection: str = option(
        "spark_connect_default",
        text="The id of the Airflow connection. Its type is Spark Connect, for a server that runs "
        "already, or Spark, for applications started by spark-submit.",
        details="Outside Airflow, Spark's own settings apply: `SPARK_REMOTE`, or those that "
        "spark-submit was given.",
        see="[Run on Spark](airflow.md#run-on-spark)",
        form=SPARK,
    )
    shape: Literal["fragments", "application"] = option(
        "fragments",
        title="Work of one application",
        text="What one Spark application (or session) anonymizes.",
        choices={
            "fragments": "one fragment, for one mapped task",
            "application": "all fragments, in one task; for the largest data",
        },
        details="With `application`, Spark runs one task per fragment, and its shuffle brings each "
        "task its rows.",
        form=SPARK,
    )
    conf: Mapping[str, str] = option(
        {},
        title="Properties",
        text="Spark properties.",
        details="A mapping, or a list of `name=value`. A Spark Connect server takes the properties "
        "of a session (`spark.sql.…`), spark-submit takes any. In Airflow, an administrator "
        "decides which are allowed.",
        see="[Security](security.md#allow-a-job-its-files-and-connections)",
        noun="a property",
        examples=({"spark.sql.shuffle.partitions": "64"},),
        form=SPARK,
    )


@dataclass(frozen=True, slots=True)
class Mondrian(Options):
    """Options of `algorithm: mondrian`."""

    max_suppressed: float = option(
        0,
        title="Mondrian: suppressed rows",
        text="The maximum number of rows that `mondrian` leaves out of the release: those without "
        "which the others lose least.",
        **ROWS_OR_SHARE,
        see="[Leave out rows](algorithms.md#leave-out-rows-that-cost-most)",
        examples=(0.01,),
        form=ALGORITHM,
    )


@dataclass(frozen=True, slots=True)
class DiMondrian(Options):
    """Options of `algorithm: di_mondrian`."""

    cut_points: int = option(
        2,
        title="DI-Mondrian: cut points",
        text="The maximum number of points at which `di_mondrian` cuts a class in one step.",
        minimum=1,
        maximum=100,
        form=ALGORITHM,
    )


@dataclass(frozen=True, slots=True)
class Samarati(Options):
    """Options of `algorithm: samarati`, full-domain generalization."""

    max_suppressed: float = option(
        0,
        title="Samarati: suppressed rows",
        text="The maximum number of rows that `samarati` leaves out of the release.",
        **ROWS_OR_SHARE,
        form=ALGORITHM,
    )
    choice: Literal["first", "minimal", "optimal"] = option(
        "minimal",
        title="Samarati: choice of the generalization",
        text="Which generalization `samarati` takes of those that meet the requirements.",
        choices={
            "first": "the first one found at the minimum height of the lattice",
            "minimal": "the one with the least loss at the minimum height",
            "optimal": "the one with the least loss in the whole lattice",
        },
        form=ALGORITHM,
    )

    def suppressible(self, rows: int) -> int:
        """How many of ``rows`` rows may be suppressed."""
        return rows_of(self.max_suppressed, rows)


@dataclass(frozen=True, slots=True)
class Tds(Options):
    """Options of `algorithm: tds`, two-phase top-down specialization."""

    partitions: int = option(
        4,
        title="TDS: partitions",
        text="The number of random parts into which `tds` divides the rows; its first phase "
        "specializes them in parallel.",
        minimum=1,
        limit="fragments",
        form=ALGORITHM,
    )
    k_intermediate: int | None = option(
        None,
        title="TDS: k of the first phase",
        text="The k of the first phase of `tds`, at least `k`. With a smaller one the first phase "
        "does more of the work, and may lose more information.",
        unset="a fifth of the rows of a part",
        minimum=2,
        form=ALGORITHM,
    )

    @property
    def parts(self) -> range:
        """The parts of the first phase; none if there is one partition, which the second phase
        specializes."""
        return range(self.partitions if self.partitions > 1 else 0)
