"""What one task hands to the next has a version, which changes with it."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pytest

from mondrian_ops.cut.plan import Branch, Leaf, Plan
from mondrian_ops.cut.plan_version import SCHEMA
from mondrian_ops.cut.planning import Draft
from mondrian_ops.data.profile import PartialProfile, Profile
from mondrian_ops.engines.handover import Fragment, Part, PartSummary, Recounted, RunState, Sample
from mondrian_ops.errors import StorageError

HANDED: list[Any] = [Branch, Plan, Draft, PartialProfile, Profile]
HANDED += [Fragment, Part, PartSummary, Recounted, RunState, Sample]
LAYOUT = """
Branch: column value left right round
Plan: nodes fragments
Draft: profile cut plan sample_rows fragments reason survey boundaries
PartialProfile: rows ends counted combinations missing persons
Profile: rows types domains counts constant boundaries pointed complete rare prefixes quantiles grids
Fragment: id where rows work any_of fragments
Part: part parts work
PartSummary: part rows specializations equivalence_classes seconds finished
Recounted: id where work rows suppressed equivalence_classes DP seconds finished held counterfeits phases NCP attributes
RunState: rows columns constant cut retrieval leaves fragments generalizations partitioning files recoding dependencies singled_out unattainable column_notes grids source timings_s phases
Sample: work rows measured fragments drawn
"""  # noqa: E501


def test_what_is_handed_over_does_not_change_without_its_version() -> None:
    """If it does: raise SCHEMA, for runs under way during an upgrade, and renew LAYOUT."""
    lines = [f"{each.__name__}: {' '.join(one.name for one in fields(each))}" for each in HANDED]
    assert (SCHEMA, lines) == (3, LAYOUT.split("\n")[1:-1])


def test_a_draft_of_another_version_is_refused_for_good() -> None:
    draft = Draft(Profile(0, {}, {}, {}), {}, Plan((Leaf(0),), ((0,),)), 0, 1, "")
    table = draft.to_table()
    assert Draft.from_table(table).plan == draft.plan
    metadata = dict(table.schema.metadata)
    del metadata[b"grids"]
    decided = json.loads(metadata[b"draft"])
    decided["plan"]["schema"] = 2
    metadata[b"draft"] = json.dumps(decided).encode()
    with pytest.raises(StorageError, match="schema version 2, this version reads 3"):
        Draft.from_table(table.replace_schema_metadata(metadata))
