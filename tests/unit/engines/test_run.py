"""What a run says of its release."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from mondrian_ops.data.profile import Profile
from mondrian_ops.engines.run import Dataset, Run
from mondrian_ops.job.job import Job


@pytest.mark.parametrize(
    ("changes", "required"), [({}, {"age", "name"}), ({"contract": {"columns": {}}}, set())]
)
def test_a_column_is_required_where_another_release_need_not_be_alike(
    changes: dict[str, Any], required: set[str]
) -> None:
    described = {"k": 2, "quasi_identifiers": ["age", "sex"], "identifiers": ["name"]}
    source: Any = None
    dataset = Dataset(Job.from_dict(described, paths_required=False), source, {})
    run = Run(None, replace(dataset, **changes))
    types = {"age": pa.int8(), "sex": pa.string()}
    profile = Profile(2, types, {name: pa.nulls(0) for name in types}, {}, complete=("age",))
    run.draft = type("Draft", (), {"profile": profile})()
    assert run.required == required
