"""Criteria as C sees them."""

from __future__ import annotations

import numpy as np
import pytest

from mondrian_ops.native.model import DISTINCT, T_EQUAL, T_TREE, Criteria, CriteriaStruct

TWO = Criteria(  # diversity of 3 codes, and closeness over the tree ((0, 1), (2, 3))
    k=2,
    kind=np.array([DISTINCT, T_TREE]),
    column=np.array([0, 1]),
    level=np.array([2.0, 0.5]),
    c=np.zeros(2),
    codes=np.array([3, 4]),
    uncounted=np.array([1, 0]),
    share=np.full(4, 0.25),
    share_first=np.array([0, 0, 4]),
    parent=np.array([4, 4, 5, 5, 6, 6, -1], np.int32),
    height=np.array([0, 0, 0, 0, 0.5, 0.5, 1.0]),
    parent_first=np.array([0, 0, 7]),
)


def test_it_holds_the_arrays():
    made = CriteriaStruct.made(TWO, 2)
    assert (made.k, made.count) == (2, 2)
    assert made.parent == TWO.parent.ctypes.data
    assert made.of is TWO


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"k": 2**63}, "k must fit into 64 bits"),
        ({"kind": np.array([0, 6])}, "criteria: kind"),
        ({"kind": np.array([T_EQUAL, T_TREE])}, "share must have an entry for every code"),
        ({"column": np.array([0, 2])}, "criteria: column"),
        ({"column": np.array([-1, 1])}, "criteria: column"),
        ({"codes": np.array([3, 5])}, "share must have an entry for every code"),
        ({"codes": np.array([0, 4])}, "criteria: codes"),
        ({"uncounted": np.array([2, 0])}, "criteria: uncounted"),
        ({"share_first": np.array([0, 0, 5])}, "criteria: share_first"),
        ({"share_first": np.array([0, 4])}, "criteria: share_first"),
        ({"parent_first": np.array([0, 7, 0])}, "criteria: parent_first"),
        ({"parent": np.array([4, 4, 5, 5, 6, 7, -1], np.int32)}, "node of the same hierarchy"),
        ({"height": np.zeros(6)}, "criteria: height"),
        ({"level": np.zeros(3)}, "criteria: level"),
    ],
)
def test_what_would_point_outside_is_refused(changed, text):
    with pytest.raises(ValueError, match=text):
        CriteriaStruct.made(TWO._replace(**changed), 2)


@pytest.mark.parametrize("name", Criteria._fields[1:])
def test_other_types_are_refused(name):
    other = getattr(TWO, name).astype(np.float32)
    with pytest.raises(TypeError, match=f"criteria: {name}"):
        CriteriaStruct.made(TWO._replace(**{name: other}), 2)
