"""What decides that nobody is released twice: entries of every kind beside a drop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ledger_runs import KEY, Run, impatient, make_ledger, sketch_of
from mondrian_ops import storage
from mondrian_ops.core.errors import PrivacyError, StorageError
from mondrian_ops.pipeline import ledger

OWN = range(100)
OTHERS = range(100, 200)
HASHES = np.random.default_rng(1).integers(0, 1 << 63, 5_000).tolist()


class Desk:
    """A ledger into which entries are put, and a drop that is compared with them."""

    def __init__(self, here: Path) -> None:
        self.here = here
        make_ledger(str(here / "ledger"))
        self.ledger = storage.Ledger(str(here / "ledger"))
        self.run = Run(str(here), "own", OWN)

    def entry(self, people: Any = OTHERS, sure: bool = True, **keys: Any) -> dict[str, Any]:
        """Note a release of others, as published and sure."""
        number = len(self.ledger.noted().entries)
        told = {
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
        self.ledger.write(told)
        if sure:
            self.ledger.make_sure(told)
        return {**told, "sure": sure}

    def pending(self, people: Any = OTHERS, **keys: Any) -> dict[str, Any]:
        """Note a release that waits in its working files."""
        number = len(self.ledger.noted().entries)
        other = Run(str(self.here), f"pending{number}", [])
        held = {"token": other.work.token, "work": other.work.root, "output": other.output}
        return self.entry(people, sure=False, **held, **keys)

    def publish(self) -> None:
        self.run.publish()

    def refused(self, said: str) -> None:
        """Each of the three comparisons refuses the drop; the second one with its report."""
        with pytest.raises(PrivacyError, match=said):
            ledger.refuse(self.run.job, self.run.work)
        report: dict[str, Any] = {"notes": []}
        with pytest.raises(PrivacyError, match=said) as caught:
            ledger.note(self.run.job, self.run.work, report)
        assert caught.value.report is report
        before = self.ledger.noted()
        with pytest.raises(PrivacyError, match=said):
            self.publish()
        assert not self.run.is_published
        assert len(self.ledger.noted().entries) == len(before.entries)

    def notes(self) -> list[str]:
        """What the report is told where the job only warns."""
        report: dict[str, Any] = {"notes": []}
        warned = Run(str(self.here), "warned", OWN, "warn")
        ledger.refuse(warned.job, warned.work)
        ledger.note(warned.job, warned.work, report)
        return report["notes"]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    impatient(monkeypatch)
    return Desk(tmp_path)


def test_others_are_in_nobodys_way(desk):
    desk.entry()
    desk.pending()
    assert desk.notes() == []
    ledger.refuse(desk.run.job, desk.run.work)
    desk.publish()
    (own,) = (each for each in desk.ledger.noted().entries if each["output"] == desk.run.output)
    assert own["sure"]
    assert own["token"] == storage.current_token(desk.run.output)
    assert own["time"] > "2025"
    assert own["rows"] == {"published": 10}
    assert own["achieved"] == {"k": 2}
    assert own["dataset"] == desk.run.output


def test_one_person_who_was_released_is_one_too_many(desk):
    desk.entry(range(99, 200))
    said = "1.0 % of its people are in the release of people of 2025-01-01 too; releases of"
    desk.refused(f"overlap: the release is refused and not published: {said}")
    assert len(desk.notes()) == 1
    assert desk.notes()[0].startswith(said)


def test_the_same_drop_comes_first_then_the_largest_share_then_the_latest(desk):
    for people in (range(40), range(50), OWN, range(50, 100)):
        desk.entry(people)
    (note,) = desk.notes()
    assert note.startswith("the same drop was released as people on 2025-01-03 (and in 3 more); ")
    found = ledger._compared(desk.run.work, desk.ledger.noted().entries)
    assert [each.time[-2:] for each in found.overlaps] == ["03", "04", "02", "01"]
    assert [each.same for each in found.overlaps] == [True, False, False, False]


@pytest.mark.parametrize("key", ["", "~"])  # before and after any key
def test_a_release_of_another_key_cannot_be_compared(desk, key):
    desk.entry(key=key)
    said = r"1 release\(s\) in the ledger were recorded with another key"
    desk.refused(said)
    assert len(desk.notes()) == 1


@pytest.mark.parametrize("by", [[], ["zip"]])  # before and after the drop's
def test_releases_by_other_columns_are_counted(desk, by):
    desk.entry(OWN, by=by)
    desk.entry(OWN, by=by)
    ledger.refuse(desk.run.job, desk.run.work)
    (note,) = desk.notes()
    assert note.startswith("2 release(s) in the ledger tell people apart by other columns")


def test_an_overlap_of_few_with_many_would_not_show(desk):
    desk.run = Run(str(desk.here), "few", HASHES[:40])
    desk.entry(HASHES[40:])
    ledger.refuse(desk.run.job, desk.run.work)  # 33 of the 40 can be compared
    desk.entry(range(5000))
    desk.refused(r"1 release\(s\) in the ledger are so much larger")


def test_a_damaged_file_is_named_and_more_are_counted(desk):
    desk.entry(id="a")
    (desk.here / "ledger" / "releases" / "b.json").write_text("{}")
    desk.refused(r"in full: [^ ]*/b\.json is damaged.* restore .* overlap: warn")
    (desk.here / "ledger" / "releases" / "a.json").write_text("[]")
    assert "a.json and 1 more is damaged" in desk.notes()[0]


@pytest.mark.parametrize(
    ("people", "keys"),
    [(range(99, 120), {}), (OTHERS, {"key": ""}), (range(5000, 10_000), {})],
)
def test_what_may_be_published_at_any_moment_holds_up_who_may_share_somebody(desk, people, keys):
    desk.run = Run(str(desk.here), "few", range(90, 100))
    told = desk.pending(people, **keys)
    ledger.refuse(desk.run.job, desk.run.work)  # it is not there yet
    for _ in range(2):
        with pytest.raises(OSError, match=f"^overlap: 1 other run.*: {desk.ledger.file_of(told)}$"):
            desk.publish()
        assert not desk.run.is_published
        assert desk.ledger.noted().entries == [told]
    storage.WorkDir(told["work"]).remove()
    desk.publish()
    assert desk.run.is_published


@pytest.mark.parametrize("token", ["", "~"])  # before and after any token
def test_what_a_later_attempt_has_made_anew_is_not_in_the_way(desk, token):
    told = desk.pending(OWN)
    desk.ledger.write({**told, "token": token})
    desk.publish()
    assert desk.run.is_published


def test_nor_are_working_files_that_hold_no_release_any_more(desk):
    told = desk.pending(OWN)
    Path(f"{told['work']}/release").rename(desk.here / "withdrawn")
    desk.publish()
    assert desk.run.is_published


@pytest.mark.parametrize("becomes", ["gone", "released"])
def test_the_least_of_those_who_publish_at_once_waits_for_the_others(desk, monkeypatch, becomes):
    told = desk.pending(OWN, id="~")
    waited = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        assert len(waited) <= 3, "waits for nobody"
        if len(waited) < 3:
            return
        if becomes == "gone":
            desk.ledger.remove(told)
        else:
            storage.publish(f"{told['work']}/release", told["output"], told["token"])

    monkeypatch.setattr(ledger, "PATIENCE_S", 3600)
    monkeypatch.setattr(ledger, "sleep", sleep)
    if becomes == "gone":
        desk.publish()
        assert desk.run.is_published
    else:
        with pytest.raises(PrivacyError, match="same drop"):
            desk.publish()
    assert waited == [1.0] * 3


def test_the_others_give_way_at_once(desk, monkeypatch):
    for at in ("~", "!"):
        desk.pending(OWN, id=at)
    monkeypatch.setattr(ledger, "PATIENCE_S", 3600)
    with pytest.raises(OSError, match=r"overlap: 2 other run\(s\) may be publishing"):
        desk.publish()
    assert not desk.run.is_published


def test_who_waits_gives_up_after_a_while(desk, monkeypatch):
    desk.pending(OWN, id="~")
    times = iter([100.0, 150.0, 200.0])
    monkeypatch.setattr(ledger, "PATIENCE_S", 100.0)
    monkeypatch.setattr(ledger, "monotonic", lambda: next(times))
    pauses = iter([None])
    monkeypatch.setattr(ledger, "sleep", lambda _: next(pauses))
    with pytest.raises(OSError, match=r"overlap: 1 other run\(s\) may be publishing"):
        desk.publish()
    assert next(times, None) is None


def test_working_files_that_cannot_be_looked_at_may_hold_a_release(desk, monkeypatch):
    told = desk.pending(OWN)
    attempt = Path(told["work"], "attempt")
    for hidden in ("names_in", "read_file"):

        def forbidden(*_args: object) -> None:
            raise PermissionError

        with monkeypatch.context() as patched:
            patched.setattr(f"mondrian_ops.storage.workdir.{hidden}", forbidden)
            assert storage.may_publish(told["work"], "whoever")
    assert not storage.may_publish(told["work"], "another")
    attempt.unlink()  # they are being removed, in some order
    assert storage.may_publish(told["work"], told["token"])
    Path(told["work"], "release").rename(desk.here / "withdrawn")
    assert not storage.may_publish(told["work"], told["token"])


def test_whoever_only_warns_is_not_held_up(desk):
    desk.pending(OWN)
    warned = Run(str(desk.here), "warned", OWN, "warn")
    warned.publish()
    assert warned.is_published


def test_an_entry_counts_as_published_where_that_is_so_or_cannot_be_found_out(desk, caplog):
    told = desk.pending(OWN)
    storage.publish(f"{told['work']}/release", told["output"], told["token"])
    desk.refused("same drop")
    assert desk.ledger.noted().entries == [{**told, "sure": True}]
    (desk.here / "ledger" / "releases" / "e0.sure").unlink()
    desk.ledger.write({**told, "output": "s3://no-connection@bucket/out"})
    desk.refused("same drop")
    assert "e0: cannot tell whether it was published" in caplog.text
    desk.ledger.write({**told, "output": str(desk.here / "never")})
    caplog.clear()
    ledger.refuse(desk.run.job, desk.run.work)  # neither there nor on its way
    assert not caplog.records


def test_a_release_noted_by_several_attempts_is_one(desk):
    for _ in range(2):
        desk.entry(OWN, token="t", run="r")
    assert "more" not in desk.notes()[0]


def test_a_run_is_not_in_its_own_way(desk):
    own = ledger._entry(desk.run.job, desk.run.work, {"rows": {}, "achieved": {}})
    for at in ("sure", "unsure"):
        desk.ledger.write({**own, "id": at})
    desk.ledger.make_sure({**own, "id": "sure"})
    ledger.refuse(desk.run.job, desk.run.work)
    desk.publish()
    assert desk.run.is_published


def test_a_key_that_was_replaced_since_stops_the_publication(desk):
    ids = {storage.Ledger.key_id(key): key for key in (bytes([at] * 32) for at in range(16))}
    assert min(ids) < storage.Ledger.key_id(KEY) < max(ids)
    for key in (ids[min(ids)], ids[max(ids)]):
        storage.write_file(str(desk.here / "ledger" / "key"), key)
        with pytest.raises(StorageError, match="changed since this run began"):
            desk.publish()
    assert not desk.run.is_published
    assert desk.ledger.noted() == ([], [])


@pytest.mark.parametrize("kind", [StorageError, OSError])
def test_an_entry_is_taken_back_where_the_release_is_refused_for_good(desk, kind):
    with (
        pytest.raises(kind, match="no"),
        ledger.recorded(desk.run.job, desk.run.work, {"rows": {}, "achieved": {}}),
    ):
        (entry,) = desk.ledger.noted().entries
        assert entry["sure"] is False
        raise kind("no")
    assert len(desk.ledger.noted().entries) == (kind is OSError)  # a retry may publish it


def test_an_entry_that_cannot_be_taken_back_does_not_hide_why(desk, monkeypatch):
    def failing(*_args: object) -> None:
        raise OSError("disk")

    desk.entry(OWN)
    monkeypatch.setattr(storage.Ledger, "remove", failing)
    with pytest.raises(PrivacyError, match="same drop"):
        desk.publish()


def test_only_the_releases_own_entry_is_made_sure(desk):
    desk.pending()
    own = ledger._entry(desk.run.job, desk.run.work, {"rows": {}, "achieved": {}})
    for token in ("", own["token"], "~"):
        desk.ledger.write({**own, "id": f"own{token}", "token": token})
    ledger.confirm(desk.run.job, desk.run.work)
    sure = [each["token"] for each in desk.ledger.noted().entries if each["sure"]]
    assert sure == [own["token"]]


def test_an_entry_names_its_output_wherever_it_is_looked_at_from(desk, monkeypatch):
    monkeypatch.chdir(desk.here)
    relative = Run(".", "relative", OTHERS)
    for own, name in ((relative, "relative"), (desk.run, "own")):
        entry = ledger._entry(own.job, own.work, {"rows": {}, "achieved": {}})
        assert entry["output"] == f"{desk.here}/{name}"
        assert entry["work"].startswith(f"{desk.here}/.{name}.")


@pytest.mark.parametrize("size", [0, 31, 33])
def test_a_key_of_another_size_is_none(desk, size):
    storage.write_file(str(desk.here / "ledger" / "key"), bytes(size))
    with pytest.raises(StorageError, match=r"^ledger: .*/key is no key of 32 bytes; restore it"):
        desk.publish()


def test_how_sure_an_overlap_is_is_told():
    told = {"dataset": "people", "time": "today", "same": False}
    assert ledger.Overlap(share=0.3, error=0.01, **told).text.startswith("30.0 % (± 2.0 %) of its")
    assert ledger.Overlap(share=0.3, error=0, **told).text.startswith("30.0 % of its people")


def test_an_entry_is_a_json_file_that_is_not_hidden(desk):
    place = desk.here / "ledger" / "releases"
    told = desk.entry(OWN)
    for name in (".e0.json", "e0.json.tmp", "e0.txt"):
        (place / name).write_text(json.dumps(told) if name[0] == "." else "damaged")
    assert desk.ledger.noted() == ([told], [])
