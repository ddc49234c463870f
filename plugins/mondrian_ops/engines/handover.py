"""The values that tasks pass to each other, and the small dicts that they travel as.

Airflow keeps what a task returns as JSON (XCom); the state of a run is JSON in its working files.
Only this module writes and reads either. Each dict has a schema version: ``from_dict`` raises
StorageError on another one.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import field, fields
from typing import Any, Self

from mondrian_ops.cut.plan_version import SCHEMA, check_schema
from mondrian_ops.late_methods import dataclass
from mondrian_ops.phases import Costs


class _Handed:
    """A frozen dataclass whose fields are JSON values."""

    def to_dict(self) -> dict[str, Any]:
        """A small JSON value."""
        values = {name: value for name, value in vars(self).items() if value is not None}
        return {"schema": SCHEMA, **values}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Self:
        """The value that :meth:`to_dict` described; other keys are ignored.

        Raises StorageError on another schema version.
        """
        check_schema(value)
        names = [each.name for each in fields(cls)]  # type: ignore[arg-type]  # of each subclass
        return cls(**{name: value[name] for name in names if name in value})


@dataclass(frozen=True)
class SeriesNight(_Handed):
    """A night of a series, as it was when its rows were gathered.

    ``number`` counts the nights of ``series``, from 1. Its drop has ``rows``; ``waited`` are pairs
    of a night and the number of its rows that had waited, the oldest first. ``boundaries`` are
    those of the nights before, as `SeriesBoundaries` writes them; ``refit``: a person asked for new
    ones. ``policies``: those under which the rows of the drop came, as JSON. ``arrivals``: pairs of
    a night whose rows had waited and the signature of what the catalogue said of their arrival.
    """

    series: str
    number: int
    rows: int
    waited: Sequence[Sequence[int]] = ()
    boundaries: Mapping[str, Any] | None = None
    refit: bool = False
    policies: Sequence[Mapping[str, Any]] | None = None
    arrivals: Sequence[tuple[int, str]] = ()


@dataclass(frozen=True)
class Fragment(_Handed):
    """Rows of the dataset that are anonymized on their own.

    ``where`` and ``any_of`` are its condition as it may be shown, as text and as data; the exact
    one is in the working files ``work``. ``fragments`` is None, except in a value that stands for
    all fragments of a run, which one Spark application anonymizes: there it is their number.
    """

    id: int
    where: str
    rows: int
    work: str
    any_of: Sequence[Sequence[Mapping[str, Any]]] = field(default_factory=list)
    fragments: int | None = None

    @classmethod
    def together(cls, fragments: Sequence[Fragment]) -> Fragment:
        """All fragments of a run as the work of one task."""
        return cls(
            id=0,
            where=f"{len(fragments)} fragments in one Spark application",
            rows=sum(fragment.rows for fragment in fragments),
            work=fragments[0].work,
            fragments=len(fragments),
        )

    @property
    def name(self) -> str:
        """Number and condition."""
        where = self.where or "all rows"
        return where if self.fragments is not None else f"{self.id}: {where}"


@dataclass(frozen=True)
class Summary(_Handed):
    """The result for a fragment; ``id``, ``where`` and ``work`` are those of the fragment.

    ``DP`` is a sum over its classes as they were cut. The work took ``seconds`` until ``finished``
    (Unix time). ``held`` rows wait for the next night of a series;
    ``counterfeits`` are rows that were made up, and are in no other figure.
    ``phases``: what each of them has cost, see :mod:`mondrian_ops.phases`.
    """

    id: int
    where: str
    work: str
    rows: int
    suppressed: int
    equivalence_classes: int
    DP: int
    seconds: float
    finished: float
    held: int = 0
    counterfeits: int = 0
    phases: Costs = field(default_factory=dict)

    @classmethod
    def of(cls, fragment: Fragment, measured: Mapping[str, Any], started: float) -> Summary:
        """The summary of a fragment whose rows are ``measured`` as :class:`Released` has it.

        ``started``: when the work on it began, on the performance counter.
        """
        seconds = round(time.perf_counter() - started, 3)
        about: dict[str, Any] = {"id": fragment.id, "where": fragment.where, "work": fragment.work}
        return cls(**about, **measured, seconds=seconds, finished=time.time())


@dataclass(frozen=True)
class Recounted(Summary):
    """A summary with the classes and the losses of its part as written.

    ``NCP`` is their sum, and so are the losses of ``attributes``; see `verify.loss.losses_of_part`.
    """

    NCP: float = 0.0
    attributes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Part(_Handed):
    """One of the ``parts`` of the rows that a first phase of a recoding works on."""

    part: int
    parts: int
    work: str


@dataclass(frozen=True)
class PartSummary(_Handed):
    """The result of a first phase for a part, after ``seconds``, ``finished`` at a Unix time."""

    part: int
    rows: int
    specializations: int
    equivalence_classes: int
    seconds: float
    finished: float


@dataclass(frozen=True)
class RunState(_Handed):
    """The results of the partition task, for the tasks that follow.

    ``leaves`` are the leaves of the plan in each of the ``fragments``; ``retrieval`` is how these
    get their rows: pushdown, scatter, shuffle or memory. ``files``: with pushdown, by leaf, the
    numbers of the source's files that may have rows of it; None: all of them. ``recoding`` is
    empty without global recoding, and None until it is chosen. ``dependencies``:
    :class:`~mondrian_ops.data.finding.Finding` as dicts. ``singled_out``:
    :class:`~mondrian_ops.verify.singling_out.SingledOut` as dicts, once classes are known;
    ``unattainable``: the rows of a
    series' night cannot be published, for this reason. ``source``: how the input was read.
    ``column_notes``: what is noted of columns' values. ``grids``: the steps of those that the
    values of columns decided. The others are as in a report.
    """

    rows: int
    columns: Mapping[str, Any]
    constant: str
    cut: Mapping[str, Any]
    retrieval: str
    leaves: Sequence[Sequence[int]]
    fragments: Sequence[Fragment]
    generalizations: Mapping[str, str]
    partitioning: Mapping[str, Any]
    files: Sequence[Sequence[int]] | None = None
    recoding: Mapping[str, Any] | None = None
    dependencies: Sequence[Mapping[str, Any]] = field(default_factory=list)
    singled_out: Sequence[Mapping[str, Any]] = field(default_factory=list)
    unattainable: str = ""
    column_notes: Sequence[str] = field(default_factory=list)
    grids: Mapping[str, float] = field(default_factory=dict)
    source: Mapping[str, Any] = field(default_factory=dict)
    timings_s: Mapping[str, float] = field(default_factory=dict)
    phases: Costs = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """A small JSON value."""
        return {**super().to_dict(), "fragments": [each.to_dict() for each in self.fragments]}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> RunState:
        """The state that :meth:`to_dict` described."""
        check_schema(value)
        fragments = tuple(map(Fragment.from_dict, value["fragments"]))
        return super().from_dict({**value, "fragments": fragments})


@dataclass(frozen=True)
class Sample(_Handed):
    """The rows that a frontier is measured on, ``measured`` of all ``rows``.

    The dataset was divided into ``fragments``, and ``drawn`` of them are in the working files
    ``work``; both numbers are 0 where all rows are measured.
    """

    work: str
    rows: int
    measured: int
    fragments: int = 0
    drawn: int = 0
