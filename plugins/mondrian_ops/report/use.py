"""How well a release can be worked with, as its report has it, and in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from mondrian_ops.late_methods import dataclass
from mondrian_ops.report.number_format import number, percent


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryError:
    """The relative errors of random counts."""

    queries: int
    median: float
    mean: float
    p90: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """That of two columns of numbers, in the input and in the release."""

    one: str
    other: str
    before: float
    after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """How well the ``target`` is predicted, by ``measure``, by models that were trained on the
    ``raw`` rows and on those ``released``, or the ``reason`` why that was not measured."""

    target: str
    measure: str | None = None
    raw: float | None = None
    released: float | None = None
    rows: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """How well the release can be worked with, by a sample of ``rows``; ``distance`` by column."""

    rows: int
    query_error: QueryError | None = None
    distance: Mapping[str, float] = field(default_factory=dict)
    correlations: tuple[Correlation, ...] = ()
    model: Model | None = None

    def named(self, nameless: str) -> Use:
        """The same with ``nameless`` for a column whose name is empty."""
        correlations = tuple(
            replace(each, one=each.one or nameless, other=each.other or nameless)
            for each in self.correlations
        )
        distance = {name or nameless: each for name, each in self.distance.items()}
        return replace(self, distance=distance, correlations=correlations)


def figures(use: Use | None) -> list[tuple[str, str, str]]:
    """The name, the value and the meaning of each figure, but distances by column."""
    if use is None:
        return []
    figures: list[tuple[str, str, str]] = []
    if errors := use.query_error:
        figures.append(
            (
                "Error of counts",
                percent(errors.median),
                f"the median of {number(errors.queries)} random counts, by a sample of "
                f"{number(use.rows)} rows; one in ten is off by more than {percent(errors.p90)}",
            )
        )
    if use.correlations:
        most = use.correlations[0]
        figures.append(
            (
                "Correlations",
                f"{most.after - most.before:+.2f}",
                f"the greatest change: of {most.one} and {most.other}, from {most.before:.2f} to "
                f"{most.after:.2f}",
            )
        )
    model = use.model
    if model is None:
        return figures
    if model.raw is None or model.released is None:
        note = f"not measured: {model.reason}"
        return [*figures, (f"Prediction of {model.target}", "–", note)]
    note = (
        f"{model.measure} of a model trained on the release, {model.raw:.3f} of one trained on the "
        f"input; both tested on {number(model.rows)} raw rows"
    )
    return [*figures, (f"Prediction of {model.target}", f"{model.released:.3f}", note)]
