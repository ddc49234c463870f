"""How the local engine shares the cores out among the fragments."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mondrian_ops import pipeline, publish
from mondrian_ops.engines import fragment as module
from mondrian_ops.engines import local, threads
from mondrian_ops.engines.handover import Fragment
from mondrian_ops.engines.local import LocalEngine


@pytest.fixture
def taken(monkeypatch):
    """The cores that each fragment is cut on."""
    taken_cores: list[int] = []
    monkeypatch.setattr(
        module, "anonymize", lambda _run, _one, cores, **_: taken_cores.append(cores)
    )
    for each in (local, threads):
        monkeypatch.setattr(each, "available_cores", lambda: 8)
    return taken_cores


@pytest.mark.parametrize(
    ("number", "rows", "cores"),
    [(1, 9, 8), (3, 9, 2), (8, 9, 1), (20, 9, 1), (20, 10_000_000, 4), (20, 150_000, 2)],
)
def test_all_cores_are_divided_among_the_fragments(taken, number, rows, cores):
    """Of large ones two at a time, so that memory does not follow the cores."""
    run = SimpleNamespace(anonymizer=None)
    fragments = [Fragment(id=at, where="", rows=rows, work="w") for at in range(number)]
    list(LocalEngine().anonymize(run, fragments))
    assert taken == [cores] * number


@pytest.mark.parametrize(("engine", "cores"), [(None, 1), (LocalEngine(3), 3)])
def test_a_fragment_by_itself_takes_one_unless_it_is_given_more(tmp_path, taken, engine, cores):
    pq.write_table(pa.table({"age": [1, 2, 3, 4]}), tmp_path / "in.parquet")
    job = pipeline.load_job(
        {"input": str(tmp_path / "in.parquet"), "output": str(tmp_path / "out"), "k": 2,
         "quasi_identifiers": ["age"]}
    )  # fmt: skip
    work = publish.work_path(str(job.output), "r")
    for fragment in pipeline.partition(job, work=work):
        pipeline.anonymize_fragment(fragment, engine)
    assert set(taken) == {cores}
