"""What cannot be done is refused by both engines with the same words, and no value in them."""

from __future__ import annotations

import json
import os
import shutil
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from canary_people import CANARIES, canary_people
from mondrian_ops import pipeline
from mondrian_ops.engines import Engine
from mondrian_ops.engines.local import LocalEngine
from mondrian_ops.engines.run import Run
from mondrian_ops.engines.spark import SparkEngine
from mondrian_ops.errors import (
    HierarchyError,
    InputError,
    JobError,
    MondrianOpsError,
    StorageError,
    UnattainableError,
)
from mondrian_ops.job.job import Job
from servers.spark import SparkCluster

pytestmark = pytest.mark.java

SHUFFLED = {"spark": {"shape": "application"}}


def people(rows: int = 240) -> pa.Table:
    heights = [float("inf") if at == 7 else 1.5 for at in range(rows)]
    return canary_people(rows).append_column("height", pa.array(heights))


class Place:
    """A folder with an input of several splits, and hierarchies that lack values of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.input = folder / "in.parquet"
        self.work = folder / "work"
        self.write()
        (folder / "countries.csv").write_text("Italy;Europe;*\n")
        (folder / "illnesses.csv").write_text("flu;infection;*\ncold;infection;*\n")

    def write(self, rows: int = 240) -> None:
        pq.write_table(people(rows), self.input, row_group_size=50)

    def job(self, **keys: Any) -> Job:
        described = {
            "input": str(self.input),
            "output": str(self.folder / "out"),
            "k": 3,
            "l": 2,
            "identifiers": ["ssn"],
            "quasi_identifiers": ["age", "country=set", "zip=prefix"],
            "sensitive": ["illness"],
            "partitioning": {"fragments": 3, "sample": 1.0},
            "engine": "spark",
            **keys,
        }
        (self.folder / "job.json").write_text(json.dumps(described))
        return pipeline.load_job(self.folder / "job.json")

    def divided(self, engine: Engine, **keys: Any) -> Run:
        """A run whose fragments are still to be anonymized."""
        run = pipeline.begin(self.job(**keys), str(self.work))
        pipeline.divide(run, engine=engine)
        return run


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def refusal(call: Callable[[], object]) -> tuple[type[BaseException], str]:
    """How ``call`` fails: finally, and without a value in what a log shows of it."""
    with pytest.raises(MondrianOpsError) as caught:
        call()
    shown = "".join(traceback.format_exception(caught.value))
    assert not [canary for canary in CANARIES if canary in shown]
    return type(caught.value), str(caught.value)


JOBS: dict[str, tuple[dict[str, Any], type[MondrianOpsError], str]] = {
    "fewer sensitive values than l": ({"l": 3}, UnattainableError, "'illness'"),
    "a diversity that the data has not": (
        {"diversity": "recursive", "c": 0.5},
        UnattainableError,
        "recursive",
    ),
    "a value that is not in the hierarchy": (
        {"quasi_identifiers": ["age", "country=hierarchy:countries.csv"]},
        HierarchyError,
        "'country': 1 row",
    ),
    "a sensitive value that is not in the hierarchy": (
        {
            "l": None,
            "t": 0.5,
            "t_distance": "hierarchical",
            "sensitive_hierarchy": {"illness": "illnesses.csv"},
        },
        HierarchyError,
        "'illness': 120 row",
    ),
    "infinite values": ({"quasi_identifiers": ["height"]}, InputError, "'height': 1 infinite"),
    "too many quantiles": (
        {"partitioning": {"strategy": "quantile", "fragments": 9, "sample": 1.0}},
        JobError,
        "partitioning.fragments",
    ),
}


BY_THE_SAME_WAY = (
    "a diversity that the data has not",
    "a sensitive value that is not in the hierarchy",
    "infinite values",
    "fragments vanished",
    "draft vanished",
    "input vanished",
)
"""Said by the same process as one of the others, and handed on by the same lines."""


def each_way(cases: Mapping[str, Any]) -> list[Any]:
    """The cases, of which those that come by the same way as another are long."""
    soak = dict.fromkeys(BY_THE_SAME_WAY, pytest.mark.soak)
    return [pytest.param(case, marks=soak.get(case, ())) for case in cases]


@pytest.mark.parametrize("case", each_way(JOBS))
def test_a_job_that_cannot_be_done(case: str, place: Place, spark_engine: Engine) -> None:
    keys, kind, says = JOBS[case]
    job = place.job(**keys)
    before = sorted(os.listdir(place.folder))
    local = refusal(lambda: pipeline.run(job, engine=LocalEngine()))
    spark = refusal(lambda: pipeline.run(job, engine=spark_engine))
    assert spark == local
    assert spark[0] is kind
    assert says in spark[1]
    assert sorted(os.listdir(place.folder)) == before


# What changes or vanishes between the steps


def lose_all(place: Place) -> None:
    shutil.rmtree(place.work)


def lose_scattered(place: Place) -> None:
    shutil.rmtree(place.work / "fragments")


def lose_draft(place: Place) -> None:
    (place.work / "draft.arrow").unlink()


def damage_draft(place: Place) -> None:
    (place.work / "draft.arrow").write_bytes(b"Canaria")


def lose_input(place: Place) -> None:
    place.input.unlink()


def change_input(place: Place) -> None:
    place.write(250)


SPOILT = {
    "vanished": ("scatter", lose_all, StorageError, "vanished"),
    "fragments vanished": ("scatter", lose_scattered, StorageError, "vanished"),
    "draft vanished": ("pushdown", lose_draft, StorageError, "vanished"),
    "draft damaged": ("pushdown", damage_draft, StorageError, "damaged"),
    "input vanished": ("pushdown", lose_input, InputError, "changed while"),
    "input changed": ("pushdown", change_input, InputError, "changed while"),
}


@pytest.mark.parametrize("case", each_way(SPOILT))
def test_what_is_spoilt_before_the_fragments(case: str, place: Place, spark_engine: Engine) -> None:
    retrieval, spoil, kind, says = SPOILT[case]

    def attempt(engine: Engine) -> tuple[type[BaseException], str]:
        place.write()
        place.divided(LocalEngine(), retrieval=retrieval)
        spoil(place)
        return refusal(lambda: pipeline.anonymize_all(str(place.work), engine))

    spark = attempt(spark_engine)
    assert spark == attempt(LocalEngine())
    assert spark[0] is kind
    assert says in spark[1]


@pytest.mark.parametrize("spoil", [lose_input, change_input])
def test_an_input_that_changes_before_it_is_shuffled(
    spoil: Callable[[Place], None], place: Place, spark_engine: Engine
) -> None:
    run = place.divided(spark_engine, **SHUFFLED)
    assert run.state.retrieval == "shuffle"
    spoil(place)
    kind, text = refusal(lambda: list(spark_engine.anonymize(run, run.state.fragments)))
    assert kind is InputError
    assert "changed while it was read" in text or "no such file" in text
    assert not run.work.staged()


def test_an_input_that_changes_before_it_is_counted(place: Place, spark_engine: Engine) -> None:
    def attempt(engine: Engine) -> tuple[type[BaseException], str]:
        place.write()
        run = pipeline.begin(place.job(), str(place.work))
        engine.draft(run, lambda _: None)
        change_input(place)
        return refusal(lambda: counted(engine, run))

    def counted(engine: Engine, run: Run) -> None:
        """As `partition` has it counted."""
        with nullcontext() if engine.remote else run.dataset.source.unchanged():
            engine.count(run, scatter=True, rows_seen=lambda _: None)

    spark = attempt(spark_engine)
    assert spark == attempt(LocalEngine())
    assert "changed while it was read" in spark[1]


def test_an_error_that_nobody_foresaw_may_be_retried(place: Place, spark_engine: Engine) -> None:
    """It is not one of ours, which are final, but Spark's."""
    run = place.divided(LocalEngine(), retrieval="scatter")
    (place.work / "release").rename(place.work / "elsewhere")
    (place.work / "release").write_text("a file where a directory should be")
    with pytest.raises(Exception) as caught:
        list(spark_engine.anonymize(run, run.state.fragments))
    assert not isinstance(caught.value, MondrianOpsError)


# Logs


def test_no_log_of_the_cluster_shows_a_value(
    place: Place, spark_engine: SparkEngine, spark_cluster: SparkCluster
) -> None:
    """After all of the above, and a run of each shape that succeeds."""
    for keys in ({"retrieval": "scatter"}, {"retrieval": "pushdown"}, SHUFFLED):
        pipeline.run(place.job(**keys), engine=spark_engine)
    shown = [text for path in logs(spark_cluster) for text in [log_text(path)]]
    assert any("Running task" in text for text in shown)  # an executor's
    assert any("SparkListenerTaskEnd" in text for text in shown)  # the events
    assert any("SparkConnectExecutionManager" in text for text in shown)
    for text in shown:
        assert not [canary for canary in CANARIES if canary in text]


def logs(cluster: SparkCluster) -> Iterator[Path]:
    """All that the cluster's processes wrote, but the files that are sent to them."""
    yield from (path for path in cluster.logs.iterdir() if path.is_file())
    yield from (path for path in cluster.events.rglob("*") if path.is_file())
    for worker in cluster.logs.parent.glob("worker-*"):
        yield from (path for name in ("stdout", "stderr") for path in worker.rglob(name))


def log_text(path: Path) -> str:
    how = "zstd" if path.suffix == ".zstd" else None
    with pa.input_stream(path, compression=how) as file:
        found = b""
        try:
            while block := file.read(1 << 16):
                found += block
        except OSError:  # the end of it is still being written
            assert how
    return found.decode(errors="replace")
