"""The list: its filter, order and pages, and the drift that it marks."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mondrian_ops.web.release_list import SORTS, Choice, Release, drifts_of, nights_of, page_of
from releases import entry


def release(number: int, **changed) -> Release:
    return Release.of(entry(number, **changed))


@given(
    st.dictionaries(
        st.sampled_from([*entry(1), "rows_input", "files", "GCP"]),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text()),
    )
)
@example({"k": 10**400})
def test_an_entry_with_any_values_can_be_listed(changed):
    odd = Release.of({**entry(1), **changed})
    assert isinstance(odd.dataset, str)
    assert odd.k is None or math.isfinite(odd.k)
    assert odd.when
    for sort in SORTS:
        assert page_of([odd, release(2)], Choice(sort=sort)).total == 2
    (nights,) = nights_of([odd, release(0)], [odd.series]).values()
    drifts_of(nights, 0.2)


def test_the_filter_and_the_order_of_an_address_are_applied():
    releases = [
        release(1),
        release(2, state="refused", dataset="out/visits"),
        release(3, dag_id="etl", run_id="manual__1"),
    ]

    def ids(**keys) -> list[int]:
        return [int(each.id, 16) for each in page_of(releases, Choice(**keys)).rows]

    assert ids() == [3, 2, 1]
    assert ids(dataset="VISITS") == [2]
    assert ids(dataset="out/people/*") == [3, 1]
    assert ids(state="published", dag_id="mondrian_nightly") == [1]
    assert ids(run_id="manual__1") == [3]
    assert ids(sort="time", order="asc") == [1, 2, 3]
    assert ids(sort="no such column") == [3, 2, 1]
    assert ids(dataset="nothing") == []


def test_the_list_can_be_sorted_by_l():
    releases = [release(1, l=3), release(2, l=None), release(3, l=2), release(4, l=10)]
    assert [each.l for each in Choice(sort="l").sorted(releases)] == [10, 3, 2, None]


def test_releases_without_a_figure_come_last_in_either_order():
    releases = [release(1, GCP=0.2), release(2), release(3, GCP=0.1)]
    for order, first in (("asc", 0.1), ("desc", 0.2)):
        in_order = Choice(sort="gcp", order=order).sorted(releases)
        assert [each.GCP for each in in_order[::2]] == [first, None]


@pytest.mark.parametrize(("number", "nearest"), [(-5, 1), (1, 1), (3, 3), (99, 3)])
def test_a_page_that_does_not_exist_becomes_the_nearest_one(number, nearest):
    page = page_of([release(at) for at in range(120)], Choice(page=number))
    assert (page.number, page.pages, page.total) == (nearest, 3, 120)
    assert len(page.rows) == (20 if nearest == 3 else 50)


def test_the_address_of_a_choice_keeps_its_filter_and_order():
    choice = Choice(dataset="a&b=c", state="refused", page=4)
    assert choice.query(sort="gcp") == "dataset=a%26b%3Dc&state=refused&sort=gcp&order=desc"
    assert "page=5" in choice.query(page=5)


def test_loss_and_rows_far_from_the_nights_before_are_drift():
    losses = [0.10, 0.11, 0.10, 0.12, 0.10, 0.30, 0.10]
    nights = [release(at, GCP=loss, rows_published=1000) for at, loss in enumerate(losses)]
    nights.append(release(len(nights), GCP=0.11, rows_published=400))
    others = [release(50, state="refused", GCP=9.0), release(51, dataset="out/visits", GCP=9.0)]
    (of_one,) = nights_of([*others, *reversed(nights)], ["out/people/*"]).values()
    marked = {int(at, 16): drift for at, drift in drifts_of(of_one, 0.25).items()}
    assert [at for at, drift in marked.items() if drift] == [5, 7]
    assert marked[5] == {"loss": pytest.approx(2.0)}
    assert marked[7] == {"rows": pytest.approx(-0.6)}
    assert drifts_of(of_one, 0.0)[of_one[0].id] == {}
