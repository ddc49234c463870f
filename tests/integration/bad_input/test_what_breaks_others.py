"""Input that breaks other tools (shared field notes): each must end in a good release or refusal.

The published reference, run on these, published raw rows, classes smaller than k, or half a result.
"""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mondrian_ops import anonymize, pipeline
from mondrian_ops.errors import JobError, MondrianOpsError, PrivacyError
from published_text import in_any_order
from tiers import in_soak, one_here


def run(here: Path, table: pa.Table, **keys: Any) -> tuple[pa.Table, dict[str, Any]]:
    pq.write_table(table, here / "in.parquet", row_group_size=500)
    job = {"input": str(here / "in.parquet"), "output": str(here / "out"), "unlisted": "publish"}
    report = pipeline.run(pipeline.load_job({**job, **keys}))
    assert [path.name for path in here.iterdir() if path.name.startswith(".")] == []
    return pq.read_table(here / "out"), report


def sizes(release: pa.Table, *columns: str) -> Counter:
    return Counter(zip(*(release[name].to_pylist() for name in columns), strict=True))


NUMBERS = np.random.default_rng(3).integers(0, 10_000, 5000)


@pytest.mark.parametrize("way", ["set", "prefix", "hierarchy:zips.csv"])
def test_missing_text_is_not_published_raw_in_classes_of_one(tmp_path, way):
    leaves = sorted({str(number) for number in NUMBERS[:300]})
    (tmp_path / "zips.csv").write_text("".join(f"{leaf};{leaf[0]};*\n" for leaf in leaves))
    texts = [str(number) for number in NUMBERS[:300]]
    texts[7] = None
    table = pa.table({"zip": texts, "age": NUMBERS[300:600], "row": range(300)})
    (tmp_path / "job.json").write_text(
        json.dumps(
            {
                "input": str(tmp_path / "in.parquet"),
                "output": str(tmp_path / "out"),
                "k": 5,
                "quasi_identifiers": [f"zip={way}", "age"],
                "unlisted": "publish",
            }
        )
    )
    pq.write_table(table, tmp_path / "in.parquet")
    pipeline.run(pipeline.load_job(tmp_path / "job.json"))
    release = pq.read_table(tmp_path / "out")
    assert min(sizes(release, "zip", "age").values()) >= 5
    (with_missing,) = [row for row in release.to_pylist() if row["row"] == 7]
    assert with_missing["zip"] == "*"


@pytest.mark.parametrize("seed", [0, *in_soak([1, 2])])
@pytest.mark.parametrize("strategy", one_here(["quantile", "multidimensional"]))
def test_a_sampled_run_has_no_class_below_k(tmp_path, strategy, seed):
    skewed = np.concatenate([np.zeros(4000, np.int64), NUMBERS[:1000]])
    table = pa.table({"x": skewed, "y": NUMBERS, "s": NUMBERS % 3})
    release, report = run(
        tmp_path,
        table,
        k=40,
        l=2,
        quasi_identifiers=["x", "y"],
        sensitive=["s"],
        partitioning={
            "strategy": strategy,
            "fragments": 12,
            "sample": 0.005,
            "min_sample": 0,
            "seed": seed,
        },
    )
    assert min(sizes(release, "x", "y").values()) >= 40
    assert report["rows"]["published"] == 5000


def test_three_rows_are_not_published_with_k_5(tmp_path):
    with pytest.raises(PrivacyError, match="3 rows"):
        run(tmp_path, pa.table({"x": [1, 2, 3]}), k=5, quasi_identifiers=["x"])
    assert not (tmp_path / "out").exists()


def test_an_l_that_the_data_cannot_meet_is_not_ignored(tmp_path):
    table = pa.table({"x": range(50), "s": ["flu"] * 50})
    with pytest.raises(PrivacyError, match="l = 2"):
        run(tmp_path, table, k=5, l=2, quasi_identifiers=["x"], sensitive=["s"])


def test_an_l_that_only_the_whole_can_meet_gives_one_class(tmp_path):
    table = pa.table({"x": range(50), "s": ["flu"] * 49 + ["cold"]})
    release, report = run(tmp_path, table, k=5, l=2, quasi_identifiers=["x"], sensitive=["s"])
    assert report["equivalence_classes"] == 1
    assert set(release["x"].to_pylist()) == {"[0, 49]"}


def test_missing_numbers(tmp_path):
    numbers = [None if at % 9 == 0 else float("nan") if at % 9 == 1 else at for at in range(900)]
    table = pa.table({"x": pa.array(numbers, pa.float64()), "row": range(900)})
    release, report = run(
        tmp_path, table, k=5, quasi_identifiers=["x"], partitioning={"fragments": 5, "sample": 1.0}
    )
    assert sizes(release, "x")[(None,)] == 200  # classes of their own
    assert report["attributes"]["x"]["rows_star"] == 0


def test_too_few_missing_numbers_for_classes_of_their_own(tmp_path):
    numbers = pa.array([None, None, *range(98)], pa.int64())
    release, report = run(tmp_path, pa.table({"x": numbers}), k=5, quasi_identifiers=["x"])
    stars = sizes(release, "x")[("*",)]
    assert stars >= 5
    assert report["attributes"]["x"]["rows_star"] == stars
    assert report["metrics"]["NCP"] >= stars


def test_values_the_sample_missed_have_their_fragment(tmp_path):
    far = [-(10**12), 10**12]
    table = pa.table({"x": np.concatenate([NUMBERS, far * 10]), "row": range(5020)})
    release, report = run(
        tmp_path,
        table,
        k=5,
        quasi_identifiers=["x=interval"],
        partitioning={"fragments": 4, "sample": 0.002, "min_sample": 0},
    )
    assert sorted(release["row"].to_pylist()) == list(range(5020))
    counts = sizes(release, "x")
    assert counts[("-1000000000000",)] == counts[("1000000000000",)] == 10
    assert len(report["fragments"]) == 4


def test_a_sample_of_one_row(tmp_path):
    release, report = run(
        tmp_path,
        pa.table({"x": NUMBERS}),
        k=5,
        quasi_identifiers=["x"],
        partitioning={"fragments": 8, "sample": 1e-9, "min_sample": 0},
    )
    assert report["partitioning"]["sample_rows"] == 1
    assert len(report["fragments"]) == 1
    assert "8 fragments were asked for" in report["partitioning"]["note"]
    assert min(sizes(release, "x").values()) >= 5


def test_a_grid_of_cells_that_a_decimal_does_not_hold(tmp_path):
    """The ends of its cells have more digits than the type."""
    numbers = pa.array([Decimal(number) for number in range(-3, 4)] * 4, pa.decimal128(3, 0))
    grid = {"name": "x", "generalization": "interval", "grid": 100_000_000}
    partitioning = {"fragments": 2, "sample": 1.0}
    release, report = run(
        tmp_path,
        pa.table({"x": numbers}),
        k=5,
        quasi_identifiers=[grid],
        partitioning=partitioning,
    )
    assert sum(sizes(release, "x").values()) == 28
    assert report["achieved"]["k"] >= 5


def test_negative_numbers_and_a_constant_column(tmp_path):
    table = pa.table({"x": NUMBERS - 20_000, "c": np.full(5000, -7), "t": ["same"] * 5000})
    release, report = run(tmp_path, table, k=5, quasi_identifiers=["x=interval", "c", "t"])
    assert set(release["c"].to_pylist()) == {"-7"}
    assert set(release["t"].to_pylist()) == {"same"}
    assert report["attributes"]["c"]["NCP"] == report["attributes"]["t"]["NCP"] == 0
    assert "which tell nobody apart: 'c', 't'" in report["notes"][0]
    for text in set(release["x"].to_pylist()):
        if text.startswith("["):
            low, high = map(int, text[1:-1].split(", "))
            assert -20_000 <= low < high < -10_000


def test_a_value_outside_the_hierarchy_is_a_clear_error(tmp_path):
    (tmp_path / "t.csv").write_text("a;*\nb;*\n")
    (tmp_path / "job.json").write_text(
        json.dumps(
            {
                "input": str(tmp_path / "in.parquet"),
                "output": str(tmp_path / "out"),
                "k": 2,
                "quasi_identifiers": ["x=hierarchy:t.csv"],
            }
        )
    )
    pq.write_table(pa.table({"x": ["a", "b", "Zanzibar", "a"]}), tmp_path / "in.parquet")
    with pytest.raises(MondrianOpsError, match=r"'x': 1 row.*t\.csv") as caught:
        pipeline.run(pipeline.load_job(tmp_path / "job.json"))
    assert "Zanzibar" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_runs_of_one_seed_agree_and_the_seed_matters(tmp_path):
    def where(name: str, seed: int) -> tuple[list[str], list[str]]:
        (tmp_path / name).mkdir()
        release, report = run(
            tmp_path / name,
            pa.table({"x": NUMBERS[:1000], "y": NUMBERS[::-5]}),
            k=5,
            quasi_identifiers=["x", "y"],
            partitioning={"fragments": 6, "sample": 0.05, "min_sample": 0, "seed": seed},
        )
        return [each["where"] for each in report["fragments"]], in_any_order(release)

    first, again, other = where("a", 1), where("b", 1), where("c", 2)
    assert first == again
    assert first[0] != other[0]


@pytest.mark.parametrize("fragments", one_here([5, 1, 13, *in_soak([2, 3, 7, 10])]))
def test_the_fragments_asked_for_are_the_fragments_had(tmp_path, fragments):
    table = pa.table({"x": NUMBERS, "y": NUMBERS[::-1]})
    _, report = run(
        tmp_path,
        table,
        k=5,
        quasi_identifiers=["x", "y"],
        partitioning={"fragments": fragments, "sample": 0.1},
    )
    assert len(report["fragments"]) == report["partitioning"]["fragments"] == fragments
    assert report["partitioning"]["note"] == ""
    assert report["partitioning"]["merged"] == 0


def test_fewer_fragments_than_asked_for_are_not_had_silently(tmp_path):
    table = pa.table({"x": NUMBERS % 2})
    partitioning = {"fragments": 8}
    _, report = run(tmp_path, table, k=5, quasi_identifiers=["x"], partitioning=partitioning)
    assert len(report["fragments"]) == 2
    assert "8 fragments were asked for" in report["notes"][0]


@pytest.mark.servers
def test_many_distinct_values(tmp_path):
    floats = np.random.default_rng(7).normal(size=120_000)
    moments = pa.array(np.arange(120_000) * 1_000_003).cast(pa.timestamp("us"))
    table = pa.table({"x": floats, "when": moments, "s": np.arange(120_000) % 4})
    release, report = run(
        tmp_path,
        table,
        k=200,
        l=2,
        quasi_identifiers=["x", "when"],
        sensitive=["s"],
        cut="gain",
        partitioning={"fragments": 3},
    )
    assert len(set(floats)) > 119_000
    counts = sizes(release, "x", "when")
    assert min(counts.values()) >= 200
    assert report["equivalence_classes"] == len(counts) > 250


def test_values_that_look_like_generalized_ones(tmp_path):
    texts = ["*", "[1, 2]", "{a, b}", "a", "b", "10*"] * 20
    table = pa.table({"x": texts, "y": range(120), "row": range(120)})
    release, _ = run(tmp_path, table, k=4, quasi_identifiers=["x", "y"])
    assert min(sizes(release, "x", "y").values()) >= 4
    assert sorted(release["row"].to_pylist()) == list(range(120))


def test_k_larger_than_half_the_data(tmp_path):
    _, report = run(tmp_path, pa.table({"x": range(11)}), k=6, quasi_identifiers=["x"])
    assert report["equivalence_classes"] == 1
    assert len(report["fragments"]) == 1


def test_duplicates_only(tmp_path):
    table = pa.table({"x": [1, 2] * 50, "t": ["a", "b"] * 50})
    _, report = run(tmp_path, table, k=5, quasi_identifiers=["x", "t"])
    assert report["equivalence_classes"] == 2
    assert report["metrics"]["NCP"] == 0


def test_order_and_row_numbers_of_the_source_do_not_leak(tmp_path):
    x = [5] * 399 + [6]  # one class
    frame = pd.DataFrame({"x": x, "row": range(400)}, index=range(1000, 1400))
    release, _ = anonymize(frame, {"k": 2, "quasi_identifiers": ["x"], "unlisted": "publish"})
    assert list(release.index) == list(range(400))
    order = release["row"].to_numpy()
    assert np.count_nonzero(order == np.arange(400)) < 20
    assert 150 < np.count_nonzero(np.diff(order) > 0) < 250
    assert frame["row"].tolist() == list(range(400))
    table = pa.Table.from_pandas(frame, preserve_index=True)
    assert set(table.column_names) == {"x", "row", "__index_level_0__"}
    released, report = run(tmp_path, table, k=2, quasi_identifiers=["x"])
    assert released.column_names == ["x", "row"]
    assert report["columns"]["index"] == ["__index_level_0__"]
    assert b"pandas" not in (released.schema.metadata or {})


def test_a_file_that_pandas_wrote(tmp_path):
    """Its metadata must not cost its rows where no column of a batch is needed."""
    table = pa.Table.from_pandas(pd.DataFrame({"x": range(400)}))
    assert table.schema.metadata
    _, report = run(tmp_path, table, k=2, quasi_identifiers=["x"], partitioning={"fragments": 1})
    assert report["rows"]["published"] == 400


def test_identifiers_are_dropped_or_redacted(tmp_path):
    table = pa.table({"ssn": [f"id{at}" for at in range(20)], "x": range(20)})
    job = {"k": 4, "identifiers": ["ssn"], "quasi_identifiers": ["x"]}
    dropped, report = anonymize(table, job)
    assert dropped.column_names == ["x"]
    assert report["columns"]["identifiers"] == ["ssn"]
    redacted, _ = anonymize(table, {**job, "identifier_policy": "redact"})
    assert set(redacted["ssn"].to_pylist()) == {"*"}


def test_the_report_names_the_columns_that_were_forgotten():
    table = pa.table({"x": range(20), "email": [f"{at}@a" for at in range(20)]})
    for policy, published in (("drop", ["x"]), ("publish", ["x", "email"])):
        job = {"k": 4, "quasi_identifiers": ["x"], "unlisted": policy}
        release, report = anonymize(table, job)
        assert release.column_names == published
        assert report["columns"]["unlisted"] == ["email"]
        assert report["columns"]["unlisted_policy"] == policy
        assert ("published_raw" in report) is (policy == "publish")


def test_quantiles_of_a_column_with_few_values_are_an_error(tmp_path):
    table = pa.table({"x": np.arange(5000) % 3})
    with pytest.raises(JobError, match="at most 3 fragment"):
        run(
            tmp_path,
            table,
            k=5,
            quasi_identifiers=["x"],
            partitioning={"strategy": "quantile", "fragments": 10, "sample": 1.0},
        )


def test_relaxed_classes_have_k_to_2k_minus_1_rows(tmp_path):
    tied = pa.table({"x": NUMBERS % 5, "y": NUMBERS % 7, "row": range(5000)})
    _, report = anonymize(tied, {"k": 10, "quasi_identifiers": ["x", "y"], "relaxed": True})
    cut = sum(each["equivalence_classes"] for each in report["fragments"])
    assert report["rows"]["published"] == 5000
    assert cut >= 1
    assert report["cut"]["used"] == "relaxed"
    different = pa.table({"x": NUMBERS, "y": NUMBERS[::-1]})
    _, report = anonymize(different, {"k": 10, "quasi_identifiers": ["x", "y"], "relaxed": True})
    assert min(report["class_sizes"])[0] >= 10
    assert np.mean([size <= 19 for size, n in report["class_sizes"] for _ in range(n)]) > 0.95
