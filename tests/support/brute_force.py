"""What a release must be, worked out in plain Python: no NumPy, no C, no code shared.

`mondrian` is the algorithm of the seed's figure 7 on lists of values; the criteria are the formulas
of their papers on Counters; `covers` and `losses` read published text back against the originals.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from statistics import mean, pstdev
from typing import Any

TOLERANCE = 1e-9


# Attributes


@dataclass(frozen=True)
class Interval:
    """Numbers; ``span`` is the range over the whole dataset."""

    span: float

    def place(self, value: Any) -> Any:
        return value

    def loss(self, values: set[Any]) -> float:
        return (max(values) - min(values)) / self.span if self.span else 0.0

    def representativity(self, values: set[Any], mixed: bool) -> float:
        return 1.0 if mixed else self.loss(values)


@dataclass(frozen=True)
class Tree:
    """Leaves in the order of the attribute, each with its chain of ancestors up to the root."""

    chains: Mapping[str, Sequence[str]]
    order: Sequence[str]
    present: int

    def place(self, value: str) -> int:
        return self.order.index(value)

    def loss(self, values: set[str]) -> float:
        if len(values) == 1:
            return 0.0
        return (leaves_below(self.chains, ancestor(self.chains, values)) - 1) / max(
            1, len(self.chains) - 1
        )

    def representativity(self, values: set[str], mixed: bool) -> float:
        return (len(values) + mixed) / self.present


@dataclass(frozen=True)
class Set:
    """Values of a domain in ascending order."""

    domain: Sequence[Any]

    def place(self, value: Any) -> int:
        return self.domain.index(value)

    def loss(self, values: set[Any]) -> float:
        return math.log(len(values)) / math.log(max(2, len(self.domain)))

    def representativity(self, values: set[Any], mixed: bool) -> float:
        return (len(values) + mixed) / len(self.domain)


@dataclass(frozen=True)
class Prefix:
    """Texts of a domain in ascending order."""

    domain: Sequence[str]

    def place(self, value: str) -> str:
        return value

    def loss(self, values: set[str]) -> float:
        if len(values) == 1:
            return 0.0
        below = sum(text.startswith(common_prefix(values)) for text in self.domain)
        return (below - 1) / max(1, len(self.domain) - 1)

    def representativity(self, values: set[str], mixed: bool) -> float:
        return (len(values) + mixed) / len(self.domain)


def common_prefix(texts: Iterable[str]) -> str:
    """The longest text that all of them begin with."""
    first, *others = texts
    length = len(first)
    while not all(text.startswith(first[:length]) for text in others):
        length -= 1
    return first[:length]


def ancestor(chains: Mapping[str, Sequence[str]], values: set[str]) -> str:
    """Label of the lowest common ancestor of some leaves."""
    if len(values) == 1:
        return next(iter(values))
    first, *rest = (chains[value] for value in values)
    return next(label for label in first if all(label in chain for chain in rest))


def leaves_below(chains: Mapping[str, Sequence[str]], label: str) -> int:
    """Leaves under a node, 1 for a leaf."""
    return sum(label in chain for chain in chains.values()) if label not in chains else 1


# Mondrian

Row = tuple[Any, ...]
Holds = Callable[[list[int]], bool]


def mondrian(
    rows: Sequence[Row], attributes: Sequence[Any], policy: str, holds: Holds
) -> set[frozenset[int]]:
    """The classes, as sets of row numbers; ``holds`` says whether some rows may be a class."""

    def finished(node: list[int]) -> list[frozenset[int]]:
        sides = _cut(rows, attributes, policy, holds, node)
        if sides is None:
            return [frozenset(node)]
        return finished(sides[0]) + finished(sides[1])

    return set(finished(list(range(len(rows)))))


def _cut(rows, attributes, policy, holds, node) -> tuple[list[int], list[int]] | None:
    for a in range(len(attributes)):
        missing = [i for i in node if rows[i][a] is None]
        present = [i for i in node if rows[i][a] is not None]
        if missing and present and holds(missing) and holds(present):
            return missing, present
    offers = []
    for a, attribute in enumerate(attributes):
        cuts = [cut for cut in _cuts(rows, attribute, a, node) if all(map(holds, cut))]
        if not cuts:
            continue
        distinct = len({rows[i][a] for i in node})
        score, best = _best(rows, attribute, a, node, cuts, policy)
        offers.append((score, distinct, -a, best))
    return max(offers, key=lambda offer: offer[:3])[3] if offers else None


def _cuts(rows, attribute, a, node) -> list[tuple[list[int], list[int]]]:
    """Every cut of an attribute, lowest first; missing values lie below all others."""
    places = {i: (-1,) if rows[i][a] is None else (0, attribute.place(rows[i][a])) for i in node}
    return [
        ([i for i in node if places[i] <= at], [i for i in node if places[i] > at])
        for at in sorted(set(places.values()))[:-1]
    ]


def _best(rows, attribute, a, node, cuts, policy):
    def loss(some: list[int]) -> float:
        values = {rows[i][a] for i in some}
        if None in values:
            return 0.0 if len(values) == 1 else 1.0
        return attribute.loss(values)

    def imbalance(cut) -> int:
        return abs(len(cut[0]) - len(cut[1]))

    if policy == "median":
        values = {rows[i][a] for i in node}
        score = attribute.representativity(values - {None}, None in values)
        # The cut at the lower median is the first that leaves at least half of the rows below it.
        medians = [cut for cut in _cuts(rows, attribute, a, node) if 2 * len(cut[0]) >= len(node)]
        if medians and medians[0] in cuts:
            return score, medians[0]
        return score, min(cuts, key=lambda cut: (imbalance(cut), len(cut[0])))

    def fall(cut) -> float:
        left, right = cut
        return len(node) * loss(node) - len(left) * loss(left) - len(right) * loss(right)

    best = max(cuts, key=lambda cut: (fall(cut), -imbalance(cut), -len(cut[0])))
    if policy == "gain":
        return fall(best), best
    return fall(best) / len(node) + loss(node), best


# DI-Mondrian (docs/algorithms.md)

NEAR = 1e-9  # choices that differ by less are equally good

Parts = list[list[int]]


@dataclass(frozen=True)
class DiMondrian:
    """The definition of DI-Mondrian: what a node may be cut into.

    ``places``: where each value of an attribute lies, from 0 to 1, one mapping per attribute;
    ``sensitive``: one sequence of values per sensitive column.
    """

    rows: Sequence[Row]
    attributes: Sequence[Any]
    places: Sequence[Mapping[Any, float]]
    sensitive: Sequence[Sequence[Any]]
    holds: Holds
    k: int
    cut_points: int
    room: int

    def divisions(self, node: list[int]) -> list[tuple[int, Parts]]:
        """Every division of a node that may be the best, by its attribute; none: final."""
        if len(node) < 2 * self.k:
            return []
        for a in range(len(self.attributes)):
            missing = [i for i in node if self.rows[i][a] is None]
            present = [i for i in node if self.rows[i][a] is not None]
            if missing and present and self.holds(missing) and self.holds(present):
                return [(a, [missing, present])]
        found, best = [], 0.0
        for a, attribute in enumerate(self.attributes):
            cuts = _cuts(self.rows, attribute, a, node)
            if any(all(map(self.holds, cut)) for cut in cuts):
                offers = [
                    (self.score(node, a, parts), a, self._valid(node, a, parts))
                    for parts in self.by_size(node, a)
                ]
                best = max(best, min(score for score, _, _ in offers))
                found += offers
        return [(a, parts) for score, a, parts in found if score >= best - NEAR]

    def by_size(self, node: list[int], a: int) -> list[Parts]:
        """What an attribute cuts a node into when only k is asked; of equally good ones, each."""
        n = len(node)
        points = max(1, min(self.cut_points, n // (self.room * self.k) - 1))
        cuts = _cuts(self.rows, self.attributes[a], a, node)
        best = []
        for quantile in range(1, points + 1):
            rest = {}
            for below, above in cuts:
                nearest = math.floor(len(below) * (points + 1) / n + 0.5)
                if nearest == quantile and min(len(below), len(above)) >= self.k:
                    beside = self._beside(node, a, quantile, points)
                    rest[tuple(below)] = self._rest(beside, a, below)
            if rest:
                best.append([list(b) for b in rest if rest[b] <= min(rest.values()) + NEAR])
        found = []
        for lower in product(*best):
            kept: Parts = []
            for below in lower:
                if len(below) - (len(kept[-1]) if kept else 0) >= self.k:
                    kept.append(below)
            found.append(_parts(node, kept))
        if len(found[0]) == 1:
            return [self._balanced(node, a, lambda part: len(part) >= self.k)]
        return found

    def _beside(self, node: list[int], a: int, quantile: int, points: int) -> list[int]:
        """The rows whose values occur between the two quantiles beside a quantile."""
        n, found = len(node), []
        ends = [[], *(below for below, _ in _cuts(self.rows, self.attributes[a], a, node)), node]
        for start, end in pairwise(ends):
            lowest, highest = len(start) * (points + 1), len(end) * (points + 1)
            if highest > (quantile - 1) * n and lowest < (quantile + 1) * n:
                found += [i for i in end if i not in set(start)]
        return found

    def _rest(self, some: list[int], a: int, below: list[int]) -> float:
        """What some rows still lose on an attribute after a cut in two."""
        lower = [i for i in some if i in set(below)]
        above = [i for i in some if i not in set(below)]
        return len(lower) * self._loss(a, lower) + len(above) * self._loss(a, above)

    def _loss(self, a: int, some: list[int]) -> float:
        values = {self.rows[i][a] for i in some}
        if None in values:
            return 0.0 if len(values) == 1 else 1.0
        return float(self.attributes[a].loss(values))

    def _balanced(self, node: list[int], a: int, holds: Holds) -> Parts:
        """The median's cut, or the one that balances best of those whose sides hold."""
        cuts = _cuts(self.rows, self.attributes[a], a, node)
        valid = [cut for cut in cuts if all(map(holds, cut))]
        if not valid:
            return [node]
        return list(_best(self.rows, self.attributes[a], a, node, valid, "median")[1])

    def _valid(self, node: list[int], a: int, parts: Parts) -> Parts:
        """The parts with those that do not hold joined to others; if it is one, a cut in two."""
        kept: Parts = []
        waiting: list[int] = []
        for part in parts:
            waiting = waiting + part
            if self.holds(waiting):
                kept.append(waiting)
                waiting = []
        while waiting and kept:
            waiting = kept.pop() + waiting
            if self.holds(waiting):
                kept.append(waiting)
                waiting = []
        return kept if len(kept) > 1 else self._balanced(node, a, self.holds)

    def score(self, node: list[int], a: int, parts: Parts) -> float:
        """Variation, fall of loss and information gain."""
        n = len(node)
        places = [1 + self.places[a][self.rows[i][a]] for i in node]
        fall = self._loss(a, node) - sum(len(p) * self._loss(a, p) for p in parts) / n
        gains = [self.gain(node, parts, column) for column in self.sensitive]
        return pstdev(places) / mean(places) + fall + (mean(gains) if gains else 0.0)

    @staticmethod
    def gain(node: list[int], parts: Parts, column: Sequence[Any]) -> float:
        """Share of a column's entropy that the parts take away, less what chance would."""
        n, counts = len(node), Counter(column[i] for i in node)
        if len(counts) < 2:
            return 0.0
        inside = sum(len(p) / n * entropy(Counter(column[i] for i in p)) for p in parts)
        chance = (len(parts) - 1) * (len(counts) - 1) * math.log(n) / (2 * n)
        return max(0.0, entropy(counts) - inside - chance) / entropy(counts)


def _parts(node: list[int], lower: Parts) -> Parts:
    """A node's rows between growing sets of its lowest rows."""
    ends = [[], *lower, node]
    return [[i for i in end if i not in set(start)] for start, end in pairwise(ends)]


# Criteria

UNSEEN = str.maketrans(dict.fromkeys("\u00ad\u200b\u200d\u2060\u3164\ufe0f\ufeff"))


def alike(value: Any) -> Any:
    """What a reader takes a sensitive value for; None: for no value at all.

    Of the texts that tests draw, not of every one that Unicode has.
    """
    if not isinstance(value, str):
        return value
    plain = unicodedata.normalize("NFKC", value.translate(UNSEEN)).replace("\0", " ")
    return " ".join(plain.split()) or None


def of_alike(counts: Counter) -> Counter:
    """How often there is a value that is read alike."""
    found: Counter = Counter()
    for value, times in counts.items():
        found[alike(value)] += times
    return found


def present(counts: Counter) -> Counter:
    """The counts of all values but the missing one."""
    return Counter({value: times for value, times in counts.items() if value is not None})


def entropy(counts: Counter) -> float:
    total = sum(counts.values())
    return -sum(n / total * math.log(n / total) for n in counts.values())


def fullest(values: Mapping[Any, int], near: Callable[[Any, Any], bool]) -> int:
    """The most rows whose values are near one another.

    ``near`` tells it of a value and one that is no less; the missing value is near none. The values
    near one another are those from one to another that is near it, because what lies between two
    near values is near both.
    """
    known = [value for value in values if value is not None]
    together = [values.get(None, 0)]
    for low in known:
        for high in known:
            if low <= high and near(low, high):
                together.append(sum(values[each] for each in known if low <= each <= high))
    return max(together)


def is_spread(values: Mapping[Any, int], level: float, near: Callable[[Any, Any], bool]) -> bool:
    """No values that are near one another have more than 1/level of the rows, if any has one."""
    most = fullest(values, near) * level
    return bool(values) and most <= sum(values.values()) * (1 + TOLERANCE)


def recursive(counts: Counter, c: float, level: int) -> bool:
    ordered = sorted(counts.values(), reverse=True)
    return ordered[0] < c * sum(ordered[level - 1 :])


def closeness_equal(counts: Counter, whole: Counter) -> float:
    n, m = sum(counts.values()), sum(whole.values())
    return sum(abs(counts[v] / n - whole[v] / m) for v in whole) / 2


def closeness_ordered(counts: Counter, whole: Counter) -> float:
    """The missing value comes first."""
    n, m = sum(counts.values()), sum(whole.values())
    values = sorted(whole, key=lambda v: (v is not None, v))
    carried, moved = 0.0, 0.0
    for value in values[:-1]:
        carried += counts[value] / n - whole[value] / m
        moved += abs(carried)
    return moved / max(1, len(values) - 1)


def closeness_tree(
    counts: Counter, whole: Counter, chains: Mapping[str, Sequence[str]], height: int
) -> float:
    """Li et al. 2007, section 5.3: what crosses each inner node, weighted by its height.

    All leaves lie ``height`` below the root; the missing value is a leaf right under it.
    """
    n, m = sum(counts.values()), sum(whole.values())
    extra = {v: counts[v] / n - whole[v] / m for v in {*whole, *counts}}
    below: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    root = next(iter(chains.values()))[-1]
    for value, surplus in extra.items():
        path = [value, *chains[value]] if value is not None else [None, root]
        for child, parent in pairwise(path):
            below[parent][child] += surplus
    level = {label: at for chain in chains.values() for at, label in enumerate(chain, start=1)}
    total = 0.0
    for label, children in below.items():
        give = sum(max(0.0, each) for each in children.values())
        take = sum(max(0.0, -each) for each in children.values())
        total += level[label] / height * min(give, take)
    return total


@dataclass(frozen=True)
class Privacy:
    """What a class must satisfy, as a job says it; ``whole`` counts each sensitive column."""

    k: int
    whole: Sequence[Counter]
    l: float | None = None  # noqa: E741
    diversity: str = "distinct"
    c: float | None = None
    t: float | None = None
    t_distance: str = "equal"
    missing_sensitive: str = "no_value"
    width: float | None = None
    chains: Mapping[str, Sequence[str]] | None = None
    height: int = 1

    def holds(self, sensitive: Sequence[Sequence[Any]]) -> bool:
        """Whether rows with these sensitive values, one sequence per column, may be a class."""
        if self.whole and not sensitive:
            raise ValueError("one sequence per sensitive column")
        return all(
            self._diverse(of_alike(Counter(column)))
            and self._close(of_alike(Counter(column)), of_alike(whole))
            for column, whole in zip(sensitive, self.whole, strict=True)
        )

    def _diverse(self, counts: Counter) -> bool:
        if self.l is None:
            return True
        if self.missing_sensitive == "no_value":
            counts = present(counts)
        if not counts:
            return False
        if self.width is not None and not is_spread(counts, self.l, self._near):
            return False
        if self.diversity == "distinct":
            return len(counts) >= self.l
        if self.diversity == "entropy":
            return entropy(counts) >= math.log(self.l) - TOLERANCE
        return recursive(counts, self.c or 0.0, int(self.l))

    def _near(self, low: Any, high: Any) -> bool:
        return bool(high - low <= (self.width or 0))

    def _close(self, counts: Counter, whole: Counter) -> bool:
        if self.t is None:
            return True
        if self.t_distance == "equal":
            found = closeness_equal(counts, whole)
        elif self.t_distance == "ordered":
            found = closeness_ordered(counts, whole)
        else:
            found = closeness_tree(counts, whole, self.chains or {}, self.height)
        return found <= self.t + TOLERANCE

    def of_rows(self, sensitive: Sequence[Sequence[Any]]) -> Holds:
        """`holds` by row numbers; k is part of it."""

        def holds(node: list[int]) -> bool:
            return len(node) >= self.k and self.holds([[c[i] for i in node] for c in sensitive])

        return holds


# Published text


def classes_of(rows: Mapping[Hashable, Row]) -> dict[Row, list[Hashable]]:
    """Row ids by the combination of values that is published for them."""
    classes: dict[Row, list[Hashable]] = defaultdict(list)
    for number, published in rows.items():
        classes[published].append(number)
    return dict(classes)
