"""The list: its filter, order and pages, and the drift that it marks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mondrian_ops.catalogue import Catalogue
from mondrian_ops.catalogue.tables import FIGURES, release
from mondrian_ops.web.reader import Reader
from mondrian_ops.web.release_list import COLUMNS, Choice, ListedNight, Page, drifts_of
from releases import entry, keep_entry
from tiers import in_soak

Look = Callable[..., Page]


@pytest.fixture
def page(catalogue: Catalogue, user) -> Look:
    """Reads the page that an address chooses."""

    def look(**keys) -> Page:
        reader = Reader(lambda: catalogue, user)
        with reader.opened():
            return reader.page(Choice(**keys))

    return look


def numbers(page: Page) -> list[int]:
    return [int(each.id, 16) for each in page.rows]


def test_the_filter_and_the_order_of_an_address_are_applied(catalogue, page):
    keep_entry(catalogue, entry(1))
    keep_entry(catalogue, entry(2, state="refused", dataset="out/visits/ÄRZTE_50%"))
    keep_entry(catalogue, entry(3, dag_id="etl", run_id="manual__1"))

    def ids(**keys) -> list[int]:
        return numbers(page(**keys))

    assert ids() == [3, 2, 1]
    assert ids(dataset="VISITS") == [2]
    assert ids(dataset="ärzte_50%") == [2]
    assert ids(dataset="_") == [2]
    assert ids(dataset="%") == [2]
    assert ids(dataset="out/people/*") == [3, 1]
    assert ids(state="published", dag_id="mondrian_nightly") == [1]
    assert ids(run_id="manual__1") == [3]
    assert ids(sort="time", order="asc") == [1, 2, 3]
    assert ids(sort="no such column") == [3, 2, 1]
    assert ids(dataset="nothing") == []
    assert ids(dataset="' OR 1=1 --") == []


def test_the_list_can_be_sorted_by_l(catalogue, page):
    for number, l in enumerate((3, None, 2, 10)):  # noqa: E741
        keep_entry(catalogue, entry(number, l=l))
    assert [each.l for each in page(sort="l").rows] == [10, 3, 2, None]


def test_releases_without_a_figure_come_last_and_equal_ones_newest_first(catalogue, page):
    for number, loss in enumerate((0.2, None, 0.1, 0.2)):
        keep_entry(catalogue, entry(number, GCP=loss))
    assert numbers(page(sort="gcp", order="desc")) == [3, 0, 2, 1]
    assert numbers(page(sort="gcp", order="asc")) == [2, 3, 0, 1]


@pytest.mark.parametrize(("number", "nearest"), [(-5, 1), (99, 3), *in_soak([(1, 1), (3, 3)])])
def test_a_page_that_does_not_exist_becomes_the_nearest_one(catalogue, page, number, nearest):
    for at in range(120):
        keep_entry(catalogue, entry(at))
    found = page(page=number)
    assert (found.number, found.pages, found.total) == (nearest, 3, 120)
    assert numbers(found) == list(range(119, -1, -1))[(nearest - 1) * 50 : nearest * 50]


def test_the_address_of_a_choice_keeps_its_filter_and_order():
    choice = Choice(dataset="a&b=c", state="refused", page=4)
    assert choice.query(sort="gcp") == "dataset=a%26b%3Dc&state=refused&sort=gcp&order=desc"
    assert "page=5" in choice.query(page=5)


def test_a_release_has_all_figures_of_the_catalogue():
    assert {*FIGURES} < {*COLUMNS} < {*release.c.keys()}


def night(at: int, loss: float | None = 0.1, rows: float | None = 1000) -> ListedNight:
    return ListedNight(str(at), f"2025-01-{at:02}", loss, rows)


def test_loss_and_rows_far_from_the_nights_before_are_drift():
    losses = [0.10, 0.11, 0.10, None, 0.12, 0.10, 0.30, 0.10]
    nights = [night(at, loss) for at, loss in enumerate(losses)]
    nights += [night(8, 0.11, 400), night(9, None, None)]
    drifts = drifts_of(nights, 0.25)
    assert {at: drift for at, drift in drifts.items() if drift} == {
        "6": {"loss": pytest.approx(2.0)},
        "8": {"rows": pytest.approx(-0.6)},
    }
    assert drifts_of(nights, 0.0)["0"] == {}
    assert drifts_of([night(0, None), night(1)], 0.0)["1"] == {}


def test_a_release_is_compared_with_published_ones_of_its_dataset_that_its_user_may_read(
    catalogue, user, hidden
):
    hidden.add("hidden")
    for number in range(12):
        keep_entry(catalogue, entry(number, GCP=0.1))
    others = {"state": "refused"}, {"dataset": "out/visits"}, {"dag_id": "hidden"}
    for number, other in enumerate(others, 20):
        keep_entry(catalogue, entry(number, **other))
    reader = Reader(lambda: catalogue, user)
    with reader.opened():
        between = reader.nights("out/people/*", entry(9)["time"], entry(10)["time"])
        first = reader.nights("out/people/*", entry(2)["time"], entry(2)["time"])
        latest = reader.latest("out/people/*", 2)
    assert [int(each.id, 16) for each in between] == [2, 3, 4, 5, 6, 7, 8, 9, 10]
    assert [int(each.id, 16) for each in first] == [0, 1, 2]
    assert [int(each.id, 16) for each in latest] == [10, 11]
