"""Which store a location is on, and how another package adds one."""

from __future__ import annotations

from importlib import metadata

import pyarrow.fs as pa_fs
import pytest

from mondrian_ops.errors import InputError
from mondrian_ops.job.policy import Policies
from mondrian_ops.publish import check_output, publish, published, read_release
from mondrian_ops.series.naming import is_one_series
from mondrian_ops.stores import look_up_with, options_of, policies, store, store_of, write_file
from mondrian_ops.stores.locations import parent_of
from mondrian_ops.stores.remote import RemoteStore
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


class Shelf(RemoteStore):
    """Another package's store: a folder of this machine, named by the authority of a URL."""

    name = "shelf"
    publication = "mondrian_ops.publish.objects:ObjectPublication"
    has_buckets = True
    root = ""

    def options(self, base):
        return {"root": self.root, "shelf": base.partition("://")[2]}

    def connect(self, options):
        return pa_fs.SubTreeFileSystem(
            f"{options['root']}/{options['shelf']}", pa_fs.LocalFileSystem()
        )

    def path_in(self, base, path):
        return path.lstrip("/")

    def upload(self, url, content):
        self.make_private(parent_of(url))  # as an object store, it needs no directory
        super().upload(url, content)


class Server(Shelf):
    """The same, with the names of hosts in its URLs, as most stores have them."""

    name = "server"
    has_buckets = False


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
        )
    ]
    kinds = {"Shelf": Shelf, "Server": Server, "NoStore": NoStore}
    monkeypatch.setattr(
        metadata.EntryPoint, "load", lambda point: kinds[point.value.partition(":")[2]]
    )
    monkeypatch.setattr(metadata, "entry_points", lambda group: points)
    monkeypatch.setattr(Shelf, "root", str(tmp_path))
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
    names = [file.name for file in read_release("shelf://a/out")]
    assert names == ["part-00000-v2.parquet", "part-00001-v2.parquet"]
    assert [path.name for path in sorted(tmp_path.glob("a/*"))] == ["in", "out"]
    assert options_of(["shelf://a/x", "/local", "file:///local", "ftp://host/x"]) == {
        "shelf://a": {"root": str(tmp_path), "shelf": "a"}
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


def test_a_store_of_ours_cannot_be_replaced(entry_points):
    assert store_of("s3://bucket/key").name == "s3"


def test_what_is_no_store_is_named(entry_points):
    with pytest.raises(InputError, match="NoStore is no subclass of Store"):
        store_of("nostore://a/x")


def test_an_unknown_scheme_names_those_that_there_are(entry_points):
    with pytest.raises(InputError, match="scheme 'ftp' is not available") as caught:
        store_of("ftp://secret_conn@host/x")
    assert "s3://" in str(caught.value)
    assert "shelf://" in str(caught.value)
    assert "secret_conn" not in str(caught.value)
