"""How well a model predicts that is trained on a release: beside one that is trained on its rows.

Both are tested on the same raw rows, which neither has seen (as LeFevre et al. measure releases,
"Workload-aware anonymization", 2006). An interval is its middle to them, a set, prefix or node the
shares of its values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops.verify.arrays import decoded
from mondrian_ops.verify.scales import nulls, written
from mondrian_ops.verify.use import Column, NumberColumn, ValueColumn

MOST_CLASSES = 20
"""A target with more values is predicted as a number."""

LEAST_ROWS = 60
"""With fewer rows a model says nothing."""

_MOST_VALUES = 20  # of a column of categories, each a feature
_TESTED = 3  # one row in so many

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Scores(NamedTuple):
    """By ``measure`` (AUC, accuracy, R2), of models tested on ``rows``: trained on the raw rows,
    and on the release."""

    measure: str
    raw: float
    released: float
    rows: int


class UnmeasuredError(Exception):
    """There is no model; the text says why."""


def scores(columns: Sequence[Column], row: Ints, target: pa.Array, seed: int = 0) -> Scores:
    """The scores of both models.

    ``row`` (published rows,): which of the raw rows each is; ``target`` (rows,): what is predicted.

    Raises UnmeasuredError where scikit-learn is not installed, or too little can be learned.
    """
    try:
        import threadpoolctl
        from sklearn import ensemble, metrics
    except ImportError:
        raise UnmeasuredError("scikit-learn is not installed") from None
    goal, is_number = _goal(target)
    known = np.flatnonzero(~np.isnan(goal))
    order = np.random.default_rng(seed).permutation(known)
    tested, learned = np.split(order, [len(order) // _TESTED])
    if len(order) < LEAST_ROWS:
        raise UnmeasuredError(f"fewer than {LEAST_ROWS} rows of the sample have a value to predict")
    raw = np.hstack([_raw_features(column) for column in columns])
    published = np.hstack([_published_features(column) for column in columns])
    of_release = np.flatnonzero(np.isin(row, learned))
    trained = [(raw[learned], goal[learned]), (published[of_release], goal[row[of_release]])]
    kinds = {len(np.unique(goals)) for _, goals in trained}
    if min(kinds, default=0) < 2 or len(np.unique(goal[tested])) < 2:
        raise UnmeasuredError("the rows of the sample have one value to predict only")
    is_binary = len(np.unique(goal[known])) == 2
    measure = "R2" if is_number else "AUC" if is_binary else "accuracy"
    kind = (
        ensemble.HistGradientBoostingRegressor
        if is_number
        else ensemble.HistGradientBoostingClassifier
    )
    score = {
        "R2": metrics.r2_score, "AUC": metrics.roc_auc_score, "accuracy": metrics.accuracy_score
    }[measure]  # fmt: skip
    reached = []
    # Threads that wait for each other on a busy machine take longer than one alone.
    with threadpoolctl.threadpool_limits(1):
        for features, goals in trained:
            model = kind(random_state=0).fit(features, goals)
            guessed = (
                model.predict_proba(raw[tested])[:, 1]
                if measure == "AUC"
                else model.predict(raw[tested])
            )
            reached.append(float(score(goal[tested], guessed)))
    return Scores(measure, reached[0], reached[1], len(tested))


def _goal(target: pa.Array) -> tuple[Floats, bool]:
    """What is predicted, as numbers or as numbers of classes, NaN where missing."""
    values = decoded(target)
    encoded = values.dictionary_encode()
    kinds = pa.types
    is_number = kinds.is_integer(values.type) or kinds.is_floating(values.type)
    is_number = is_number or kinds.is_decimal(values.type)
    if len(encoded.dictionary) > MOST_CLASSES:
        if not is_number:
            raise UnmeasuredError(
                f"the target is no number and has more than {MOST_CLASSES} values"
            )
        numbers: Floats = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return numbers, True
    places = encoded.indices.cast(pa.float64()).to_numpy(zero_copy_only=False).copy()
    places[nulls(values)] = np.nan
    order = np.argsort(np.array(written(encoded.dictionary).to_pylist(), object))
    rank = np.empty(len(order))
    rank[order] = np.arange(len(order))
    present = ~np.isnan(places)
    places[present] = rank[places[present].astype(int)]
    return places, False


def _raw_features(column: Column) -> NDArray[Any]:
    if isinstance(column, NumberColumn):
        return column.raw[:, None]
    assert isinstance(column, ValueColumn)  # noqa: S101 - there are no others
    return column.inside(_ranges(column))


def _published_features(column: Column) -> NDArray[Any]:
    if isinstance(column, NumberColumn):
        return column.middle[:, None]
    assert isinstance(column, ValueColumn)  # noqa: S101 - there are no others
    return column.shares(_ranges(column))


def _ranges(column: ValueColumn) -> Ints:
    """Ranges of single values, the most frequent ones."""
    counts = np.bincount(column.raw[column.raw >= 0], minlength=len(column.values))
    return column.each[np.sort(np.argsort(-counts, kind="stable")[:_MOST_VALUES])]
