"""Jobs whose output is an Iceberg table: written, audited on a branch, published in one commit."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import AddSnapshotUpdate, SetSnapshotRefUpdate

from engines.in_process import InProcessEngine
from lake import lake_in
from mondrian_ops import pipeline, publish, read_release, stores
from mondrian_ops.errors import ApprovalError, InputError, JobError, PrivacyError, StorageError
from mondrian_ops.job.job import Job
from mondrian_ops.pipeline import Approval
from mondrian_ops.publish import workdir
from mondrian_ops.stores import AccessPolicy, load_job, use_policy

OUT = "iceberg://lake/clinic.released"
NAME = "clinic.released"
ROWS = 240


def people(first: int = 0, rows: int = ROWS) -> pa.Table:
    numbers = range(first, first + rows)
    return pa.table(
        {
            "person": pa.array(numbers, pa.int64()),
            "age": pa.array([20 + 7 * at % 61 for at in numbers], pa.int64()),
            "zip": [f"{81000 + 13 * at % 90}" for at in numbers],
            "weight": pa.array([50 + 3 * at % 47 for at in numbers], pa.int32()),
            "illness": [("flu", "cold", "ulcer")[at % 3] for at in numbers],
        }
    )


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalog]:
    """A catalog, and rows of people in a file; access and policies are as before afterwards."""
    yield_ = lake_in(tmp_path, monkeypatch)
    pq.write_table(people(), tmp_path / "people.parquet")
    yield yield_
    use_policy(None)
    stores.use_policies(None)


def job(folder: Path, output: str = OUT, **options: Any) -> Job:
    asked = {
        "input": str(folder / "people.parquet"),
        "output": output,
        "k": 4,
        "l": 2,
        "quasi_identifiers": ["age", "zip=prefix"],
        "identifiers": ["person", "weight"],
        "sensitive": ["illness"],
        "partitioning": {"fragments": 3},
    }
    return load_job(asked | options)


def rows_of(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in table.to_pylist())


def released(catalog: Catalog) -> Counter[tuple[Any, ...]]:
    return rows_of(catalog.load_table(NAME).scan().to_arrow())


def told(table: Table) -> dict[str, str]:
    """What the summary of the current snapshot says of its release."""
    snapshot = table.current_snapshot()
    assert snapshot is not None
    mark = "mondrian_ops."
    properties = summary_of(snapshot).items()
    return {key.removeprefix(mark): text for key, text in properties if key.startswith(mark)}


def summary_of(snapshot: Snapshot) -> dict[str, str]:
    assert snapshot.summary is not None
    return dict(snapshot.summary.additional_properties)


def folder_of(catalog: Catalog) -> Path:
    """The folder of releases in the location of the table, which need not be there."""
    return Path(catalog.properties["warehouse"].removeprefix("file://"), *NAME.split(".")) / (
        "_mondrian_ops"
    )


def left_of(catalog: Catalog) -> tuple[set[str], int, list[str]]:
    """The refs of the table, its snapshots, and the names in its folder of releases."""
    table = catalog.load_table(NAME)
    names = [path.name for path in folder_of(catalog).iterdir()]
    return set(table.refs()), len(table.snapshots()), sorted(names)


def begun(asked: Job) -> tuple[str, list[Any]]:
    """The working files of a run whose parts are written, and the summaries of these."""
    work = publish.work_path(str(asked.output), json.dumps(asked.to_dict()))
    fragments = pipeline.partition(asked, work=work)
    return work, [pipeline.anonymize_fragment(each) for each in fragments]


def test_a_release_becomes_the_table_as_it_would_become_a_directory(catalog, tmp_path):
    for _ in range(2):
        report = pipeline.run(job(tmp_path))
    directory = tmp_path / "out" / "released"
    pipeline.run(job(tmp_path, str(directory)))
    assert released(catalog) == rows_of(pq.read_table(directory))
    table = catalog.load_table(NAME)
    token = publish.current_token(OUT)
    assert left_of(catalog)[:2] == ({"main"}, 2)  # the first can be read until it expires
    location = f"{table.location()}/_mondrian_ops/{token}"
    assert told(table) == {
        "token": token,
        "k": "4",
        "l": "2",
        "report": f"{location}/_report.json",
    }
    published = json.loads(Path(location.removeprefix("file://"), "_report.json").read_text())
    assert published == publish.report_of(OUT)
    assert published["job"]["output"] == report["job"]["output"] == OUT
    assert Path(location.removeprefix("file://"), "_report.html").read_text().count("released")
    assert table.metadata.properties.keys() == {"schema.name-mapping.default"}


def test_the_table_is_read_checked_and_anonymized_further_as_a_release_is(catalog, tmp_path):
    asked = job(tmp_path)
    pipeline.run(asked)
    assert pipeline.verify(asked, OUT)["passed"]
    assert not pipeline.verify(job(tmp_path, k=100), OUT)["passed"]
    numbers = read_release(OUT, columns=["age"], kind="arrow")
    assert numbers.num_rows == ROWS
    before = catalog.load_table(NAME).current_snapshot().snapshot_id
    pipeline.run(job(tmp_path, k=20))
    assert pipeline.verify(asked, f"{OUT}@{before}")["rows"] == ROWS
    assert pipeline.verify(job(tmp_path, k=20), OUT)["passed"]


def test_a_release_is_checked_on_a_branch_that_readers_of_the_table_do_not_see(catalog, tmp_path):
    pipeline.run(job(tmp_path))
    before = released(catalog)
    work, summaries = begun(asked := job(tmp_path, k=20))
    pipeline.check(asked, work=work, summaries=summaries)
    table = catalog.load_table(NAME)
    token = publish.WorkDir(work).token
    assert table.refs().keys() == {"main", f"mondrian_ops-{token}"}
    assert released(catalog) == before
    branch = table.refs()[f"mondrian_ops-{token}"].snapshot_id
    checked = rows_of(table.scan(snapshot_id=branch).to_arrow())
    assert checked != before
    pipeline.publish(asked, work=work)
    table = catalog.load_table(NAME)
    assert released(catalog) == checked
    assert (table.refs().keys(), table.refs()["main"].snapshot_id) == ({"main"}, branch)


def test_tasks_of_spark_check_the_parts_where_the_table_has_them(catalog, tmp_path):
    work, summaries = begun(asked := job(tmp_path))
    report = pipeline.wrap_up(asked, work=work, summaries=summaries, engine=InProcessEngine())
    pipeline.discard(work)
    assert report["rows"]["published"] == sum(released(catalog).values()) == ROWS
    assert left_of(catalog)[:2] == ({"main"}, 1)


@pytest.mark.parametrize("has_old", [True, False])
def test_a_refused_release_leaves_no_branch_and_no_parts(catalog, tmp_path, has_old):
    if has_old:
        pipeline.run(job(tmp_path))
        before = left_of(catalog)
    with pytest.raises(PrivacyError, match="max_gcp"):
        pipeline.run(job(tmp_path, k=20, max_gcp=0.0001))
    if has_old:
        assert left_of(catalog) == before
        named = {Path(each.manifest_list).name for each in catalog.load_table(NAME).snapshots()}
        lists = (folder_of(catalog).parent / "metadata").glob("snap-*")
        assert {path.name for path in lists} == named
        return
    assert catalog.load_table(NAME).snapshots() == []
    files = [path for path in folder_of(catalog).parent.rglob("*") if path.is_file()]
    assert all(path.name.endswith(".metadata.json") for path in files)


def test_of_two_runs_at_once_the_later_is_refused_and_nothing_is_merged(catalog, tmp_path):
    pipeline.run(job(tmp_path))
    one, other = job(tmp_path, k=20), job(tmp_path, k=30)
    (slow, of_slow), (fast, of_fast) = begun(one), begun(other)
    pipeline.check(one, work=slow, summaries=of_slow)
    pipeline.wrap_up(other, work=fast, summaries=of_fast)
    published = released(catalog)
    with pytest.raises(StorageError, match=r"another run has published .* run again"):
        pipeline.publish(one, work=slow)
    for work in (slow, fast):
        pipeline.discard(work)
    assert released(catalog) == published
    assert told(catalog.load_table(NAME))["k"] == "30"
    assert left_of(catalog)[0] == {"main"}
    assert len(left_of(catalog)[2]) == 2


def test_of_two_first_releases_at_once_one_becomes_the_table(catalog, tmp_path):
    one, other = job(tmp_path, k=20), job(tmp_path, k=30)
    (slow, of_slow), (fast, of_fast) = begun(one), begun(other)
    pipeline.check(one, work=slow, summaries=of_slow)
    pipeline.wrap_up(other, work=fast, summaries=of_fast)
    with pytest.raises(StorageError, match="another run has published"):
        pipeline.publish(one, work=slow)
    pipeline.discard(slow)
    pipeline.discard(fast)
    assert told(catalog.load_table(NAME))["k"] == "30"
    assert left_of(catalog)[:2] == ({"main"}, 1)


def test_rows_of_others_are_neither_replaced_nor_joined(catalog, tmp_path):
    theirs = pa.table({"age": ["a"], "zip": ["b"], "illness": ["c"]})
    table = catalog.create_table(NAME, schema=theirs.schema)
    table.append(theirs)
    with pytest.raises(StorageError, match=r"has rows that no release has put there"):
        pipeline.run(job(tmp_path))
    table.delete("age == 'a'")
    pipeline.run(job(tmp_path))
    work, summaries = begun(asked := job(tmp_path, k=20))
    pipeline.check(asked, work=work, summaries=summaries)
    catalog.load_table(NAME).append(theirs)
    with pytest.raises(StorageError, match=r"has rows that no release has put there"):
        pipeline.publish(asked, work=work)
    pipeline.discard(work)
    assert left_of(catalog)[0] == {"main"}
    assert sum(released(catalog).values()) == ROWS + 1


def test_what_a_compaction_did_meanwhile_does_not_stop_a_release(catalog, tmp_path):
    pipeline.run(job(tmp_path))
    first = publish.current_token(OUT)
    work, summaries = begun(asked := job(tmp_path, k=20))
    pipeline.check(asked, work=work, summaries=summaries)
    compact(catalog.load_table(NAME))
    assert publish.current_token(OUT) == first
    pipeline.publish(asked, work=work)
    assert told(catalog.load_table(NAME))["k"] == "20"
    assert sum(released(catalog).values()) == ROWS


def compact(table: Table) -> None:
    """Another snapshot with the same files, as a program that rewrites files commits it."""
    current = table.current_snapshot()
    assert current is not None
    summary = Summary(Operation.REPLACE, **{"total-records": str(ROWS)})
    sequence = table.metadata.last_sequence_number + 1
    snapshot = current.model_copy(
        update={
            "snapshot_id": current.snapshot_id + 1,
            "parent_snapshot_id": current.snapshot_id,
            "sequence_number": sequence,
            "summary": summary,
        }
    )
    main = SetSnapshotRefUpdate(ref_name="main", type="branch", snapshot_id=snapshot.snapshot_id)
    table._do_commit((AddSnapshotUpdate(snapshot=snapshot), main), ())


def test_the_next_run_removes_what_a_killed_one_has_left(catalog, tmp_path, monkeypatch):
    pipeline.run(job(tmp_path))
    asked = job(tmp_path, k=20)
    alive, of_alive = begun(other := job(tmp_path, k=30))
    pipeline.check(other, work=alive, summaries=of_alive)
    work, summaries = begun(asked)
    pipeline.check(asked, work=work, summaries=summaries)
    with monkeypatch.context() as patched:  # its working files are swept, the catalog is away
        patched.setattr(publish.WorkDir, "_withdraw_from_table", lambda *_: None)
        pipeline.discard(work)
    assert len(left_of(catalog)[0]) == 3
    publish.check_output(str(asked.input), OUT)
    assert len(left_of(catalog)[0]) == 2
    pipeline.publish(other, work=alive)
    pipeline.discard(alive)
    assert told(catalog.load_table(NAME))["k"] == "30"
    assert left_of(catalog)[0] == {"main"}
    assert len(left_of(catalog)[2]) == 2


def test_columns_follow_the_release_and_earlier_ones_stay_readable(catalog, tmp_path):
    pipeline.run(job(tmp_path))
    first = catalog.load_table(NAME).current_snapshot().snapshot_id
    plain = rows_of(catalog.load_table(NAME).scan().to_arrow())
    bounds = job(tmp_path, interval_style="bounds", replace="any")
    work, summaries = begun(bounds)
    pipeline.check(bounds, work=work, summaries=summaries)
    assert catalog.load_table(NAME).schema().column_names == ["age", "zip", "illness"]
    pipeline.publish(bounds, work=work)
    table = catalog.load_table(NAME)
    assert table.scan().to_arrow()["age_min"].null_count == 0
    assert set(table.schema().column_names) == {
        *("age_min", "age_max", "age_hidden"), "zip", "illness",
    }  # fmt: skip
    assert rows_of(table.scan(snapshot_id=first).to_arrow()) == plain
    pipeline.run(job(tmp_path, replace="any"))
    table = catalog.load_table(NAME)
    assert set(table.schema().column_names) == {"age", "zip", "illness"}
    assert rows_of(table.scan(snapshot_id=first).to_arrow()) == plain
    assert sum(released(catalog).values()) == ROWS


def test_the_nights_of_a_series_are_tables_with_a_date(catalog, tmp_path):
    options = {"series": {"hold_above": 0.9, "hold_nights": 3}}
    for day, rows in (("2026-11-01", ROWS), ("2026-11-02", ROWS + 60)):
        pq.write_table(people(rows, rows), tmp_path / "people.parquet")
        output = f"iceberg://lake/clinic.{day}"
        report = pipeline.run(job(tmp_path, output, **options))
        assert report["rows"]["input"] == rows
        table = catalog.load_table(f"clinic.{day}")
        assert table.scan().to_arrow().num_rows == report["rows"]["published"]
    with pytest.raises(StorageError, match="is in the series already"):
        pipeline.run(job(tmp_path, output, **options))


def test_a_series_that_follows_its_people_is_attacked_from_its_tables(catalog, tmp_path):
    options = {
        "entity_id": "person",
        "series": {"protect": "intersection", "unmatched": "suppress"},
    }
    for day, first in (("2026-11-01", 0), ("2026-11-02", 60)):
        drop = tmp_path / f"{day}.parquet"
        pq.write_table(people(first), drop)
        asked = job(tmp_path, f"iceberg://lake/clinic.ill_{day}", input=str(drop), **options)
        pipeline.run(asked)
    found = pipeline.verify_series(asked, str(asked.output))
    assert len(found["nights"]) == 2
    assert not found["failures"]
    pipeline.run(job(tmp_path, "iceberg://lake/clinic.others_2026-11-03"))
    with pytest.raises(JobError, match="lies beside the nights of a series that protects"):
        pipeline.run(job(tmp_path, "iceberg://lake/clinic.ill_2026-11-03"))


def test_people_of_a_release_before_are_not_published_again_in_another_table(catalog, tmp_path):
    options = {"entity_id": "person", "overlap": "refuse"}
    pipeline.run(job(tmp_path, "iceberg://lake/clinic.one", **options))
    with pytest.raises(PrivacyError, match=r"iceberg://lake/clinic\.one|released before"):
        pipeline.run(job(tmp_path, "iceberg://lake/clinic.two", **options))
    with pytest.raises(NoSuchTableError):
        catalog.load_table("clinic.two")


def test_a_sweep_finds_the_working_files_of_tables_by_the_folder_of_their_files(catalog, tmp_path):
    work, summaries = begun(asked := job(tmp_path))
    pipeline.check(asked, work=work, summaries=summaries)
    publish.WorkDir(work).keep()
    nothing = list(publish.sweep("iceberg://lake/clinic", timedelta(), lambda _: False))
    assert nothing == []
    os.close(workdir._HELD.pop(work))
    (swept,) = publish.sweep(str(tmp_path), timedelta(), lambda _: False)
    assert (swept.work, swept.state) == (work, "removed")
    assert catalog.load_table(NAME).snapshots() == []


def test_a_release_that_waits_for_an_approval_waits_on_its_branch(catalog, tmp_path):
    asked = job(tmp_path, require_approval=True)
    work, summaries = begun(asked)
    checked = pipeline.check(asked, work=work, summaries=summaries)
    assert len(left_of(catalog)[0]) == 1
    with pytest.raises(ApprovalError, match="got none"):
        pipeline.publish(asked, work=work)
    part = next(folder_of(catalog).glob("*/part-*.parquet"))
    content = part.read_bytes()
    part.write_bytes(content + b"1")
    approval = Approval(checked.seal, "jane", "2025-06-01T12:00:00+00:00")
    with pytest.raises(StorageError, match="changed after they were checked"):
        pipeline.publish(asked, work=work, approval=approval)
    part.write_bytes(content)
    report = pipeline.publish(asked, work=work, approval=approval)
    assert report["outcome"]["decided_by"] == "jane"
    assert left_of(catalog)[0] == {"main"}


def test_a_branch_that_somebody_writes_to_is_not_published(catalog, tmp_path):
    work, summaries = begun(asked := job(tmp_path))
    pipeline.check(asked, work=work, summaries=summaries)
    branch = f"mondrian_ops-{publish.WorkDir(work).token}"
    table = catalog.load_table(NAME)
    table.append(pa.table({"age": ["a"], "zip": ["b"], "illness": ["c"]}), branch=branch)
    with pytest.raises(StorageError, match=r"removed the branch .* or written to it"):
        pipeline.publish(asked, work=work)
    pipeline.discard(work)
    assert catalog.load_table(NAME).current_snapshot() is None


def test_a_job_writes_where_both_the_table_and_its_files_are_allowed(catalog, tmp_path):
    folder = str(folder_of(catalog).parent)
    for allowed in ((OUT, folder), ("iceberg://lake/clinic", str(tmp_path / "warehouse"))):
        use_policy(AccessPolicy(inputs=(str(tmp_path),), outputs=allowed))
        pipeline.run(job(tmp_path))
    for allowed, named in (
        ((folder,), "iceberg://lake/clinic.released"),
        (("iceberg://lake/clinic.others", folder), "iceberg://lake/clinic.released"),
        ((OUT,), "_mondrian_ops"),
        ((OUT, f"{folder}2"), "_mondrian_ops"),
    ):
        use_policy(AccessPolicy(inputs=(str(tmp_path),), outputs=allowed))
        with pytest.raises(JobError, match=rf"output: .*{named}.*(?s:allowed)"):
            stores.check_location("output", OUT, writing=True)
            pipeline.run(job(tmp_path))


@pytest.mark.parametrize(
    ("output", "named"),
    [
        (f"{OUT}@1", "names an earlier state of a table"),
        ("iceberg://lake/elsewhere.released", "namespace that the catalog has not; create it"),
        ("iceberg://sea/clinic.released", "nothing says how to reach the catalog 'sea'"),
        ("iceberg://lake/released", "names no table"),
    ],
)
def test_an_impossible_table_is_refused_with_a_remedy(catalog, tmp_path, output, named):
    with pytest.raises((JobError, StorageError, InputError), match=named):
        pipeline.run(job(tmp_path, output))


def test_the_input_is_not_replaced_by_its_own_release(catalog, tmp_path):
    table = catalog.create_table("clinic.patients", schema=people().schema)
    table.append(people())
    source = "iceberg://lake/clinic.patients"
    at = table.current_snapshot().snapshot_id
    for one in (source, f"{source}@{at}"):
        with pytest.raises(StorageError, match="is the table that is the input"):
            pipeline.run(job(tmp_path, source, input=one))
    pipeline.run(job(tmp_path, input=source))
    assert sum(released(catalog).values()) == ROWS
