"""DI-Mondrian beside Mondrian, as its source evaluates it: loss, and classifiers trained on it.

A classifier is trained on the anonymized rows and tested on original rows that it never saw, and
predicts the sensitive column. Both kinds of rows are encoded alike: a node of a hierarchy is one
column per leaf of the hierarchy, 1 / m for each of the m leaves under it; an interval is its
middle, or, for naive Bayes, one column per value, 1 / m for each of the m values in it. So an
original value is an interval of one number, or a node of one leaf.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.adult import COLUMNS, adult
from benchmarks.context import CARDS, Context
from benchmarks.tables import Table

K = (5, 10, 20)
CUT_POINTS = (1, 2, 3, 4)
POKER_ROWS = 100_000
TEST_SHARE = 0.3

METHODS: dict[str, dict[str, Any]] = {
    "mondrian, median": {"cut": "median"},
    "mondrian, auto": {"cut": "auto"},
    **{
        f"di_mondrian, r = {r}": {
            "algorithm": "di_mondrian",
            "di_mondrian": {"cut_points": r},
        }
        for r in CUT_POINTS
    },
}


@dataclass(frozen=True)
class Study:
    """A dataset, divided into rows to be anonymized and rows to test classifiers on.

    ``trees``: the hierarchies' files by column; the other quasi-identifiers are numbers.
    """

    name: str
    table: pa.Table
    quasi_identifiers: Sequence[str]
    trees: Mapping[str, Path]
    sensitive: str
    diversities: Sequence[int]  # the l of l-diversity

    @cached_property
    def tested(self) -> np.ndarray:
        """(rows,) bool: which rows classifiers are tested on."""
        return np.random.default_rng(1).random(self.table.num_rows) < TEST_SHARE

    @cached_property
    def train(self) -> pa.Table:
        return self.table.filter(pa.array(~self.tested))

    @cached_property
    def test(self) -> pa.Table:
        return self.table.filter(pa.array(self.tested))

    def job(self, **keys: Any) -> dict[str, Any]:
        """The job that anonymizes the rows to train on."""
        return {
            "quasi_identifiers": [
                f"{name}=hierarchy:{self.trees[name].name}" if name in self.trees else name
                for name in self.quasi_identifiers
            ],
            "sensitive": [self.sensitive],
            "unlisted": "drop",
            "interval_style": "bounds",
            **keys,
        }


def compared(context: Context) -> Iterator[Table]:
    """Loss on all hands; loss and classifiers on fewer of them and on Adult, every method and k."""
    yield Table(
        f"DI-Mondrian: loss on {context.rows:,} hands, l = 2, centralized",
        ("", "NCP", "DP", "LM"),
        [_losses_of_hands(context, method, k) for k in K for method in METHODS],
        note="r is the most cut points.",
    )
    for study in _studies(context):
        rows = [("original rows", "", "", "", *_scores(study, study.train))]
        rows += [
            _row(context, study, method, k, diversity)
            for diversity in study.diversities
            for k in K
            for method in METHODS
        ]
        yield Table(
            f"DI-Mondrian: {study.name}, {study.train.num_rows:,} rows anonymized",
            ("", "NCP", "DP", "LM",
             *(f"{name}: {what}" for name in _classifiers() for what in ("accuracy", "F"))),
            rows,
            note=f"Sensitive, and predicted: {study.sensitive}. Classifiers are trained on the "
            f"anonymized rows and tested on {study.test.num_rows:,} other rows as they are; F is "
            "the mean of the classes' F-measures; r is the most cut points. Not a reproduction: of "
            "the source of DI-Mondrian only the abstract is public.",
        )  # fmt: skip


def _losses_of_hands(context: Context, method: str, k: int) -> tuple[str, ...]:
    context.say(f"all hands: {method}, k = {k}")
    keys = {"k": k, "partitioning": {"fragments": 1}, **METHODS[method]}
    report = context.report(context.job(context.rows, **keys))
    return (f"{method}, k = {k}", *_losses(report))


def _losses(report: dict[str, Any]) -> tuple[str, str, str]:
    metrics = report["metrics"]
    return f"{metrics['NCP']:,.0f}", f"{metrics['DP']:,.0f}", f"{metrics['LM']:.4f}"


def _studies(context: Context) -> Iterator[Study]:
    hands = pq.read_table(context.hands(min(context.rows, POKER_ROWS)))
    yield Study("hands", hands, CARDS, {}, "hand", (2, 3))
    for data in adult(context, "di_mondrian"):
        table = data.table()
        trees = {name: data.hierarchies / f"{name}.csv" for name in COLUMNS if name != "age"}
        yield Study("Adult, by salary class", table, COLUMNS, trees, "salary-class", (2,))
        others = [name for name in COLUMNS if name != "occupation"]
        yield Study("Adult, by occupation", table, others, trees, "occupation", (2, 3))


def _row(context: Context, study: Study, method: str, k: int, diversity: int) -> tuple[str, ...]:
    from mondrian_ops import anonymize

    name = f"{method}, k = {k}, l = {diversity}"
    context.say(f"{study.name}: {name}")
    job = study.job(k=k, l=diversity, **METHODS[method])
    hierarchies = next((file.parent for file in study.trees.values()), None)
    release, report = anonymize(study.train, context.job_file(job, hierarchies))
    return (name, *_losses(report), *_scores(study, release))


# Classifiers


@dataclass(frozen=True)
class Classifier:
    """``by_shares``: intervals are encoded as nodes are, not as their middle."""

    model: Any
    by_shares: bool


def _classifiers() -> dict[str, Classifier]:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.naive_bayes import MultinomialNB
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier(min_samples_leaf=10, random_state=1)
    forest = RandomForestClassifier(25, min_samples_leaf=5, random_state=1, n_jobs=-1)
    return {
        "tree": Classifier(tree, by_shares=False),
        "forest": Classifier(forest, by_shares=False),
        # On shares it is the naive Bayes of categories, counting fractions of a row.
        "naive Bayes": Classifier(MultinomialNB(), by_shares=True),
    }


def _scores(study: Study, train: pa.Table) -> tuple[str, ...]:
    """Accuracy and mean F-measure of each classifier trained on ``train``."""
    from sklearn.metrics import accuracy_score, f1_score

    labels, truth = (rows[study.sensitive].to_numpy() for rows in (train, study.test))
    cells = []
    for classifier in _classifiers().values():
        features, unseen = (_features(study, rows, classifier) for rows in (train, study.test))
        predicted = classifier.model.fit(features, labels).predict(unseen)
        cells.append(f"{accuracy_score(truth, predicted):.4f}")
        cells.append(f"{f1_score(truth, predicted, average='macro', zero_division=0):.4f}")
    return tuple(cells)


def _features(study: Study, rows: pa.Table, classifier: Classifier) -> np.ndarray:
    """(rows, features): original rows or a release, encoded alike."""
    parts = []
    for name in study.quasi_identifiers:
        if name in study.trees:
            parts.append(_shares_of_nodes(study.trees[name], rows[name].to_pylist()))
            continue
        ends = [name, name] if name in rows.column_names else [f"{name}_min", f"{name}_max"]
        low, high = (rows[end].to_numpy() for end in ends)
        if classifier.by_shares:
            parts.append(_shares_of_intervals(np.unique(study.table[name].to_numpy()), low, high))
        else:
            parts.append(((low + high) / 2)[:, None])
    return np.hstack(parts).astype(np.float32)


def _shares_of_intervals(domain: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """(rows, values): the share of each value of a column in the interval that a row has."""
    inside = (domain >= low[:, None]) & (domain <= high[:, None])
    return inside / inside.sum(axis=1, keepdims=True)


def _shares_of_nodes(tree: Path, labels: Sequence[str]) -> np.ndarray:
    """(rows, leaves): the share of each leaf of a hierarchy in the node that a row has."""
    lines = [line.split(";") for line in tree.read_text(encoding="utf-8").splitlines()]
    below = {label: [label in line for line in lines] for line in lines for label in line}
    share = {label: np.array(under) / sum(under) for label, under in below.items()}
    return np.stack([share[label] for label in labels])
