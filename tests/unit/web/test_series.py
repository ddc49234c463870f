"""The page of a series: its nights as charts, for those who may read all that released in it."""

from __future__ import annotations

import pytest

from html_page import page_at
from releases import SERIES, entry_id, keep, keep_series, report_of


def keep_night(catalogue, number: int, name: str = SERIES, **changed) -> str:
    report = report_of()
    report["series"] = {"name": name, "night": number}
    return keep(catalogue, number, report=report, **changed)


def test_the_page_shows_the_nights_of_a_series(client, catalogue):
    keep_series(catalogue, 5)
    for other in ("/data/out/a/*", "/data/out/z/*"):  # before and after it in the order of names
        keep_series(catalogue, 9, name=other)
    path = f"releases/{keep_night(catalogue, 2)}"
    assert "The series, by night" in page_at(client, path).text
    page = page_at(client, f"{path}/series")
    assert [chart.kind for chart in page.charts] == ["lines", "columns", "columns", "lines"]
    assert SERIES in page.text
    assert "1 published nothing" in page.text
    loss, waiting, _, drift = page.charts
    assert [says[:18] for says in loss.says if says.startswith("released")] == [
        f"released: night {n}," for n in range(2, 6)
    ]
    refits = [says for says in loss.says if says.startswith("night ")]
    assert [says[:20] for says in refits] == ["night 4, 2025-01-04:"]  # the first fit is none
    assert waiting.says[-1] == "night 5, 2025-01-05: 26 rows wait"
    assert drift.says[-1].startswith("drift: night 5, 2025-01-05, ")


def test_the_page_shows_no_small_number_of_rows_that_wait(client, catalogue):
    """Nor can it be computed from the others. A night of three rows comes first."""
    keep_series(catalogue, 2)
    page = page_at(client, f"releases/{keep_night(catalogue, 2)}/series")
    _, waiting, *_ = page.charts
    assert [says.partition(": ")[2] for says in waiting.says] == ["5 rows wait", "22 rows wait"]
    assert "night 1, 2025-01-015005" in page.text.replace("\n", "")  # came, out, left out, wait


def test_the_nights_of_a_dag_that_the_user_may_not_read_are_not_shown(client, catalogue, hidden):
    keep_series(catalogue, 5)
    path = f"releases/{keep_night(catalogue, 2)}/series"
    assert client.get(path).status_code == 200
    keep_night(catalogue, 3, dag_id="theirs")
    hidden.add("theirs")
    answer = client.get(path)
    assert answer.status_code == 404
    assert "2025-01-03" not in answer.text
    assert client.get(f"releases/{entry_id(3)}/series").status_code == 404


@pytest.mark.parametrize("name", ["", "/data/out/others/*"])
def test_a_release_of_no_series_has_no_such_page(client, catalogue, name):
    keep_series(catalogue, 2)
    path = f"releases/{keep_night(catalogue, 2, name=name)}/series"
    answer = client.get(path)
    assert answer.status_code == 404
    assert "no night of a series" in answer.text


def test_a_night_that_is_not_published_yet_is_not_shown(client, catalogue):
    keep_series(catalogue, 3, state="pending")
    assert client.get(f"releases/{keep_night(catalogue, 2)}/series").status_code == 404
