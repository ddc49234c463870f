"""Reports with any value in any place: no page fails on them."""

from __future__ import annotations

import copy
import json
from typing import Any

from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from html_page import Page
from hypothesis_profiles import examples
from mondrian_ops.catalogue import Catalogue
from releases import entry, entry_id, keep_entry, night, report_of

ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.sampled_from([0, -1, 1.5, 1e308, -1e308, 10**400, 2**63, "", "<b>", "\0", "2025-13-01"])
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=4,
)
REPORTS = [report_of(suppressed=3), night(3)]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path to each value inside a JSON value; of a list, to its first two."""
    if isinstance(value, dict):
        inside = list(value.items())
    else:
        inside = list(enumerate(value[:2])) if isinstance(value, list) else []
    return [path] * bool(path) + [way for key, each in inside for way in places(each, (*path, key))]


@st.composite
def edited(draw: st.DrawFn, values: list[Any]) -> Any:
    """One of some JSON values, with up to three of its inner values replaced or removed."""
    value = copy.deepcopy(draw(st.sampled_from(values)))
    for _ in range(draw(st.integers(1, 3))):
        *way, last = draw(st.sampled_from(places(value)))
        inner = value
        for key in way:
            inner = inner[key]
        if draw(st.booleans()):
            inner[last] = draw(ANYTHING)
        else:
            del inner[last]
        if not places(value):
            break
    return value


def look(client: TestClient, number: int) -> None:
    """Request every page that shows a release."""
    one, other = entry_id(number), entry_id(0)
    for path in ("releases", f"releases/{one}", f"compare?id={one}&id={other}"):
        answer = client.get(path)
        assert answer.status_code == 200, f"{path}: {answer.text[:500]}"
        Page(answer.text)
    assert client.get(f"releases/{one}/report.json").status_code == 200
    assert client.get(f"releases/{one}/report.html").status_code in (200, 404)


@examples(150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edited(REPORTS))
def test_pages_show_a_report_with_any_values(client: TestClient, catalogue: Catalogue, report: Any):
    keep_entry(catalogue, entry(0, REPORTS[0]), _report=json.dumps(REPORTS[0]).encode())
    keep_entry(catalogue, entry(1, REPORTS[0]), _report=json.dumps(report).encode())
    look(client, 1)
