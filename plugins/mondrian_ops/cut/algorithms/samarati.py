"""Samarati's search: one level of generalization per quasi-identifier, a few rows suppressed.

Samarati 2001 (TKDE 13(6)), as implemented by J. Huang (algorithm 1 and section 4):
a node of the lattice is good when at most MaxSup rows lie in classes that break a criterion; these
are suppressed. The choices are the first good node at the least height, the one of least loss at
that height ("refined"), and the one of least loss in the whole lattice.

Loss is Huang's: LM summed over the attributes, each averaged over all rows, and one per
attribute *added* for every suppressed row, whose generalized loss remains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.cut.criteria import CountedCriterion, CutCriterion, DistinctDiversity, Privacy
from mondrian_ops.cut.lattice import Lattice, Levels
from mondrian_ops.cut.person_values import PersonsValues
from mondrian_ops.data.frequency_set import FrequencySet
from mondrian_ops.data.hierarchy import CodedHierarchy
from mondrian_ops.data.sensitive_domain import SensitiveDomain
from mondrian_ops.errors import PrivacyError
from mondrian_ops.late_methods import dataclass

Rank = tuple[float, int, Levels]
"""Loss, suppressed rows, levels."""

_DIGITS = 12  # losses are sums of rounded numbers: closer ones are equal
_ROUNDING = 10.0**-_DIGITS
_BLOCK = 1024  # nodes examined at a time: most are known to be bad


@dataclass(frozen=True)
class SearchResult:
    """The chosen node, and the effort of the search.

    levels
        One per quasi-identifier; 0 are the values themselves.
    suppressed
        (attributes, classes) int32, the hierarchy nodes of the classes that are not published.
    suppressed_rows, classes
        Rows in those; classes that are published.
    loss
        LM summed over the attributes by their weights, with one per attribute added for each
        suppressed row, over all rows.
    height, nodes, checked
        The sum of the levels; nodes of the lattice, and of how many the classes were counted.
    """

    levels: Levels
    suppressed: NDArray[np.int32]
    suppressed_rows: int
    classes: int
    loss: float
    height: int
    nodes: int
    checked: int


def search(
    frequencies: FrequencySet,
    hierarchies: Sequence[CodedHierarchy],
    privacy: Privacy,
    domains: Sequence[SensitiveDomain],
    max_suppressed: int,
    choice: str,
    of_persons: PersonsValues | None = None,
) -> SearchResult:
    """The levels to generalize to: ``choice`` is first, minimal or optimal.

    ``of_persons``: what l asks of the values of persons, the last of ``domains``.

    At least one row is published, even if ``max_suppressed`` allows to suppress all. Of the nodes
    of equal loss, the one with the fewest suppressed rows wins, then the one with the least levels.

    Raises PrivacyError when no node is good, JobError when the lattice is too large to search.
    """
    if of_persons is not None and not of_persons.concern(frequencies):
        of_persons = None
    lattice = Lattice(frequencies, hierarchies, privacy, domains, of_persons)
    allowed = min(max_suppressed, frequencies.total - 1)
    monotone = _is_monotone(privacy, allowed) and (
        of_persons is None or _is_each_in_one_class(frequencies, len(hierarchies))
    )
    nodes = _Nodes(lattice, frequencies.total, allowed, monotone)
    levels = _CHOICES[choice](nodes)
    if levels is None:
        raise PrivacyError(
            f"samarati.max_suppressed: at every combination of levels, more than {allowed} of "
            f"{frequencies.total} rows are in classes that do not satisfy "
            f"{' and '.join(privacy.describe())}{'' if of_persons is None else ' of persons'}; "
            "raise samarati.max_suppressed, lower k or l, or "
            f"raise t{privacy.remedy_for_missing(domains)}"
        )
    classes = lattice.classes(levels)
    return SearchResult(
        levels=levels,
        suppressed=classes.nodes[:, ~classes.holds],
        suppressed_rows=int(classes.rows[~classes.holds].sum()),
        classes=int(np.count_nonzero(classes.holds)),
        loss=nodes.rank(levels)[0],
        height=sum(levels),
        nodes=lattice.size,
        checked=lattice.counted_nodes,
    )


def _is_monotone(privacy: Privacy, allowed: int) -> bool:
    """Whether every node above a good one is good.

    A step up unites classes. A union of classes that satisfy the criteria satisfies them: it has
    the rows and the values of both, entropy is concave, distances from the whole are convex
    (Machanavajjhala et al. 2006, section 4.3; Li et al. 2007, section 4.1). So with nothing
    suppressed goodness is monotone for every criterion. With suppression, a class that satisfies
    them may be united with one that does not: it keeps its k rows and l distinct values, but
    entropy, the weight of the most frequent value and the distance from the whole may get worse, so
    that rows published at the lower node would be suppressed. Of a package's criterion nothing is
    known.
    """
    kept = CutCriterion if allowed == 0 else DistinctDiversity
    return all(
        isinstance(criterion, kept) and not isinstance(criterion, CountedCriterion)
        for criterion in privacy.criteria
    )


def _is_each_in_one_class(frequencies: FrequencySet, attributes: int) -> bool:
    """Whether all rows of each person have the same quasi-identifiers.

    If not, the person has more values in a union of two classes than in each of them, so that some
    values may be enough for the persons of the union which were not for those of the classes.
    """
    sizes = frequencies.sizes
    sensitive = range(attributes, len(sizes) - 1)
    of_persons = frequencies.recoded({at: np.zeros(sizes[at], np.int64) for at in sensitive})
    persons = of_persons.column(len(sizes) - 1)
    return len(persons) == len(np.unique(persons))


class _Nodes:
    """Which nodes of a lattice are good or bad, as far as known; others are counted when needed."""

    def __init__(self, lattice: Lattice, rows: int, allowed: int, monotone: bool) -> None:
        self.lattice = lattice
        self.monotone = monotone
        self.bad = np.zeros(lattice.shape, np.bool_)
        self.good = np.zeros(lattice.shape, np.bool_)
        self._allowed = allowed
        self._failing: dict[Levels, int] = {}
        self._per_row = lattice.weight / rows

    def is_good(self, levels: Levels) -> bool:
        """Whether few enough rows are in classes that fail."""
        if not self.good[levels] and not self.bad[levels]:
            self.lowest_good(levels)
        return bool(self.good[levels])

    def rank(self, levels: Levels) -> Rank:
        """Ranks nodes by loss, then by suppressed rows, then by levels."""
        failing = self._failing_rows(levels)
        loss = float(self.lattice.losses[levels]) + self._per_row * failing
        return round(loss, _DIGITS), failing, levels

    def _failing_rows(self, levels: Levels) -> int:
        if levels not in self._failing:
            failing = self.lattice.failing_rows(levels)
            self._failing[levels] = failing
            self._learn(levels, failing <= self._allowed)
        return self._failing[levels]

    def _learn(self, levels: Levels, is_good: bool) -> None:
        marks = self.good if is_good else self.bad
        if not self.monotone:
            marks[levels] = True
        elif is_good:
            marks[tuple(slice(level, None) for level in levels)] = True
        else:
            marks[tuple(slice(level + 1) for level in levels)] = True

    def at_height(self, height: int) -> list[Levels]:
        """Nodes of a height that are not known to be bad, in the order of nested loops."""
        places = np.argwhere((self.lattice.heights == height) & ~self.bad)
        return [tuple(levels) for levels in places.tolist()]

    def by_loss(self) -> Iterator[Levels]:
        """Nodes by ascending loss, except those known to be bad when their turn comes."""
        order = np.argsort(self.lattice.losses, axis=None, kind="stable")
        bad = self.bad.reshape(-1)  # the same memory
        for start in range(0, len(order), _BLOCK):
            block = order[start : start + _BLOCK]
            for place in block[~bad[block]].tolist():
                if not bad[place]:
                    yield self.lattice.node(place)

    def lowest_good(self, levels: Levels, most: float = np.inf) -> Levels | None:
        """The lowest good node, if any, of a path from ``levels`` upwards.

        A path is bisected, as in Flash (Kohlmayer et al. 2012): most of the lattice lies below a
        bad node or above a good one of some path, and is never counted.
        """
        path = self._path(levels, most) if self.monotone else [levels]
        low, high = 0, len(path)
        while low < high:
            middle = (low + high) // 2
            if self._failing_rows(path[middle]) <= self._allowed:
                high = middle
            else:
                low = middle + 1
        return path[low] if low < len(path) else None

    def _path(self, levels: Levels, most: float) -> list[Levels]:
        """From ``levels`` up to the nodes known to be good, or to a loss of ``most``.

        Each step is the one that loses least.
        """
        losses, path = self.lattice.losses, [levels]
        while True:
            above = [
                node
                for node in self.lattice.above(path[-1])
                if losses[node] <= most and not self.good[node]
            ]
            if not above:
                return path
            path.append(min(above, key=losses.__getitem__))


def _first(nodes: _Nodes) -> Levels | None:
    return next(filter(nodes.is_good, nodes.at_height(_least_height(nodes))), None)


def _minimal(nodes: _Nodes) -> Levels | None:
    at_height = nodes.at_height(_least_height(nodes))
    by_loss = sorted(at_height, key=nodes.lattice.losses.__getitem__)
    return _best(nodes, by_loss, lambda levels, _most: levels if nodes.is_good(levels) else None)


def _optimal(nodes: _Nodes) -> Levels | None:
    return _best(nodes, nodes.by_loss(), nodes.lowest_good)


_CHOICES = {"first": _first, "minimal": _minimal, "optimal": _optimal}


def _best(
    nodes: _Nodes, by_loss: Iterable[Levels], good: Callable[[Levels, float], Levels | None]
) -> Levels | None:
    """The node of lowest rank among the results of ``good``, if any.

    ``by_loss`` are nodes by ascending loss. ``good`` maps one of them to a good node of at least
    its loss or to None; it may ignore nodes that lose more than its second argument.
    """
    best: Rank | None = None
    for levels in by_loss:
        most = np.inf if best is None else best[0] + _ROUNDING
        if nodes.lattice.losses[levels] > most:
            break  # suppression only adds to this
        node = good(levels, most)
        if node is not None:
            rank = nodes.rank(node)
            best = rank if best is None else min(best, rank)
    return best and best[2]


def _least_height(nodes: _Nodes) -> int:
    """The least height with a good node; that of the top where none is below it.

    The binary search of algorithm 1. Where goodness is not monotone it could miss that height, so
    all heights are tried from below.
    """

    def has_good(height: int) -> bool:
        return any(map(nodes.is_good, nodes.at_height(height)))

    low, high = 0, sum(nodes.lattice.top)
    while low < high:
        middle = (low + high) // 2 if nodes.monotone else low
        if has_good(middle):
            high = middle
        else:
            low = middle + 1
    return low
