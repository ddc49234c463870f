"""A release becomes a table: whoever is killed, whoever commits meanwhile, with which columns."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update import AddSnapshotUpdate, SetLocationUpdate, SetSnapshotRefUpdate
from sqlalchemy.exc import OperationalError

from lake import lake_in
from mondrian_ops.errors import InputError, StorageError
from mondrian_ops.publish import (
    Candidate,
    WorkDir,
    check_output,
    current_token,
    folder_of,
    iceberg,
    iceberg_commits,
    iceberg_snapshot,
    publication,
    publish,
    published,
    release_files,
    report_of,
    staged,
    work_path,
    write_part,
)
from mondrian_ops.publish.publication import publication_of
from mondrian_ops.stores import write_file
from tiers import in_soak, one_here

OUT = "iceberg://lake/clinic.released"
NAME = "clinic.released"


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    monkeypatch.setattr(iceberg_commits, "_PAUSE_S", 0)
    return lake_in(tmp_path, monkeypatch)


def rows_of_version(version: int, part: int = 0) -> pa.Table:
    return pa.table({"version": [f"v{version}"] * 10, "part": pa.array([part] * 10, pa.int32())})


def written(version: int, make: Callable[..., pa.Table] = rows_of_version) -> WorkDir:
    """The working files of a run whose two parts and report are written."""
    work = WorkDir(work_path(OUT, f"run {version}"))
    work.create()
    for part in range(2):
        write_part(work.part_path(part), make(version, part))
    report = {"job": {}, "equivalence_classes": 1, "version": version}
    write_file(f"{work.staging}/_report.json", json.dumps(report).encode())
    return work


def candidate(work: WorkDir) -> Candidate:
    rows = dict.fromkeys(work.part_paths(range(2)), 10)
    return Candidate(work.token, rows, {"k": "5", "run": "dag/run"})


def stage(work: WorkDir) -> None:
    with staged(OUT, candidate(work)):
        pass


def put(work: WorkDir) -> None:
    """What wrap_up does, once more after a kill."""
    if not published(OUT, work.token):
        stage(work)
    publish(work.staging, OUT, work.token)


def version_of(catalog: Catalog) -> int:
    """The version of a whole release; 0 for a table without one; fails on anything else."""
    rows = catalog.load_table(NAME).scan().to_arrow()
    if not rows.num_rows:
        return 0
    (version,) = set(rows["version"].to_pylist())
    assert rows.num_rows == 20
    assert sorted(rows["part"].to_pylist()) == [0] * 10 + [1] * 10
    assert report_of(OUT)["version"] == int(version[1:])
    return int(version[1:])


def left_of(catalog: Catalog) -> tuple[set[str], list[str]]:
    """The refs of the table, and the names in its folder of releases."""
    table = catalog.load_table(NAME)
    folder = Path(table.location().removeprefix("file://"), "_mondrian_ops")
    return set(table.refs()), [path.name for path in folder.iterdir()]


def test_ten_releases_replace_one_another_and_each_can_be_read_again(catalog):
    numbers = []
    for version in range(1, 11):
        work = written(version)
        put(work)
        work.remove()
        assert version_of(catalog) == version
        numbers.append(catalog.load_table(NAME).current_snapshot().snapshot_id)
    table = catalog.load_table(NAME)
    assert [each.parent_snapshot_id for each in table.snapshots()] == [None, *numbers[:-1]]
    for version, number in enumerate(numbers, 1):
        rows = table.scan(snapshot_id=number).to_arrow()
        assert set(rows["version"].to_pylist()) == {f"v{version}"}
    assert left_of(catalog)[0] == {"main"}
    assert len(left_of(catalog)[1]) == 10


def test_a_release_is_read_back_as_the_table_says_and_its_parts_as_files(catalog):
    work = written(1)
    put(work)
    (table,) = release_files(OUT)
    assert table.columns == ["version", "part"]
    assert sum(batch.num_rows for batch in table.batches(["part"])) == 20
    assert folder_of(OUT).endswith(current_token(OUT))
    for path in work.part_paths(range(2)):
        (part,) = release_files(path)
        assert sum(batch.num_rows for batch in part.batches()) == 10


class Killed(BaseException):
    """As if the process was killed there."""


@contextmanager
def killed_at(monkeypatch: pytest.MonkeyPatch, step: int, is_after: bool) -> Iterator[None]:
    """Raise before or after the step of this number, and at each later one."""
    done = 0

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            nonlocal done
            number, done = done, done + 1
            if number >= step and not is_after:
                raise Killed
            result = function(*args, **options)
            if number >= step:
                raise Killed
            return result

        return call

    with monkeypatch.context() as patched:
        patched.setattr(Table, "_do_commit", counted(Table._do_commit))
        patched.setattr(iceberg, "remove_tree", counted(iceberg.remove_tree))
        patched.setattr(iceberg, "_made", counted(iceberg._made))
        for module in (iceberg, publication):
            patched.setattr(module, "write_file", counted(module.write_file))
        yield


@pytest.mark.parametrize(
    ("has_old", "is_after"),
    [*one_here([(True, True), (False, False)]), *in_soak([(True, False), (False, True)])],
)
def test_killed_at_any_step_old_or_new_stands_and_a_retry_commits_once(
    catalog, monkeypatch, has_old, is_after
):
    if has_old:
        put(written(100))
    seen = set()
    for step in range(20):
        if not has_old and step:
            catalog.purge_table(NAME)
        work = written(step + 1)
        before = version_of(catalog) if has_old else 0
        is_over = False
        with killed_at(monkeypatch, step, is_after):
            try:
                put(work)
                is_over = True
            except Killed:
                pass
        is_published = published(OUT, work.token)
        if has_old or is_published:
            assert version_of(catalog) == (step + 1 if is_published else before)
        seen.add(is_published)
        put(work)
        token = work.token
        work.remove()
        assert version_of(catalog) == step + 1
        table = catalog.load_table(NAME)
        mine = [s for s in table.snapshots() if s.summary["mondrian_ops.token"] == token]
        assert len(mine) == 1
        assert left_of(catalog)[0] == {"main"}
        if is_over:
            break
    else:
        pytest.fail("never ran to its end")
    assert step > 4
    assert seen == {True, False}


@pytest.mark.parametrize("is_published", [True, False])
def test_who_removes_working_files_leaves_what_is_published_alone(
    catalog, monkeypatch, is_published
):
    """The process was killed before or after the commit; a sweep or a teardown comes."""
    put(written(1))
    work = written(2)
    stage(work)
    commits = Table._do_commit

    def killed(*args: Any) -> None:
        if is_published:
            commits(*args)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(Table, "_do_commit", killed)
        with pytest.raises(Killed):
            publish(work.staging, OUT, work.token)
    WorkDir(work.root).remove()
    assert version_of(catalog) == (2 if is_published else 1)
    assert left_of(catalog)[0] == {"main"}
    assert (work._attempt in left_of(catalog)[1]) == is_published


def test_a_later_attempt_at_a_run_removes_the_branch_of_the_one_before(catalog):
    put(written(1))
    work = written(2)
    stage(work)
    late = WorkDir.attach(work.root)
    work.create()
    assert left_of(catalog)[0] == {"main"}
    with pytest.raises(StorageError, match="later attempt"):
        late.check_attempt()
    with pytest.raises(StorageError, match=r"vanished|removed the branch"):
        publish(late.staging, OUT, late._attempt)
    assert version_of(catalog) == 1


def test_files_of_attempts_whose_working_files_are_gone_are_removed_no_others(catalog, monkeypatch):
    put(one := written(1))
    dead, begun, alive = written(2), written(3), written(4)
    stage(dead)
    stage(alive)
    with monkeypatch.context() as patched:  # the catalog is away
        patched.setattr(WorkDir, "_withdraw_from_table", lambda *_: None)
        for work in (one, dead, begun):
            work.remove()
    assert len(left_of(catalog)[0]) == 3
    check_output("in.parquet", OUT)
    refs, names = left_of(catalog)
    assert refs == {"main", f"mondrian_ops-{alive.token}"}
    assert {name for name in names if "." not in name} == {one._attempt, alive.token}
    put(alive)
    assert version_of(catalog) == 4


def test_parts_that_main_reads_stay_after_the_snapshot_of_their_release_has_expired(catalog):
    work = written(1)
    put(work)
    work.remove()
    table = catalog.load_table(NAME)
    number = table.current_snapshot().snapshot_id
    table.append(rows_of_version(2, 2))  # or a compaction that skips large files
    table.maintenance.expire_snapshots().by_id(number).commit()
    with pytest.raises(StorageError, match="rows that no release has put there"):
        check_output("in.parquet", OUT)
    read = catalog.load_table(NAME).scan().to_arrow()["version"].to_pylist()
    assert sorted(read) == ["v1"] * 20 + ["v2"] * 10


def test_the_files_of_a_table_that_was_renamed_are_not_touched(catalog):
    work = written(1)
    put(work)
    work.remove()
    catalog.rename_table(NAME, "clinic.renamed")
    with pytest.raises(StorageError, match="renamed or dropped"):
        check_output("in.parquet", OUT)
    assert catalog.load_table("clinic.renamed").scan().to_arrow().num_rows == 20


def test_a_commit_that_another_one_forestalled_is_tried_again_as_long_as_main_allows(
    catalog, monkeypatch
):
    put(written(1))
    work = written(2)
    stage(work)
    real, asked = Table._do_commit, []

    def meanwhile(table: Table, *args: Any) -> None:
        with monkeypatch.context() as inner:
            inner.setattr(Table, "_do_commit", real)
            if len(asked) < 3:
                with catalog.load_table(NAME).transaction() as transaction:
                    transaction.set_properties(number=str(len(asked)))
                raise CommitFailedException("forestalled")
            real(table, *args)

    with monkeypatch.context() as patched:
        patched.setattr(Table, "_do_commit", meanwhile)
        publish(work.staging, OUT, work.token, lambda: asked.append(1))
    assert len(asked) == 3  # once before anything is copied
    assert version_of(catalog) == 2
    work = written(3)
    stage(work)
    with monkeypatch.context() as patched:
        patched.setattr(
            Table, "_do_commit", lambda *_: (_ for _ in ()).throw(CommitFailedException)
        )
        with pytest.raises(OSError, match="others commit to the table all the time; run again"):
            publish(work.staging, OUT, work.token)
    put(work)
    assert version_of(catalog) == 3


def test_a_commit_that_the_catalog_made_and_reported_as_refused_is_recognized(catalog, monkeypatch):
    put(old := written(1))
    work = written(2)
    real, made = Table._do_commit, []

    def misreported(*args: Any) -> None:
        real(*args)
        if len(made) < 1:
            made.append(1)
            raise CommitFailedException("the answer to the first try was lost")

    def refuse() -> None:
        if not published(OUT, old.token):
            raise StorageError("another run has published")

    with monkeypatch.context() as patched:
        patched.setattr(Table, "_do_commit", misreported)
        stage(work)
        made.clear()
        publish(work.staging, OUT, work.token, refuse)
    assert version_of(catalog) == 2
    assert left_of(catalog)[0] == {"main"}
    assert len(catalog.load_table(NAME).snapshots()) == 2


@pytest.mark.parametrize("error", [OSError("away"), InputError("PyIceberg cannot read the table")])
def test_a_final_error_stays_final_where_the_catalog_fails_while_the_branch_is_removed(
    catalog, monkeypatch, error
):
    work = written(1)

    def fails(*_: Any) -> None:
        raise error

    def refuse() -> None:
        raise StorageError("final")

    stage(work)
    monkeypatch.setattr(iceberg.IcebergPublication, "unstage", fails)
    with pytest.raises(StorageError, match="final"), staged(OUT, candidate(work)):
        refuse()
    with pytest.raises(StorageError, match="final"):
        publish(work.staging, OUT, work.token, refuse)


def test_a_part_that_a_commit_lost_is_noticed_by_the_audit(catalog, monkeypatch):
    put(written(1))
    work = written(2)
    real = iceberg_snapshot._new_files
    with monkeypatch.context() as patched:
        patched.setattr(iceberg_snapshot, "_new_files", lambda *args: real(*args)[1:])
        with pytest.raises(StorageError, match=r"1 of its data files are not those .* written"):
            stage(work)
    assert left_of(catalog)[0] == {"main"}
    assert version_of(catalog) == 1
    put(work)
    assert version_of(catalog) == 2


def test_other_values_by_a_name_mapping_of_others_are_noticed_by_the_audit(catalog):
    ten = pa.array(range(10))
    columns = {"a": ten, "b": pa.array([0] * 10)}
    swapped = '[{"names": ["a"], "field-id": 2}, {"names": ["b"], "field-id": 1}]'
    properties = {"schema.name-mapping.default": swapped}
    catalog.create_table(NAME, pa.table(columns).schema, properties=properties)
    with pytest.raises(StorageError, match="the column 'a' has other values than were written"):
        stage(written(1, with_columns(**columns)))
    assert catalog.load_table(NAME).refs() == {}


def with_columns(**columns: pa.Array) -> Callable[..., pa.Table]:
    return lambda version, part: pa.table(columns)


def test_columns_come_and_go_with_the_releases_and_earlier_ones_keep_theirs(catalog):
    ten = pa.array(range(10), pa.int32())
    made = [
        {"a": ten, "b": ten},
        {"b": ten.cast(pa.int64()), "c": ten.cast(pa.string())},
        {"a": ten},
        {"a": ten, "b": ten, "c": ten.cast(pa.string())},
    ]
    numbers = []
    for version, columns in enumerate(made):
        work = written(version, with_columns(**columns))
        stage(work)
        before = catalog.load_table(NAME).schema().column_names
        assert before == (list(made[version - 1]) if version else list(columns))
        publish(work.staging, OUT, work.token)
        work.remove()
        numbers.append(catalog.load_table(NAME).current_snapshot().snapshot_id)
    table = catalog.load_table(NAME)
    assert sorted(table.schema().column_names) == ["a", "b", "c"]
    for number, columns in zip(numbers, made, strict=True):
        rows = table.scan(snapshot_id=number).to_arrow()
        assert set(rows.column_names) == set(columns)
        for name, values in columns.items():
            assert rows[name].to_pylist() == values.to_pylist() * 2


def test_a_schema_that_the_table_has_already_is_taken_again(catalog):
    """Catalogs with a server give an equal schema its old number, whatever a client asks for."""
    ten = pa.array(range(10), pa.int32())
    one, two = with_columns(a=ten), with_columns(a=ten, b=ten)
    put(written(1, one))
    refused = written(2, two)
    stage(refused)
    refused.remove()
    for version, make in enumerate([two, one, two], 3):
        put(written(version, make))
    table = catalog.load_table(NAME)
    assert [each.schema_id for each in table.metadata.schemas] == [0, 1]
    assert [each.schema_id for each in table.snapshots()] == [0, 1, 0, 1]
    assert table.schema().column_names == ["a", "b"]


@pytest.mark.parametrize("has_old", [True, False])
def test_schemas_of_two_attempts_that_take_one_number_are_not_confused(
    catalog, monkeypatch, has_old
):
    """Both widen a column; readers of the later one would find the types of the earlier one."""
    ten = pa.array(range(10), pa.int32())
    wide = ten.cast(pa.int64())
    catalog.create_table(NAME, pa.table({"a": ten, "b": ten}).schema)
    if has_old:
        put(written(1, with_columns(a=ten, b=ten)))
    earlier = written(2, with_columns(a=wide, b=wide))
    later = written(3, with_columns(a=ten, b=wide))
    real = iceberg_snapshot.commit

    def forestalled(*args: Any) -> None:
        monkeypatch.setattr(iceberg_snapshot, "commit", real)
        stage(earlier)
        real(*args)

    monkeypatch.setattr(iceberg_snapshot, "commit", forestalled)
    if has_old:  # the catalog orders snapshots by their parents, so it refuses the later one
        stage(later)
    else:
        with pytest.raises(StorageError, match="its columns have other types or numbers"):
            stage(later)
    put(later)
    fields = catalog.load_table(NAME).schema().fields
    assert [str(each.field_type) for each in fields] == ["int", "long"]


@pytest.mark.parametrize(
    ("values", "named"),
    [
        (pa.array([1.5] * 10), "'version' of the release is of type double"),
        (pa.array([1] * 10, pa.duration("s")), r"'version', for Iceberg has no type duration\[s\]"),
        (pa.array([1] * 10, pa.timestamp("ns")), "Iceberg has no type timestamp"),
        (pa.array([1] * 10, pa.timestamp("us", "Europe/Berlin")), "convert it in the input"),
        (pa.nulls(10), "Iceberg has no type null"),
    ],
)
def test_a_type_that_the_table_cannot_have_is_refused_and_leaves_the_table(catalog, values, named):
    put(written(1))
    schema = catalog.load_table(NAME).metadata.schemas
    work = written(2, with_columns(version=values))
    with pytest.raises(StorageError, match=named):
        stage(work)
    work.remove()
    assert version_of(catalog) == 1
    assert catalog.load_table(NAME).metadata.schemas == schema
    assert len(left_of(catalog)[1]) == 1 + 1  # the working files of the first are there still


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1] * 10, pa.int8()),
        pa.array([1] * 10, pa.timestamp("us", "UTC")),
        pa.array([1] * 10, pa.timestamp("ms")),
        pa.array([b"1"] * 10),
        pa.array([True, None] * 5),
        pa.array([1] * 10).cast(pa.decimal128(22, 2)),
        pa.array([1] * 10, pa.date32()),
        pa.array([1.5] * 10, pa.float32()),
        pa.array(["a", None] * 5).dictionary_encode(),
    ],
    ids=lambda values: str(values.type),
)
def test_each_type_of_a_release_is_read_from_the_table_as_it_was_written(catalog, values):
    put(written(1, with_columns(value=values)))
    read = catalog.load_table(NAME).scan().to_arrow()["value"]
    plain = values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values
    assert read.cast(plain.type).to_pylist() == plain.to_pylist() * 2


@pytest.mark.parametrize("has_table", [True, False])
def test_what_is_not_published_leaves_a_table_without_rows(catalog, has_table):
    """Nor is the table removed: no catalog removes one only if nobody has written to it."""
    if has_table:
        catalog.create_table(NAME, rows_of_version(0).schema, properties={"theirs": "yes"})
    work = written(1)
    stage(work)
    assert catalog.load_table(NAME).current_snapshot() is None
    work.remove()
    table = catalog.load_table(NAME)
    assert table.snapshots() == []
    assert table.refs() == {}
    assert ("theirs" in table.properties) == has_table
    folder = Path(table.location().removeprefix("file://"))
    files = [path.name for path in folder.rglob("*") if path.is_file()]
    assert all(name.endswith("metadata.json") for name in files)
    check_output("in.parquet", OUT)
    put(written(2))
    assert version_of(catalog) == 2


def test_a_catalog_that_answers_with_a_new_location_each_time_gets_that_of_the_parts(
    catalog, monkeypatch
):
    real = SqlCatalog._resolve_table_location

    def resolved(self: SqlCatalog, location: str | None, *names: str) -> str:
        return location or f"{real(self, location, *names)}-{uuid.uuid4()}"

    monkeypatch.setattr(SqlCatalog, "_resolve_table_location", resolved)
    for version in (1, 2):
        put(written(version))
        assert version_of(catalog) == version
    assert catalog.load_table(NAME).location().startswith("file:///")


def test_the_settings_of_main_and_of_the_table_stay(catalog):
    schema = rows_of_version(0).schema
    table = catalog.create_table(NAME, schema, properties={"comment": "theirs"})
    put(written(1))
    table.refresh()
    number = table.current_snapshot().snapshot_id
    with table.manage_snapshots() as manage:
        manage.create_branch(number, "main", max_ref_age_ms=5_000, min_snapshots_to_keep=3)
    put(written(2))
    main = catalog.load_table(NAME).refs()["main"]
    assert (main.max_ref_age_ms, main.min_snapshots_to_keep) == (5_000, 3)
    assert catalog.load_table(NAME).properties["comment"] == "theirs"


@pytest.mark.parametrize(
    ("location", "folder"),
    [
        ("file:///srv/lake/t", "/srv/lake/t/_mondrian_ops"),
        ("file:/srv/lake/t/", "/srv/lake/t/_mondrian_ops"),
        ("/srv/lake/t", "/srv/lake/t/_mondrian_ops"),
        ("s3a://bucket/t", "s3://bucket/t/_mondrian_ops"),
        ("s3n://bucket/t", "s3://bucket/t/_mondrian_ops"),
        ("s3://bucket/t", "s3://bucket/t/_mondrian_ops"),
        ("hdfs://namenode:8020/t", "hdfs://namenode:8020/t/_mondrian_ops"),
        ("abfss://box@account.dfs.core.windows.net/t",) * 1
        + ("abfss://box@account.dfs.core.windows.net/t/_mondrian_ops",),
    ],
)
def test_the_location_of_a_table_is_one_of_a_store(location, folder):
    assert iceberg._folder(location) == folder


@pytest.mark.parametrize(
    ("location", "asked", "named"),
    [
        ("/srv/t-1", "file:///srv/t-2", "file:///srv/t-1"),
        ("/srv/t-1", "file:/srv/t-2", "file:///srv/t-1"),
        ("/srv/a:b/t-1", "/srv/a:b/t-2", "/srv/a:b/t-1"),
        ("s3://bucket/t-1", "s3a://bucket/t-2", "s3a://bucket/t-1"),
        ("hdfs://namenode:8020/t-1", "hdfs://namenode:8020/t-2", "hdfs://namenode:8020/t-1"),
    ],
)
def test_a_first_table_is_where_the_parts_are_in_the_scheme_of_its_catalog(location, asked, named):
    assert iceberg._as_named(location, asked) == named


def test_working_files_of_a_table_say_of_which(catalog):
    from mondrian_ops.publish import is_work_path, output_of

    work = work_path(OUT, "dag/run")
    assert work.startswith(publication_of(OUT).above("iceberg://lake/clinic.r"))
    assert output_of(work) == OUT
    assert is_work_path(work, "dag/run")
    assert not is_work_path(work, "dag/other")


# Who may commit to the table, and no more


@pytest.mark.parametrize("way", ["branch", "files", "release"])
def test_what_others_write_into_the_metadata_has_nothing_removed_or_read_elsewhere(
    catalog, tmp_path, way
):
    """The attack: names that lead out of the folder, and files of others as those of a snapshot."""
    put(written(1))
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "_report.json").write_text('{"secret": 1}')
    (precious / "snap.avro").write_text("precious")
    table = catalog.load_table(NAME)
    folder = Path(table.location().removeprefix("file://"), "_mondrian_ops")
    away = os.path.relpath(precious, folder)
    token = {"branch": away, "release": away}.get(way, "0" * 32)
    current = table.current_snapshot()
    forged = current.model_copy(
        update={
            "snapshot_id": current.snapshot_id + 1,
            "parent_snapshot_id": current.snapshot_id,
            "sequence_number": table.metadata.last_sequence_number + 1,
            "summary": Summary(Operation.APPEND, **{iceberg.TOKEN: token}),
        }
        | ({"manifest_list": f"file://{precious}/snap.avro"} if way == "files" else {})
    )
    ref = "main" if way == "release" else f"mondrian_ops-{token}"
    named = SetSnapshotRefUpdate(ref_name=ref, type="branch", snapshot_id=forged.snapshot_id)
    table._do_commit((AddSnapshotUpdate(snapshot=forged), named), ())
    if way == "release":
        assert current_token(OUT) is None
        assert report_of(OUT) is None
        with pytest.raises(StorageError, match="rows that no release has put there"):
            check_output("in.parquet", OUT)
    else:
        check_output("in.parquet", OUT)
    assert {path.name for path in precious.iterdir()} == {"_report.json", "snap.avro"}


def test_a_table_that_was_moved_meanwhile_is_not_followed(catalog, tmp_path):
    put(written(1))
    work = written(2)
    table = catalog.load_table(NAME)
    table._do_commit((SetLocationUpdate(location=f"file://{tmp_path}/elsewhere"),), ())
    with pytest.raises(StorageError, match="lies elsewhere than when the run began"):
        stage(work)
    assert not (tmp_path / "elsewhere" / "_mondrian_ops").exists()


def test_a_failure_of_the_catalogs_database_may_be_tried_again(catalog, monkeypatch):
    work = written(1)

    def locked(*_: Any) -> None:
        raise OperationalError("UPDATE", {"path": "file:///secret"}, Exception("locked"))

    with monkeypatch.context() as patched:
        patched.setattr(Table, "_do_commit", locked)
        with pytest.raises(OSError, match=r"catalog fails \(OperationalError\)$"):
            stage(work)
    put(work)
    assert version_of(catalog) == 1
