"""Jobs whose input is an Iceberg table: what they publish, and where other features meet it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import Table

from lake import delete_positions, lake_in
from mondrian_ops import pipeline, publish, stores
from mondrian_ops.errors import JobError
from mondrian_ops.job.job import Job
from mondrian_ops.stores import AccessPolicy, load_job, policies, use_policy
from mondrian_ops.stores.policies import Policies
from tiers import one_here

URL = "iceberg://lake/clinic.patients"
ROWS = 240


def people(first: int = 0, rows: int = ROWS) -> pa.Table:
    numbers = range(first, first + rows)
    return pa.table(
        {
            "person": pa.array(numbers, pa.int64()),
            "age": pa.array([20 + 7 * at % 61 for at in numbers], pa.int64()),
            "zip": [f"{81000 + 13 * at % 90}" for at in numbers],
            "illness": [("flu", "cold", "ulcer")[at % 3] for at in numbers],
        }
    )


@pytest.fixture
def patients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Table]:
    """A table of two files; access and policies are as they were afterwards."""
    catalog = lake_in(tmp_path, monkeypatch)
    made = catalog.create_table("clinic.patients", schema=people(0).schema)
    made.append(people(0, 150))
    made.append(people(150, ROWS - 150))
    yield made
    use_policy(None)
    stores.use_policies(None)


def job(folder: Path, output: str = "out", **options: Any) -> Job:
    asked = {
        "input": URL,
        "output": str(folder / output),
        "k": 4,
        "l": 2,
        "quasi_identifiers": ["age", "zip"],
        "identifiers": ["person"],
        "sensitive": ["illness"],
        "schema": "keep",
    }
    return load_job(asked | options)


def released(folder: Path) -> Counter[tuple[str, ...]]:
    return Counter(tuple(row.values()) for row in pq.read_table(folder).to_pylist())


@pytest.mark.parametrize(
    "options",
    one_here(
        [
            {"partitioning": {"fragments": 3}, "retrieval": "pushdown"},
            {"partitioning": {"fragments": 3}, "retrieval": "scatter"},
            {"algorithm": "samarati"},
        ]
    ),
    ids=["pushdown", "scatter", "samarati"],
)
def test_a_snapshot_becomes_the_release_of_the_same_rows_in_files(patients, tmp_path, options):
    delete_positions(patients, next(iter(patients.scan().plan_files())).file.file_path, [3, 4])
    patients.refresh()
    (tmp_path / "files").mkdir()
    for at, task in enumerate(sorted(patients.scan().plan_files(), key=_path)):
        rows = pa.Table.from_batches(_rows_of(patients, task))
        pq.write_table(rows, tmp_path / "files" / f"{at}.parquet")
    report = pipeline.run(job(tmp_path, **options))
    assert report["rows"]["input"] == ROWS - 2
    assert report["source"]["format"] == "iceberg"
    assert report["source"]["snapshot"] == str(patients.current_snapshot().snapshot_id)
    pipeline.run(job(tmp_path, "of_files", input=str(tmp_path / "files"), **options))
    assert released(tmp_path / "out") == released(tmp_path / "of_files")


def _path(task: Any) -> str:
    return str(task.file.file_path)


def _rows_of(table: Table, task: Any) -> list[pa.RecordBatch]:
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan

    scan = ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue())
    return [scan.to_table([task]).combine_chunks().to_batches()[0]]


def test_what_is_committed_between_the_tasks_is_not_released(patients, tmp_path):
    asked, work = job(tmp_path, partitioning={"fragments": 2}), str(tmp_path / ".out_working")
    fragments = pipeline.partition(asked, work=work)
    patients.append(people(1000, 60))
    patients.delete("person < 30")
    summaries = [pipeline.anonymize_fragment(each) for each in fragments]
    report = pipeline.wrap_up(asked, work=work, summaries=summaries)
    assert report["rows"]["input"] == report["rows"]["published"] == ROWS
    assert report["source"]["snapshot"] == str(patients.snapshots()[1].snapshot_id)


def test_the_nights_of_a_series_take_what_is_there_each_night(patients, tmp_path):
    options = {"series": {"hold_above": 0.9, "hold_nights": 3}}
    for day, rows in (("2026-11-01", ROWS), ("2026-11-02", ROWS + 60)):
        report = pipeline.run(job(tmp_path, f"nights/{day}", **options))
        assert report["rows"]["input"] == rows
        patients.append(people(rows, 60))


def test_a_policy_on_a_table_holds_at_any_time_and_for_its_files(patients, tmp_path):
    """The attack: another snapshot, another case, or the namespace, to leave a policy behind."""
    at = patients.current_snapshot().snapshot_id
    for place in (URL, "iceberg://lake/clinic", "iceberg://lake/"):
        policy = {"name": "patients", "inputs": [place], "min_k": 50}
        inputs = policies.inputs_of(Policies.read({"policies": [policy]}))
        for source in (URL, f"{URL}@{at}", f"{URL}@2030-01-01", "iceberg://LAKE/Clinic.Patients"):
            assert [each.name for each in policies.met(inputs, source)] == ["patients"], source
        assert not policies.met(inputs, "iceberg://sea/clinic.patients")
    path = tmp_path / "policies.yaml"
    folder = patients.location().removeprefix("file://")
    files = {"name": "files", "inputs": [folder], "min_k": 50}
    of_table = {"name": "table", "inputs": [URL], "min_k": 3}
    stores.use_policies(str(path))
    path.write_text(json.dumps({"policies": [files, of_table]}))
    with pytest.raises(JobError, match=r"leads to a location of a policy.*add the table"):
        pipeline.run(job(tmp_path))
    assert not (tmp_path / "out").exists()
    path.write_text(json.dumps({"policies": [of_table]}))
    assert pipeline.run(job(tmp_path))["rows"]["published"] == ROWS


def test_a_table_is_read_where_the_access_policy_allows_it(patients, tmp_path):
    outputs = (str(tmp_path),)
    for allowed in (URL, "iceberg://lake/clinic", "iceberg://lake"):
        use_policy(AccessPolicy(inputs=(allowed,), outputs=outputs))
        assert publish.check_job(replace(job(tmp_path), output=str(tmp_path / "out")))
    use_policy(AccessPolicy(inputs=("iceberg://lake/clinic.staff",), outputs=outputs))
    for source in (URL, f"{URL}@1", "iceberg://lake/clinic.staff2", "iceberg://sea/clinic.staff"):
        with pytest.raises(JobError, match=r"input: .* is not allowed here"):
            publish.check_job(replace(job(tmp_path), input=source))
