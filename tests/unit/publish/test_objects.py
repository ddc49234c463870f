"""Publication on S3: how many requests it takes, and what a retry does of them again."""

from __future__ import annotations

import itertools
import json
import threading
from contextlib import suppress

import pytest

from mondrian_ops.errors import StorageError
from mondrian_ops.publish import WorkDir, check_output, objects, publish
from mondrian_ops.stores import write_file
from object_store import ObjectStore, connect
from tiers import in_soak

OUT = "bucket/out"
PART = b"PAR1 of a fragment"
REPORT = json.dumps({"job": {}, "equivalence_classes": 1}).encode()


def others(parts: int) -> int:
    """The most requests for anything but parts: some for the run, some for 1,000 names listed."""
    return 30 + 16 * (1 + parts // 1000)


@pytest.fixture
def store(monkeypatch) -> ObjectStore:
    made = ObjectStore()
    connect(made, monkeypatch)
    return made


def stage(store: ObjectStore, run: str, parts: int) -> str:
    """A checked release of so many parts in the working files of a run; their URL."""
    for number in range(parts):
        write_file(f"s3://bucket/{run}/part-{run}{number:05}.parquet", PART)
    write_file(f"s3://bucket/{run}/_report.json", REPORT)
    store.requests.clear()
    return f"s3://bucket/{run}"


def killed_after(store: ObjectStore, copies: int):
    """The process ends with the copy after so many, which is not carried out."""
    left = [copies]

    def kill(kind: str, key: str) -> None:
        if kind == "copy" and left[0] == 0:
            raise SystemExit
        left[0] -= kind == "copy"

    store.before = kill


def interrupt(store: ObjectStore, staging: str, token: str, copies: int, **options) -> None:
    killed_after(store, copies)
    with pytest.raises(SystemExit):
        publish(staging, f"s3://{OUT}", token, **options)
    store.before = lambda kind, key: None
    store.requests.clear()


def parts_in(store: ObjectStore, folder: str = OUT) -> list[str]:
    return [name for name in store.names(folder) if name.startswith("part-")]


@pytest.mark.parametrize("parts", [3, 1100])  # names are listed by the thousand
def test_one_copy_a_part_and_hardly_any_other_request(store, parts):
    publish(stage(store, "one", parts), f"s3://{OUT}", "one")
    assert store.requests["copy"] == parts + 2
    assert store.requests.total() - parts < others(parts)
    publish(stage(store, "two", parts), f"s3://{OUT}", "two")
    assert store.requests["copy"] == parts + 2
    assert store.requests["delete"] == parts + 1  # the replaced parts and the marker
    assert store.requests.total() - 2 * parts < others(parts)
    assert all(name.startswith("part-two") for name in parts_in(store))
    assert len(parts_in(store)) == parts


def test_copies_go_on_at_once_up_to_a_limit(store):
    at_once = threading.Barrier(objects.concurrently.__globals__["_AT_ONCE"])
    waiting = iter(range(at_once.parties))

    def together(kind: str, key: str) -> None:
        if kind == "copy" and next(waiting, None) is not None:
            at_once.wait(60)  # ends only if so many copies run together

    store.before = together
    publish(stage(store, "one", 40), f"s3://{OUT}", "one")
    assert len(parts_in(store)) == 40


@pytest.mark.parametrize("has_old", [True, *in_soak([False])])
@pytest.mark.parametrize("copies", [0, 1, 60, 99, 100, 101])
def test_the_retry_copies_only_the_parts_that_are_missing(store, copies, has_old):
    if has_old:
        publish(stage(store, "old", 5), f"s3://{OUT}", "old")
    staging, told = stage(store, "new", 100), []
    interrupt(store, staging, "new", copies)
    there = sum(name.startswith("part-new") for name in parts_in(store))
    assert min(copies, 100) <= there <= 100
    publish(staging, f"s3://{OUT}", "new", progress=lambda *at: told.append(at))
    assert store.requests["copy"] == 100 - there + 2
    assert told == [(done, 100) for done in range(there, 101)]
    assert parts_in(store) == [f"part-new{number:05}.parquet" for number in range(100)]
    assert store.names(OUT)[:2] == ["_SUCCESS", "_report.json"]
    assert store.names("bucket/new") == []


def test_a_part_that_was_written_again_since_it_was_copied_is_copied_again(store):
    staging = stage(store, "new", 3)
    interrupt(store, staging, "new", 3)
    again = PART[::-1]
    write_file(f"{staging}/part-new00001.parquet", again)
    write_file(f"s3://{OUT}/part-new00002.parquet", PART[:-1])  # of another size
    publish(staging, f"s3://{OUT}", "new")
    contents = [store.objects[f"{OUT}/{name}"][0] for name in parts_in(store)]
    assert contents == [PART, again, PART]
    assert store.requests["copy"] == 2 + 2


def test_a_copy_of_the_second_in_which_the_part_was_written_may_be_of_another_one(store):
    staging = stage(store, "new", 3)
    interrupt(store, staging, "new", 3)
    for name in parts_in(store):
        store.objects[f"{OUT}/{name}"] = b"x" * len(PART), store.objects[f"bucket/new/{name}"][1]
    publish(staging, f"s3://{OUT}", "new")
    assert {store.objects[f"{OUT}/{name}"][0] for name in parts_in(store)} == {PART}


def test_another_attempt_resumes_nothing(store):
    interrupt(store, stage(store, "one", 10), "one", 6)
    publish(stage(store, "two", 10), f"s3://{OUT}", "two")
    assert store.requests["copy"] == 10 + 2
    assert parts_in(store) == [f"part-two{number:05}.parquet" for number in range(10)]


def test_an_attempt_without_a_token_is_never_resumed(store):
    staging = stage(store, "one", 10)
    interrupt(store, staging, "", 6)
    publish(staging, f"s3://{OUT}")
    assert store.requests["copy"] == 10 + 2


def test_what_is_left_of_a_first_release_is_no_release_to_its_retry(store):
    """The report lies there already; a policy that lets nothing be replaced must not see it."""
    staging, seen = stage(store, "new", 3), []
    interrupt(store, staging, "new", 4)
    assert "_report.json" in store.names(OUT)
    publish(staging, f"s3://{OUT}", "new", lambda: seen.extend(store.names(OUT)))
    assert "_report.json" not in seen
    assert len(seen) == 4  # the marker and the parts


def test_a_file_of_others_beside_what_is_to_be_resumed_is_refused(store):
    staging = stage(store, "new", 3)
    interrupt(store, staging, "new", 2)
    write_file(f"s3://{OUT}/thesis.txt", b"ten years of work")
    with pytest.raises(StorageError, match=r"thesis\.txt is not part of a release"):
        publish(staging, f"s3://{OUT}", "new")


@pytest.mark.parametrize("other", ["begins", "publishes"])
@pytest.mark.parametrize("has_old", [True, False])
def test_of_two_runs_at_once_no_release_is_a_mixture_or_lacks_a_part(store, other, has_old):
    """The other comes between any two requests of the first."""
    for at in itertools.count(1):
        store.objects.clear()
        if has_old:
            publish(stage(store, "old", 2), f"s3://{OUT}", "old")
        one, two = stage(store, "one", 3), stage(store, "two", 3)
        left = [at]

        def come(kind: str, key: str, left=left, two=two) -> None:
            left[0] -= 1
            if left[0]:
                return
            with suppress(OSError, StorageError):
                if other == "begins":
                    check_output("/in", f"s3://{OUT}")
                else:
                    publish(two, f"s3://{OUT}", "two")

        store.before = come
        with suppress(OSError, StorageError):
            publish(one, f"s3://{OUT}", "one")
        store.before = lambda kind, key: None
        if f"{OUT}/_SUCCESS" in store.objects:
            manifest = json.loads(store.objects[f"{OUT}/_SUCCESS"][0])
            listed = {file["name"] for file in manifest["files"]}
            assert listed <= {*parts_in(store)}, (at, manifest["token"])
            assert all(name.startswith(f"part-{manifest['token']}") for name in listed)
        else:
            assert not has_old
        if left[0] > 0:
            break


def test_who_removes_leftovers_stops_when_their_attempt_goes_on(store):
    """Its retry comes between any two requests of a run that begins, but for the deletions."""
    for at in itertools.count(1):
        store.objects.clear()
        one = stage(store, "one", 3)
        interrupt(store, one, "one", 3)
        left = [at]

        def come(kind: str, key: str, left=left, one=one) -> None:
            left[0] -= kind != "delete"
            if left[0] == 0 and kind != "delete":
                publish(one, f"s3://{OUT}", "one")

        store.before = come
        with suppress(StorageError):
            check_output("/in", f"s3://{OUT}")
        store.before = lambda kind, key: None
        if left[0] > 0:
            break
        assert len(parts_in(store)) == 3, at
    assert at > 5
    assert store.names(OUT) == []


def test_an_attempt_stops_if_somebody_is_about_to_delete_its_parts(store):
    staging = stage(store, "one", 3)
    deletes, ended = threading.Event(), threading.Event()

    def begin() -> None:
        with suppress(StorageError):
            check_output("/in", f"s3://{OUT}")

    begun = threading.Thread(target=begin)

    def meet(kind: str, key: str) -> None:
        if key == f"{OUT}/_report.json" and kind == "copy":
            begun.start()
            deletes.wait(60)
        if kind == "delete" and threading.current_thread() is not threading.main_thread():
            deletes.set()
            ended.wait(60)

    store.before = meet
    with pytest.raises(OSError, match="another run began meanwhile"):
        publish(staging, f"s3://{OUT}", "one")
    ended.set()
    begun.join()
    assert "_SUCCESS" not in store.names(OUT)


def test_working_files_are_deleted_a_thousand_at_a_time(store):
    stage(store, "run", 2500)
    WorkDir("s3://bucket/run").remove()
    assert store.requests == {"delete many": 3}
    assert store.objects == {}


def test_what_is_published_while_leftovers_are_listed_stays(store):
    interrupt(store, stage(store, "new", 3), "new", 4)

    def publish_it(kind: str, key: str) -> None:
        if (kind, key) == ("list", OUT):
            store.before = lambda kind, key: None
            store.copy_file("bucket/new/_SUCCESS", f"{OUT}/_SUCCESS")

    store.before = publish_it
    objects.ObjectPublication().recover(f"s3://{OUT}")
    assert len(parts_in(store)) == 3


def test_a_file_beside_the_parts_that_the_new_release_does_not_have_goes(store):
    staging = stage(store, "one", 3)
    write_file(f"{staging}/_counterfeits.parquet", PART)
    publish(staging, f"s3://{OUT}", "one")
    assert "_counterfeits.parquet" in store.names(OUT)
    publish(stage(store, "two", 3), f"s3://{OUT}", "two")
    assert [name for name in store.names(OUT) if name.startswith("_")] == [
        "_SUCCESS",
        "_report.json",
    ]


def test_who_was_killed_while_the_marker_was_written_stands_in_nobodys_way(store):
    write_file(f"s3://{OUT}/.{objects.MARKER}.0123abcd.tmp", b"token")
    check_output("s3://bucket/in", f"s3://{OUT}")
    publish(stage(store, "a", 2), f"s3://{OUT}", "token")
    assert sorted(name for name in store.objects if name.startswith(OUT)) == [
        f"{OUT}/{name}"
        for name in ("_SUCCESS", "_report.json", "part-a00000.parquet", "part-a00001.parquet")
    ]
    write_file("s3://bucket/other/.somebody.0123abcd.tmp", b"")
    with pytest.raises(StorageError, match="holds something that is not a release"):
        check_output("s3://bucket/in", "s3://bucket/other")
