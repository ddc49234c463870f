"""What a job may choose, and a policy does not see: columns, who is who, other files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mondrian_ops import pipeline, publish, stores
from mondrian_ops.errors import HierarchyError, JobError, PrivacyError
from mondrian_ops.stores import load_job
from nights import silent

PEOPLE = 300


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    yield Deployment(tmp_path)
    stores.use_policies(None)


class Deployment:
    """A policy for patients, and jobs on them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._releases = folder, 0
        (folder / "patients").mkdir()
        pq.write_table(_patients(), folder / "patients" / "day.parquet")

    def decree(self, **policy: Any) -> None:
        policy = {"name": "patients", "inputs": [f"{self.folder}/patients"], "min_k": 5, **policy}
        file = self.folder / "policies.json"
        file.write_text(json.dumps({"unmatched": "refuse", "policies": [policy]}))
        stores.use_policies(str(file))

    def run(self, **keys: Any) -> pa.Table:
        """The release of a job, which may lie beside the patients."""
        self._releases += 1
        job = {
            "input": f"{self.folder}/patients/*.parquet",
            "output": f"{self.folder}/out/{self._releases}",
            "k": 5,
            "quasi_identifiers": ["age"],
            **keys,
        }
        file = self.folder / "patients" / "job.json"
        file.write_text(json.dumps(job))
        pipeline.run(publish.check_job(load_job(file)), silent)
        return pq.read_table(job["output"])


def _patients() -> pa.Table:
    numbers = range(PEOPLE)
    return pa.table(
        {
            "ssn": [f"{number:05d}" for number in numbers],
            "name": [f"n{number}" for number in numbers],
            "age": [20 + number % 60 for number in numbers],
            "address": [f"{number} Street" for number in numbers],
            "ill": ["abcd"[number % 4] for number in numbers],
        }
    )


ROLES = {"age": "quasi_identifier", "ill": "sensitive"}


def test_a_column_that_singles_people_out_is_no_sensitive_one(deployment: Deployment) -> None:
    """Listed as sensitive it goes out as it is: 300 addresses in classes of ten."""
    sensitive = {"sensitive": ["ill", "address"], "l": 2}
    deployment.decree(min_l=2, unlisted="drop", roles={**ROLES, "ssn": "identifier"})
    assert len(set(deployment.run(**sensitive)["address"].to_pylist())) == PEOPLE
    deployment.decree(min_l=2, unlisted="drop", roles=ROLES, others="drop")
    with pytest.raises(
        JobError, match=r"^sensitive: has 'address', and the policy .* others: drop"
    ):
        deployment.run(**sensitive)
    with pytest.raises(JobError, match=r"^quasi_identifiers: has 'address', and the policy"):
        deployment.run(sensitive=["ill"], l=2, quasi_identifiers=["age", "address=prefix"])
    released = deployment.run(sensitive=["ill"], l=2, identifiers=["ssn", "name", "address"])
    assert set(released.column_names) == {"age", "ill"}


def test_the_same_people_are_found_though_a_job_lists_other_identifiers(
    deployment: Deployment,
) -> None:
    refusing = {"overlap": "refuse"}
    deployment.decree(overlap="refuse", people_by=["ssn"])
    deployment.run(identifiers=["ssn", "name"], **refusing)
    for others in (["ssn"], ["ssn", "name", "address"]):
        with pytest.raises(PrivacyError, match="the same drop was released"):
            deployment.run(identifiers=others, **refusing)
    with pytest.raises(PrivacyError, match="the same drop was released"):
        deployment.run(identifiers=["ssn", "name"], entity_id="name", **refusing)
    with pytest.raises(JobError, match=r"^identifiers: does not list ssn, and the policy"):
        deployment.run(identifiers=["name"], **refusing)


def test_the_same_people_are_found_though_a_file_spells_its_column_otherwise(
    deployment: Deployment,
) -> None:
    deployment.decree(overlap="refuse", people_by=["SSN"])
    deployment.run(identifiers=["ssn"], overlap="refuse")
    file = deployment.folder / "patients" / "day.parquet"
    table = pq.read_table(file)
    pq.write_table(table.rename_columns(["Ssn", *table.column_names[1:]]), file)
    with pytest.raises(PrivacyError, match="the same drop was released"):
        deployment.run(identifiers=["Ssn"], overlap="refuse")


def test_people_are_told_apart_by_columns_that_have_a_text(deployment: Deployment) -> None:
    file = deployment.folder / "patients" / "day.parquet"
    listed = pa.array([[number] for number in range(PEOPLE)])
    pq.write_table(pq.read_table(file).set_column(0, "ssn", listed), file)
    deployment.decree(overlap="refuse", people_by=["ssn", "name"])
    with pytest.raises(JobError, match=r"overlap: ssn: .* have an administrator name others"):
        deployment.run(identifiers=["ssn", "name"], overlap="refuse")


def test_the_rows_of_a_policy_are_no_labels(deployment: Deployment) -> None:
    """As a hierarchy of ages, a file about patients would publish what it says of them."""
    lines = [f"{age};n{age // 2} has {'abcd'[age % 4]};*" for age in range(20, 80, 2)]
    lines += [line.replace(line[:2], str(int(line[:2]) + 1), 1) for line in lines]
    (deployment.folder / "patients" / "p.csv").write_text("\n".join(lines))
    attack = {"k": 10, "quasi_identifiers": ["age=hierarchy:p.csv"]}
    deployment.decree()
    with pytest.raises(HierarchyError, match=r"^p.csv: lies in an input of the policy 'patients'"):
        deployment.run(**attack)
    assert not list((deployment.folder / "out").glob("*"))
    stores.use_policies(None)
    assert "n10 has a" in deployment.run(**attack)["age"].to_pylist()
