"""Whether the persons of each class of a part have diverse values, as the part was written.

Values are compared as `release_values` does. This shares no code with encoding and cutting, nor
with what joins classes until persons have them (`algorithms.person_values`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops.data.column_types import plain_schema
from mondrian_ops.errors import PrivacyError
from mondrian_ops.job.checks import with_codes
from mondrian_ops.job.job import Job
from mondrian_ops.job.widths import Width, widths_of
from mondrian_ops.verify.loss import columns_of
from mondrian_ops.verify.spread import most_persons
from mondrian_ops.verify.truth import Read
from mondrian_ops.verify.values import ColumnValues, places

Ints = NDArray[np.int64]

_MOST_TRIED = 100_000  # combinations of values


def check_persons_values(
    job: Job,
    columns: Sequence[str],
    read: Read,
    persons: pa.ChunkedArray,
    where: str,
) -> None:
    """Refuse a part with a class in which each person has one of l - 1 values.

    Or, where the job gives a width, in which an interval of it has more than 1/l of the persons.
    ``read`` reads some of the ``columns`` of the part; ``persons`` (rows,): whose row each is.
    Raises PrivacyError.
    """
    # Where a series follows persons, each has one row, and some are counterfeits. Where
    # recoding is global, classes cannot be joined one by one: l counts rows there.
    if job.l is None or job.follows_persons or job.recodes_globally:
        return
    part = pa.Table.from_batches(list(read(columns)))
    if not part.num_rows:
        return
    part = part.cast(plain_schema(part.schema))
    class_of = _classes(part, job.quasi_identifier_names)
    person = _codes(persons, ColumnValues("entity_id", nan_is_missing=True))
    widths, of_codes = widths_of(job.l_width), with_codes(job)
    for name in job.sensitive:
        values = ColumnValues(name, nan_is_missing=True, read=True, numbers=name not in of_codes)
        codes = _codes(part[name], values)
        counts = (codes > 0) | (job.missing_sensitive == "value")
        triples = class_of[counts], person[counts], codes[counts]
        or_width = " or the width" if name in widths else ""
        if name in widths:
            failing = _not_spread(*triples, values, widths[name], job.l)
            problem = (
                f"more than 1/{job.l:g} of the persons have values of column {name!r} within "
                f"{widths[name].text} of one another, which l_width"
            )
        else:
            fewer = math.ceil(job.l - 1e-9) - 1
            failing = sum(_is_covered(*each, fewer) for each in _by_class(*triples))
            problem = f"each person has one of {fewer} value(s) of column {name!r}, which l"
        if failing:
            count = int(class_of[-1]) + 1
            raise PrivacyError(
                f"l: in {failing} of {count} classes of {where} {problem} does not allow "
                f"where entity_id counts persons; lower l{or_width}, or use fewer fragments"
            )


def _classes(part: pa.Table, quasi_identifiers: Sequence[str]) -> Ints:
    """(rows,) the number of each row's class; the rows of a class follow one another."""
    begins = np.zeros(part.num_rows, np.int64)
    for name in quasi_identifiers:
        for column in columns_of(name, part.column_names):
            codes = _codes(part[column], ColumnValues(column))
            begins[1:] |= codes[1:] != codes[:-1]
    return np.cumsum(begins)


def _codes(column: pa.ChunkedArray, values: ColumnValues) -> Ints:
    """(rows,) the code of each value among ``values``, to which they are added."""
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # too long for one
        array = pa.concat_arrays(array.chunks)
    encoded = values.encoded(array)
    codes: Ints = values.codes_of(encoded.dictionary)[places(encoded)].astype(np.int64)
    return codes


def _not_spread(
    class_of: Ints, person: Ints, codes: Ints, values: ColumnValues, width: Width, level: float
) -> int:
    """How many classes have an interval of the width with too many of their persons."""
    pairs = np.unique(np.stack([class_of, person]), axis=1)
    people = np.bincount(pairs[0])
    missing = codes == 0  # no other value is near it
    having = np.unique(np.stack([class_of, person])[:, missing], axis=1)
    most = np.bincount(having[0], minlength=len(people))
    of_values = most_persons(
        values.values,
        class_of[~missing],
        person[~missing],
        codes[~missing] - 1,
        values.name,
        width,
    )
    most[: len(of_values)] = np.maximum(most[: len(of_values)], of_values)
    return int(np.count_nonzero(most * level > people * (1 + 1e-9)))


def _by_class(
    class_of: Ints, person: Ints, codes: Ints
) -> Iterable[tuple[int, list[int], list[tuple[int, int]]]]:
    """Of each class: its persons, the persons of each value, and the pairs of both."""
    triples = pa.table({"class": class_of, "person": person, "value": codes})
    found = triples.group_by(triples.column_names).aggregate([]).sort_by("class")
    numbers = [found[name].to_numpy() for name in triples.column_names]
    cuts = np.flatnonzero(np.diff(numbers[0])) + 1
    for person, value in zip(*(np.split(each, cuts) for each in numbers[1:]), strict=True):
        pairs = list(zip(person.tolist(), value.tolist(), strict=True))
        having = sorted(Counter(value.tolist()).values(), reverse=True)
        yield len({*person.tolist()}), having, pairs


def _is_covered(
    persons: int, having: Sequence[int], pairs: Sequence[tuple[int, int]], values: int
) -> bool:
    """Whether each person has one of some so many values."""
    if sum(having[:values]) < persons:
        return False
    if len(having) <= values or values < 2:
        return True
    if math.comb(len(having), values) > _MOST_TRIED:
        return True
    of_value: dict[int, set[int]] = {}
    for person, value in pairs:
        of_value.setdefault(value, set()).add(person)
    return any(
        len(set().union(*some)) == persons for some in combinations(of_value.values(), values)
    )
