"""A steward's approval in a real Airflow, with StatsD looking on.

The runs are started together; each waits in its own ``wrap_up`` until a test answers, or asks for
the run as it is when it was answered (``settled``): any test runs by itself.
"""

from __future__ import annotations

import csv
import json
import shutil
import urllib.error
from contextlib import contextmanager
from functools import cache
from urllib.parse import quote, urlsplit

import pytest

from dag_runs import nested, published, states, tries

pytestmark = [pytest.mark.airflow, pytest.mark.postgres]


@pytest.fixture(scope="module")
def watched(project):
    """The project; Ada starts the runs of the tests."""
    return project


def asked(watched, name, fragments=1, **changed):
    """A job whose release waits, of one fragment: an answer concerns the whole."""
    return nested(watched.job(name, **{"require_approval": True, **changed}), fragments=fragments)


@pytest.fixture(scope="module")
def runs(watched):
    """Start every run that waits for an answer; (DAG id, run id) by name."""

    def start(name, dag_id="approved", **changed):
        return dag_id, watched.airflow.trigger(dag_id, asked(watched, name, **changed))

    each = [asked(watched, name)["job"] for name in ("each_a", "each_b")]
    moving = watched.root / "moving.csv"
    shutil.copy(watched.root / "include" / "examples" / "people.csv", moving)
    of_a_file = asked(watched, "of_a_file")["job"]
    (watched.root / "of_a_file.json").write_text(json.dumps(of_a_file))
    file = {"job": {"file": str(watched.root / "of_a_file.json")}}
    return {
        # Before the others, of which none shall hold it up: it has two minutes until it waits.
        "out_of_time": start("out_of_time", "approved_in_time"),
        "published": start("published"),
        "rejected": start("rejected"),
        "expired": start("expired", approval_hours=0.01),
        "killed": start("killed", "approved_killed"),
        "killed_too": start("killed_too", "approved_killed"),
        "occupied": start("occupied"),
        "of_a_file": ("approved", watched.airflow.trigger("approved", file)),
        "tampered": start("tampered"),
        "stopped": start("stopped", fragments=3),  # which are scattered
        "cleared": start("cleared"),
        "moving": start("moving", input=str(moving)),
        "refused": start("refused", require_approval=False, max_gcp=0.01),
        "exceeds": start("exceeds", require_approval=False, max_gcp=0.01, on_exceeded="ask"),
        "four_eyes": start(
            "four_eyes", input=str(watched.root / "patients"), require_approval=False
        ),
        "cleared_by_grace": start(
            "cleared_by_grace", input=str(watched.root / "patients"), require_approval=False
        ),
        "marked": start("marked"),
        "below": start("below", input=str(watched.root / "patients"), k=4),
        "each": ("approved_each", watched.airflow.trigger("approved_each", {"jobs": each})),
    }


def path_of(run, *parts):
    dag_id, run_id = run
    return "/".join([f"/api/v2/dags/{dag_id}/dagRuns/{quote(run_id, safe='')}", *parts])


def wrap_ups(watched, run):
    return wrap_ups_of(watched.airflow.tasks(*run))


def wrap_ups_of(tasks):
    return [each for each in tasks if each["task_id"].rpartition(".")[2] == "wrap_up"]


def wait_for(watched, run, state="awaiting_input", number=1):
    """Wait until so many `wrap_up` of the run are in a state; their task instances."""
    for tasks in watched.airflow.watch(*run):
        found = [each for each in wrap_ups_of(tasks) if each["state"] == state]
        if len(found) == number:
            return found
    pytest.fail(f"the run is over, and no wrap_up was {state}: {wrap_ups(watched, run)}")


def hitl(run, task):
    return path_of(run, "taskInstances", task["task_id"], str(task["map_index"]), "hitlDetails")


def answer(watched, run, task, option):
    """Answer as people do, no sooner than the scheduler has heard that the task is parked."""
    heard = f"task_id='{task['task_id']}', run_id='{run[1]}', try_number={task['try_number']}"
    heard += f", map_index={task['map_index']})"
    log = watched.root / "airflow" / "scheduler.log"
    said = "Received executor event with state success for task instance TaskInstanceKey("
    assert watched.airflow.comes_true(
        lambda: any(
            said in line and heard in line for line in log.read_text(errors="replace").splitlines()
        )
    )
    body = {"chosen_options": [option], "params_input": {}}
    return watched.airflow.request("PATCH", hitl(run, task), body)


def answered(watched, run, option):
    """Answer once it waits; the state of the run and its task instances when that is over."""
    (task,) = wait_for(watched, run)
    answer(watched, run, task, option)
    return watched.airflow.finish(*run), watched.airflow.tasks(*run)


ANSWERS = {
    "published": "Approve",
    "rejected": "Reject",
    "killed": "Approve",
    "killed_too": "Reject",
}


@pytest.fixture(scope="module")
def settled(watched, runs):
    """Have a run of ``ANSWERS`` answered, once; its state and task instances when it is over."""
    return cache(lambda name: answered(watched, runs[name], ANSWERS[name]))


def asset_events(watched, run):
    events = watched.airflow.request("GET", "/api/v2/assets/events?limit=100")["asset_events"]
    return [each for each in events if each["source_run_id"] == run[1]]


def test_a_release_waits_and_shows_what_it_is(watched, runs):
    run = runs["stopped"]
    (task,) = wait_for(watched, run)
    assert not watched.output("stopped").exists()
    (work,) = watched.leftovers("stopped")
    assert not (watched.output("stopped").parent / work / "fragments").exists()
    asked = watched.airflow.request("GET", hitl(run, task))
    assert asked["options"] == ["Approve", "Reject"]
    assert asked["subject"] == f"Publish {watched.output('stopped')}?"
    assert "| k-anonymity | 5 | " in asked["body"]
    assert "| Rows | 2,000 of 2,000, 0 suppressed |" in asked["body"]
    links = watched.airflow.request(
        "GET", path_of(run, "taskInstances", "wrap_up", "links?map_index=-1")
    )["extra_links"]
    assert f"[The release]({links['Release']})" in asked["body"]
    entry = watched.entry(run[1])
    assert entry["state"] == "waiting"
    assert urlsplit(links["Release"]).path.endswith(entry["id"])
    (told,) = watched.told(run[1])
    assert (told["state"], told["link"]) == ("waiting", links["Release"])


def test_an_approved_release_is_published(watched, runs, settled):
    run = runs["published"]
    state, tasks = settled("published")
    assert state == "success"
    assert {each["state"] for each in tasks} == {"success"}
    assert tries(tasks)["wrap_up"] == 1
    assert published(watched.output("published")) == 2000
    assert watched.leftovers("published") == []
    report = json.loads((watched.output("published") / "_report.json").read_text())
    assert report["outcome"]["decision"] == "approved"
    assert report["outcome"]["decided_by"]
    entry = watched.entry(run[1])
    assert entry["state"] == "published"
    (event,) = asset_events(watched, run)
    assert event["extra"]["metrics"] == report["metrics"]
    assert event["extra"]["risk"] == report["risk"]
    assert event["extra"]["timings_s"] == report["timings_s"]


def test_its_loss_and_its_risk_are_metrics(watched, settled):
    settled("published")
    report = json.loads((watched.output("published") / "_report.json").read_text())
    gauges = dict(line.split(":", 1) for line in watched.metrics)
    release = "airflow.mondrian_ops.approved.release"
    assert gauges[f"{release}.releases.published"] == "1|c"
    assert float(gauges[f"{release}.rows.published"].removesuffix("|g")) == 2000
    assert float(gauges[f"{release}.gcp"].removesuffix("|g")) == report["metrics"]["GCP"]
    assert f"{release}.duration.partition" in gauges


def assert_discarded(watched, name, run):
    """Nothing of the release is left, and nobody takes it for one."""
    tasks = watched.airflow.tasks(*run)
    found = states(tasks)
    assert found["wrap_up", "skipped"] == found["clean_up", "success"] == 1
    after = {"needs_the_release", "always", "for_each", "in_the_end"}
    assert {each["state"] for each in tasks if each["task_id"] in after} == {"skipped"}
    assert not watched.output(name).exists()
    assert watched.leftovers(name) == []
    assert asset_events(watched, run) == []


def test_a_rejected_release_is_discarded_and_stops_all_that_follows(watched, runs, settled):
    run = runs["rejected"]
    settled("rejected")
    assert_discarded(watched, "rejected", run)
    entry = watched.entry(run[1])
    assert entry["state"] == "rejected"
    assert "the release is discarded" in entry["reason"]
    asked, refused = watched.told(run[1])
    assert (asked["state"], refused["state"]) == ("waiting", "rejected")
    (task,) = wrap_ups(watched, run)
    assert "rejected by" in watched.airflow.log_of(*run, task)


def test_what_was_skipped_stays_skipped_when_it_is_cleared(watched, runs, settled):
    run = runs["rejected"]
    settled("rejected")
    body = {"dry_run": False, "dag_run_id": run[1], "task_ids": ["always"], "only_failed": False}
    watched.airflow.request("POST", f"/api/v2/dags/{run[0]}/clearTaskInstances", body)
    watched.airflow.finish(*run)
    found = states(watched.airflow.tasks(*run))
    assert found["always", "skipped"] == 1


@pytest.mark.parametrize("name", ["expired", "out_of_time"])
def test_a_release_that_nobody_approves_in_time_is_discarded(watched, runs, name):
    """`out_of_time`: before the run itself is ended, without its teardown."""
    run = runs[name]
    watched.airflow.finish(*run)
    found = states(watched.airflow.tasks(*run))
    assert found["wrap_up", "skipped"] == found["clean_up", "success"] == 1
    assert watched.leftovers(name) == []
    assert not watched.output(name).exists()
    assert watched.entry(run[1])["state"] == "expired"
    assert "nobody approved it in time" in watched.entry(run[1])["reason"]
    if name == "expired":
        assert_discarded(watched, name, run)


def test_a_worker_killed_while_it_publishes_does_not_ask_again(watched, runs, settled):
    run = runs["killed"]
    state, tasks = settled("killed")
    assert state == "success"
    assert tries(tasks)["anonymize.wrap_up"] == 2
    assert published(watched.output("killed")) == 2000
    assert watched.leftovers("killed") == []
    report = json.loads((watched.output("killed") / "_report.json").read_text())
    assert report["outcome"]["decided_by"]
    assert [each["state"] for each in watched.told(run[1])] == ["waiting"]


def test_a_worker_killed_while_it_discards_does_not_ask_again(watched, runs, settled):
    run = runs["killed_too"]
    _state, tasks = settled("killed_too")
    assert tries(tasks)["anonymize.wrap_up"] == 2
    found = states(tasks)
    assert found["wrap_up", "skipped"] == found["clean_up", "success"] == 1
    assert found["always", "skipped"] == found["needs_the_release", "skipped"] == 1
    assert not watched.output("killed_too").exists()
    assert watched.leftovers("killed_too") == []
    entry = watched.entry(run[1])
    assert (entry["state"], entry["rows_published"]) == ("rejected", 0)
    links = watched.airflow.request(
        "GET", path_of(run, "taskInstances", "anonymize.wrap_up", "links?map_index=-1")
    )["extra_links"]
    assert urlsplit(links["Release"]).path.endswith(entry["id"])


def test_a_job_s_file_that_is_gone_when_the_answer_comes_is_not_missed(watched, runs):
    run = runs["of_a_file"]
    wait_for(watched, run)
    (watched.root / "of_a_file.json").unlink()
    answered(watched, run, "Reject")
    assert_discarded(watched, "of_a_file", run)
    assert watched.entry(run[1])["state"] == "rejected"


def test_an_approved_release_that_cannot_be_published_has_failed(watched, runs):
    run = runs["occupied"]
    wait_for(watched, run)
    output = watched.output("occupied")
    output.mkdir()
    (output / "of_somebody_else.txt").write_text("keep this")
    state, tasks = answered(watched, run, "Approve")
    assert state == "failed"
    assert tries(tasks)["wrap_up"] == 1
    assert [path.name for path in output.iterdir()] == ["of_somebody_else.txt"]
    assert len(watched.leftovers("occupied")) == 1  # for a repair
    entry = watched.entry(run[1])
    assert (entry["state"], entry["rows_published"]) == ("failed", 0)


def test_what_changed_while_it_waited_is_not_published(watched, runs):
    run = runs["tampered"]
    wait_for(watched, run)
    part = next(watched.output("tampered").parent.glob(".*/release/part-*"))
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(content)
    state, tasks = answered(watched, run, "Approve")
    assert state == "failed"
    assert tries(tasks)["wrap_up"] == 1
    assert not watched.output("tampered").exists()
    assert len(watched.leftovers("tampered")) == 1  # for a repair
    assert watched.entry(run[1])["state"] == "failed"
    (task,) = wrap_ups(watched, run)
    assert "changed after they were checked" in watched.airflow.log_of(*run, task)


def test_a_run_that_is_marked_failed_while_it_waits_shows_as_failed(watched, runs):
    run = runs["stopped"]
    wait_for(watched, run)
    assert watched.leftovers("stopped") != []
    watched.airflow.request("PATCH", path_of(run), {"state": "failed"})
    assert watched.airflow.finish(*run) == "failed"
    assert len(watched.leftovers("stopped")) == 1  # for a repair
    assert watched.entry(run[1])["state"] == "failed"
    assert not watched.output("stopped").exists()


def test_a_run_cleared_after_a_rejection_asks_again(watched, runs):
    run = runs["cleared"]
    answered(watched, run, "Reject")
    assert not watched.output("cleared").exists()
    clear(watched, run)
    state, _tasks = answered(watched, run, "Approve")
    assert state == "success"
    assert published(watched.output("cleared")) == 2000
    assert watched.entry(run[1])["state"] == "published"


def test_nobody_approves_other_figures_than_those_that_are_shown(watched, runs):
    """Airflow shows the first text that a task of a run asked with, whatever it asks later."""
    run = runs["moving"]
    wait_for(watched, run)
    moving = watched.root / "moving.csv"
    lines = moving.read_text().splitlines()
    moving.write_text("\n".join(lines[:1000]) + "\n")
    watched.airflow.request("DELETE", path_of(run, "taskInstances", "wrap_up", "state-store"))
    clear(watched, run)
    assert watched.airflow.finish(*run) == "failed"
    (task,) = wrap_ups(watched, run)
    assert "trigger a new run" in watched.airflow.log_of(*run, task)
    assert "2,000 of 2,000" in watched.airflow.request("GET", hitl(run, task))["body"]
    assert len(watched.leftovers("moving")) == 1  # for a repair


def test_a_rejected_release_is_not_approved_by_the_state_of_its_task(watched, runs, settled):
    """Which everybody may write who may edit task instances."""
    run = runs["rejected"]
    settled("rejected")
    (task,) = wrap_ups(watched, run)
    forged = {"value": {"decision": ["approved", "grace", "", "", ""]}, "expires_at": None}
    for key in ("mondrian_ops_asked", "mondrian_ops_decision"):
        state = path_of(run, "taskInstances", "wrap_up", "state-store", key)
        watched.airflow.request("PUT", state, forged)
    clear_wrap_up(watched, run, task)
    watched.airflow.finish(*run)
    assert_discarded(watched, "rejected", run)
    (task,) = wrap_ups(watched, run)
    assert "rejected by" in watched.airflow.log_of(*run, task)


def clear_wrap_up(watched, run, task, **more):
    body = {"dry_run": False, "dag_run_id": run[1], "task_ids": ["wrap_up"], "only_failed": False}
    body |= more
    watched.airflow.request("POST", f"/api/v2/dags/{run[0]}/clearTaskInstances", body)
    assert watched.airflow.comes_true(lambda: wrap_ups(watched, run)[0]["id"] != task["id"])


def test_a_release_whose_task_is_marked_as_success_is_not_published(watched, runs):
    """Neither at once nor by an answer that comes later; its run and its page say so."""
    run = runs["marked"]
    (task,) = wait_for(watched, run)
    marked = path_of(run, "taskInstances", "wrap_up")
    watched.airflow.request("PATCH", marked, {"new_state": "success"})
    assert watched.airflow.finish(*run) == "failed"
    (after,) = (each for each in watched.airflow.tasks(*run) if each["task_id"] == "clean_up")
    assert "marked as success by hand" in watched.airflow.log_of(*run, after)
    entry = watched.entry(run[1])
    assert (entry["state"], entry["rows_published"]) == ("failed", 0)
    assert "an approval that comes later publishes nothing" in entry["reason"]
    answer(watched, run, task, "Approve")  # Airflow takes it
    assert wrap_ups(watched, run)[0]["state"] == "success"
    assert not watched.output("marked").exists()
    clear_wrap_up(watched, run, task, include_downstream=True)
    state, _tasks = answered(watched, run, "Approve")  # to the question that is asked anew
    assert state == "success"
    assert published(watched.output("marked")) == 2000
    assert watched.entry(run[1])["state"] == "published"


def clear(watched, run):
    before = {each["id"] for each in watched.airflow.tasks(*run)}
    watched.airflow.request("POST", path_of(run, "clear"), {"dry_run": False, "only_failed": False})
    assert watched.airflow.comes_true(
        lambda: before.isdisjoint(each["id"] for each in wrap_ups(watched, run))
    )


def test_a_release_beyond_a_limit_is_refused_and_its_figures_are_kept(watched, runs):
    run = runs["refused"]
    assert watched.airflow.finish(*run) == "failed"
    (task,) = wrap_ups(watched, run)
    assert (task["state"], task["try_number"]) == ("failed", 1)
    assert "max_gcp: GCP" in watched.airflow.log_of(*run, task)
    entry = watched.entry(run[1])
    assert (entry["state"], entry["rows_published"]) == ("refused", 0)
    (told,) = watched.told(run[1])
    assert (told["state"], told["dataset"]) == ("refused", str(watched.output("refused")))
    assert told["reason"] == entry["reason"]
    assert len(watched.leftovers("refused")) == 1  # for a repair
    assert not watched.output("refused").exists()


def test_a_release_beyond_a_limit_may_wait_instead(watched, runs):
    run = runs["exceeds"]
    (task,) = wait_for(watched, run)
    body = watched.airflow.request("GET", hitl(run, task))["body"]
    assert "max\\_gcp" in body
    state, _tasks = answered(watched, run, "Approve")
    assert state == "success"
    assert published(watched.output("exceeds")) == 2000


def test_each_of_several_releases_has_its_own_answer(watched, runs):
    run = runs["each"]
    first, second = wait_for(watched, run, number=2)
    rejected, approved = (first, second) if first["map_index"] == 0 else (second, first)
    names = {0: "each_a", 1: "each_b"}
    answer(watched, run, rejected, "Reject")
    wait_for(watched, run, "skipped")
    (still,) = wait_for(watched, run)
    assert still["map_index"] == approved["map_index"] == 1
    answer(watched, run, approved, "Approve")
    watched.airflow.finish(*run)
    found = states(watched.airflow.tasks(*run))
    assert found["wrap_up", "skipped"] == found["wrap_up", "success"] == 1
    assert found["always", "skipped"] == found["clean_up", "success"] == 1
    assert not watched.output(names[0]).exists()
    assert published(watched.output(names[1])) == 2000
    assert watched.leftovers("each_a") == watched.leftovers("each_b") == []
    assert watched.entry(run[1], 0)["state"] == "rejected"
    assert watched.entry(run[1], 1)["state"] == "published"


@contextmanager
def logged_in(watched, user):
    watched.airflow.log_in(user, watched.password)
    yield
    watched.airflow.log_in("ada", watched.password)


def assert_forbidden(watched, user, run, task):
    with logged_in(watched, user), pytest.raises(urllib.error.HTTPError) as caught:
        answer(watched, run, task, "Approve")
    caught.value.close()
    assert caught.value.code == 403


def test_whoever_triggered_a_run_does_not_approve_its_release(watched, runs):
    """Neither may others who are no approvers, nor does it help to clear the task."""
    run = runs["four_eyes"]
    (task,) = wait_for(watched, run)
    assert_forbidden(watched, "ada", run, task)
    assert_forbidden(watched, "bob", run, task)
    asked = watched.airflow.request("GET", hitl(run, task))
    assert [user["id"] for user in asked["assigned_users"]] == ["grace"]
    assert "**To publish as they are, because they are sensitive" in asked["body"]
    clear_wrap_up(watched, run, task)
    (task,) = wait_for(watched, run)
    assert_forbidden(watched, "ada", run, task)
    with logged_in(watched, "grace"):
        answer(watched, run, task, "Approve")
    assert watched.airflow.finish(*run) == "success"
    report = json.loads((watched.output("four_eyes") / "_report.json").read_text())
    assert (report["outcome"]["decided_by"], report["policies"]) == ("grace", ["patients"])


def test_whoever_cleared_a_run_does_not_approve_its_release(watched, runs):
    """Airflow's log tells who did; Ada triggered it, and Grace could have changed its input."""
    run = runs["cleared_by_grace"]
    (task,) = wait_for(watched, run)
    with logged_in(watched, "grace"):
        clear_wrap_up(watched, run, task)
    assert watched.airflow.finish(*run) == "failed"
    (task,) = wrap_ups(watched, run)
    assert "nobody may approve the release" in watched.airflow.log_of(*run, task)
    assert not watched.output("cleared_by_grace").exists()


def test_a_job_below_its_policy_reads_nothing(watched, runs):
    run = runs["below"]
    assert watched.airflow.finish(*run) == "failed"
    (task,) = (each for each in watched.airflow.tasks(*run) if each["task_id"] == "partition")
    assert task["state"] == "failed"
    assert "k: is 4, and the policy 'patients' requires min_k: 5" in watched.airflow.log_of(
        *run, task
    )
    assert not watched.output("below").parent.exists()


def test_an_answer_counts_once(watched, runs, settled):
    run = runs["rejected"]
    settled("rejected")
    (task,) = wrap_ups(watched, run)
    with pytest.raises(urllib.error.HTTPError) as caught:
        answer(watched, run, task, "Approve")
    assert caught.value.code == 409


def test_no_name_of_a_person_is_shown_or_handed_on(watched, settled):
    with (watched.root / "include" / "examples" / "people.csv").open() as file:
        names = {row["name"] for row in csv.DictReader(file)}
    settled("published")
    shown = [
        path.read_text()
        for path in (watched.root / "airflow" / "logs").rglob("task_id=wrap_up/*.log")
    ]
    shown.append((watched.root / "told.jsonl").read_text())
    assert shown
    assert not [name for name in names if any(name in text for text in shown)]


def test_notifiers_of_mapped_tasks_make_no_new_version_of_a_dag(watched, runs):
    def parsed():
        return watched.airflow.request("GET", "/api/v2/dags/approved_each/details")["last_parsed"]

    before = parsed()
    path = watched.root / "dags" / "approvals.py"
    path.touch()
    assert watched.airflow.comes_true(lambda: parsed() != before)
    versions = watched.airflow.request("GET", "/api/v2/dags/approved_each/dagVersions")
    assert versions["total_entries"] == 1
