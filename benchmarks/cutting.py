"""Cut the coded rows of a job, as a process of one checkout: this one, or one it is compared with.

``python cutting.py JOB.json ROUNDS CORES NAME=GREEDY,ROLLOUT_ROWS[,GROUP_ROWS,...] …`` prints the
seconds of each policy in each round, as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from mondrian_ops.cut.algorithms import mondrian
from mondrian_ops.cut.anonymizer import Anonymizer
from mondrian_ops.data.profile import Profiler
from mondrian_ops.job.job import Job


def main(path: str, rounds: str, cores: str, *policies: str) -> None:
    described = json.loads(Path(path).read_text("utf-8"))
    on = {} if cores == "1" else {"cores": int(cores)}  # older checkouts cut on one core only
    taken = {}
    for policy in policies:
        name, _, options = policy.partition("=")
        greedy, *numbers = options.split(",")
        cut = mondrian.CutPolicy(greedy, *map(int, numbers))
        _seconds(_coded(described, cut, 1000), cut, on)  # what is loaded once is not measured
        coded = _coded(described, cut)
        taken[name] = [_seconds(coded, cut, on) for _ in range(int(rounds))]
    print(json.dumps(taken))


def _coded(
    described: dict[str, Any], cut: mondrian.CutPolicy, rows: int | None = None
) -> mondrian.CodedRows:
    job = Job.from_dict(described)
    table = pq.read_table(described["input"]).slice(0, rows)
    profiler = Profiler(job, table.schema, {})
    profiler.add(table)
    return Anonymizer(job, profiler.finish(), {}, cut).encode(table)


def _seconds(coded: mondrian.CodedRows, cut: mondrian.CutPolicy, on: dict[str, int]) -> float:
    start = time.perf_counter()
    cut.classes(coded, **on)
    return time.perf_counter() - start


if __name__ == "__main__":
    main(*sys.argv[1:])
