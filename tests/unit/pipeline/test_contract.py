"""A drop is held to the columns of its dataset's last release until a person accepts a change."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from kept_folder import KeptFolder
from mondrian_ops import catalogue, pipeline
from mondrian_ops import publish as publishing
from mondrian_ops.catalogue import contracts, publication, tables
from mondrian_ops.errors import JobError, PrivacyError, StorageError
from mondrian_ops.job.job import Job
from mondrian_ops.pipeline import contract
from nights import silent
from tiers import one_in

AGES = [20, 21, 22, 30, 31, 32, 40, 41, 42, 50]


class Dataset:
    """A dataset below a folder; each night is the drop of a day, by a job that the nights share."""

    def __init__(self, folder: Path, **keys: Any) -> None:
        self.folder = folder
        self.keys = {"k": 2, "quasi_identifiers": ["age"], "schema": "keep", **keys}

    def output(self, day: int) -> str:
        return str(self.folder / "out" / f"2025-06-{day:02d}")

    def job(self, day: int, **changes: Any) -> Job:
        drop = next(self.folder.glob(f"2025-06-{day:02d}.*"))
        return Job.from_dict(
            {"input": str(drop), "output": self.output(day), **self.keys, **changes}
        )

    def deliver(self, day: int, ages: Sequence[Any] = AGES, **columns: Sequence[Any]) -> None:
        """A drop as CSV; in each row a different age."""
        rows = zip(ages, *columns.values(), strict=True)
        lines = [",".join(["age", *columns]), *(",".join(map(str, row)) for row in rows)]
        (self.folder / f"2025-06-{day:02d}.csv").write_text("\n".join(lines) + "\n")

    def run(self, day: int, **changes: Any) -> dict[str, Any]:
        return pipeline.run(self.job(day, **changes), silent)

    def night(self, day: int, ages: Sequence[Any] = AGES, **columns: Any) -> dict[str, Any]:
        """Deliver a drop and release it."""
        self.deliver(day, ages, **columns)
        return self.run(day)

    def refused(self, day: int, **changes: Any) -> str:
        """The id of the change that refuses the drop."""
        with pytest.raises(PrivacyError, match=r"^schema: the drop is refused") as caught:
            self.run(day, **changes)
        (found,) = [each for each in self.open if each.id in str(caught.value)]
        assert not self.is_released(day)
        return found.id

    def is_released(self, day: int) -> bool:
        return publishing.report_of(self.output(day)) is not None

    @property
    def open(self) -> list[contracts.Refused]:
        return contract.state_of(self.output(1))[1]

    def accept(self, change: str, by: str = "ann") -> None:
        contract.accept(change, by, output=self.output(1))


SERIES: dict[str, Any] = {"unlisted": "publish", "schema": None, "series": {}}
ALONE: dict[str, Any] = {"unlisted": "publish"}


@pytest.fixture(scope="module")
def kept_series(tmp_path_factory: pytest.TempPathFactory) -> KeptFolder:
    return KeptFolder(tmp_path_factory.mktemp("series"), lambda at: Dataset(at, **SERIES).night(1))


@pytest.fixture(scope="module")
def kept_drops(tmp_path_factory: pytest.TempPathFactory) -> KeptFolder:
    return KeptFolder(tmp_path_factory.mktemp("drops"), lambda at: Dataset(at, **ALONE).night(1))


@pytest.fixture
def dataset(kept_series: KeptFolder, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """A series with one release; unlisted columns are published."""
    return Dataset(kept_series.brought_back(monkeypatch), **SERIES)


@pytest.fixture
def drops(kept_drops: KeptFolder, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """The same outside a series, as the nightly DAG has it."""
    return Dataset(kept_drops.brought_back(monkeypatch), **ALONE)


SSN = range(100, 110)


def test_a_cell_that_is_no_number_refuses_the_drop_and_names_both_types(dataset: Dataset) -> None:
    dataset.deliver(2, [*AGES[:-1], "n/a"])
    with pytest.raises(PrivacyError, match=r"'age' is text.* and was int64") as caught:
        dataset.run(2)
    assert "n/a" not in str(caught.value)
    assert not dataset.is_released(2)
    dataset.night(3)


def test_the_refusal_names_the_line_of_the_cell(dataset: Dataset) -> None:
    dataset.deliver(2, [*AGES[:3], "n/a", *AGES[4:]])
    with pytest.raises(PrivacyError, match=r"2025-06-02\.csv, line 5 has the first value of 'age'"):
        dataset.run(2)
    dataset.run(2, csv={"missing": ["n/a"]})


@pytest.mark.parametrize(
    ("first", "then"),
    one_in(
        2,
        [
            ([f"0{age}" for age in AGES], AGES),
            ([age + 0.5 for age in AGES], AGES),
            ([f"2025-01-01 00:{age}" for age in AGES], ["2025-01-02"] * 10),
            (AGES, [""] * 10),
            ([""] * 10, AGES),
        ],
    ),
    ids=["text", "number", "timestamp", "no values", "no values at first"],
)
def test_a_column_of_a_csv_file_keeps_its_type_where_it_fits(
    tmp_path: Path, first: Sequence[Any], then: Sequence[Any]
) -> None:
    dataset = Dataset(tmp_path, k=5, quasi_identifiers=["age", "code"], unlisted="publish")
    dataset.night(1, code=first)
    before = types_of(dataset)
    dataset.night(2, code=then)
    assert "null" not in types_of(dataset)["code"].type
    if first[0] != "":
        assert types_of(dataset) == before


def types_of(dataset: Dataset) -> contracts.Contract:
    noted = contract.state_of(dataset.output(1))[0]
    assert noted is not None
    return noted.columns


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (AGES, [f"0{age}" for age in AGES]),
        (AGES, [f"{age}.5" for age in AGES]),
        (["2025-01-02"] * 10, ["2025-01-02 10:00"] * 10),
    ],
    ids=["leading zeros", "decimals", "times"],
)
def test_what_would_change_a_value_is_a_change(
    tmp_path: Path, first: Sequence[Any], then: Sequence[Any]
) -> None:
    dataset = Dataset(tmp_path, k=5, quasi_identifiers=["age", "code"], unlisted="publish")
    dataset.night(1, code=first)
    dataset.deliver(2, code=then)
    dataset.refused(2)


def test_a_new_column_is_not_published_until_somebody_accepts_it(dataset: Dataset) -> None:
    dataset.deliver(2, ssn=SSN)
    change = dataset.refused(2)
    assert dataset.refused(2) == change  # the next night tries again
    dataset.accept(change)
    report = dataset.run(2)
    assert report["contract"]["accepted"]["by"] == "ann"
    (note,) = [note for note in report["notes"] if "changed since the last release" in note]
    assert "accepted by ann" in note
    assert "'ssn' is new" in note
    assert not dataset.open
    assert "contract" not in dataset.night(3, ssn=SSN)


def test_a_column_that_is_left_out_is_noted_only(tmp_path: Path) -> None:
    dataset = Dataset(tmp_path)
    dataset.night(1)
    report = dataset.night(2, ssn=SSN)
    assert "'ssn'" in report["notes"][-1]
    dataset.deliver(3, ssn=SSN)
    dataset.refused(3, unlisted="publish")


def test_evolve_releases_a_change_and_says_so(dataset: Dataset) -> None:
    dataset.deliver(2, ssn=SSN)
    report = dataset.run(2, schema="evolve")
    assert "schema: evolve" in report["notes"][-1]
    dataset.night(3, ssn=SSN)
    dataset.deliver(4)
    dataset.refused(4)


def test_a_job_without_either_is_not_compared(tmp_path: Path) -> None:
    dataset = Dataset(tmp_path, schema=None, unlisted="publish")
    dataset.night(1)
    assert "contract" not in dataset.night(2, ssn=SSN)
    assert contract.state_of(dataset.output(1)) == (None, [])


def test_without_a_catalogue_nothing_can_be_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MONDRIAN_OPS_CATALOGUE")
    dataset = Dataset(tmp_path)
    dataset.deliver(1)
    with pytest.raises(StorageError, match=r"^catalogue: nothing says where it is"):
        dataset.run(1)


def test_a_table_in_memory_has_no_last_release() -> None:
    with pytest.raises(JobError, match=r"^schema: "):
        pipeline.anonymize(pa.table({"age": AGES}), Dataset(Path()).keys)


def test_an_acceptance_is_used_once(dataset: Dataset) -> None:
    """The same change again, after it was undone, is another one."""
    dataset.deliver(2, ssn=SSN)
    first = dataset.refused(2)
    dataset.accept(first)
    dataset.run(2)
    dataset.deliver(3)
    dataset.accept(dataset.refused(3))
    dataset.run(3)
    dataset.deliver(4, ssn=SSN)
    again = dataset.refused(4)
    assert again != first
    dataset.accept(first)  # a form that is sent twice
    dataset.refused(4)


def test_an_acceptance_is_over_when_the_drop_is_released_otherwise(drops: Dataset) -> None:
    """The drop was corrected: whoever brings the fault again is refused again."""
    drops.deliver(2, ssn=SSN)
    change = drops.refused(2)
    drops.accept(change)
    drops.night(2)
    drops.deliver(3, ssn=SSN)
    assert drops.refused(3) != change
    with pytest.raises(StorageError, match=change):
        drops.accept(change)


def test_a_publication_that_fails_gives_the_acceptance_back(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset.deliver(2, ssn=SSN)
    dataset.accept(dataset.refused(2))

    def fails(*_: Any, **__: Any) -> None:
        raise StorageError("the store is full")

    with monkeypatch.context() as patch, pytest.raises(StorageError, match="full"):
        patch.setattr(publishing, "publish", fails)
        dataset.run(2)
    dataset.run(2)
    assert dataset.is_released(2)


def test_two_first_drops_at_once_cannot_both_be_the_first(tmp_path: Path) -> None:
    dataset = Dataset(tmp_path, unlisted="publish")
    dataset.deliver(1)
    dataset.deliver(2, ssn=SSN)
    works = {day: phases(dataset, day) for day in (1, 2)}
    publish(dataset, 1, works[1])
    with pytest.raises(PrivacyError, match="'ssn' is new"):
        publish(dataset, 2, works[2])
    dataset.accept(dataset.open[0].id)
    with pytest.raises(PrivacyError, match="'ssn' is new"):  # its report does not show it
        publish(dataset, 2, works[2])
    dataset.run(2)


def phases(dataset: Dataset, day: int) -> str:
    """The working files of a run that has yet to publish."""
    job = dataset.job(day)
    work = publishing.work_path(str(job.output), str(day))
    pipeline.partition(job, work=work)
    pipeline.check(job, work=work, summaries=pipeline.anonymize_all(work))
    return work


def publish(dataset: Dataset, day: int, work: str) -> dict[str, Any]:
    return pipeline.publish(dataset.job(day), work=work)


def test_a_run_that_is_cleared_needs_no_second_acceptance(drops: Dataset) -> None:
    drops.deliver(2, ssn=SSN)
    drops.accept(drops.refused(2))
    publish(drops, 2, phases(drops, 2))
    publish(drops, 2, phases(drops, 2))


@pytest.mark.parametrize("is_out", [True, False])
def test_a_publisher_that_is_killed_leaves_the_contract_of_what_is_out(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch, is_out: bool
) -> None:
    dataset.deliver(2, ssn=SSN)
    dataset.accept(dataset.refused(2))
    work, job = phases(dataset, 2), dataset.job(2)

    class Killed(BaseException):
        pass

    really = publishing.publish

    def killed(*arguments: Any, **named: Any) -> None:
        if is_out:
            really(*arguments, **named)
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(publishing, "publish", killed)
        publish(dataset, 2, work)
    report = pipeline.published_report(job, work)
    assert (report is not None) == is_out
    if not is_out:
        publish(dataset, 2, work)
    pipeline.discard(work)
    dataset.night(3, ssn=SSN)


def test_a_killed_publisher_whose_release_never_came_changed_nothing(
    drops: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    drops.deliver(2, ssn=SSN)
    drops.accept(drops.refused(2))
    work = phases(drops, 2)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(
            publishing, "publish", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        publish(drops, 2, work)
    pipeline.discard(work)
    drops.night(3)
    drops.run(2)  # the acceptance is there still


def test_a_late_drop_is_as_its_own_night_was(drops: Dataset) -> None:
    drops.deliver(5, ssn=SSN)
    drops.accept(drops.refused(5))
    drops.run(5)
    assert "contract" not in drops.night(3)
    assert "contract" not in drops.night(6, ssn=SSN)
    drops.deliver(7)
    drops.refused(7)


def test_rows_that_wait_have_a_contract_too(tmp_path: Path) -> None:
    """Nothing is published in the first night, but the next ones are released with its rows."""
    dataset = Dataset(tmp_path, schema=None, series={"hold_nights": 7}, k=8)
    assert pipeline.is_held(dataset.night(1, AGES[:4]))
    dataset.deliver(2, [*AGES[:-1], "n/a"])
    dataset.refused(2)
    assert dataset.night(3)["rows"]["waited"] == 8  # four, below k


def test_a_drop_without_rows_changes_no_type(tmp_path: Path) -> None:
    dataset = Dataset(tmp_path, schema=None, series={"hold_nights": 7})
    dataset.night(1)
    dataset.night(2, [])
    dataset.night(3)
    ((last, _), refused) = contract.state_of(dataset.output(1))[0][::2], dataset.open
    assert last.endswith("2025-06-03")
    assert not refused


DRAW = np.random.default_rng(1)
RARE, DENSE = DRAW.permutation(40_000)[:600], np.repeat(np.arange(300), 2)
"""Values that end on a grid by default, and such that k people have."""


def columns_of(dataset: Dataset, day: int) -> list[tuple[str, str]]:
    (part, *_) = sorted(Path(dataset.output(day)).glob("*.parquet"))
    return [(each.name, str(each.type)) for each in pq.read_schema(part)]


@pytest.mark.parametrize("keys", [{}, {"schema": None, "series": {}}], ids=["alone", "series"])
@pytest.mark.parametrize("first", [RARE, DENSE], ids=["grid", "none"])
def test_nights_keep_the_grid_and_the_types_of_the_first_one(
    tmp_path: Path, first: Sequence[int], keys: dict[str, Any]
) -> None:
    dataset = Dataset(tmp_path, interval_style="bounds", **keys)
    of_first = dataset.night(1, first)["attributes"]["age"]
    for day, ages in ((2, DENSE if first is RARE else RARE), (3, first)):
        assert dataset.night(day, ages)["attributes"]["age"].get("grid") == of_first.get("grid")
        assert columns_of(dataset, day) == columns_of(dataset, 1)
    assert (first is RARE) == (of_first.get("grid") is not None)


def test_texts_of_nights_stay_prefixes_or_sets(tmp_path: Path) -> None:
    keys = {"quasi_identifiers": ["zip"], "set_style": "list", "types": {"zip": "text"}}
    for name, nights in (("prefix", (RARE, DENSE)), ("set", (DENSE, RARE))):
        dataset = Dataset(tmp_path / name, **keys)
        dataset.folder.mkdir()
        for day, codes in enumerate(nights, start=1):
            report = dataset.night(day, [1] * 600, zip=[f"{code:05d}" for code in codes])
            assert report["attributes"]["zip"]["generalization"] == name
        assert columns_of(dataset, 1) == columns_of(dataset, 2)


def test_a_dataset_of_an_earlier_version_gets_no_grid_until_the_job_asks_for_it(
    tmp_path: Path,
) -> None:
    dataset = Dataset(tmp_path)
    dataset.night(1, DENSE)
    with catalogue.current().writing() as connection:
        noted = json.loads(connection.execute(sa.select(tables.contract.c.columns)).scalar_one())
        del noted["age"]["chosen"]
        connection.execute(tables.contract.update().values(columns=json.dumps(noted)))
    report = dataset.night(2, RARE)
    assert "grid" not in report["attributes"]["age"]
    assert any("and its intervals end at them" in note for note in report["notes"])
    dataset.deliver(3, RARE)
    asks = {"quasi_identifiers": ["age=grid:auto"]}
    dataset.accept(dataset.refused(3, **asks))
    assert dataset.run(3, **asks)["attributes"]["age"]["grid"]


def test_the_catalogue_has_no_value_of_the_data(dataset: Dataset) -> None:
    dataset.deliver(2, [*AGES[:-1], "Elisabeth"], ssn=SSN)
    dataset.refused(2)
    with catalogue.current().reading() as connection:
        noted = contracts.last(connection, contract_name(dataset))
    assert noted is not None
    text = json.dumps([str(noted.columns), *(str(each.changes) for each in dataset.open)])
    assert "Elisabeth" not in text
    assert "42" not in text.replace("int64", "")


def contract_name(dataset: Dataset) -> str:
    return f"{dataset.folder.resolve()}/out/*"


def test_parquet_is_held_to_its_types(tmp_path: Path) -> None:
    dataset = Dataset(tmp_path)
    for day, type_ in ((1, pa.int64()), (2, pa.float64())):
        table = pa.table({"age": pa.array(AGES, type_)})
        pq.write_table(table, tmp_path / f"2025-06-{day:02d}.parquet")
    dataset.run(1)
    with pytest.raises(PrivacyError, match=r"'age' is double.* and was int64"):
        dataset.run(2)


def test_intentions_of_other_scopes_are_not_confirmed_by_mistake(tmp_path: Path) -> None:
    """Of an attempt that notes its people and its contract, one may have been lost."""
    files = {"token": "t", "work": str(tmp_path), "output": str(tmp_path / "a"), "time": "now"}
    again = []
    with catalogue.current().writing() as connection:
        publication.intend(connection, "one", **files)
    publication.confirm(catalogue.current(), "other", "t", again.append)
    assert again
