"""A series whose nights are killed, repeated, late and in each other's way, at random.

The runs are those of Airflow's tasks: each phase in a process of its own, tried again after a kill,
and cleaned up. What became of every row is read from the releases, the files of waiting rows and
the tables of the catalogue, by nothing of the package. Where the series follows its persons, no
release tells rows apart: there the catalogue says who is in it.
"""

from __future__ import annotations

import os
import random
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq

from faults.injection import IN_TIME, KILLS, Fault
from faults.process import Ended, Processes
from mondrian_ops import catalogue as catalogues
from mondrian_ops import datasets, publish
from mondrian_ops.catalogue import signatures
from mondrian_ops.job.job import Job
from mondrian_ops.series import keyed_hashes
from mondrian_ops.series.naming import name_of_series

_FIRST = date(2025, 1, 1)
_TRIES = 8
_ANEW = "run again from the partition task"
_ALREADY = "is in the series already"
_STRANGERS = "persons were in a night before"


@dataclass(frozen=True)
class Seen:
    """The nights that are over, what became of their rows, and the nights that are pending.

    Rows are told by number; by person, where the series follows its persons.
    """

    labels: Sequence[str]
    published: Counter[int]
    waiting: Counter[int]
    suppressed: int
    pending: Sequence[str]

    @property
    def summary(self) -> str:
        return (
            f"{len(self.published)} rows published, {len(self.waiting)} wait, "
            f"{self.suppressed} suppressed"
        )


@dataclass
class _Run:
    """One run of the DAG: its drop, its working files, and what its tasks have given so far."""

    night: int
    job: dict[str, Any]
    work: str
    values: list[Any] = field(default_factory=list)


def _rows(datasets: Iterable[Path]) -> Counter[int]:
    """How often which row is in them; the nights that held all their rows have no release."""
    return Counter(row["row"] for dataset in datasets for row in _table(dataset))


def _table(dataset: Path) -> list[dict[str, Any]]:
    if not (dataset.is_file() or (dataset / "_SUCCESS").exists()):
        return []
    rows: list[dict[str, Any]] = pq.read_table(dataset).to_pylist()
    return rows


def _people_in(release: Path) -> int:
    """The rows of a release that are not made up."""
    made_up = _table(release / "_counterfeits.parquet")
    return len(_table(release)) - sum(row["counterfeits"] for row in made_up)


def _assert_failed(ended: Ended, says: str) -> None:
    assert ended.how == "failed" and says in ended.error, (ended.how, ended.error)


class _OverError(Exception):
    """The night of a run is in the series already."""


class _TooEarlyError(Exception):
    """Most people of a drop came with late drops, which are not released yet."""


class RandomNights:
    """Nights of one series in ``place``; every choice is drawn with ``seed``.

    Attributes:
        struck: how often what was done to them.
    """

    def __init__(
        self,
        place: Path,
        catalogue: Path,
        processes: Processes,
        seed: int,
        job: Mapping[str, Any],
        population: datasets.Population,
    ) -> None:
        self.struck: Counter[str] = Counter()
        self._place, self._catalogue, self._processes = place, catalogue, processes
        self._choice = random.Random(seed)
        self._job = dict(job)
        self._drops = datasets.nights(population)
        self._landed: dict[str, Sequence[int]] = {}
        self._passed: dict[str, tuple[str, ...]] = {}
        self._rows = self._runs = 0
        self._persons: list[int] = []
        self._late: list[int] = []
        self._given_up: set[int] = set()
        self._follows = "protect" in job["series"]
        (place / "landing").mkdir(parents=True)
        (place / "out").mkdir()

    def go(self, nights: int) -> None:
        """Deliver so many drops and see to the end of each of them."""
        for number in range(nights):
            self._deliver(number)
            if self._chance(0.15):
                self.struck["late"] += 1
                self._late.append(number)
            else:
                self._see_to(number)
            if self._late and self._chance(0.4):
                self._see_to(self._late.pop(self._choice.randrange(len(self._late))))
        while self._late:
            self._see_to(self._late.pop())

    def seen(self) -> Seen:
        """Look at everything from outside."""
        with sqlite3.connect(self._catalogue) as database:
            nights = database.execute(
                "SELECT label, rows_suppressed FROM night WHERE state != 'pending'"
            ).fetchall()
            pending = database.execute("SELECT label FROM night WHERE state = 'pending'").fetchall()
            files = database.execute(
                "SELECT DISTINCT file FROM waiting WHERE night = (SELECT id FROM night"
                " WHERE state != 'pending' ORDER BY number DESC LIMIT 1)"
            ).fetchall()
        labels = [label for label, _ in nights]
        published = self._released(labels)
        waiting = self._rows_in(Path(file) for (file,) in files)
        suppressed = sum(suppressed for _, suppressed in nights)
        return Seen(labels, published, waiting, suppressed, [label for (label,) in pending])

    def check(self) -> None:
        """Every row of every night that is over is in exactly one place."""
        seen = self.seen()
        rows = [row for label in seen.labels for row in self._landed[label]]
        came = Counter(self._persons[row] for row in rows) if self._follows else Counter(rows)
        found = seen.published + seen.waiting
        assert len(seen.labels) == len({*seen.labels})
        assert found <= came
        assert came.total() == found.total() + seen.suppressed
        # A run that was given up may have left its release; the next night makes it current.
        assert len(seen.pending) <= 1
        given_up = self._released(seen.pending)
        everything = sum(_people_in(each) for each in (self._place / "out").iterdir())
        assert everything == seen.published.total() + given_up.total()
        if not self._follows:
            assert not given_up.keys() & seen.published.keys()

    def check_all(self) -> None:
        """The same, and the night of every drop is over."""
        self.check()
        assert sorted(self.seen().labels) == sorted(self._landed)

    def values_left(self) -> Mapping[int, set[str]]:
        """What whoever holds all releases knows of each person's diagnosis: what it may be."""
        possible: dict[int, set[str]] = {}
        for label in self.seen().labels:
            rows = _table(self._place / "out" / label)
            columns = {name: [row[name] for row in rows] for name in ("age", "sex", "zip")}
            texts = keyed_hashes.class_texts(pa.table(columns)) if rows else []
            values: dict[int, set[str]] = {}
            classes = keyed_hashes.class_hashes(self._name, texts).tolist() if rows else []
            for number, row in zip(classes, rows, strict=True):
                values.setdefault(number, set()).add(row["diagnosis"])
            for person, number in self._classes_in(label).items():
                here = values[number] - {None}
                possible[person] = possible.get(person, here) & here
        return possible

    @property
    def _name(self) -> str:
        return name_of_series(str(self._place / "out" / str(_FIRST)))

    def _classes_in(self, label: str) -> dict[int, int]:
        """The class of each person in a release, both as hashes."""
        with sqlite3.connect(self._catalogue) as database:
            found = database.execute("SELECT id FROM night WHERE label = ?", [label]).fetchall()
        with catalogues.current().reading() as connection:
            return signatures.classes_in(connection, found[-1][0]) or {} if found else {}

    def _released(self, labels: Iterable[str]) -> Counter[int]:
        """What is in some releases."""
        if not self._follows:
            return _rows(self._place / "out" / label for label in labels)
        everybody = sorted({*self._persons})
        job = Job.from_dict(self._run(0).job)
        hashes = keyed_hashes.person_hashes(job, self._name, pa.array(everybody, pa.int64()))
        person = dict(zip(hashes.tolist(), everybody, strict=True))
        released = [label for label in labels if _table(self._place / "out" / label)]
        return Counter(person[each] for label in released for each in self._classes_in(label))

    def _rows_in(self, files: Iterable[Path]) -> Counter[int]:
        """What is in some files of rows that wait."""
        name = "person" if self._follows else "row"
        return Counter(row[name] for file in files for row in _table(file))

    def left(self) -> list[str]:
        """Names beside the releases, the rows that wait and the drops."""
        return sorted(
            path.name
            for path in (self._place / "out").iterdir()
            if path.name.startswith(".") and path.name != ".mondrian_waiting"
        )

    # What is done to them

    def _see_to(self, number: int) -> bool:
        """Run after run, until the night is over; whether it became current now.

        It has before if the run that was given up had published it; or it comes after others.
        """
        for _ in range(_TRIES):
            run = self._run(number)
            try:
                if self._chance(0.1) and self._late:
                    self._be_overtaken(run)
                elif self._through(run):
                    self._over(number)
                    return True
                elif self._chance(0.5):
                    self.struck["comes after others"] += 1
                    self._late.append(number)
                    return False
            except _OverError:
                self._clean_up(run)
                self._over(number)
                return False
            except _TooEarlyError:
                self._clean_up(run)
                self.struck["came too early"] += 1
                earliest = min(self._late)
                self._late.remove(earliest)
                self._see_to(earliest)
        raise AssertionError(f"night {number} does not end")

    def _are_strangers(self, number: int) -> bool:
        """Whether fewer than three in five people of a drop were released before.

        A release is refused below one half of its own rows; rows that are left out are none.
        """
        came = {self._persons[row] for row in self._landed[str(_FIRST + timedelta(days=number))]}
        published = self.seen().published
        known = {*published} if self._follows else {self._persons[row] for row in published}
        return 5 * len(known & came) < 3 * len(came)

    def _over(self, number: int) -> None:
        if self._chance(0.2):
            self.struck["run again"] += 1
            again = self._run(number)
            _assert_failed(self._phase(again, "partition", None), _ALREADY)
            self._clean_up(again)
        self.check()

    def _be_overtaken(self, run: _Run) -> None:
        """Another night is published while this one is computed: this one has to begin again."""
        if not self._through(run, phases=("partition", "anonymize_fragment")):
            return
        if self._see_to(self._late.pop()):
            self.struck["overtaken"] += 1
            ended = self._phase(run, "wrap_up", None)
            too_early = _STRANGERS in ended.error and self._are_strangers(run.night)
            _assert_failed(ended, _STRANGERS if too_early else _ANEW)
        self._clean_up(run)

    def _through(
        self,
        run: _Run,
        phases: Sequence[str] = ("partition", "anonymize_fragment", "wrap_up"),
    ) -> bool:
        """The tasks of a run, each tried again after a fault; False if the run was given up."""
        for phase in phases:
            times = len(run.values[0]) if phase == "anonymize_fragment" else 1
            for _ in range(times):
                if not self._task(run, phase):
                    self.struck["given up"] += 1
                    self._given_up.add(run.night)
                    self._clean_up(run)
                    return False
        if "wrap_up" in phases:
            assert self._task(run, "clean_up")
        return True

    def _task(self, run: _Run, phase: str) -> bool:
        """A task and its retries."""
        for retry in range(_TRIES):
            fault = self._fault(phase) if retry < 3 else None
            ended = self._phase(run, phase, fault)
            if ended.how == "done":
                return True
            if run.night in self._given_up and _ALREADY in ended.error:
                raise _OverError  # the run that was given up had published it
            if _STRANGERS in ended.error and self._late and self._are_strangers(run.night):
                raise _TooEarlyError
            assert ended.how == "killed", (ended.how, ended.error)
            self.struck[f"{phase} killed"] += 1
            if phase != "clean_up" and self._chance(0.4):
                return False
        raise AssertionError(f"{phase} does not end")

    def _clean_up(self, run: _Run) -> None:
        assert self._phase(run, "clean_up", None).how == "done"

    def _fault(self, phase: str) -> Fault | None:
        if not self._chance(0.4):
            return None
        points = self._passed.get(phase)
        if not points or self._chance(0.2):
            return Fault(f"{self._choice.uniform(0.01, 0.4):.3f}", IN_TIME)
        if self._chance(0.8):  # where a release is out, but its night not current yet
            points = points[-8:]
        return Fault(self._choice.choice(points), self._choice.choice(KILLS))

    def _phase(self, run: _Run, phase: str, fault: Fault | None) -> Ended:
        values = [] if phase == "partition" else run.values
        args = {"job": run.job, "work": run.work, "values": values}
        ended = self._processes.run([phase], self._place, fault, **args)
        if ended.how == "done":
            self._passed[phase] = ended.passed
            run.values = ended.value
        return ended

    def _run(self, number: int) -> _Run:
        day = _FIRST + timedelta(days=number)
        output = self._place / "out" / str(day)
        source = self._place / "landing" / f"{day}.parquet"
        self._runs += 1
        unlisted = "drop" if self._follows else "publish"
        job = {**self._job, "input": str(source), "output": str(output), "unlisted": unlisted}
        return _Run(number, job, publish.work_path(str(output), f"run-{self._runs}"))

    def _deliver(self, number: int) -> None:
        day, drop = next(self._drops)
        rows = range(self._rows, self._rows + len(drop))
        self._rows += len(drop)
        path = self._place / "landing" / f"{day}.parquet"
        self._persons += drop["person"].to_pylist()
        drop = drop.select(["name", "person", "age", "sex", "zip", "diagnosis"])
        pq.write_table(drop.append_column("row", pa.array(rows, pa.int64())), path)
        self._landed[str(day)] = rows

    def _chance(self, share: float) -> bool:
        return self._choice.random() < share


_INTERSECTED = {"protect": "intersection"}
KINDS_OF_SERIES: Mapping[str, Mapping[str, Any]] = {
    "rows wait": {"hold_nights": 3, "hold_above": 0.2},
    "rows wait if they must": {"hold_nights": 2},
    "stable boundaries": {"hold_nights": 2, "boundaries": "stable"},
    "snapshots": {"kind": "snapshots"},
    "intersected, rows wait": {"hold_nights": 3, "hold_above": 0.3, **_INTERSECTED},
    "intersected snapshots": {"kind": "snapshots", "unmatched": "suppress", **_INTERSECTED},
    "balanced snapshots": {
        "kind": "snapshots",
        "unmatched": "counterfeit",
        "subtraction": "protect",
        **_INTERSECTED,
    },
    "overdue rows are suppressed": {"hold_nights": 2, "hold_above": 0.3, "overdue": "suppress"},
}
"""Options of the series."""


@contextmanager
def random_nights(place: Path, kind: str, seed: int) -> Iterator[RandomNights]:
    """A series of small and uneven nights of one of the kinds."""
    catalogue = place / "catalogue.db"
    job = {
        "k": 4,
        "l": 2,
        "identifiers": ["name"],
        "quasi_identifiers": ["age", "sex", "zip=prefix"],
        "sensitive": ["diagnosis"],
        "cut": "median",
        "partitioning": {"fragments": 2},
        "series": KINDS_OF_SERIES[kind],
    }
    if "protect" in KINDS_OF_SERIES[kind]:
        job["entity_id"] = "person"
    population = datasets.Population(30, 1000, seed, spread=29, back=0.4)
    if KINDS_OF_SERIES[kind].get("kind") == "snapshots":
        population = datasets.Population(40, 1000, seed, kind="snapshots", leave=0.2, come=0.2)
    with patch.dict(os.environ, {"MONDRIAN_OPS_CATALOGUE": str(catalogue)}):
        processes = Processes()
        try:
            yield RandomNights(place / "nights", catalogue, processes, seed, job, population)
        finally:
            processes.close()
