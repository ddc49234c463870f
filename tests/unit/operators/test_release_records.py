"""What the operators record for the pages: an entry for each release, whatever became of it."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from airflow.sdk.exceptions import AirflowFailException

from handed_over import summary
from mondrian_ops import pipeline
from mondrian_ops.errors import PrivacyError
from mondrian_ops.operators import PartitionOperator, WrapUpOperator
from mondrian_ops.operators.release_records import (
    record,
    record_frontier,
    release_id,
    release_url,
)
from report_samples import make
from task_contexts import begun_work, read_job

FIGURES = {
    "achieved_k": 5,
    "achieved_l": 2,
    "achieved_t": None,
    "rows_input": 110,
    "rows_published": 110,
    "rows_suppressed": 0,
    "equivalence_classes": 22,
    "DP": 550,
    "risk": 0.2,
    "risk_avg": 0.2,
    "duration_s": 131.123,
}


def test_a_release_is_kept_with_its_figures_and_its_report(context, job, kept):
    report = make()
    record(context, read_job(job), report)
    (entry,) = kept()
    assert entry["id"] == release_id("a_dag", "manual__1", "", -1)
    assert entry["dataset"] == job["output"]
    assert (entry["state"], entry["reason"], entry["k"]) == ("published", None, 2)
    assert entry.items() >= FIGURES.items()
    assert entry["GCP"] == pytest.approx(0.2)
    assert json.loads(entry["documents"]["_report.json"]) == report


def test_of_several_sensitive_columns_the_weakest_counts(context, job, kept):
    achieved = {"k": 5, "l": {"income": 3, "diagnosis": 2}, "t": {"income": 0.1, "diagnosis": 0.3}}
    record(context, read_job(job), make(achieved=achieved))
    assert (kept()[0]["achieved_l"], kept()[0]["achieved_t"]) == (2, 0.3)


def test_each_group_run_and_map_index_is_a_release_of_its_own(context, job, kept):
    ids = set()
    for task_id, map_index in [("a.wrap_up", -1), ("b.wrap_up", -1), ("wrap_up", 0), ("x", None)]:
        context["ti"] = SimpleNamespace(task_id=task_id, map_index=map_index)
        record(context, read_job(job), make(state="waiting"))
        record(context, read_job(job), make(state="published"))
        ids.add(kept()[0]["id"])
    assert len(ids) == len(kept()) == 4
    assert {entry["state"] for entry in kept()} == {"published"}


def test_a_connection_in_a_url_is_not_kept(context, job, kept):
    changed = {**job, "input": "s3://secret_conn@bucket/in", "output": "s3://secret_conn@bucket/o"}
    record(context, read_job(changed), make(state="published"))
    assert "secret_conn" not in repr(kept())
    assert kept()[0]["dataset"] == "s3://bucket/o"


@pytest.mark.parametrize("phase", ["partition", "wrap_up"])
def test_partition_and_wrap_up_keep_their_refusals_as_one_release(
    monkeypatch, context, job, kept, phase
):
    refuse = Mock(side_effect=PrivacyError("refused"))
    monkeypatch.setattr(pipeline, "published_once", lambda _job, _work, make: make())
    monkeypatch.setattr(pipeline, {"wrap_up": "check"}.get(phase, phase), refuse)
    work = begun_work(context, job).root
    context["ti"].task_id = f"g.{phase}"
    operators = {
        "partition": PartitionOperator(task_id="g.partition", job=job),
        "wrap_up": WrapUpOperator(task_id="g.wrap_up", job=job, summaries=[summary(0, work)]),
    }
    with pytest.raises(AirflowFailException, match="refused"):
        operators[phase].execute(context)
    (entry,) = kept()
    assert entry["id"] == release_id("a_dag", "manual__1", "g", -1)
    assert entry["task_id"] == f"g.{phase}"


def test_what_a_cleared_run_has_published_stays(context, job, kept):
    """It still stands at the output, whatever becomes of the run's next release."""
    published, job = make(), read_job(job)
    record(context, job, published)
    (before,) = kept()
    for state in ("waiting", "refused"):
        record(context, job, make(fragments=3, state=state))
    refused, stands = kept()
    assert (refused["id"], refused["state"]) == (before["id"], "refused")
    assert {**stands, "id": before["id"]} == before
    assert json.loads(stands["documents"]["_report.json"]) == published
    record(context, job, published)
    assert [each["state"] for each in kept()] == ["published", "published"]


def test_a_release_that_changes_its_state_is_one_entry(context, job, kept):
    for state in ("waiting", "rejected", "waiting", "published", "published"):
        record(context, read_job(job), make(state=state))
    assert [each["state"] for each in kept()] == ["published"]


def test_the_page_of_a_report_is_not_drawn_for_its_figures(context, job, kept, monkeypatch):
    monkeypatch.setattr(
        "mondrian_ops.report.page.render_html", lambda _report: pytest.fail("was drawn")
    )
    record(context, read_job(job), make())
    assert kept()[0]["documents"].keys() == {"_report.json"}


def test_a_catalogue_that_cannot_be_written_is_a_warning(
    monkeypatch, context, job, tmp_path, caplog
):
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "below"
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__CATALOGUE", str(path))
    with caplog.at_level(logging.WARNING):
        record(context, read_job(job), make())
        record(context, read_job(job), {"metrics": "an unforeseen report"})
    assert caplog.text.count("was not written") == 2


def test_a_frontier_is_kept(context, job, kept):
    record_frontier(context, read_job(job), {"points": [{"k": 5, "GCP": 0.1}]})
    (entry,) = kept()
    assert entry["state"] == "frontier"
    frontier = json.loads(entry["documents"]["frontier.json"])
    assert frontier["points"] == [{"k": 5, "GCP": 0.1}]


def test_another_try_in_another_process_finds_the_release_by_its_run(
    context, job, kept, airflow_process
):
    """A retry, a cleared task, two tries at once, and whoever links to the release."""
    command = (
        "from mondrian_ops.operators.release_records import release_id as i;"
        "print(i('a_dag', 'manual__1', 'g', 0))"
    )
    context["ti"] = SimpleNamespace(task_id="g.wrap_up", map_index=0)
    record(context, read_job(job), make(state="waiting"))
    computed = airflow_process.run(command)[-1]
    record(context, read_job(job), make(state="published"))
    (entry,) = kept()
    assert entry["id"] == computed == release_url(context).rpartition("/")[2]


def test_a_release_whose_catalogue_cannot_be_read_has_no_link(
    context, tmp_path, monkeypatch, caplog
):
    (tmp_path / "key").write_bytes(b"no key")
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__CATALOGUE_KEY", str(tmp_path / "key"))
    with caplog.at_level(logging.WARNING):
        assert release_url(context) == ""
    assert "has no link" in caplog.text


@pytest.fixture
def no_work(monkeypatch):
    monkeypatch.setattr(pipeline, "partition", lambda *_a, **_k: pytest.fail("worked"))


@pytest.fixture
def unusable(monkeypatch, tmp_path):
    """The catalogue's folder is a file."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__CATALOGUE", str(tmp_path / "file" / "c.db"))


def test_a_catalogue_that_cannot_be_reached_is_an_error_before_the_work_and_may_be_retried(
    context, job, no_work, unusable
):
    with pytest.raises(OSError, match=r"file"):
        PartitionOperator(task_id="t", job=job).execute(context)


def test_a_catalogue_that_is_named_wrongly_is_an_error_before_the_work(
    context, job, no_work, monkeypatch
):
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__CATALOGUE_CONN_ID", "nowhere")
    with pytest.raises(AirflowFailException, match=r"catalogue_conn_id: there is no connection"):
        PartitionOperator(task_id="t", job=job).execute(context)


def test_a_deployment_may_let_runs_publish_without_it(context, job, unusable, monkeypatch, caplog):
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__WITHOUT_CATALOGUE", "publish")
    Path(job["input"]).write_text("age\n1\n2\n3\n4\n")
    with caplog.at_level(logging.WARNING):
        assert PartitionOperator(task_id="t", job=job).execute(context)
    assert "the catalogue cannot be used, so the pages will not show this run" in caplog.text


def test_the_setting_has_two_words(context, job, no_work, unusable, monkeypatch):
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__WITHOUT_CATALOGUE", "warn")
    with pytest.raises(AirflowFailException, match=r"without_catalogue: is 'warn'; give"):
        PartitionOperator(task_id="t", job=job).execute(context)
