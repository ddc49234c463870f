"""Sources, working files and releases on HDFS and S3: what holds locally holds there."""

from __future__ import annotations

import gzip
import io
import json
from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from mondrian_ops.cut.plan import Branch, Leaf, Order, Plan
from mondrian_ops.errors import InputError, StorageError
from mondrian_ops.publish import (
    FragmentWriter,
    Owner,
    WorkDir,
    check_output,
    publish,
    published,
    read_fragment,
    release_files,
    sweep,
    work_path,
    write_part,
)
from mondrian_ops.stores import options_of, read_file, use_options, write_file
from mondrian_ops.stores import store_access as connections_module
from mondrian_ops.tables import FileTable, open_table
from mondrian_ops.tables.discovery import data_files
from servers.hdfs import BLOCK
from staged_releases import stage, version_on

ROWS = 200_000
GROUP = 20_000


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Rows by age, so that row groups can be left out; several HDFS blocks of noise."""
    noise = pa.array((number * 7919 % 104729) / 3 for number in range(ROWS))
    ages = pa.array(number * 100 // ROWS for number in range(ROWS))
    return pa.table({"age": ages, "n": pa.array(range(ROWS)), "noise": noise})


@pytest.fixture(scope="module")
def parquet(table: pa.Table) -> bytes:
    return parquet_of(table)


def parquet_of(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=GROUP, compression="none")
    return sink.getvalue()


def read(source: FileTable, *columns: str, **options) -> pa.Table:
    return pa.Table.from_batches(source.batches(columns or None, **options))


# sources


def test_parquet_of_several_blocks_is_read_as_from_a_local_file(store, table, parquet):
    assert len(parquet) > 3 * BLOCK
    source = open_table(store.put("in.parquet", parquet))
    assert (source.rows, source.bytes) == (ROWS, len(parquet))
    assert read(source).equals(table)
    assert read(source, "n").equals(table.select(["n"]))


@pytest.mark.hdfs
def test_the_file_really_has_several_blocks_on_both_data_nodes(hdfs_folder, parquet):
    hdfs_folder.put("in.parquet", parquet)
    blocks = hdfs_folder.server.blocks(hdfs_folder.path("in.parquet"))
    assert len(blocks) > 3
    assert {host for block in blocks for host in block["hosts"]} == {"127.0.0.2", "127.0.0.3"}


def test_columns_and_row_groups_that_are_not_needed_are_not_read(store, table, parquet):
    source = open_table(store.put("in.parquet", parquet))

    def cost(**options) -> tuple[pa.Table, float]:
        before = store.bytes_read()
        found = pa.Table.from_batches(source.batches(**options))
        return found, (store.bytes_read() - before) / len(parquet)

    assert cost()[1] >= 0.99
    few, share = cost(columns=["age"])
    assert few.equals(table.select(["age"]))
    assert share < 0.2
    young, share = cost(filter=pc.field("age") < 10)
    assert young.equals(table.slice(0, GROUP))
    assert share < 0.2
    one, share = cost(split=source.splits(GROUP)[3])
    assert one.equals(table.slice(3 * GROUP, GROUP))
    assert share < 0.2
    plan = Plan((Branch("age", 9, 1, 2), Leaf(0), Leaf(1)), ((0,), (1,)))
    orders = {"age": Order(table.schema.field("age").type)}
    assert list(source.rows_read(plan, orders)) == [{0: GROUP, 1: ROWS - GROUP}]


def test_directories_and_globs_find_what_they_find_locally(store, tmp_path):
    for name in ("2024-01/a.csv", "2024-02/b.csv", "c.csv", "_tmp/x.csv", ".y.csv", "d/e/f.csv"):
        store.put(f"d/a/{name}", b"n\n1\n")
        (tmp_path / "d/a" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "d/a" / name).write_bytes(b"n\n1\n")
    patterns = [
        *["d", "d/", "d/a/c.csv", "d/a/*.csv", "d/a/2024-*/*", "d/a/2024-0[2-9]", "d/*/*/*.csv"],
        *["d/**/*.csv", "d/**", "d/a/**/f.csv", "?/a", "d/*/_tmp", "d/*/_tmp/x.csv", "d/a/[!c]*"],
        *["d/a/_tmp", "d/a/.y.csv", "d/*/c.csv", "d/a/c.csv/*", "d/*.parquet", "x/*.csv", "absent"],
    ]
    for pattern in patterns:
        assert _found(store.url(pattern)) == _found(str(tmp_path / pattern)), pattern


def _found(url: str) -> list[str] | str:
    try:
        return [file.url.partition("/d/")[2] for file in data_files(url)]
    except InputError as error:
        return str(error).partition(": ")[2]


def test_what_is_no_source_is_refused(store):
    store.put("e/day=1/a.csv", b"n\n1\n")
    store.put("f/_x", b"")
    for name, message in {
        "e": "a directory NAME=VALUE is not read as a column",
        "f": "has no data files",
    }.items():
        with pytest.raises(InputError, match=message):
            open_table(store.url(name))


def test_names_with_blanks_and_signs(store):
    url = store.put("a b&c+d%41/ü#1.csv", b"n\n7\n")
    assert read(open_table(url))["n"].to_pylist() == [7]


def test_csv_by_blocks_packed_or_not(store, table, monkeypatch):
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__LIMITS", "csv_line=100000")
    text = "n;t\n" + "".join(f"{number};x{number}\n" for number in range(60_000))
    store.put("in/a.csv", text.encode())
    store.put("in/b.csv.gz", gzip.compress(b"n;t\n1.5;\n"))
    source = open_table(store.url("in"))
    assert source.schema == pa.schema([("n", pa.float64()), ("t", pa.string())])
    found = read(source)
    assert found.num_rows == source.rows == 60_001
    assert found["n"][-1].as_py() == 1.5
    assert read(source, split=source.splits(1)[1])["t"].to_pylist() == [None]


def test_csv_errors_name_file_and_line_but_no_value(store):
    store.put("ragged.csv", b'a,b\n"two\nlines",1\nCanary\n')
    store.put("latin.csv", "a,b\nx,1\nCänary,2\n".encode("latin-1"))
    store.put("bad.csv.gz", b"Canary")
    for name, message in {
        "ragged.csv": r"ragged\.csv, line 4: 1 values, but the header names 2",
        "latin.csv": r"latin\.csv, line 3: not UTF-8",
        "bad.csv.gz": r"bad\.csv\.gz: damaged gzip",
    }.items():
        with pytest.raises(InputError, match=message) as caught:
            open_table(store.url(name))
        assert "Canary" not in str(caught.value)


def test_damaged_parquet_is_named(store):
    with pytest.raises(InputError, match=r"bad\.parquet: cannot be read as Parquet"):
        open_table(store.put("bad.parquet", b"PAR1 is how it begins"))


def test_a_source_that_changes_while_read_is_refused(store, table, parquet):
    store.put("in/a.parquet", parquet)
    batches = open_table(store.url("in")).batches()
    next(batches)
    store.put("in/b.parquet", parquet)
    with pytest.raises(InputError, match="changed while it was read"):
        list(batches)
    again = FileTable.from_json(json.loads(json.dumps(open_table(store.url("in")).to_json())))
    store.put("in/b.parquet", parquet_of(table.slice(1)))
    one, two = again.splits(ROWS)
    assert read(again, split=one).num_rows == ROWS
    with pytest.raises(InputError, match="changed while it was read"):
        list(again.batches(["n"], split=two, filter=pc.field("n") < 0))


def test_a_process_without_environment_uses_the_options_it_was_sent(store, parquet, monkeypatch):
    source = open_table(store.put("in.parquet", parquet))
    options = json.loads(json.dumps(options_of([source.url, store.url("out"), "/local"])))
    assert len(options) == 1
    for name in ("HADOOP_USER_NAME", "AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(connections_module, "_given", {})
    use_options(options)
    work = WorkDir(work_path(store.url("out"), "run"))
    work.create()  # by the same user
    assert read(FileTable.from_json(source.to_json()), "n").num_rows == ROWS


def test_a_user_part_is_shown_nowhere(store, monkeypatch):
    monkeypatch.setattr(connections_module, "_given", dict(connections_module._given))
    scheme, _, rest = store.url("absent").partition("://")
    use_options(
        {f"{scheme}://secret_conn@{rest.split('/')[0]}": options_of([store.url()]).popitem()[1]}
    )
    url = f"{scheme}://secret_conn@{rest}"
    store.put("bad.csv", b"a,a\n")
    store.put("taken/x", b"")
    for act in (
        lambda: open_table(url),
        lambda: open_table(url.replace("absent", "bad.csv")),
        lambda: WorkDir(url).token,
        lambda: list(release_files(url)),
        lambda: check_output("/in", url.replace("absent", "taken")),
        lambda: (
            write_part(f"{url}/part-0.parquet", pa.table({"n": [1]})) or publish(url + "2", url)
        ),
    ):
        with pytest.raises((InputError, StorageError)) as caught:
            act()
        assert "secret_conn" not in str(caught.value)
        assert (
            "absent" in str(caught.value)
            or "bad" in str(caught.value)
            or "taken" in str(caught.value)
        )


# files and working files


def test_files_are_replaced_whole(store):
    for content in (b"", b"one", b"x" * (3 * BLOCK + 7)):
        write_file(store.url("f.bin"), content)
        assert read_file(store.url("f.bin")) == content
        assert store.fetch("f.bin") == content
    assert store.names() == ["f.bin"]
    with pytest.raises(FileNotFoundError):
        read_file(store.url("g.bin"))


@pytest.fixture
def work(store) -> WorkDir:
    made = WorkDir(work_path(store.url("out/people"), "dag/run/group"))
    made.create()
    return made


def test_working_files_lie_hidden_beside_the_output(store, work):
    (name,) = store.names("out")
    assert name.startswith(".people.mondrian_ops-")
    assert work.root == store.url(f"out/{name}")
    work.remove()
    work.remove()
    assert store.names("out") == []


def test_working_files_round_trip(store, work):
    token = work.token
    work.write_json("run.json", {"a": [1]})
    work.write_bytes("a.zip", b"\x00\xff")
    numbers = pa.table({"n": [1, None], "t": pa.array(["a", "b"]).dictionary_encode()})
    work.write_arrow("t.arrow", numbers)
    assert work.read_json("run.json") == {"a": [1]}
    assert work.read_bytes("a.zip") == b"\x00\xff"
    assert work.read_arrow("t.arrow").equals(numbers)
    work.create()
    assert work.token != token
    with pytest.raises(StorageError, match="vanished"):
        work.read_json("run.json")


def test_fragments_of_several_writers(store, work, table):
    for writer, start in (("000001", 100_000), ("000000", 0)):
        with FragmentWriter(work, writer) as scattering:
            for first in range(start, start + 100_000, 10_000):
                scattering.append(7, table.slice(first, 10_000))
    assert read_fragment(work, 7).equals(table)
    assert read_fragment(work, 3).equals(table.schema.empty_table())
    unfinished = FragmentWriter(work, "000002")
    unfinished.append(7, table)
    assert read_fragment(work, 7).num_rows == ROWS
    unfinished.abandon()


def test_a_worker_that_does_not_see_the_working_files_is_told(store, work):
    work.remove()
    for act in (
        lambda: work.token,
        lambda: work.read_arrow("t.arrow"),
        lambda: work.staged(),
        lambda: read_fragment(work, 0),
    ):
        with pytest.raises(StorageError, match="not on storage that all workers share"):
            act()


def test_who_outlives_the_run_brings_no_working_file_back(store, work, table):
    writer = FragmentWriter(work, "000000")
    writer.append(7, table.slice(0, 10))
    work.remove()
    for act in (
        writer.close,
        lambda: work.write_json("run.json", {}),
        lambda: work.part_path(0),
    ):
        with pytest.raises(StorageError, match="vanished"):
            act()
    assert store.names("out") == []


@pytest.mark.hdfs
def test_what_no_run_needs_is_swept(store):
    owner = Owner("dag/run", "partition")
    works = {name: WorkDir(work_path(store.url(f"swept/{name}/out"), "dag/run")) for name in "abc"}
    works["a"].create(owner)
    works["b"].create()
    works["c"].create(Owner("dag/another", "partition"))  # a forged one
    store.put("swept/d/part-0.parquet", b"a release")

    def swept(keep: timedelta, need: bool) -> list[tuple[str, str]]:
        found = sweep(store.url("swept"), keep, lambda _: need)
        return sorted((each.work[len(store.url("swept")) + 1], each.state) for each in found)

    assert swept(timedelta(days=1), True) == [("a", "kept"), ("b", "kept"), ("c", "kept")]
    assert swept(timedelta(), False) == [("a", "removed"), ("b", "removed"), ("c", "kept")]
    assert swept(timedelta(), False) == [("c", "kept")]
    assert store.fetch("swept/d/part-0.parquet") == b"a release"


def test_no_directory_is_made_for_a_file(hdfs_folder):
    with pytest.raises(FileNotFoundError):
        write_file(hdfs_folder.url("gone/secret"), b"raw rows")
    assert hdfs_folder.names() == []


# releases


def test_first_and_later_releases_replace_what_was_there(store):
    for version in (1, 2, 3):
        check_output(store.url("in"), store.url("out"))
        stage(store.url("staging"), version)
        publish(store.url("staging"), store.url("out"), f"token {version}")
        assert version_on(store) == version
        assert store.names() == ["out"]
        assert store.names("out") == [
            "_SUCCESS",
            "_report.json",
            f"part-00000-v{version}.parquet",
            f"part-00001-v{version}.parquet",
        ]
        assert published(store.url("out"), f"token {version}")
        assert not published(store.url("out"), "token 0")
    read_back = release_files(store.url("out"))
    assert [file.name for file in read_back] == ["part-00000-v3.parquet", "part-00001-v3.parquet"]


def test_publishing_again_with_the_same_token_has_nothing_to_do(store):
    stage(store.url("staging"), 1)
    publish(store.url("staging"), store.url("out"), "first")
    stage(store.url("staging"), 2)
    publish(store.url("staging"), store.url("out"), "first")
    assert version_on(store) == 1
    assert store.names() == ["out"]


def test_a_vanished_staging_directory_leaves_the_old_release(store):
    stage(store.url("staging"), 1)
    publish(store.url("staging"), store.url("out"), "first")
    with pytest.raises(StorageError, match="run again from the partition task"):
        publish(store.url("staging"), store.url("out"), "second")
    assert version_on(store) == 1


def test_an_occupied_output_is_refused_and_left_as_it_is(store):
    store.put("taken/thesis.txt", b"ten years of work")
    store.put("spark/_SUCCESS", b"")
    store.put("spark/part-0.parquet", b"x")
    store.put("file", b"")
    stage(store.url("staging"), 1)
    for name in ("taken", "spark", "file"):
        with pytest.raises(StorageError, match="not a release"):
            check_output(store.url("in"), store.url(name))
        with pytest.raises(StorageError, match="not a release"):
            publish(store.url("staging"), store.url(name))
    publish(store.url("staging"), store.url("out"))
    store.put("out/notes.txt", b"keep me")
    with pytest.raises(StorageError, match=r"out/notes\.txt is not part of a release"):
        check_output(store.url("in"), store.url("out"))
    assert store.fetch("taken/thesis.txt") == b"ten years of work"


def test_output_and_input_may_not_overlap(store):
    store.put("in/a.csv", b"n\n1\n")
    for source, output in (
        ("in", "in"),
        ("in", "in/out"),
        ("in/a.csv", "in"),
        ("*", "in/out"),
        ("**/*.parquet", "out"),
    ):
        with pytest.raises(StorageError, match="choose an `output` outside the input"):
            check_output(store.url(source), store.url(output))
    check_output(store.url("in"), store.url("in-out"))
    check_output(store.url("in/*.csv"), store.url("in/out"))
    with pytest.raises(StorageError, match="root of the file system"):
        check_output("/in", "/".join(store.url().split("/")[:3]))
