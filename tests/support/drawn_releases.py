"""Random releases of few rows, the criteria that they are held to, and all that a report has."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.job.job import Job
from mondrian_ops.verify.counts import ReleaseCount

ILLS = Hierarchy.from_rows(
    [["flu", "lung", "*"], ["cold", "lung", "*"], ["gout", "joint", "*"], ["ulcer", "*"]], "ills"
)
QUASI = {
    pa.string(): ["*", "[1, 2]", "", "ä", None],
    pa.large_string(): ["a", "b", None],
    pa.int8(): [-128, -1, 0, 1, 127, None],
    pa.uint64(): [0, 1, 2**64 - 1, None],
    pa.int64(): [-(2**63), -1, -2, 0, 2**63 - 1, None],
    pa.float64(): [0.0, -0.0, -1.5, math.inf, math.nan, 1e-300, None],
    pa.float32(): [0.5, math.nan, None],
    pa.bool_(): [True, False, None],
    pa.date32(): [dt.date(1970, 1, 1), dt.date(2024, 2, 29), None],
    pa.timestamp("us"): [dt.datetime(1970, 1, 1), dt.datetime(2024, 1, 1, 1), None],
    pa.time32("s"): [dt.time(1), dt.time(2), None],
    pa.decimal128(10, 2): [Decimal("1.20"), Decimal("-3.00"), None],
    pa.binary(): [b"", b"x", None],
    pa.null(): [None],
}
CRITERIA = [
    {},
    {"l": 2},
    {"l": 2, "missing_sensitive": "value"},
    {"l": 2, "diversity": "entropy"},
    {"l": 2, "diversity": "recursive", "c": 1.5},
    {"t": 0.3},
    {"t": 0.3, "t_distance": "ordered"},
    {"t": 0.3, "t_distance": "hierarchical", "sensitive_hierarchy": {"s": "ills"}},
]


@st.composite
def releases(draw):
    """Parts of a release, each with the person of every row."""
    kinds = draw(st.lists(st.sampled_from(list(QUASI)), min_size=1, max_size=4))
    parts = []
    for rows in draw(st.lists(st.integers(0, 9), min_size=1, max_size=6)):

        def column(kind, values, rows=rows):
            drawn = draw(st.lists(st.sampled_from(values), min_size=rows, max_size=rows))
            return pa.array(drawn, kind, from_pandas=False)

        columns = {f"q{at}": column(kind, QUASI[kind]) for at, kind in enumerate(kinds)}
        columns["s"] = column(pa.string(), [*ILLS.leaves, None])
        columns["name"] = column(pa.string(), ["*", "*", "Jane"])
        persons = column(pa.string(), ["p1", "p2", "p3", None])
        parts.append((pa.table(columns), pa.chunked_array([persons])))
    return parts


def figures_of(count: ReleaseCount) -> dict[str, Any]:
    """All that a report has of a count, in no order that depends on how it was made."""
    names = ["rows", "classes", "histogram", "persons_histogram", "dp", "identifiers", "columns"]
    names += ["prosecutor_max", "prosecutor_avg", "quasi_identifiers"]
    sensitive = {name: each.to_report() for name, each in count.figures.sensitive.items()}
    figures = {name: getattr(count, name) for name in names}
    return figures | {"c": count.c_avg(3), "sensitive": sensitive}


def job_of(parts: Sequence[Any], criteria: Mapping[str, Any], has_persons: bool) -> Job:
    """The job that a drawn release is held to."""
    described = {
        "input": "in.csv",
        "output": "out",
        "k": 2,
        "quasi_identifiers": [n for n in parts[0][0].column_names if n.startswith("q")],
        "sensitive": ["s"],
        "identifiers": ["name"],
        "identifier_policy": "redact",
        **({"entity_id": "id"} if has_persons else {}),
        **criteria,
    }
    return Job.from_dict(described)
