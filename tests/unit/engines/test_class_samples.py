"""Samples of classes: of which fragments, and how the figures outlast them."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from mondrian_ops import pipeline, publish, stores
from mondrian_ops.datasets.people import people
from mondrian_ops.engines import class_samples
from mondrian_ops.engines.handover import Fragment, Summary
from mondrian_ops.engines.run import Run
from mondrian_ops.errors import StorageError
from mondrian_ops.verify.singling_out import SAMPLED


def fragments(count: int) -> list[Fragment]:
    return [Fragment(id=at, where="", rows=10, work="") for at in range(count)]


def test_all_of_few_fragments_and_some_of_many_the_same_in_every_task() -> None:
    assert class_samples.sampled_fragments(fragments(5)) == dict.fromkeys(range(5), 10)
    many = class_samples.sampled_fragments(fragments(1000))
    assert len(many) == class_samples.PARTS
    assert many == class_samples.sampled_fragments(fragments(1000))


def anonymized(folder: Path, **keys: object) -> tuple[Run, list[Summary]]:
    pq.write_table(people(8000, 1), folder / "in.parquet")
    job = stores.load_job(
        {"input": f"{folder}/in.parquet", "output": f"{folder}/release", "k": 5, "cut": "median",
         "quasi_identifiers": ["age", "zip"], "partitioning": {"fragments": 4}, **keys}
    )  # fmt: skip
    work = publish.work_path(str(job.output), "a run")
    summaries = [pipeline.anonymize_fragment(each) for each in pipeline.partition(job, work=work)]
    return Run(publish.WorkDir.attach(work)), summaries


def samples_in(run: Run) -> list[Path]:
    return sorted(Path(run.work.root, "fragments").glob("classes-*.arrow"))


def test_each_fragment_writes_its_share(tmp_path) -> None:
    run, _ = anonymized(tmp_path, sensitive=["income"])
    rows = [run.work.read_arrow(f"fragments/{path.name}").num_rows for path in samples_in(run)]
    assert len(rows) == 4
    assert sum(rows) == pytest.approx(SAMPLED, rel=0.05)
    assert max(rows) < 0.5 * SAMPLED


def test_a_retry_writes_the_same_sample(tmp_path) -> None:
    run, _ = anonymized(tmp_path, sensitive=["income"])
    before = [path.read_bytes() for path in samples_in(run)]
    for each in run.state.fragments:
        pipeline.anonymize_fragment(each)
    assert [path.read_bytes() for path in samples_in(run)] == before


def test_figures_are_measured_once_and_outlast_the_samples(tmp_path) -> None:
    run, summaries = anonymized(tmp_path, sensitive=["income"])
    figures = class_samples.written_figures(run, summaries)
    assert [each["column"] for each in figures] == ["income"]
    run.work.remove_fragments()
    assert class_samples.written_figures(run, summaries) == figures


def test_a_sample_that_vanished_is_an_error(tmp_path) -> None:
    run, summaries = anonymized(tmp_path, sensitive=["income"])
    samples_in(run)[0].unlink()
    with pytest.raises(StorageError, match="vanished"):
        class_samples.written_figures(run, summaries)


def test_without_raw_columns_nothing_is_sampled(tmp_path) -> None:
    run, summaries = anonymized(tmp_path)
    assert samples_in(run) == []
    assert class_samples.written_figures(run, summaries) == []
