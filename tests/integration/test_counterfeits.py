"""``series.unmatched: counterfeit``: rows that are made up, counted, and published beside."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engines.in_process import InProcessEngine
from kept_folder import KeptFolder
from mondrian_ops import pipeline, publish
from mondrian_ops.errors import PrivacyError, StorageError
from mondrian_ops.pipeline.approval import Approval
from mondrian_ops.report.outcome import now
from nights import silent
from tiers import one_in
from town import PROTECTED, K, L, Town

NIGHTS, PLACES = 4, 10


class Village(Town):
    """A series about people with a rare disease, one in each of ten places far from one another.

    Those next to them have colds one night, and other diseases the next.
    """

    def __init__(self, folder: Path, **options: Any) -> None:
        super().__init__(folder, **PROTECTED, unmatched="counterfeit")
        self.options = {"quasi_identifiers": ["age", "zip"], **options}
        generator = np.random.default_rng(0)
        usual = ["flu", "asthma", "gout"]
        near = np.tile(np.array([*usual, "cold"]), 20)
        far = np.tile(np.array(["rabies", *["cold"] * 5, *usual, *usual]), PLACES)
        self.value = np.concatenate([near, far])
        count, size = len(self.value), len(far) // PLACES
        self.person = np.arange(count)
        is_far = self.person >= len(near)
        place = 1000 + 1000 * ((self.person - len(near)) // size)
        self.age = np.where(is_far, 90, generator.integers(20, 40, count))
        self.zip = np.where(is_far, place, generator.integers(100, 140, count))
        self.there = generator.random((NIGHTS, count)) < 0.9
        self.there[:, is_far] = True
        self.there[1::2, is_far & (self.value == "cold")] = False
        self.there[::2, is_far & np.isin(self.value, usual)] = False

    def drop(self, day: int) -> pa.Table:
        there = self.there[day]
        return pa.table(
            {
                "person": self.person[there],
                "age": self.age[there],
                "zip": self.zip[there],
                "diagnosis": self.value[there],
            }
        )

    def release(self, day: int) -> pa.Table:
        return pq.read_table(str(self.job(day).output))


@pytest.fixture
def village(tmp_path: Path) -> Village:
    return Village(tmp_path)


@pytest.fixture(scope="module")
def kept_village(tmp_path_factory: pytest.TempPathFactory) -> KeptFolder:
    def make(folder: Path) -> None:
        village = Village(folder)
        for day in range(2):
            village.run(village.drop(day))

    return KeptFolder(tmp_path_factory.mktemp("village"), make)


@pytest.fixture
def after_two(kept_village: KeptFolder, monkeypatch: pytest.MonkeyPatch) -> Village:
    """The village after two nights, of which the second has counterfeits."""
    village = Village(kept_village.brought_back(monkeypatch))
    village.drops = [village.drop(day) for day in range(2)]
    return village


def beside(release: str) -> dict[tuple[Any, ...], int]:
    """How many counterfeits each class has, as anybody reads it."""
    table = pq.read_table(f"{release}/_counterfeits.parquet")
    return {tuple(row.values())[:-1]: row["counterfeits"] for row in table.to_pylist()}


def classes_of(release: pa.Table) -> dict[tuple[Any, ...], Counter[str]]:
    classes: dict[tuple[Any, ...], Counter[str]] = defaultdict(Counter)
    for row in release.to_pylist():
        classes[row["age"], row["zip"]][row["diagnosis"]] += 1
    return classes


def test_rows_are_made_up_and_counted_and_nobody_falls_below(village: Village) -> None:
    for day in range(NIGHTS):
        report = village.run(village.drop(day))
        rows, people = report["rows"], report["series"]["people"]
        made_up = beside(str(village.job(day).output))
        assert people["counterfeits"] == sum(made_up.values())
        assert people["counterfeit_classes"] == len(made_up)
        assert sum(made_up.values()) == (PLACES if day % 2 else 0)
        assert rows["published"] == rows["input"] == people["persons"]
        assert len(village.release(day)) == rows["published"] + people["counterfeits"]
        assert people["least_common"] >= L
        told = [note for note in report["notes"] if "counterfeits in" in note]
        assert len(told) == day % 2
        assert all(note.startswith(f"{people['counterfeits']} counterfeits in") for note in told)
    verdict = pipeline.verify_series(village.job(0), str(village.job(1).output))
    assert verdict["passed"], verdict


def test_persons_are_counted_from_the_release_and_the_file_beside_it(after_two: Village) -> None:
    output = str(after_two.job(1).output)
    made_up = beside(output)
    sizes = {label: values.total() for label, values in classes_of(after_two.release(1)).items()}
    assert sum(sizes.values()) - sum(made_up.values()) == after_two.there[1].sum()
    assert min(size - made_up.get(label, 0) for label, size in sizes.items()) >= K
    assert pipeline.verify(after_two.job(1), output)["passed"]


def test_whoever_knows_how_many_rows_are_made_up_cannot_tell_which(after_two: Village) -> None:
    """A value is made up that nobody in the class has: it must not be the only one that fits."""
    classes = classes_of(after_two.release(1))
    for label, count in beside(str(after_two.job(1).output)).items():
        values = classes[label]
        possible = [
            {*chosen}
            for several in range(1, len(values))
            for chosen in combinations(values, several)
            if sum(values[value] for value in chosen) == count
        ]
        assert not set.intersection(*possible)


def test_counterfeits_are_spelled_as_the_rows_of_people_are(village: Village) -> None:
    """Spellings that look alike are one value, so one of them would tell what is made up."""
    village.value = village.value.astype(object)
    usual = np.flatnonzero(village.value[:80] == "cold")
    village.value[usual[::2]] = "cold "
    for day in range(2):
        village.run(village.drop(day))
    classes = classes_of(village.release(1))
    spelled = Counter[str]()
    for label in beside(str(village.job(1).output)):
        spelled += classes[label]
    assert spelled["cold"] == PLACES
    assert "cold " not in spelled


def test_the_order_of_rows_does_not_tell_which_are_made_up(after_two: Village) -> None:
    rows = after_two.release(1).to_pylist()
    places = set()
    for label in beside(str(after_two.job(1).output)):
        values = [row["diagnosis"] for row in rows if (row["age"], row["zip"]) == label]
        places.add(values.index("cold"))
    assert len(places) > 2


def lost(table: pa.Table, persons: pa.ChunkedArray) -> tuple[pa.Table, pa.ChunkedArray]:
    """One counterfeit is not there."""
    at = persons.to_pylist().index(None)
    kept = pa.array(np.delete(np.arange(len(table)), at))
    return table.take(kept), persons.take(kept)


def made_a_person(table: pa.Table, persons: pa.ChunkedArray) -> tuple[pa.Table, pa.ChunkedArray]:
    """One counterfeit is somebody."""
    numbers = persons.to_pylist()
    numbers[numbers.index(None)] = 10**6
    return table, pa.chunked_array([numbers])


@pytest.mark.parametrize("change", one_in(2, [lost, made_a_person]))
def test_a_part_with_other_counterfeits_is_not_published(
    village: Village, change: Callable[[pa.Table, pa.ChunkedArray], Any]
) -> None:
    village.run(village.drop(0))
    job, work = village.deliver(village.drop(1)), str(village.folder / "out/.run-1")
    pipeline.partition(job, work=work, progress=silent)
    summaries = pipeline.anonymize_all(work, progress=silent)
    directory = publish.WorkDir.attach(work)
    path = directory.part_path(summaries[0].id)
    persons = directory.read_persons(publish.digest_of(path))
    table, persons = change(pq.read_table(path), persons)
    pq.write_table(table, path)
    directory.write_persons(publish.digest_of(path), persons)
    with pytest.raises(PrivacyError, match=f"has {PLACES - 1} counterfeits instead of {PLACES}"):
        pipeline.wrap_up(job, work=work, summaries=summaries, progress=silent)
    assert not Path(str(job.output)).exists()


@pytest.mark.servers
def test_a_cluster_counts_persons_without_counterfeits(village: Village) -> None:
    village.run(village.drop(0))
    job, work = village.deliver(village.drop(1)), str(village.folder / "out/.run-1")
    pipeline.partition(job, work=work, progress=silent)
    summaries = pipeline.anonymize_all(work, progress=silent)
    here, there = (
        pipeline.check(job, work=work, summaries=summaries, progress=silent, engine=engine).report
        for engine in (None, InProcessEngine())
    )
    assert there["class_persons"] == here["class_persons"]
    persons = sum(persons * classes for persons, classes in here["class_persons"])
    assert persons == village.there[1].sum()


def test_the_file_beside_the_release_is_approved_with_it(tmp_path: Path) -> None:
    village = Village(tmp_path, require_approval=True)
    pipeline.run(village.deliver(village.drop(0)), silent, approve=lambda _: "an officer")
    job, work = village.deliver(village.drop(1)), str(village.folder / "out/.run-1")
    pipeline.partition(job, work=work, progress=silent)
    summaries = pipeline.anonymize_all(work, progress=silent)
    seal = pipeline.check(job, work=work, summaries=summaries, progress=silent).seal
    staging = publish.WorkDir.attach(work).staging
    Path(f"{staging}/_counterfeits.parquet").write_bytes(b"")
    with pytest.raises(StorageError, match="changed after they were checked"):
        pipeline.publish(job, work=work, approval=Approval(seal, "an officer", now()))


def drop_a_counterfeit(part: pa.Table) -> pa.Table:
    at = part["diagnosis"].to_pylist().index("cold", part["age"].to_pylist().index("90"))
    return part.take(pa.array(np.delete(np.arange(len(part)), at)))


def test_a_counterfeit_taken_from_a_release_is_found_from_outside(after_two: Village) -> None:
    (path,) = Path(str(after_two.job(1).output)).glob("part-*")
    pq.write_table(drop_a_counterfeit(pq.read_table(path)), path)
    verdict = pipeline.verify_series(after_two.job(0), str(after_two.job(0).output))
    assert not verdict["passed"]
    persons = after_two.there[1].sum()
    problem = f"has {persons - 1} rows of persons, but {persons} were"
    assert any(problem in each for each in verdict["failures"])


@pytest.mark.servers
def test_a_file_of_counterfeits_of_other_classes_fails_the_check(after_two: Village) -> None:
    output = str(after_two.job(1).output)
    path = f"{output}/_counterfeits.parquet"
    table = pq.read_table(path)
    ages = ["91", *table["age"].to_pylist()[1:]]
    pq.write_table(table.set_column(0, "age", pa.array(ages)), path)
    (failure,) = pipeline.verify(after_two.job(1), output)["failures"]
    assert "1 class(es) are not in the release" in failure
    counts = [4, *table["counterfeits"].to_pylist()[1:]]
    pq.write_table(table.set_column(2, "counterfeits", pa.array(counts)), path)
    _, failure = pipeline.verify(after_two.job(1), output)["failures"]
    assert re.match(r"1 of \d+ classes have fewer than k = 5 rows that are not", failure)
    Path(path).unlink()
    (failure,) = pipeline.verify(after_two.job(1), output)["failures"]
    assert "_counterfeits.parquet: is missing" in failure


@pytest.mark.parametrize("unmatched", one_in(2, ["suppress", "counterfeit"]))
def test_a_check_asks_the_release_for_counterfeits_and_not_the_job(
    after_two: Village, unmatched: str
) -> None:
    after_two.series["unmatched"] = unmatched
    usual, output = str(after_two.job(0).output), str(after_two.job(1).output)
    path = Path(f"{output}/_counterfeits.parquet")
    verdict = pipeline.verify(after_two.job(1), output)
    assert verdict["passed"]
    assert f"k = 5 without {PLACES} counterfeits in {PLACES} classes" in verdict["checked"]
    table = pq.read_table(path)
    for counts, problem in (
        ([], "has 0 counter"),
        ([9], "has 9 counter"),
        ([None], "without counter"),
    ):
        changed = table.slice(0, len(counts)).drop_columns(["counterfeits"])
        pq.write_table(changed.append_column("counterfeits", pa.array(counts, pa.int64())), path)
        failures = pipeline.verify(after_two.job(1), output)["failures"]
        assert any(problem in failure for failure in failures)
    path.unlink()
    assert "is missing" in str(pipeline.verify(after_two.job(1), output)["failures"])
    Path(f"{usual}/_counterfeits.parquet").unlink()  # as of a night that made none up
    assert pipeline.verify(after_two.job(0), usual)["passed"]
