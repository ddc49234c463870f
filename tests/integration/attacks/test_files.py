"""The files: what Parquet keeps beside the rows.

P. Samarati and L. Sweeney's linking needs a value only once, wherever it lies: statistics of column
chunks and pages, dictionaries with values that no row has, or in the order of the source's rows
(unsorted matching, Sweeney 2002, section 4.1), and what the source's writer left about itself.
"""

from __future__ import annotations

import json
import os
import re
from base64 import b64decode

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adversary import ALGORITHMS, Release, name_of, population, released
from mondrian_ops.generalize.native import classes as native_classes

CANARY = "Zyxwvut"
KEYS = {"sensitive": ["diagnosis"], "l": 2, **ALGORITHMS[0]}
PEOPLE = population(1000, 7, "occupation", "visit_date", "income")


@pytest.fixture
def uncompressed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts as they are, but that their bytes can be searched."""
    written = pq.ParquetWriter
    monkeypatch.setattr(
        pq, "ParquetWriter", lambda *args, **keys: written(*args, **{**keys, "compression": "NONE"})
    )


def holds(release: Release, text: str) -> bool:
    """Whether any file of the release holds a text, in its bytes or its name."""
    everything = [path for path in release.directory.rglob("*") if path.is_file()]
    return any(text in path.name or text.encode() in path.read_bytes() for path in everything)


def with_canaries() -> pa.Table:
    """People of a source whose file says more than their rows: by its writer, its dictionaries."""
    values = PEOPLE["diagnosis"].combine_chunks().dictionary_encode()
    more = pa.concat_arrays([values.dictionary, pa.array([CANARY])])
    coded = pa.DictionaryArray.from_arrays(values.indices, more)
    offsets = pa.array(range(len(coded) + 1), pa.int32())
    table = PEOPLE.set_column(PEOPLE.column_names.index("diagnosis"), "diagnosis", coded)
    for name, column in {
        "listed": pa.ListArray.from_arrays(offsets, coded),
        "within": pa.StructArray.from_arrays([coded], ["it"]),
    }.items():
        table = table.append_column(name, column)
    fields = [each.with_metadata({"comment": CANARY}) for each in table.schema]
    fields = [each.with_metadata({"PARQUET:field_id": "4711"}) for each in fields[:1]] + fields[1:]
    names = [f"{CANARY} {at}" for at in range(table.num_rows)]
    schema = pa.schema(fields, {"pandas": json.dumps({"index_columns": [CANARY]}), "by": CANARY})
    return table.set_column(0, "name", pa.array(names)).cast(schema)


@pytest.mark.parametrize("policy", ["drop", "redact"])
def test_nothing_of_the_source_but_its_rows_gets_into_the_files(tmp_path, uncompressed, policy):
    source = with_canaries()
    release = released(tmp_path, source, identifier_policy=policy, **KEYS)
    assert CANARY.encode() in (tmp_path / "people.parquet").read_bytes()
    assert holds(release, "Migraine")  # what is searched can be found
    assert not holds(release, CANARY)
    for name in ("listed", "within"):  # and the columns are there
        assert len({str(row[name]) for row in release.rows}) > 5


@pytest.mark.parametrize("keys", ALGORITHMS[4:], ids=name_of)
def test_values_of_suppressed_rows_are_in_no_file(tmp_path, uncompressed, keys):
    """A diagnosis that only people have whose rows are left out is in no dictionary either."""
    first = {"age": 95, "zip": "99999", "country": "Fiji", "diagnosis": CANARY}
    rows = [{**PEOPLE.to_pylist()[0], **first}, *PEOPLE.to_pylist()[1:]]
    table = pa.Table.from_pylist(rows, PEOPLE.schema)
    coded = table["diagnosis"].combine_chunks().dictionary_encode()
    table = table.set_column(table.column_names.index("diagnosis"), "diagnosis", coded)
    keys = {**keys, "k": 20, "samarati": {"max_suppressed": 0.3, "choice": "optimal"}}
    release = released(tmp_path, table, **keys)
    left_out = release.report["rows"]["suppressed"] > 0
    assert holds(release, CANARY) is not left_out


@pytest.mark.parametrize("keys", [ALGORITHMS[0], ALGORITHMS[4]], ids=name_of)
def test_parquet_keeps_no_statistics_and_no_word_of_its_writer_but_its_version(tmp_path, keys):
    release = released(tmp_path, with_canaries(), sensitive=["diagnosis"], **keys)
    assert release.paths
    for path in release.paths:
        with pq.ParquetFile(path) as file:
            metadata, schema = file.metadata, file.schema_arrow
        (declared,) = metadata.metadata.values()
        assert set(metadata.metadata) == {b"ARROW:schema"}  # types and zones, and nothing else
        assert CANARY.encode() not in b64decode(declared)
        fields = pa.ipc.read_schema(pa.py_buffer(b64decode(declared)))
        assert fields.metadata is None
        assert not [field.name for field in fields if field.metadata]
        assert metadata.created_by.startswith("parquet-cpp-arrow version")
        assert schema.metadata is None
        assert all("4711" not in str(each.metadata) for each in schema)
        for group in map(metadata.row_group, range(metadata.num_row_groups)):
            assert group.sorting_columns == ()
            for column in map(group.column, range(group.num_columns)):
                assert column.statistics is None
                assert not column.has_offset_index
                assert not column.has_column_index


def of_first_rows(release: Release, column: str) -> list[str]:
    """The dictionary of a column, as it lies in the file."""
    (path,) = release.paths
    with pq.ParquetFile(path, read_dictionary=[column]) as file:
        return file.read([column])[column].chunk(0).dictionary.to_pylist()


def test_dictionaries_do_not_lie_in_the_order_of_the_sources_rows(tmp_path):
    """The first entry would be what the first row of the source has."""
    coded = PEOPLE["diagnosis"].combine_chunks().dictionary_encode()
    at = PEOPLE.column_names.index("diagnosis")
    table = PEOPLE.set_column(at, "diagnosis", coded)
    found = of_first_rows(released(tmp_path / "coded", table, **KEYS), "diagnosis")
    in_order_of_rows = coded.dictionary.to_pylist()
    assert sorted(found) == sorted(in_order_of_rows)
    assert found != in_order_of_rows


def test_how_a_source_was_written_cannot_be_told_from_its_release(tmp_path, monkeypatch):
    """The bytes are the same for rows in one order, whatever dictionaries the source had."""
    monkeypatch.setattr(native_classes.os, "urandom", bytes)
    coded = PEOPLE["diagnosis"].combine_chunks().dictionary_encode()
    turned = pa.DictionaryArray.from_arrays(
        pa.array(len(coded.dictionary) - 1 - coded.indices.fill_null(0).to_numpy(), pa.int32(),
                 mask=coded.is_null().to_numpy(zero_copy_only=False)),
        coded.dictionary.take(pa.array(np.arange(len(coded.dictionary))[::-1])),
    )  # fmt: skip
    at = PEOPLE.column_names.index("diagnosis")
    contents = [
        released(tmp_path / name, PEOPLE.set_column(at, "diagnosis", column), **KEYS)
        .paths[0]
        .read_bytes()
        for name, column in (("plain", PEOPLE["diagnosis"]), ("coded", coded), ("turned", turned))
    ]
    assert len(set(contents)) == 1


def test_labels_of_equal_text_have_one_place_in_a_dictionary(tmp_path):
    """A second one would tell which missing values were published "*" beside which others."""
    table = PEOPLE.set_column(
        PEOPLE.column_names.index("age"),
        "age",
        pa.array(
            [None if at % 400 == 0 else age for at, age in enumerate(PEOPLE["age"].to_pylist())]
        ),
    )
    release = released(tmp_path, table, **{**KEYS, "k": 8})
    found = of_first_rows(release, "age")
    assert found.count("*") == 1
    assert len(set(found)) == len(found)


def test_names_and_times_of_files_tell_nothing_of_rows(tmp_path):
    partitioning = {"fragments": 3, "min_sample": 0, "sample": 0.3}
    release = released(tmp_path, PEOPLE, partitioning=partitioning, **KEYS)
    source = os.stat(tmp_path / "people.parquet").st_mtime_ns
    for path in release.paths:
        assert re.fullmatch("part-[0-9a-f]{16}[.]parquet", path.name)
        assert path.stat().st_mtime_ns > source


def test_the_report_holds_no_value_of_a_column_that_is_no_quasi_identifier(tmp_path):
    partitioning = {"fragments": 3, "min_sample": 0, "sample": 0.3}
    release = released(tmp_path, PEOPLE, partitioning=partitioning, **KEYS)
    texts = [(release.directory / name).read_text() for name in ("_report.json", "_report.html")]
    for column in ("name", "diagnosis", "visit_date", "occupation"):
        values = {str(each) for each in PEOPLE[column].to_pylist() if each is not None}
        for value in values:
            assert not any(value in text for text in texts), column
