"""A release in each form, from a run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mondrian_ops import anonymize, pipeline, read_release
from mondrian_ops.errors import InputError, MondrianOpsError
from mondrian_ops.reading.columns import Categories
from mondrian_ops.reading.release import Form

ROWS = 400
TOWNS = ["Paris", "Lyon", "Rome", "Bari"]
TREE = "Paris;France;*\nLyon;France;*\nRome;Italy;*\nBari;Italy;*\n"


def people() -> pa.Table:
    draw = np.random.default_rng(4)
    ages = draw.integers(18, 80, ROWS)
    jobs = draw.choice(["Farming, fishing", "Sales", "Tech"], ROWS)
    return pa.table(
        {
            "age": pa.array(ages, mask=draw.random(ROWS) < 0.02),
            "height": draw.integers(150, 200, ROWS),
            "job": jobs,
            "town": draw.choice(TOWNS, ROWS),
            "ill": draw.choice(["flu", "cold", "none"], ROWS),
        }
    )


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("released")
    pq.write_table(people(), here / "people.parquet")
    (here / "towns.csv").write_text(TREE)
    job = {"input": str(here / "people.parquet"), "k": 4, "sensitive": ["ill"]}
    columns = ["age", "height=grid:10", "job=set", "town=hierarchy:towns.csv"]
    for name, more in (("out", {}), ("bounds", {"interval_style": "bounds"})):
        described = {**job, "output": str(here / name), "quasi_identifiers": columns, **more}
        (here / "job.json").write_text(json.dumps(described))
        pipeline.run(pipeline.load_job(here / "job.json"))
    return here


def typed(here: Path, output: str, **options: object) -> pa.Table:
    """A release with typed columns, of rows some of which have no age or job."""
    draw = np.random.default_rng(5)
    table = people()
    jobs = pa.array(table["job"].to_pylist(), mask=draw.random(ROWS) < 0.05)
    pq.write_table(table.set_column(2, "job", jobs), here / "some.parquet")
    # Classes with and without missing values are needed: one column is too coarse to cut them.
    job = {"input": str(here / "some.parquet"), "output": str(here / output), "k": 25}
    job |= {"quasi_identifiers": ["age", "job=set", "height"], "relaxed": True, **options}
    (here / "typed.json").write_text(json.dumps(job))
    pipeline.run(pipeline.load_job(here / "typed.json"))
    assert pipeline.verify(pipeline.load_job(here / "typed.json"), str(here / output))["passed"]
    return pq.read_table(here / output)


@pytest.fixture(scope="module")
def styles(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pa.Table]:
    here = tmp_path_factory.mktemp("styles")
    typed(here, "text")
    return here, typed(here, "typed", set_style="list", interval_style="bounds")


def test_typed_columns_tell_hidden_values_from_missing_ones(styles: tuple[Path, pa.Table]) -> None:
    here, table = styles
    texts = pq.read_table(here / "text")
    assert table["job"].type == pa.list_(pa.string())
    lists = table["job"].to_pylist()
    for text, of_lists in (("*", []), (None, None)):
        assert lists.count(of_lists) == texts["job"].to_pylist().count(text)
    hidden = texts["age"].to_pylist().count("*")
    assert hidden > 0
    assert table["age_hidden"].to_pylist().count(True) == hidden
    assert table["age_min"].null_count == hidden + texts["age"].null_count
    assert {value for each in lists for value in each or ()} == {
        "Farming, fishing", "Sales", "Tech",
    }  # fmt: skip


@pytest.mark.parametrize("form", ["midpoint", "bounds", "sets", "weights"])
def test_a_release_in_any_style_reads_the_same(styles: tuple[Path, pa.Table], form: Form) -> None:
    here, _ = styles
    read = [read_release(here / name, form, kind="arrow") for name in ("text", "typed")]
    columns = [name for name in read[0].column_names if name != "job"]
    assert read[0].column_names == read[1].column_names
    rows = [sorted(map(str, each.select(columns).to_pylist())) for each in read]
    assert rows[0] == rows[1]
    if form == "sets":
        jobs = [sorted(map(str, each["job"].to_pylist())) for each in read]
        assert jobs[0] == jobs[1]


def test_what_is_hidden_is_drawn_and_what_is_missing_stays(styles: tuple[Path, pa.Table]) -> None:
    here, table = styles
    drawn = read_release(here / "typed", "sample", kind="arrow", seed=1)
    shown = table["age_min"].null_count - table["age_hidden"].to_pylist().count(True)
    assert drawn["age"].null_count == shown
    assert drawn["job"].null_count == table["job"].null_count


def test_intervals_become_numbers_and_the_rest_stays(released: Path) -> None:
    read = read_release(released / "out")
    assert isinstance(read, pd.DataFrame)
    assert len(read) == ROWS
    assert sorted(read["ill"]) == sorted(people()["ill"].to_pylist())
    assert read["height"].between(150, 200).all()
    assert set(read["height"] % 5) == {4.5}  # [150, 160) are the whole numbers 150 to 159
    assert abs(read["age"].mean() - people()["age"].to_pandas().mean()) < 5


def test_bounds_are_the_same_from_texts_and_from_typed_columns(released: Path) -> None:
    of_texts = read_release(released / "out", "bounds")
    assert {"age_min", "age_max", "height_min", "height_max"} <= set(of_texts)
    assert (of_texts["age_min"].dropna() <= of_texts["age_max"].dropna()).all()
    typed = read_release(released / "bounds", "bounds")
    assert set(typed) == set(of_texts)
    middle = read_release(released / "bounds", columns=["height"])
    assert list(middle) == ["height"]
    assert set(middle["height"] % 5) == {4.5}


def test_sets_and_shares_of_a_hierarchy_need_its_file(released: Path) -> None:
    tree = {"town": released / "towns.csv"}
    sets = read_release(released / "out", "sets", hierarchies=tree, kind="arrow")
    assert sets["town"].type == pa.list_(pa.string())
    assert {town for towns in sets["town"].to_pylist() for town in towns} == set(TOWNS)
    shares = read_release(released / "out", "weights", hierarchies=tree)
    towns = [f"town={town}" for town in TOWNS]
    assert np.allclose(shares[towns].sum(axis=1), 1)
    jobs = [f"job={job}" for job in ("Farming, fishing", "Sales", "Tech")]
    assert np.allclose(shares[jobs].sum(axis=1), 1)


def test_samples_are_values_of_the_source_and_repeat_with_a_seed(released: Path) -> None:
    tree = {"town": released / "towns.csv"}
    sample = read_release(released / "out", "sample", hierarchies=tree, seed=7)
    assert set(sample["town"]) <= set(TOWNS)
    assert set(sample["job"]) == {"Farming, fishing", "Sales", "Tech"}
    assert sample["height"].between(150, 199).all()
    again = read_release(released / "out", "sample", hierarchies=tree, seed=7)
    pd.testing.assert_frame_equal(sample, again)


def test_other_kinds_of_table_have_the_same_values(released: Path) -> None:
    polars = pytest.importorskip("polars")
    read = read_release(released / "out", kind="polars")
    assert isinstance(read, polars.DataFrame)
    assert (
        read.to_arrow()["age"].to_pylist()
        == read_release(released / "out", kind="arrow")["age"].to_pylist()
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"as_": "midpoints"}, r"as_: 'midpoints' is none of .*did you mean 'midpoint'"),
        ({"kind": "pandsa"}, "kind: 'pandsa' is none of pandas, polars, arrow"),
        ({"columns": ["agee"]}, "columns: the release has no column 'agee'.*'age'"),
        ({"hierarchies": {"twon": "t.csv"}}, "hierarchies: the release has no column 'twon'"),
        ({"hierarchies": {"town": "t.csv"}}, "t.csv"),
    ],
)
def test_what_cannot_be_read_is_named(released: Path, options: dict, said: str) -> None:
    with pytest.raises(MondrianOpsError, match=said):
        read_release(released / "out", **options)


def test_no_column_takes_the_place_of_another_one(released: Path, tmp_path: Path) -> None:
    job = json.loads((released / "job.json").read_text())
    table = people()
    pq.write_table(table.append_column("age_min", table["height"]), tmp_path / "people.parquet")
    here = {"input": str(tmp_path / "people.parquet"), "output": str(tmp_path / "out")}
    more = {"unlisted": "publish", "interval_style": "text", "quasi_identifiers": ["age"]}
    (tmp_path / "job.json").write_text(json.dumps({**job, **here, **more}))
    pipeline.run(pipeline.load_job(tmp_path / "job.json"))
    with pytest.raises(InputError, match="columns: 'age_min' is a column of the release and"):
        read_release(tmp_path / "out", "bounds")
    assert "age_min" in read_release(tmp_path / "out")
    assert "age_max" in read_release(tmp_path / "out", "bounds", columns=["age", "age"])


def test_a_folder_without_the_report_of_a_release_is_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no _report\.json"):
        read_release(tmp_path)
    (tmp_path / "_report.json").write_text('{"of": "another program"}')
    with pytest.raises(InputError, match=r"no _report\.json"):
        read_release(tmp_path)


def test_units_of_the_calendar_are_the_days_between_their_ends(tmp_path: Path) -> None:
    draw = np.random.default_rng(5)
    born = pa.array(draw.integers(15_000, 17_000, ROWS), pa.int32()).cast(pa.date32())
    rows = people().append_column("born", born)
    pq.write_table(rows, tmp_path / "people.parquet")
    job = {"input": str(tmp_path / "people.parquet"), "output": str(tmp_path / "out"), "k": 4}
    job |= {"quasi_identifiers": ["born=ladder:month/year", "town=set"]}
    (tmp_path / "job.json").write_text(json.dumps(job))
    pipeline.run(pipeline.load_job(tmp_path / "job.json"))
    read = read_release(tmp_path / "out", "bounds", kind="arrow", columns=["born"])
    lengths = {
        (high - low).days + 1
        for low, high in zip(*(read[name].to_pylist() for name in read.column_names), strict=True)
    }
    assert lengths <= {28, 29, 30, 31, 365, 366}
    assert lengths & {365, 366}
    drawn = read_release(tmp_path / "out", "sample", kind="arrow", columns=["born"], seed=1)
    pairs = zip(drawn["born"].to_pylist(), read["born_min"].to_pylist(), strict=True)
    assert all(low <= day for day, low in pairs)


ORDER = ["low", "medium", "high", "very high"]


@pytest.fixture(scope="module")
def ordered() -> tuple[pa.Table, pa.Table]:
    """Rows, and their release on a column of categories with an order."""
    draw = np.random.default_rng(6)
    pay = pa.array(draw.choice(ORDER, ROWS, p=[0.6, 0.3, 0.08, 0.02]))
    rows = people().append_column("pay", pay)
    described = {"k": 10, "quasi_identifiers": ["age", {"name": "pay", "order": ORDER}]}
    table, _ = anonymize(rows, described)
    return rows, table


def test_classes_of_ordered_categories_are_intervals(ordered: tuple[pa.Table, pa.Table]) -> None:
    labels = {*ordered[1]["pay"].unique().to_pylist()}
    ends = [label[1:-1].split(", ") for label in labels if label.startswith("[")]
    assert ends
    assert all(ORDER.index(low) < ORDER.index(high) for low, high in ends)


def test_an_interval_of_categories_stands_for_those_between(
    ordered: tuple[pa.Table, pa.Table],
) -> None:
    labels = ordered[1]["pay"].cast(pa.string())
    lists = Categories.in_order(labels, ORDER).lists.to_pylist()
    for label, members in zip(labels.to_pylist(), lists, strict=True):
        low, high = label[1:-1].split(", ") if label.startswith("[") else (label, label)
        assert members == ORDER[ORDER.index(low) : ORDER.index(high) + 1]


def test_a_category_that_the_order_lacks_is_counted_and_not_named() -> None:
    rows = pa.table({"pay": ["low"] * 20 + ["secret"] * 3})
    with pytest.raises(InputError, match=r"column 'pay': 3 row\(s\) hold values") as caught:
        anonymize(rows, {"k": 2, "quasi_identifiers": ["pay=order:low/high"]})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("kind", ["pandas", "arrow"])
def test_an_ordered_category_brings_its_order(kind: str) -> None:
    draw = np.random.default_rng(6)
    pay = pd.Categorical(draw.choice(ORDER, ROWS, p=[0.6, 0.3, 0.08, 0.02]), ORDER, ordered=True)
    frame = people().to_pandas().assign(pay=pay)
    rows = frame if kind == "pandas" else pa.Table.from_pandas(frame, preserve_index=False)
    job = {"k": 10, "sensitive": ["ill"]}
    released, report = anonymize(rows, job | {"quasi_identifiers": ["age", "pay"]})
    labels = {*map(str, released["pay"].to_pylist() if kind == "arrow" else released["pay"])}
    ends = [label[1:-1].split(", ") for label in labels if label.startswith("[")]
    assert ends
    assert all(ORDER.index(low) < ORDER.index(high) for low, high in ends)
    assert report["attributes"]["pay"]["generalization"] == "interval"
    for described in ("pay=set", "pay=prefix"):
        _, report = anonymize(rows, job | {"quasi_identifiers": ["age", described]})
        assert report["attributes"]["pay"]["generalization"] == described[4:]


def test_an_order_whose_labels_would_be_ambiguous_is_not_taken_over() -> None:
    pay = pd.Categorical(["a, b", "c"] * (ROWS // 2), ["a, b", "c"], ordered=True)
    frame = people().to_pandas().assign(pay=pay)
    _, report = anonymize(frame, {"k": 10, "quasi_identifiers": ["age", "pay"]})
    assert report["attributes"]["pay"]["generalization"] == "set"
