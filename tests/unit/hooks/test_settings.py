"""The section of Airflow's configuration that is this package's."""

from __future__ import annotations

import json
from urllib.parse import urlencode

import pytest

from mondrian_ops import stores
from mondrian_ops.catalogue import Place
from mondrian_ops.errors import JobError
from mondrian_ops.hooks import settings
from mondrian_ops.hooks.provider_info import get_provider_info
from mondrian_ops.job import limits
from task_contexts import read_job


def test_the_defaults_are_those_that_airflow_is_told(monkeypatch):
    options = get_provider_info()["config"]["mondrian_ops"]["options"]
    monkeypatch.delenv("AIRFLOW__MONDRIAN_OPS__DRIFT", raising=False)
    assert settings.drift() == float(options["drift"]["default"])
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__DRIFT", "0.5")
    assert settings.drift() == 0.5


def test_the_catalogue_and_its_key_are_by_default_in_the_home_of_airflow(monkeypatch, tmp_path):
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))
    for name in ("", "_KEY", "_CONN_ID", "_KEY_CONN_ID"):
        monkeypatch.delenv(f"AIRFLOW__MONDRIAN_OPS__CATALOGUE{name}", raising=False)
    folder = tmp_path / "mondrian_ops"
    assert settings.catalogue_place() == Place(
        str(folder / "catalogue.db"), str(folder / "catalogue.key")
    )
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__HOME", str(tmp_path / "home"))
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__CATALOGUE", "c.db")
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__CATALOGUE_KEY", "/srv/key")
    assert settings.catalogue_place() == Place(str(tmp_path / "home" / "c.db"), "/srv/key")


def test_connections_may_lead_to_the_catalogue_and_hold_its_key(monkeypatch):
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__CATALOGUE_CONN_ID", "c")
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__CATALOGUE_KEY_CONN_ID", "key")
    extra = {"options": "-c search_path=mondrian", "sslmode": "require", "cursor": "dict"}
    uri = "postgres://user:p%40ss@host:5433/db?" + urlencode(extra)
    monkeypatch.setenv("AIRFLOW_CONN_C", uri)
    monkeypatch.setenv("AIRFLOW_CONN_KEY", f"generic://:{'ab' * 32}@")
    place = settings.catalogue_place()
    assert (place.key, place.key_file) == ("ab" * 32, None)
    assert place.url == (
        "postgresql+psycopg2://user:p%40ss@host:5433/db"
        "?options=-c+search_path%3Dmondrian&sslmode=require"
    )
    monkeypatch.setenv("AIRFLOW_CONN_C", "mysql://host/db")
    with pytest.raises(JobError, match="'c' is of type 'mysql'; name one of type 'postgres'"):
        settings.catalogue_place()
    monkeypatch.delenv("AIRFLOW_CONN_C")
    with pytest.raises(JobError, match="catalogue_conn_id: there is no connection 'c'; make it"):
        settings.catalogue_place()


def test_paths_start_above_the_dags_folder_or_where_the_setting_says(monkeypatch, tmp_path):
    monkeypatch.delenv("AIRFLOW__MONDRIAN_OPS__HOME", raising=False)
    monkeypatch.setenv("AIRFLOW__CORE__DAGS_FOLDER", str(tmp_path / "dags"))
    assert settings.home() == str(tmp_path)
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__HOME", "/srv/data")
    assert settings.home() == "/srv/data"
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__HOME", "data")
    with pytest.raises(JobError, match="home: data is a relative path; give an absolute one"):
        settings.home()


def test_the_limits_and_the_jobs_of_a_task_have_one_base(monkeypatch, tmp_path):
    monkeypatch.setenv("AIRFLOW__CORE__DAGS_FOLDER", str(tmp_path / "dags"))
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__ALLOWED_INPUTS", "data")
    monkeypatch.chdir("/")
    job = {"input": "data/people", "output": "out/people", "k": 2, "quasi_identifiers": ["age"]}
    try:
        assert read_job(job).input == str(tmp_path / "data" / "people")
        with pytest.raises(JobError, match=f"input: {tmp_path}/other is not allowed"):
            read_job({**job, "input": "other"})
    finally:
        stores.use_policy(None)


def test_a_job_file_may_lie_where_dag_files_do(monkeypatch, tmp_path):
    job = {"input": "data/a", "output": "out/a", "k": 2, "quasi_identifiers": ["age"]}
    monkeypatch.setenv("AIRFLOW__CORE__DAGS_FOLDER", str(tmp_path / "dags"))
    monkeypatch.setenv("AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_STORAGE_PATH", str(tmp_path / "git"))
    try:
        for folder in ("dags/jobs", "git/ours/versions/4f2a"):
            file = tmp_path / folder / "job.yaml"
            file.parent.mkdir(parents=True)
            file.write_text(json.dumps(job))
            assert read_job(str(file)).input == str(tmp_path / "data" / "a")
            with pytest.raises(JobError, match=r"input: .* is not allowed"):
                read_job({**job, "input": str(file)})
    finally:
        stores.use_policy(None)


def test_the_limits_of_airflow_hold_in_the_process(monkeypatch):
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__LIMITS", "columns=5, text=1KiB")
    try:
        settings.use_settings()
        monkeypatch.delenv("AIRFLOW__MONDRIAN_OPS__LIMITS")
        assert (limits.limit("columns"), limits.limit("text")) == (5, 1024)
        settings.use_settings()
        assert limits.in_use() == {}
        monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__LIMITS", "colums=5")
        with pytest.raises(JobError, match=r"no limit 'colums' \(did you mean 'columns'"):
            settings.use_settings()
    finally:
        limits.use(None)
        stores.use_policy(None)
