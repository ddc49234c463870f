"""Top-down specialization on counted combinations (two-phase TDS, sections 3.2 and 5).

The classes of a vector of cuts lie contiguous in the combinations, which are moved themselves and
not an index of them: a class is read from the first to the last, however finely it was cut. Nodes
of all taxonomies are numbered through.

A specialization that is invalid stays so. Whatever is specialized meanwhile only parts classes, and
a class that some part of it would have been too small for, or would break a criterion in, leaves a
part of that part which does: size, the kinds of l-diversity (Machanavajjhala et al. 2006) and
t-closeness (Li et al. 2007), whose distances are convex, all hold for a union wherever they hold
for its parts. So it is never looked at again, and the attributes of a class become fewer and fewer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mondrian_ops.core.kernels.criteria import JIT, LEAN, group_holds
from mondrian_ops.core.kernels.model import Criteria, Floats, Ints

Nodes = NDArray[np.int32]
Words = NDArray[np.uint64]

NONE = -1
UNSEEN = np.iinfo(np.int64).max

# A class's children are counted side by side where the table of their sensitive values is small
# enough to stay in a cache, and not much larger than the class.
TABLE = 1 << 14
SPARSE = 4


class Combinations(NamedTuple):
    """Packed combinations of codes; the quasi-identifier comes first, then sensitive columns."""

    words: Words  # (words, combinations)
    rows: Ints  # (combinations,)
    word: Ints  # (columns,)
    shift: Words  # (columns,)
    mask: Words  # (columns,)


class Forest(NamedTuple):
    """The taxonomies of all attributes. The codes of attribute a start at ``first[a]``."""

    first: Ints  # (attributes + 1,)
    attribute: Nodes  # (nodes,)
    child_first: Ints  # (nodes + 1,)
    children: Nodes
    member_first: Ints  # (nodes,): the codes under a node are members[first:stop]
    member_stop: Ints  # (nodes,)
    members: Nodes  # (codes,)
    gain: Floats  # (nodes,): information gain of specializing the node


class Work(NamedTuple):
    """The cuts so far, and what is known of their classes and of the next specializations."""

    cut: Nodes  # (codes,)
    below: Nodes  # (codes,): the child of the node of the cut, the node itself where it is a leaf
    valid: NDArray[np.bool_]  # (nodes,): nodes of the cut whose specialization is valid
    least: Ints  # (nodes,): rows of the smallest class with the node after its specialization
    candidates: Nodes  # (nodes,): the valid ones, and some that no longer are
    steps: Nodes  # (nodes,): the nodes specialized, in order
    start: Ints  # (classes,)
    stop: Ints  # (classes,)
    newest: Nodes  # (nodes,): a class with the node, NONE without
    older: Nodes  # (attributes, classes): the next class with the same node of the attribute
    size: Ints  # (nodes,): zero between uses
    place: Ints  # (nodes,)
    bound: Ints  # (nodes + 1,)
    touched: Nodes  # (nodes,)
    counts: Ints  # (sensitive codes,): zero between uses
    table: Ints  # (TABLE,): children times sensitive codes
    surplus: Floats  # (nodes of a sensitive hierarchy,)
    deficit: Floats


def new_work(forest: Forest, cut: Nodes, classes: int, criteria: Criteria) -> Work:
    """Working memory for at most ``classes`` classes, at the ``cut`` that is started from."""
    nodes = len(forest.attribute)
    attributes = len(forest.first) - 1
    tree = int(np.diff(criteria.parent_first).max(initial=1))
    return Work(
        cut=cut,
        below=cut.copy(),
        valid=np.zeros(nodes, np.bool_),
        least=np.full(nodes, UNSEEN),
        candidates=np.empty(nodes, np.int32),
        steps=np.empty(nodes, np.int32),
        start=np.empty(classes, np.int64),
        stop=np.empty(classes, np.int64),
        newest=np.full(nodes, NONE, np.int32),
        older=np.empty((attributes, classes), np.int32),
        size=np.zeros(nodes, np.int64),
        place=np.empty(nodes, np.int64),
        bound=np.empty(nodes + 1, np.int64),
        touched=np.empty(nodes, np.int32),
        counts=np.zeros(int(criteria.codes.max(initial=1)), np.int64),
        table=np.empty(TABLE, np.int64),
        surplus=np.zeros(tree),
        deficit=np.zeros(tree),
    )


@njit(**LEAN)
def code_of(combos, column, i):
    """The code of a column in a combination."""
    word = combos.words[combos.word[column], i]
    return np.int64((word >> combos.shift[column]) & combos.mask[column])


@njit(**LEAN)
def tally_children(combos, forest, a, start, stop, work):
    """Rows of a class that each child of its node has: ``size`` of the ``touched`` nodes.

    Returns how many children have any.
    """
    first = forest.first[a]
    found = 0
    for i in range(start, stop):
        node = work.below[first + code_of(combos, a, i)]
        before = work.size[node]
        if before == 0:
            work.touched[found] = node
            found += 1
        work.size[node] = before + combos.rows[i]
    return found


@njit(**LEAN)
def swap(combos, i, j):
    words, rows = combos.words, combos.rows
    for word in range(words.shape[0]):
        words[word, i], words[word, j] = words[word, j], words[word, i]
    rows[i], rows[j] = rows[j], rows[i]


@njit(**LEAN)
def arrange(combos, forest, a, start, stop, table, work):
    """Bring the combinations of a class with the same node in ``table`` together.

    Node ``touched[g]`` has ``bound[g]`` to ``bound[g + 1]``; returns how many nodes there are.
    """
    first = forest.first[a]
    groups = 0
    for i in range(start, stop):
        node = table[first + code_of(combos, a, i)]
        if work.size[node] == 0:
            work.touched[groups] = node
            groups += 1
        work.size[node] += 1
    work.bound[0] = start
    for g in range(groups):
        node = work.touched[g]
        work.place[node] = work.bound[g]
        work.bound[g + 1] = work.bound[g] + work.size[node]
        work.size[node] = 0
    for g in range(groups - 1):  # the last is in place when all others are
        node = work.touched[g]
        i = work.place[node]
        while i < work.bound[g + 1]:
            other = table[first + code_of(combos, a, i)]
            if other == node:
                i += 1
            else:
                swap(combos, i, work.place[other])
                work.place[other] += 1
    return groups


@njit(**LEAN)
def class_holds(combos, forest, start, stop, criteria, work):
    """Whether combinations that are to be a class satisfy every criterion on sensitive columns."""
    attributes = forest.first.size - 1
    for j in range(criteria.kind.size):
        column = attributes + criteria.column[j]
        total = distinct = 0
        for i in range(start, stop):
            s = code_of(combos, column, i)
            distinct += work.counts[s] == 0
            work.counts[s] += combos.rows[i]
            total += combos.rows[i]
        holds = group_holds(work.counts, total, distinct, criteria, j, work.surplus, work.deficit)
        for i in range(start, stop):
            work.counts[code_of(combos, column, i)] = 0
        if not holds:
            return False
    return True


@njit(**LEAN)
def children_hold(combos, forest, a, start, stop, found, criteria, work):
    """Whether the ``found`` parts that specializing attribute ``a`` makes of a class, which were
    just tallied, satisfy the criteria."""
    if found == 1:
        return True
    if found * work.counts.size <= min(TABLE, SPARSE * (stop - start)):
        return tabled_children_hold(combos, forest, a, start, stop, found, criteria, work)
    arrange(combos, forest, a, start, stop, work.below, work)
    for g in range(found):
        if not class_holds(combos, forest, work.bound[g], work.bound[g + 1], criteria, work):
            return False
    return True


@njit(**LEAN)
def tabled_children_hold(combos, forest, a, start, stop, found, criteria, work):
    """The same, without moving the combinations: all parts are counted in one table."""
    first = forest.first[a]
    codes = work.counts.size
    for g in range(found):
        work.place[work.touched[g]] = g * codes
    for j in range(criteria.kind.size):
        column = forest.first.size - 1 + criteria.column[j]
        work.table[: found * codes] = 0
        for i in range(start, stop):
            row = work.place[work.below[first + code_of(combos, a, i)]]
            work.table[row + code_of(combos, column, i)] += combos.rows[i]
        for g in range(found):
            counts = work.table[g * codes : (g + 1) * codes]
            total = distinct = 0
            for s in range(codes):
                total += counts[s]
                distinct += counts[s] > 0
            if not group_holds(counts, total, distinct, criteria, j, work.surplus, work.deficit):
                return False
    return True


@njit(**LEAN)
def weigh(combos, forest, c, criteria, work):
    """What class ``c`` says of the specializations of its nodes: A_c (equation 4), or invalid."""
    start, stop = work.start[c], work.stop[c]
    for a in range(forest.first.size - 1):
        node = work.cut[forest.first[a] + code_of(combos, a, start)]
        if not work.valid[node]:
            continue
        found = tally_children(combos, forest, a, start, stop, work)
        least = work.least[node]
        for t in range(found):
            child = work.touched[t]
            least = min(least, work.size[child])
            work.size[child] = 0
        work.least[node] = least
        work.valid[node] = least >= criteria.k and (
            criteria.kind.size == 0
            or children_hold(combos, forest, a, start, stop, found, criteria, work)
        )


@njit(**LEAN)
def link(combos, forest, c, a, work):
    """Enter a class into the list of its node of attribute ``a``."""
    node = work.cut[forest.first[a] + code_of(combos, a, work.start[c])]
    work.older[a, c] = work.newest[node]
    work.newest[node] = c


@njit(**LEAN)
def split(combos, forest, c, a, classes, work):
    """Part class ``c`` by the cut of attribute ``a``; returns how many classes there are then.

    The first part keeps the number, and with it its places in the lists of the other attributes:
    all parts have their nodes.
    """
    groups = arrange(combos, forest, a, work.start[c], work.stop[c], work.cut, work)
    for g in range(groups):
        part = c if g == 0 else classes
        classes += g > 0
        work.start[part] = work.bound[g]
        work.stop[part] = work.bound[g + 1]
        if g > 0:
            for b in range(forest.first.size - 1):
                if b != a:
                    link(combos, forest, part, b, work)
        link(combos, forest, part, a, work)
    return classes


@njit(**LEAN)
def open_node(forest, node, work):
    """Let the specialization of a node of the cut be a candidate; false where it is a leaf."""
    first, stop = forest.child_first[node], forest.child_first[node + 1]
    for at in range(forest.member_first[node], forest.member_stop[node]):
        work.cut[forest.members[at]] = node
    for at in range(first, stop):
        child = forest.children[at]
        for member in range(forest.member_first[child], forest.member_stop[child]):
            work.below[forest.members[member]] = child
    work.valid[node] = stop > first
    return stop > first


@njit(**LEAN)
def best(forest, anonymity, count, work):
    """The valid candidate of greatest IGPL (equation 1), NONE without; and how many are left.

    Of equal ones the lowest number, which is that of the first attribute, then of the first node.
    """
    chosen, greatest = NONE, -1.0
    left = 0
    for at in range(count):
        node = work.candidates[at]
        if not work.valid[node]:
            continue
        work.candidates[left] = node
        left += 1
        loss = anonymity - min(anonymity, work.least[node])
        score = forest.gain[node] / (loss + 1.0)
        if score > greatest or (score == greatest and node < chosen):
            chosen, greatest = node, score
    return chosen, left


@njit(**LEAN)
def perform(combos, forest, node, classes, criteria, count, work):
    """Specialize ``node``; returns how many classes and candidates there are then."""
    a = forest.attribute[node]
    work.valid[node] = False
    for at in range(forest.child_first[node], forest.child_first[node + 1]):
        child = forest.children[at]
        if open_node(forest, child, work):
            work.candidates[count] = child
            count += 1
    c = work.newest[node]
    while c != NONE:
        following = work.older[a, c]
        before = classes
        classes = split(combos, forest, c, a, classes, work)
        weigh(combos, forest, c, criteria, work)
        for part in range(before, classes):
            weigh(combos, forest, part, criteria, work)
        c = following
    return classes, count


@njit(**LEAN)
def start_classes(combos, forest, criteria, work):
    """The classes of the cut that is started from; returns how many, and the least rows of one.

    0 classes where one is too small or breaks a criterion.
    """
    classes, anonymity = 1, UNSEEN
    work.start[0], work.stop[0] = 0, combos.rows.size
    for a in range(forest.first.size - 1):
        for c in range(classes):
            groups = arrange(combos, forest, a, work.start[c], work.stop[c], work.cut, work)
            if classes + groups - 1 > work.start.size:
                return 0, 0
            for g in range(groups):
                part = c if g == 0 else classes
                classes += g > 0
                work.start[part] = work.bound[g]
                work.stop[part] = work.bound[g + 1]
    for c in range(classes):
        start, stop = work.start[c], work.stop[c]
        rows = 0
        for i in range(start, stop):
            rows += combos.rows[i]
        anonymity = min(anonymity, rows)
        if not class_holds(combos, forest, start, stop, criteria, work):
            return 0, 0
        for a in range(forest.first.size - 1):
            link(combos, forest, c, a, work)
    return (classes, anonymity) if anonymity >= criteria.k else (0, 0)


@njit(**LEAN)
def specialize(combos, forest, criteria, work):
    """Specialize until nothing valid is left (algorithm 4), the best of every round.

    Changes the cut and permutes the combinations. Returns the specializations performed and the
    classes; 0 classes where the cut that is started from breaks what is asked.
    """
    classes, anonymity = start_classes(combos, forest, criteria, work)
    if classes == 0:
        return 0, 0
    count = 0
    for node in range(forest.attribute.size):
        first, stop = forest.member_first[node], forest.member_stop[node]
        if (
            first < stop
            and work.cut[forest.members[first]] == node
            and open_node(forest, node, work)
        ):
            work.candidates[count] = node
            count += 1
    for c in range(classes):
        weigh(combos, forest, c, criteria, work)
    steps = 0
    chosen, count = best(forest, anonymity, count, work)
    while chosen != NONE:
        anonymity = min(anonymity, work.least[chosen])
        classes, count = perform(combos, forest, chosen, classes, criteria, count, work)
        work.steps[steps] = chosen
        steps += 1
        chosen, count = best(forest, anonymity, count, work)
    return steps, classes


@njit(**JIT)
def dealt(rows, part, parts, seed):
    """How many rows of each combination fall to ``part``, each row to any of ``parts`` alike.

    A row's number is hashed (splitmix64): a part is dealt without the others, and the same
    wherever that is done.
    """
    found = np.zeros(rows.size, np.int64)
    state = mixed(np.uint64(seed) + np.uint64(0x9E3779B97F4A7C15))
    for i in range(rows.size):
        for _ in range(rows[i]):
            state += np.uint64(0x9E3779B97F4A7C15)
            high = mixed(state) >> np.uint64(32)
            found[i] += np.int64((high * np.uint64(parts)) >> np.uint64(32)) == part
    return found


@njit(**LEAN)
def mixed(z):
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
