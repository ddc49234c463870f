from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mondrian_ops.data.hierarchy import MISSING, CodedHierarchy, Hierarchy
from mondrian_ops.errors import HierarchyError
from mondrian_ops.job import limits

# Figure 1 of the distributed Mondrian paper, as its section 4.1 lists the leaves.
FIGURE_1 = [
    ["Italy", "Europe", "World"],
    ["France", "Europe", "World"],
    ["Spain", "Europe", "World"],
    ["USA", "America-North", "World"],
    ["Canada", "America-North", "World"],
    ["Greenland", "America-North", "World"],
    ["China", "Asia", "World"],
    ["Japan", "Asia", "World"],
    ["India", "Asia", "World"],
]
FIGURE_1_LEAVES = [row[0] for row in FIGURE_1]


def rows(*texts: str) -> list[list[str]]:
    return [text.split(";") for text in texts]


def of(*texts: str) -> Hierarchy:
    return Hierarchy.from_rows(rows(*texts), "tree.csv")


def lca_label(hierarchy: Hierarchy, *leaves: str) -> str:
    """As a class is generalized: the ancestor of the two leaves outermost in tree order."""
    ids = np.array([hierarchy.leaves.index(leaf) for leaf in leaves])
    ids = ids[hierarchy.tree_order[ids].argsort()]
    return hierarchy.labels[hierarchy.lca_of(ids[:1], ids[-1:])[0]]


class TestFigure1:
    tree = Hierarchy.from_rows(FIGURE_1, "countries.csv")

    def test_arrays(self) -> None:
        tree = self.tree
        assert tree.leaves == FIGURE_1_LEAVES
        assert tree.labels == [*FIGURE_1_LEAVES, "Europe", "World", "America-North", "Asia"]
        assert tree.parent.tolist() == [9, 9, 9, 11, 11, 11, 12, 12, 12, 10, -1, 10, 10]
        assert tree.leaf_count.tolist() == [1] * 9 + [3, 9, 3, 3]
        assert tree.ancestors.tolist() == [
            list(range(9)),
            [9, 9, 9, 11, 11, 11, 12, 12, 12],
            [10] * 9,
        ]
        assert tree.tree_order.tolist() == list(range(9))
        assert (len(tree.ancestors), tree.root) == (3, 10)

    def test_types(self) -> None:
        arrays = (
            self.tree.parent,
            self.tree.leaf_count,
            self.tree.ancestors,
            self.tree.tree_order,
        )
        assert all(array.dtype == np.int32 and array.flags.c_contiguous for array in arrays)

    @pytest.mark.parametrize(
        ("leaves", "ancestor"),
        [
            (["Italy"], "Italy"),
            (["Italy", "France"], "Europe"),  # the first three tuples of figure 2
            (["Italy", "Canada"], "World"),  # section 4.1
            (["USA", "Greenland", "Canada"], "America-North"),
            (["India", "China", "Italy"], "World"),
        ],
    )
    def test_lowest_common_ancestor(self, leaves: list[str], ancestor: str) -> None:
        assert lca_label(self.tree, *leaves) == ancestor

    @pytest.mark.parametrize(
        "tree",
        [
            {
                "name": "World",
                "children": [
                    {"name": "Europe", "children": ["Italy", "France", {"name": "Spain"}]},
                    {"name": "America-North", "children": ["USA", "Canada", "Greenland"]},
                    {"name": "Asia", "children": ["China", "Japan", "India"]},
                ],
            },
            {
                "World": {
                    "Europe": ["Italy", "France", "Spain"],
                    "America-North": {"USA": None, "Canada": {}, "Greenland": []},
                    "Asia": ["China", {"Japan": []}, {"name": "India", "children": []}],
                }
            },
        ],
    )
    def test_the_same_tree_as_json(self, tree: object) -> None:
        assert_same(Hierarchy.from_tree(tree, "countries.json"), self.tree)


def assert_same(a: Hierarchy, b: Hierarchy) -> None:
    assert a.leaves == b.leaves
    assert a.labels == b.labels
    for field in ("parent", "leaf_count", "ancestors", "tree_order"):
        np.testing.assert_array_equal(getattr(a, field), getattr(b, field))


def test_ragged_branches_are_padded_at_the_leaf() -> None:
    tree = of("a;A;AA;*", "b;B;*;;", "c;*;;", "d;A;AA;*")
    by_label = {label: at for at, label in enumerate(tree.labels)}
    named = [[tree.labels[node] for node in level] for level in tree.ancestors]
    assert named == [
        ["a", "b", "c", "d"],
        ["A", "b", "c", "A"],
        ["AA", "B", "c", "AA"],
        ["*", "*", "*", "*"],
    ]
    assert tree.leaf_count[by_label["A"]] == tree.leaf_count[by_label["AA"]] == 2
    assert tree.leaf_count[[by_label["c"], by_label["B"], by_label["*"]]].tolist() == [1, 1, 4]
    # The branches interleave: a walk meets a, d, then b, then c.
    assert tree.tree_order.tolist() == [0, 2, 3, 1]
    assert lca_label(tree, "a", "d") == "A"
    assert lca_label(tree, "a", "b", "d") == "*"


def test_repeated_ancestors_are_one_level() -> None:
    assert_same(of("a;A;A;*;*", "b;A;*;*;*"), of("a;A;*", "b;A;*"))


def test_a_leaf_may_bear_the_name_of_an_inner_node() -> None:
    tree = of("Asia;Asia;*", "China;Asia;*", "Italy;Europe;*")
    assert lca_label(tree, "Asia") == "Asia"
    assert tree.leaf_count[tree.parent[0]] == 2
    assert tree.parent[0] == tree.parent[1] != 0


def test_blank_rows_and_a_single_leaf() -> None:
    tree = of("", ";;", "a;*", "")
    assert (tree.leaves, tree.root, len(tree.ancestors)) == (["a"], 1, 2)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([], "tree.csv: the file has no values"),
        (["", ";"], "tree.csv: the file has no values"),
        (["a;*", "b;*", "a;*"], "tree.csv: row 3 is the same leaf as row 1; remove"),
        (["a;A;*", "b;B;*", "a;B;*"], "tree.csv: row 3 is the same leaf as row 1; remove"),
        (
            ["a;A;X;*", "b;A;Y;*"],
            "tree.csv: row 2 gives its ancestor 1 another parent than an earlier",
        ),
        (
            ["a;A;X;*", "b;A;*"],
            "tree.csv: row 2 gives its ancestor 1 another parent than an earlier",
        ),
        (
            ["a;P;Q;*", "b;Q;P;*"],
            "tree.csv: row 2 gives its ancestor 1 another parent than an earlier",
        ),
        (["a;P;Q;P;*"], "tree.csv: row 1 names an ancestor twice, a cycle"),
        (["a;P;Q;P"], "tree.csv: row 1 names an ancestor twice, a cycle"),
        (["", "a;A;*", "b;B"], "tree.csv: row 3 ends at another root than row 2; end every row"),
        (["leaf;region;all", "b;A;*"], "tree.csv: row 2 ends at another root than row 1;"),
        (["a;A;*", "b"], "tree.csv: row 2 has a leaf without an ancestor"),
        (["a;;*"], "tree.csv: row 1 has an empty cell"),
        (["a;*", ";*"], "tree.csv: row 2 has an empty cell"),
    ],
)
def test_malformed_rows_are_refused(texts: list[str], message: str) -> None:
    with pytest.raises(HierarchyError) as caught:
        of(*texts)
    assert str(caught.value).startswith(message), str(caught.value)


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ([], "tree.json: has 0 roots"),
        ({}, "tree.json: has 0 roots"),
        ({"A": ["a"], "B": ["b"]}, "tree.json: has 2 roots"),
        ([{"A": ["a"]}, {"B": ["b"]}], "tree.json: has 2 roots"),
        ("a", "tree.json: leaf 1 has a leaf without an ancestor"),
        (None, "tree.json: a node is a text"),
        ({"*": ["a", True]}, "tree.json: a node is a text, a mapping of labels, or"),
        ({"*": ["a", None]}, "tree.json: a node is a text"),
        ({"*": ["a", "a"]}, "tree.json: leaf 2 is the same leaf as leaf 1"),
        ({"*": ["a", ""]}, "tree.json: leaf 2 has an empty cell"),
        (
            {"*": {"A": {"X": ["a"]}, "B": {"X": ["b"]}}},
            "tree.json: leaf 2 gives its ancestor 1 another parent",
        ),
        ({"*": {"A": {"B": {"A": ["a"]}}}}, "tree.json: leaf 1 names an ancestor twice"),
    ],
)
def test_malformed_trees_are_refused(tree: object, message: str) -> None:
    with pytest.raises(HierarchyError) as caught:
        Hierarchy.from_tree(tree, "tree.json")
    assert str(caught.value).startswith(message), str(caught.value)


def test_numbers_in_a_json_tree_are_read_as_text() -> None:
    assert Hierarchy.from_tree({"*": {"low": [1, 2], "high": [3.5]}}, "t").leaves == [
        "1",
        "2",
        "3.5",
    ]


def test_a_deep_json_tree_needs_no_recursion() -> None:
    tree: Any = "leaf"
    for level in range(3000):
        tree = {"name": f"level {level}", "children": [tree]}
    with limits.changed(hierarchy_levels=3001):
        assert len(Hierarchy.from_tree(tree, "deep.json").ancestors) == 3001


class TestLadder:
    def test_the_ladder_of_the_design(self) -> None:
        tree = Hierarchy.from_ladder(np.array([16, 20, 21, 25, 26, 36]), [5, 10, 20], 16, "age")
        named = [[tree.labels[node] for node in level] for level in tree.ancestors]
        assert named == [
            ["16", "20", "21", "25", "26", "36"],
            ["[16, 20]", "[16, 20]", "[21, 25]", "[21, 25]", "[26, 30]", "[36, 40]"],
            ["[16, 25]", "[16, 25]", "[16, 25]", "[16, 25]", "[26, 35]", "[36, 45]"],
            ["[16, 35]", "[16, 35]", "[16, 35]", "[16, 35]", "[16, 35]", "[36, 55]"],
            ["*"] * 6,
        ]
        assert tree.tree_order.tolist() == list(range(6))
        assert lca_label(tree, "16", "25") == "[16, 25]"

    def test_below_the_origin(self) -> None:
        tree = Hierarchy.from_ladder(np.array([-7, -1, 0, 3]), [5, 10], 0, "x")
        assert tree.labels[4:] == ["[-10, -6]", "[-5, -1]", "[0, 4]", "[-10, -1]", "[0, 9]", "*"]

    def test_fractions_are_half_open_with_exact_edges(self) -> None:
        tree = Hierarchy.from_ladder(np.array([0.1, 0.2, 0.3, 0.7, 1.1]), [0.1, 0.5], 0, "x")
        assert tree.labels[5:10] == [
            "[0.1, 0.2)",
            "[0.2, 0.3)",
            "[0.3, 0.4)",
            "[0.7, 0.8)",
            "[1.1, 1.2)",
        ]
        assert tree.labels[10:] == ["[0.0, 0.5)", "[0.5, 1.0)", "[1.0, 1.5)", "*"]

    def test_a_fractional_width_over_whole_numbers(self) -> None:
        tree = Hierarchy.from_ladder(np.array([0, 2, 3], dtype=np.uint8), [2.5], 0, "x")
        assert tree.labels[3:] == ["[0.0, 2.5)", "[2.5, 5.0)", "*"]

    def test_a_width_of_one_whole_number(self) -> None:
        tree = Hierarchy.from_ladder(np.array([4, 5]), [1, 2], 0, "x")
        assert tree.labels[2:] == ["4", "5", "[4, 5]", "*"]

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            (np.array([], dtype=np.int64), "has no values"),
            (np.array([1.0, np.inf]), "needs finite numbers"),
            (np.array(["a"]), "needs finite numbers"),
            (np.array([1e300]), "too large"),
            (np.array([2**63], dtype=np.uint64), "too large"),
        ],
    )
    def test_what_no_ladder_can_hold(self, values: np.ndarray[Any, Any], message: str) -> None:
        with pytest.raises(HierarchyError, match=f"^age: .*{message}"):
            Hierarchy.from_ladder(values, [5], 0, "age")

    def test_widths_too_fine_to_be_exact(self) -> None:
        with pytest.raises(HierarchyError, match="too large for the narrowest intervals"):
            Hierarchy.from_ladder(np.array([1.0]), [5e-324], 0, "x")

    @given(
        st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=30, unique=True),
        st.integers(1, 50),
        st.lists(st.integers(2, 4), max_size=3),
        st.integers(-100, 100),
        st.sampled_from([1, 10, 1000]),
    )
    def test_every_interval_holds_its_values(
        self, numbers: list[int], width: int, times: list[int], origin: int, unit: int
    ) -> None:
        values = np.array(sorted(numbers)) / unit if unit > 1 else np.array(sorted(numbers))
        widths = [width / unit if unit > 1 else width]
        for factor in times:
            width *= factor
            widths.append(width / unit if unit > 1 else width)
        tree = Hierarchy.from_ladder(values, widths, origin, "x")
        assert len(tree.ancestors) == len(widths) + 2
        for level, step in zip(tree.ancestors[1:-1], widths, strict=True):
            for value, node in zip(values.tolist(), level, strict=True):
                label = tree.labels[node]
                if not label.startswith("["):
                    assert (step, label) == (1, str(value))
                    continue
                low, high = (float(edge) for edge in label[1:-1].split(", "))
                assert low <= value
                assert value <= high if label.endswith("]") else value < high
                assert high - low == pytest.approx(step - 1 if label.endswith("]") else step)


@st.composite
def random_trees(draw: st.DrawFn) -> list[list[str]]:
    """Rows of a random ragged tree, its leaves in any order."""
    inner = draw(st.integers(0, 8))
    parents = [draw(st.integers(-1, at - 1)) for at in range(inner)]
    leaves = draw(st.lists(st.integers(-1, inner - 1), min_size=1, max_size=20))

    def chain(node: int) -> list[str]:
        return ["*"] if node < 0 else [f"n{node}", *chain(parents[node])]

    padding = draw(st.integers(0, 2))
    return [[f"v{at}", *chain(node), *[""] * padding] for at, node in enumerate(leaves)]


@given(random_trees())
def test_arrays_against_the_rows(table: list[list[str]]) -> None:
    tree = Hierarchy.from_rows(table, "x")
    paths = [[label for label in row if label] for row in table]
    assert tree.leaves == [path[0] for path in paths]
    assert len(tree.ancestors) == max(map(len, paths))
    assert sorted(tree.tree_order.tolist()) == list(range(len(paths)))
    for leaf, path in enumerate(paths):
        column = [tree.labels[node] for node in tree.ancestors[:, leaf]]
        assert column == [path[0]] * (len(tree.ancestors) - len(path)) + path
    for node, label in enumerate(tree.labels):
        assert tree.leaf_count[node] == sum(label in path for path in paths)


@given(random_trees())
def test_rows_and_back(table: list[list[str]]) -> None:
    tree = Hierarchy.from_rows(table, "x")
    assert_same(Hierarchy.from_rows(tree.to_rows(), "x"), tree)


@pytest.mark.parametrize(
    "tree", [of("a;A;A;*;*", "b;A;*"), of("Asia;Asia;*", "China;Asia;*"), of("", "a;*")]
)
def test_rows_and_back_of_odd_rows(tree: Hierarchy) -> None:
    assert_same(Hierarchy.from_json(json.loads(json.dumps(tree.to_json()))), tree)


@given(random_trees(), st.data())
def test_lca_against_brute_force(table: list[list[str]], data: st.DataObject) -> None:
    tree = Hierarchy.from_rows(table, "x")
    some = data.draw(st.lists(st.sampled_from(tree.leaves), min_size=1, max_size=6))
    paths = {row[0]: [label for label in row if label] for row in table}
    common = set.intersection(*(set(paths[leaf]) for leaf in some))
    lowest = next(label for label in paths[some[0]] if label in common)
    assert lca_label(tree, *some) == lowest


@given(random_trees())
def test_tree_order_keeps_every_branch_together(table: list[list[str]]) -> None:
    tree = Hierarchy.from_rows(table, "x")
    for node in set(tree.ancestors.ravel().tolist()):
        positions = tree.tree_order[(tree.ancestors == node).any(axis=0)]
        assert positions.max() - positions.min() + 1 == len(positions) == tree.leaf_count[node]


def test_a_hundred_thousand_leaves_load_in_about_a_second() -> None:
    table = [
        [f"{at:06d}", *(f"{at // step} by {step}" for step in (5, 50, 500, 5000)), "*"]
        for at in range(100_000)
    ]
    start = time.process_time()
    tree = Hierarchy.from_rows(table, "zip.csv")
    assert time.process_time() - start < 5  # about 0.2 s
    assert tree.ancestors.shape == (6, 100_000)


def coded(hierarchy: Hierarchy) -> CodedHierarchy:
    return CodedHierarchy.of(hierarchy, np.arange(len(hierarchy.leaves)))


def test_levels_and_losses_of_codes():
    rows = [["a", "x", "*"], ["b", "x", "*"], ["c", "*"]]
    found = coded(Hierarchy.from_rows(rows, "letters"))
    assert found.height == 2
    assert found.levels.tolist() == [[0, 1, 2, 3], [0, 4, 4, 3], [5, 5, 5, 5]]
    assert found.root == 5
    assert found.leaves.tolist() == [0, 1, 1, 1, 2, 3]
    assert found.lm.tolist() == [0, 0, 0, 0, 0.5, 1]
    assert np.allclose(found.ncp, [0, 0, 0, 0, 2 / 3, 1])


def test_parents_of_codes():
    rows = [["a", "x", "*"], ["b", "x", "*"], ["c", "*"]]
    assert coded(Hierarchy.from_rows(rows, "letters")).parents().tolist() == [5, 4, 4, 5, 5, -1]


def test_the_order_of_the_codes_need_not_be_that_of_the_file():
    hierarchy = Hierarchy.from_rows([["a", "x", "*"], ["b", "*"], ["c", "x", "*"]], "letters")
    found = CodedHierarchy.of(hierarchy, np.array([0, 2, 1]))
    assert found.levels[0].tolist() == [MISSING, 1, 3, 2]
    assert found.levels[1, 1] == found.levels[1, 2]


def test_a_ladder_loses_the_width_of_its_intervals():
    """Huang's ages: 0.0625, 0.125, 0.25 and 1 (section 4.1)."""
    hierarchy = Hierarchy.from_ladder(np.arange(17, 91), [5, 10, 20], 16, "age")
    found = coded(hierarchy)
    losses = [set(found.lm[level[1:]].tolist()) for level in found.levels]
    assert losses == [{0.0}, {0.0625}, {0.125}, {0.25}, {1.0}]


@given(st.integers(1, 40))
def test_neighbours_are_joined_level_by_level(count):
    line = np.cumsum(np.arange(count, dtype=float) + 1)
    hierarchy = Hierarchy.from_order([str(n) for n in range(count)], line, "n")
    found = coded(hierarchy)
    assert hierarchy.labels[-1] == "*"
    assert found.lm[found.root] == (count > 1)
    for level, nodes in enumerate(found.levels[:-1, 1:]):
        assert np.array_equal(nodes == nodes[:1], np.arange(count) < 2**level)
        for node in set(nodes.tolist()):
            (members,) = np.nonzero(nodes == node)
            label = str(members[0]) if len(members) == 1 else f"[{members[0]}, {members[-1]}]"
            assert hierarchy.labels[node - 1] == label
            width = line[members[-1]] - line[members[0]]
            assert np.isclose(found.lm[node], width / (line[-1] - line[0] or 1))


@pytest.mark.parametrize(
    "rows",
    [["Ada", "*"], ["Ada;*", "Ada;*"], ["Ada;Bob;*", "Cy;Bob"], ["Ada;Bob;Bob;Cy;Bob"], ["Ada;;*"]],
)
def test_no_error_quotes_a_cell_of_a_file_that_is_one_of_people(rows: list[str]) -> None:
    with pytest.raises(HierarchyError) as caught:
        of(*rows)
    assert not [name for name in ("Ada", "Bob", "Cy") if name in str(caught.value)]
