"""The way from a task to the page of its release."""

from __future__ import annotations

import logging
import subprocess
import sys
from types import SimpleNamespace

from mondrian_ops.operators import WrapUpOperator
from mondrian_ops.operators.base import read_job
from mondrian_ops.operators.links import release_url
from mondrian_ops.operators.report_archiving import record


def test_another_try_in_another_process_finds_the_release_by_its_run(context, job, kept):
    """A retry, a cleared task, two tries at once, and whoever links to the release."""
    command = (
        "from mondrian_ops.operators.report_archiving import release_id as i;"
        "print(i('a_dag', 'manual__1', 'g', 0))"
    )
    context["ti"] = SimpleNamespace(task_id="g.wrap_up", map_index=0)
    record(context, read_job(job), "waiting")
    again = [sys.executable, "-c", command]
    told = subprocess.run(again, capture_output=True, check=True, text=True).stdout.split()[-1]
    record(context, read_job(job), "published")
    (entry,) = kept()
    assert entry["id"] == told == release_url(context).rpartition("/")[2]


def test_a_release_whose_archive_cannot_be_read_has_no_link(context, tmp_path, monkeypatch, caplog):
    (tmp_path / "key").write_bytes(b"no key")
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__REPORTS", str(tmp_path))
    with caplog.at_level(logging.WARNING):
        assert release_url(context) == ""
    assert "has no link" in caplog.text


def test_a_task_that_has_made_nothing_links_to_nothing(job):
    (link,) = WrapUpOperator.operator_extra_links
    wrap_up = WrapUpOperator(task_id="t", job=job, summaries=[])
    assert link.get_link(wrap_up, ti_key=None) == ""
    wrap_up.release_url = "http://airflow/release"
    assert link.get_link(wrap_up, ti_key=None) == "http://airflow/release"
