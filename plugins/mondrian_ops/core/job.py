"""The job: one description of an anonymization, checked before any data is touched.

The operators, the command line and ``anonymize()`` all take it, as a mapping from YAML, JSON or
Python. An option is added here and nowhere else: :mod:`mondrian_ops.core.options` says what is made
of its description. DAG files import this module, so it needs the standard library only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

from mondrian_ops.core.errors import JobError, did_you_mean
from mondrian_ops.core.options import Options, option, wrong
from mondrian_ops.core.quasi_identifier import Generalization, QuasiIdentifier

__all__ = [
    "DiMondrian",
    "Generalization",
    "Job",
    "Partitioning",
    "QuasiIdentifier",
    "Samarati",
    "Series",
    "Spark",
    "Tds",
    "rows_of",
]

# Sections of the trigger form, closed at first; an option without a section is always in view.
_PRIVACY = "More on privacy"
_APPROVAL = "Approval and limits"
_ALGORITHM = "Algorithm"
_PARTITIONING = "Partitioning"
_SPARK = "Engine and Spark"

_SHARE: Mapping[str, Any] = {"noun": "a share", "minimum": 0, "maximum": 1}
_ROWS_OR_SHARE: Mapping[str, Any] = {
    "noun": "a number of rows, or a share of them below 1",
    "minimum": 0,
    "whole_from": 1,
}


def rows_of(limit: float, rows: int) -> int:
    """The rows out of ``rows`` that a limit allows: a number or, below 1, a share of them."""
    return math.floor(limit * rows + 1e-9) if limit < 1 else int(limit)


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
        form=_PARTITIONING,
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
        form=_PARTITIONING,
    )
    sample: float = option(
        0.001,
        text="The share of the rows that is sampled to decide how the rows are divided into "
        "fragments.",
        noun="a rate",
        above=0,
        maximum=1,
        form=_PARTITIONING,
    )
    seed: int = option(
        0,
        text="The seed of the sample. The same input, job and seed give the same classes; the "
        "order of the rows is random each time.",
        minimum=0,
        form=_PARTITIONING,
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
        details="It limits every number of `fragments`; the sample grows if that needs more rows.",
        minimum=1,
        form=_PARTITIONING,
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
        form=_SPARK,
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
        form=_SPARK,
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
        form=_SPARK,
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
        form=_ALGORITHM,
    )


@dataclass(frozen=True, slots=True)
class Samarati(Options):
    """Options of `algorithm: samarati`, full-domain generalization."""

    max_suppressed: float = option(
        0,
        title="Samarati: suppressed rows",
        text="The maximum number of rows that `samarati` leaves out of the release.",
        **_ROWS_OR_SHARE,
        form=_ALGORITHM,
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
        form=_ALGORITHM,
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
        form=_ALGORITHM,
    )
    k_intermediate: int | None = option(
        None,
        title="TDS: k of the first phase",
        text="The k of the first phase of `tds`, at least `k`. With a smaller one the first phase "
        "does more of the work, and may lose more information.",
        unset="a fifth of the rows of a part",
        minimum=2,
        form=_ALGORITHM,
    )

    @property
    def parts(self) -> range:
        """The parts of the first phase; none if there is one partition, which the second phase
        specializes."""
        return range(self.partitions if self.partitions > 1 else 0)


@dataclass(frozen=True, slots=True)
class Series(Options):
    """Options of a series: the releases of one dataset, night after night, that hang together."""

    kind: Literal["increments", "snapshots"] = option(
        "increments",
        title="Kind of the series",
        text="What a drop holds.",
        choices={
            "increments": "rows that no drop before it had",
            "snapshots": "all rows as they are now, so that a drop replaces the one before it",
        },
        form=None,
    )
    hold_nights: int = option(
        0,
        title="Nights to wait",
        text="How many nights a row may wait for better company before it is published. With 0 no "
        "row waits.",
        minimum=0,
        maximum=366,
        examples=(7,),
        form=None,
    )
    hold_above: float | None = option(
        None,
        title="Loss above which rows wait",
        text="The rows of an equivalence class wait if their information loss (NCP per row and "
        "quasi-identifier) is larger. Needs `hold_nights`.",
        **_SHARE,
        unset="rows wait only if they cannot be published at all",
        needs="hold_nights",
        examples=(0.1,),
        form=None,
    )
    overdue: Literal["publish", "suppress"] = option(
        "publish",
        title="Rows that have waited long enough",
        text="What happens to rows that have waited for `hold_nights`.",
        choices={
            "publish": "they are published, generalized as far as it takes, or left out if even "
            "that is impossible",
            "suppress": "they are left out, and counted, if they would have to wait again",
        },
        needs="hold_nights",
        form=None,
    )
    boundaries: Literal["nightly", "stable"] = option(
        "nightly",
        title="Boundaries of the generalization",
        text="Where the intervals of numbers, dates and times may end.",
        choices={
            "nightly": "anywhere; each night anew",
            "stable": "where the first night divided them, so that groups can be counted over "
            "all nights",
        },
        see="[Count over all nights](series.md#count-over-all-nights)",
        form=None,
    )
    refit_above: float | None = option(
        None,
        title="Drift above which boundaries are fitted anew",
        text="The boundaries are fitted anew in a night whose drift is larger: the share of its "
        "rows that lie between other boundaries of a column than in the night of the fit. Counts "
        "before and after cannot be compared then, and the report says so.",
        **_SHARE,
        unset="only when a person asks for it",
        only_with={"boundaries": ("stable",)},
        examples=(0.2,),
        form=None,
    )
    protect: Literal["release", "intersection"] = option(
        "release",
        title="Protection across nights",
        text="Against whom the series protects people.",
        choices={
            "release": "those who see one release",
            "intersection": "those who hold all releases and know in which nights a person was: "
            "at least `l` sensitive values common to all of a person's classes remain, but fewer "
            "for those who subtract a class of one night from that of the next; needs "
            "`entity_id`, one sensitive column and a whole `l` of `diversity: distinct`",
        },
        form=None,
    )
    unmatched: Literal["wait", "suppress"] = option(
        "wait",
        title="Rows without a partner",
        text="What happens to rows that no class of the night may take without giving people away.",
        choices={
            "wait": "they wait; needs hold_nights in a series of increments",
            "suppress": "they are left out of the night, and counted",
        },
        only_with={"protect": ("intersection",)},
        form=None,
    )

    @property
    def holds(self) -> bool:
        """Whether rows may wait for a later night."""
        return self.hold_nights > 0 and self.kind == "increments"


@dataclass(frozen=True, slots=True)
class Job(Options):
    """A checked anonymization job; build it with :meth:`from_dict`.

    ``input`` and ``output`` are None for a job on a table in memory. ``entity_id`` is one of the
    ``identifiers``. ``base_dir`` is not part of the description: the directory of the job's file,
    where its hierarchies may lie.
    """

    input: str | None = option(
        text="The data: the path or URL of a file, a directory or a glob; Parquet or CSV.",
        details="All files have the same columns and types. In CSV an empty field is a missing "
        "value, and a column of times has a time zone in all of its values or in none.",
        see="[URLs](deploy.md#name-files-on-hdfs-and-s3), "
        "[limits](security.md#raise-or-lower-a-limit)",
        examples=("data/people.parquet",),
    )
    output: str | None = option(
        text="The directory of the release, a path or a URL. The release appears there whole or "
        "not at all.",
        details="It does not exist yet, is empty, or holds an earlier release, which is replaced "
        "if `replace` allows it. It may not lie inside `input`, nor `input` inside it.",
        examples=("out/people",),
    )
    k: int = option(
        text="k-anonymity: the minimum number of rows per equivalence class, all rows of which "
        "are published with the same quasi-identifiers.",
        minimum=2,
        hint="a class of one row hides nobody",
        examples=(5,),
        always=True,
    )
    identifiers: tuple[str, ...] = option(
        (),
        title="Direct identifiers",
        text="Columns that name a person directly.",
        noun="a column name",
        limit="columns",
        examples=(("name", "email"),),
        always=True,
    )
    quasi_identifiers: tuple[QuasiIdentifier, ...] = option(
        (),
        required=True,
        title="Quasi-identifiers",
        text="Columns that others may know about a person. Their values are generalized.",
        details="Each is a mapping or a short form.",
        see="[Choose quasi-identifiers](#choose-quasi-identifiers)",
        limit="quasi_identifiers",
        examples=(
            ("age", "sex=set", "zip=prefix", "country=hierarchy:countries.csv", "income=grid:1000"),
        ),
        always=True,
    )
    sensitive: tuple[str, ...] = option(
        (),
        title="Sensitive columns",
        text="Columns that nobody should be able to link to a person. They are published as they "
        "are.",
        see="[Protect sensitive values](#protect-sensitive-values)",
        noun="a column name",
        limit="sensitive",
        examples=(("diagnosis",),),
        always=True,
    )
    entity_id: str | None = option(
        None,
        title="Column that tells persons apart",
        text="The column that tells persons apart, where a person may have several rows. `k` then "
        "counts persons instead of rows, and the column is treated as a direct identifier.",
        see="[Count persons](#count-persons-not-rows)",
        unset="every row is a person",
        examples=("patient_no",),
    )
    l: float | None = option(  # noqa: E741 - the name of the parameter in every paper
        None,
        text="l-diversity: the minimum number of different values of each sensitive column in an "
        "equivalence class. `diversity` can select a stricter measure.",
        unset="no requirement",
        minimum=2,
        needs="sensitive",
        examples=(2,),
        always=True,
    )
    diversity: Literal["distinct", "entropy", "recursive"] = option(
        "distinct",
        title="Kind of l-diversity",
        text="What `l` measures in an equivalence class.",
        choices={
            "distinct": "the number of different values",
            "entropy": "at least as diverse as l values of equal frequency; l may be a fraction",
            "recursive": "(c, l)-diversity: the most frequent value is not too frequent; needs c",
        },
        details="With `entropy` the entropy of the values in a class is at least log(l).",
        needs="l",
        form=_PRIVACY,
    )
    c: float | None = option(
        None,
        text="The c of recursive (c, l)-diversity: the most frequent value occurs less than c "
        "times as often as the l-th most frequent and all rarer values together. Only for "
        "`diversity: recursive`.",
        above=0,
        only_with={"diversity": ("recursive",)},
        examples=(3,),
        form=_PRIVACY,
    )
    missing_sensitive: Literal["no_value", "value"] = option(
        "no_value",
        title="Missing sensitive values",
        text="How `l` counts missing sensitive values, and empty or blank texts.",
        choices={"no_value": "they do not count", "value": "all of them count as one value"},
        see="[Protect sensitive values](#protect-sensitive-values)",
        form=_PRIVACY,
    )
    t: float | None = option(
        None,
        text="t-closeness: the maximum distance between the distributions of a sensitive column in "
        "an equivalence class and in the whole release.",
        unset="no requirement",
        above=0,
        maximum=1,
        needs="sensitive",
        examples=(0.3,),
        form=_PRIVACY,
    )
    t_distance: Literal["equal", "ordered", "hierarchical"] = option(
        "equal",
        title="Distance of t-closeness",
        text="How `t` measures the distance between two distributions.",
        choices={
            "equal": "any two values are equally far apart",
            "ordered": "by the ranks of the values",
            "hierarchical": "by how far apart the values are in a hierarchy; needs the "
            "hierarchy's file",
        },
        needs="t",
        form=_PRIVACY,
    )
    sensitive_hierarchy: Mapping[str, str] = option(
        {},
        title="Hierarchies of sensitive columns",
        text="The hierarchy file of each sensitive column, for `t_distance: hierarchical`.",
        noun="a column and its file",
        only_with={"t_distance": ("hierarchical",)},
        examples=({"diagnosis": "diagnoses.csv"},),
        form=_PRIVACY,
    )
    identifier_policy: Literal["drop", "redact"] = option(
        "drop",
        title="Treatment of direct identifiers",
        text="What happens to direct identifiers.",
        choices={
            "drop": "leave the columns out of the release",
            "redact": "keep the columns, with * in place of every value",
        },
        form=_PRIVACY,
    )
    unlisted: Literal["drop", "publish"] = option(
        "drop",
        title="Other columns",
        text="What happens to columns that the job does not name. The report lists them.",
        choices={
            "drop": "leave them out of the release",
            "publish": "publish them unchanged; nothing protects them",
        },
        see="[Unlisted columns](#leave-out-columns-that-the-job-does-not-name)",
        form=_PRIVACY,
        always=True,
    )
    dependencies: Literal["warn", "refuse"] = option(
        "warn",
        title="Columns that undo the work",
        text="What happens to a release with a column that is published as it is and gives away a "
        "quasi-identifier, or singles out rows.",
        choices={
            "warn": "a warning in the log and in the report",
            "refuse": "nothing is published",
        },
        see="[What is measured](privacy.md#find-columns-that-undo-the-work)",
        form=_PRIVACY,
    )
    replace: Literal["same", "any"] = option(
        "same",
        title="Replace an earlier release",
        text="Which earlier release at `output` may be replaced.",
        choices={
            "same": "one of the same DAG that promises no more than this one",
            "any": "any release",
        },
        see="[What promises less](#decide-what-may-replace-a-release)",
        form=_PRIVACY,
    )
    require_approval: bool = option(
        False,
        text="The verified release waits until a person approves or rejects it. A rejected release "
        "is discarded.",
        see="[Approval](operate.md#let-a-person-approve-releases)",
        form=_APPROVAL,
    )
    approval_hours: float = option(
        72,
        title="Hours to wait for approval",
        text="How long a release waits for an approval. Then it is discarded.",
        noun="hours",
        above=0,
        maximum=365 * 24,
        hint="a year is the maximum",
        form=_APPROVAL,
    )
    max_gcp: float | None = option(
        None,
        title="Maximum information loss (GCP)",
        text="The maximum information loss of the release, measured as GCP.",
        **_SHARE,
        unset="no limit",
        examples=(0.3,),
        form=_APPROVAL,
    )
    max_risk: float | None = option(
        None,
        title="Maximum risk",
        text="The maximum risk of re-identifying a person of the smallest equivalence class.",
        **_SHARE,
        unset="no limit",
        examples=(0.1,),
        form=_APPROVAL,
    )
    max_suppressed: float | None = option(
        None,
        title="Maximum suppressed rows",
        text="The maximum number of rows that may be missing from the release.",
        **_ROWS_OR_SHARE,
        unset="no limit",
        examples=(0.05,),
        form=_APPROVAL,
    )
    on_exceeded: Literal["refuse", "ask"] = option(
        "refuse",
        title="If a limit is exceeded",
        text="What happens to a release that exceeds one of the three limits: `max_gcp`, "
        "`max_risk`, `max_suppressed`.",
        choices={"refuse": "nothing is published", "ask": "the release waits for an approval"},
        form=_APPROVAL,
    )
    overlap: Literal["ignore", "warn", "refuse"] = option(
        "ignore",
        title="People released before",
        text="What happens to a release with people who are in an earlier release of the "
        "catalogue.",
        choices={
            "ignore": "nothing, and its own people are not recorded",
            "warn": "a warning in the log and in the report",
            "refuse": "nothing is published; the same if an overlap could not be seen",
        },
        see="[Who was released before](operate.md#find-people-who-were-released-before)",
        form=_PRIVACY,
    )
    population: str | None = option(
        None,
        text="The name of the people of this job and of others about the same people. Only "
        "releases of one population are compared.",
        unset="that of all jobs that name none",
        examples=("patients",),
        only_with={"overlap": ("warn", "refuse")},
        form=_PRIVACY,
    )
    algorithm: Literal["mondrian", "di_mondrian", "samarati", "tds"] = option(
        "mondrian",
        text="How equivalence classes are formed.",
        choices={
            "mondrian": "cuts the rows into classes and generalizes each class by itself; loses "
            "least",
            "di_mondrian": "the same, with cuts at several points at once",
            "samarati": "generalizes each column to one level of its hierarchy; may suppress rows",
            "tds": "generalizes each column to one cut through its hierarchy",
        },
        see="[Choose an algorithm](algorithms.md#choose-an-algorithm)",
        form=_ALGORITHM,
        always=True,
    )
    cut: Literal["auto", "median", "gain", "lookahead"] = option(
        "auto",
        text="How `mondrian` chooses a cut.",
        choices={
            "auto": "the best way that the time budget affords",
            "median": "at the median; fastest",
            "gain": "where the cut saves most information",
            "lookahead": "where this cut and the next ones save most; slowest",
        },
        see="[Choose a cut](algorithms.md#choose-a-cut)",
        only_with={"algorithm": ("mondrian",)},
        form=_ALGORITHM,
        always=True,
    )
    relaxed: bool = option(
        False,
        text="Rows with equal values may go to different classes, so that a class has between k "
        "and 2k − 1 rows.",
        only_with={"algorithm": ("mondrian",), "cut": ("median", "auto")},
        form=_ALGORITHM,
    )
    cut_budget_s: float = option(
        5.0,
        title="Time budget (s)",
        text="The time that `cut: auto` may take on one core, by its own estimate.",
        noun="seconds",
        above=0,
        form=_ALGORITHM,
    )
    interval_style: Literal["text", "bounds"] = option(
        "text",
        title="Style of intervals",
        text="How intervals are published.",
        choices={
            "text": "as text, such as [25, 30]",
            "bounds": "as two typed columns, such as age_min and age_max",
        },
        only_with={"algorithm": ("mondrian", "di_mondrian")},
        form=_ALGORITHM,
    )
    partitioning: Partitioning = option(
        Partitioning(),
        text="How the rows are divided into fragments.",
        flat=True,
        always=True,
    )
    retrieval: Literal["auto", "pushdown", "scatter"] = option(
        "auto",
        text="How a task gets the rows of its fragment.",
        choices={
            "auto": "by the size and layout of the input",
            "pushdown": "each task reads them from the input, with a filter",
            "scatter": "one pass over the input writes a private file per fragment",
        },
        details="With `spark.shape: application` Spark's shuffle brings the rows instead.",
        form=_PARTITIONING,
        always=True,
    )
    engine: Literal["local", "spark"] = option(
        "local",
        text="Where the work runs. The classes are the same.",
        choices={"local": "in the task, or the command, itself", "spark": "on a Spark cluster"},
        form=_SPARK,
        always=True,
    )
    spark: Spark = option(Spark(), text="How Spark is reached and used.")
    samarati: Samarati = option(Samarati(), text="Options of `algorithm: samarati`.")
    tds: Tds = option(Tds(), text="Options of `algorithm: tds`.")
    di_mondrian: DiMondrian = option(DiMondrian(), text="Options of `algorithm: di_mondrian`.")
    series: Series | None = option(
        None,
        text="The releases of one dataset, night after night, as a series.",
        unset="every release stands alone",
        see="[below](#series)",
        form=None,
    )
    base_dir: str | None = field(default=None, compare=False)

    @property
    def recodes_columns(self) -> bool:
        """Whether a value is generalized alike in all rows, not class by class."""
        return self.algorithm in ("samarati", "tds")

    def suppressible(self, rows: int) -> int:
        """How many of ``rows`` rows may be left out of the release."""
        return self.samarati.suppressible(rows) if self.algorithm == "samarati" else 0

    @property
    def may_ask(self) -> bool:
        """Whether its release may have to wait for a steward's approval."""
        return self.require_approval or self.on_exceeded == "ask"

    @property
    def compares_people(self) -> bool:
        """Whether its people are compared with those of earlier releases, and recorded."""
        return self.overlap != "ignore"

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
        _check_columns(self)
        _check_diversity(self)
        _check_closeness(self)
        _check_algorithm(self)
        _check_publication(self)
        if self.series is not None:
            _check_series(self, self.series)


def _check_columns(job: Job) -> None:
    """Refuse a column that is named twice."""
    roles = {
        "identifiers": job.identifiers,
        "quasi_identifiers": job.quasi_identifier_names,
        "sensitive": job.sensitive,
    }
    seen: dict[str, tuple[str, str]] = {}
    for role, names in roles.items():
        for at, name in enumerate(names):
            is_entity = role == "identifiers" and name == job.entity_id and at == len(names) - 1
            path = "entity_id" if is_entity else f"{role}[{at}]"
            earlier, earlier_role = seen.setdefault(name, (path, role))
            if earlier == path:
                continue
            if earlier_role == role:
                raise wrong(path, f"column {name!r} is listed twice; remove one")
            raise wrong(
                path,
                f"column {name!r} is listed already, at {earlier}; a column is either an "
                "identifier, a quasi-identifier or sensitive; remove it from one of the two",
            )


def _check_diversity(job: Job) -> None:
    if job.l is not None and job.diversity != "entropy" and job.l != int(job.l):
        raise wrong(
            "l",
            f"must be a whole number for {job.diversity} diversity, not {job.l}; or use entropy",
        )
    if job.c is None and job.diversity == "recursive":
        raise wrong("c", "is required by diversity: recursive; set it, such as c: 3")


def _check_closeness(job: Job) -> None:
    for name in job.sensitive_hierarchy:
        if name not in job.sensitive:
            hint = did_you_mean(name, job.sensitive) or (
                "; list it under sensitive, or remove it here"
            )
            raise wrong(f"sensitive_hierarchy.{name}", f"is not a sensitive column{hint}")
    for name in job.sensitive if job.t_distance == "hierarchical" else ():
        if not job.sensitive_hierarchy.get(name):
            raise wrong(
                f"sensitive_hierarchy.{name}",
                "is required by t_distance: hierarchical; name the hierarchy's file",
            )


def _check_algorithm(job: Job) -> None:
    for at, attribute in enumerate(job.quasi_identifiers if job.recodes_columns else ()):
        if attribute.grid is not None:
            raise wrong(
                f"quasi_identifiers[{at}]",
                f"a grid is not available with algorithm: {job.algorithm}; use a ladder",
            )
    if job.algorithm == "samarati" and job.samarati.max_suppressed and job.t is not None:
        raise wrong(
            "samarati.max_suppressed",
            "cannot be combined with t: t compares each class with the whole release, and "
            "suppressing rows changes that; set 0, or remove t",
        )
    least = job.tds.k_intermediate
    if least is not None and least < job.k:
        raise wrong(
            "tds.k_intermediate",
            f"must be a whole number of at least {job.k}, not {least}; the first phase may not be "
            "less strict than k",
        )


def _check_publication(job: Job) -> None:
    limits = ("max_gcp", "max_risk", "max_suppressed")
    if job.on_exceeded == "ask" and all(getattr(job, name) is None for name in limits):
        raise wrong(
            "on_exceeded",
            f"ask needs a limit; set {', '.join(limits)}, or require_approval: true to be asked "
            "about every release",
        )


def _check_series(job: Job, series: Series) -> None:
    """Refuse what a series cannot do with the rest of the job."""
    if job.recodes_columns:
        raise wrong(
            "series",
            f"is not available with algorithm: {job.algorithm}; use mondrian or di_mondrian",
        )
    if series.hold_nights and series.kind == "snapshots":
        raise wrong(
            "series.hold_nights",
            "applies only to kind: increments, because the next snapshot brings each row again; "
            "remove hold_nights",
        )
    if series.hold_above is not None and job.t is not None:
        raise wrong(
            "series.hold_above",
            "cannot be combined with t: t compares each class with the whole release, and rows "
            "that wait change that; remove one of the two",
        )
    if job.compares_people:
        _refuse_people_of_several_nights(job, series)
    if series.protect == "intersection":
        _check_intersection(job, series)


def _refuse_people_of_several_nights(job: Job, series: Series) -> None:
    """Refuse to compare people where they are in several nights of the series by design."""
    shared = {
        "hold_nights": series.hold_nights,
        "kind: snapshots": series.kind == "snapshots",
        "protect": series.protect,
    }
    if name := next((name for name, is_set in shared.items() if is_set), None):
        raise wrong(
            "overlap",
            f"{job.overlap} cannot be combined with series.{name}, by which a person is in several "
            "nights; remove one of the two",
        )


def _check_intersection(job: Job, series: Series) -> None:
    problem = (
        "entity_id, which tells persons apart; set it"
        if job.entity_id is None
        else "exactly one sensitive column; list one under sensitive"
        if len(job.sensitive) != 1
        else "l, the number of sensitive values that remain; set it, such as l: 2"
        if job.l is None
        else "diversity: distinct; change it"
        if job.diversity != "distinct"
        else "no t, which its classes do not follow; remove t"
        if job.t is not None
        else ""
    )
    if problem:
        raise wrong("series.protect", f"intersection needs {problem}")
    if series.unmatched == "wait" and series.kind == "increments" and not series.hold_nights:
        raise wrong(
            "series.unmatched",
            "wait needs hold_nights, or no row may wait; set it, or unmatched: suppress",
        )
