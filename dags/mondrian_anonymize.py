"""Anonymize a dataset on demand. The trigger form describes the job.

Each field is an option of the job, which ``docs/job.md`` explains. The defaults anonymize the
example dataset that comes with this project.
"""

from __future__ import annotations

from airflow.sdk import DAG, AssetAlias

from mondrian_ops.forms import job_answers, job_form
from mondrian_ops.task_groups import anonymize_tasks

FORM = job_form(
    input="include/examples/people.csv",
    output="out/people",
    k=5,
    identifiers=["name"],
    quasi_identifiers=[
        "age",
        "sex",
        "zip=prefix",
        "country=hierarchy:countries.csv",
        "occupation=hierarchy:occupations.csv",
        "visit_date",
    ],
    sensitive=["diagnosis", "income"],
    l=2,
)

with DAG(
    dag_id="mondrian_anonymize",
    dag_display_name="Mondrian: anonymize",
    description="Turn a dataset into a k-anonymous, l-diverse release",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    params=FORM,
    tags=["mondrian_ops", "privacy"],
) as dag:
    anonymize_tasks(job_answers(dag, FORM), asset=AssetAlias("mondrian_release"))
