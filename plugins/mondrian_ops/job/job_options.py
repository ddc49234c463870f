"""The options of a job.

An option is added here, in :mod:`mondrian_ops.job.sections`, in
:mod:`mondrian_ops.job.series_options`, in :mod:`mondrian_ops.job.source_options` or in
:mod:`mondrian_ops.job.quasi_identifier`, and nowhere else: :mod:`mondrian_ops.job.options` says
what is made of its description. DAG files import these modules, so they need the standard library
only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from mondrian_ops.job.criterion import Criterion, WithCriteria
from mondrian_ops.job.options import ROWS_OR_SHARE, SHARE, option
from mondrian_ops.job.quasi_identifier import QuasiIdentifier
from mondrian_ops.job.sections import (
    ALGORITHM,
    APPROVAL,
    PARTITIONING,
    PRIVACY,
    SPARK,
    DiMondrian,
    Mondrian,
    Partitioning,
    Samarati,
    Spark,
    Tds,
)
from mondrian_ops.job.series_options import Series
from mondrian_ops.job.source_options import READING, TYPES, Csv, Type
from mondrian_ops.late_methods import dataclass


@dataclass(frozen=True, slots=True)
class JobOptions(WithCriteria):
    """What a job says; :class:`mondrian_ops.job.job.Job` reads and checks it.

    ``input`` and ``output`` are None for a job on a table in memory. ``entity_id`` is one of the
    ``identifiers``. ``criteria``: those of installed packages that the job asks for, by the name of
    their section. ``base_dir`` is not part of the description: the directory of the job's file,
    where its hierarchies may lie.
    """

    input: str | None = option(
        text="The data: the path or URL of a file, a directory or a glob; Parquet or CSV. Or a "
        "table: `iceberg://CATALOG/NAMESPACE.TABLE`.",
        details="All files have the same columns and types.",
        see="[files](#which-files-are-read), [tables](#read-a-table), "
        "[URLs](deploy.md#name-files-on-hdfs-and-s3), [limits](security.md#raise-or-lower-a-limit)",
        examples=("data/people.parquet",),
    )
    output: str | None = option(
        text="The directory of the release, a path or a URL, or a table: "
        "`iceberg://CATALOG/NAMESPACE.TABLE`. The release appears there whole or not at all.",
        details="It does not exist yet, is empty, or holds an earlier release, which is replaced "
        "if `replace` allows it. It may not lie inside `input`, nor `input` inside it.",
        see="[tables](#publish-a-table)",
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
        form=PRIVACY,
    )
    c: float | None = option(
        None,
        text="The c of recursive (c, l)-diversity: the most frequent value occurs less than c "
        "times as often as the l-th most frequent and all rarer values together. Only for "
        "`diversity: recursive`.",
        above=0,
        only_with={"diversity": ("recursive",)},
        examples=(3,),
        form=PRIVACY,
    )
    l_width: Mapping[str, str] = option(
        {},
        title="Width of similar sensitive values",
        text="Sensitive numbers and dates, and the width within which their values count as "
        "similar: a share (`10 %`), a number (`500`) or a span of time (`30 days`, `12 hours`). At "
        "most 1/l of the rows, and of the persons, of an equivalence class have values within this "
        "width of one another.",
        see="[Protect numbers and dates](#protect-numbers-and-dates)",
        unset="values are similar only if they are equal; the report says how narrow classes are",
        noun="a column and a width",
        needs="l",
        examples=({"income": "10 %"},),
        form=PRIVACY,
    )
    missing_sensitive: Literal["no_value", "value"] = option(
        "no_value",
        title="Missing sensitive values",
        text="How `l` counts missing sensitive values, and empty or blank texts.",
        choices={"no_value": "they do not count", "value": "all of them count as one value"},
        see="[Protect sensitive values](#protect-sensitive-values)",
        form=PRIVACY,
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
        form=PRIVACY,
    )
    t_distance: Literal["equal", "ordered", "hierarchical"] = option(
        "equal",
        title="Distance of t-closeness",
        text="How `t` measures the distance between two distributions.",
        choices={
            "equal": "any two values are equally far apart",
            "ordered": "by the ranks of the values; the missing value stands before the least one",
            "hierarchical": "by how far apart the values are in a hierarchy; needs the "
            "hierarchy's file",
        },
        needs="t",
        form=PRIVACY,
    )
    sensitive_hierarchy: Mapping[str, str] = option(
        {},
        title="Hierarchies of sensitive columns",
        text="The hierarchy file of each sensitive column, for `t_distance: hierarchical`.",
        noun="a column and its file",
        only_with={"t_distance": ("hierarchical",)},
        examples=({"diagnosis": "diagnoses.csv"},),
        form=PRIVACY,
    )
    identifier_policy: Literal["drop", "redact"] = option(
        "drop",
        title="Treatment of direct identifiers",
        text="What happens to direct identifiers.",
        choices={
            "drop": "leave the columns out of the release",
            "redact": "keep the columns, with * in place of every value",
        },
        form=PRIVACY,
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
        form=PRIVACY,
        always=True,
    )
    schema: Literal["keep", "evolve"] | None = option(
        None,
        title="Columns that change",
        text="What happens to a drop whose columns differ from those of the last release of its "
        "dataset.",
        choices={
            "keep": "it is refused until a person accepts the change",
            "evolve": "it is released, and the report says what changed",
        },
        unset="`keep` for the nights of a `series` and for the drops of `mondrian_nightly`; other "
        "releases are not compared",
        see="[What counts as a change](operate.md#accept-a-change-of-the-columns)",
        form=None,
    )
    dependencies: Literal["warn", "refuse"] = option(
        "warn",
        title="Disclosing columns",
        text="What happens to a release with a column that is published as it is and gives away a "
        "quasi-identifier, singles out rows, or finds people in their classes, or with sets whose "
        "values fewer than k rows (persons) have.",
        choices={
            "warn": "a warning in the log and in the report",
            "refuse": "nothing is published",
        },
        see="[What is measured](privacy.md#find-disclosing-columns)",
        form=PRIVACY,
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
        form=PRIVACY,
    )
    require_approval: bool = option(
        False,
        text="The verified release waits until a person approves or rejects it. A rejected release "
        "is discarded.",
        see="[Approval](operate.md#let-a-person-approve-releases)",
        form=APPROVAL,
    )
    approval_hours: float = option(
        72,
        title="Hours to wait for approval",
        text="How long a release waits for an approval. Then it is discarded.",
        noun="hours",
        above=0,
        maximum=365 * 24,
        hint="a year is the maximum",
        form=APPROVAL,
    )
    max_gcp: float | None = option(
        None,
        title="Maximum information loss (GCP)",
        text="The maximum information loss of the release: of GCP and of GCP_robust, which extreme "
        "values do not make small.",
        see="[How loss is measured](algorithms.md#how-loss-is-measured)",
        **SHARE,
        unset="no limit",
        examples=(0.3,),
        form=APPROVAL,
    )
    max_risk: float | None = option(
        None,
        title="Maximum risk",
        text="The maximum risk of re-identifying a person of the smallest equivalence class.",
        **SHARE,
        unset="no limit",
        examples=(0.1,),
        form=APPROVAL,
    )
    sampling_fraction: float | None = option(
        None,
        text="The share of its population that the dataset holds; the report then estimates the "
        "risk for somebody who does not know who is in the data (k-map).",
        **{**SHARE, "minimum": None, "above": 0},
        unset="no estimate",
        examples=(0.01,),
    )
    max_query_error: float | None = option(
        None,
        title="Maximum error of counts",
        text="The maximum of the median relative error of random counts of the release's rows.",
        noun="a relative error",
        minimum=0,
        unset="no limit",
        see="[How it is measured](report.md#judge-the-use-of-a-release)",
        examples=(0.1,),
        form=APPROVAL,
    )
    target: str | None = option(
        None,
        title="Column to predict",
        text="A column that is published as it is. The report says how well a model predicts it "
        "that is trained on the release, beside one that is trained on the input.",
        unset="no model",
        see="[How it is measured](report.md#judge-the-use-of-a-release)",
        examples=("diagnosis",),
        form=APPROVAL,
    )
    max_suppressed: float | None = option(
        None,
        title="Maximum suppressed rows",
        text="The maximum number of rows that may be missing from the release.",
        **ROWS_OR_SHARE,
        unset="no limit",
        examples=(0.05,),
        form=APPROVAL,
    )
    on_exceeded: Literal["refuse", "ask"] = option(
        "refuse",
        title="If a limit is exceeded",
        text="What happens to a release that exceeds one of the limits: `max_gcp`, "
        "`max_risk`, `max_query_error`, `max_suppressed`.",
        choices={"refuse": "nothing is published", "ask": "the release waits for an approval"},
        form=APPROVAL,
    )
    overlap: Literal["ignore", "warn", "refuse"] = option(
        "ignore",
        title="People released before",
        text="What happens to a release with people who are in an earlier release of the "
        "catalogue.",
        choices={
            "ignore": "nothing, and its own people are not recorded",
            "warn": "a warning in the log and in the report",
            "refuse": "nothing is published, also if an earlier release is so much larger that an "
            "overlap could not be seen",
        },
        see="[Who was released before](operate.md#find-people-who-were-released-before)",
        form=PRIVACY,
    )
    population: str | None = option(
        None,
        text="The name of the people of this job and of others about the same people. Only "
        "releases of one population are compared.",
        unset="that of all jobs that name none",
        examples=("patients",),
        only_with={"overlap": ("warn", "refuse")},
        form=PRIVACY,
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
        form=ALGORITHM,
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
        form=ALGORITHM,
        always=True,
    )
    relaxed: bool = option(
        False,
        text="Rows with equal values may go to different classes, so that a class has between k "
        "and 2k − 1 rows.",
        only_with={"algorithm": ("mondrian",), "cut": ("median", "auto")},
        form=ALGORITHM,
    )
    cut_budget_s: float = option(
        5.0,
        title="Time budget (s)",
        text="The time that `cut: auto` may take on one core, by its own estimate.",
        noun="seconds",
        above=0,
        form=ALGORITHM,
    )
    interval_style: Literal["text", "bounds"] = option(
        "text",
        title="Style of intervals",
        text="How intervals are published.",
        choices={
            "text": "as text, such as [25, 30]",
            "bounds": "as typed columns, such as age_min, age_max, and age_hidden: not shown",
        },
        only_with={"algorithm": ("mondrian", "di_mondrian")},
        form=ALGORITHM,
    )
    set_style: Literal["text", "list"] = option(
        "text",
        title="Style of sets",
        text="How sets of values are published.",
        choices={
            "text": "as text, such as {France, Italy}",
            "list": "as lists of texts; a hidden value is an empty list",
        },
        only_with={"algorithm": ("mondrian", "di_mondrian")},
        form=ALGORITHM,
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
        form=PARTITIONING,
        always=True,
    )
    engine: Literal["local", "spark"] = option(
        "local",
        text="Where the work runs. The classes are the same.",
        choices={"local": "in the task, or the command, itself", "spark": "on a Spark cluster"},
        form=SPARK,
        always=True,
    )
    spark: Spark = option(Spark(), text="How Spark is reached and used.")
    types: Mapping[str, Type] = option(
        {},
        title="Types of columns",
        text="The types of columns, where a file does not say them or says them wrong.",
        choices=TYPES,
        details="A value that has no exact counterpart in the type is refused.",
        see="[Say what the columns are](#say-what-the-columns-are)",
        unset="those of Parquet files; found in CSV files",
        noun="a column and its type",
        examples=({"zip": "text", "visit_date": "date", "amount": "decimal"},),
        form=READING,
    )
    csv: Csv = option(Csv(), text="How CSV files are read, and which texts are missing values.")
    mondrian: Mondrian = option(Mondrian(), text="Options of `algorithm: mondrian`.")
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
    criteria: Mapping[str, Criterion] = field(default_factory=dict, hash=False)
    base_dir: str | None = field(default=None, compare=False)

    @property
    def compares_with_whole(self) -> bool:
        """Whether a class is compared with the values of all rows, not looked at by itself."""
        return self.t is not None or bool(self.criteria)

    @property
    def needs_all_rows(self) -> str:
        """An option that compares classes with all rows, so that none may be left out; or empty."""
        if self.t is not None:
            return "t"
        return next((name for name, each in self.criteria.items() if each.needs_all_rows), "")

    @property
    def recodes_globally(self) -> bool:
        """Whether a value is generalized alike in all rows, not class by class."""
        return self.algorithm in ("samarati", "tds")

    @property
    def follows_persons(self) -> bool:
        """Whether persons are followed through the nights of a series, to protect them."""
        return self.series is not None and self.series.protect == "intersection"

    @property
    def is_balanced(self) -> bool:
        """Whether no class of a night may be subtracted from those of others."""
        return (
            self.follows_persons
            and self.series is not None
            and (self.series.subtraction == "protect")
        )

    @property
    def has_counterfeits(self) -> bool:
        """Whether rows may be made up, so that classes have the values that they lack."""
        return self.series is not None and self.series.unmatched == "counterfeit"

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
