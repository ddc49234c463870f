"""What the texts of Azure's URLs and settings say; the rest is in tests/servers."""

from __future__ import annotations

import errno
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.fs as pa_fs
import pytest

from mondrian_ops.errors import InputError
from mondrian_ops.stores import azure, locations, look_up_with, options_of, store_access, store_of
from mondrian_ops.stores.remote import RemoteStore

HOST = "acme.dfs.core.windows.net"
VARIABLES = ("ACCOUNT", "KEY", "SAS_TOKEN", "CONNECTION_STRING")


@pytest.fixture(autouse=True)
def afresh(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(f"AZURE_STORAGE_{name}", raising=False)
    monkeypatch.setattr(store_access, "_given", {})
    yield
    look_up_with(None)


@pytest.mark.parametrize(
    ("authority", "connection", "rest"),
    [
        (f"data@{HOST}", "", f"data@{HOST}"),
        (f"my_conn@data@{HOST}", "my_conn", f"data@{HOST}"),
        ("my_conn@data", "my_conn", "data"),
        ("data", "", "data"),
    ],
)
def test_the_container_is_no_connection(authority, connection, rest):
    url = f"abfss://{authority}/a/b"
    assert store_of(url).split_authority(authority) == (connection, rest)
    assert locations.shown(url) == f"abfss://{rest}/a/b"
    named = locations.with_connection(url, "other")
    assert named == (url if connection else f"abfss://other@{authority}/a/b")


def test_the_url_or_the_environment_names_the_account(monkeypatch):
    monkeypatch.setenv("AZURE_STORAGE_KEY", "a2V5")
    assert options_of([f"abfss://data@{HOST}/x"]).popitem()[1] == {
        "account_name": "acme",
        "account_key": "a2V5",
    }
    with pytest.raises(InputError, match="the account is unknown"):
        options_of(["abfss://data/x"])
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", "acme")
    assert options_of(["abfs://data/x"]).popitem()[1]["account_name"] == "acme"


def test_keys_of_another_account_are_not_sent(monkeypatch):
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", "AccountName=other;AccountKey=a2V5==")
    assert options_of([f"abfss://data@{HOST}/x"]).popitem()[1] == {"account_name": "acme"}
    look_up_with(lambda kind, name: {"account_name": "other", "account_key": "a2V5"})
    with pytest.raises(InputError, match="'c' is of another account"):
        options_of([f"abfss://c@data@{HOST}/x"])


def test_another_cloud_of_azure_has_another_domain():
    found = options_of(["abfss://data@acme.dfs.core.chinacloudapi.cn/x"]).popitem()[1]
    assert found == {
        "account_name": "acme",
        "blob_storage_authority": ".blob.core.chinacloudapi.cn",
        "dfs_storage_authority": ".dfs.core.chinacloudapi.cn",
    }


@pytest.mark.parametrize(
    ("fields", "options"),
    [
        ({"login": "acme", "password": "k"}, {"account_name": "acme", "account_key": "k"}),
        (
            {
                "host": "https://acme.blob.core.windows.net/",
                "login": "app",
                "password": "s",
                "extra_dejson": {"tenant_id": "t"},
            },
            {"account_name": "acme", "client_id": "app", "client_secret": "s", "tenant_id": "t"},
        ),
        (
            {"host": "acme", "extra_dejson": {"sas_token": "?sv=1"}},
            {"account_name": "acme", "sas_token": "?sv=1"},
        ),
    ],
)
def test_a_connection_gives_what_arrow_takes(fields, options):
    empty = {"host": None, "login": None, "password": None, "extra_dejson": {}, "conn_id": "c"}
    connection = SimpleNamespace(**{**empty, **fields})
    assert azure.AzureStore().from_connection(connection) == options


def test_a_lock_that_a_killed_deletion_left_is_waited_for(monkeypatch):
    locked = [OSError(errno.EIO, "Azure Error: [LeaseAlreadyPresent] 409 Conflict")] * 2
    pauses = []

    def remove(store, url):
        if locked:
            raise locked.pop()

    monkeypatch.setattr(RemoteStore, "remove_file", remove)
    monkeypatch.setattr(azure.time, "sleep", pauses.append)
    azure.AzureStore().remove_file(f"abfss://data@{HOST}/x")
    assert not locked
    assert pauses == [1.0, 2.0]


def test_a_key_that_is_none_is_an_error_and_ends_no_process():
    with pytest.raises(InputError, match=r"cannot sign in \(.*Base64.*\); correct the key"):
        azure.AzureStore().connect({"account_name": "acme", "account_key": "no key"})


def test_a_service_that_gives_no_token_may_give_one_later(monkeypatch):
    text = (
        "Unknown error: Check for Hierarchical Namespace support on 'https://acme/none' failed: "
        "N5Azure4Core11Credentials23AuthenticationExceptionE: GetToken(): Could not resolve host.\n"
    )
    asked = []

    def get_file_info(path):
        asked.append(path)
        raise pa.ArrowException(text)

    store = SimpleNamespace(get_file_info=get_file_info)
    monkeypatch.setattr(pa_fs, "AzureFileSystem", lambda **_: store)
    with pytest.raises(OSError, match=r"cannot sign in \(GetToken\(\): Could not resolve host\)"):
        azure.AzureStore().connect({"account_name": "acme"})
    assert len(asked) == 1
