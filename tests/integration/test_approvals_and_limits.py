"""A release that needs an approval, or has limits: published as it was checked, or not at all."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from mondrian_ops import anonymize, cli, pipeline, publish, stores
from mondrian_ops import report as reports
from mondrian_ops.errors import ApprovalError, PrivacyError, StorageError
from mondrian_ops.pipeline import Approval
from mondrian_ops.report import render_html, render_text
from tiers import in_soak

ROWS = 60

wrapping_up = sys.modules["mondrian_ops.pipeline.wrapping_up"]


@pytest.fixture
def table():
    return pa.table(
        {
            "age": list(range(ROWS)),
            "sex": ["f", "m"] * (ROWS // 2),
            "visit": [f"v{n}" for n in range(ROWS)],
        }
    )


@pytest.fixture
def job(tmp_path, table):
    """A job over some rows, whose release is alone in its folder."""
    pq.write_table(table, tmp_path / "in.parquet")
    (tmp_path / "out").mkdir()
    return {
        "input": str(tmp_path / "in.parquet"),
        "output": str(tmp_path / "out" / "release"),
        "k": 5,
        "quasi_identifiers": ["age", "sex"],
        "unlisted": "publish",
        "cut": "median",
        "partitioning": {"fragments": 2, "sample": 1.0},
        "retrieval": "scatter",
    }


class Parked:
    """A release that was checked and waits."""

    def __init__(self, job, run="a run"):
        self.job = pipeline.load_job({**job, "require_approval": True})
        self.work = publish.WorkDir(publish.work_path(self.job.output, run))
        self.fragments = pipeline.partition(self.job, work=self.work.root)
        summaries = [pipeline.anonymize_fragment(each) for each in self.fragments]
        self.report, self.seal = pipeline.check(self.job, work=self.work.root, summaries=summaries)
        self.approval = Approval(self.seal, "jane", "2025-06-01T12:00:00+00:00")

    def publish(self, approval=None):
        return pipeline.publish(self.job, work=self.work.root, approval=approval)

    @property
    def staging(self):
        return Path(self.work.staging)


@pytest.fixture
def parked(job):
    return Parked(job)


def published(job) -> bool:
    return Path(job["output"]).exists()


def test_what_was_approved_is_published_with_the_name_of_who_approved(parked, job):
    assert not published(job)
    report = parked.publish(parked.approval)
    told = report["outcome"]
    assert (told["state"], told["decision"], told["decided_by"], told["decided_at"]) == (
        *("published", "approved", "jane", "2025-06-01T12:00:00+00:00"),
    )
    assert json.loads((Path(job["output"]) / "_report.json").read_text()) == report
    assert pipeline.verify(parked.job, job["output"])["passed"]
    assert "approved by jane" in render_text(report)
    assert "approved by jane, 2025-06-01 12:00:00 UTC" in render_html(report)


def test_nothing_is_published_without_an_approval(parked, job):
    with pytest.raises(ApprovalError, match="needs an approval and got none"):
        parked.publish()
    assert not published(job)


def test_a_column_that_no_check_counts_is_sealed_too(parked, job):
    part = next(parked.staging.glob("part-*"))
    rows = pq.read_table(part)
    at = rows.schema.get_field_index("visit")
    pq.write_table(rows.set_column(at, "visit", pa.array(["w"] * len(rows))), part)
    with pytest.raises(StorageError, match="changed after they were checked"):
        parked.publish(parked.approval)
    assert not published(job)


def add_a_part(staging):
    part = next(staging.glob("part-*"))
    (staging / "part-99999-new.parquet").write_bytes(part.read_bytes())


def rename_a_part(staging):
    part = next(staging.glob("part-*"))
    part.rename(part.with_name("part-77777-x.parquet"))


def remove_a_part(staging):
    next(staging.glob("part-*")).unlink()


def flatter(staging):
    report = json.loads((staging / "_report.json").read_text())
    report["metrics"]["GCP"] = 0.0
    (staging / "_report.json").write_text(json.dumps(report))


@pytest.mark.parametrize("change", [add_a_part, rename_a_part, remove_a_part, flatter])
def test_nothing_is_published_but_what_was_shown(parked, job, change):
    change(parked.staging)
    with pytest.raises(StorageError, match="changed after they were checked"):
        parked.publish(parked.approval)
    assert not published(job)


def test_a_fragment_done_again_is_the_same_release(parked, job):
    """A part that is there is kept: a task that was done twice harms nothing."""
    before = publish.digest_of_parts(parked.work.staging)
    pipeline.anonymize_fragment(parked.fragments[0])
    assert publish.digest_of_parts(parked.work.staging) == before
    parked.publish(parked.approval)
    assert published(job)


def test_an_approval_of_another_release_counts_for_nothing(parked, job):
    with pytest.raises(StorageError, match="changed after they were checked"):
        parked.publish(parked.approval._replace(seal="0" * 64))
    assert not published(job)


@pytest.mark.parametrize("before", ["digest_of_parts", "publish"])
def test_a_publication_that_was_killed_is_done_again(parked, job, before, monkeypatch):
    def killed(*_arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(publish, before, killed)
        with pytest.raises(KeyboardInterrupt):
            parked.publish(parked.approval)
    assert not published(job)
    assert parked.publish(parked.approval)["outcome"]["decided_by"] == "jane"
    assert published(job)


def test_a_newer_release_is_not_replaced_by_an_older_one(job, monkeypatch):
    """Two runs wait side by side; Tuesday's is approved first, then somebody approves Monday's."""
    monday, tuesday = (parked_on(job, monkeypatch, night) for night in ("01", "02"))
    tuesday.publish(tuesday.approval)
    before = json.loads((Path(job["output"]) / "_report.json").read_text())
    with pytest.raises(StorageError, match=r"a newer release of .* was published while this one"):
        monday.publish(monday.approval)
    assert json.loads((Path(job["output"]) / "_report.json").read_text()) == before


def test_an_older_release_is_replaced_by_a_newer_one(job, monkeypatch):
    monday, tuesday = (parked_on(job, monkeypatch, night) for night in ("01", "02"))
    monday.publish(monday.approval)
    report = tuesday.publish(tuesday.approval)
    assert json.loads((Path(job["output"]) / "_report.json").read_text()) == report


def test_a_report_that_does_not_say_when_it_was_made_is_no_newer_one(job, monkeypatch):
    monday, tuesday = (parked_on(job, monkeypatch, night) for night in ("01", "02"))
    tuesday.publish(tuesday.approval)
    file = Path(job["output"]) / "_report.json"
    told = json.loads(file.read_text())
    del told["created"]
    file.write_text(json.dumps(told))
    assert monday.publish(monday.approval)["outcome"]["decided_by"] == "jane"


@pytest.mark.parametrize("content", ["", "[]", "null"])
def test_what_is_no_release_is_not_taken_for_a_newer_one(parked, job, content):
    Path(job["output"]).mkdir()
    (Path(job["output"]) / "_report.json").write_text(content)
    with pytest.raises(StorageError) as caught:
        parked.publish(parked.approval)
    assert "newer" not in str(caught.value)


def parked_on(job, monkeypatch, night):
    """A release that was checked on a night of June."""

    def at(told):
        return {**told, "created": f"2025-06-{night}T02:00:00+00:00"}

    with monkeypatch.context() as patched:
        assembled = wrapping_up.assembled
        patched.setattr(wrapping_up, "assembled", lambda *given: at(assembled(*given)))
        return Parked(job, run=f"night {night}")


def test_a_denied_release_says_so(parked):
    decision = reports.decided("rejected", "jane", "2025-06-01")
    report = reports.conclude(dict(parked.report), "rejected", decision=decision)
    assert render_text(report).startswith("REJECTED  nothing was published")
    assert "Rejected: nothing was published" in render_html(report)


def test_raw_rows_do_not_wait(parked):
    assert list((Path(parked.work.root) / "fragments").iterdir())
    parked.work.remove_fragments()
    parked.work.remove_fragments()
    assert not (Path(parked.work.root) / "fragments").exists()
    parked.publish(parked.approval)


def test_a_release_that_waits_says_so(parked):
    assert render_text(parked.report).startswith("WAITS FOR APPROVAL")
    page = render_html(parked.report)
    assert "<h2>Waits for approval: nothing is published yet</h2>" in page
    assert "<h2>Published</h2>" not in page


def test_the_seal_is_put_on_before_the_rows_are_counted(job, monkeypatch):
    """A part that changes while it is counted, or after, is not published."""
    counted = wrapping_up._counted

    def count_and_change(asked, run, *given):
        found = counted(asked, run, *given)
        remove_a_part(Path(run.work.staging))
        return found

    monkeypatch.setattr(wrapping_up, "_counted", count_and_change)
    parked = Parked(job)
    with pytest.raises(StorageError, match="changed after they were checked"):
        parked.publish(parked.approval)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("max_gcp", "max_gcp: GCP, the share of information lost, is"),
        ("max_risk", "max_risk: the highest risk of re-identification is 0.1429 (14.3 %), above"),
    ],
)
def test_a_limit_that_is_exceeded_refuses_the_release(job, option, said):
    with pytest.raises(PrivacyError) as caught:
        pipeline.run(pipeline.load_job({**job, option: 0.01}))
    message = str(caught.value)
    assert said in message
    assert "above the limit of 0.01 (1.0 %); " in message
    assert f"raise {option}; or set on_exceeded: ask" in message
    report = caught.value.report
    assert (report["rows"]["input"], report["rows"]["published"]) == (ROWS, 0)
    assert (report["outcome"]["state"], report["outcome"]["reason"]) == ("refused", message)
    page = render_html(report)
    assert "Refused: nothing was published" in page and option in page
    assert "Every requirement was checked again" not in page
    assert os.listdir(Path(job["output"]).parent) == []


def test_a_release_that_fails_its_check_is_refused_with_its_figures(job, monkeypatch):
    monkeypatch.setattr(wrapping_up, "lost_rows", lambda *_a: ["60 rows were read"])
    with pytest.raises(
        PrivacyError, match="refused and not published: 60 rows were read"
    ) as caught:
        pipeline.run(pipeline.load_job(job))
    report = caught.value.report
    assert (report["rows"]["published"], report["rows"]["checked"]) == (0, ROWS)
    assert report["verification"]["failures"] == ["60 rows were read"]
    assert not report["verification"]["passed"]
    assert "60 rows were read" in render_html(report)
    assert os.listdir(Path(job["output"]).parent) == []


def test_a_release_with_small_classes_is_refused_with_its_figures(job, monkeypatch):
    """A part that was changed between the tasks: a row of it is taken for one of another age."""

    def changed(path):
        for file in release_files(path):
            table = pa.Table.from_batches(file.batches())
            ages = ["1", *table["age"].to_pylist()[1:]]
            at = table.column_names.index("age")
            batches = table.set_column(at, "age", pa.array(ages)).to_batches()
            yield SimpleNamespace(
                name=file.name, columns=file.columns, batches=lambda _columns, of=batches: iter(of)
            )

    release_files = publish.release_files
    monkeypatch.setattr(publish, "release_files", changed)
    with pytest.raises(PrivacyError) as caught:
        pipeline.run(pipeline.load_job(job))
    report = caught.value.report
    assert report["achieved"]["k"] < 5
    assert report["risk"]["prosecutor_max"] > 1 / 5
    assert not report["verification"]["passed"]


def test_a_limit_that_is_reached_is_not_exceeded(job):
    report = pipeline.run(pipeline.load_job({**job, "max_risk": 1 / 7}))
    assert report["risk"]["prosecutor_max"] == 1 / 7
    assert "decision" not in report["outcome"]


@pytest.mark.parametrize(("limit", "refused"), [(9, True), (10, False), (0.1, True), (0.2, False)])
def test_suppressed_rows_have_a_limit_of_their_own(tmp_path, limit, refused):
    """Ten of sixty rows are alone in their class, and Samarati may suppress them."""
    rows = ["common"] * (ROWS - 10) + [f"rare{n}" for n in range(10)]
    pq.write_table(pa.table({"name": rows}), tmp_path / "in.parquet")
    job = pipeline.load_job(
        {
            "input": str(tmp_path / "in.parquet"),
            "output": str(tmp_path / "release"),
            "k": 5,
            "quasi_identifiers": ["name=set"],
            "algorithm": "samarati",
            "samarati": {"max_suppressed": 10},
            "max_suppressed": limit,
        }
    )
    if not refused:
        assert pipeline.run(job)["rows"]["suppressed"] == 10
        return
    with pytest.raises(PrivacyError, match=r"max_suppressed: 10 of 60 rows are suppressed, and"):
        pipeline.run(job)
    assert not (tmp_path / "release").exists()


def test_a_limit_may_ask_instead(job):
    job = pipeline.load_job({**job, "max_gcp": 0.01, "on_exceeded": "ask"})
    asked = []
    report = pipeline.run(job, approve=lambda report: asked.append(report) or "jane")
    assert any(note.startswith("max_gcp: GCP") for note in asked[0]["notes"])
    assert asked[0]["outcome"]["state"] == "waiting"
    assert report["outcome"]["decided_by"] == "jane"


def test_nobody_is_asked_about_a_release_within_its_limits(job):
    job = pipeline.load_job({**job, "max_gcp": 1, "on_exceeded": "ask"})
    pipeline.run(job, approve=lambda _report: pytest.fail("was asked"))


def test_a_run_that_nobody_approves_publishes_nothing(job):
    with pytest.raises(ApprovalError, match="got none"):
        pipeline.run(
            pipeline.load_job({**job, "require_approval": True}), approve=lambda _report: None
        )
    assert os.listdir(Path(job["output"]).parent) == []


def test_where_nobody_can_be_asked_no_work_is_done(job, monkeypatch):
    monkeypatch.setattr("mondrian_ops.pipeline.api.partition", lambda *_a: pytest.fail("worked"))
    with pytest.raises(ApprovalError, match="require_approval: nobody can be asked"):
        pipeline.run(pipeline.load_job({**job, "require_approval": True}))


class TestInMemory:
    """`anonymize()` hands out a table: whoever calls it answers for it."""

    JOB: ClassVar = {"k": 5, "quasi_identifiers": ["age", "sex"], "cut": "median"}

    def test_a_limit_refuses(self, table):
        with pytest.raises(PrivacyError, match="max_gcp: GCP"):
            anonymize(table, {**self.JOB, "max_gcp": 0.01})

    def test_an_approval_is_asked_for(self, table):
        job = {**self.JOB, "require_approval": True}
        with pytest.raises(ApprovalError, match="pass approve="):
            anonymize(table, job)
        with pytest.raises(ApprovalError, match="got none"):
            anonymize(table, job, approve=lambda _report: None)
        released, report = anonymize(table, job, approve=lambda _report: "jane")
        assert released.num_rows == ROWS
        assert report["outcome"]["decided_by"] == "jane"


class TestCommandLine:
    """`run` asks on a terminal, and does nothing where there is none."""

    @pytest.fixture
    def command(self, job, tmp_path):
        file = tmp_path / "job.yaml"
        file.write_text(yaml.safe_dump({**job, "require_approval": True}))
        return [sys.executable, "-m", "mondrian_ops", "run", str(file)]

    @pytest.fixture
    def without_terminal(self, command, monkeypatch, capsys):
        """Its status, output and errors."""

        def run(*more):
            with open(os.devnull) as nothing:
                monkeypatch.setattr(sys, "stdin", nothing)
                status = cli.main([*command[3:], *more])
            return status, *capsys.readouterr()

        return run

    def test_without_a_terminal_it_says_what_to_do_before_any_work(self, without_terminal, job):
        status, _, errors = without_terminal()
        assert status == 1
        assert "no terminal to ask on; run again with --approve" in errors
        assert errors.count("\n") == 1  # and no line of progress
        assert not published(job)

    def test_it_can_be_approved_beforehand(self, without_terminal, job):
        status, output, _ = without_terminal("--approve", "--json")
        assert status == 0
        assert json.loads(output)["outcome"]["decision"] == "approved"
        assert published(job)

    def test_approving_beforehand_lifts_no_limit(self, without_terminal, job):
        status, _, errors = without_terminal("--approve", "--set", "max_risk=0.01")
        assert status == 1
        assert "max_risk: " in errors
        assert not published(job)

    @pytest.mark.parametrize(
        ("answer", "status"), [("y", 0), ("", 1), *in_soak([("yes", 0), ("n", 1)])]
    )
    def test_on_a_terminal_it_shows_the_report_and_asks(self, command, job, answer, status):
        with on_terminal(command) as (process, screen):
            shown = read_until(screen, b"[y/N] ")
            assert b"WAITS FOR APPROVAL" in shown
            assert b"k-anonymity" in shown
            assert not published(job)
            os.write(screen, f"{answer}\n".encode())
            read_until(screen, None)
            assert process.wait() == status
        assert published(job) is (status == 0)
        assert len(os.listdir(Path(job["output"]).parent)) == (status == 0)

    def test_it_can_be_interrupted_while_it_asks(self, command, job):
        with on_terminal(command) as (process, screen):
            read_until(screen, b"[y/N] ")
            process.send_signal(signal.SIGINT)
            read_until(screen, None)
            assert process.wait() == 130
        assert os.listdir(Path(job["output"]).parent) == []


class on_terminal:  # noqa: N801 - used as a function
    """A command on a terminal of its own."""

    def __init__(self, command):
        self._command = command

    def __enter__(self):
        self._screen, end = pty.openpty()
        self._process = subprocess.Popen(
            self._command, stdin=end, stdout=end, stderr=end, start_new_session=True
        )
        os.close(end)
        return self._process, self._screen

    def __exit__(self, *_error):
        self._process.kill()
        self._process.wait()
        os.close(self._screen)


def read_until(screen, wanted):
    """What the terminal shows until that; all there is, until it is closed, where it is None."""
    shown = b""
    while wanted is None or wanted not in shown:
        select.select([screen], [], [])
        try:
            read = os.read(screen, 4096)
        except OSError:  # the other end is closed
            read = b""
        if not read:
            assert wanted is None, shown.decode()
            return shown
        shown += read
    return shown


def decree(folder, job, **required):
    policy = {"name": "people", "inputs": [job["input"]], **required}
    file = folder / "policies.json"
    file.write_text(json.dumps({"unmatched": "allow", "policies": [policy]}))
    stores.use_policies(str(file))


@pytest.fixture
def people_policy(job, tmp_path):
    """A policy that wants releases approved."""
    decree(tmp_path, job, min_k=5, approval={"required": True})
    yield
    stores.use_policies(None)


@pytest.mark.usefixtures("people_policy")
def test_a_report_names_the_policies_that_held(job):
    report = pipeline.run(publish.check_job(pipeline.load_job(job)), approve=lambda _report: "jane")
    assert report["policies"] == ["people"]
    assert "policies        people" in render_text(report, 80)
    assert "<dt>Policies</dt><dd>people</dd>" in render_html(report)
