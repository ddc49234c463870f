"""``series.subtraction: protect``: no difference of classes tells anybody's value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mondrian_ops import catalogue, pipeline
from mondrian_ops.catalogue import signatures as of_persons
from mondrian_ops.datasets import nights
from mondrian_ops.errors import JobError, PrivacyError, StorageError
from mondrian_ops.series.intersection import forming, subtraction_protection
from nights import silent
from tiers import one_in
from town import POPULATION, PROTECTED, K, Town

L = 3
FOUR = replace(POPULATION, rows=300, nights=4)
BALANCED = {**PROTECTED, "unmatched": "counterfeit", "subtraction": "protect"}


def town_of(folder: Path, series: dict[str, Any], **options: Any) -> Town:
    folder.mkdir(exist_ok=True)
    town = Town(folder, **series)
    town.options = {"l": L, **options}
    return town


def attacked(town: Town) -> dict[str, Any]:
    return pipeline.verify_series(town.job(0), str(town.job(0).output))


def signatures(folder: Path) -> Counter[int]:
    """How many people have how many values left, as the next night reads them."""
    with catalogue.current().reading() as connection:
        left = of_persons.left(connection, f"{folder}/out/*")
    return Counter(len(values) for values in left.values())


def test_nobody_is_found_by_subtraction_and_without_it_many_are(tmp_path: Path) -> None:
    """People leave, come, come back, move, and some get another value, or have none."""
    subtracted = {}
    for name, series in (("allow", PROTECTED), ("protect", BALANCED)):
        town = town_of(tmp_path / name, series)
        for _, drop in nights(FOUR):
            report = town.run(drop)
            assert report["rows"]["suppressed"] <= 3
        verdict = attacked(town)
        assert verdict["passed"], verdict["failures"]
        subtracted[name] = verdict["subtracted"]
        assert bool(subtracted[name]) == any("subtracts" in note for note in verdict["notes"])
    assert subtracted["allow"] > 30
    assert subtracted["protect"] == 0


@pytest.mark.soak
def test_after_thirty_nights_nobody_is_certain_and_without_it_most_are(tmp_path: Path) -> None:
    """The figures of docs/series.md for l = 3, which promise less than one in a hundred."""
    people = replace(POPULATION, rows=5000, nights=30, leave=0.04, come=0.04, move=0.0, change=0.0)
    certain = {}
    for name, series in (("allow", PROTECTED), ("protect", BALANCED)):
        town = town_of(tmp_path / name, series)
        everybody: set[Any] = set()
        for _, drop in nights(people):
            town.run(drop)
            everybody.update(drop["person"].to_pylist())
        certain[name] = attacked(town)["subtracted"] / len(everybody)
    assert certain["allow"] > 0.5
    assert certain["protect"] <= 0.01


def test_each_value_of_a_signature_is_as_frequent_in_a_class(tmp_path: Path) -> None:
    """With one signature in a class, as here, that can be seen from outside."""
    town = town_of(tmp_path, BALANCED)
    values = np.array([*"abc"])
    for day in range(3):
        there = np.flatnonzero(np.arange(300) % 11 != day)
        drop = {"person": there, "age": 20 + there // 15, "diagnosis": values[there % 3]}
        town.options = {"l": L, "quasi_identifiers": ["age"]}
        town.run(pa.table(drop))
        release = pq.read_table(str(town.job(day).output))
        columns = (release[name].to_pylist() for name in ("age", "diagnosis"))
        classes = Counter(zip(*columns, strict=True))
        for age in {age for age, _ in classes}:
            assert len({classes[age, value] for value in "abc"}) == 1
    assert set(signatures(tmp_path)) == {L}


def drop_a_row(found: subtraction_protection.Balanced) -> subtraction_protection.Balanced:
    """One row that is made up less: its class says who left."""
    return found._replace(counterfeits=found.counterfeits[1:])


def exchange_values(found: subtraction_protection.Balanced) -> subtraction_protection.Balanced:
    pairs = found.counterfeits.copy()
    pairs[0, 1] = (pairs[0, 1] + 1) % 5
    return found._replace(counterfeits=pairs)


@pytest.mark.parametrize("change", one_in(2, [drop_a_row, exchange_values]))
def test_a_night_that_is_not_balanced_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Any
) -> None:
    town = town_of(tmp_path, BALANCED)
    first, second, *_ = (drop for _, drop in nights(FOUR))
    town.run(first)
    before, balanced = signatures(tmp_path), forming.balanced_classes
    monkeypatch.setattr(forming, "balanced_classes", lambda *given: change(balanced(*given)))
    with pytest.raises(PrivacyError, match="whose difference from others would tell"):
        town.run(second)
    assert signatures(tmp_path) == before
    assert not Path(str(town.job(1).output)).exists()


@pytest.mark.servers
def test_rows_that_wait_and_people_who_come_twice(tmp_path: Path) -> None:
    series = {**BALANCED, "kind": "increments", "hold_nights": 3, "hold_above": 0.3}
    town = town_of(tmp_path, series, partitioning={"fragments": 3})
    drops = [drop for _, drop in nights(replace(FOUR, kind="increments", back=0.0))]
    for drop in drops:
        town.run(pa.concat_tables([drop, drop.slice(0, 10)]))
    assert attacked(town)["passed"]


@pytest.mark.servers
def test_a_night_that_is_repeated_or_late(tmp_path: Path) -> None:
    town = town_of(tmp_path, BALANCED)
    first, second, third, _ = (drop for _, drop in nights(replace(FOUR, leave=0.02, come=0.02)))
    town.run(first)
    late = town.deliver(second)
    town.run(third)
    with pytest.raises(StorageError, match="is in the series already"):
        pipeline.run(town.job(2), silent)
    pipeline.run(late, silent)
    verdict = attacked(town)
    assert verdict["passed"], verdict["failures"]
    assert verdict["subtracted"] == 0


@pytest.mark.servers
def test_a_greater_l_and_rare_values(tmp_path: Path) -> None:
    """Where half of all people have the same value, rows are made up for them."""
    town = town_of(tmp_path, BALANCED, l=5)
    for _, drop in nights(replace(FOUR, nights=2)):
        half = [value if row % 2 else "Influenza" for row, value in
                enumerate(drop["diagnosis"].to_pylist())]  # fmt: skip
        at = drop.column_names.index("diagnosis")
        report = town.run(drop.set_column(at, "diagnosis", pa.array(half)))
        assert report["achieved"]["k"] >= K
        assert report["achieved"]["l"] >= 5
        assert report["series"]["people"]["least_common"] >= 5
    assert pipeline.verify(town.job(1), str(town.job(1).output))["passed"]
    verdict = attacked(town)
    assert not [each for each in verdict["failures"] if "certain" in each], verdict


@pytest.mark.parametrize(
    ("series", "problem"),
    [
        ({**BALANCED, "unmatched": "suppress"}, "series.subtraction: .* unmatched: counterfeit"),
        ({"kind": "snapshots", "subtraction": "protect"}, "series.subtraction"),
    ],
)
def test_what_it_needs(tmp_path: Path, series: dict[str, Any], problem: str) -> None:
    with pytest.raises(JobError, match=problem):
        town_of(tmp_path, series).job(0)


@pytest.mark.parametrize("order", [(PROTECTED, BALANCED), (BALANCED, PROTECTED)])
def test_all_nights_protect_or_none(tmp_path: Path, order: Sequence[dict[str, Any]]) -> None:
    town = town_of(tmp_path, order[0])
    first, second, *_ = (drop for _, drop in nights(FOUR))
    town.run(first)
    town.series = {**order[1], "unmatched": "counterfeit"}
    with pytest.raises(JobError, match=r"series\.subtraction"):
        town.run(second)
