"""Which store a location is on, and how another package adds one."""

from __future__ import annotations

import os
from importlib import import_module, metadata
from io import BytesIO
from pathlib import Path

import pytest

from added_criteria import EXAMPLE
from mondrian_ops.errors import InputError, StorageError
from mondrian_ops.job.policy import Policies
from mondrian_ops.publish import WorkDir, check_output, publish, published, release_files
from mondrian_ops.series.naming import is_one_series
from mondrian_ops.stores import look_up_with, options_of, policies, store, store_of, write_file
from mondrian_ops.stores.locations import WAITING, shown
from mondrian_ops.stores.remote import remote_store
from mondrian_ops.tables import open_table
from mondrian_ops.tables.discovery import lies_in
from staged_releases import stage

AZURE = "acme.dfs.core.windows.net"
STORES = {
    "file": "local",
    "hdfs": "hdfs",
    "webhdfs": "hdfs",
    "swebhdfs": "hdfs",
    "s3": "s3",
    "gs": "gcs",
    "abfs": "azure",
    "abfss": "azure",
}


class NoStore:
    """Of another kind."""


@pytest.fixture
def entry_points(monkeypatch, tmp_path):
    """Entry points of other packages, as an installed one gives them."""
    points = [
        metadata.EntryPoint(name, f"{__name__}:{kind}", store.GROUP)
        for name, kind in (
            ("shelf", "Shelf"),
            ("server", "Server"),
            ("nostore", "NoStore"),
            ("s3", "NoStore"),
            ("twice", "Shelf"),
            ("twice", "Server"),
            ("broken", "Missing"),
        )
    ]
    monkeypatch.syspath_prepend(str(EXAMPLE))
    shelf = import_module("shelf").ShelfStore
    # The same, with the names of hosts in its URLs, as most stores have them.
    server = type("Server", (shelf,), {"name": "server", "has_buckets": False})
    kinds = {"Shelf": shelf, "Server": server, "NoStore": NoStore}
    monkeypatch.setattr(
        metadata.EntryPoint, "load", lambda point: kinds[point.value.partition(":")[2]]
    )
    monkeypatch.setattr(metadata, "entry_points", lambda group: points)
    monkeypatch.setenv("SHELF_ROOT", str(tmp_path))
    store._store.cache_clear()
    yield
    store._store.cache_clear()
    look_up_with(None)


@pytest.mark.parametrize("scheme", STORES)
def test_each_scheme_has_its_store(scheme):
    assert store_of(f"{scheme.upper()}://place/x").name == STORES[scheme]
    assert store_of(f"{scheme}://place/x") is store_of(f"{scheme}://other/y")
    assert store_of("a/path").name == "local"


def test_a_store_of_another_package_takes_releases_and_gives_sources(entry_points, tmp_path):
    (tmp_path / "a").mkdir()
    write_file("shelf://a/in/rows.csv", b"n\n1\n2\n")
    assert open_table("shelf://a/in/*.csv").rows == 2
    for version in (1, 2):
        check_output("shelf://a/in", "shelf://a/out")
        publish(stage("shelf://a/staging", version), "shelf://a/out", f"token {version}")
        assert published("shelf://a/out", f"token {version}")
    names = [file.name for file in release_files("shelf://a/out")]
    assert names == ["part-00000-v2.parquet", "part-00001-v2.parquet"]
    assert [path.name for path in sorted(tmp_path.glob("a/*"))] == ["in", "out"]
    assert options_of(["shelf://a/x", "/local", "file:///local", "ftp://host/x"]) == {
        "shelf://a": {"folder": str(tmp_path / "a")}
    }


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("shelf://a_conn@a", "shelf://b_conn@a", True),
        ("SHELF://a", "shelf://b_conn@a", True),
        ("shelf://a", "shelf://A", False),
        ("shelf://a", "server://a", False),
        ("server://a_conn@host", "server://HOST", True),
        ("server://host:22", "server://b_conn@host:22", True),
        ("server://host", "server://other", False),
        ("gs://a_conn@data", "gs://b_conn@data", True),
        ("gs://data", "s3://data", False),
        (f"abfss://a_conn@data@{AZURE}", f"abfs://data@{AZURE.upper()}", True),
        (f"abfss://a_conn@data@{AZURE}", "abfss://b_conn@data", True),
        (f"abfss://unknown@data@{AZURE}", f"abfss://data@{AZURE}", True),
        (f"abfss://data@{AZURE}", f"abfss://data@other.{AZURE}", False),
    ],
)
def test_neither_connection_nor_spelling_is_a_way_around(entry_points, one, other, is_same):
    look_up_with(lambda kind, name: None if name == "unknown" else {"account_name": "acme"})
    policy = {"name": "patients", "inputs": [f"{one}/patients"], "min_k": 5}
    inputs = policies.inputs_of(Policies.read({"policies": [policy]}))
    assert bool(policies.met(inputs, f"{other}/patients/day.csv")) is is_same
    assert lies_in(f"{other}/x/out", f"{one}/x") is is_same
    assert lies_in(f"{one}/x/out", f"{other}/x") is is_same
    assert is_one_series(f"{one}/x/nights", f"{other}/x/nights") is is_same


class Unplugged(BytesIO):
    """A content of which half can be read; then the machine has an error."""

    def read(self, size: int | None = -1, /) -> bytes:
        if self.tell():
            raise OSError("unplugged")
        return super().read(1)


def test_a_name_on_the_example_has_the_old_content_until_it_has_the_new(
    entry_points, tmp_path, monkeypatch
):
    shelf, target = store_of("shelf://a/out/_SUCCESS"), tmp_path / "a" / "out" / "_SUCCESS"
    seen, replace = [], os.replace

    def watched(source: str, path: str) -> None:
        seen.append(target.read_bytes() if target.exists() else None)
        seen.append(Path(source).read_bytes())
        replace(source, path)

    monkeypatch.setattr(os, "replace", watched)
    write_file("shelf://a/out/_SUCCESS", b"old")
    write_file("shelf://a/staging/_SUCCESS", b"new")
    shelf.copy("shelf://a/staging/_SUCCESS", "shelf://a/out/_SUCCESS")
    assert seen == [None, b"old", b"old", b"new", b"old", b"new"]
    with pytest.raises(OSError, match="unplugged"):
        shelf.upload("shelf://a/out/_SUCCESS", Unplugged(b"more"))
    with pytest.raises(FileNotFoundError):
        shelf.copy("shelf://a/staging/none", "shelf://a/out/_SUCCESS")
    assert target.read_bytes() == b"new"
    assert [path.name for path in target.parent.iterdir()] == ["_SUCCESS"]


def test_nobody_else_enters_working_files_on_the_example(entry_points, tmp_path):
    directory = WorkDir("shelf://a/x/.out.mondrian_ops-1")
    directory.create()
    (private,) = (tmp_path / "a" / "x").iterdir()
    assert private.stat().st_mode & 0o777 == 0o700
    assert private.parent.stat().st_mode & 0o055
    with pytest.raises(FileExistsError):
        store_of("shelf://a/x").make_private("shelf://a/x")

    private.chmod(0o755)  # as one that was restored from a backup
    store_of(directory.root).keep_private(directory.root)
    assert private.stat().st_mode & 0o777 == 0o700
    (tmp_path / "a" / "link").symlink_to(private)
    with pytest.raises(StorageError, match="shelf://a/link: a link, or another user's"):
        store_of("shelf://a/link").keep_private("shelf://a/link")


def test_a_store_of_ours_cannot_be_replaced(entry_points):
    assert store_of("s3://bucket/key").name == "s3"


def test_what_is_no_store_is_named(entry_points):
    with pytest.raises(InputError, match=r"NoStore is not a subclass of .*Store"):
        store_of("nostore://a/x")


def test_an_unknown_scheme_names_those_that_there_are(entry_points):
    with pytest.raises(InputError, match="scheme 'ftp' is not available") as caught:
        store_of("ftp://secret_conn@host/x")
    assert "s3://" in str(caught.value)
    assert "shelf://" in str(caught.value)
    assert "secret_conn" not in str(caught.value)


def test_a_store_that_copies_nothing_says_what_it_lacks():
    with pytest.raises(StorageError, match="the store local copies no files"):
        store_of("/a").copy("/a", "/b")


@pytest.mark.parametrize(
    ("scheme", "problem"),
    [
        ("twice", r"twice://: two packages add a store of this name, .*:Server and .*:Shelf"),
        ("broken", r"broken://: the package .* cannot be imported .KeyError in .*:Missing"),
    ],
)
def test_a_package_that_is_wrong_is_named_and_hinders_no_other(entry_points, scheme, problem):
    with pytest.raises(InputError, match=problem):
        store_of(f"{scheme}://a/x")
    assert shown(f"{scheme}://a_conn@a/x") == f"{scheme}://a/x"
    assert store.schemes().count(scheme) == 1
    assert remote_store("shelf") is store_of("shelf://a/x")
    with pytest.raises(KeyError):
        remote_store("none")


def test_an_unknown_scheme_does_not_tell_where_rows_wait():
    with pytest.raises(InputError) as caught:
        store_of(f"ftp://host/x/{WAITING}/0123456789abcdef/000001-0123456789abcdef.parquet")
    assert f"ftp://host/x/{WAITING}/…/000001-….parquet: the scheme 'ftp'" in str(caught.value)
