"""Whether the persons of each class of a part have diverse values, as the part was written.

This shares no code with what joins classes until they have (`algorithms.person_values`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mondrian_ops.core.column_types import plain_schema
from mondrian_ops.core.encoding import as_array
from mondrian_ops.core.errors import PrivacyError
from mondrian_ops.core.job import Job
from mondrian_ops.core.job_checks import with_codes
from mondrian_ops.core.release_spread import most_persons
from mondrian_ops.core.release_truth import Read
from mondrian_ops.core.singling_out import class_starts
from mondrian_ops.core.values import one_spelling, one_value
from mondrian_ops.core.widths import Width, widths_of

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
    # Where a series follows persons, each has one row, and some rows are nobody's. Where columns
    # are recoded as a whole, classes cannot be joined one by one: l counts rows there.
    if job.l is None or job.follows_persons or job.recodes_columns:
        return
    part = pa.Table.from_batches(list(read(columns)))
    if not part.num_rows:
        return
    part = part.cast(plain_schema(part.schema))
    starts = class_starts(part, job.quasi_identifier_names)
    class_of = np.zeros(part.num_rows, np.int64)
    class_of[starts[1:]] = 1
    table = pa.table({"class": np.cumsum(class_of), "person": as_array(persons)})
    widths = widths_of(job.l_width)
    for name in job.sensitive:
        counted = one_spelling if name in with_codes(job) else one_value
        encoded = as_array(part[name]).dictionary_encode()
        values = counted(encoded.dictionary).take(encoded.indices)
        triples = table.append_column("value", values)
        if job.missing_sensitive != "value":
            triples = triples.filter(pc.is_valid(triples["value"]))
        or_width = " or the width" if name in widths else ""
        if name in widths:
            failing = _not_spread(triples, name, widths[name], job.l)
            problem = (
                f"more than 1/{job.l:g} of the persons have values of column {name!r} within "
                f"{widths[name].text} of one another, which l_width"
            )
        else:
            fewer = math.ceil(job.l - 1e-9) - 1
            failing = sum(_is_covered(*each, fewer) for each in _by_class(triples))
            problem = f"each person has one of {fewer} value(s) of column {name!r}, which l"
        if failing:
            raise PrivacyError(
                f"l: in {failing} of {len(starts)} classes of {where} {problem} does not allow "
                f"where entity_id counts persons; lower l{or_width}, or use fewer fragments"
            )


def _not_spread(triples: pa.Table, name: str, width: Width, level: float) -> int:
    """How many classes have an interval of the width with too many of their persons."""
    class_of, person = triples["class"].to_numpy(), _numbers(triples["person"])
    pairs = np.unique(np.stack([class_of, person]), axis=1)
    people = np.bincount(pairs[0])
    values = as_array(triples["value"]).dictionary_encode()
    codes = values.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    missing = codes < 0  # no other value is near it
    having = np.unique(np.stack([class_of, person])[:, missing], axis=1)
    most = np.bincount(having[0], minlength=len(people))
    of_values = most_persons(
        values.dictionary, class_of[~missing], person[~missing], codes[~missing], name, width
    )
    most[: len(of_values)] = np.maximum(most[: len(of_values)], of_values)
    return int(np.count_nonzero(most * level > people * (1 + 1e-9)))


def _numbers(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """A number for each value, the missing one as well."""
    encoded = as_array(column).dictionary_encode(null_encoding="encode")
    numbers: NDArray[np.int64] = encoded.indices.to_numpy().astype(np.int64)
    return numbers


def _by_class(triples: pa.Table) -> Iterable[tuple[int, list[int], list[tuple[int, int]]]]:
    """Of each class: its persons, the persons of each value, and the pairs of both."""
    encoded = {name: _numbers(triples[name]) for name in ("person", "value")}
    distinct = pa.table({"class": triples["class"], **encoded}).group_by(
        ["class", "person", "value"]
    )
    found = distinct.aggregate([]).sort_by("class")
    numbers = [found[name].to_numpy() for name in ("class", "person", "value")]
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
