"""Profile and counts of the local engine against pandas, for every way a column can be stored."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from mondrian_ops import pipeline, publish
from mondrian_ops.cut import planning
from mondrian_ops.cut.plan import edges_of
from mondrian_ops.data.sensitive_domain import SensitiveDomain
from mondrian_ops.engines.local import LocalEngine
from mondrian_ops.engines.scan import Block, Counting, count_rows
from mondrian_ops.pipeline.partitioning import begin
from tiers import in_soak

ROWS = 5_000
STATUS = ["single", "married", "widowed", None]
COUNTRIES = ["Italy", "France", "Brazil"]
QUASI = ["age", "height", "status", "country", "zip", "member"]


def people(seed: int = 1) -> pa.Table:
    """Whole and broken numbers, few and many texts, missing values and NaN."""
    random = np.random.default_rng(seed)
    height = random.integers(150, 156, ROWS).astype(float)
    height[random.random(ROWS) < 0.1] = np.nan
    return pa.table(
        {
            "age": pa.array(random.integers(-3, 60, ROWS), mask=random.random(ROWS) < 0.05),
            "height": height,
            "status": pa.array(STATUS).take(random.integers(0, 4, ROWS)),
            "country": pa.array(COUNTRIES).take(random.integers(0, 3, ROWS)),
            "zip": [f"{number:06d}" for number in random.integers(0, 10**6, ROWS)],
            "member": pa.array(random.random(ROWS) < 0.5, mask=random.random(ROWS) < 0.2),
            "disease": pa.array(["flu", None, "gout"]).take(random.integers(0, 3, ROWS)),
        }
    )


def plain(table: pa.Table, folder: Path) -> None:
    pq.write_table(table, folder / "rows.parquet", row_group_size=1_500)


def without_dictionaries(table: pa.Table, folder: Path) -> None:
    pq.write_table(table, folder / "rows.parquet", use_dictionary=False)


def dictionaries_given_up(table: pa.Table, folder: Path) -> None:
    pq.write_table(table, folder / "rows.parquet", dictionary_pagesize_limit=64, data_page_size=64)


def as_dictionaries(table: pa.Table, folder: Path) -> None:
    columns = [
        column.dictionary_encode() if pa.types.is_string(column.type) else column
        for column in table.columns
    ]
    coded = pa.table(dict(zip(table.column_names, columns, strict=True)))
    pq.write_table(coded, folder / "rows.parquet", row_group_size=2_000)


def mixed_files(table: pa.Table, folder: Path) -> None:
    pq.write_table(table[:1_000], folder / "a.parquet")
    pq.write_table(table[1_000:1_000], folder / "b.parquet")
    pq.write_table(table[1_000:2_000], folder / "c.parquet", use_dictionary=False)
    as_dictionaries(table[2_000:], folder)


def comma_separated(table: pa.Table, folder: Path) -> None:
    nan = pc.is_nan(table["height"])
    height = pc.if_else(nan, None, table["height"])
    table = table.set_column(1, "height", height).set_column(
        4, "zip", pc.binary_join_element_wise("z", table["zip"], "")
    )
    pa.csv.write_csv(table, folder / "rows.csv")


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    return folder


def scanned(job):
    """A run with its draft, and its counts by leaf, from the local engine's two passes."""
    run = begin(job, publish.work_path(str(job.output), "counted"))
    engine = LocalEngine()
    engine.draft(run, lambda rows: None)
    return run, engine.count(run, False, lambda rows: None)


def job_of(folder: Path, tmp_path: Path, fragments: int):
    (tmp_path / "countries.csv").write_text("France;Europe;*\nItaly;Europe;*\nBrazil;America;*\n")
    job = {
        "input": str(folder),
        "output": str(tmp_path / "out"),
        "k": 2,
        "algorithm": "samarati",
        "quasi_identifiers": [
            *QUASI[:3],
            "country=hierarchy:countries.csv",
            "zip=prefix",
            "member",
        ],
        "sensitive": ["disease"],
        "l": 2,
        "partitioning": {"fragments": fragments, "sample": 1.0},
        "retrieval": "pushdown",
    }
    (tmp_path / "job.json").write_text(json.dumps(job))
    return pipeline.load_job(tmp_path / "job.json")


@pytest.mark.parametrize("fragments", [3, *in_soak([1])])
@pytest.mark.parametrize(
    "write",
    [
        plain,
        without_dictionaries,
        dictionaries_given_up,
        as_dictionaries,
        mixed_files,
        comma_separated,
    ],
)
def test_counts_are_those_of_pandas(tmp_path, folder, write, fragments):
    write(people(), folder)
    run, counts = scanned(job_of(folder, tmp_path, fragments))
    frame = people().to_pandas()
    if write is comma_separated:
        frame["zip"] = "z" + frame["zip"]
    missing_as_none = frame.astype(object).where(frame.notna(), None)
    profile = run.draft.profile
    assert profile.rows == ROWS
    for name in QUASI:
        present = {published(value) for value in missing_as_none[name] if value is not None}
        domain = profile.domains[name].to_pylist()
        assert len(domain) == len(set(domain))
        assert {published(value) for value in domain} == present
    values = missing_as_none["disease"]
    assert profile.counts["disease"].to_pylist() == [
        int(values.isna().sum()), *values.value_counts().sort_index().tolist()
    ]  # fmt: skip
    assert counted(run) == grouped(missing_as_none)
    assert int(counts.rows.sum()) == ROWS
    assert counts.sensitive[0].sum(axis=0).tolist() == profile.counts["disease"].to_pylist()
    known = planning.known_counts(run.anonymizer, run.draft.plan, lambda: run.frequencies)
    assert np.array_equal(known.rows, counts.rows)
    assert np.array_equal(known.sensitive[0], counts.sensitive[0])
    assert np.array_equal(known.cells, counts.cells)
    assert counts.cells.sum() == ROWS * len(run.draft.plan.columns)


def counted(run) -> dict:
    """Rows by combination of values, as texts."""
    frequencies = run.frequencies
    texts = [[None, *each.leaves.to_pylist()] for each in run.anonymizer.attributes]
    texts.append([None, *run.anonymizer.domains[0].values.to_pylist()])
    codes = zip(*frequencies.codes().tolist(), strict=True)
    rows = frequencies.rows.tolist()
    return {
        tuple(texts[at][code] for at, code in enumerate(combination)): number
        for combination, number in zip(codes, rows, strict=True)
    }


def grouped(frame: pd.DataFrame) -> dict:
    texts = frame.map(published)
    sizes = texts.groupby(list(texts.columns), dropna=False).size()
    return {
        tuple(None if pd.isna(value) else value for value in key): int(rows)
        for key, rows in sizes.items()
    }


def published(value):
    """The text of a value, as hierarchies have it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    return f"{value:g}"


class Uncounting(LocalEngine):
    """An engine that may not count rows."""

    def count(self, *_args, **_keys):
        pytest.fail("rows were counted in a pass of their own")


@pytest.mark.parametrize(
    "keys",
    [
        {"algorithm": "samarati", "partitioning": {"fragments": 3, "sample": 1.0}},
        {"algorithm": "tds", "partitioning": {"fragments": 3, "sample": 1.0}},
        {"algorithm": "samarati", "entity_id": "member", "quasi_identifiers": QUASI[:3]},
        {"algorithm": "mondrian", "partitioning": {"fragments": 1}},
    ],
    ids=lambda keys: "-".join([keys["algorithm"], *list(keys)[1:2]]),
)
def test_rows_are_not_read_again_for_counts_that_the_profile_has(tmp_path, folder, keys):
    plain(people(), folder)
    described = {
        "input": str(folder),
        "output": str(tmp_path / "out"),
        "k": 2,
        "quasi_identifiers": [name for name in QUASI if name != "country"],
        "sensitive": ["disease"],
        "retrieval": "pushdown",
        **keys,
    }
    job = pipeline.load_job(described)
    pipeline.partition(job, work=publish.work_path(str(job.output), "w"), engine=Uncounting())


@pytest.mark.parametrize("fragments", [1, 3])
def test_persons_are_counted_by_their_codes_as_by_their_names(tmp_path, folder, fragments):
    """All rows without a name are one person's."""
    table = people()
    numbers = np.arange(ROWS) % 37
    person = pa.array([f"p{at}" for at in numbers], mask=numbers == 5)
    plain(table.append_column("person", person), folder)
    job = job_of(folder, tmp_path, fragments)
    run, counts = scanned(replace(job, entity_id="person", k=100))
    known = planning.known_counts(run.anonymizer, run.draft.plan, lambda: run.frequencies)
    for leaves in ([0], range(run.draft.plan.leaves)):
        assert known.persons[0].within(leaves) == counts.persons[0].within(leaves)
    assert known.persons[0].within(range(run.draft.plan.leaves)) == 37
    assert known.cell_persons[0].leaf.tolist() == counts.cell_persons[0].leaf.tolist()
    by_codes, by_names = (
        planning.disclosure(run.anonymizer, run.draft.plan, each) for each in (known, counts)
    )
    assert by_codes == by_names


@pytest.mark.parametrize("entity", [None, "person"])
def test_cells_are_counted_as_the_rows_say(tmp_path, folder, entity):
    """A cell of a column lies between two edges, or at one, or holds the missing values."""
    table = people().append_column("person", pa.array(np.arange(ROWS) % 37))
    plain(table, folder)
    quasi = ["age", "height", "status", "zip=prefix", "member"]
    job = pipeline.load_job(
        {
            "input": str(folder),
            "output": str(tmp_path / "out"),
            "k": 20,
            "entity_id": entity,
            "quasi_identifiers": quasi,
            "partitioning": {"fragments": 40, "sample": 1.0},
        }
    )
    run, counts = scanned(job)
    orders, plan = run.anonymizer.orders, run.draft.plan
    start = 0
    for name in plan.columns:
        edges = edges_of(plan, name, orders[name]).to_pylist()
        values = [None if value != value else value for value in table[name].to_pylist()]
        cells = [cell_of(value, edges) for value in values]
        size = 2 * len(edges) + 2
        assert (
            counts.cells[start : start + size].tolist()
            == np.bincount(cells, minlength=size).tolist()
        )
        for cell in range(size) if entity else ():
            met = counts.cell_persons[0].between(start + cell, start + cell + 1)
            here = {at % 37 for at, each in enumerate(cells) if each == cell}
            assert min(met, job.k) == min(len(here), job.k)
        start += size
    assert start == len(counts.cells)
    assert len(plan.columns) > 2


def cell_of(value, edges) -> int:
    if value is None:
        return 0
    if value in edges:
        return 2 * edges.index(value) + 2
    return 2 * sum(edge < value for edge in edges) + 1


def test_rows_for_many_leaves_are_routed_in_blocks_of_several_batches(tmp_path, folder):
    """The same counts and the same rows in the same order as batch by batch."""
    plain(people(), folder)
    run, counts = scanned(job_of(folder, tmp_path, 3))
    counting = Counting(run.anonymizer, run.draft.plan, run.columns)
    source = run.dataset.source
    blocks = list(counting.blocks(counting.batches(source, batch_rows=700), first_row=10))
    assert [(block.first_row, block.rows) for block in blocks] == [(10, ROWS)]
    assert len(blocks[0].batches) == 8
    in_one, routed = counting.count(blocks[0])
    alone = [
        counting.count(Block([batch], 0)) for batch in counting.batches(source, batch_rows=700)
    ]
    assert in_one.rows.tolist() == counts.rows.tolist()
    assert sum(each.rows for each, _ in alone).tolist() == counts.rows.tolist()
    assert [leaf for leaf, _ in routed] == np.flatnonzero(counts.rows).tolist()
    for leaf, rows in routed:
        parts = [part for _, by_leaf in alone for number, part in by_leaf if number == leaf]
        one_by_one = pa.concat_tables(parts).combine_chunks()
        assert rows.to_pandas().equals(one_by_one.to_pandas())  # to which NaN equals NaN
    only_counted = Counting(run.anonymizer, run.draft.plan)
    batches = list(only_counted.batches(source, batch_rows=700))
    assert [block.batches for block in only_counted.blocks(batches)] == [[each] for each in batches]


def test_blocks_follow_the_values_of_a_sensitive_column(tmp_path, monkeypatch):
    """Each block is encoded against all values, so twice the rows make twice the work."""
    encoded = []
    encode = SensitiveDomain.encode

    def noted(self, column):
        encoded.append(len(column) + len(self.values))
        return encode(self, column)

    work = []
    for rows in (1_000, 4_000):
        here = tmp_path / str(rows)
        (here / "in").mkdir(parents=True)
        table = pa.table({"age": np.arange(rows) % 90, "ill": [f"text {at}" for at in range(rows)]})
        pq.write_table(table, here / "in" / "p.parquet", row_group_size=50)
        job = {"input": str(here / "in"), "output": str(here / "out"), "k": 2, "l": 2}
        job |= {"quasi_identifiers": ["age"], "sensitive": ["ill"]}
        run, _ = scanned(pipeline.load_job(job))
        with monkeypatch.context() as patched:
            patched.setattr(SensitiveDomain, "encode", noted)
            counts = count_rows(run, False, batch_rows=50)
        assert counts.sensitive[0].sum() == rows
        work.append(sum(encoded))
        encoded.clear()
    assert work[1] <= 5 * work[0]
    assert work[1] <= 6 * 4_000
