"""What object stores cannot do in one step, and what their readers see meanwhile."""

from __future__ import annotations

import signal
import time

import pytest

from killed_publications import publish_and_kill
from mondrian_ops.errors import InputError, StorageError
from mondrian_ops.publish import WorkDir, check_output, objects, publish, release_files, work_path
from mondrian_ops.stores import names_in, write_file
from mondrian_ops.tables import open_table
from mondrian_ops.tables.discovery import data_files
from servers.stores import ObjectFolder
from staged_releases import stage, version_on


def versions(folder: ObjectFolder) -> set[int]:
    """Those in the rows of the release, read as this project reads one."""
    with folder.read_directly():
        return {
            version
            for file in release_files(folder.url("out"))
            for batch in file.batches()
            for version in batch["version"].to_pylist()
        }


def test_a_release_is_written_published_replaced_read_back_and_removed(object_folder):
    for version in (1, 2):
        work = WorkDir(work_path(object_folder.url("out"), "run"))
        work.create()
        stage(work.staging, version)
        check_output(object_folder.url("in"), object_folder.url("out"))
        publish(work.staging, object_folder.url("out"), work.token)
        assert version_on(object_folder) == version
        assert versions(object_folder) == {version}
        work.remove()
        assert [name for name in object_folder.names() if name != "out"] == []
    assert names_in(object_folder.url("out")) == dict.fromkeys(
        ["_SUCCESS", "_report.json", "part-00000-v2.parquet", "part-00001-v2.parquet"], False
    )


def test_a_source_is_found_in_directories_that_only_names_tell_of(object_folder):
    for name in ("a/1/x.csv", "a/2/y.csv", "a/_tmp/z.csv", "b.csv"):
        object_folder.put(f"in/{name}", b"n\n1\n")
    for pattern, count in (("in", 3), ("in/a", 2), ("in/*/2/*.csv", 1), ("in/**/*.csv", 4)):
        files = data_files(object_folder.url(pattern))
        assert len(files) == count, pattern
    assert names_in(object_folder.url("in")) == {"a": True, "b.csv": False}


# One module takes the steps on all three; the other tests here run on each.
@pytest.mark.parametrize(
    "object_folder",
    [
        pytest.param("s3_folder", marks=pytest.mark.s3, id="s3"),
        pytest.param("gcs_folder", marks=[pytest.mark.gcs, pytest.mark.soak], id="gcs"),
        pytest.param("azure_folder", marks=pytest.mark.azure, id="azure"),
    ],
    indirect=True,
)
@pytest.mark.parametrize("has_old", [True, pytest.param(False, marks=pytest.mark.soak)])
def test_killed_at_any_step_the_manifest_names_one_whole_release(object_folder, has_old):
    out, staging = object_folder.url("out"), object_folder.url("staging")
    stage(staging, 0)
    publish(staging, out, "run 0")
    stands = []
    for new in range(1, 60):
        if not has_old:
            WorkDir(out).remove()
        stage(staging, new)
        code = publish_and_kill(object_folder, f"run {new}", new)
        is_there = "_SUCCESS" in object_folder.names("out")
        version = version_on(object_folder) if is_there else None
        if is_there:
            assert versions(object_folder) == {version}
        check_output("/in", out)  # what a next run would do first
        left = [name for name in object_folder.names("out") if name.startswith("part-")]
        assert all(name.endswith(f"-v{version}.parquet") for name in left)
        publish(staging, out, f"run {new}")
        assert version_on(object_folder) == new
        assert object_folder.names("out") == [
            "_SUCCESS",
            "_report.json",
            f"part-00000-v{new}.parquet",
            f"part-00001-v{new}.parquet",
        ]
        assert object_folder.names() == ["out"]
        assert version in (new, new - 1 if has_old else None)
        stands.append(version == new)
        if code == 0:
            break
        assert code == -signal.SIGKILL
    else:
        pytest.fail("never ran to its end")
    # The old one until the one step, the new one from then on.
    assert stands == sorted(stands)
    assert stands.count(False) >= 4
    assert stands.count(True) >= 4


def test_the_retry_of_a_killed_publication_copies_what_is_missing(object_folder):
    parts = 30
    stage(object_folder.url("staging"), 1, parts)
    staged = int(time.time())
    while int(time.time()) == staged:  # a copy has to be younger than its part
        time.sleep(0.01)
    publish_and_kill(object_folder, "new", 8, object_folder.is_copy)
    there = sum(name.startswith("part-") for name in object_folder.names("out"))
    assert 0 < there < parts
    object_folder.server.requests.clear()
    publish(object_folder.url("staging"), object_folder.url("out"), "new")
    copied = [
        each
        for each in object_folder.server.requests
        if object_folder.is_copy(each) and "/out/part-" in each.path
    ]
    assert len(copied) == parts - there
    assert version_on(object_folder) == 1
    assert len(object_folder.names("out")) == parts + 2
    assert object_folder.names() == ["out"]


def test_a_first_publication_that_was_killed_stands_in_nobodys_way(object_folder):
    stage(object_folder.url("staging"), 1)
    # Both parts and the report are copied; the manifest is next.
    publish_and_kill(object_folder, "new", 3, object_folder.is_copy)
    assert "_report.json" in object_folder.names("out")
    assert "_SUCCESS" not in object_folder.names("out")
    check_output("/in", object_folder.url("out"))  # what a next run would do first
    assert object_folder.names("out") == []
    publish(object_folder.url("staging"), object_folder.url("out"), "new")
    assert version_on(object_folder) == 1


def test_readers_that_follow_the_manifest_read_one_release_while_another_comes(object_folder):
    stage(object_folder.url("staging"), 1)
    publish(object_folder.url("staging"), object_folder.url("out"), "old")
    stage(object_folder.url("staging"), 2)
    publish_and_kill(object_folder, "new", 2, object_folder.is_copy)
    listed = [name for name in object_folder.names("out") if name.startswith("part-")]
    assert len(listed) == 4  # who lists, sees both
    assert [file.name for file in release_files(object_folder.url("out"))] == [
        "part-00000-v1.parquet",
        "part-00001-v1.parquet",
    ]


def test_a_run_that_begins_during_a_publication_cannot_make_it_a_damaged_one(
    object_folder, monkeypatch
):
    stage(object_folder.url("staging"), 1)
    publish(object_folder.url("staging"), object_folder.url("out"), "old")
    stage(object_folder.url("staging"), 2)
    refuse_loss = objects._refuse_loss

    def begun_meanwhile(*arguments):
        check_output("/in", object_folder.url("out"))
        refuse_loss(*arguments)

    with monkeypatch.context() as patched, pytest.raises(OSError, match="2 of the copied parts"):
        patched.setattr(objects, "_refuse_loss", begun_meanwhile)
        publish(object_folder.url("staging"), object_folder.url("out"), "new")
    assert versions(object_folder) == {1}
    publish(object_folder.url("staging"), object_folder.url("out"), "new")
    assert version_on(object_folder) == 2


def test_a_part_that_the_manifest_names_and_that_is_gone_is_an_error(object_folder):
    stage(object_folder.url("staging"), 1)
    publish(object_folder.url("staging"), object_folder.url("out"), "old")
    object_folder.delete("out/part-00001-v1.parquet")
    with pytest.raises(InputError, match=r"part-00001-v1\.parquet: missing, though _SUCCESS"):
        list(release_files(object_folder.url("out")))


def test_what_a_bucket_does_not_have_is_said(object_folder):
    missing = object_folder.url().replace(object_folder.bucket, "no-such-bucket").rstrip("/")
    with pytest.raises(InputError, match="no such file or directory"):
        open_table(f"{missing}/in")
    with pytest.raises(StorageError, match="cannot be created"):
        WorkDir(work_path(f"{missing}/out", "run")).create()
    with pytest.raises(FileNotFoundError):
        write_file(f"{missing}/f", b"")
    with pytest.raises(InputError, match="no such file or directory"):
        open_table(f"{missing}/in")
    with pytest.raises(InputError, match=r"names no (bucket|container)"):
        open_table(f"{missing.partition(':')[0]}:///in")


@pytest.mark.s3
def test_a_server_that_does_not_answer_is_an_error_that_a_retry_may_cure(s3_folder, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(OSError, match="AWS Error NETWORK_CONNECTION"):
        open_table(s3_folder.url("in"))
