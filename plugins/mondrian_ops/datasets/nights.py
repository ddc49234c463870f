"""A population that changes from night to night, as the drops that an ETL delivers.

Each night some people leave, some come (among them some who come back), some move, and some get
another diagnosis. A night depends on the seed, the earlier nights and its own number only, so the
same population and seed give the same drops, and fewer nights are the beginning of more.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mondrian_ops.datasets import people
from mondrian_ops.errors import InputError, StorageError
from mondrian_ops.late_methods import dataclass

KINDS = ("increments", "snapshots")
_REMEMBERED = 1 << 17
"""At most so many of the people who left are remembered, so that memory does not grow."""


@dataclass(frozen=True)
class Population:
    """How a population changes; the rates are shares per night."""

    rows: int
    """People of the first snapshot, or of an increment on average."""
    nights: int
    seed: int = 0
    kind: str = "increments"
    """``snapshots``: a drop has everybody who is there. ``increments``: only who comes that night,
    and leaves again before the next."""
    leave: float = 0.05
    """Share of the people who leave (snapshots)."""
    come: float = 0.05
    """People who come, as a share of ``rows`` (snapshots)."""
    back: float = 0.0
    """Share of those who come that were there before, as far as anybody left."""
    move: float = 0.02
    """Share of the people who have another zip code: of those who stay, and who come back."""
    change: float = 0.0
    """Share of the same people who have another diagnosis."""
    spread: int = 0
    """``rows - spread`` to ``rows + spread`` people come in an increment."""
    first_day: date = date(2025, 1, 1)

    def check(self) -> None:
        """Raise InputError for a population that cannot be."""
        if self.kind not in KINDS:
            raise InputError(f"drops: {self.kind!r} is not one of {', '.join(KINDS)}")
        for option, value, least in (
            ("rows", self.rows, 1), ("nights", self.nights, 1), ("seed", self.seed, 0)
        ):  # fmt: skip
            if value < least:
                raise InputError(f"{option}: must be at least {least}, not {value}")
        for option in ("leave", "come", "back", "move", "change"):
            rate = getattr(self, option)
            if not 0 <= rate <= 1:
                raise InputError(f"{option}: must be a share from 0 to 1, not {rate}")
        if not 0 <= self.spread < self.rows:
            raise InputError(
                f"spread: must be at least 0 and below rows ({self.rows}), not {self.spread}"
            )
        if self.spread and self.kind == "snapshots":
            raise InputError("spread: is for increments; use leave and come for snapshots")


def nights(population: Population) -> Iterator[tuple[date, pa.Table]]:
    """Each night's day and drop, one row per person, one after the other.

    A drop has ``person`` (int64: the same person has the same number in every drop) and the columns
    of :func:`people`. Memory is that of a few drops. Raises InputError for a population that
    cannot be, at once and not with the first drop.
    """
    population.check()
    return _nights(population)


def _nights(population: Population) -> Iterator[tuple[date, pa.Table]]:
    present = gone = _newcomers(np.random.default_rng(0), 0, 0)
    known = 0
    for night in range(population.nights):
        generator = np.random.default_rng([population.seed, night])
        present, left = _parted(present, _leavers(population, generator, len(present)))
        coming = _coming(population, generator, night)
        returning = min(int(generator.binomial(coming, population.back)), len(gone))
        gone, back = _parted(gone, generator.permutation(len(gone))[:returning])
        gone = pa.concat_tables([gone, left])
        gone = gone.take(_some(generator, len(gone), _REMEMBERED)).combine_chunks()
        known_before = _changed(population, generator, pa.concat_tables([present, back]))
        new = _newcomers(generator, coming - returning, known)
        known += len(new)
        present = pa.concat_tables([known_before, new]).combine_chunks()
        yield population.first_day + timedelta(days=night), present


def _leavers(population: Population, generator: np.random.Generator, people: int) -> np.ndarray:
    if population.kind == "increments":
        return np.arange(people)
    return np.flatnonzero(generator.random(people) < population.leave)


def _coming(population: Population, generator: np.random.Generator, night: int) -> int:
    if population.kind == "increments":
        return population.rows + int(
            generator.integers(-population.spread, population.spread, endpoint=True)
        )
    return population.rows if night == 0 else round(population.come * population.rows)


def _parted(table: pa.Table, places: np.ndarray) -> tuple[pa.Table, pa.Table]:
    """The other rows, and those at ``places``."""
    mask = np.zeros(len(table), dtype=bool)
    mask[places] = True
    return table.filter(pa.array(~mask)), table.filter(pa.array(mask))


def _some(generator: np.random.Generator, rows: int, most: int) -> np.ndarray:
    """The places of ``most`` of the rows, drawn at random, in order; of all if there are fewer."""
    if rows <= most:
        return np.arange(rows)
    return np.sort(generator.permutation(rows)[:most])


def _newcomers(generator: np.random.Generator, rows: int, known: int) -> pa.Table:
    batch = people.block(generator, rows)
    numbers = pa.array(np.arange(known, known + rows))
    return pa.Table.from_batches([batch]).add_column(0, "person", numbers)


def _changed(population: Population, generator: np.random.Generator, table: pa.Table) -> pa.Table:
    """The people, some of whom have the zip code or the diagnosis of somebody new."""
    for column, rate in (("zip", population.move), ("diagnosis", population.change)):
        chosen = generator.random(len(table)) < rate
        at = table.schema.get_field_index(column)
        values = people.redrawn(generator, column, table["age"].to_numpy()[chosen])
        table = table.set_column(at, column, _replaced(table[column], chosen, values))
    return table


def _replaced(column: pa.ChunkedArray, chosen: np.ndarray, values: pa.Array) -> pa.Array:
    """The column with ``values``, in order, where ``chosen``."""
    rows = np.arange(len(column))
    rows[chosen] = len(column) + np.arange(len(values))
    return pa.chunked_array([*column.chunks, values]).take(pa.array(rows)).combine_chunks()


def generate_nights(population: Population, output: str) -> int:
    """Write each drop to ``output``/DAY/people.parquet, with a ``_SUCCESS``; the rows of all.

    That is a dataset's folder in the landing folder of ``mondrian_nightly``. A drop appears whole
    or not at all. Raises InputError for a population that cannot be, StorageError if a drop of one
    of the days is there already or cannot be written.
    """
    drops = nights(population)
    folder = Path(output)
    for night in range(population.nights):
        day = folder / str(population.first_day + timedelta(days=night))
        if day.exists():
            raise StorageError(f"output: {str(day)!r} exists already; name another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return sum(_write(folder / str(day), drop) for day, drop in drops)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise StorageError(f"output: {output!r} cannot be written: {reason}") from error


def _write(folder: Path, drop: pa.Table) -> int:
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        pq.write_table(drop, partial / "people.parquet", compression="zstd")
        (partial / "_SUCCESS").touch()
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return len(drop)
