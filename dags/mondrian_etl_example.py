"""The task group inside a small ETL: extract, anonymize, load.

Only released data leaves the group: `load` starts after `wrap_up` has published the release, and
the run fails if the release is refused. Copy `anonymize_group(...)` into your own DAG.
"""

from __future__ import annotations

from pathlib import Path

from airflow.sdk import DAG, Asset, task

from mondrian_ops.hooks.settings import home
from mondrian_ops.task_groups import anonymize_group

HOME = Path(home())
RAW = HOME / "data" / "etl_example" / "visits.parquet"
RELEASE = HOME / "out" / "etl_example" / "visits"
MART = HOME / "out" / "etl_example" / "diagnoses_by_region.csv"


@task
def extract() -> str:
    """Write the visits whose region is known to a Parquet file; return its path."""
    import pyarrow.compute as pc
    from pyarrow import csv, parquet

    text = csv.ConvertOptions(column_types={"zip": "string"}, strings_can_be_null=True)
    people = csv.read_csv(HOME / "include" / "examples" / "people.csv", convert_options=text)
    RAW.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(people.filter(pc.is_valid(people["zip"])), RAW)
    return str(RAW)


@task
def load() -> str:
    """Count the released diagnoses by region; return the path of the table."""
    from pyarrow import csv, dataset

    visits = dataset.dataset(RELEASE).to_table(columns=["zip", "diagnosis"])
    counts = visits.group_by(["zip", "diagnosis"]).aggregate([([], "count_all")])
    csv.write_csv(counts.sort_by([("count_all", "descending")]), MART)
    return str(MART)


with DAG(
    dag_id="mondrian_etl_example",
    dag_display_name="Mondrian: ETL example",
    description="Extract, anonymize, load",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    tags=["mondrian_ops", "privacy", "example"],
) as dag:
    anonymize = anonymize_group(
        {
            "input": extract(),
            "output": str(RELEASE),
            "k": 5,
            "l": 2,
            "identifiers": ["name"],
            "quasi_identifiers": [
                "age",
                "sex",
                "zip=prefix",
                "country=hierarchy:countries.csv",
            ],
            "sensitive": ["diagnosis"],
            "unlisted": "drop",
        },
        asset=Asset("mondrian_example_visits"),
    )
    anonymize >> load()
