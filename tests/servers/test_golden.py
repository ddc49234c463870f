"""The golden set on Spark, HDFS and S3: the releases are those of the local engine and files."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from golden.figures import figures
from golden.jobs import BY_LOT, job_of
from golden.running import expect, run
from servers.spark import SparkCluster
from servers.stores import Store

APPLICATION = {"shape": "application"}

pytestmark = pytest.mark.usefixtures("golden_folder")


@pytest.mark.parametrize(
    "name",
    [
        "CSV",
        "persons",
        *(
            pytest.param(name, marks=pytest.mark.soak)
            for name in ("median", "pushdown", "scatter", "tds")
        ),
    ],
)
def test_a_release_on_a_store(name: str, store: Store, tmp_path: Path) -> None:
    job = job_of(name)
    source = Path(job["input"].partition("/")[0])
    for path in sorted(source.iterdir()) if source.is_dir() else [source]:
        store.put(str(path), path.read_bytes())
    report = run({**job, "input": store.url(job["input"]), "output": store.url("out")})
    table = pq.read_table(store.copy("out", tmp_path / "copy"))
    expect("releases.json", name, figures(report, table))


@pytest.mark.java
@pytest.mark.parametrize(
    ("name", "spark"),
    [
        ("lookahead", APPLICATION),
        *(
            pytest.param(name, spark, marks=pytest.mark.soak)
            for name, spark in (
                ("median", {}),
                ("di_mondrian", {}),
                ("samarati optimal", {}),
                ("tds", APPLICATION),
                ("t hierarchical", {}),
                ("persons", {}),
                ("missing values", APPLICATION),
                ("bounds", {}),
                ("a small sample", {}),
                ("another seed", {}),
                ("merged fragments", APPLICATION),
                ("CSV", APPLICATION),
            )
        ),
    ],
)
def test_a_release_of_spark(
    name: str,
    spark: dict[str, str],
    golden_folder: Path,
    spark_cluster: SparkCluster,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SPARK_REMOTE", spark_cluster.remote)
    job = {**job_of(name), "engine": "spark", "spark": spark}
    # Executors have a working directory of their own.
    job |= {key: str(golden_folder / job[key]) for key in ("input", "output")}
    report = run(job)
    expect("releases.json", name, figures(report, pq.read_table(job["output"]), name in BY_LOT))
