"""What the attacker of a series has: releases as published, and drops as delivered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops import publish, stores, tables
from mondrian_ops.data.encoding import as_array
from mondrian_ops.errors import StorageError
from mondrian_ops.job.job import Job
from mondrian_ops.series.history import types_of
from mondrian_ops.series.keyed_hashes import (
    class_hashes,
    class_texts,
    hashes_as_written,
    person_hashes,
    value_hashes,
)
from mondrian_ops.verify.requirements import published_columns

Ints = NDArray[np.int64]


@dataclass
class Release:
    """A release as published: its classes, and the class and the sensitive value of each row."""

    published: Mapping[str, pa.Array]  # (classes,) by column
    number_of: Mapping[int, int]  # the class of a hash
    class_of: Ints  # (rows,)
    value: Ints  # (rows,)
    made_up: Counter[int | None]  # counterfeits in each class; None: of no class here

    @property
    def values(self) -> list[set[int]]:
        """The sensitive values in each class."""
        found: list[set[int]] = [set() for _ in self.number_of]
        for number, value in zip(self.class_of.tolist(), self.value.tolist(), strict=True):
            found[number].add(value)
        return found


@dataclass
class DropRows:
    """Rows of a drop: the persons, their sensitive values as written, and quasi-identifiers.

    ``seen`` (rows,) bool: whether an earlier release may have the row, and it was counted there.
    """

    person: Ints
    value: Ints
    places: pa.Table
    seen: NDArray[np.bool_]

    def without(self, used: Iterable[int]) -> DropRows:
        """The rows that are not ``used``."""
        rest = np.setdiff1d(np.arange(len(self.person)), np.array(list(used), np.int64))
        places = self.places.take(pa.array(rest))
        return DropRows(self.person[rest], self.value[rest], places, self.seen[rest])


class Evidence:
    """Reads the drops and releases of a series, whose sensitive values it compares as hashes.

    Attributes:
        name: of the series.
        spelled: of values that were read, by their hashes, those that the series spells otherwise.
    """

    def __init__(self, job: Job, name: str) -> None:
        self.name = name
        self.spelled: dict[int, int] = {}
        self._job = job
        (self._sensitive,) = job.sensitive

    def drop(self, location: str, output: str) -> DropRows:
        """The rows of a drop, read as they were for its release at ``output``."""
        location = stores.resolved(location)
        stores.check_location("input", location)
        job = self._job
        names = [str(job.entity_id), *job.sensitive, *job.quasi_identifier_names]
        known = types_of(self.name, output)
        source = tables.open_table(location, names, False, True, job.types, job.csv, known)
        batches = [*source.batches(names)]  # raises InputError where a column is missing
        schema = pa.schema([source.schema.field(name) for name in names])
        table = pa.Table.from_batches(batches, schema)
        persons = person_hashes(job, self.name, table[str(job.entity_id)], may_lack=True)
        values = self._written(table[self._sensitive])
        places = table.select(list(job.quasi_identifier_names))
        return DropRows(persons, values, places, np.zeros(len(persons), np.bool_))

    def release(self, output: str) -> Release:
        """A release as published; raises PrivacyError where it lacks a column."""
        names: tuple[str, ...] = ()
        tables = []
        for file in publish.release_files(output):
            names = published_columns(self._job, file.columns)
            tables.append(pa.Table.from_batches(file.batches([*names, self._sensitive])))
        columns = {
            name: [as_array(table[name]) for table in tables] for name in (*names, self._sensitive)
        }
        table = pa.table({name: pa.concat_arrays(each) for name, each in columns.items()})
        texts = class_texts(table.select(list(names))).dictionary_encode()
        class_of = texts.indices.to_numpy().astype(np.int64)
        _, first = np.unique(class_of, return_index=True)
        hashes = class_hashes(self.name, texts.dictionary).tolist()
        of_class = table.select(list(names)).take(pa.array(first))
        beside = self._counterfeits(output)
        number = {text: at for at, text in enumerate(texts.dictionary.to_pylist())}
        made_up: Counter[int | None] = Counter()
        for text, rows in beside.items():
            made_up[number.get(text)] += rows
        return Release(
            {name: of_class[name].combine_chunks() for name in names},
            {key: number for number, key in enumerate(hashes)},
            class_of,
            self._written(table[self._sensitive]),
            made_up,
        )

    def _counterfeits(self, output: str) -> Counter[str]:
        """How many rows of each class are made up, by its text."""
        if not self._job.follows_persons:
            return Counter()
        from mondrian_ops.series.intersection.counterfeits import by_class

        return by_class(output) or Counter()

    def _written(self, column: pa.ChunkedArray) -> Ints:
        """Hashes of the values of a column, byte by byte."""
        written = hashes_as_written(self._job, self.name, column)
        spelled = value_hashes(self._job, self.name, column)
        differs = written != spelled
        self.spelled.update(zip(written[differs].tolist(), spelled[differs].tolist(), strict=True))
        return written

    @staticmethod
    def input_of(release: str) -> str:
        """What a release was made from; raises StorageError where its report does not say it."""
        try:
            return str((publish.report_of(release) or {})["job"]["input"])
        except (LookupError, TypeError):
            raise StorageError("its report does not say what it was made from") from None
