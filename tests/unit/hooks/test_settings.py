"""The section of Airflow's configuration that is this package's."""

from __future__ import annotations

import json
from importlib.resources import files

import jsonschema
import pytest

from mondrian_ops import storage
from mondrian_ops.core import resource_limits
from mondrian_ops.core.errors import JobError
from mondrian_ops.hooks import settings
from mondrian_ops.hooks.filesystems import get_provider_info


def test_what_airflow_is_told_of_this_package_is_what_it_expects():
    schema = json.loads((files("airflow") / "provider_info.schema.json").read_text())
    jsonschema.validate(get_provider_info(), schema)


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
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__REPORTS", "s3://bucket/reports")
    assert settings.reports() == "s3://bucket/reports"


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
