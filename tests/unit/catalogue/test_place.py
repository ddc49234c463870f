"""Where the catalogue is."""

from __future__ import annotations

from pathlib import Path

import pytest

from mondrian_ops import catalogue
from mondrian_ops.catalogue import Place
from mondrian_ops.errors import StorageError


def test_the_environment_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MONDRIAN_OPS_CATALOGUE", str(tmp_path / "a" / "c.db"))
    monkeypatch.delenv("MONDRIAN_OPS_CATALOGUE_KEY")
    assert len(catalogue.current().key) == 32
    assert sorted(path.name for path in (tmp_path / "a").glob("c*[by]")) == [
        "c.db",
        "catalogue.key",
    ]


def test_there_is_no_other_one_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MONDRIAN_OPS_CATALOGUE")
    with pytest.raises(StorageError, match="set MONDRIAN_OPS_CATALOGUE in the environment"):
        catalogue.current()


def test_a_process_may_be_told_another_place(tmp_path: Path) -> None:
    catalogue.use(lambda: Place.of(str(tmp_path / "b.db")))
    with catalogue.current().reading():
        assert (tmp_path / "b.db").exists()
    assert catalogue.current() is catalogue.current()


def test_a_process_asks_once_where_it_is(tmp_path: Path) -> None:
    asked = []

    def place() -> Place:
        asked.append(1)
        return Place.of(str(tmp_path / "b.db"))

    for _ in range(3):  # as each step of a task does
        catalogue.use(place)
        catalogue.current()
    assert asked == [1]
    catalogue.use(None)
    catalogue.use(place)
    catalogue.current()
    assert asked == [1, 1]


def test_a_path_may_have_any_character(tmp_path: Path) -> None:
    path = tmp_path / "a b?c%20#d" / "é.db"
    with catalogue.Catalogue(Place.of(str(path))).reading():
        assert path.exists()


def test_neither_a_password_nor_the_key_is_in_its_text() -> None:
    place = Place.of("postgres://user:wordpass@host/db", key="0" * 64)
    assert place.url == "postgresql+psycopg2://user:wordpass@host/db"
    assert "wordpass" not in repr(place)
    assert "0" * 64 not in repr(place)


@pytest.mark.parametrize(
    "location", ["s3://bucket/catalogue.db", "hdfs://namenode/c", "mysql://h/d"]
)
def test_no_other_store_can_hold_it(location: str) -> None:
    with pytest.raises(StorageError, match=f"{location.partition(':')[0]}:// is not a place"):
        Place.of(location)
