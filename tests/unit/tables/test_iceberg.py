"""Snapshots of Iceberg tables: which rows they have, and that they stay these rows."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table as Iceberg
from pyiceberg.types import LongType

from lake import delete_equal, delete_positions, lake_in
from mondrian_ops import tables
from mondrian_ops.errors import InputError, JobError
from mondrian_ops.stores import store_access
from mondrian_ops.stores.places import place_of

URL = "iceberg://lake/clinic.patients"


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    return lake_in(tmp_path, monkeypatch)


def people(first: int, rows: int = 3) -> pa.Table:
    return pa.table(
        {
            "age": pa.array(range(first, first + rows), pa.int64()),
            "illness": ["flu", None, "cold"][:rows],
        }
    )


@pytest.fixture
def patients(catalog: Catalog) -> Iceberg:
    """A table of two files with three rows each."""
    made = catalog.create_table("clinic.patients", schema=people(0).schema)
    made.append(people(20))
    made.append(people(40))
    return made


def rows_of(table: tables.Table) -> list[dict[str, object]]:
    """The rows by age; files have random names."""
    rows = pa.Table.from_batches(table.batches(), schema=table.schema).to_pylist()
    assert len(rows) == table.rows
    return sorted(rows, key=lambda row: row["age"])


def ages(table: tables.Table) -> list[object]:
    return [row["age"] for row in rows_of(table)]


def test_the_rows_of_a_snapshot_are_read_whatever_is_committed_meanwhile(patients):
    table = tables.open_table(URL)
    assert ages(table) == [20, 21, 22, 40, 41, 42]
    assert table.schema == pa.schema({"age": pa.int64(), "illness": pa.string()})
    assert [sum(sizes) for sizes in table.sizes] == [3, 3]
    patients.append(people(60))
    patients.delete("age == 20")
    elsewhere = tables.table_of_json(json.loads(json.dumps(table.to_json())))
    assert ages(elsewhere) == [20, 21, 22, 40, 41, 42]
    elsewhere.refuse_change()
    assert ages(tables.open_table(URL)) == [21, 22, 40, 41, 42, 60, 61, 62]


def test_each_file_is_read_in_the_same_order_by_every_task(patients):
    table = tables.open_table(URL)
    both = pa.Table.from_batches(table.batches(["age"]))
    one_by_one = [table.batches(["age"], split=split) for split in table.splits(3)]
    assert len(one_by_one) == 2
    assert pa.concat_tables(map(pa.Table.from_batches, one_by_one)) == both


def test_rows_that_were_deleted_by_position_are_never_read(patients):
    file = sorted(task.file.file_path for task in patients.scan().plan_files())[0]
    before = tables.open_table(URL)
    kept = [row["age"] for row in pa.Table.from_batches(before.batches(parts=[1])).to_pylist()]
    first = [row["age"] for row in pa.Table.from_batches(before.batches(parts=[0])).to_pylist()]
    delete_positions(patients, file, [0, 2])
    after = tables.open_table(URL)
    assert ages(after) == sorted([first[1], *kept])
    assert after.sizes == [(1,), (3,)]
    assert ages(before) == sorted([*first, *kept])  # as the snapshot before had it


def test_a_file_of_which_all_rows_were_deleted_has_none(patients):
    for task in list(patients.scan().plan_files()):
        delete_positions(patients, task.file.file_path, [0, 1, 2])
        patients.refresh()
    with pytest.raises(InputError, match="there are no rows"):
        tables.open_table(URL)
    assert tables.open_table(URL, may_be_empty=True).rows == 0


def test_rows_deleted_by_their_values_are_not_read_as_if_they_were_there(patients):
    delete_equal(patients, "age", [20])
    with pytest.raises(InputError, match=r"deletes rows by their values.*compact"):
        tables.open_table(URL)


def test_columns_are_found_by_what_they_are_not_by_how_they_were_called(patients):
    with patients.update_schema() as update:
        update.rename_column("age", "years")
        update.add_column("ward", LongType())
        update.delete_column("illness")
    patients.append(pa.table({"years": [60], "ward": [7]}))
    table = tables.open_table(URL)
    rows = pa.Table.from_batches(table.batches(["ward", "years"])).sort_by("years").to_pylist()
    assert table.schema.names == ["years", "ward"]
    assert rows[0] == {"ward": None, "years": 20}
    assert rows[-1] == {"ward": 7, "years": 60}
    assert len(rows) == 7


@pytest.mark.parametrize("has_numbers", [True, False])
def test_columns_that_took_each_others_names_are_not_read_by_name(catalog, tmp_path, has_numbers):
    """A file of the same types and names is read as it is only where the numbers are the same."""
    rows = pa.table({"a": [1, 2], "b": [10, 20]})
    table = catalog.create_table("clinic.swapped", schema=rows.schema)
    if has_numbers:
        table.append(rows)
    else:
        pq.write_table(rows, tmp_path / "rows.parquet")
        table.add_files([f"file://{tmp_path}/rows.parquet"])
    before = tables.open_table("iceberg://lake/clinic.swapped")
    assert pa.Table.from_batches(before.batches()).to_pydict() == rows.to_pydict()
    for one, other in (("a", "c"), ("b", "a"), ("c", "b")):
        with table.update_schema() as update:
            update.rename_column(one, other)
    table.append(pa.table({"b": [3], "a": [30]}))
    after = tables.open_table("iceberg://lake/clinic.swapped")
    assert after.schema.names == ["b", "a"]
    read = pa.Table.from_batches(after.batches(["b", "a"])).sort_by("b").to_pydict()
    assert read == table.scan().to_arrow().sort_by("b").to_pydict()
    if has_numbers:
        assert read == {"b": [1, 2, 3], "a": [10, 20, 30]}
    assert pa.Table.from_batches(before.batches()).to_pydict() == rows.to_pydict()


def test_an_earlier_state_has_the_columns_that_it_had(patients):
    first = patients.snapshots()[0]
    with patients.update_schema() as update:
        update.rename_column("age", "years")
    assert ages(tables.open_table(f"{URL}@{first.snapshot_id}")) == [20, 21, 22]


def test_a_time_is_a_time_in_utc_and_a_date_is_its_end(patients, monkeypatch):
    stamps = [1_790_000_000_000, 1_790_086_400_000]  # a day apart
    moved = [
        snapshot.model_copy(update={"timestamp_ms": stamp})
        for snapshot, stamp in zip(patients.snapshots(), stamps, strict=True)
    ]
    log = [
        entry.model_copy(update={"timestamp_ms": stamp})
        for entry, stamp in zip(patients.history(), stamps, strict=True)
    ]
    metadata = patients.metadata.model_copy(update={"snapshots": moved, "snapshot_log": log})
    patients.metadata = metadata
    monkeypatch.setattr("mondrian_ops.tables.iceberg._loaded", lambda url: patients)
    assert ages(tables.open_table(f"{URL}@2026-09-21")) == [20, 21, 22]
    assert ages(tables.open_table(f"{URL}@2026-09-21T15:00")) == [20, 21, 22]
    assert len(ages(tables.open_table(f"{URL}@2026-09-22"))) == 6
    for earlier in ("2026-09-20", "2026-09-21T14:00", "2026-09-21T16:00+02:00"):
        with pytest.raises(InputError, match="no snapshot then"):
            tables.open_table(f"{URL}@{earlier}")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("iceberg://lake/patients", "names no table"),
        ("iceberg://lake/", "names no table"),
        (f"{URL}@yesterday", "neither the number of a snapshot nor a date"),
        (f"{URL}@17", "no such snapshot"),
        ("iceberg://lake/clinic.nobody", "no such table"),
        ("iceberg://lake/ward.patients", "no such table"),
        ("iceberg://sea/clinic.patients", "nothing says how to reach the catalog 'sea'"),
    ],
)
def test_what_is_not_there_is_named_with_a_remedy(patients, url, said):
    with pytest.raises(InputError, match=said):
        tables.open_table(url)


def test_a_table_without_a_commit_has_no_rows(catalog):
    catalog.create_table("clinic.patients", schema=people(0).schema)
    with pytest.raises(InputError, match="no rows yet"):
        tables.open_table(URL)


def test_a_snapshot_that_has_expired_is_a_change(patients):
    table = tables.open_table(f"{URL}@{patients.snapshots()[0].snapshot_id}")
    patients.maintenance.expire_snapshots().by_id(table.snapshot).commit()
    with pytest.raises(InputError, match="changed while it was read"):
        rows_of(table)


def test_types_and_csv_say_how_files_are_read(patients):
    with pytest.raises(JobError, match="types: says how files are read"):
        tables.open_table(URL, types={"age": "text"})


def test_another_process_reaches_the_catalog_as_this_one_does(patients, monkeypatch):
    """As an executor of Spark, which has no settings of PyIceberg."""
    sent = json.loads(json.dumps(store_access.options_of([URL])))
    value = tables.open_table(URL).to_json()
    for name in ("TYPE", "URI", "WAREHOUSE"):
        monkeypatch.delenv(f"PYICEBERG_CATALOG__LAKE__{name}")
    monkeypatch.setattr(store_access, "_given", {})
    with pytest.raises(InputError, match="nothing says how to reach"):
        rows_of(tables.table_of_json(value))
    store_access.use_options(sent)
    assert len(rows_of(tables.table_of_json(value))) == 6


def test_its_name_in_lineage_is_that_of_the_table():
    assert place_of(URL).lineage_name(f"{URL}@17") == ("iceberg://lake", "clinic.patients")
