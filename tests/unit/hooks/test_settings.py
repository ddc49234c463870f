"""The section of Airflow's configuration that is this package's."""

from __future__ import annotations

import json

import pytest

from mondrian_ops import storage
from mondrian_ops.core import resource_limits
from mondrian_ops.core.errors import JobError
from mondrian_ops.hooks import settings
from mondrian_ops.hooks.provider_info import get_provider_info
from mondrian_ops.operators import base


def test_the_defaults_are_those_that_airflow_is_told(monkeypatch):
    options = get_provider_info()["config"]["mondrian_ops"]["options"]
    monkeypatch.delenv("AIRFLOW__MONDRIAN_OPS__DRIFT", raising=False)
    assert settings.drift() == float(options["drift"]["default"])
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__DRIFT", "0.5")
    assert settings.drift() == 0.5


def test_the_archive_is_by_default_in_the_home_of_airflow(monkeypatch, tmp_path):
    monkeypatch.delenv("AIRFLOW__MONDRIAN_OPS__REPORTS", raising=False)
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))
    assert settings.reports() == str(tmp_path / "mondrian_ops" / "reports")
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__HOME", str(tmp_path / "home"))
    for given, kept in {
        "s3://bucket/reports": "s3://bucket/reports",
        "reports": str(tmp_path / "home" / "reports"),
        "/srv/reports": "/srv/reports",
    }.items():
        monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__REPORTS", given)
        assert settings.reports() == kept


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
        assert base.read_job(job).input == str(tmp_path / "data" / "people")
        with pytest.raises(JobError, match=f"input: {tmp_path}/other is not allowed"):
            base.read_job({**job, "input": "other"})
    finally:
        storage.use_policy(None)


def test_a_job_file_may_lie_where_dag_files_do(monkeypatch, tmp_path):
    job = {"input": "data/a", "output": "out/a", "k": 2, "quasi_identifiers": ["age"]}
    monkeypatch.setenv("AIRFLOW__CORE__DAGS_FOLDER", str(tmp_path / "dags"))
    monkeypatch.setenv("AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_STORAGE_PATH", str(tmp_path / "git"))
    try:
        for folder in ("dags/jobs", "git/ours/versions/4f2a"):
            file = tmp_path / folder / "job.yaml"
            file.parent.mkdir(parents=True)
            file.write_text(json.dumps(job))
            assert base.read_job(str(file)).input == str(tmp_path / "data" / "a")
            with pytest.raises(JobError, match=r"input: .* is not allowed"):
                base.read_job({**job, "input": str(file)})
    finally:
        storage.use_policy(None)


def test_the_limits_of_airflow_hold_in_the_process(monkeypatch):
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__LIMITS", "columns=5, text=1KiB")
    try:
        settings.use_settings()
        monkeypatch.delenv("AIRFLOW__MONDRIAN_OPS__LIMITS")
        assert (resource_limits.limit("columns"), resource_limits.limit("text")) == (5, 1024)
        settings.use_settings()
        assert resource_limits.in_use() == {}
        monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__LIMITS", "colums=5")
        with pytest.raises(JobError, match=r"no limit 'colums' \(did you mean 'columns'"):
            settings.use_settings()
    finally:
        resource_limits.use(None)
        storage.use_policy(None)
