"""What meets a store and a kind of tables that another package adds: each feature of a run."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from added_packages import add_table, example_installed
from mondrian_ops import pipeline, publish, series, stores
from mondrian_ops.errors import ApprovalError, JobError, PrivacyError, StorageError
from mondrian_ops.job.job import Job
from mondrian_ops.job.policy import Policies
from mondrian_ops.nightly.landing import read_landing
from mondrian_ops.pipeline import Approval, frontier
from mondrian_ops.stores import AccessPolicy, load_job, policies, use_policy

ROWS = 240


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of ``shelf://a``, and a catalogue beside it."""
    folder = tmp_path / "shelves" / "a"
    folder.mkdir(parents=True)
    monkeypatch.setenv("MONDRIAN_OPS_CATALOGUE", str(tmp_path / "catalogue.db"))
    with example_installed(tmp_path):
        yield folder
    use_policy(None)


def people(seed: int = 1, first: int = 0, rows: int = ROWS) -> list[dict[str, Any]]:
    chance = random.Random(seed)
    return [
        {"person": first + at, "age": chance.randrange(18, 90), "town": chance.choice("abcdef"),
         "ill": chance.choice(["flu", "cold", "ulcer", "asthma"])}
        for at in range(rows)
    ]  # fmt: skip


def job(source: str, output: str, **options: Any) -> Job:
    described = {
        "input": source,
        "output": output,
        "k": 4,
        "l": 2,
        "quasi_identifiers": ["age", "town"],
        "sensitive": ["ill"],
        "unlisted": "drop",
        "cut": "median",
        "partitioning": {"fragments": 2, "sample": 1.0},
        **options,
    }
    return load_job(described)


@pytest.fixture
def asked(shelf: Path, tmp_path: Path) -> Job:
    """From a table of SQLite to the shelf."""
    return job(add_table(tmp_path / "people.db", "people", people()), "shelf://a/out/release")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


class Run:
    """The tasks of a run in Airflow, each of them tried twice."""

    def __init__(self, job: Job, name: str = "a run") -> None:
        self.job = job
        self.work = publish.WorkDir(publish.work_path(job.output, name))
        self.fragments = self._twice(lambda: pipeline.partition(job, work=self.work.root))
        self.summaries = [
            self._twice(lambda each=each: pipeline.anonymize_fragment(each))
            for each in self.fragments
        ]

    def check(self) -> tuple[Any, str]:
        return self._twice(
            lambda: pipeline.check(self.job, work=self.work.root, summaries=self.summaries)
        )

    @staticmethod
    def _twice(task: Any) -> Any:
        task()
        return task()


def test_a_release_is_approved_and_each_task_may_run_again(asked: Job, shelf: Path) -> None:
    run = Run(replace(asked, require_approval=True))
    _, seal = run.check()
    assert names(shelf / "out") == [Path(run.work.root).name]  # nothing is published yet
    with pytest.raises(ApprovalError):
        pipeline.publish(run.job, work=run.work.root, approval=None)
    approval = Approval(seal, "jane", "2025-06-01T12:00:00+00:00")
    for _ in range(2):  # the second finds it published
        published = pipeline.published_once(
            run.job,
            run.work.root,
            lambda: pipeline.publish(run.job, work=run.work.root, approval=approval),
        )
    assert "jane" in json.dumps(published["outcome"])
    run.work.remove()
    assert names(shelf / "out") == ["release"]
    assert publish.report_of(asked.output)["rows"]["published"] == ROWS
    assert pipeline.verify(asked, asked.output)["passed"]
    assert pq.read_table(shelf / "out" / "release").num_rows == ROWS


def test_a_part_that_was_changed_while_the_question_waited_is_not_published(
    asked: Job, shelf: Path
) -> None:
    run = Run(replace(asked, require_approval=True))
    _, seal = run.check()
    staging = shelf / run.work.staging.removeprefix("shelf://a/")
    part = next(staging.glob("part-*"))
    part.write_bytes(part.read_bytes() + b" ")
    with pytest.raises((PrivacyError, ApprovalError, StorageError)):
        pipeline.publish(run.job, work=run.work.root, approval=Approval(seal, "jane", "2025-06-01"))
    assert names(shelf / "out") == [Path(run.work.root).name]


def night(shelf: Path, number: int, rows: list[dict[str, Any]], **options: Any) -> tuple[Job, Any]:
    """Publish a night, whose drop is a table of its own."""
    source = add_table(shelf.parent / "people.db", f"night-{number}", rows)
    asked = job(source, f"shelf://a/nights/2024-05-0{number}", **options)
    run = Run(asked, f"run {number}")
    report = pipeline.wrap_up(asked, work=run.work.root, summaries=run.summaries)
    run.work.remove()
    return asked, report


@pytest.mark.servers
def test_rows_wait_on_the_store_for_a_night_of_their_series(shelf: Path) -> None:
    series = {"hold_above": 0.05, "hold_nights": 3}
    published = 0
    for number in (1, 2, 3):
        came = people(number, 40 * number, 40)
        _, report = night(shelf, number, came, series=series, schema="keep")
        published += report["rows"]["published"]
        assert report["rows"]["suppressed"] == 0
        assert published + report["rows"]["waiting"] == 40 * number
    assert 0 < published < 120
    (waiting,) = (shelf / "nights" / ".mondrian_waiting").iterdir()
    assert waiting.stat().st_mode & 0o077 == 0


@pytest.mark.servers
def test_nights_protect_the_same_people(shelf: Path) -> None:
    series = {"protect": "intersection", "kind": "snapshots", "unmatched": "suppress"}
    for number in (1, 2):
        came = people(first=10 * number, rows=120)
        asked, report = night(shelf, number, came, series=series, entity_id="person")
        assert report["rows"]["published"] > 60
        assert pipeline.verify(asked, asked.output)["passed"]
    assert pipeline.verify_series(asked, asked.output)["passed"]


@pytest.mark.servers
def test_the_frontier_is_measured_and_written(asked: Job, shelf: Path) -> None:
    work = publish.work_path(asked.output, "a frontier")
    grid = frontier.points([3, 5], [1, 2])
    sample = frontier.draw(asked, grid, work=work)
    measured = [frontier.measure(asked, point, sample) for point in grid]
    pipeline.discard(work)
    assert all(point.get("reason") is None for point in measured)
    folder = frontier.folder_of(asked)
    frontier.write(frontier.gather(asked, sample, measured), folder)
    assert folder == "shelf://a/out/release_frontier"
    written = names(shelf / "out" / "release_frontier")
    assert written == ["frontier.csv", "frontier.html", "frontier.svg"]


def test_what_a_killed_run_left_is_swept(asked: Job, shelf: Path) -> None:
    work = publish.work_path(asked.output, "killed")
    pipeline.partition(asked, work=work)
    (kept,) = publish.sweep("shelf://a", timedelta(hours=1), lambda _: None)
    assert kept.state == "kept"
    (swept,) = publish.sweep("shelf://a", timedelta(0), lambda _: False)
    assert (swept.work, swept.state) == (work, "removed")
    assert list(series.sweep("shelf://a", timedelta(0))) == []
    assert names(shelf / "out") == []


def test_policies_hold_for_both(asked: Job, tmp_path: Path) -> None:
    database = str(asked.input).rpartition("/")[0]
    use_policy(AccessPolicy(inputs=(database,), outputs=("shelf://a/out",)))
    assert publish.check_job(asked)
    for changed, error in (
        (replace(asked, output="shelf://a/elsewhere"), "output: .* is not allowed here"),
        (replace(asked, output="shelf://A/out/x"), "output: .* is not allowed here"),
        (replace(asked, input="shelf://a/in"), "input: .* is not allowed here"),
    ):
        with pytest.raises(JobError, match=error):
            publish.check_job(changed)
    use_policy(None)
    for place in (database, "shelf://a/in"):
        policy = {"name": "patients", "inputs": [place], "min_k": 5}
        inputs = policies.inputs_of(Policies.read({"policies": [policy]}))
        for source in (f"{place}/people", f"{place}/people/"):
            assert [each.name for each in policies.met(inputs, source)] == ["patients"]


def test_the_drops_of_a_folder_become_releases(shelf: Path, tmp_path: Path) -> None:
    rows = "".join(f"{20 + at},a\n" for at in range(9))
    stores.write_file("shelf://a/landing/people/2024-05-01.csv", f"age,town\n{rows}".encode())
    (shelf / "landing" / "people" / "2024-05-02").mkdir()
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    (jobs / "people.yaml").write_text(json.dumps({"k": 3, "quasi_identifiers": ["age", "town"]}))
    now = datetime.now(UTC)
    one, other = read_landing("shelf://a/landing").drops["people"]
    assert (one.day, other.day) == (date(2024, 5, 1), date(2024, 5, 2))
    assert "changed" in one.incomplete(now, timedelta(hours=1))
    assert one.incomplete(now + timedelta(hours=2), timedelta(hours=1)) is None
    assert "no _SUCCESS" in other.incomplete(now, timedelta(hours=1))
    described = one.job(jobs, "shelf://a/releases")
    asked = load_job({"input": one.input, "output": one.output("shelf://a/releases"),
                      **json.loads((jobs / "people.yaml").read_text())})  # fmt: skip
    assert f"output={json.dumps(str(asked.output))}" in described["set"]
    before = one.version
    assert pipeline.run(asked)["rows"]["published"] == 9
    assert names(shelf / "releases" / "people") == ["2024-05-01"]
    assert read_landing("shelf://a/landing").drops["people"][0].version == before
