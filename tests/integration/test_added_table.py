"""A package adds a kind of table in one file; jobs read it by the scheme of their input."""

from __future__ import annotations

import json
import random
import sqlite3
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from added_criteria import EXAMPLE
from mondrian_ops import pipeline, publish, tables
from mondrian_ops.errors import InputError, JobError
from mondrian_ops.stores import AccessPolicy, places, use_policy
from mondrian_ops.stores.job_files import load_job, with_connections
from tiers import one_in

ROWS = 600


def registered(folder: Path, value: str, name: str = "sqlite") -> None:
    """Install a package whose entry point opens tables of a scheme with ``value``."""
    metadata = folder / f"{name}_{abs(hash(value))}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Name: {metadata.stem}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[{places.GROUP}]\n{name} = {value}\n")


@pytest.fixture(autouse=True)
def site(tmp_path, monkeypatch) -> Path:
    """Where packages are installed; that of SQLite's tables is."""
    folder = tmp_path / "site"
    registered(folder, "sqlite_table:SqliteTable")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.syspath_prepend(str(EXAMPLE))
    places._opener.cache_clear()
    yield folder
    places._opener.cache_clear()


@pytest.fixture
def people(tmp_path) -> Path:
    """A database with a table of people."""
    path = tmp_path / "hospital.db"
    chance = random.Random(3)
    rows = [
        (chance.randrange(18, 90), chance.choice(["Rome", "Oslo", None]), chance.choice("abc"))
        for _ in range(ROWS)
    ]
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE people (age INTEGER, town TEXT, ill TEXT)")
        database.executemany("INSERT INTO people VALUES (?, ?, ?)", rows)
    return path


def asked(database: Path, **options: object) -> dict[str, object]:
    return {
        "input": f"sqlite://{database}/people",
        "output": str(database.parent / "out"),
        "k": 5,
        "l": 2,
        "quasi_identifiers": ["age", "town"],
        "sensitive": ["ill"],
        **options,
    }


def counted(release: Path) -> Counter[tuple[str, ...]]:
    """The rows of each class of a release; chance decides between rows that are cut alike."""
    classes = pq.read_table(release, columns=["age", "town"])
    return Counter(tuple(row.values()) for row in classes.to_pylist())


def by_files(database: Path) -> Path:
    """The same rows as a Parquet file."""
    with sqlite3.connect(database) as opened:
        rows = opened.execute("SELECT age, town, ill FROM people").fetchall()
    columns = zip(["age", "town", "ill"], zip(*rows, strict=True), strict=True)
    path = database.with_suffix(".parquet")
    pq.write_table(pa.table({name: list(values) for name, values in columns}), path)
    return path


@pytest.mark.parametrize(
    "options",
    one_in(
        2,
        [
            {},
            {"partitioning": {"fragments": 4}, "retrieval": "pushdown"},
            {"partitioning": {"fragments": 4}, "retrieval": "scatter"},
            {"algorithm": "tds"},
        ],
    ),
    ids=["one fragment", "pushdown", "scatter", "recoded as a whole"],
)
def test_a_job_on_a_table_of_another_package_publishes_what_one_on_files_does(people, options):
    report = pipeline.run(load_job(asked(people, **options)))
    released = counted(people.parent / "out")
    assert report["rows"]["input"] == ROWS
    assert report["source"]["format"] == "sqlite"
    pipeline.run(load_job(asked(people, input=str(by_files(people)), **options)))
    assert counted(people.parent / "out") == released


@pytest.mark.servers
def test_the_nights_of_a_series_may_come_from_tables(people):
    options = {"schema": "keep", "series": {"hold_above": 0.9, "hold_nights": 3}}
    for day in ("2024-05-01", "2024-05-02"):
        job = load_job(asked(people, output=str(people.parent / "nights" / day), **options))
        report = pipeline.run(job)
        assert report["rows"]["input"] == ROWS
        assert report["source"]["format"] == "sqlite"


def test_a_connection_to_a_store_is_not_put_into_the_url_of_a_table(people):
    job = load_job(asked(people, output="s3://bucket/out"))
    named = with_connections(job, None, "minio")
    assert (named.input, named.output) == (job.input, "s3://minio@bucket/out")


def test_a_table_is_read_by_columns_filter_and_split_and_travels_as_json(people):
    table = tables.open_table(f"sqlite://{people}/people")
    there = tables.table_of_json(json.loads(json.dumps(table.to_json())))
    assert there == table
    (split,) = there.splits(100)
    kept = there.batches(["ill"], pc.field("age") > 40, batch_rows=100, split=split)
    expected = pq.read_table(by_files(people), filters=pc.field("age") > 40, columns=["ill"])
    assert pa.Table.from_batches(kept).equals(expected)
    assert sum(each.num_rows for each in there.batches([])) == ROWS


def test_a_table_that_changes_between_tasks_is_refused(people):
    table = tables.open_table(f"sqlite://{people}/people")
    with sqlite3.connect(people) as database:
        database.executemany("INSERT INTO people VALUES (1, 'Rome', 'a')", [()] * 1000)
    with pytest.raises(InputError, match=r"hospital\.db/people: changed while it was read"):
        list(table.batches())


def test_without_the_package_the_scheme_and_a_table_that_travelled_are_refused(people, site):
    value = tables.open_table(f"sqlite://{people}/people").to_json()
    for metadata in site.glob("*.dist-info/entry_points.txt"):
        metadata.unlink()
    places._opener.cache_clear()
    with pytest.raises(InputError, match="no package that reads sqlite:// is installed here; inst"):
        tables.table_of_json(value)
    with pytest.raises(InputError, match="the scheme 'sqlite' is not available"):
        pipeline.run(load_job(asked(people)))


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"types": {"age": "integer"}}, "types: says how files are read"),
        ({"csv": {"missing": ["?"]}}, "csv: says how files are read"),
        ({"output": "sqlite:///tmp/hospital.db/out"}, r"output: .* can only be an input"),
    ],
)
def test_what_only_files_can_be_is_refused_of_a_table(people, options, error):
    with pytest.raises(JobError, match=error):
        pipeline.run(load_job(asked(people, **options)))


def test_a_table_is_read_where_the_access_policy_allows_it(people):
    out = (str(people.parent),)
    try:
        use_policy(AccessPolicy(inputs=(f"sqlite://{people}",), outputs=out))
        job = publish.check_job(load_job(asked(people)))
        assert pipeline.run(job)["rows"]["input"] == ROWS
        use_policy(AccessPolicy(inputs=(f"sqlite://{people.parent}/other.db",), outputs=out))
        with pytest.raises(JobError, match=r"input: sqlite:.* is not allowed here"):
            publish.check_job(job)
    finally:
        use_policy(None)


def test_wrong_packages_are_named(people, site):
    def opened(value: str) -> None:
        registered(site, value, "wrong")
        places._opener.cache_clear()
        tables.open_table("wrong://host/people")

    with pytest.raises(InputError, match=r"cannot be imported .ModuleNotFoundError in no_such:T"):
        opened("no_such:T")
    with pytest.raises(InputError, match="two packages add a kind of tables of this name"):
        opened("sqlite_table:TYPES")
    for file in site.glob("wrong*/entry_points.txt"):
        file.unlink()
    with pytest.raises(InputError, match=r"sqlite_table:quote is not a subclass of mondrian_ops"):
        opened("sqlite_table:quote")


def test_a_type_that_is_not_plain_is_refused(people, monkeypatch):
    import sqlite_table  # of the example

    monkeypatch.setitem(sqlite_table.TYPES, "TEXT", pa.string_view())
    with pytest.raises(InputError, match=r"gives column 'town' the type string_view.*to string"):
        tables.open_table(f"sqlite://{people}/people")


def test_a_table_in_memory_stays_in_its_process():
    table = tables.MemoryTable.of(pa.table({"n": [3, 1, 2]}))
    assert pa.Table.from_batches(table.batches(filter=pc.field("n") < 3))["n"].to_pylist() == [1, 2]
    with pytest.raises(InputError, match="a table in memory cannot be read by another process"):
        table.to_json()
