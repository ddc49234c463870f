"""The archive of releases: nothing is lost or doubled, whoever writes, compacts or is killed."""

from __future__ import annotations

import math
import re
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mondrian_ops.core.errors import StorageError
from mondrian_ops.storage import report_archive as archive_module
from mondrian_ops.storage.report_archive import LOOSE, ReportArchive

STEPS = ("write_file", "remove_file", "names_in")


def id_of(number: int) -> str:
    return f"{number:032x}"


def entry(number: int, time: int = 0, **more) -> dict:
    return {"id": id_of(number), "time": f"2025-06-01T00:00:00.{time:06d}Z", "rows": number, **more}


def index(root: Path) -> list[str]:
    return sorted(each.name for each in (root / "index").iterdir())


def test_an_empty_archive_has_no_entries(tmp_path):
    assert ReportArchive(str(tmp_path / "absent")).entries() == []


def test_entries_come_newest_first_and_the_latest_of_an_id_counts(tmp_path):
    archive = ReportArchive(str(tmp_path / "deep" / "reports"))
    archive.keep(entry(1, 1, state="waiting"), {"a.json": b"1"})
    archive.keep(entry(2, 2), {})
    archive.keep(entry(1, 3, state="published"), {"a.json": b"2", "b": b""})
    assert [each["id"] for each in archive.entries()] == [id_of(1), id_of(2)]
    found = ReportArchive(archive.url).entries()[0]
    assert (found["state"], found["files"]) == ("published", ["a.json", "b"])
    assert archive.file(id_of(1), "a.json") == b"2"
    archive.keep(entry(1, 2, state="late to arrive"), {})
    assert archive.entries()[0]["state"] == "published"


@pytest.mark.parametrize("bad", ["", "..", "A" * 32, id_of(1) + "/x", "../" + id_of(1), "x" * 32])
def test_an_id_that_is_none_is_refused(tmp_path, bad):
    archive = ReportArchive(str(tmp_path))
    with pytest.raises(StorageError, match="this is not the name of a file in it"):
        archive.file(bad, "a")
    with pytest.raises(StorageError, match="this is not the name of a file in it"):
        archive.keep({**entry(1), "id": bad}, {"a": b""})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("bad", ["", "..", ".a", "a/b", "../a", "/etc/passwd", "a\x00", "a" * 101])
def test_a_name_that_leaves_the_archive_is_refused(tmp_path, bad):
    archive = ReportArchive(str(tmp_path))
    with pytest.raises(StorageError, match="this is not the name of a file in it"):
        archive.file(id_of(1), bad)
    with pytest.raises(StorageError, match="this is not the name of a file in it"):
        archive.keep(entry(1), {bad: b""})


def test_a_link_that_leaves_the_archive_is_refused(tmp_path):
    (tmp_path / "secret").write_text("x")
    archive = ReportArchive(str(tmp_path / "reports"))
    archive.keep(entry(1), {"a": b"1"})
    (tmp_path / "reports" / "reports" / id_of(1) / "b").symlink_to(tmp_path / "secret")
    with pytest.raises(StorageError, match="leads out of the archive"):
        archive.file(id_of(1), "b")


def test_files_of_others_and_damaged_ones_are_passed_over(tmp_path, caplog):
    archive = ReportArchive(str(tmp_path))
    archive.keep(entry(1), {})
    for name, content in {
        "README": "x",
        ".0000001-x.jsonl.tmp": "{",
        f"0000001-{'0' * 32}.jsonl": '{"id": "',
        f"0000001-{'1' * 32}.jsonl": '{"id": "../../x", "time": ""}\n',
        f"0000001-{'2' * 32}.jsonl": "[]\n",
        f"0000001-{'3' * 32}.jsonl": "\xff\n",
    }.items():
        (tmp_path / "index" / name).write_bytes(content.encode("latin-1"))
    assert [each["id"] for each in ReportArchive(archive.url).entries()] == [id_of(1)]
    assert "damaged" in caplog.text
    for number in range(2, 2 * LOOSE):
        archive.keep(entry(number), {})
    assert len(archive.entries()) == 2 * LOOSE - 1
    assert f"0000001-{'0' * 32}.jsonl" in index(tmp_path)


def test_a_damaged_file_is_read_and_told_of_once(tmp_path, caplog, monkeypatch):
    archive = ReportArchive(str(tmp_path))
    archive.keep(entry(1), {})
    damaged = tmp_path / "index" / f"0000001-{'0' * 32}.jsonl"
    damaged.write_text("[" * 50_000)
    reads = []
    read_file = archive_module.read_file
    monkeypatch.setattr(
        archive_module, "read_file", lambda url: reads.append(url) or read_file(url)
    )
    for _ in range(3):
        assert [each["rows"] for each in archive.entries()] == [1]
    assert len(reads) == 2
    (said,) = caplog.messages
    assert said.startswith(f"{damaged}: damaged")


def test_many_entries_lie_in_few_files(tmp_path):
    archive = ReportArchive(str(tmp_path))
    number = 40 * LOOSE
    for each in range(number):
        archive.keep(entry(each, each), {})
    names = index(tmp_path)
    assert len(names) < LOOSE + math.log2(number)
    assert sum(int(name.partition("-")[0]) for name in names) == number
    found = ReportArchive(archive.url).entries()
    assert [each["rows"] for each in found] == list(reversed(range(number)))


def test_what_changes_often_is_rewritten_as_one(tmp_path):
    archive = ReportArchive(str(tmp_path))
    for time in range(LOOSE):
        archive.keep(entry(1, time), {})
    assert len(index(tmp_path)) == 1
    assert archive.entries() == [{**entry(1, LOOSE - 1), "files": []}]


def test_an_archive_on_a_remote_store(store, monkeypatch):
    monkeypatch.setattr(archive_module, "LOOSE", 4)
    archive = ReportArchive(store.url("deep/reports"))
    assert archive.entries() == []
    for number in range(9):
        archive.keep(entry(number, number), {"a.json": b"%d" % number})
    found = ReportArchive(archive.url)
    assert [each["rows"] for each in found.entries()] == list(reversed(range(9)))
    assert found.file(id_of(7), "a.json") == b"7"
    assert len(store.names("deep/reports/index")) < 5
    with pytest.raises(FileNotFoundError):
        found.file(id_of(10), "a.json")


def test_an_id_is_the_same_for_the_same_names_alone(tmp_path):
    root = str(tmp_path / "deep" / "reports")
    first = ReportArchive(root).id_of("dag", "run", "", -1)
    assert re.fullmatch("[0-9a-f]{32}", first)
    assert ReportArchive(root).id_of("dag", "run", "", -1) == first
    others = [
        ("dag", "run", "", 0),
        ("dagrun", "", "", -1),
        ("dag", "run", "g", -1),
        ("dag", "run"),
    ]
    ids = {ReportArchive(root).id_of(*names) for names in others}
    assert len(ids | {first}) == 5
    ReportArchive(root).keep({**entry(1), "id": first}, {"a": b"1"})
    assert ReportArchive(root).file(first, "a") == b"1"


def test_the_key_of_ids_is_made_once_and_is_no_entry(tmp_path):
    archive = ReportArchive(str(tmp_path))
    with ThreadPoolExecutor(8) as tasks:
        ids = set(tasks.map(lambda _: ReportArchive(archive.url).id_of("a run"), range(40)))
    assert len(ids) == 1
    assert [each.name for each in tmp_path.iterdir()] == ["key"]
    assert archive.entries() == []


@pytest.mark.parametrize(
    ("directory", "key"), [(0o755, 0o600), (0o700, 0o600), (0o775, 0o640), (0o777, 0o644)]
)
def test_who_may_keep_entries_may_read_the_key_of_ids_and_nobody_else(tmp_path, directory, key):
    tmp_path.chmod(directory)
    ReportArchive(str(tmp_path)).id_of("a run")
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == key


@pytest.mark.parametrize("content", [b"", b"short", bytes(33)])
def test_what_is_no_key_of_ids_is_not_used(tmp_path, content):
    (tmp_path / "key").write_bytes(content)
    with pytest.raises(StorageError, match=r"key is not a key of 32 bytes; remove it"):
        ReportArchive(str(tmp_path)).id_of("a run")
    assert (tmp_path / "key").read_bytes() == content


def test_a_key_of_ids_that_lies_elsewhere_is_not_used(tmp_path):
    (tmp_path / "elsewhere").write_bytes(bytes(32))
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "key").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="leads out of the archive"):
        ReportArchive(str(tmp_path / "reports")).id_of("a run")


def test_ids_of_an_archive_on_a_remote_store(store):
    url = store.url("deep/reports")
    assert ReportArchive(url).id_of("a run") == ReportArchive(url).id_of("a run")
    assert ReportArchive(url).id_of("a run") != ReportArchive(store.url("other")).id_of("a run")


@pytest.mark.s3
def test_a_listing_costs_few_requests_and_a_second_one_fewer(s3_folder):
    archive = ReportArchive(s3_folder.url("reports"))
    ReportArchive(archive.url)._add([entry(number, number) for number in range(10_000)])
    archive.keep(entry(10_000, 10_000), {})
    requests = s3_folder.server.requests
    del requests[:]
    reader = ReportArchive(archive.url)
    assert len(reader.entries()) == 10_001
    assert len(requests) <= 8
    del requests[:]
    reader.entries()
    assert len(requests) <= 4


# Steps of several actors in any order


class Killed(BaseException):
    """The process of an actor is gone."""


class Actor(threading.Thread):
    """Runs an action, and waits before each step on the store until it is told to take it."""

    def __init__(self, action: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self._action = action
        self._may, self._did = threading.Semaphore(0), threading.Semaphore(0)
        self.killed = self.over = False
        self.failure: BaseException | None = None
        self.start()
        self._did.acquire()

    def run(self) -> None:
        try:
            self.pause()
            self._action()
        except Killed:
            pass
        except BaseException as error:
            self.failure = error
        self.over = True
        self._did.release()

    def pause(self) -> None:
        self._did.release()
        self._may.acquire()
        if self.killed:
            raise Killed

    def steps(self, number: int) -> None:
        for _ in range(number):
            if not self.over:
                self._may.release()
                self._did.acquire()


@contextmanager
def step_by_step() -> Iterator[None]:
    """Actors pause before each step; a listing is torn, as that of a directory that changes."""
    real = {name: getattr(archive_module, name) for name in STEPS}

    def paused(name: str) -> Callable:
        def step(*arguments):
            me = threading.current_thread()
            if not isinstance(me, Actor):
                return real[name](*arguments)
            me.pause()
            if name != "names_in":
                return real[name](*arguments)
            before = real[name](*arguments)
            me.pause()
            after = real[name](*arguments)
            me.pause()
            return {each: False for each in before if each in after}

        return step

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(archive_module, "LOOSE", 3)
        for name in STEPS:
            patch.setattr(archive_module, name, paused(name))
        yield


@dataclass
class InterruptedWriter:
    """Writers and a reader of one archive, and what must be found in it."""

    root: str
    kept: dict[str, int] = field(default_factory=dict)
    tried: set[str] = field(default_factory=set)

    def write(self, writer: int) -> None:
        archive = ReportArchive(self.root)
        for time in range(1, 4):
            for each in (writer, 10 + time * 10 + writer):
                self.tried.add(id_of(each))
                archive.keep(entry(each, time * 10 + writer), {"r": b"x"})
                self.kept[id_of(each)] = max(self.kept.get(id_of(each), 0), time * 10 + writer)

    def look(self) -> None:
        archive = ReportArchive(self.root)
        for _ in range(4):
            self.check(archive, dict(self.kept))

    def check(self, archive: ReportArchive, kept: dict[str, int]) -> None:
        entries = archive.entries()
        found = {each["id"]: each["time"] for each in entries}
        assert len(entries) == len(found)
        assert kept.keys() <= found.keys() <= self.kept.keys() | self.tried
        for each, time in kept.items():
            assert found[each] >= entry(0, time)["time"]


def play(actors: list[Actor], turns: list[tuple[int, int, bool]], kills: int) -> None:
    """Let actors take steps, kill some, all but the last, and let the others come to an end."""
    for which, steps, kill in turns:
        actor = actors[which % len(actors)]
        actor.steps(steps)
        if kill and kills and not actor.over and actor is not actors[-1]:
            actor.killed = True
            kills -= 1
            actor.steps(1)
    for actor in actors:
        while not actor.over:
            actor.steps(1)
        if actor.failure:
            raise actor.failure


@given(
    writers=st.integers(2, 4),
    turns=st.lists(st.tuples(st.integers(0, 4), st.integers(1, 40), st.booleans()), max_size=40),
    kills=st.integers(0, 3),
)
def test_whoever_writes_compacts_reads_or_is_killed_nothing_kept_is_lost_or_doubled(
    writers, turns, kills
):
    with tempfile.TemporaryDirectory() as root, step_by_step():
        writing = InterruptedWriter(root)
        for each in range(2):
            ReportArchive(root).keep(entry(each), {})
            writing.kept[id_of(each)] = 0
        actors = [Actor(partial(writing.write, at)) for at in range(writers)]
        play([*actors, Actor(writing.look)], turns, kills)
        writing.check(ReportArchive(root), writing.kept)
