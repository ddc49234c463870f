"""Whether the persons of each class have diverse values, as the classes were written.

Values are compared as `release_values` does. This shares no code with encoding and cutting, nor
with what joins classes until persons have them (`cut.person_values`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops.data.column_types import plain_schema
from mondrian_ops.errors import PrivacyError
from mondrian_ops.job.checks import with_codes
from mondrian_ops.job.job import Job
from mondrian_ops.job.widths import Width, widths_of
from mondrian_ops.verify.loss import columns_of
from mondrian_ops.verify.quoted_texts import as_texts
from mondrian_ops.verify.spread import most_persons
from mondrian_ops.verify.truth import Read
from mondrian_ops.verify.values import ColumnValues, places

Ints = NDArray[np.int64]

_MOST_LOOKED_AT = 10_000_000  # persons, of a class


def check_persons_values(
    job: Job,
    columns: Sequence[str],
    read: Read,
    persons: pa.ChunkedArray,
    where: str,
) -> None:
    """Refuse a part with a class of which :func:`persons_failures` tells, by PrivacyError.

    ``read`` reads some of the ``columns`` of the part.
    """
    if counts_persons_values(job):
        part = pa.Table.from_batches(list(read(columns)))
        for failure in persons_failures(job, part, persons, where):
            raise PrivacyError(failure)


def counts_persons_values(job: Job) -> bool:
    """Whether l counts the values of persons.

    Where a series follows persons, each has one row, and some are counterfeits.
    """
    return job.l is not None and job.entity_id is not None and not job.follows_persons


def persons_failures(
    job: Job, part: pa.Table, persons: pa.ChunkedArray, where: str
) -> Iterator[str]:
    """How many classes of ``part`` have persons with too few values, and the remedy.

    Those in which each person has one of l - 1 values or, where the job gives a width, in which an
    interval of it has more than 1/l of the persons. ``persons`` (rows,): whose row each is; the
    ``part`` has whole classes.
    """
    if job.l is None or not part.num_rows:
        return
    part = part.cast(plain_schema(part.schema))
    class_of = _classes(part, job.quasi_identifier_names)
    count, remedy = int(class_of.max()) + 1, _remedy(job)
    person = _codes(persons, ColumnValues("entity_id", nan_is_missing=True))
    widths, of_codes = widths_of(job.l_width), with_codes(job)
    for name in job.sensitive:
        values = ColumnValues(name, nan_is_missing=True, read=True, numbers=name not in of_codes)
        codes = _codes(part[name], values)
        counts = (codes > 0) | (job.missing_sensitive == "value")
        triples = class_of[counts], person[counts], codes[counts]
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
            yield (
                f"l: in {failing} of {count} classes of {where} {problem} does not allow "
                f"where entity_id counts persons; {remedy}"
            )


def _remedy(job: Job) -> str:
    lower = "lower l or the width" if job.l_width else "lower l"
    return lower if job.recodes_globally else f"{lower}, or use fewer fragments"


def _classes(part: pa.Table, quasi_identifiers: Sequence[str]) -> Ints:
    """(rows,) the number of each row's class; mostly its rows follow one another."""
    columns = [
        _codes(as_texts(part[column]), ColumnValues(column))
        for name in quasi_identifiers
        for column in columns_of(name, part.column_names)
    ]
    begins = np.zeros(part.num_rows, np.bool_)
    begins[:1] = True
    for codes in columns:
        begins[1:] |= codes[1:] != codes[:-1]
    class_of = np.zeros(np.count_nonzero(begins), np.int64)
    for codes in columns:
        both = class_of * (int(codes.max()) + 1) + codes[begins]
        class_of = np.unique(both, return_inverse=True)[1].astype(np.int64)
    of_rows: Ints = class_of[np.cumsum(begins) - 1]
    return of_rows


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
    of_person: dict[int, set[int]] = {}
    for person, value in pairs:
        of_person.setdefault(person, set()).add(value)
    return _each_has_one([*of_person.values()], values, [_MOST_LOOKED_AT])


def _each_has_one(people: Sequence[set[int]], values: int, left: list[int]) -> bool:
    """Whether so many values are enough for each person to have one; True if it takes too long.

    Whoever has fewest values has one of the chosen ones, so only these are tried. ``left``: how
    many more persons may be looked at.
    """
    left[0] -= len(people)
    if not people or left[0] < 0:
        return True
    return values > 0 and any(
        _each_has_one([each for each in people if value not in each], values - 1, left)
        for value in min(people, key=len)
    )
