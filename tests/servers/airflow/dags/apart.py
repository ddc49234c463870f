"""A DAG for each job in a folder; Airflow parses only files that name it and a DAG."""

from __future__ import annotations

from mondrian_ops.nightly_dags import anonymize_folder

anonymize_folder("include/apart", landing="landing_apart", releases="out/apart", settle_minutes=0)
