"""Who is found by the columns that are published as they are, once the classes are known.

The attacker knows everybody's quasi-identifiers and class, and has learned elsewhere how a column
depends on all quasi-identifiers together, as the body mass index depends on height and weight.
Within a class the attacker compares each row with what is predicted for each person, and names a
row where one stands out. `measured` carries this out on a sample of whole classes, with one column
at a time and with all of them, and counts the rows that are named rightly.

What is known of a column is learned from half of the sampled classes for the other half, or of the
persons where classes are few, and never from a person's own rows:

- *as a number* (text that is no number, by its rank): `model_tree` predicts it for each person, and
  the errors of the predictions tell how likely a row is that person's;
- *by value*: how often each value of a quasi-identifier, and of all of them, has a value of the
  column beside it, taken together as naive Bayes does.

The better of these, or both together, counts. Claims are made from the surest one on, as long as
they end half of the errors of a guess within the class, and are right beyond chance. So a column
that is independent of the quasi-identifiers finds nobody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mondrian_ops.data.finding import Finding
from mondrian_ops.late_methods import dataclass
from mondrian_ops.verify.arrays import decoded, in_one, persons_of, ranks_of
from mondrian_ops.verify.loss import columns_of
from mondrian_ops.verify.model_tree import Coded, bins_of, predictions
from mondrian_ops.verify.quoted_texts import as_texts

SAMPLED = 5000
"""Rows of the sampled classes, about. The standard error of a share is at most 0.7 points."""

MOST_ROWS = 1000
"""Rows that are sampled of a class."""

ATTACKED, LEAST_ATTACKED = 20, 500
"""Rows of a class that are looked for, at most: each is compared with all rows of the class. More
are where that is fewer than the second number in all."""

FEW_CLASSES = 10
"""With fewer classes it is learned from the rows of all of them, by other persons."""

HARM = 0.05
"""The share of rows that are found from which on columns are disclosing."""

ENDED = 0.5
"""The share of the errors of a guess that claims have to end."""

DEVIATIONS = 5.0
"""By how many standard deviations right claims have to exceed those of guesses."""

_LEAST_ROWS = 30  # to learn from
_COARSE = 16  # bins of a quasi-identifier, counted beside its exact values
_ERROR_BINS = 48
_DENSE = 1 << 21  # pairs of values that are counted in a table

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class SingledOut:
    """Of ``rows`` that were looked for, the share ``claimed``, and the share named rightly.

    ``column`` is None for all columns together.
    """

    column: str | None
    rows: int
    claimed: float
    found: float

    def to_dict(self) -> dict[str, Any]:
        """A small JSON value."""
        return asdict(self)


def findings_of(figures: Sequence[SingledOut]) -> list[Finding]:
    """The columns that find too many; all together, if no one does so alone."""
    found = [
        Finding(each.column or "", "jointly", each.found) for each in figures if each.found >= HARM
    ]
    return [each for each in found if each.column] or found


def sampled_classes(
    rows: pa.Table,
    released: pa.Table,
    order: NDArray[np.integer[Any]],
    made_up: Flags | None,
    quasi_identifiers: Sequence[str],
    raw: Sequence[str],
    entity_id: str | None,
    most: float,
    seed: int,
) -> pa.Table:
    """Random classes of ``released`` rows, with about ``most`` rows in all: these as they came.

    ``order`` (released rows,): which of the ``rows`` each is; rows that are ``made_up`` are left
    out. The table has the number of the ``class``, the ``person`` where there is an ``entity_id``,
    and the other columns by number: quasi-identifiers, then those that are published ``raw``.
    """
    random = np.random.default_rng(seed)
    starts = class_starts(released, quasi_identifiers)
    sizes = np.diff(starts, append=released.num_rows)
    shuffled = random.permutation(len(sizes))
    drawn = np.minimum(sizes, MOST_ROWS)[shuffled]
    # The last one by chance, so that many small parts have as many rows as one large part.
    chosen = np.zeros(len(sizes), bool)
    chosen[shuffled[most - (np.cumsum(drawn) - drawn) > random.random() * drawn]] = True
    # Of few of them, so that no array has all rows.
    drawn = sizes[chosen]
    class_of = np.repeat(np.flatnonzero(chosen), drawn)
    place = np.arange(len(class_of)) + np.repeat(starts[chosen] - np.cumsum(drawn) + drawn, drawn)
    if made_up is not None:
        place, class_of = (each[~made_up[place]] for each in (place, class_of))
    # Not in the order of the part, which is another one in each attempt.
    row = order[place].astype(np.int64)
    kept = np.lexsort((row, class_of))
    row, class_of = row[kept], class_of[kept]
    kept = np.sort(_some_of_each(class_of, MOST_ROWS, random))
    taken = pa.array(row[kept])
    table = {"class": pa.array(class_of[kept].astype(np.int64))}
    if entity_id is not None:
        table["person"] = pa.array(persons_of(decoded(rows[entity_id].take(taken))))
    for number, name in enumerate([*quasi_identifiers, *raw]):
        table[str(number)] = decoded(rows[name].take(taken))
    return pa.table(table)


def class_starts(released: pa.Table, quasi_identifiers: Sequence[str]) -> Ints:
    """Where classes begin, whose rows follow one another."""
    begins = np.zeros(released.num_rows, bool)
    begins[:1] = True
    for name in quasi_identifiers:
        for column in columns_of(name, released.column_names):
            array = in_one(as_texts(released[column]))
            if not pa.types.is_dictionary(array.type):
                array = decoded(array).dictionary_encode()
            codes = array.indices
            codes = (codes.fill_null(-1) if codes.null_count else codes).to_numpy()
            begins[1:] |= codes[1:] != codes[:-1]
    return np.flatnonzero(begins)


def _some_of_each(group: Ints, most: int, random: np.random.Generator) -> Ints:
    """Up to ``most`` random members of each group, (members,) of ascending groups."""
    order = np.lexsort((random.random(len(group)), group))
    return order[np.arange(len(group)) - np.searchsorted(group, group) < most]


def measured(
    tables: Sequence[pa.Table], quasi_identifiers: int, raw: Sequence[str]
) -> list[SingledOut]:
    """How many rows each column of ``raw`` finds, and all together if there are several.

    ``tables`` come from `sampled_classes`, one for each part, and have so many quasi-identifiers.
    """
    attack = _Attack.of(tables, quasi_identifiers)
    if attack is None or not attack.folds:
        return []
    together = np.zeros(len(attack.row))
    found = []
    for number, name in enumerate(raw, quasi_identifiers):
        outcome, scores = attack.best(_coded(attack.table[str(number)]))
        together += scores
        found.append(SingledOut(name, len(attack.starts), *outcome))
    if len(raw) > 1:
        found.append(SingledOut(None, len(attack.starts), *attack.outcome(together)))
    return found


def _coded(column: pa.ChunkedArray) -> Coded:
    ranks, values = ranks_of(decoded(column))
    line = _line(values)
    numbers = np.append(np.nan, np.arange(len(values)) if line is None else line)[ranks]
    numbers[~np.isfinite(numbers)] = np.nan
    return Coded(ranks, numbers, line is not None)


def _line(values: pa.Array) -> Floats | None:
    """Values as numbers; None where they are none, or are no UTF-8."""
    kind = values.type
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        values = values.cast(pa.int32())
    elif pa.types.is_temporal(kind):
        values = values.cast(pa.int64())
    try:
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            values = pc.utf8_trim_whitespace(values)
        line: Floats = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return line


class _Fold(NamedTuple):
    """``learned`` and ``attacked`` (rows,), and the ``pairs`` (pairs,) of those attacked."""

    learned: Flags
    attacked: Flags
    pairs: Flags


@dataclass(frozen=True)
class _Attack:
    """Pairs of a ``row`` that is looked for and a ``candidate`` of its class, (pairs,).

    They are numbers of rows of the ``table``; the pairs of one row follow one another, and begin at
    ``starts`` (rows looked for,). ``persons`` and ``classes`` (rows,).
    """

    table: pa.Table
    known: Sequence[Coded]
    persons: Ints
    classes: Ints
    row: Ints
    candidate: Ints
    starts: Ints

    @classmethod
    def of(cls, tables: Sequence[pa.Table], quasi_identifiers: int) -> Self | None:
        """The attack on sampled classes; None where no class has two rows."""
        numbered, first = [], 0
        for table in tables:
            if table.num_rows:
                numbers = table["class"].to_numpy() + first
                first = int(numbers[-1]) + 1
                numbered.append(table.set_column(0, "class", pa.array(numbers)))
        if not numbered:
            return None
        table = pa.concat_tables(numbered)
        classes = table["class"].to_numpy()
        begin, size = (np.searchsorted(classes, classes, side) for side in ("left", "right"))
        size -= begin
        attacked = max(ATTACKED, LEAST_ATTACKED // (int(classes[-1]) + 1))
        chosen = np.sort(_some_of_each(classes, attacked, np.random.default_rng(0)))
        chosen = chosen[size[chosen] > 1]
        if not len(chosen):
            return None
        sizes = size[chosen]
        starts = np.cumsum(sizes) - sizes
        candidate = np.arange(int(sizes.sum())) + np.repeat(begin[chosen] - starts, sizes)
        by_person = "person" in table.column_names
        persons = table["person"].to_numpy() if by_person else np.arange(len(classes))
        known = [_coded(table[str(number)]) for number in range(quasi_identifiers)]
        return cls(table, known, persons, classes, np.repeat(chosen, sizes), candidate, starts)

    @cached_property
    def folds(self) -> list[_Fold]:
        """The classes in two halves; where persons have several rows, in fifths; or the persons.

        From the classes that are not attacked, those rows are learned that are of other persons.
        """
        by_person = "person" in self.table.column_names
        count, groups = 5 if by_person else 2, self.classes
        if self.classes[-1] + 1 < FEW_CLASSES:
            groups = np.unique(self.persons, return_inverse=True)[1]
        fold = np.random.default_rng(0).permutation(int(groups.max()) + 1)[groups] % count
        folds = []
        for number in range(count):
            attacked = fold == number
            learned = ~attacked
            if by_person:
                learned &= ~np.isin(self.persons, self.persons[attacked])
            pairs = attacked[self.row]
            if np.count_nonzero(learned) >= _LEAST_ROWS and pairs.any():
                folds.append(_Fold(learned, attacked, pairs))
        return folds

    def best(self, column: Coded) -> tuple[tuple[float, float], Floats]:
        """The outcome of the best attack by a column, and its scores (pairs,)."""
        by_number, by_value = self._by_number(column), self._by_value(column)
        attacks = [by_number, by_value, by_number + by_value]
        outcomes = [self.outcome(scores) for scores in attacks]
        best = max(range(len(attacks)), key=lambda at: outcomes[at][1])
        return outcomes[best], attacks[best]

    def outcome(self, scores: Floats) -> tuple[float, float]:
        """The shares claimed and found by the log likelihood of each pair."""
        sizes = np.diff(self.starts, append=len(scores))
        place = np.repeat(np.arange(len(sizes)), sizes)
        # What suits everybody in the class points to nobody.
        most = np.full(len(self.classes), -np.inf)
        np.maximum.at(most, self.candidate, scores)
        chances = np.exp(np.maximum(scores - most[self.candidate], -700))
        chances /= np.bincount(self.candidate, chances)[self.candidate]
        chances /= np.add.reduceat(chances, self.starts)[place]
        sure = np.maximum.reduceat(chances, self.starts)
        leads = chances >= sure[place] * (1 - 1e-9)
        is_own = self.persons[self.row] == self.persons[self.candidate]
        leading, own, right = (
            np.add.reduceat(each.astype(np.int64), self.starts)
            for each in (leads, is_own, leads & is_own)
        )
        guess = own / sizes
        (claims,) = np.nonzero(((leading == 1) | (leading == right)) & (guess < 1))
        claims = claims[np.argsort(-np.round(sure[claims], 9), kind="stable")]
        rights = np.cumsum(right[claims] > 0)
        guesses = np.cumsum(guess[claims])
        spread = np.sqrt(np.cumsum(guess[claims] * (1 - guess[claims])))
        count = np.arange(1, len(claims) + 1)
        least = np.maximum(ENDED * (count - guesses), DEVIATIONS * spread)
        # Claims that are equally sure are made together, in whichever order they are listed.
        is_last = np.diff(np.round(sure[claims], 9), append=-1.0) != 0
        (holds,) = np.nonzero(is_last & (rights - guesses >= least - 1e-9))
        if not len(holds):
            return 0.0, 0.0
        last = int(holds[-1])
        return (last + 1) / len(sizes), float(rights[last]) / len(sizes)

    def _by_number(self, column: Coded) -> Floats:
        """The log likelihood of each pair, by the errors of predictions."""
        predicted = np.full(len(self.classes), np.nan)
        for fold in self.folds:
            learned = fold.learned & ~np.isnan(column.numbers)
            if np.count_nonzero(learned) >= _LEAST_ROWS:
                of_fold = predictions(self.known, column.numbers, learned, fold.attacked)
                predicted[fold.attacked] = of_fold
        errors = np.abs(column.numbers - predicted)
        of_pairs = np.abs(column.numbers[self.candidate] - predicted[self.row])
        scores = np.zeros(len(self.row))
        for fold in self.folds:
            others = errors[~fold.attacked & ~np.isnan(errors)]  # predicted by other models
            if len(others) >= _LEAST_ROWS:
                scores[fold.pairs] = _log_density(others, of_pairs[fold.pairs])
        return scores

    def _by_value(self, column: Coded) -> Floats:
        """The log likelihood of each pair, by values that come together."""
        scores = np.zeros(len(self.row))
        for fold in self.folds:
            values = column.codes[fold.learned], column.codes[self.candidate[fold.pairs]]
            row = self.row[fold.pairs]
            of_fold = np.zeros(len(row))
            for codes in self._tables:
                of_fold += _log_ratios((codes[fold.learned], codes[row]), values)
            scores[fold.pairs] = of_fold
        return scores

    @cached_property
    def _tables(self) -> list[Ints]:
        """The values of each quasi-identifier, exact and in bins, and of all together."""
        coded, together = [], np.zeros(len(self.classes), np.int64)
        for column in self.known:
            coded.append(column.codes)
            if column.is_numeric and column.codes.max() > 2 * _COARSE:
                coded.append(bins_of(column.numbers, _COARSE))
            together = together * (int(column.codes.max()) + 1) + column.codes
            together = np.unique(together, return_inverse=True)[1]
        return [*coded, together] if len(self.known) > 1 else coded


def _log_ratios(quasi: tuple[Ints, Ints], values: tuple[Ints, Ints]) -> Floats:
    """How much likelier a value of a quasi-identifier is beside that of a column, as a log.

    Of both the codes of the rows to learn from, and those of the pairs.
    """
    sizes, count = (max(int(each.max()) for each in both) + 1 for both in (quasi, values))
    learned, asked = (quasi[at] * count + values[at] for at in (0, 1))
    share = np.bincount(quasi[0], minlength=sizes) / len(learned)
    of_value = np.bincount(values[0], minlength=count)
    if sizes * count <= len(asked):  # of each pair of values once
        both = np.bincount(learned, minlength=sizes * count).reshape(sizes, count)
        table = _log_ratio(both, share[:, None], of_value, len(learned))
        return table.ravel().take(asked)
    if sizes * count <= _DENSE:
        both = np.bincount(learned, minlength=sizes * count)[asked]
    else:
        keys, counts = np.unique(learned, return_counts=True)
        place = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
        both = np.where(keys[place] == asked, counts[place], 0)
    return _log_ratio(both, share[quasi[1]], of_value[values[1]], len(learned))


def _log_ratio(both: Ints, share: Floats, of_value: Ints, learned: int) -> Floats:
    """``both``: how many rows have two values; the share that has one, and how many the other."""
    ratio = np.log((both / np.maximum(share, 1 / learned) + 1) / (of_value + 1))
    return np.where(share > 0, ratio, 0.0)


def _log_density(errors: Floats, asked: Floats) -> Floats:
    """The log density of errors at those ``asked``, by a histogram on a log scale."""
    scale = float(np.max(errors)) or 1.0
    edges = np.append(0.0, scale * np.logspace(-9, 0, _ERROR_BINS))
    edges[-1] = np.inf
    counts = np.histogram(errors, edges)[0].astype(float)
    counts = np.convolve(counts, [0.25, 0.5, 0.25], "same") + 1 / _ERROR_BINS
    widths = np.diff(np.append(edges[:-1], 2 * scale))
    density = np.log(counts / widths)
    place = np.clip(np.searchsorted(edges, asked, "right") - 1, 0, len(density) - 1)
    return np.where(np.isnan(asked), density.mean(), density[place])
