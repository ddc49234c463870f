from __future__ import annotations

import copy
from typing import Any

import pytest

from mondrian_ops.core.errors import JobError
from mondrian_ops.core.job import Job, Partitioning, QuasiIdentifier
from mondrian_ops.overrides import override, with_overrides

JOB: dict[str, Any] = {"input": "in.csv", "output": "out", "k": 5, "quasi_identifiers": ["age"]}


def test_override() -> None:
    job = Job.from_dict({**JOB, "sensitive": ["income"], "l": 2})
    changed = override(
        job,
        [
            "k=10",
            "l=null",
            "partitioning.fragments=4",
            "partitioning.sample=1e-2",
            "quasi_identifiers=[age=ladder:5/10@16, zip=prefix, c=hierarchy:c.csv]",
            "output=out/a=b",
        ],
    )
    assert (changed.k, changed.l, changed.output) == (10, None, "out/a=b")
    assert changed.partitioning == Partitioning(fragments=4, sample=0.01)
    assert changed.quasi_identifiers == (
        QuasiIdentifier("age", "hierarchy", ladder=(5, 10), origin=16),
        QuasiIdentifier("zip", "prefix"),
        QuasiIdentifier("c", "hierarchy", "c.csv"),
    )
    assert (job.k, job.partitioning) == (5, Partitioning())


@pytest.mark.parametrize(
    ("setting", "start"),
    [
        ("k", "--set 'k': must be KEY=VALUE"),
        ("=3", "--set '=3': must be KEY=VALUE"),
        ("k=1", "k: must be a whole number of at least 2"),
        ("kk=1", "kk: unknown option"),
        ("partitioning.fragmnts=1", "partitioning.fragmnts: unknown option"),
        ("k.x=1", "k.x: k has no options of its own"),
        ("k=[1", "k: '[1' is not valid YAML"),
    ],
)
def test_wrong_overrides_are_refused(setting: str, start: str) -> None:
    with pytest.raises(JobError) as caught:
        override(Job.from_dict(JOB), [setting])
    assert str(caught.value).startswith(start)


def test_overrides_do_not_change_the_mapping() -> None:
    mapping = {**JOB, "partitioning": {"seed": 3}}
    before = copy.deepcopy(mapping)
    assert with_overrides(mapping, ["partitioning.fragments=2", "k=9"]) == {
        **before,
        "k": 9,
        "partitioning": {"seed": 3, "fragments": 2},
    }
    assert mapping == before


def test_a_job_on_a_table_in_memory_stays_one() -> None:
    job = Job.from_dict({"k": 2, "quasi_identifiers": ["age"]}, paths_required=False)
    assert override(job, ["k=3"]) == Job(None, None, 3, quasi_identifiers=job.quasi_identifiers)
