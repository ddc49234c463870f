"""Random frames of all dtypes: a release with the same dtypes and values, or an error of ours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from mondrian_ops import anonymize
from mondrian_ops.errors import MondrianOpsError

ROWS = 12
WHOLE = st.sampled_from([0, 1, -1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)])
REAL = st.sampled_from([0.0, -0.0, 0.1, 1e300, float("inf"), float("nan")])
TEXT = st.sampled_from(["", "a", " a", "*", "[1, 2]", "é", "{a, b}"])
TICKS = st.integers(0, 10**15)

DTYPES: dict[str, Any] = {
    "int64": WHOLE,
    "Int64": st.none() | WHOLE,
    "UInt8": st.none() | st.integers(0, 255),
    "int64[pyarrow]": st.none() | WHOLE,
    "float64": REAL,
    "Float64": st.none() | REAL,
    "double[pyarrow]": st.none() | REAL,
    "bool": st.booleans(),
    "boolean": st.none() | st.booleans(),
    "object": st.one_of(st.none(), TEXT, WHOLE, REAL),
    "string[python]": st.none() | TEXT,
    "string[pyarrow]": st.none() | TEXT,
    "large_string[pyarrow]": st.none() | TEXT,
    "category": st.none() | TEXT,
    "datetime64[ns]": st.none() | TICKS,
    "datetime64[us]": st.none() | TICKS,
    "datetime64[s, Europe/Berlin]": st.none() | st.integers(0, 10**9),
    "timedelta64[ms]": st.none() | TICKS,
    "period[M]": st.none() | st.sampled_from(["2024-01", "9999-12", "0001-01"]),
    "Sparse[int64]": WHOLE,
    "interval": st.sampled_from([pd.Interval(0, 1), pd.Interval(1, 2)]),
}
ORDERED = pd.CategoricalDtype(["b", "a", ""], ordered=True)


@st.composite
def column(draw: st.DrawFn) -> pd.Series:
    name = draw(st.sampled_from([*DTYPES, "ordered", "dictionary"]))
    if name in ("ordered", "dictionary"):
        kind = pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))
        values = draw(st.lists(st.sampled_from([None, "a", "b"]), min_size=ROWS, max_size=ROWS))
        return pd.Series(values, dtype=ORDERED if name == "ordered" else kind)
    values = draw(st.lists(DTYPES[name], min_size=ROWS, max_size=ROWS))
    if name.startswith(("datetime64", "timedelta64")):
        numbers = pd.Series(values, dtype="Int64")
        ticks = numbers.fillna(0).to_numpy(np.int64)
        if "Berlin" in name:
            series = (
                pd.Series(ticks.view("M8[s]")).dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin")
            )
        else:
            series = pd.Series(ticks.view(name))
        return series.mask(numbers.isna())
    return pd.Series(values, dtype=name if name != "interval" else None)


@st.composite
def jobs(draw: st.DrawFn) -> dict[str, Any]:
    quasi = draw(st.sampled_from([["q"], ["q", "x"], ["x"]]))
    job: dict[str, Any] = {"k": 2, "quasi_identifiers": quasi, "unlisted": "publish"}
    others = [name for name in ("x", "y") if name not in quasi]
    if draw(st.booleans()):
        job |= {"sensitive": others[-1:], "l": draw(st.sampled_from([1, 2]))}
    if draw(st.booleans()):
        job["interval_style"] = "bounds"
    return job


LABELS = st.sampled_from([["q", "x", "y"], [0, "x", ("y", 1)]])


@given(x=column(), y=column(), job=jobs(), labels=LABELS)
def test_a_frame_comes_back_as_it_came_or_is_refused(x, y, job, labels):
    frame = pd.DataFrame({"q": [at // 3 for at in range(ROWS)], "x": x, "y": y, "row": range(ROWS)})
    frame.columns = pd.Index([*labels, "row"], tupleize_cols=False)
    label = dict(zip("qxy", labels, strict=True))
    roles = [role for role in ("quasi_identifiers", "sensitive") if role in job]
    keys = {role: [label[name] for name in job[role]] for role in roles}
    before = frame.copy(deep=True)
    try:
        released, report = anonymize(frame, {**job, **keys})
    except MondrianOpsError as error:
        assert len(str(error)) > 20
        return
    finally:
        pd.testing.assert_frame_equal(frame, before)
    assert report["rows"]["published"] == ROWS
    in_order = released.sort_values("row", ignore_index=True)
    for at, name in enumerate(["q", "x", "y"]):
        if name in job["quasi_identifiers"]:
            continue
        came, source = in_order[labels[at]], frame[labels[at]]
        if isinstance(source.dtype, pd.CategoricalDtype) and not source.dtype.ordered:
            assert set(came.cat.categories) == set(source.dropna())
            came, source = came.astype(object), source.astype(object)
        pd.testing.assert_series_equal(came, source, check_exact=True)
        if name in job.get("sensitive", []):
            shown = [each for each in released.columns if each not in (*labels, "row")]
            shown += [label[each] for each in job["quasi_identifiers"] if label[each] in released]
            values = released.assign(value=released[label[name]].astype(object).map(repr))
            least = values.groupby(shown, dropna=False, observed=True)["value"].nunique().min()
            assert least >= report["achieved"].get("l", 0)
