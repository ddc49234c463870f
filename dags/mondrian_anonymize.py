"""Anonymize a data set on demand: the trigger form is the job.

Every parameter is a key of the job (``docs/job.md``); those of its ``partitioning`` section stand
beside the others, those of other sections under names that begin so. The defaults anonymize the
example that comes with this project.
"""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from airflow.sdk import DAG, AssetAlias, Param

from mondrian_ops.core import job as options
from mondrian_ops.forms import Answer, choice, columns, text
from mondrian_ops.task_groups import anonymize_tasks

HOME = Path(__file__).resolve().parents[1]

# Sections of the form, closed at first; what has none is open.
PRIVACY = "More on privacy"
APPROVAL = "Approval and limits"
ALGORITHM = "Algorithm"
PARTITIONING = "Partitioning"
SPARK = "Spark"


FORM = {
    "input": text(
        str(HOME / "include" / "examples" / "people.csv"),
        title="Input",
        description="Path or URL of the data: a file, a directory or a glob; Parquet or CSV.",
    ),
    "output": text(
        str(HOME / "out" / "people"),
        title="Output",
        description="Directory of the release. It appears whole or not at all; an earlier "
        "release of this DAG that promises no more is replaced, anything else is left alone and "
        "refused.",
    ),
    "identifiers": columns(
        ["name"],
        title="Direct identifiers",
        description="Columns that name a person. One column a line.",
    ),
    "quasi_identifiers": columns(
        [
            "age",
            "sex",
            "zip=prefix",
            "country=hierarchy:countries.csv",
            "occupation=hierarchy:occupations.csv",
            "visit_date",
        ],
        title="Quasi-identifiers",
        description="Columns that others know too, one a line: `age` (interval for numbers and "
        "dates, set for text), `zip=prefix`, `country=hierarchy:countries.csv`, `job=set`, "
        "`age=ladder:5/10/20@16`, `age=grid:5`, `visit_date=grid:7`.",
        minItems=1,
    ),
    "sensitive": columns(
        ["diagnosis", "income"],
        title="Sensitive columns",
        description="Columns nobody shall learn of a person, published as they are.",
    ),
    "k": Param(
        5,
        type="integer",
        minimum=2,
        title="k",
        description="k-anonymity: the least rows that share a combination of quasi-identifiers.",
    ),
    "entity_id": Param(
        None,
        type=["null", "string"],
        title="Column that tells persons apart",
        description="Where a person may have several rows: k then counts persons, not rows. The "
        "column itself is left out of the release. Empty: every row is a person of its own.",
    ),
    "l": Param(
        2,
        type=["null", "number"],
        minimum=2,
        title="l",
        description="l-diversity: the least well-represented values of each sensitive column "
        "among rows that share a combination. Empty: not asked for.",
    ),
    "identifier_policy": choice(
        options.IdentifierPolicy,
        section=PRIVACY,
        title="Direct identifiers are",
        description="drop: left out of the release. redact: kept, every value as *.",
    ),
    "unlisted": choice(
        options.Unlisted,
        section=PRIVACY,
        title="Other columns are",
        description="drop: left out, and named in the report. publish: kept as they are, which "
        "nothing protects; the report begins with them.",
    ),
    "replace": choice(
        options.Replace,
        section=PRIVACY,
        title="May replace",
        description="same: an earlier release of this DAG that promises no more. any: any release.",
    ),
    "diversity": choice(
        options.Diversity,
        section=PRIVACY,
        title="Kind of l-diversity",
        description="distinct: l different values. entropy: as diverse as l even values. "
        "recursive: the most frequent value is rarer than c times the rest from the l-th on.",
    ),
    "c": Param(
        None,
        type=["null", "number"],
        exclusiveMinimum=0,
        section=PRIVACY,
        title="c",
        description="Of recursive (c, l)-diversity; empty for the others.",
    ),
    "missing_sensitive": choice(
        options.MissingSensitive,
        section=PRIVACY,
        title="A missing sensitive value is",
        description="no_value: it does not count towards l, nor does an empty or blank text. "
        "value: all of them count as one value.",
    ),
    "t": Param(
        None,
        type=["null", "number"],
        exclusiveMinimum=0,
        maximum=1,
        section=PRIVACY,
        title="t",
        description="t-closeness: how far the sensitive values of a combination may be "
        "distributed from those of all rows. Empty: not asked for.",
    ),
    "t_distance": Param(
        "equal",
        type="string",
        enum=["equal", "ordered"],  # the hierarchical one names a file per column: not in a form
        section=PRIVACY,
        title="Distance of t-closeness",
        description="equal: any two values are equally far. ordered: by rank, for numbers.",
    ),
    "require_approval": Param(
        False,
        type="boolean",
        section=APPROVAL,
        title="Require approval",
        description="The verified release waits under Required Actions until somebody approves or "
        "rejects it; a rejected one is discarded.",
    ),
    "approval_hours": Param(
        72,
        type="number",
        exclusiveMinimum=0,
        maximum=options.MOST_APPROVAL_HOURS,
        section=APPROVAL,
        title="Hours to wait for it",
        description="A release that nobody has approved by then is discarded.",
    ),
    "max_gcp": Param(
        None,
        type=["null", "number"],
        minimum=0,
        maximum=1,
        section=APPROVAL,
        title="Most information lost (GCP)",
        description="A share: 0.3 is 30 %. Empty: no limit.",
    ),
    "max_risk": Param(
        None,
        type=["null", "number"],
        minimum=0,
        maximum=1,
        section=APPROVAL,
        title="Highest risk",
        description="Of re-identifying a person of the smallest class: 0.1 is 10 %. Empty: no "
        "limit but that of k.",
    ),
    "max_suppressed": Param(
        None,
        type=["null", "number"],
        minimum=0,
        section=APPROVAL,
        title="Most rows suppressed",
        description="In the release: a number of rows or, below 1, a share of them. Empty: no "
        "limit.",
    ),
    "on_exceeded": choice(
        options.OnExceeded,
        section=APPROVAL,
        title="Beyond a limit",
        description="refuse: nothing is published. ask: the release waits for an approval.",
    ),
    "algorithm": choice(
        options.ALGORITHMS,
        section=ALGORITHM,
        title="Algorithm",
        description="How equivalence classes are found. mondrian: least loss, class by class. "
        "di_mondrian: cuts at several points at once. samarati: one level of generalization per "
        "column. tds: one cut through each column's tree.",
    ),
    "cut": choice(
        options.Cut,
        section=ALGORITHM,
        title="Cut",
        description="median: classic. gain: the cut that saves most information. lookahead: "
        "saves yet more, slower. auto: the best that the time budget allows.",
        values_display={
            "auto": "auto: best within the time budget",
            "median": "median: fastest",
            "gain": "gain: less loss",
            "lookahead": "lookahead: least loss",
        },
    ),
    "cut_budget_s": Param(
        5,
        type="number",
        exclusiveMinimum=0,
        section=ALGORITHM,
        title="Time budget (s)",
        description="Seconds of one core that `cut: auto` may plan for.",
    ),
    "relaxed": Param(
        False,
        type="boolean",
        section=ALGORITHM,
        title="Relaxed",
        description="Rows of equal value may fall into different classes: smaller classes.",
    ),
    "di_mondrian_cut_points": Param(
        options.DiMondrian().cut_points,
        type="integer",
        minimum=1,
        maximum=options.MOST_CUT_POINTS,
        section=ALGORITHM,
        title="Cut points",
        description="Of di_mondrian: the points that an attribute is cut at, at most, in one step.",
    ),
    "interval_style": choice(
        options.IntervalStyle,
        section=ALGORITHM,
        title="Intervals are published as",
        description="text: `[25, 30]`. bounds: two columns, `age_min` and `age_max`.",
    ),
    "samarati_max_suppressed": Param(
        0,
        type="number",
        minimum=0,
        section=ALGORITHM,
        title="Samarati: rows that may be suppressed",
        description="A number of rows or, below 1, a share of them.",
    ),
    "samarati_choice": Param(
        options.Samarati().choice,
        type="string",
        enum=list(get_args(options.LatticeChoice)),
        section=ALGORITHM,
        title="Samarati: choice",
        description="first: the first node found at the least height. minimal: the one of least "
        "loss at that height. optimal: the one of least loss of all.",
    ),
    "tds_partitions": Param(
        options.Tds().partitions,
        type="integer",
        minimum=1,
        section=ALGORITHM,
        title="TDS: partitions",
        description="Random parts of the rows that the first phase works on side by side.",
    ),
    "tds_k_intermediate": Param(
        None,
        type=["null", "integer"],
        minimum=2,
        section=ALGORITHM,
        title="TDS: k of the first phase",
        description="At least k. Empty: a fifth of the rows of a part.",
    ),
    "engine": choice(
        options.ENGINES,
        section=ALGORITHM,
        title="Engine",
        description="local: in the tasks themselves. spark: on a Spark cluster; see that section.",
    ),
    "strategy": choice(
        options.Strategy,
        section=PARTITIONING,
        title="Strategy",
        description="multidimensional: cut as Mondrian cuts. quantile: one attribute, equal parts.",
    ),
    "fragments": Param(
        None,
        type=["null", "integer"],
        minimum=1,
        section=PARTITIONING,
        title="Fragments",
        description="Mapped tasks. Empty: as many as have work for a task and can run at once. "
        "What could not stand alone is merged.",
    ),
    "max_rows": Param(
        options.Partitioning().max_rows,
        type="integer",
        minimum=1,
        section=PARTITIONING,
        title="Rows of a fragment, at most",
        description="Larger fragments are cut further, whatever number was asked for, so that "
        "each fits into a worker's memory: ten million rows of ten columns take about 1.5 GB.",
    ),
    "sample": Param(
        0.001,
        type="number",
        exclusiveMinimum=0,
        maximum=1,
        section=PARTITIONING,
        title="Sample",
        description="Share of the rows that the fragments' conditions are drawn from.",
    ),
    "seed": Param(
        0,
        type="integer",
        minimum=0,
        section=PARTITIONING,
        title="Seed",
        description="Of the sample. The same data, job and seed give the same classes.",
    ),
    "retrieval": choice(
        options.Retrieval,
        section=PARTITIONING,
        title="Retrieval",
        description="pushdown: each task reads its rows from the input. scatter: one pass "
        "writes them to private files. auto: by size and layout.",
    ),
    "spark_connection": text(
        "spark_connect_default",
        section=SPARK,
        title="Connection",
        description="Id of the Airflow connection: of the type Spark Connect (a server that is "
        "there already) or Spark (an application for each task, by spark-submit).",
    ),
    "spark_shape": choice(
        options.SparkShape,
        section=SPARK,
        title="Shape",
        description="fragments: a mapped task for each fragment. application: one task, and in it "
        "one Spark application that anonymizes them all; for the largest data.",
    ),
    "spark_conf": columns(
        [],
        section=SPARK,
        title="Properties",
        description="Spark properties, one a line: `spark.sql.shuffle.partitions=64`.",
    ),
}
# What each section of the job has in the form, and how the names begin there.
SECTIONS = {
    "partitioning": ("", ("strategy", "fragments", "max_rows", "sample", "seed")),
    "di_mondrian": ("di_mondrian_", ("cut_points",)),
    "samarati": ("samarati_", ("max_suppressed", "choice")),
    "tds": ("tds_", ("partitions", "k_intermediate")),
    "spark": ("spark_", ("connection", "shape", "conf")),
}
IN_SECTIONS = {prefix + name for prefix, names in SECTIONS.values() for name in names}

with DAG(
    dag_id="mondrian_anonymize",
    dag_display_name="Mondrian: anonymize",
    description="Turn a data set into a k-anonymous, l-diverse release",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    params=FORM,
    tags=["mondrian_ops", "privacy"],
) as dag:
    anonymize_tasks(
        {
            **{name: Answer(dag, name) for name in FORM if name not in IN_SECTIONS},
            **{
                section: {name: Answer(dag, prefix + name) for name in names}
                for section, (prefix, names) in SECTIONS.items()
            },
        },
        asset=AssetAlias("mondrian_release"),
    )
