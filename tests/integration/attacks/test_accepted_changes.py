"""An acceptance of a change of the columns, in the hands of somebody who wants more than that.

A steward accepted that `age` comes as text. The attacker may deliver drops, and edit the job.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kept_folder import KeptFolder
from mondrian_ops import pipeline, publish
from mondrian_ops.errors import JobError, PrivacyError
from mondrian_ops.pipeline import contract
from mondrian_ops.stores import load_job

AGES = list(range(20, 40))
TEXTS = [f"{age} years" for age in AGES]
SSN = [f"078-05-{number}" for number in range(1120, 1140)]


class Nights:
    """Nights of a dataset below a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def job(self, day: int, columns: dict[str, Any], **keys: Any) -> dict[str, Any]:
        drop = self.folder / "in" / f"2025-06-{day:02d}.parquet"
        drop.parent.mkdir(exist_ok=True)
        pq.write_table(pa.table(columns), drop)
        return {
            "input": str(drop),
            "output": self.output(day),
            "k": 4,
            "quasi_identifiers": ["age"],
            "unlisted": "publish",
            "schema": "keep",
            **keys,
        }

    def output(self, day: int) -> str:
        return str(self.folder / "out" / f"2025-06-{day:02d}")

    def night(self, day: int, columns: dict[str, Any], **keys: Any) -> dict[str, Any]:
        job = publish.check_job(load_job(self.job(day, columns, **keys)))
        return pipeline.run(job)

    def refused(self, day: int, columns: dict[str, Any], **keys: Any) -> str:
        with pytest.raises(PrivacyError, match=r"^schema: ") as caught:
            self.night(day, columns, **keys)
        assert publish.report_of(self.output(day)) is None
        ids = [each.id for each in contract.state_of(self.output(1))[1]]
        (found,) = [each for each in ids if each in str(caught.value)]
        return found


@pytest.fixture(scope="module")
def kept_nights(tmp_path_factory: pytest.TempPathFactory) -> KeptFolder:
    def make(folder: Path) -> None:
        made = Nights(folder)
        made.night(1, {"age": AGES})
        contract.accept(made.refused(2, {"age": TEXTS}), "steward", output=made.output(2))

    return KeptFolder(tmp_path_factory.mktemp("nights"), make)


@pytest.fixture
def nights(kept_nights: KeptFolder, monkeypatch: pytest.MonkeyPatch) -> Nights:
    """One night is released, and a steward has accepted that ages are texts."""
    return Nights(kept_nights.brought_back(monkeypatch))


@pytest.mark.parametrize(
    ("columns", "keys"),
    [
        ({"age": TEXTS, "ssn": SSN}, {}),
        ({"age": AGES, "ssn": SSN}, {}),
        ({"age": TEXTS}, {"quasi_identifiers": ["age=prefix"]}),
        ({"age": TEXTS, "zip": AGES}, {"quasi_identifiers": ["zip"]}),
        ({"age": [age / 2 for age in AGES]}, {}),
    ],
    ids=["with another", "another", "another generalization", "another role", "another type"],
)
def test_the_acceptance_of_one_change_lets_no_other_pass(
    nights: Nights, columns: dict[str, Any], keys: dict[str, Any]
) -> None:
    nights.refused(2, columns, **keys)
    nights.refused(3, columns, **keys)
    nights.night(3, {"age": TEXTS})


def test_an_acceptance_is_of_one_dataset(nights: Nights, tmp_path: Path) -> None:
    other = Nights(tmp_path / "other")
    other.folder.mkdir()
    other.night(1, {"age": AGES})
    other.refused(2, {"age": TEXTS})


def test_back_and_forth_takes_an_acceptance_each_time(nights: Nights) -> None:
    nights.night(2, {"age": TEXTS})
    back = nights.refused(3, {"age": AGES})
    contract.accept(back, "steward", output=nights.output(3))
    nights.night(3, {"age": AGES})
    nights.refused(4, {"age": TEXTS})


def test_a_drop_of_an_old_day_brings_no_old_role_back(tmp_path: Path) -> None:
    """The column was published until a steward made it an identifier."""
    nights, columns = Nights(tmp_path), {"age": AGES, "ssn": SSN}
    nights.night(1, columns)
    made = nights.refused(5, columns, identifiers=["ssn"])
    contract.accept(made, "steward", output=nights.output(5))
    nights.night(5, columns, identifiers=["ssn"])
    nights.refused(3, columns)
    nights.night(3, {"age": AGES}, identifiers=[])


def test_neither_an_acceptance_nor_evolve_goes_below_a_policy(
    nights: Nights, monkeypatch: pytest.MonkeyPatch
) -> None:
    policies = nights.folder / "policies.yaml"
    floor = f"{{name: floor, inputs: [{nights.folder}/in], unlisted: drop}}"
    policies.write_text(f"policies: [{floor}]\n")
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__POLICIES", str(policies))
    for keys in ({}, {"schema": "evolve"}):
        with pytest.raises(JobError, match="unlisted"):
            nights.night(2, {"age": TEXTS}, **keys)
