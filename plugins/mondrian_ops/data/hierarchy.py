"""Generalization hierarchies: trees over the values of an attribute, as flat arrays.

A value is generalized to the lowest common ancestor of its class (distributed Mondrian, sections
2 and 5, figure 1). Nodes are numbered: the leaves 0..L-1 in the order of the file, which is the
order of the attribute, then the inner nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.data.exact_intervals import DecimalUnits
from mondrian_ops.errors import HierarchyError
from mondrian_ops.job import limits
from mondrian_ops.late_methods import dataclass

Nodes = NDArray[np.int32]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MISSING = 0
"""The node of the missing value."""
STAR = -1
"""The node published as "*": missing in some rows of a class, present in others."""

_TOP = "*"
_COMPARED_LETTERS = 1 << 24  # of the texts compared at once, all padded to the longest of them


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """A tree over the values of one attribute, which does not change; built by the ``from_``
    methods.

    name
        The file's name, for error texts.
    leaves
        The L values, in the order of the attribute.
    labels
        (nodes,) text of each node; those of the leaves come first.
    parent
        (nodes,) int32, node above each node; -1 above the root.
    leaf_count
        (nodes,) int32, leaves under each node; 1 for a leaf.
    ancestors
        (depth, L) int32, C-contiguous; ``depth`` counts the nodes on the longest path. Row 0 holds
        the leaves, each next row their parents, the last row the root. The leaf of a shorter branch
        is repeated from below, so that all other nodes of a row are equally far from the root.
    tree_order
        (L,) int32, position of each leaf in a depth-first walk that takes children in the order
        of their first leaf. It differs from 0..L-1 where branches interleave. The lowest common
        ancestor of a set of leaves is that of the two with the least and greatest position.
    share
        (nodes,) float64, share of the domain's width that a node of ordered values spans; None
        where nodes are measured by their leaves.
    """

    name: str
    leaves: list[str]
    labels: list[str]
    parent: Nodes
    leaf_count: Nodes
    ancestors: Nodes
    tree_order: Nodes
    share: Floats | None = None

    @property
    def root(self) -> int:
        """The node above all others."""
        return int(self.ancestors[-1, 0])

    def lca_of(self, a: NDArray[Any], b: NDArray[Any]) -> Nodes:
        """The lowest common ancestor of each pair of leaves: two (n,) integer arrays -> (n,)."""
        lowest = np.full(len(a), -1, np.int32)
        for level in self.ancestors:  # one at a time: all together take `depth` times the memory
            meets = (lowest < 0) & (level[a] == level[b])
            lowest[meets] = level[a[meets]]
        return lowest

    def losses(self) -> tuple[Floats, Floats]:
        """NCP and LM of publishing each node, two (nodes,) arrays; a single value loses nothing."""
        if self.share is not None:
            return self.share, self.share
        leaves, count = self.leaf_count, len(self.leaves)
        lm = (leaves - 1) / max(1, count - 1)
        return np.where(leaves > 1, leaves / count, 0.0), lm

    @classmethod
    def from_rows(cls, rows: Iterable[Sequence[str]], name: str, row: str = "row") -> Hierarchy:
        """The hierarchy of a file with one row per leaf: the leaf, then its ancestors to the root.

        Rows may differ in length; empty cells at the end are ignored, and so is an ancestor that
        repeats the one before it. A repeated label names the same node, a
        leaf or an inner one.

        ``row``: the word for a row in errors.

        Raises HierarchyError, naming the file and the row but no label, since the file may be one
        of people, when there is no leaf, a leaf is listed twice, a cell is empty, a leaf has no
        ancestor, a node has two parents, or there is a cycle or more than one root.
        """
        most = limits.limit("hierarchy_rows")
        leaves: dict[str, str] = {}  # each with the label of its parent
        inner: dict[str, str] = {}  # the same of inner nodes; of the root, its own label
        chains: set[tuple[str, ...]] = set()
        numbers: list[int] = []  # of the rows of the leaves
        root = ""
        for at, leaf, chain in _paths(rows, name, row):
            if leaf in leaves:
                first = numbers[list(leaves).index(leaf)]
                raise HierarchyError(
                    f"{name}: {row} {at} is the same leaf as {row} {first}; remove one of the two"
                )
            if len(leaves) == most:
                remedy = (
                    "remove the leaves that the data does not contain, or use prefix, or a ladder "
                    "for numbers"
                )
                raise HierarchyError(
                    limits.exceeded("hierarchy_rows", f"{name}: has more leaves", remedy)
                )
            leaves[leaf] = chain[0]
            numbers.append(at)
            root = root or chain[-1]
            if chain not in chains:
                chains.add(chain)
                _add_chain(inner, chain, root, f"{name}: {row} {at}", f"{row} {numbers[0]}")
        if not leaves:
            raise HierarchyError(
                f"{name}: the file has no values; write one row per value, such as a;b;*"
            )
        number = {label: at for at, label in enumerate(inner)}
        parents = [-1 if label == parent else number[parent] for label, parent in inner.items()]
        return _assembled(
            name, list(leaves), list(inner), [number[label] for label in leaves.values()], parents
        )

    def to_rows(self) -> list[list[str]]:
        """The rows from which :meth:`from_rows` builds this hierarchy."""
        paths = (groupby(path.tolist()) for path in self.ancestors.T)  # some repeat their leaf
        return [[self.labels[node] for node, _ in path] for path in paths]

    def to_json(self) -> dict[str, Any]:
        """A JSON value."""
        return {"name": self.name, "rows": self.to_rows()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Hierarchy:
        """The hierarchy that :meth:`to_json` described."""
        return cls.from_rows(value["rows"], value["name"])

    @classmethod
    def from_tree(cls, tree: object, name: str) -> Hierarchy:
        """The hierarchy of a JSON tree, its leaves in the order of the document.

        A node is a text, ``{"name": ..., "children": [...]}``, or a mapping of labels to what is
        below each, ``{"*": {"Europe": ["Italy", "France"]}}``.

        Raises HierarchyError as :meth:`from_rows` does, and when a node has another form.
        """
        if isinstance(tree, (list, tuple)) or (isinstance(tree, Mapping) and not _is_named(tree)):
            count = len(tree)
            if count != 1:
                raise HierarchyError(
                    f"{name}: has {count} roots; put all values under one, such as {_TOP!r}"
                )
        return cls.from_rows(_tree_rows(tree, name), name, row="leaf")

    @classmethod
    def from_ladder(
        cls, values: NDArray[Any], ladder: Sequence[float], origin: float, name: str
    ) -> Hierarchy:
        """Intervals over numbers: one level per width of ``ladder``, finest first, then ``*``.

        ``values``: (L,) distinct numbers in ascending order, the leaves. Each width is a multiple
        of the one before. Intervals count from ``origin``: labels are closed, "[16, 20]", when
        values, widths and origin are whole numbers, else half-open, "[16.0, 21.0)".

        Raises HierarchyError when there is no value, one that is not a finite number, or numbers
        too large for intervals this narrow.
        """
        if not len(values):
            raise HierarchyError(
                f"{name}: the column has no values, so a ladder cannot be built; use another "
                "generalization"
            )
        if values.dtype.kind not in "iuf" or not np.isfinite(values).all():
            raise HierarchyError(f"{name}: a ladder needs finite numbers; use another hierarchy")
        decimals = DecimalUnits([*ladder, origin])
        if not decimals.holds(values):
            raise HierarchyError(
                f"{name}: the numbers are too large for the narrowest intervals of the ladder; "
                "use wider ones"
            )
        return _laddered(values, ladder, origin, name, decimals)

    @classmethod
    def from_steps(
        cls,
        texts: Sequence[str],
        steps: Sequence[Callable[[str], str]],
        name: str,
        top: str = _TOP,
    ) -> Hierarchy:
        """Distinct texts, and by step the label of each on the next level, finest first.

        Texts with one label on a level have one on each level above. ``top``: the root's label.
        """
        labels: list[str] = []
        parents: list[Ints] = []
        nodes, firsts = [*texts], [*texts]  # the labels of a level, and a text below each
        for step in (*steps, lambda _: top):
            above: dict[str, int] = {}
            of_nodes = list(map(step, firsts))
            if of_nodes == nodes and parents:
                continue
            parents.append(np.array([above.setdefault(each, len(above)) for each in of_nodes]))
            parents[-1] += len(labels)
            labels += above
            below = dict(zip(reversed(of_nodes), reversed(firsts), strict=True))
            nodes, firsts = [*above], [below[each] for each in above]
            if len(nodes) == 1:
                break
        return _layered(name, [*texts], labels, parents)

    @classmethod
    def flat(cls, values: Sequence[str], name: str) -> Hierarchy:
        """Distinct values right under one root."""
        return _layered(name, list(values), [_TOP], [np.zeros(len(values), np.int64)])

    @classmethod
    def from_order(cls, texts: Sequence[str], line: Floats, name: str) -> Hierarchy:
        """A binary tree over ordered values: each level joins the neighbours of the level below.

        ``texts`` and ``line`` (L,) are the distinct values in ascending order and their positions;
        the label of a node is its first and its last value, "[18, 25]".
        """
        count = len(texts)
        first, last = np.arange(count), np.arange(count)
        labels: list[str] = []
        parents: list[Ints] = []
        shares = [np.zeros(count)]
        width = float(line[-1] - line[0]) or 1.0
        while len(first) > 1:
            parents.append(np.arange(len(first)) // 2 + len(labels))
            last = np.append(last[1::2], last[-1:] if len(last) % 2 else last[:0])
            first = first[::2]
            labels += [
                texts[a] if a == b else f"[{texts[a]}, {texts[b]}]"
                for a, b in zip(first.tolist(), last.tolist(), strict=True)
            ]
            shares.append((line[last] - line[first]) / width)
        if not parents:
            parents, labels = [np.zeros(count, np.int64)], [_TOP]
            shares.append(np.zeros(1))
        labels[-1] = _TOP
        return _layered(name, list(texts), labels, parents, np.concatenate(shares))

    @classmethod
    def from_prefixes(cls, values: Sequence[str], name: str) -> Hierarchy:
        """The trie of distinct texts in ascending order: a node is a common prefix of its leaves.

        Only prefixes at which texts branch are nodes; the root is the prefix that all share.
        """
        shared = _shared_prefixes(values)
        lengths = np.unique(shared)[::-1].tolist() or [0]
        first = np.arange(len(values))
        labels: list[str] = []
        parents: list[Ints] = []
        for length in lengths:
            group = np.concatenate([[0], np.cumsum(shared < length)])
            parents.append(group[first] + len(labels))
            first = np.flatnonzero(np.diff(group, prepend=-1))
            labels += [values[at][:length] for at in first.tolist()]
        return _layered(name, list(values), labels, parents)


@dataclass(frozen=True)
class CodedHierarchy:
    """A hierarchy over the codes of one quasi-identifier, as recoding whole columns needs it.

    Node 0 is the missing value, a leaf right under the root; node n + 1 is node n of the hierarchy.

    levels
        (depth, codes) int32, the node above each code: row 0 holds the code's own leaf, the last
        row the root. Where a branch is shorter its leaf is repeated from below, as the missing
        value is, so that an inner node is on one row only and its children are on the row before.
    ncp, lm
        (nodes,) float64, loss of publishing the node: NCP and Iyengar's. A leaf loses nothing.
    leaves
        (nodes,) int64, leaves under the node; 0 for the missing value.
    weight
        How much the losses of the column count beside those of others.
    """

    levels: Nodes
    ncp: Floats
    lm: Floats
    leaves: NDArray[np.int64]
    weight: float = 1.0

    @classmethod
    def of(
        cls, hierarchy: Hierarchy, order: NDArray[np.int64], weight: float = 1.0
    ) -> CodedHierarchy:
        """The hierarchy over codes 1, 2, ..., the leaves of ``hierarchy`` in this ``order``."""
        above = hierarchy.ancestors[:, order] + 1
        missing = np.zeros((len(above), 1), np.int32)
        missing[-1] = hierarchy.root + 1
        ncp, lm = hierarchy.losses()
        return cls(
            levels=np.ascontiguousarray(np.hstack([missing, above]), np.int32),
            ncp=np.concatenate([[0.0], ncp]),
            lm=np.concatenate([[0.0], lm]),
            leaves=np.concatenate([[0], hierarchy.leaf_count]).astype(np.int64),
            weight=weight,
        )

    def parents(self) -> Nodes:
        """(nodes,) the node above each; -1 above the root and above nodes that no code is under."""
        parent = np.full(self.nodes, -1, np.int32)
        for child, above in zip(self.levels[:-1], self.levels[1:], strict=True):
            parent[child] = np.where(child == above, parent[child], above)
        return parent

    @property
    def height(self) -> int:
        """The level of the root; levels count from 0, the values themselves."""
        return len(self.levels) - 1

    @property
    def root(self) -> int:
        """The node above all others."""
        return int(self.levels[-1, 0])

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return len(self.leaves)


def _shared_prefixes(values: Sequence[str]) -> NDArray[np.int64]:
    """(L - 1,): the leading characters that each text shares with the one before."""
    step = max(1, _COMPARED_LETTERS // max(1, *map(len, values)))
    blocks = [values[at : at + step + 1] for at in range(0, len(values) - 1, step)]
    return np.concatenate([np.zeros(0, np.int64), *map(_shared_within, blocks)])


def _shared_within(values: Sequence[str]) -> NDArray[np.int64]:
    letters = np.array(values, dtype=np.str_)
    width = max(1, letters.dtype.itemsize // 4)
    table = letters.view(np.uint32).reshape(len(values), width)
    same = table[1:] == table[:-1]
    same &= table[1:] != 0  # padding is no character
    return np.where(same.all(axis=1), width, np.argmin(same, axis=1)).astype(np.int64)


def _add_chain(
    inner: dict[str, str], chain: tuple[str, ...], root: str, where: str, first: str
) -> None:
    """Add the ancestors of a leaf, lowest first, to ``inner``, each with its parent's label.

    ``where`` and ``first``: for errors, the file and the leaf's row, and the first row.
    """
    labels = [label for label, _ in groupby(chain)]
    if len(set(labels)) < len(labels):
        raise HierarchyError(f"{where} names an ancestor twice, a cycle; name each ancestor once")
    if labels[-1] != root:
        raise HierarchyError(
            f"{where} ends at another root than {first}; end every row with the same root, and "
            f"remove {first} if it is a header"
        )
    for level, (label, parent) in enumerate(pairwise([*labels, root]), 1):
        if inner.setdefault(label, parent) != parent:
            raise HierarchyError(
                f"{where} gives its ancestor {level} another parent than an earlier one does; give "
                "the node one parent, or give the two nodes different names"
            )


def _paths(
    rows: Iterable[Sequence[str]], name: str, word: str
) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    """The number, the leaf and its ancestors, lowest first, of each row that is not blank."""
    most = limits.limit("hierarchy_levels")
    for at, row in enumerate(rows, start=1):
        length = len(row)
        while length and not row[length - 1]:
            length -= 1
        if not length:
            continue
        if length > most:
            raise HierarchyError(_too_deep(name, f"{word} {at} names {length:,} levels"))
        path = tuple(row[:length])
        if not all(path):
            raise HierarchyError(
                f"{name}: {word} {at} has an empty cell before its last; fill or remove it"
            )
        if length == 1:
            raise HierarchyError(
                f"{name}: {word} {at} has a leaf without an ancestor; write its path to the root, "
                f"such as LEAF;{_TOP}"
            )
        yield at, path[0], path[1:]


def _too_deep(name: str, met: str) -> str:
    return limits.exceeded("hierarchy_levels", f"{name}: {met}", "remove some levels")


def _tree_rows(tree: object, name: str) -> Iterator[list[str]]:
    """The rows of a JSON tree: each leaf with its ancestors."""
    # A stack, as a tree may be deeper than Python's recursion limit; reversed to keep the order.
    most = limits.limit("hierarchy_levels")
    stack: list[tuple[object, tuple[str, ...]]] = [(tree, ())]
    while stack:
        node, above = stack.pop()
        if len(above) >= most:
            raise HierarchyError(_too_deep(name, f"has more than {most:,} levels"))
        if isinstance(node, (list, tuple)):
            stack.extend((child, above) for child in reversed(node))
            continue
        if isinstance(node, Mapping) and not _is_named(node):
            stack.extend(
                ({"name": label, "children": below}, above)
                for label, below in reversed(list(node.items()))
            )
            continue
        label, children = _named(node, name)
        if children:
            stack.append((children, (label, *above)))
        else:
            yield [label, *above]


def _is_named(node: Mapping[Any, Any]) -> bool:
    is_name = isinstance(node.get("name"), (str, int, float))
    return is_name and set(node) <= {"name", "children"}


def _named(node: object, name: str) -> tuple[str, object]:
    """(label, children) of a node in its own form or of a bare leaf."""
    label = node["name"] if isinstance(node, Mapping) else node
    if isinstance(label, bool) or not isinstance(label, (str, int, float)):
        raise HierarchyError(
            f"{name}: a node is a text, a mapping of labels, or "
            f'{{"name": ..., "children": [...]}}, not {type(label).__name__}'
        )
    return str(label), node.get("children") if isinstance(node, Mapping) else None


def _assembled(
    name: str,
    leaves: list[str],
    inner_labels: list[str],
    leaf_parents: Sequence[int] | Ints,
    inner_parents: Sequence[int] | Ints,
    share: Floats | None = None,
) -> Hierarchy:
    """The hierarchy of parents that number the inner nodes from 0, -1 above the root."""
    count = len(leaves)
    parent = np.concatenate([leaf_parents, inner_parents]).astype(np.int32)
    parent[parent >= 0] += count
    ancestors = _ancestors(parent, count, name)
    nodes = len(parent)
    first_leaf = np.empty(nodes, dtype=np.int32)
    leaf_count = np.zeros(nodes, dtype=np.int32)
    in_order = np.arange(count, dtype=np.int32)
    for level in ancestors:
        # Of repeated indices the last assignment wins, so assign the first leaf last.
        first_leaf[level[::-1]] = in_order[::-1]
        np.maximum(
            leaf_count, np.bincount(level, minlength=nodes), out=leaf_count, casting="unsafe"
        )
    tree_order = np.empty(count, dtype=np.int32)
    tree_order[np.lexsort(first_leaf[ancestors])] = in_order
    labels = [*leaves, *inner_labels]
    return Hierarchy(name, leaves, labels, parent, leaf_count, ancestors, tree_order, share)


def _layered(
    name: str,
    leaves: list[str],
    inner_labels: list[str],
    parents: Sequence[Ints],
    share: Floats | None = None,
) -> Hierarchy:
    """The hierarchy of levels: the parents of each level's nodes, of the leaves first.

    Parents number the inner nodes from 0, level by level; the last one is the root.
    """
    inner_parents = np.concatenate([*parents[1:], [-1]])
    return _assembled(name, leaves, inner_labels, parents[0], inner_parents, share)


def _ancestors(parent: Nodes, leaves: int, name: str) -> Nodes:
    """The (depth, leaves) table of ancestors; leaves of shorter branches are repeated."""
    distance = np.zeros(len(parent), dtype=np.int32)
    above = parent
    while (below_root := above >= 0).any():
        distance += below_root
        above = np.where(below_root, parent[above], np.int32(-1))
    longest = int(distance[:leaves].max())
    if (longest + 1) * leaves > limits.limit("hierarchy_cells"):
        met = f"{name}: {longest + 1:,} levels over {leaves:,} values"
        remedy = "make the values coarser, or use another generalization"
        raise HierarchyError(limits.exceeded("hierarchy_cells", met, remedy))
    rows = [np.arange(leaves, dtype=np.int32)]
    for to_root in range(longest, 0, -1):
        below = rows[-1]
        rows.append(np.where(distance[below] == to_root, parent[below], below))
    return np.stack(rows)


def _laddered(
    values: NDArray[Any], ladder: Sequence[float], origin: float, name: str, decimals: DecimalUnits
) -> Hierarchy:
    whole = values.dtype.kind in "iu" and decimals.digits == 0
    start = decimals.units(origin)
    widths = [decimals.units(width) for width in ladder]
    if whole:
        bins = (values.astype(np.int64) - start) // widths[0]
    else:
        bins = decimals.bins(values.astype(np.float64), widths[0], start)
    parents: list[Ints] = []
    labels: list[str] = []
    spans = [np.zeros(len(values))]
    for finer, width in pairwise([widths[0], *widths]):
        # From the bins of the level below, not from the values, so that intervals nest exactly.
        bins, index = np.unique(bins // (width // finer), return_inverse=True)
        parents.append(index + len(labels))
        labels += _interval_labels(bins, width, start, decimals, whole)
        is_value = whole and width == 1
        spans.append(np.full(len(bins), 0.0 if is_value else float(width)))
    extent = float(bins[-1] - bins[0] + 1) * widths[-1]  # of the widest intervals in use
    parents.append(np.full(len(bins), len(labels)))
    leaves = [str(value) for value in values.tolist()]
    share = np.concatenate([*spans, [extent]]) / extent
    return _layered(name, leaves, [*labels, _TOP], parents, share)


def _interval_labels(
    bins: NDArray[np.int64], width: int, start: int, decimals: DecimalUnits, whole: bool
) -> list[str]:
    low = start + bins * width
    high = low + width
    if not whole:
        edges = zip(decimals.floats(low).tolist(), decimals.floats(high).tolist(), strict=True)
        return [f"[{a}, {b})" for a, b in edges]
    if width == 1:
        return [str(a) for a in low.tolist()]
    return [f"[{a}, {b - 1}]" for a, b in zip(low.tolist(), high.tolist(), strict=True)]
