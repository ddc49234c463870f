"""A series as pictures: each figure of each night is in a chart and in its table."""

from __future__ import annotations

import pytest

from mondrian_ops.report.series import MOST_NIGHTS, NightFigures, series_sections


def night(number: int, **figures) -> NightFigures:
    given = {
        "label": f"2025-06-{number:02d}",
        "state": "published",
        "rows_in": 100,
        "rows_published": 90 + number,
        "rows_suppressed": 0,
        "rows_waiting": 10 - number % 10,
        "loss": 0.1 + number / 1000,
        "sample_loss": None,
        "sample_loss_nightly": None,
        "drift": None,
        "refitted": False,
        "persons": None,
        "least_common": None,
    }
    return NightFigures(number, **{**given, **figures})


def says_of(section) -> list[str]:
    chart = section.chart
    if chart.kind == "columns":
        return [column.says for column in chart.columns]
    return [f"{line.label}: {spot.says}" for line in chart.lines for spot in line.spots]


def test_a_plain_series_shows_loss_waiting_and_rows() -> None:
    sections = series_sections([night(1, state="held", loss=None, rows_published=0), night(2)])
    assert [section.title for section in sections] == [
        "Information lost by night", "Rows that wait", "Rows published"
    ]  # fmt: skip
    loss, waiting, rows = sections
    assert says_of(loss) == ["released: night 2, 2025-06-02, 10.2 %"]
    assert loss.table.rows[0] == ("night 1, 2025-06-01", "0", "–")
    assert says_of(waiting)[1] == "night 2, 2025-06-02: 8 rows wait"
    assert "8 rows wait after the last night" in waiting.lead
    assert "not protected against those who hold these" in rows.lead
    assert says_of(rows) == ["night 1, 2025-06-01: 0 rows", "night 2, 2025-06-02: 92 rows"]


def test_shared_boundaries_show_what_they_cost_the_drift_and_where_they_changed() -> None:
    figures = {"sample_loss": 0.2, "sample_loss_nightly": 0.1, "drift": 0.05}
    sections = series_sections([night(1, **figures), night(2, refitted=True, **figures)])
    loss, _, _, drift = sections
    assert [line.label for line in loss.chart.lines] == ["released", "shared", "nightly"]
    assert loss.chart.pin_names == ["refit"]
    assert [spot.says for _, spot in loss.chart.pins] == ["night 2, 2025-06-02: 10.2 %"]
    assert "cannot be compared" in loss.lead
    assert says_of(drift) == [f"drift: night {n}, 2025-06-0{n}, 5.0 %" for n in (1, 2)]


def test_protected_people_are_counted_with_the_values_left_for_them() -> None:
    nights = [night(1, persons=50, least_common=3), night(2, persons=60, least_common=2)]
    _, _, people = series_sections(nights)
    assert people.title == "People protected"
    assert "left with 2 sensitive values or more" in people.lead
    assert says_of(people)[0].endswith("50 people, at least 3 values left for each")


def test_rows_left_out_have_bars_of_their_own() -> None:
    _, waiting, _ = series_sections([night(1), night(2, rows_suppressed=4)])
    assert [style for style, _ in waiting.legend] == ["s1", "bad"]
    assert says_of(waiting)[1].endswith("8 rows wait, 4 left out")


@pytest.mark.parametrize("count", [1, MOST_NIGHTS, 365])
def test_long_series_show_their_last_nights(count: int) -> None:
    loss, waiting, _ = series_sections([night(number) for number in range(1, count + 1)])
    shown = min(count, MOST_NIGHTS)
    assert len(loss.table.rows) == len(waiting.chart.columns) == shown
    assert waiting.chart.columns[-1].label == str(count)
    assert len(loss.chart.across) <= 10
    assert loss.chart.is_dense == (shown > 30)
