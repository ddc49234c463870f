"""What decides that nobody is released twice: a drop beside entries of every kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ledger_runs import KEY, Run, impatient, make_ledger, sketch_of
from mondrian_ops import storage
from mondrian_ops.core.errors import PrivacyError, StorageError
from mondrian_ops.pipeline import overlap_check

OWN = range(100)
OTHERS = range(100, 200)
HASHES = np.random.default_rng(1).integers(0, 1 << 63, 5_000).tolist()


class Case:
    """A ledger into which entries are put, and a drop that is compared with them."""

    def __init__(self, here: Path) -> None:
        self.here = here
        make_ledger(str(here / "ledger"))
        self.ledger = storage.Ledger(str(here / "ledger"))
        self.run = Run(str(here), "own", OWN)

    def entry(self, people: Any = OTHERS, sure: bool = True, **keys: Any) -> dict[str, Any]:
        """Note a release of others, as published and sure."""
        number = len(self.ledger.read().entries)
        entry = {
            "id": f"e{number}",
            "run": f"r{number}",
            "token": f"t{number}",
            "work": str(self.here / f".out{number}"),
            "output": str(self.here / f"out{number}"),
            "dataset": "people",
            "time": f"2025-01-{number + 1:02d}",
            "key": storage.Ledger.key_id(KEY),
            "by": ["name"],
            "sketch": sketch_of(people).to_json(),
            **keys,
        }
        self.ledger.write(entry)
        if sure:
            self.ledger.mark_published(entry)
        return {**entry, "sure": sure}

    def pending(self, people: Any = OTHERS, **keys: Any) -> dict[str, Any]:
        """Note a release that waits in its working files."""
        number = len(self.ledger.read().entries)
        other = Run(str(self.here), f"pending{number}", [])
        held = {"token": other.work.token, "work": other.work.root, "output": other.output}
        return self.entry(people, sure=False, **held, **keys)

    def publish(self) -> None:
        self.run.publish()

    def refused(self, text: str) -> None:
        """Each of the three comparisons refuses the drop; the second one with its report."""
        with pytest.raises(PrivacyError, match=text):
            overlap_check.refuse(self.run.job, self.run.work)
        report: dict[str, Any] = {"notes": []}
        with pytest.raises(PrivacyError, match=text) as caught:
            overlap_check.note(self.run.job, self.run.work, report)
        assert caught.value.report is report
        before = self.ledger.read()
        with pytest.raises(PrivacyError, match=text):
            self.publish()
        assert not self.run.is_published
        assert len(self.ledger.read().entries) == len(before.entries)

    def notes(self) -> list[str]:
        """The notes of the report where the job only warns."""
        report: dict[str, Any] = {"notes": []}
        warned = Run(str(self.here), "warned", OWN, "warn")
        overlap_check.refuse(warned.job, warned.work)
        overlap_check.note(warned.job, warned.work, report)
        return report["notes"]


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    impatient(monkeypatch)
    return Case(tmp_path)


def test_others_are_in_nobodys_way(case):
    case.entry()
    case.pending()
    assert case.notes() == []
    overlap_check.refuse(case.run.job, case.run.work)
    case.publish()
    (own,) = (each for each in case.ledger.read().entries if each["output"] == case.run.output)
    assert own["sure"]
    assert own["token"] == storage.current_token(case.run.output)
    assert own["time"] > "2025"
    assert own["rows"] == {"published": 10}
    assert own["achieved"] == {"k": 2}
    assert own["dataset"] == case.run.output


def test_one_person_who_was_released_is_one_too_many(case):
    case.entry(range(99, 200))
    text = "1.0 % of its people are in the release of people of 2025-01-01 too; releases of"
    case.refused(f"overlap: the release is refused and not published: {text}")
    assert len(case.notes()) == 1
    assert case.notes()[0].startswith(text)


def test_the_same_drop_comes_first_then_the_largest_share_then_the_latest(case):
    for people in (range(40), range(50), OWN, range(50, 100)):
        case.entry(people)
    (note,) = case.notes()
    assert note.startswith("the same drop was released as people on 2025-01-03 (and in 3 more); ")
    compared = overlap_check._compared(case.run.work, case.ledger.read().entries)
    assert [each.time[-2:] for each in compared.overlaps] == ["03", "04", "02", "01"]
    assert [each.same for each in compared.overlaps] == [True, False, False, False]


@pytest.mark.parametrize("key", ["", "~"])  # before and after any key
def test_a_release_of_another_key_cannot_be_compared(case, key):
    case.entry(key=key)
    text = r"1 release\(s\) in the ledger were recorded with another key"
    case.refused(text)
    assert len(case.notes()) == 1


@pytest.mark.parametrize("by", [[], ["zip"]])  # before and after the drop's
def test_releases_by_other_columns_are_counted(case, by):
    case.entry(OWN, by=by)
    case.entry(OWN, by=by)
    overlap_check.refuse(case.run.job, case.run.work)
    (note,) = case.notes()
    assert note.startswith("2 release(s) in the ledger tell people apart by other columns")


def test_an_overlap_of_few_with_many_would_not_show(case):
    case.run = Run(str(case.here), "few", HASHES[:40])
    case.entry(HASHES[40:])
    overlap_check.refuse(case.run.job, case.run.work)  # 33 of the 40 can be compared
    case.entry(range(5000))
    case.refused(r"1 release\(s\) in the ledger are so much larger")


def test_a_damaged_file_is_named_and_more_are_counted(case):
    case.entry(id="a")
    (case.here / "ledger" / "releases" / "b.json").write_text("{}")
    case.refused(r"in full: [^ ]*/b\.json is damaged.* restore .* overlap: warn")
    (case.here / "ledger" / "releases" / "a.json").write_text("[]")
    assert "a.json and 1 more is damaged" in case.notes()[0]


@pytest.mark.parametrize(
    ("people", "keys"),
    [(range(99, 120), {}), (OTHERS, {"key": ""}), (range(5000, 10_000), {})],
)
def test_what_may_be_published_at_any_moment_holds_up_who_may_share_somebody(case, people, keys):
    case.run = Run(str(case.here), "few", range(90, 100))
    entry = case.pending(people, **keys)
    overlap_check.refuse(case.run.job, case.run.work)  # it is not there yet
    for _ in range(2):
        with pytest.raises(
            OSError, match=f"^overlap: 1 other run.*: {case.ledger.file_of(entry)}$"
        ):
            case.publish()
        assert not case.run.is_published
        assert case.ledger.read().entries == [entry]
    storage.WorkDir(entry["work"]).remove()
    case.publish()
    assert case.run.is_published


@pytest.mark.parametrize("token", ["", "~"])  # before and after any token
def test_what_a_later_attempt_has_made_anew_is_not_in_the_way(case, token):
    entry = case.pending(OWN)
    case.ledger.write({**entry, "token": token})
    case.publish()
    assert case.run.is_published


def test_nor_are_working_files_that_hold_no_release_any_more(case):
    entry = case.pending(OWN)
    Path(f"{entry['work']}/release").rename(case.here / "withdrawn")
    case.publish()
    assert case.run.is_published


@pytest.mark.parametrize("becomes", ["gone", "released"])
def test_the_least_of_those_who_publish_at_once_waits_for_the_others(case, monkeypatch, becomes):
    entry = case.pending(OWN, id="~")
    waited = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        assert len(waited) <= 3, "waits for nobody"
        if len(waited) < 3:
            return
        if becomes == "gone":
            case.ledger.remove(entry)
        else:
            storage.publish(f"{entry['work']}/release", entry["output"], entry["token"])

    monkeypatch.setattr(overlap_check, "PATIENCE_S", 3600)
    monkeypatch.setattr(overlap_check, "sleep", sleep)
    if becomes == "gone":
        case.publish()
        assert case.run.is_published
    else:
        with pytest.raises(PrivacyError, match="same drop"):
            case.publish()
    assert waited == [1.0] * 3


def test_the_others_give_way_at_once(case, monkeypatch):
    for at in ("~", "!"):
        case.pending(OWN, id=at)
    monkeypatch.setattr(overlap_check, "PATIENCE_S", 3600)
    with pytest.raises(OSError, match=r"overlap: 2 other run\(s\) may be publishing"):
        case.publish()
    assert not case.run.is_published


def test_who_waits_gives_up_after_a_while(case, monkeypatch):
    case.pending(OWN, id="~")
    times = iter([100.0, 150.0, 200.0])
    monkeypatch.setattr(overlap_check, "PATIENCE_S", 100.0)
    monkeypatch.setattr(overlap_check, "monotonic", lambda: next(times))
    pauses = iter([None])
    monkeypatch.setattr(overlap_check, "sleep", lambda _: next(pauses))
    with pytest.raises(OSError, match=r"overlap: 1 other run\(s\) may be publishing"):
        case.publish()
    assert next(times, None) is None


def test_working_files_that_cannot_be_looked_at_may_hold_a_release(case, monkeypatch):
    entry = case.pending(OWN)
    attempt = Path(entry["work"], "attempt")
    for hidden in ("names_in", "read_file"):

        def forbidden(*_args: object) -> None:
            raise PermissionError

        with monkeypatch.context() as patched:
            patched.setattr(f"mondrian_ops.storage.workdir.{hidden}", forbidden)
            assert storage.may_publish(entry["work"], "whoever")
    assert not storage.may_publish(entry["work"], "another")
    attempt.unlink()  # they are being removed, in some order
    assert storage.may_publish(entry["work"], entry["token"])
    Path(entry["work"], "release").rename(case.here / "withdrawn")
    assert not storage.may_publish(entry["work"], entry["token"])


def test_whoever_only_warns_is_not_held_up(case):
    case.pending(OWN)
    warned = Run(str(case.here), "warned", OWN, "warn")
    warned.publish()
    assert warned.is_published


def test_an_entry_counts_as_published_where_that_is_so_or_cannot_be_found_out(case, caplog):
    entry = case.pending(OWN)
    storage.publish(f"{entry['work']}/release", entry["output"], entry["token"])
    case.refused("same drop")
    assert case.ledger.read().entries == [{**entry, "sure": True}]
    (case.here / "ledger" / "releases" / "e0.sure").unlink()
    case.ledger.write({**entry, "output": "s3://no-connection@bucket/out"})
    case.refused("same drop")
    assert "e0: cannot tell whether it was published" in caplog.text
    case.ledger.write({**entry, "output": str(case.here / "never")})
    caplog.clear()
    overlap_check.refuse(case.run.job, case.run.work)  # neither there nor on its way
    assert not caplog.records


def test_a_release_noted_by_several_attempts_is_one(case):
    for _ in range(2):
        case.entry(OWN, token="t", run="r")
    assert "more" not in case.notes()[0]


def test_a_run_is_not_in_its_own_way(case):
    own = overlap_check._entry(case.run.job, case.run.work, {"rows": {}, "achieved": {}})
    for at in ("sure", "unsure"):
        case.ledger.write({**own, "id": at})
    case.ledger.mark_published({**own, "id": "sure"})
    overlap_check.refuse(case.run.job, case.run.work)
    case.publish()
    assert case.run.is_published


def test_a_key_that_was_replaced_since_stops_the_publication(case):
    ids = {storage.Ledger.key_id(key): key for key in (bytes([at] * 32) for at in range(16))}
    assert min(ids) < storage.Ledger.key_id(KEY) < max(ids)
    for key in (ids[min(ids)], ids[max(ids)]):
        storage.write_file(str(case.here / "ledger" / "key"), key)
        with pytest.raises(StorageError, match="changed since this run began"):
            case.publish()
    assert not case.run.is_published
    assert case.ledger.read() == ([], [])


@pytest.mark.parametrize("kind", [StorageError, OSError])
def test_an_entry_is_taken_back_where_the_release_is_refused_for_good(case, kind):
    with (
        pytest.raises(kind, match="no"),
        overlap_check.recorded(case.run.job, case.run.work, {"rows": {}, "achieved": {}}),
    ):
        (entry,) = case.ledger.read().entries
        assert entry["sure"] is False
        raise kind("no")
    assert len(case.ledger.read().entries) == (kind is OSError)  # a retry may publish it


def test_an_entry_that_cannot_be_taken_back_does_not_hide_why(case, monkeypatch):
    def failing(*_args: object) -> None:
        raise OSError("disk")

    case.entry(OWN)
    monkeypatch.setattr(storage.Ledger, "remove", failing)
    with pytest.raises(PrivacyError, match="same drop"):
        case.publish()


def test_only_the_releases_own_entry_is_made_sure(case):
    case.pending()
    own = overlap_check._entry(case.run.job, case.run.work, {"rows": {}, "achieved": {}})
    for token in ("", own["token"], "~"):
        case.ledger.write({**own, "id": f"own{token}", "token": token})
    overlap_check.confirm(case.run.job, case.run.work)
    sure = [each["token"] for each in case.ledger.read().entries if each["sure"]]
    assert sure == [own["token"]]


def test_an_entry_names_its_output_wherever_it_is_looked_at_from(case, monkeypatch):
    monkeypatch.chdir(case.here)
    relative = Run(".", "relative", OTHERS)
    for own, name in ((relative, "relative"), (case.run, "own")):
        entry = overlap_check._entry(own.job, own.work, {"rows": {}, "achieved": {}})
        assert entry["output"] == f"{case.here}/{name}"
        assert entry["work"].startswith(f"{case.here}/.{name}.")


@pytest.mark.parametrize("size", [0, 31, 33])
def test_a_key_of_another_size_is_none(case, size):
    storage.write_file(str(case.here / "ledger" / "key"), bytes(size))
    with pytest.raises(StorageError, match=r"^ledger: .*/key is not a key of 32 bytes; restore it"):
        case.publish()


def test_how_sure_an_overlap_is_is_told():
    entry = {"dataset": "people", "time": "today", "same": False}
    assert overlap_check.Overlap(share=0.3, error=0.01, **entry).text.startswith(
        "30.0 % (± 2.0 %) of its"
    )
    assert overlap_check.Overlap(share=0.3, error=0, **entry).text.startswith(
        "30.0 % of its people"
    )


def test_an_entry_is_a_json_file_that_is_not_hidden(case):
    place = case.here / "ledger" / "releases"
    entry = case.entry(OWN)
    for name in (".e0.json", "e0.json.tmp", "e0.txt"):
        (place / name).write_text(json.dumps(entry) if name[0] == "." else "damaged")
    assert case.ledger.read() == ([entry], [])
