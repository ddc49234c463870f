"""Nights that share their boundaries: fitted once, kept in the catalogue, checked as written."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from mondrian_ops import catalogue, pipeline, series
from mondrian_ops.catalogue.tables import night
from mondrian_ops.cli import main
from mondrian_ops.errors import JobError, PrivacyError
from mondrian_ops.report import Report, statements
from nights import Nights, silent

STABLE = {"boundaries": "stable"}


def stable(folder: Path, **keys) -> Nights:
    return Nights(folder, series={**STABLE, **keys})


def ages_of(release: Path) -> set[str]:
    parts = release.glob("part-*.parquet")
    return {age for part in parts for age in pq.read_table(part)["age"].to_pylist()}


def ends_of(ages: set[str]) -> set[float]:
    """Where intervals begin, and the age after their last one."""
    ends = set()
    for age in ages - {"*"}:
        low, high = re.fullmatch(r"[\[(]?(-inf|\d+)(?:, (\d+|inf)[)\]])?", age).groups()
        ends |= {float(low), float(high or low) + 1}
    return ends


def test_all_nights_begin_and_end_intervals_where_the_first_night_did(tmp_path: Path) -> None:
    nights = stable(tmp_path)
    reports = [nights.run(day, rows) for day, rows in enumerate([400, 250, 500])]
    shared = [report["series"]["boundaries"] for report in reports]
    assert [(each["since"], each["fitted"]) for each in shared] == [
        (1, "first"), (1, ""), (1, "")
    ]  # fmt: skip
    cells = shared[0]["cells"]["age"]
    assert all(each["cells"] == {"age": cells} for each in shared)
    assert len(set.union(*(ends_of(ages_of(nights.output(day))) for day in range(3)))) <= cells + 1
    assert all(0 < each["loss_nightly"] <= each["loss"] for each in shared)
    assert shared[0]["loss"] <= 1.1 * shared[0]["loss_nightly"]
    nights.check_each_row_once()


def test_the_check_tells_whether_a_release_keeps_to_the_boundaries(tmp_path: Path) -> None:
    nights = stable(tmp_path)
    for day in range(2):
        nights.run(day, 300)
    verdict = pipeline.verify(nights.job(1), str(nights.output(1)))
    assert verdict["passed"]
    assert verdict["checked"][-1] == "boundaries of the series, fitted in night 1"
    part = next(nights.output(1).glob("part-*.parquet"))
    table = pq.read_table(part)
    ages = [re.sub(r"(\d+)\]", "7777]", age) for age in table["age"].to_pylist()]
    pq.write_table(table.set_column(table.column_names.index("age"), "age", [ages]), part)
    verdict = pipeline.verify(nights.job(1), str(nights.output(1)))
    assert any("do not begin and end at those fitted in night 1" in f for f in verdict["failures"])
    moved = nights.output(1).rename(tmp_path / "elsewhere")
    assert any(
        "does not know" in note for note in pipeline.verify(nights.job(1), str(moved))["notes"]
    )


def test_a_release_off_the_boundaries_is_refused(tmp_path: Path, monkeypatch) -> None:
    from mondrian_ops.generalize.cells import Boundaries

    nights = stable(tmp_path)
    nights.run(0, 300)
    fitted = Boundaries.published
    monkeypatch.setattr(Boundaries, "published", lambda *args: _wider(*fitted(*args)))
    with pytest.raises(PrivacyError, match=r"column 'age' do not begin and end at those fitted"):
        nights.run(1, 300)
    assert not nights.output(1).exists()


def _wider(lows, highs):
    """Intervals that hold what they held, and begin and end where no cell does."""
    return pc.subtract(lows, 1), pc.add(highs, 1)


@pytest.mark.servers
def test_a_person_may_have_the_next_night_fit_them_anew(
    tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    nights = stable(tmp_path)
    nights.run(0, 300)
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__HOME", str(tmp_path))
    assert main(["series", "refit", str(nights.output(0).relative_to(tmp_path))]) == 0
    monkeypatch.delenv("AIRFLOW__MONDRIAN_OPS__HOME")
    reports = [nights.run(day, 300) for day in (1, 2)]
    shared = [report["series"]["boundaries"] for report in reports]
    assert [(each["since"], each["fitted"]) for each in shared] == [(2, "asked"), (2, "")]
    (note,) = [note for note in reports[0]["notes"] if "boundaries" in note]
    assert "fitted anew in this night, because a person asked for it" in note
    shown = Report.from_json(json.dumps(reports[1]).encode())
    assert statements.night(shown) == f"night 3 of {tmp_path}/out/*"
    assert re.fullmatch(
        r"those of night 2; a sample loses .* % with them, .* % without; drift .* % \(age\)",
        statements.boundaries(shown),
    )
    first = pipeline.verify(nights.job(0), str(nights.output(0)))
    assert first["checked"][-1] == "boundaries of the series, fitted in night 1"
    assert main(["series", "refit", str(tmp_path)]) == 1
    assert "series: the catalogue has no series with the output" in capsys.readouterr().err


def test_a_night_that_is_not_published_leaves_no_boundaries(tmp_path: Path) -> None:
    nights = stable(tmp_path, hold_nights=3)
    held = nights.run(0, 3)
    assert held["outcome"]["state"] == "held"
    assert "boundaries" not in held["series"]
    with pytest.raises(JobError, match="no night of this series has fitted any yet"):
        series.ask_to_refit(str(nights.output(0)))
    shared = nights.run(1, 300)["series"]["boundaries"]
    assert (shared["since"], shared["fitted"]) == (2, "first")


def test_a_night_that_is_generalized_otherwise_is_refused(tmp_path: Path) -> None:
    nights = stable(tmp_path)
    nights.run(0, 300)
    nights.deliver(1, 300)
    other = {"quasi_identifiers": ["age=grid:5", "zip=prefix", "sex"], "schema": "evolve"}
    job = nights.job(1, **other)
    with pytest.raises(JobError, match=r"'age' is generalized by grid, not interval.*series refit"):
        pipeline.run(job, silent)


@pytest.mark.servers
def test_protected_nights_may_share_boundaries_and_the_catalogue_counts_their_people(
    tmp_path: Path,
) -> None:
    protected = {"protect": "intersection", "unmatched": "suppress"}
    nights = Nights(tmp_path, series={**STABLE, **protected}, entity_id="row", unlisted="drop")
    reports = [nights.run(day, 300) for day in range(2)]
    assert [report["series"]["boundaries"]["since"] for report in reports] == [1, 1]
    persons = [report["series"]["people"]["persons"] for report in reports]
    with catalogue.current().reading() as connection:
        counted = connection.execute(sa.select(night.c.persons, night.c.least_common)).all()
    assert [row.persons for row in counted] == persons
    assert all(row.least_common >= 2 for row in counted)
