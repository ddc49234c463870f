"""SQL that knows nothing of this project finds the rows, k and l of a release's report."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sql_oracle
from mondrian_ops import pipeline

ROWS = 400


@pytest.mark.parametrize(
    "keys",
    [
        {"l": 2},
        {"l": 3, "missing_sensitive": "value", "interval_style": "bounds"},
        {"diversity": "entropy", "l": 2, "quasi_identifiers": ["age", "the town"]},
        {"sensitive": ["ill", "paid"], "l": 2},
        {"entity_id": "id"},
    ],
)
def test_reports_agree_with_sql_and_with_no_broken_release(tmp_path, keys):
    table = pa.table(
        {
            "id": [at // 2 for at in range(ROWS)],
            "age": [at * 7 % 80 for at in range(ROWS)],
            "the town": [f"town {at % 5}" if at % 11 else None for at in range(ROWS)],
            "ill": [[None, "flu", "cold", "gout"][at % 4] for at in range(ROWS)],
            "paid": [at % 9 for at in range(ROWS)],
        }
    )
    pq.write_table(table, tmp_path / "in.parquet")
    job = {
        "input": str(tmp_path / "in.parquet"),
        "output": str(tmp_path / "out"),
        "k": 4,
        "quasi_identifiers": ["age", "the town"],
        "sensitive": ["ill"],
        "unlisted": "drop",
        "partitioning": {"fragments": 3, "sample": 1.0},
        **keys,
    }
    report = pipeline.run(pipeline.load_job(job))
    sql_oracle.agree(json.loads(json.dumps(report)), tmp_path / "out")
    for path in (tmp_path / "out").glob("part-*"):
        part = pq.read_table(path)
        pq.write_table(part.slice(1), path)
        with pytest.raises(AssertionError):
            sql_oracle.agree(report, tmp_path / "out")
        pq.write_table(part, path)
    sql_oracle.agree(report, tmp_path / "out")
