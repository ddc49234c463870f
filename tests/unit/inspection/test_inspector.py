"""A whole inspection."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from mondrian_ops.errors import InputError
from mondrian_ops.inspection import inspector
from mondrian_ops.inspection.inspector import inspect
from unknown_tables import patients


def inspected(table: pa.Table, folder, **options):
    path = folder / "people.parquet"
    pq.write_table(table, path, row_group_size=100)
    return inspect(str(path), **options)


def test_roles_of_a_hospital(tmp_path):
    found = inspected(patients(), tmp_path)
    roles = {each.name: each.proposal.role for each in found.columns}
    assert roles == {
        "MRN": "identifier",
        "last_name": "identifier",
        "contact": "identifier",
        "V1": "quasi_identifier",
        "birthDate": "quasi_identifier",
        "zip": "quasi_identifier",
        "pain": "undecided",
        "diagnosis": "sensitive",
        "salary": "sensitive",
        "remark": "left_out",
        "flag": "left_out",
    }
    json.dumps(found.to_dict(), allow_nan=False)


def test_random_rows_of_a_larger_table_are_inspected(tmp_path):
    found = inspected(patients(), tmp_path, rows=200)
    assert found.rows == 600
    assert 150 <= found.inspected <= 250


def test_people_with_several_rows_are_counted_once(tmp_path):
    rows = [number // 3 for number in range(300)]
    found = inspected(
        pa.table({"patient_id": rows, "age": [20 + row % 50 for row in rows]}), tmp_path
    )
    assert found.persons == "patient_id"
    assert found.together.rows == 100
    (age,) = found.with_role("quasi_identifier")
    assert age.single == 0


def test_texts_for_missing_values_are_read_as_missing(tmp_path):
    path = tmp_path / "people.csv"
    table = pa.table({"age": ["?", *map(str, range(20, 60))] * 6})
    pyarrow.csv.write_csv(table, path)
    found = inspect(str(path))
    (age,) = found.columns
    assert found.missing_texts == ["?"]
    assert (age.type, age.distinct, age.missing) == ("integer", 40, pytest.approx(6 / 246))


def test_nested_values_are_left_out_with_a_remedy(tmp_path):
    found = inspected(pa.table({"age": [1, 2], "visits": [[1], [2, 3]]}), tmp_path)
    assert "flatten the column" in found.columns[1].proposal.reason


def test_an_order_of_a_sample_may_lack_values(tmp_path):
    table = pa.table({"education": ["low", "high", "medium"] * 200})
    (whole,) = inspected(table, tmp_path).columns
    (sample,) = inspected(table, tmp_path, rows=200).columns
    assert (whole.proposal.generalization, sample.proposal.generalization) == (
        "order:low/medium/high",
        "",
    )


def test_of_a_table_of_iceberg_nothing_is_proposed_that_files_alone_have(monkeypatch, tmp_path):
    monkeypatch.setattr(inspector, "kind_of_table", lambda _url: object)
    found = inspected(pa.table({"zip": [94103, 10001] * 50, "x": ["?", "a"] * 50}), tmp_path)
    assert found.missing_texts == []
    assert [each.proposal.generalization for each in found.columns] == ["", ""]


def test_a_table_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match=r"none\.csv"):
        inspect(str(tmp_path / "none.csv"))
