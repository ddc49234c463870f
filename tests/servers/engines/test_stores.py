"""The Spark engine on HDFS and S3: executors reach both as the driver does, which told them how."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lake import lake_in
from mondrian_ops import pipeline, publish, stores
from mondrian_ops.datasets.people import people
from mondrian_ops.engines.local import LocalEngine
from mondrian_ops.engines.spark import SparkEngine
from mondrian_ops.errors import JobError, PrivacyError
from published_text import in_any_order
from servers.stores import Store

pytestmark = pytest.mark.java

ROWS = 600
CHECKED = ("verification", "class_sizes", "class_persons", "risk")
"""What a report has of the check alone."""


# How executors reach a store is seen from one job on each, what a series keeps there from others.
ONE_STORE = pytest.mark.parametrize(
    "store",
    [
        pytest.param("hdfs_folder", marks=pytest.mark.hdfs, id="hdfs"),
        pytest.param("s3_folder", marks=[pytest.mark.s3, pytest.mark.soak], id="s3"),
    ],
    indirect=True,
)


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"retrieval": "scatter"}, id="scatter"),
        pytest.param({"retrieval": "pushdown"}, id="pushdown", marks=pytest.mark.soak),
        pytest.param({"spark": {"shape": "application"}}, id="application", marks=pytest.mark.soak),
        pytest.param(
            {"retrieval": "scatter", "algorithm": "tds", "tds": {"partitions": 2}},
            id="tds",
            marks=pytest.mark.soak,
        ),
    ],
)
def test_the_release_is_that_of_local_files(
    store: Store, spark_engine: SparkEngine, tmp_path: Path, changed: dict[str, Any]
) -> None:
    table = people(ROWS, seed=4)
    (tmp_path / "in").mkdir()
    for number in range(2):
        path = tmp_path / "in" / f"{number}.parquet"
        pq.write_table(table.slice(number * ROWS // 2, ROWS // 2), path, row_group_size=150)
        store.put(f"in/{number}.parquet", path.read_bytes())

    def job(folder: str, **keys: Any) -> Any:
        told = {
            "input": f"{folder}/in",
            "output": f"{folder}/out",
            "k": 4,
            "identifiers": ["name"],
            "quasi_identifiers": ["age", "sex", "income"],
            "sensitive": ["diagnosis"],
            "entity_id": "name",
            "t": 0.5,
            "unlisted": "drop",
            "cut": "auto" if "algorithm" in changed else "median",  # whose rows are the same again
            "partitioning": {"fragments": 3, "sample": 1.0},
        }
        return pipeline.load_job({**told, **changed, **keys})

    local = pipeline.run(job(str(tmp_path)), engine=LocalEngine())
    there = job(store.url().rstrip("/"), engine="spark")
    work = publish.work_path(str(there.output), "a-run")
    pipeline.partition(there, work=work, engine=spark_engine)
    summaries = pipeline.anonymize_all(work, spark_engine)
    refuse_a_changed_part(store, there, work, summaries, spark_engine)
    remote = pipeline.wrap_up(there, work=work, summaries=summaries, engine=spark_engine)
    pipeline.discard(work)
    for key in ("rows", "achieved", "equivalence_classes", "metrics", "attributes", *CHECKED):
        assert remote[key] == local[key]
    of_parts = [[each["equivalence_classes"], each["DP"]] for each in remote["fragments"]]
    assert of_parts == [[each["equivalence_classes"], each["DP"]] for each in local["fragments"]]
    copy = store.copy("out", tmp_path / "copy")
    assert in_any_order(pq.read_table(copy)) == in_any_order(pq.read_table(tmp_path / "out"))
    assert store.names() == ["in", "out"]
    verdict = pipeline.verify(there, str(there.output))
    assert verdict["passed"]
    assert verdict["equivalence_classes"] == remote["equivalence_classes"]
    assert verdict["rows"] == remote["rows"]["published"] == ROWS


def refuse_a_changed_part(
    store: Store, job: Any, work: str, summaries: Any, engine: SparkEngine
) -> None:
    """One value of one row is another by the time of the check; then all is as it was."""
    path = publish.WorkDir.attach(work).part_path(0)
    name = path.removeprefix(store.url().rstrip("/") + "/")
    written = store.fetch(name)
    part = pq.read_table(io.BytesIO(written))
    ages = ["999", *part["age"].to_pylist()[1:]]
    changed = io.BytesIO()
    pq.write_table(part.set_column(part.column_names.index("age"), "age", pa.array(ages)), changed)
    store.put(name, changed.getvalue())
    by_rows = replace(job, entity_id=None, t=None)  # or its persons would not be found
    with pytest.raises(PrivacyError, match=r"k-anonymity, k = 4.*the worst has 1 rows"):
        pipeline.check(by_rows, work=work, summaries=summaries, engine=engine)
    store.put(name, written)


@ONE_STORE
def test_people_are_followed_through_the_nights_of_a_series(
    store: Store, spark_engine: SparkEngine
) -> None:
    table = people(ROWS, seed=4)
    for day in (1, 2):
        sink = io.BytesIO()
        pq.write_table(table.slice(50 * day, 500), sink)
        store.put(f"drop-{day}.parquet", sink.getvalue())
        night = {
            "input": store.url(f"drop-{day}.parquet"),
            "output": store.url(f"out/2025-08-0{day}"),
            "k": 4,
            "l": 2,
            "quasi_identifiers": ["age", "sex", "income"],
            "sensitive": ["diagnosis"],
            "entity_id": "name",
            "unlisted": "drop",
            "series": {
                "kind": "snapshots",
                "protect": "intersection",
                "unmatched": "counterfeit",
                "subtraction": "protect",
            },
        }
        job = pipeline.load_job(night)
        report = pipeline.run(job, engine=spark_engine)
        assert report["rows"]["published"] == 500
        assert report["series"]["people"]["known_before"] == (450 if day == 2 else 0)
    verdict = pipeline.verify_series(job, str(job.output))
    assert (verdict["passed"], verdict["subtracted"]) == (True, 0), verdict["failures"]


@ONE_STORE
def test_rows_that_wait_keep_their_policies(
    store: Store, spark_engine: SparkEngine, tmp_path: Path
) -> None:
    table = people(ROWS, seed=4)
    jobs = []
    for day, (folder, rows) in enumerate([("patients", 30), ("visitors", 100)], 1):
        sink = io.BytesIO()
        pq.write_table(table.slice(100 * day, rows), sink)
        store.put(f"{folder}/{day}.parquet", sink.getvalue())
        night = {
            "input": store.url(f"{folder}/{day}.parquet"),
            "output": store.url(f"out/2025-08-0{day}"),
            "k": 50,
            "quasi_identifiers": ["age", "sex"],
            "series": {"hold_nights": 9},
        }
        jobs.append(pipeline.load_job(night))
    policy = {"name": "patients", "inputs": [store.url("patients")], "min_k": 50}
    file = tmp_path / "policies.json"
    file.write_text(json.dumps({"unmatched": "allow", "policies": [policy]}))
    stores.use_policies(str(file))
    try:
        held = pipeline.run(publish.check_job(jobs[0]), engine=spark_engine)
        assert held["outcome"]["state"] == "held"
    finally:
        stores.use_policies(None)
    with pytest.raises(JobError, match=r"requires min_k: 50; .*since 2025-08-01 came under"):
        pipeline.run(replace(jobs[1], k=5), engine=spark_engine)
    assert "2025-08-02" not in stores.names_in(store.url("out"))
    report = pipeline.run(jobs[1], engine=spark_engine)
    assert (report["rows"]["published"], report["policies"]) == (130, ["patients"])


@pytest.mark.soak  # executors know no catalog: what they write, any local folder shows
def test_executors_write_and_check_the_parts_of_a_table(
    spark_engine: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = lake_in(tmp_path, monkeypatch)
    pq.write_table(people(ROWS, seed=4), tmp_path / "people.parquet")
    output = "iceberg://lake/clinic.released"
    told = {
        "input": str(tmp_path / "people.parquet"),
        "output": output,
        "engine": "spark",
        "k": 4,
        "identifiers": ["name"],
        "quasi_identifiers": ["age", "sex", "income"],
        "sensitive": ["diagnosis"],
        "partitioning": {"fragments": 3, "sample": 1.0},
        "cut": "median",
    }
    local = pipeline.run(pipeline.load_job(told | {"engine": "local", "output": f"{tmp_path}/out"}))
    report = pipeline.run(pipeline.load_job(told), engine=spark_engine)
    assert report["metrics"] == local["metrics"]
    rows = catalog.load_table("clinic.released").scan().to_arrow()
    written = pq.read_table(tmp_path / "out")
    assert in_any_order(rows.cast(written.schema)) == in_any_order(written)
    assert pipeline.verify(pipeline.load_job(told), output)["passed"]
