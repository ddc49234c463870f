"""The wrap-up task: its own fragments, its summary, what it tells Airflow."""

from __future__ import annotations

from pathlib import Path

import pytest
from airflow.sdk import Asset, AssetAlias
from airflow.sdk.exceptions import AirflowFailException

from handed_over import fragment, summary
from mondrian_ops import pipeline
from mondrian_ops.engines.handover import Summary
from mondrian_ops.operators import AnonymizeFragmentOperator, WrapUpOperator, approval
from task_contexts import begun_work

REPORT = {
    "outcome": {"state": "published", "reason": "", "at": "2025-06-01T10:00:00+00:00"},
    "rows": {"input": 5, "published": 5, "suppressed": 0},
    "achieved": {"k": 5},
    "equivalence_classes": 1,
    "metrics": {"GCP": 0.5, "NCP": 2.5, "LM": 0.5, "DP": 25},
    "risk": {"prosecutor_max": 0.2, "prosecutor_avg": 0.2},
    "class_sizes": [[5, 1]],
    "timings_s": {"partition": 0.1},
    "job": {"k": 2, "algorithm": "mondrian"},
}


class Events(dict):
    """Outlet events as Airflow hands them out: one accessor per outlet."""

    class Accessor:
        extra = None

        def __init__(self):
            self.added = []
            self.partitions = []
            self.add_partitions = self.partitions.append

        def add(self, asset, extra):
            self.added.append((asset.uri, extra))

    def __missing__(self, outlet):
        return self.setdefault(outlet, self.Accessor())


@pytest.fixture
def wrapped_up(monkeypatch):
    """Where the pipeline's check and publish note what they were called with."""
    called = {}

    def check(_job, *, work, summaries, progress, engine):
        called.update(work=work, summaries=summaries)
        progress("wrap_up", 1, 1)
        return pipeline.Checked(REPORT, "")

    monkeypatch.setattr(pipeline, "published_once", lambda _job, _work, make: make())
    monkeypatch.setattr(pipeline, "check", check)
    monkeypatch.setattr(pipeline, "publish", lambda _job, *, work, progress: REPORT)
    monkeypatch.setattr("mondrian_ops.report.render_text", lambda *_a, **_k: "the report")
    return called


def test_wrap_up_takes_its_own_fragments_and_returns_a_small_summary(wrapped_up, context, job):
    task = WrapUpOperator(task_id="g.t", job=job, summaries=[])
    work = begun_work(context, job).root
    task.summaries = [summary(0, work), summary(0, "of another release"), summary(1, work)]
    task.summaries.append(summary(1, work))  # of a task that a cleared run has no more
    result = task.execute(context)
    assert [each.id for each in wrapped_up["summaries"]] == [0, 1]
    assert wrapped_up["work"] == work
    assert set(result) == {
        *("output", "rows", "asked", "achieved", "equivalence_classes"),
        *("metrics", "risk", "timings_s"),
    }


def test_summaries_of_many_fragments_are_working_files(wrapped_up, monkeypatch, context, job):
    wrap_up = WrapUpOperator(task_id="g.t", job=job, summaries=[])
    work = begun_work(context, job)
    summaries = [Summary.from_dict(summary(number, work.root)) for number in range(3)]
    monkeypatch.setattr(pipeline, "anonymize_all", lambda *_: summaries)
    task = AnonymizeFragmentOperator(
        task_id="g.a", job=job, fragment=fragment(work=work.root, fragments=3)
    )
    wrap_up.summaries = [task.execute(context)]
    assert wrap_up.summaries == [{"summaries": 3, "work": work.root}]
    wrap_up.execute(context)
    assert wrapped_up["summaries"] == summaries


def test_wrap_up_without_any_fragment_fails_for_good(wrapped_up, context, job):
    begun_work(context, job)
    task = WrapUpOperator(task_id="t", job=job, summaries=[summary(0, "of another release")])
    with pytest.raises(AirflowFailException, match="no fragment of it was anonymized"):
        task.execute(context)
    assert not wrapped_up


def test_wrap_up_announces_the_release_to_its_outlets(wrapped_up, context, job):
    asset, alias = Asset("visits"), AssetAlias("releases")
    task = WrapUpOperator(task_id="t", job=job, summaries=[], outlets=[asset, alias])
    task.summaries = [summary(0, begun_work(context, job).root)]
    context["outlet_events"] = Events()
    result = task.execute(context)
    assert context["outlet_events"][asset].extra == result
    assert context["outlet_events"][alias].added == [(Path(job["output"]).as_uri(), result)]
    assert not context["outlet_events"][asset].partitions


def test_a_night_is_a_partition_of_the_asset_of_its_dataset(wrapped_up, context, job):
    asset, alias = Asset("visits"), AssetAlias("releases")
    job["output"] = f"{job['output']}/2025-06-01"
    outlets = [asset, alias]
    task = WrapUpOperator(task_id="t", job=job, summaries=[], outlets=outlets, by_night=True)
    task.summaries = [summary(0, begun_work(context, job).root)]
    context["outlet_events"] = Events()
    task.execute(context)
    assert context["outlet_events"][asset].partitions == ["2025-06-01"]
    assert not context["outlet_events"][alias].partitions


@pytest.mark.parametrize("mapped", [False, True])
def test_a_night_without_a_release_announces_nothing_and_skips_its_readers(
    wrapped_up, monkeypatch, context, job, mapped
):
    """Behind mapped tasks others may have published."""
    told = {"state": "held", "reason": "too few", "at": ""}
    held = {**REPORT, "outcome": told, "series": {"name": "s", "night": 1}}
    monkeypatch.setattr(pipeline, "publish", lambda _job, *, work, progress: held)
    skipped = []
    monkeypatch.setattr(approval, "skip_followers", lambda task, _context: skipped.append(task))
    task = WrapUpOperator(task_id="t", job=job, summaries=[], outlets=[Asset("visits")])
    task.summaries = [summary(0, begun_work(context, job).root)]
    context["ti"].map_index = 0 if mapped else -1
    context["outlet_events"] = Events()
    task.execute(context)
    assert task.outlets == []
    assert not context["outlet_events"]
    assert skipped == ([] if mapped else [task])


def test_a_try_that_recorded_nothing_links_to_no_page(monkeypatch, context, job, kept):
    def break_down(*_arguments):
        raise OSError(28, "no space left")

    monkeypatch.setattr(pipeline, "published_once", break_down)
    task = WrapUpOperator(task_id="t", job=job, summaries=[])
    task.summaries = [summary(0, begun_work(context, job).root)]
    with pytest.raises(OSError, match="no space left"):
        task.execute(context)
    assert task.release_url == ""
    assert kept() == []


def test_a_task_that_has_made_nothing_links_to_nothing(job):
    (link,) = WrapUpOperator.operator_extra_links
    wrap_up = WrapUpOperator(task_id="t", job=job, summaries=[])
    assert link.get_link(wrap_up, ti_key=None) == ""
    wrap_up.release_url = "http://airflow/release"
    assert link.get_link(wrap_up, ti_key=None) == "http://airflow/release"
