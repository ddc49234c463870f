"""Which drops of a landing folder a run of the nightly DAG takes.

A night takes every drop in its look-back that has no release, or was delivered again since, the
oldest first. A drop waits for a later night while it may still be being written, and while another
run is at work on its dataset, which includes waiting for an approval.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import field
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from mondrian_ops import stores
from mondrian_ops.errors import MondrianOpsError, StorageError
from mondrian_ops.late_methods import dataclass
from mondrian_ops.nightly.landing import MARKER, Drop, Landing
from mondrian_ops.stores.documents import json_value

_ONE_DAY = timedelta(days=1)


class State(StrEnum):
    """What becomes of a drop in a run."""

    TAKEN = "taken"
    HELD = "held"
    LEFT = "left"
    REJECTED = "rejected"
    INCOMPLETE = "incomplete"
    FUTURE = "dated in the future"
    MISSING = "missing"
    OVERDUE = "overdue"


@dataclass(frozen=True)
class Request:
    """Which drops a run is about.

    Attributes:
        first: the first day of the look-back.
        last: its last day.
        names: of drops that were announced: they are complete, whatever their day.
        is_explicit: somebody asked for these days: their drops are taken even if they have a
            release, were rejected or look incomplete.
    """

    first: date
    last: date
    names: frozenset[str] = frozenset()
    is_explicit: bool = False

    @classmethod
    def of(cls, run: Any, day: str | None, extras: Iterable[Any], lookback: int) -> Request:
        """The request of a DAG run: by hand for a day, a backfill, drops that events name, a night.

        ``extras``: those of the events that started the run.
        """
        if day:
            return cls(date.fromisoformat(day), date.fromisoformat(day), is_explicit=True)
        end = run.data_interval_end or run.run_after
        start = (run.data_interval_start or end - _ONE_DAY).date()
        last = max(start, (end - timedelta(microseconds=1)).date())
        if run.run_type == "backfill":
            return cls(start, last, is_explicit=True)
        names = [name for extra in extras for name in _announced(extra)]
        named = frozenset(name for name in names if isinstance(name, str))
        if names and all(isinstance(name, str) for name in names):
            return cls(date.max, date.min, named)
        return cls(min(start, last - (lookback - 1) * _ONE_DAY), last, named)

    @property
    def is_night(self) -> bool:
        """Whether it looks back, and so tells what is missing or overdue."""
        return self.first <= self.last and not self.is_explicit

    def covers(self, drop: Drop) -> bool:
        """Whether the run may take the drop."""
        return self.first <= drop.day <= self.last or drop.name in self.names


class Claim(NamedTuple):
    """That a run took a drop, as which of its jobs, in which version, and what it replaces.

    ``replaces`` is the time of the drop's release when it was taken; empty if it had none.
    """

    run: str
    number: int
    version: str | None
    replaces: str


class Claims(Protocol):
    """Who has taken which drop, by the scheduler's own records."""

    run_id: str

    def of(self, dataset: str) -> dict[str, Claim]:
        """The claims of a dataset, by day."""

    def keep(self, dataset: str, claims: Mapping[str, Claim]) -> None:
        """Replace the claims of a dataset."""

    def is_at_work(self, claim: Claim) -> bool:
        """Whether another run is still at work on the drop, or waits for an approval."""

    def is_rejected(self, claim: Claim) -> bool:
        """Whether somebody rejected the release of the drop."""


class Series(Protocol):
    """Which datasets are released as series, whose nights follow one another."""

    def has(self, dataset: str) -> bool:
        """Whether the job of the dataset says so."""

    def held(self, outputs: Collection[str]) -> Mapping[str, str]:
        """Those of some outputs whose nights are over without a release, each with its time."""


@dataclass
class Night:
    """Sorts out the drops of a landing folder for one run.

    Attributes:
        settle: how long a drop without a marker has to be unchanged.
        taken: after :meth:`sort_out`, the drops that the run takes, the oldest first.
        states: by drop, its state and the reason; a drop that needs nothing is left out.
        left: the drops of series that another run takes as soon as this one is over: the nights of
            a series follow one another.
        is_blocked: a drop that was asked for has to wait until another run is over.
    """

    request: Request
    releases: str
    claims: Claims
    series: Series
    settle: timedelta
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    taken: list[Drop] = field(default_factory=list)
    states: dict[str, tuple[State, str]] = field(default_factory=dict)
    left: list[Drop] = field(default_factory=list)
    is_blocked: bool = False
    _over: Mapping[str, str] = field(default_factory=dict, init=False)
    _unknown: str = field(default="", init=False)  # why it is not known which nights are over

    def sort_out(self, landing: Landing) -> None:
        """Decide which drops to take, and claim them."""
        self._read_over(landing)
        before = {dataset: self.claims.of(dataset) for dataset in landing.drops}
        after = {
            dataset: self._of_dataset(drops, before[dataset])
            for dataset, drops in landing.drops.items()
        }
        self.taken.sort(key=lambda drop: (drop.day, drop.dataset))
        for number, drop in enumerate(self.taken):
            replaces = self._published_at(drop) or ""
            claim = Claim(self.claims.run_id, number, drop.version, replaces)
            after[drop.dataset][str(drop.day)] = claim
        for dataset, claims in after.items():
            if claims != before[dataset]:
                self.claims.keep(dataset, claims)
        self._note_absent(landing)

    def summary(self) -> dict[str, list[str]]:
        """The names of the drops in each state."""
        names: dict[str, list[str]] = {}
        for name, (state, _) in sorted(self.states.items()):
            names.setdefault(str(state), []).append(name)
        return names

    def _read_over(self, landing: Landing) -> None:
        """Read which nights are over without a release, also those of a series that has ended.

        Raises OSError or MondrianOpsError if that cannot be read and days were asked for: no later
        night would take their drops.
        """
        outputs = [self._output(drop) for drops in landing.drops.values() for drop in drops]
        try:
            self._over = self.series.held(outputs)
        except (OSError, MondrianOpsError) as error:
            if self.request.is_explicit and any(map(self.series.has, landing.drops)):
                raise
            self._unknown = str(error)

    def _of_dataset(self, drops: list[Drop], claims: Mapping[str, Claim]) -> dict[str, Claim]:
        """Sort out the drops of a dataset; returns those of its claims that are still of use."""
        busy = {day: claim for day, claim in claims.items() if self.claims.is_at_work(claim)}
        published, is_series = self._published(drops), self.series.has(drops[0].dataset)
        of_use = set(busy)
        takes: list[Drop] = []
        for drop in drops:
            day = str(drop.day)
            found = self._state(drop, claims.get(day), busy, day in published, is_series)
            if found is not None and found[0] == State.TAKEN:
                if is_series and self._unknown:
                    found = State.OVERDUE, f"{_UNKNOWN} ({self._unknown})"
                elif is_series and takes:
                    found = State.LEFT, _LEFT
                    self.left.append(drop)
                else:
                    takes.append(drop)
            if found is not None:
                self.states[drop.name] = found
            if drop.day >= self.request.first or day not in published:
                of_use.add(day)
        self.taken += takes
        if not self.request.is_night:
            return dict(claims)
        self._note_missing(drops, published)
        return {day: claim for day, claim in claims.items() if day in of_use}

    def _state(
        self,
        drop: Drop,
        claim: Claim | None,
        busy: Mapping[str, Claim],
        is_published: bool,
        is_series: bool,
    ) -> tuple[State, str] | None:
        """The state of a drop and the reason; None for one that needs nothing."""
        request = self.request
        if not request.covers(drop):
            return self._state_outside(drop, claim, is_published)
        if request.is_explicit:
            own = busy.get(str(drop.day))
            if is_series and busy and not own:
                self.is_blocked = True
                own = next(iter(busy.values()))
            return (State.HELD, _held(own)) if own else (State.TAKEN, "was asked for")
        published = self._published_at(drop) if is_published else None
        # Claims of releases older than the look-back are gone: an event tells of a redelivery.
        is_announced = claim is None and drop.name in request.names
        if published and not is_announced and not _is_redelivered(drop, claim, published):
            return None
        if published and is_series:
            return State.OVERDUE, _AGAIN
        if busy:
            return State.HELD, _held(next(iter(busy.values())))
        if self._is_rejected(drop, claim):
            return State.REJECTED, _REJECTED
        if drop.name not in request.names:
            incomplete = drop.incomplete(self.now, self.settle)
            if incomplete:
                return State.INCOMPLETE, incomplete
        return State.TAKEN, _REPLACED if published else "has no release"

    def _state_outside(
        self, drop: Drop, claim: Claim | None, is_published: bool
    ) -> tuple[State, str] | None:
        """The same for a drop that lies outside the look-back."""
        request = self.request
        if not request.is_night:
            return None
        if drop.day > request.last:
            # The drop of the day after is early, others may have a wrong name.
            return (State.FUTURE, _FUTURE) if drop.day > request.last + _ONE_DAY else None
        if is_published:
            return None
        if self._is_rejected(drop, claim):
            return State.REJECTED, _REJECTED
        return State.OVERDUE, _OVERDUE

    def _is_rejected(self, drop: Drop, claim: Claim | None) -> bool:
        if claim is None or claim.version is None or claim.version != drop.version:
            return False
        return self.claims.is_rejected(claim)

    def _note_missing(self, drops: list[Drop], published: Collection[str]) -> None:
        """Note the days of the look-back, since the first drop, without a drop or a release."""
        known = {*published, *(str(drop.day) for drop in drops)}
        day = max(self.request.first, drops[0].day)
        while day <= self.request.last:
            if str(day) not in known:
                self.states[f"{drops[0].dataset}/{day}"] = State.MISSING, "no drop and no release"
            day += _ONE_DAY

    def _note_absent(self, landing: Landing) -> None:
        """Note what was announced and is not there, and what looks like a drop but is none."""
        names = {drop.name for drops in landing.drops.values() for drop in drops}
        for name in self.request.names - names:
            self.states[ascii(name)] = State.MISSING, "was announced, but is not there"
        if self.request.is_night:
            for name, problem in landing.unusable.items():
                self.states[name] = State.OVERDUE, problem

    def _published(self, drops: list[Drop]) -> Collection[str]:
        """The names in a dataset's folder of releases, and the days that a series is over with."""
        names: set[str] = {str(drop.day) for drop in drops if self._output(drop) in self._over}
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            names.update(stores.names_in(stores.joined(self.releases, drops[0].dataset)))
        return names

    def _output(self, drop: Drop) -> str:
        return drop.output(self.releases)

    def _published_at(self, drop: Drop) -> str | None:
        """When the release of a drop was made, or its night was over without; None if neither."""
        output = self._output(drop)
        if output in self._over:
            return self._over[output]
        try:
            stores.read_file(stores.joined(output, MARKER))
            report = json_value(stores.read_file(stores.joined(output, "_report.json")))
            return str(report["created"])
        except (FileNotFoundError, NotADirectoryError, PermissionError, StorageError):
            return None
        except (ValueError, LookupError, TypeError):  # not a report of ours
            return None


_FUTURE = "waits until its day is over; check its name"
_OVERDUE = (
    "has no release and is older than the look-back; run the DAG by hand with its day, or remove "
    "it from the landing folder"
)
_REJECTED = "stays so until it is delivered again; to ask again, run the DAG by hand with its day"
_LEFT = "follows when this run is over, because the nights of a series follow one another"
_AGAIN = (
    "was delivered again, but its rows are in the series already; deliver new or corrected rows as "
    "the drop of another day, and remove this one"
)
_UNKNOWN = "waits for a later night, because the nights of its series cannot be read"
_REPLACED = "was delivered again since its release, which will be replaced"


def _announced(extra: Any) -> list[Any]:
    """The drops that an event names; None where it names none."""
    if not isinstance(extra, Mapping):
        return [None]
    drops = extra.get("drops")
    return drops if isinstance(drops, list) and drops else [extra.get("drop")]


def _held(claim: Claim) -> str:
    return f"the run {claim.run} is at work on this dataset, or waits for an approval"


def _is_redelivered(drop: Drop, claim: Claim | None, published: str) -> bool:
    """Whether a drop is newer than its release, which was made at the time ``published``.

    A claimed version is published when the release is not the one of the time of the claim.
    """
    if claim is None or drop.version is None:
        return False
    return claim.version != drop.version or claim.replaces == published
