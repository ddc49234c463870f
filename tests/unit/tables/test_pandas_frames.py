"""A DataFrame comes back with its dtypes, its labels and its values, and is what was checked."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from mondrian_ops import anonymize
from mondrian_ops.errors import InputError, JobError, PrivacyError
from mondrian_ops.tables.pandas_frames import PandasFrame
from tiers import one_in

ROWS = 24
TWICE = ROWS // 2
JOB = {"k": 3, "quasi_identifiers": ["age"], "unlisted": "publish"}
BIG = [2**53, 2**53 + 1]
SIZES = pd.CategoricalDtype(["s", "m", "l"], ordered=True)


def objects(*values: Any) -> pd.Series:
    return pd.Series([*values] * (ROWS // len(values)), dtype=object)


def frame_of(column: Any, **more: Any) -> pd.DataFrame:
    ages = [at // 3 for at in range(ROWS)]
    return pd.DataFrame({"age": ages, "x": column, "row": range(ROWS), **more})


def of_arrow(values: list[Any], kind: pa.DataType) -> pd.Series:
    return pd.Series(values * (ROWS // len(values)), dtype=pd.ArrowDtype(kind))


KEPT = {
    "Int64": pd.Series([*BIG * 11, None, None], dtype="Int64"),
    "UInt64": pd.Series([2**64 - 1, None] * TWICE, dtype="UInt64"),
    "int8": pd.Series([1, 2] * TWICE, dtype="int8"),
    "float64": pd.Series([np.nan, 0.1 + 0.2] * TWICE),
    "Float32": pd.Series([None, 1.5] * TWICE, dtype="Float32"),
    "float16": pd.Series([1, 2] * TWICE, dtype="float16"),
    "boolean": pd.Series([True, None] * TWICE, dtype="boolean"),
    "string": pd.Series(["a", None] * TWICE, dtype="string[python]"),
    "string[pyarrow]": pd.Series(["a", None] * TWICE, dtype="string[pyarrow]"),
    "ordered": pd.Series(["m", None] * TWICE, dtype=SIZES),
    "category": pd.Series(["a", "b"] * TWICE, dtype="category"),
    "category of numbers": pd.Series([5, 7] * TWICE, dtype="category"),
    "category of periods": pd.Series(pd.PeriodIndex(["2024-01", None] * TWICE, freq="M")).astype(
        "category"
    ),
    "cut": pd.cut(pd.Series(range(ROWS)), [-1, 5, 10, 30]),
    "interval": pd.cut(pd.Series(range(ROWS)), [-1, 5, 30]).astype("interval"),
    "period": pd.Series(pd.PeriodIndex(["9999-12", None] * TWICE, freq="M")),
    "period of hours": pd.Series(pd.period_range("2024", periods=ROWS, freq="2h")),
    "datetime64[s]": pd.Series(pd.date_range("2024", periods=ROWS, unit="s")),
    "datetime64[ns]": pd.Series(pd.to_datetime([1, None] * TWICE)),
    "zone": pd.Series(pd.date_range("2024", periods=ROWS, tz="Europe/Berlin")),
    "offset": pd.Series(pd.date_range("2024", periods=ROWS, tz=dt.timezone(dt.timedelta(hours=2)))),
    "timedelta": pd.Series(pd.to_timedelta([1, None] * TWICE)),
    "sparse": pd.Series(pd.arrays.SparseArray([0, 1] * TWICE)),
    "sparse text": pd.Series(pd.arrays.SparseArray([np.nan, 1.5] * TWICE)),
    "arrow int": of_arrow([*BIG, None], pa.int64()),
    "arrow text": of_arrow(["a", None], pa.large_string()),
    "arrow dictionary": of_arrow(["a", None], pa.dictionary(pa.int32(), pa.string())),
    "arrow time": of_arrow([dt.datetime(2024, 1, 1), None], pa.timestamp("us", "Asia/Tokyo")),
    "arrow decimal": of_arrow([Decimal("1.50"), None], pa.decimal128(5, 2)),
    "arrow list": of_arrow([["a"], None], pa.list_(pa.string())),
    "text": objects("a", None, np.nan, pd.NA),
    "dates": objects(dt.date(2024, 1, 1), None),
    "times": objects(dt.time(1), None),
    "moments": objects(pd.Timestamp(1), pd.Timestamp(2)),
    "decimals": objects(Decimal("1.5"), Decimal("2.25")),
    "booleans": objects(True, None),
    "numbers": objects(*BIG, None),
    "nothing": objects(None),
    "bytes": objects(b"a", None),
    "lists": objects([1.5, float("nan")], None, []),
    "mappings": objects({"a": 1}, {"b": "c"}),
    "uuids": pd.Series([uuid.UUID(int=at) for at in range(ROWS)], dtype=object),
    "periods": objects(pd.Period("2024-01"), None),
}


@pytest.mark.parametrize("name", one_in(2, KEPT))
def test_what_is_published_as_it_is_keeps_dtype_and_values(name):
    frame = frame_of(KEPT[name])
    before = frame.copy(deep=True)
    released, _ = anonymize(frame, JOB)
    pd.testing.assert_frame_equal(frame, before)
    in_order = released.sort_values("row", ignore_index=True)
    pd.testing.assert_series_equal(in_order["x"], frame["x"], check_exact=True)
    assert in_order.dtypes["x"] == frame.dtypes["x"]
    assert list(map(type, in_order["x"])) == list(map(type, frame["x"]))


def test_two_large_numbers_that_one_float_stands_for_remain_two():
    """9007199254740992 and ...993, with a missing value, were one value as float64."""
    account = pd.Series([10**17 + at % 5 for at in range(ROWS)], dtype="Int64")
    account[7] = pd.NA
    frame = frame_of(KEPT["Int64"], account=account)
    job = {**JOB, "k": 12, "l": 2, "sensitive": ["x", "account"]}
    released, report = anonymize(frame, job)
    assert released.dtypes[["x", "account"]].tolist() == [pd.Int64Dtype(), pd.Int64Dtype()]
    by_class = released.groupby("age")
    assert report["achieved"]["l"] == min(
        by_class[name].nunique().min() for name in ("x", "account")
    )
    assert sorted(map(str, released["account"])) == sorted(map(str, account))


@pytest.mark.parametrize(
    ("column", "dtype"),
    [
        (pd.Series([*BIG * 11, None, None], dtype="Int64"), "Int64"),
        (pd.Series([2**53 + at for at in range(ROWS)]), "Int64"),
        (pd.Series(range(ROWS), dtype="uint8"), "UInt8"),
        (pd.Series([2**64 - 1 - at for at in range(ROWS)], dtype="uint64"), "UInt64"),
        (pd.Series([0.1, None, 0.3] * 8), "float64"),
        (pd.Series([0.1, None, 0.3] * 8, dtype="Float64"), "Float64"),
        (pd.Series(pd.arrays.SparseArray([0, 1] * TWICE)), "Int64"),
        (pd.Series(range(ROWS), dtype="category"), "Int64"),
        (objects(*BIG, None), "Int64"),
        (KEPT["datetime64[s]"], "datetime64[s]"),
        (KEPT["zone"], "datetime64[ns, Europe/Berlin]"),
        (KEPT["period"], "period[M]"),
        (KEPT["period of hours"], "period[2h]"),
        (KEPT["category of periods"], "period[M]"),
        (KEPT["arrow int"], "int64[pyarrow]"),
        (KEPT["arrow time"], "timestamp[us, tz=Asia/Tokyo][pyarrow]"),
        (KEPT["dates"], "object"),
        (KEPT["decimals"], "object"),
    ],
    ids=lambda value: str(getattr(value, "dtype", value)),
)
def test_bounds_are_exact_in_a_dtype_of_the_sources_kind(column, dtype):
    frame = frame_of(column)
    job = {"k": 3, "quasi_identifiers": ["x=interval"], "unlisted": "publish"}
    released, _ = anonymize(frame, {**job, "interval_style": "bounds"})
    assert str(released.dtypes["x_min"]) == str(released.dtypes["x_max"]) == dtype
    source = released["row"].map(frame.set_index("row")["x"].astype(object))
    for value, low, high in zip(source, released["x_min"], released["x_max"], strict=True):
        if not pd.isna(low):
            assert low <= value <= high
    assert source.isna().sum() <= released["x_min"].isna().sum()


@pytest.mark.parametrize(
    ("column", "dtype"),
    [
        (pd.Series(range(ROWS)), "object"),
        (pd.Series(["a", "b"] * TWICE, dtype="category"), "object"),
        (objects("a", "b"), "object"),
        (KEPT["string"], "string"),
        (KEPT["string[pyarrow]"], "string"),
        (KEPT["arrow text"], "large_string[pyarrow]"),
        (KEPT["arrow int"], "string[pyarrow]"),
        (KEPT["cut"], "object"),
    ],
)
def test_a_generalized_column_is_text_as_its_caller_has_text(column, dtype):
    default = str(pd.Series(["a"]).dtype)  # object in pandas 2, str in pandas 3
    released, _ = anonymize(frame_of(column), {**JOB, "quasi_identifiers": ["age", "x"]})
    expected = default if dtype == "object" and column.dtype != object else dtype
    assert str(released.dtypes["x"]) == expected
    assert {type(value) for value in released["x"].dropna()} == {str}


def test_intervals_and_periods_are_generalized():
    frame = frame_of(KEPT["cut"], month=pd.Series(pd.period_range("2024-01", periods=ROWS)))
    released, _ = anonymize(frame, {"k": 3, "quasi_identifiers": ["x", "month"]})
    assert set(released["x"]) <= {"(-1, 5]", "(5, 10]", "(10, 30]", "{(-1, 5], (5, 10]}"}
    assert released["month"].str.match(r"\[2024-01-\d\d, 2024-01-\d\d\]").all()


def test_a_category_tells_nothing_of_rows_that_are_not_there():
    """Categories are often in the order of the source's rows, or of rows that were filtered out."""
    seen = pd.Categorical(["zoe", "ann"] * TWICE, categories=["zoe", "ann", "left out"])
    arrow = pa.DictionaryArray.from_arrays([1, 2] * TWICE, ["left out", "zoe", "ann"])
    arrow = pd.Series(pd.arrays.ArrowExtensionArray(arrow))
    released, _ = anonymize(frame_of(seen, arrow=arrow), JOB)
    assert list(released["x"].cat.categories) == ["ann", "zoe"]
    assert arrow.dtype == released["arrow"].dtype
    (dictionary,) = {
        tuple(chunk.dictionary.to_pylist())
        for chunk in pa.chunked_array(pa.array(released["arrow"])).chunks
    }
    assert sorted(dictionary) == ["ann", "zoe"]


def test_ordered_categories_lose_those_of_suppressed_rows_only():
    grades = pd.Series(
        ["b"] * (ROWS - 1) + ["only"], dtype=pd.CategoricalDtype(["a", "b", "only"], ordered=True)
    )
    frame = frame_of(grades, zip=["1"] * (ROWS - 1) + ["9"])
    job = {
        **JOB,
        "quasi_identifiers": ["zip"],
        "algorithm": "samarati",
        "samarati": {"max_suppressed": 1},
    }
    released, report = anonymize(frame, job)
    assert report["rows"]["suppressed"] == 1
    assert list(released["x"].cat.categories) == ["a", "b"]
    assert released["x"].cat.ordered


@pytest.mark.parametrize(
    ("column", "error"),
    [
        (objects(1, "Quasimodo"), "column 'x' of type object: its values have several types"),
        (objects(2**70, 1), "column 'x' of type object"),
        (objects("\ud800", "a"), "column 'x' of type object"),
        (objects(b"a", "Quasimodo"), "column 'x' of type object"),
        (objects(object()), "column 'x' of type object"),
        (pd.Series([1j] * ROWS), "column 'x' of type complex128"),
        (
            pd.Series([1, "Quasimodo"] * TWICE, dtype="category"),
            "column 'x' of type",
        ),
        (
            objects(dt.date(2024, 1, 1), dt.datetime(2024, 1, 1, 5)),
            r"holds dates \(datetime.date\) and dates with a time \(datetime.datetime\); make all",
        ),
        (
            objects(dt.date(2024, 1, 1), dt.datetime(2024, 1, 1, 5, tzinfo=dt.UTC)),
            r"holds dates \(datetime.date\) and dates with a time",
        ),
        (
            objects(dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
            "holds times with a time zone and times without one, which cannot be compared; give",
        ),
    ],
)
def test_what_arrow_cannot_hold_is_refused_by_name_unless_nobody_reads_it(column, error):
    with pytest.raises(InputError, match=error) as caught:
        anonymize(frame_of(column), JOB)
    assert "Quasimodo" not in str(caught.value)
    assert list(anonymize(frame_of(column), {**JOB, "unlisted": "drop"})[0]) == ["age"]
    assert anonymize(frame_of(column), {**JOB, "unlisted": "drop", "identifiers": ["x"]})


# Labels


def test_labels_that_are_no_text_come_back_as_they_came():
    labels = pd.Index([0, pd.Timestamp("2024-01-01"), None], dtype=object, name="columns")
    frame = frame_of("a").set_axis(labels, axis=1)
    for quasi in ([0], ["0"], frame.columns[:1], (np.int64(0),), [{"name": 0}]):
        job = {**JOB, "quasi_identifiers": quasi, "sensitive": labels[1:2]}
        released, _ = anonymize(frame, job)
        pd.testing.assert_index_equal(released.columns, labels)
    bounds, _ = anonymize(
        frame.set_axis([0, 1, 2], axis=1),
        {**JOB, "quasi_identifiers": [0], "interval_style": "bounds"},
    )
    assert bounds.columns.tolist() == ["0_min", "0_max", "0_hidden", 1, 2]


def test_labels_of_several_levels_come_back():
    columns = pd.MultiIndex.from_tuples([("a", 1), ("b", ""), ("b", 2)], names=["one", "two"])
    frame = frame_of("a").set_axis(columns, axis=1)
    for quasi in (columns[:1], ["('a', 1)"], [("a", 1)]):
        released, _ = anonymize(frame, {**JOB, "quasi_identifiers": quasi})
        pd.testing.assert_index_equal(released.columns, columns)
    job = {**JOB, "quasi_identifiers": columns[:1], "interval_style": "bounds"}
    bounds, _ = anonymize(frame, job)
    assert bounds.columns.tolist() == [
        *(("a", f"1_{end}") for end in ("min", "max", "hidden")), *columns[1:],
    ]  # fmt: skip
    leveled = frame.set_index(pd.Index(range(50, 50 + ROWS), name="row"))
    released, _ = anonymize(leveled, {**JOB, "quasi_identifiers": ["row"]})
    assert released.columns.tolist() == [("row", ""), *columns]


@pytest.mark.parametrize(
    ("labels", "error"),
    [
        ([0, "0", "x"], r"columns 0 and '0' are both called '0' in a job; rename one"),
        (["age", "age", "x"], "duplicate column 'age'; rename one of the two"),
        ([0, 0, "x"], "columns 0 and 0 are both called '0'"),
    ],
)
def test_two_columns_of_one_name_are_refused(labels, error):
    with pytest.raises(InputError, match=error):
        anonymize(frame_of("a").set_axis(labels, axis=1), JOB)


# An index


@pytest.mark.parametrize(
    ("index", "named", "label"),
    [
        (pd.Index(range(40, 40 + ROWS), name="years"), "years", "years"),
        (pd.Index(range(40, 40 + ROWS), name=7), "7", 7),
        (pd.Index([*range(40, 40 + ROWS)]), "index", "index"),
        (pd.MultiIndex.from_arrays([range(ROWS), ["a"] * ROWS]), "level_0", "level_0"),
        (pd.MultiIndex.from_arrays([range(ROWS), ["a"] * ROWS], names=["y", None]), "y", "y"),
        (pd.period_range("2024", periods=ROWS, name="day"), "day", "day"),
        (pd.CategoricalIndex(["a", "b"] * TWICE, name="c"), "c", "c"),
    ],
)
def test_a_level_of_the_index_is_a_column_if_the_job_names_it(index, named, label):
    frame = frame_of("a").set_index(index)
    released, report = anonymize(frame, {**JOB, "quasi_identifiers": [named]})
    assert released.columns.tolist() == [label, "age", "x", "row"]
    assert isinstance(released.index, pd.RangeIndex)
    assert named not in report["columns"]["index"]
    left_out, report = anonymize(frame, JOB)
    assert left_out.columns.tolist() == ["age", "x", "row"]
    assert named in report["columns"]["index"]
    pd.testing.assert_index_equal(frame.index, index)


def test_the_number_of_a_row_is_no_column():
    with pytest.raises(JobError, match="no column 'index'"):
        anonymize(frame_of("a"), {**JOB, "quasi_identifiers": ["index"]})
    twice = frame_of("a").set_index(pd.MultiIndex.from_arrays([range(ROWS)] * 2, names=["y", "y"]))
    with pytest.raises(InputError, match="duplicate column 'y'"):
        anonymize(twice, JOB)


# What is returned is what was checked


@pytest.mark.parametrize(
    "lose",
    [
        lambda made: made.astype({"x": "float64"}),
        lambda made: made.assign(x=made["x"].iloc[0]),
        lambda made: made.assign(age="[0, 7]"),
        lambda made: made.iloc[::-1],
        lambda made: made.iloc[1:],
        lambda made: made.assign(x="a"),
        lambda made: made.drop(columns="row"),
    ],
)
def test_a_conversion_that_loses_a_value_is_noticed(monkeypatch, lose):
    made = PandasFrame.returned
    monkeypatch.setattr(PandasFrame, "returned", lambda *args: lose(made(*args)))
    column = pd.Series(BIG * TWICE, dtype="Int64")
    with pytest.raises(PrivacyError, match="the release is refused"):
        anonymize(frame_of(column), {**JOB, "l": 2, "sensitive": ["x"]})


def test_columns_whose_type_the_job_names_come_back_in_it():
    frame = frame_of(
        objects("1", "2"), day=["2024-01-01", "unknown"] * TWICE, ill=["flu", "-"] * TWICE
    )
    job = {**JOB, "types": {"x": "integer", "day": "date"}, "csv": {"missing": ["-", "unknown"]}}
    released, _ = anonymize(frame, job)
    in_order = released.sort_values("row", ignore_index=True)
    assert in_order["x"].dtype == "Int64"
    assert in_order["x"].tolist() == [1, 2] * TWICE
    assert in_order["day"].tolist() == [dt.date(2024, 1, 1), None] * TWICE
    assert in_order["ill"].tolist() == ["flu", None] * TWICE
    with_l = {**job, "l": 2, "sensitive": ["ill"]}
    with pytest.raises(PrivacyError, match="l = 2"):
        anonymize(frame, with_l)
