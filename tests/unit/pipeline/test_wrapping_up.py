"""What decides, beside the count, that a release may be published."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mondrian_ops import pipeline
from mondrian_ops import publish as publishing
from mondrian_ops import report as reports
from mondrian_ops.catalogue import publication
from mondrian_ops.engines.run import Run
from mondrian_ops.errors import ApprovalError, InputError, PrivacyError, StorageError
from mondrian_ops.phases import Phases
from mondrian_ops.pipeline import Approval
from mondrian_ops.verify import requirements
from people_runs import publications

ROWS = 24


# wrap-up


class Wrapping:
    """A run up to its wrap-up: two fragments of a table whose rows are all in classes of three."""

    def __init__(self, here: Path, run: str = "a run", **keys: Any) -> None:
        table = pa.table({"age": [at // 3 for at in range(ROWS)], "row": range(ROWS)})
        pq.write_table(table, here / "in.parquet")
        (here / "out").mkdir(exist_ok=True)
        self.out = here / "out" / "release"
        self.job = pipeline.load_job(
            {
                "input": str(here / "in.parquet"),
                "output": str(self.out),
                "k": 3,
                "quasi_identifiers": ["age"],
                "cut": "median",
                "partitioning": {"fragments": 2, "sample": 1.0},
                "retrieval": "scatter",
                **keys,
            }
        )
        self.work = publishing.WorkDir(publishing.work_path(str(self.out), run))
        fragments = pipeline.partition(self.job, work=self.work.root)
        self.summaries = [pipeline.anonymize_fragment(each) for each in fragments]

    def wrap_up(self, approve: Any = None) -> dict[str, Any]:
        keys = {"work": self.work.root, "summaries": self.summaries}
        return pipeline.wrap_up(self.job, **keys, approve=approve)

    def check(self) -> Any:
        return pipeline.check(self.job, work=self.work.root, summaries=self.summaries)

    def publish(self, approval: Approval | None = None) -> dict[str, Any]:
        return pipeline.publish(self.job, work=self.work.root, approval=approval)

    @property
    def parts(self) -> list[Path]:
        """The parts that are there, in the order of their fragments."""
        paths = [Path(self.work.part_path(summary.id)) for summary in self.summaries]
        return [path for path in paths if path.exists()]

    def rewrite(self, change: Any) -> None:
        """Change the rows of the first part."""
        pq.write_table(change(pq.read_table(self.parts[0])), self.parts[0])


def refused(wrapping: Wrapping, kind: type[Exception], *says: str) -> Exception:
    with pytest.raises(kind) as caught:
        wrapping.wrap_up()
    assert all(word in str(caught.value) for word in says), caught.value
    assert not wrapping.out.exists()
    return caught.value


def test_the_report_is_that_of_the_parts(tmp_path):
    wrapping = Wrapping(tmp_path)
    wrapping.summaries = [  # counted anew
        replace(each, equivalence_classes=-1, DP=-1) for each in wrapping.summaries
    ]
    seen, phases = [], Phases()
    keys = {"work": wrapping.work.root, "summaries": wrapping.summaries[::-1], "phases": phases}
    report = pipeline.wrap_up(wrapping.job, **keys, progress=lambda *step: seen.append(step))
    assert {"recount", "report", "publish"} <= phases.costs().keys()
    assert seen == [("wrap_up", 1, 2), ("wrap_up", 2, 2)]
    assert [each["id"] for each in report["fragments"]] == [0, 1]
    assert [each["equivalence_classes"] for each in report["fragments"]] == [4, 4]
    assert [each["DP"] for each in report["fragments"]] == [36, 36]
    assert report["verification"]["passed"] is True
    assert report["timings_s"]["wrap_up"] >= 0
    assert json.loads((wrapping.out / "_report.json").read_text()) == report
    assert len(pq.read_table(wrapping.out)) == ROWS


def test_a_weaker_release_does_not_replace_one_that_was_approved_meanwhile(tmp_path):
    better, worse = (Wrapping(tmp_path, run=f"k = {k}", k=k, require_approval=True) for k in (6, 3))
    approvals = [Approval(each.check().seal, "jane", "2025-06-01") for each in (better, worse)]
    better.publish(approvals[0])
    with pytest.raises(StorageError, match="k is 3, and was 6"):
        worse.publish(approvals[1])
    assert json.loads((worse.out / "_report.json").read_text())["job"]["k"] == 6


def test_who_may_be_asked_is_told_what_the_release_would_replace(tmp_path):
    Wrapping(tmp_path, run="before").wrap_up()
    assert "replaces" not in Wrapping(tmp_path).check().report
    asking = Wrapping(tmp_path, require_approval=True, replace="any")
    replaced = asking.check().report["replaces"]
    assert (replaced["k"], replaced["made_by"]) == (3, None)


def test_persons_are_those_of_the_part_that_was_read(tmp_path, monkeypatch):
    """An attempt that was given up for dead may write a part again, in another order."""
    wrapping = Wrapping(tmp_path, entity_id="row", partitioning={"fragments": 1})
    read = publishing.digest_of
    digests = [read, lambda _: "of another attempt"]
    monkeypatch.setattr(publishing, "digest_of", lambda path: digests.pop(0)(path))
    with pytest.raises(OSError, match="written again while it was read"):
        wrapping.check()


def test_a_second_attempt_returns_the_published_report(tmp_path):
    wrapping = Wrapping(tmp_path)
    assert pipeline.published_report(wrapping.job, wrapping.work.root) is None
    report = wrapping.wrap_up()
    wrapping.summaries = []
    assert wrapping.wrap_up() == report
    assert pipeline.published_report(wrapping.job, wrapping.work.root) == report


def test_what_is_published_is_not_made_again(tmp_path):
    wrapping = Wrapping(tmp_path)
    report = wrapping.wrap_up()

    def again():
        raise AssertionError("made again")

    assert pipeline.published_once(wrapping.job, wrapping.work.root, again) == report


@pytest.mark.parametrize("error", [InputError, StorageError])
def test_an_attempt_that_another_one_overtook_returns_its_report(tmp_path, error):
    wrapping = Wrapping(tmp_path)
    reports = []

    def overtaken():
        reports.append(wrapping.wrap_up())
        raise error("vanished")

    report = pipeline.published_once(wrapping.job, wrapping.work.root, overtaken)
    assert [report] == reports


def test_without_another_one_the_error_of_an_attempt_stands(tmp_path):
    wrapping = Wrapping(tmp_path)

    def alone():
        raise StorageError("vanished")

    with pytest.raises(StorageError, match="vanished"):
        pipeline.published_once(wrapping.job, wrapping.work.root, alone)
    assert not wrapping.out.exists()


def test_rows_that_were_lost_are_noticed(tmp_path):
    wrapping = Wrapping(tmp_path)
    whole = pq.read_table(wrapping.parts[0])
    least = min(whole["age"].to_pylist())
    wrapping.rewrite(
        lambda table: table.filter(pa.array(v != least for v in whole["age"].to_pylist()))
    )
    error = refused(wrapping, PrivacyError, "24 rows were read, but 21 are in the release")
    assert error.report["verification"]["passed"] is False
    assert error.report["verification"]["failures"] == [
        "24 rows were read, but 21 are in the release"
    ]


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_a_class_that_fails_is_refused_with_its_report(tmp_path, engine):
    wrapping = Wrapping(tmp_path)
    wrapping.job = replace(wrapping.job, engine=engine)  # whoever cut the rows, the check is here
    spoiled_value(wrapping)
    error = refused(wrapping, PrivacyError, "refused and not published", "k-anonymity")
    assert error.report["achieved"]["k"] == 1


def spoiled_value(wrapping: Wrapping) -> None:
    """One row of one file leaves its class."""

    def spoiled(table: pa.Table) -> pa.Table:
        ages = pa.array(["99", *table["age"].to_pylist()[1:]])
        return table.set_column(table.column_names.index("age"), "age", ages)

    wrapping.rewrite(spoiled)


def small_class(wrapping: Wrapping) -> None:
    """Two parts have a row each of a class of two."""
    for part in wrapping.parts:
        table = pq.read_table(part)
        ages = pa.array(["77", *table["age"].to_pylist()[1:]])
        pq.write_table(table.set_column(table.column_names.index("age"), "age", ages), part)


def swapped(wrapping: Wrapping) -> None:
    one, other = (part.read_bytes() for part in wrapping.parts)
    wrapping.parts[0].write_bytes(other)
    wrapping.parts[1].write_bytes(one)


BROKEN: dict[str, Any] = {
    "whole": lambda wrapping: None,
    "value": spoiled_value,
    "small class": small_class,
    "rows missing": lambda wrapping: wrapping.rewrite(lambda table: table.slice(3)),
    "rows doubled": lambda wrapping: wrapping.rewrite(lambda t: pa.concat_tables([t, t])),
    "part missing": lambda wrapping: wrapping.parts[0].unlink(),
    "part doubled": lambda wrapping: wrapping.parts[0].write_bytes(wrapping.parts[1].read_bytes()),
    "parts swapped": swapped,
    "of another run": lambda wrapping: wrapping.rewrite(
        lambda table: table.append_column("visit", pa.nulls(len(table)))
    ),
}
PASS = {"whole", "parts swapped", "part doubled"}  # they hold as many rows, in classes of three


@pytest.mark.parametrize("persons", [{}, {"entity_id": "row", "unlisted": "drop"}])
def test_what_is_broken_is_found_with_any_memory(tmp_path, monkeypatch, persons):
    """The same errors, reports and figures where all classes are on disk, bucket by bucket."""

    def outcome(wrapping: Wrapping) -> Any:
        try:
            report = wrapping.check().report
        except (PrivacyError, StorageError, FileNotFoundError) as error:
            return type(error), str(error).replace(wrapping.work.root, "")
        return {key: report[key] for key in report if key not in ("timings_s", "phases", "created")}

    wrapping = Wrapping(tmp_path, **persons)
    contents = {part: part.read_bytes() for part in wrapping.parts}
    counter_of = requirements.counter_of
    for name, broken in BROKEN.items():
        for part, content in contents.items():
            part.write_bytes(content)
        broken(wrapping)
        in_memory = outcome(wrapping)
        with monkeypatch.context() as tiny:
            tiny.setattr(requirements, "counter_of", partial(counter_of, held=0))
            assert outcome(wrapping) == in_memory
        assert isinstance(in_memory, dict) == (name in PASS), name


def test_rows_said_to_be_suppressed_must_be_allowed_to(tmp_path):
    wrapping = Wrapping(tmp_path)
    wrapping.summaries[0] = replace(wrapping.summaries[0], suppressed=1)
    refused(wrapping, PrivacyError, "1 rows are suppressed, and at most 0 may be")


def test_suppressed_rows_are_counted_with_the_others(tmp_path):
    samarati = {"algorithm": "samarati", "samarati": {"max_suppressed": 3, "choice": "minimal"}}
    wrapping = Wrapping(tmp_path, **samarati, cut="auto", quasi_identifiers=["age=ladder:2/6"])
    report = wrapping.wrap_up()
    rows = report["rows"]
    assert rows["published"] + rows["suppressed"] == rows["input"] == ROWS


def test_a_fragment_that_was_not_anonymized_is_missed(tmp_path):
    wrapping = Wrapping(tmp_path)
    both = wrapping.summaries
    wrapping.summaries = both[:1]
    refused(wrapping, StorageError, "1 of 2 fragments were not anonymized")
    wrapping.summaries = [both[0], both[0]]
    refused(wrapping, StorageError, "1 of 2 fragments were not anonymized")
    wrapping.summaries = both
    assert wrapping.wrap_up()["rows"]["published"] == ROWS


def test_a_part_that_vanished_and_one_too_many(tmp_path):
    wrapping = Wrapping(tmp_path)
    stray = wrapping.parts[0].with_name("part-00077-x.parquet")
    stray.write_bytes(b"")
    refused(wrapping, StorageError, "1 file(s) that belong to no fragment")
    stray.unlink()
    wrapping.parts[0].unlink()
    refused(wrapping, StorageError, "part of fragment 0: the file vanished")


def test_what_an_attempt_before_left_is_no_stray_file(tmp_path):
    wrapping = Wrapping(tmp_path)
    wrapping.check()
    for name in ("_report.json", "_report.html", "_SUCCESS"):
        (Path(wrapping.work.staging) / name).write_bytes(b"")
    assert wrapping.wrap_up()["rows"]["published"] == ROWS


def test_a_seal_is_put_only_where_somebody_may_be_asked(tmp_path):
    (tmp_path / "a").mkdir()
    assert Wrapping(tmp_path / "a").check().seal == ""
    (tmp_path / "b").mkdir()
    asking = Wrapping(tmp_path / "b", require_approval=True)
    report, seal = asking.check()
    parts = publishing.digest_of_parts(asking.work.staging)
    shown = reports.undecided(report)
    assert seal == hashlib.sha256((parts + json.dumps(shown)).encode()).hexdigest()


def test_who_is_asked_decides(tmp_path):
    wrapping = Wrapping(tmp_path, require_approval=True)
    refused(wrapping, ApprovalError, "needs an approval")
    with pytest.raises(ApprovalError):
        wrapping.wrap_up(approve=lambda report: None)
    assert not wrapping.out.exists()
    seen = []
    report = wrapping.wrap_up(approve=lambda report: seen.append(report) or "jane")
    assert report["outcome"]["decided_by"] == "jane"
    assert report["outcome"]["decision"] == "approved"
    assert [each["outcome"]["state"] for each in seen] == ["waiting"]
    assert json.loads((wrapping.out / "_report.json").read_text()) == report
    assert "jane" in (wrapping.out / "_report.html").read_text()


def test_an_approval_is_of_one_release(tmp_path):
    wrapping = Wrapping(tmp_path, require_approval=True)
    _, seal = wrapping.check()
    with pytest.raises(ApprovalError):
        wrapping.publish()
    for other in ("", "z"):  # before and after any seal
        with pytest.raises(StorageError, match="changed after they were checked"):
            wrapping.publish(Approval(other, "jane", "2025-06-01T12:00:00+00:00"))
    wrapping.rewrite(lambda table: table.set_column(1, "row", pa.array([0] * len(table))))
    with pytest.raises(StorageError, match="changed after they were checked"):
        wrapping.publish(Approval(seal, "jane", "2025-06-01T12:00:00+00:00"))
    assert not wrapping.out.exists()


def test_an_attempt_that_noted_the_approval_may_be_repeated(tmp_path):
    wrapping = Wrapping(tmp_path, require_approval=True)
    _, seal = wrapping.check()
    approval = Approval(seal, "jane", "2025-06-01T12:00:00+00:00")
    path = Path(wrapping.work.staging) / "_report.json"
    noted = reports.conclude(json.loads(path.read_text()), "published", decision=approval.decision)
    path.write_text(json.dumps(noted))
    assert wrapping.publish(approval)["outcome"]["decided_by"] == "jane"


@pytest.mark.parametrize(
    ("created", "is_newer"),
    [
        ("9999-01-01T00:00:00+00:00", True),
        ("1999-01-01T00:00:00+00:00", False),
        ("", False),
        (None, False),
    ],
)
def test_what_waited_does_not_replace_what_is_newer(tmp_path, created, is_newer):
    wrapping = Wrapping(tmp_path, require_approval=True)
    report, seal = wrapping.check()
    created = report["created"] if created is None else created  # at the same moment
    (tmp_path / "other").mkdir()
    before = Wrapping(tmp_path / "other")
    standing = before.wrap_up()
    os.rename(before.out, wrapping.out)
    (wrapping.out / "_report.json").write_text(json.dumps({**standing, "created": created}))
    approval = Approval(seal, "jane", "2025-06-01T12:00:00+00:00")
    if is_newer:
        with pytest.raises(StorageError, match="a newer release"):
            wrapping.publish(approval)
    else:
        assert wrapping.publish(approval)["outcome"]["decided_by"] == "jane"


def test_a_limit_that_is_exceeded_refuses_or_asks(tmp_path):
    wrapping = Wrapping(tmp_path, max_risk=0.1)
    error = refused(wrapping, PrivacyError, "max_risk", "0.3333")
    assert error.report["risk"]["prosecutor_max"] == pytest.approx(1 / 3)
    (tmp_path / "asking").mkdir()
    asking = Wrapping(tmp_path / "asking", max_risk=0.1, on_exceeded="ask")
    refused(asking, ApprovalError, "needs an approval")
    assert asking.wrap_up(approve=lambda report: "jane")["outcome"]["decided_by"] == "jane"


def test_nobody_is_asked_about_what_needs_no_approval(tmp_path):
    def approve(report: dict[str, Any]) -> str:
        raise AssertionError("asked")

    report = Wrapping(tmp_path, max_risk=0.5, on_exceeded="ask").wrap_up(approve)
    assert report["outcome"]["state"] == "published"
    assert "decision" not in report["outcome"]


def test_what_was_published_meanwhile_is_not_replaced(tmp_path):
    late, early = Wrapping(tmp_path, "late"), Wrapping(tmp_path, "early")
    published = early.wrap_up()
    with pytest.raises(StorageError, match="another run has published"):
        late.wrap_up()
    assert json.loads((late.out / "_report.json").read_text()) == published
    standing = publishing.current_token(str(late.out))
    Wrapping(tmp_path, "again").wrap_up()  # began when that stood there
    assert publishing.current_token(str(late.out)) != standing


def test_a_late_attempt_publishes_nothing_of_the_next_one(tmp_path, monkeypatch):
    """It goes on between its check and its publication, when the run was begun anew."""
    Wrapping(tmp_path, "old").wrap_up()
    wrapping = Wrapping(tmp_path)
    standing = publishing.current_token(str(wrapping.out))
    assert standing is not None
    publish = publishing.publish

    def late(*args: Any) -> None:
        again = pipeline.partition(wrapping.job, work=wrapping.work.root)
        pipeline.anonymize_fragment(again[0])
        publish(*args)

    monkeypatch.setattr(publishing, "publish", late)
    with pytest.raises(StorageError, match="belongs to a later attempt"):
        wrapping.wrap_up()
    assert publishing.current_token(str(wrapping.out)) == standing


def test_a_release_whose_report_is_gone_is_not_published(tmp_path, monkeypatch):
    wrapping = Wrapping(tmp_path)
    publish = publishing.publish

    def late(staging: str, *args: Any) -> None:
        Path(staging, "_report.json").unlink()
        publish(staging, *args)

    monkeypatch.setattr(publishing, "publish", late)
    with pytest.raises(StorageError, match="working files of this run vanished"):
        wrapping.wrap_up()
    assert not wrapping.out.exists()


def test_working_files_are_not_made_anew_while_somebody_publishes(tmp_path, monkeypatch):
    wrapping = Wrapping(tmp_path)
    monkeypatch.setattr(publishing, "check_output", lambda *_: None)
    monkeypatch.setattr("mondrian_ops.publish.local.LOCK_TIMEOUT_S", 0)
    monkeypatch.setattr("mondrian_ops.publish.workdir._STARTED", set())  # another process did
    with (
        publishing.publication_lock(str(wrapping.job.output)),
        pytest.raises(TimeoutError, match="another process has been publishing"),
    ):
        pipeline.partition(wrapping.job, work=wrapping.work.root)
    monkeypatch.undo()
    assert wrapping.wrap_up()["rows"]["published"] == ROWS


def test_an_attempt_after_publication_tidies_up_and_confirms(tmp_path, monkeypatch):
    """The first is killed between publishing and saying so in the catalogue."""
    wrapping = Wrapping(tmp_path, overlap="warn", identifiers=["row"])

    def killed(*_args: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(publication, "confirm", killed)
        wrapping.wrap_up()
    (recorded,) = publications()
    assert not recorded.published
    staging = Path(wrapping.work.staging)
    staging.mkdir(exist_ok=True)  # the release that was replaced, and not yet removed
    assert wrapping.wrap_up()["rows"]["published"] == ROWS
    (recorded,) = publications()
    assert recorded.published
    assert not staging.exists()


def test_people_who_were_released_before_are_refused(tmp_path):
    keys = {"overlap": "warn", "identifiers": ["row"]}
    for here in ("one", "two", "three"):
        (tmp_path / here).mkdir()
    again = Wrapping(tmp_path / "two", **{**keys, "overlap": "refuse"})
    warned = Wrapping(tmp_path / "three", **keys)
    assert Wrapping(tmp_path / "one", **keys).wrap_up()["overlap"]["releases"] == []
    refused(again, PrivacyError, "overlap: the release is refused")
    assert len(warned.wrap_up()["overlap"]["releases"]) == 1


def test_persons_are_counted_at_wrap_up(tmp_path):
    """Not rows: three rows of one person are of one."""
    wrapping = Wrapping(tmp_path, entity_id="row")
    assert wrapping.check().report["achieved"]["k"] == 3
    digest = publishing.digest_of(wrapping.work.part_path(0))
    kept = wrapping.work.read_persons(digest)
    one = pa.chunked_array([pa.array([kept[0].as_py()] * len(kept), kept.type)])
    wrapping.work.write_persons(digest, one)
    refused(wrapping, PrivacyError, "k = 3 persons by row")


def test_a_run_without_fragments_is_none(tmp_path):
    wrapping = Wrapping(tmp_path)
    run = Run(wrapping.work)
    run.save_state(replace(run.state, fragments=()))
    for part in wrapping.parts:
        part.unlink()
    wrapping.summaries = []
    refused(wrapping, StorageError, "there are no fragments to wrap up")


def test_wrap_up_needs_no_hierarchy_of_a_quasi_identifier(tmp_path, monkeypatch):
    """They may have been changed since: what is published was made with them as they were."""
    ages = tmp_path / "ages.csv"
    ages.write_text("".join(f"{at};{at // 4};*\n" for at in range(ROWS // 3)))
    monkeypatch.setenv("MONDRIAN_OPS_HIERARCHIES", str(tmp_path))
    wrapping = Wrapping(tmp_path, quasi_identifiers=["age=hierarchy:ages.csv"])
    ages.unlink()
    assert wrapping.wrap_up()["rows"]["published"] == ROWS
