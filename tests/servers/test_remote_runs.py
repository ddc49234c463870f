"""Whole runs with input and output on HDFS and S3, by the local engine."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sql_oracle
from listings import asked_by_phase
from mapped_phases import run_mapped
from mondrian_ops import pipeline, publish, stores
from mondrian_ops.datasets.people import people
from mondrian_ops.errors import JobError, StorageError
from mondrian_ops.publish import hdfs, objects
from mondrian_ops.series import waiting
from mondrian_ops.stores.hdfs import hdfs_client

ROWS = 3000


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("people")
    table = people(ROWS, seed=3)
    for number in range(2):
        part = table.slice(number * ROWS // 2, ROWS // 2)
        pq.write_table(part, folder / f"{number}.parquet", row_group_size=400)
    return folder


def job(source: str, output: str, **changed):
    return pipeline.load_job(
        {
            "input": source,
            "output": output,
            "k": 5,
            "l": 2,
            "identifiers": ["name"],
            "quasi_identifiers": ["age", "sex", "zip=prefix", "country"],
            "sensitive": ["diagnosis"],
            "unlisted": "drop",
            "cut": "auto" if "algorithm" in changed else "median",  # whose rows are the same again
            "partitioning": {"fragments": 3},
            **changed,
        }
    )


def rows_of(release: Path) -> list[tuple]:
    table = pa.concat_tables(pq.read_table(p) for p in sorted(release.glob("part-*")))
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True), key=str)


@pytest.mark.parametrize("retrieval", ["scatter", "pushdown"])
def test_the_release_is_that_of_local_files(store, source, tmp_path, retrieval):
    for path in source.iterdir():
        store.put(f"in/{path.name}", path.read_bytes())
    local = pipeline.run(job(str(source), str(tmp_path / "out"), retrieval=retrieval))
    for _ in range(2):  # the second release takes the place of the first
        remote = pipeline.run(job(store.url("in"), store.url("out/people"), retrieval=retrieval))
    for key in ("rows", "achieved", "equivalence_classes", "metrics"):
        assert remote[key] == local[key]
    assert store.names("out") == ["people"]
    names = store.names("out/people")
    assert names[:3] == ["_SUCCESS", "_report.html", "_report.json"]
    assert len(names) == 3 + len(remote["fragments"])
    assert json.loads(store.fetch("out/people/_report.json")) == remote
    copy = store.copy("out/people", tmp_path / "copy")
    assert rows_of(copy) == rows_of(tmp_path / "out")
    sql_oracle.agree(remote, copy)
    found = pipeline.verify(job(store.url("in"), store.url("out")), store.url("out/people"))
    assert found["passed"]
    assert found["rows"] == ROWS


def test_only_the_partition_task_lists_the_source(store, source):
    for path in source.iterdir():
        store.put(f"in/{path.name}", path.read_bytes())
    asked = asked_by_phase(job(store.url("in"), store.url("out"), retrieval="pushdown"))
    partition, tasks, wrap_up = asked
    assert len(partition.listed) == 2  # to find the files, and after both passes
    assert all(len(task.files) <= 2 for task in tasks)
    assert not any(each.listed for each in (*tasks, wrap_up))
    assert not wrap_up.files


def test_a_mapped_first_phase_goes_through_the_store(store, source, tmp_path):
    for path in source.iterdir():
        store.put(f"in/{path.name}", path.read_bytes())
    keys = {"algorithm": "tds", "tds": {"partitions": 3, "k_intermediate": 50}}
    local = pipeline.run(job(str(source), str(tmp_path / "out"), **keys))
    remote = run_mapped(job(store.url("in"), store.url("out"), **keys))
    for key in ("rows", "achieved", "equivalence_classes", "recoding"):
        assert remote[key] == local[key]
    assert len(remote["recoding"]["specializations"]["parts"]) == 3
    assert rows_of(store.copy("out", tmp_path / "copy")) == rows_of(tmp_path / "out")
    assert store.names() == ["in", "out"]


def test_a_release_waits_on_its_store_and_is_published_as_it_was_checked(store, source):
    store.put("in.parquet", (source / "0.parquet").read_bytes())
    asked = job(store.url("in.parquet"), store.url("out"), retrieval="scatter",
                require_approval=True)  # fmt: skip
    work = publish.work_path(store.url("out"), "run")
    fragments = pipeline.partition(asked, work=work)
    summaries = [pipeline.anonymize_fragment(each) for each in fragments]
    _report, seal = pipeline.check(asked, work=work, summaries=summaries)
    publish.WorkDir(work).remove_fragments()
    approval = pipeline.Approval(seal, "ada", "2025-06-01T12:00:00+00:00")
    folder = stores.shown(work).rpartition("/")[2]
    part = next(name for name in store.names(f"{folder}/release") if name.startswith("part-"))
    content = store.fetch(f"{folder}/release/{part}")
    store.put(f"{folder}/release/{part}", content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(StorageError, match="changed after they were checked"):
        pipeline.publish(asked, work=work, approval=approval)
    store.put(f"{folder}/release/{part}", content)
    assert pipeline.publish(asked, work=work, approval=approval)["outcome"]["decided_by"] == "ada"
    pipeline.discard(work)
    assert pipeline.verify(asked, store.url("out"))["passed"]
    assert store.names() == ["in.parquet", "out"]


def test_a_worker_that_does_not_see_the_working_files_fails_and_says_so(store, source):
    store.put("in.parquet", (source / "0.parquet").read_bytes())
    asked = job(store.url("in.parquet"), store.url("out"), retrieval="scatter")
    work = publish.work_path(store.url("out"), "run")
    fragments = pipeline.partition(asked, work=work)
    elsewhere = replace(fragments[0], work=publish.work_path(store.url("other"), "run"))
    with pytest.raises(StorageError, match="not on storage that all workers share"):
        pipeline.anonymize_fragment(elsewhere)
    pipeline.discard(work)
    assert store.names() == ["in.parquet"]


def test_a_retry_of_wrap_up_tidies_up_after_the_attempt_that_was_killed(store, source, monkeypatch):
    """The new release stood already; what the old one left is gone after the retry."""
    store.put("in.parquet", (source / "0.parquet").read_bytes())
    asked = job(store.url("in.parquet"), store.url("out"), retrieval="scatter")
    pipeline.run(asked)
    work = publish.work_path(store.url("out"), "run")
    fragments = pipeline.partition(asked, work=work)
    summaries = [pipeline.anonymize_fragment(each) for each in fragments]

    def killed(*_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(objects, "_remove_leftovers", killed)
        patch.setattr(hdfs, "remove_tree", killed)
        pipeline.wrap_up(asked, work=work, summaries=summaries)
    left = [*store.names(), *store.names("out")]
    report = pipeline.wrap_up(asked, work=work, summaries=summaries)
    pipeline.discard(work)
    assert len(left) > len([*store.names(), *store.names("out")])
    assert store.names() == ["in.parquet", "out"]
    parts = [name for name in store.names("out") if name.startswith("part-")]
    assert len(parts) == len(report["fragments"])


@pytest.mark.soak
@pytest.mark.hdfs
def test_a_run_outlives_the_death_of_a_data_node(hdfs_folder, source):
    for path in source.iterdir():
        hdfs_folder.put(f"in/{path.name}", path.read_bytes())
    asked = job(hdfs_folder.url("in"), hdfs_folder.url("out"), retrieval="scatter")
    work = publish.work_path(hdfs_folder.url("out"), "run")
    try:
        fragments = pipeline.partition(asked, work=work)
        summaries = [pipeline.anonymize_fragment(fragments[0])]
        hdfs_folder.server.kill_data_node(0)
        summaries += [pipeline.anonymize_fragment(each) for each in fragments[1:]]
        report = pipeline.wrap_up(asked, work=work, summaries=summaries)
        pipeline.discard(work)
    finally:
        hdfs_folder.server.restart_data_nodes()
    assert report["rows"] == {"input": ROWS, "published": ROWS, "suppressed": 0}
    assert pipeline.verify(asked, hdfs_folder.url("out"))["passed"]
    assert hdfs_folder.names() == ["in", "out"]


def test_rows_of_a_series_wait_beside_its_releases(source, store):
    """A night that holds all rows, one that publishes, and one that publishes what still waits."""
    rows = pq.read_table(source / "0.parquet").select(["age", "zip", "sex", "diagnosis"])
    counted = []
    for day, (first, count) in enumerate([(0, 3), (3, 300), (303, 100)], 1):
        drop = source / f"drop-{day}.parquet"
        pq.write_table(rows.slice(first, count), drop)
        night = {
            "input": str(drop),
            "output": store.url(f"out/2025-06-0{day}"),
            "k": 5,
            "l": 2,
            "quasi_identifiers": ["age", "zip=prefix", "sex"],
            "sensitive": ["diagnosis"],
            "series": {"hold_nights": 0 if day == 3 else 2},
        }
        if day < 3:
            night["series"]["hold_above"] = 0.05
        counted.append(pipeline.run(pipeline.load_job(night))["rows"])
        (directory,) = stores.names_in(store.url("out/.mondrian_waiting"))
        files = stores.names_in(store.url(f"out/.mondrian_waiting/{directory}"))
        assert len(files) == bool(counted[-1]["waiting"])
        drop.unlink()
    # Three rows wait, of which the report says that they are fewer than k.
    assert [each["waiting"] for each in counted[::2]] == [5, 0]
    assert sum(each["published"] for each in counted) == 403
    with pytest.raises(StorageError, match="is in the series already"):
        pq.write_table(rows, drop)
        pipeline.run(pipeline.load_job(night))
    drop.unlink()


def test_people_are_followed_through_the_nights_of_a_series(source, store):
    """However the output is spelled; the last night comes without the series, beside the others."""
    rows = pq.read_table(source / "0.parquet").select(["age", "zip", "sex", "diagnosis"])
    rows = rows.append_column("person", pa.array(range(len(rows))))
    for day, output in enumerate(["out/2025-07-01/", "out//2025-07-02"], 1):
        drop = source / f"drop-{day}.parquet"
        pq.write_table(rows.slice(100 * day, 900), drop)
        night = {
            "input": str(drop),
            "output": store.url(output),
            "k": 5,
            "l": 2,
            "entity_id": "person",
            "quasi_identifiers": ["age", "zip=prefix", "sex"],
            "sensitive": ["diagnosis"],
            "unlisted": "drop",
            "series": {"kind": "snapshots", "protect": "intersection"},
        }
        report = pipeline.run(pipeline.load_job(night))
        drop.unlink()
        assert report["rows"]["published"] == 900
        assert report["series"]["people"]["known_before"] == (800 if day == 2 else 0)
    pq.write_table(rows, drop)
    outside = {key: value for key, value in night.items() if key != "series"}
    aside = store.url("out/2025-07-03/")
    for output in (aside, aside.replace("s3://", "s3://@")):
        with pytest.raises(JobError, match="it lies beside the nights of a series"):
            pipeline.run(pipeline.load_job({**outside, "output": output}))
    if aside.startswith("s3://"):
        with pytest.raises(JobError, match="name the store or its connection otherwise"):
            pipeline.run(pipeline.load_job({**night, "output": aside.replace("//", "//@", 1)}))
    drop.unlink()


def test_a_directory_of_rows_that_wait_is_made_private_again(hdfs_folder):
    """A backup that was restored may have left it open."""
    file = waiting.file_of(hdfs_folder.url("out/*"), 1, "0" * 12)
    own = file.rpartition("/")[0]
    directories = [stores.filesystem(each)[1] for each in (own.rpartition("/")[0], own)]
    client = hdfs_client(file)
    client.mkdir(directories[1], permission="755")
    waiting.write(file, pa.schema({"age": pa.int64()}), [], {})
    assert [client.info(each)["permission"] for each in directories] == ["700", "700"]
