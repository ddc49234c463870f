"""The Spark engine on HDFS and S3: executors reach both as the driver does, which told them how."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from mondrian_ops import pipeline
from mondrian_ops.datasets.people import people
from mondrian_ops.engines.local import LocalEngine
from mondrian_ops.engines.spark import SparkEngine
from published_text import in_any_order
from servers.stores import Store

pytestmark = pytest.mark.java

ROWS = 600


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
            "unlisted": "drop",
            "cut": "auto" if "algorithm" in changed else "median",  # whose rows are the same again
            "partitioning": {"fragments": 3, "sample": 1.0},
        }
        return pipeline.load_job({**told, **changed, **keys})

    local = pipeline.run(job(str(tmp_path)), engine=LocalEngine())
    remote = pipeline.run(job(store.url().rstrip("/"), engine="spark"), engine=spark_engine)
    for key in ("rows", "achieved", "equivalence_classes", "metrics", "attributes"):
        assert remote[key] == local[key]
    copy = store.copy("out", tmp_path / "copy")
    assert in_any_order(pq.read_table(copy)) == in_any_order(pq.read_table(tmp_path / "out"))
    assert store.names() == ["in", "out"]
