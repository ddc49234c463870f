"""Persons through the nights of a series: ``series.protect: intersection``.

Before a night is anonymized, its rows get what the releases before have told of their persons
(:func:`signed`). Before it is published, its parts as written are followed (:mod:`check`): the
release is refused where a person would fall below k persons or l common values (:func:`checked`).
What is left for each person becomes current together with the night.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops import catalogue, publish
from mondrian_ops.data.encoding import as_array, value_type
from mondrian_ops.data.pool import SIGNATURE
from mondrian_ops.job.job import Job
from mondrian_ops.series.intersection.check import Tonight, follow, unbalanced
from mondrian_ops.series.intersection.invariance import NEW, NOT_TONIGHT, History
from mondrian_ops.series.keyed_hashes import (
    NO_VALUE,
    class_hashes,
    class_texts,
    hashes_as_written,
    hashes_of,
    person_hashes,
    place_hashes,
    spelled,
    value_hashes,
)

if TYPE_CHECKING:
    from mondrian_ops.catalogue.signatures import Known

_PLACES, _PERSONS = "places.arrow", "persons-tonight.arrow"
_NOBODY = 0
_BITS = 64
_SHARE = 0.5

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]


class Outcome(NamedTuple):
    """The result of following a night: why it is refused, figures for the report, and notes.

    ``counterfeits``: (n,) of each row that is made up, the columns that define its class; None
    where the job makes up none.
    """

    failures: list[str]
    figures: dict[str, int]
    notes: list[str]
    counterfeits: pa.Table | None = None


def signed(job: Job, name: str, pool: pa.Table, work: publish.WorkDir) -> pa.Table:
    """The rows of a night, with what is known of their persons in the column SIGNATURE.

    Raises InputError where a row has no person.
    """
    from mondrian_ops.catalogue import signatures

    hashes = person_hashes(job, name, pool[str(job.entity_id)])
    place = place_hashes(name, hashes, pool.select(list(job.quasi_identifier_names)))
    of_value = value_hashes(job, name, pool[job.sensitive[0]])
    with catalogue.current().reading() as connection:
        codes, stored = _coded(of_value, signatures.values(connection, name))
        words = max(1, -(-len(stored) // _BITS))
        known = signatures.known(connection, name, hashes, words, signed=job.is_balanced)
    own = np.zeros((len(codes), words), np.uint64)
    rows = np.flatnonzero(codes >= 0)
    own[rows, codes[rows] // _BITS] = np.uint64(1) << (codes[rows] % _BITS).astype(np.uint64)
    is_new = ~known.is_known | ((codes >= 0) & ~(known.common & own).any(axis=1))
    common = np.where(is_new[:, None], ~known.common, known.common)
    keeps = (known.signature & own).any(axis=1, keepdims=True)
    common = np.where(keeps, known.signature, common)
    class_of = np.where(known.place == place, known.class_of, NEW)
    _, first = np.unique(hashes, return_index=True)
    again = np.ones(len(hashes), np.bool_)
    again[first] = False
    class_of[again] = NOT_TONIGHT
    places = pa.table({"hash": hashes[first], "place": place[first]})
    in_order = ",".join(map(str, stored))
    work.write_arrow(_PLACES, places.replace_schema_metadata({"values": in_order}))
    history = History(codes.astype(np.int32), common, class_of.astype(np.int32))
    if SIGNATURE in pool.column_names:  # of the night in which the row came to wait
        pool = pool.drop_columns([SIGNATURE])
    return pool.append_column(SIGNATURE, history.to_array())


def checked(
    job: Job,
    name: str,
    number: int,
    work: publish.WorkDir,
    parts: Sequence[str],
    counterfeits: int,
) -> Outcome:
    """Follow the persons of the release that is staged in ``parts``, and keep what is left.

    ``number`` is that of the night; so many ``counterfeits`` were put into the parts. Raises
    StorageError where a file vanished.
    """
    from mondrian_ops.catalogue import signatures

    labels, published, hashes, of_value, classes, misspelled = _as_published(job, name, work, parts)
    places = work.read_arrow(_PLACES)
    with catalogue.current().reading() as connection:
        before = signatures.values(connection, name)
        codes, stored = _coded(of_value, _in_order(job, places, before))
        words = max(1, -(-len(stored) // _BITS))
        is_made_up = hashes == _NOBODY
        made_up = np.stack([labels, codes], axis=1)[is_made_up]
        labels, published, hashes, codes = (
            each[~is_made_up] for each in (labels, published, hashes, codes)
        )
        known = signatures.known(connection, name, hashes, words, signed=job.is_balanced)
    k, l = job.k, int(job.l or 0)  # noqa: E741
    tonight = Tonight(labels, hashes, codes, made_up)
    followed = follow(tonight, known.common, known.is_known, k=k, l=l)
    subtractable, common = 0, followed.common
    if job.is_balanced:
        signature = _signatures(work, parts, words)[~is_made_up]
        has_value = (codes >= 0)[:, None]
        signature = np.where(has_value, signature, known.signature)
        found = unbalanced(tonight, signature, known, l)
        subtractable = int(found.sum())
        common = np.hstack([common, signature])
    at = np.searchsorted(places["hash"].to_numpy(), hashes)
    place = places["place"].to_numpy()[at]
    work.write_arrow(
        _PERSONS,
        signatures.to_table(hashes, published, place, common, stored[len(before) :]),
    )
    below_l, below_k = int(followed.below_l.sum()), int(followed.below_k.sum())
    failures = [
        f"intersection of all nights: {count} person(s) are {problem}; run again from the "
        "partition task, for another night may have been published meanwhile"
        for count, problem in (
            (below_l, f"left with fewer than l = {l} sensitive values"),
            (below_k, f"in a class of fewer than k = {k} persons"),
            (subtractable, "in a class whose difference from others would tell their values"),
        )
        if count
    ]
    is_known, changed = int(known.is_known.sum()), int(followed.changed.sum())
    failures += _strangers(job, number, is_known, changed, len(hashes))
    if misspelled:
        failures.append(
            f"{misspelled} row(s) spell their value of {job.sensitive[0]} otherwise than the "
            "series does, which tells them from others with that value; run again from the "
            "partition task"
        )
    if twice := len(hashes) - len(np.unique(hashes)):
        failures.append(
            f"intersection of all nights: the release has {twice} row(s) too many, because a "
            "person may have only one; run again from the partition task"
        )
    if len(made_up) != counterfeits:
        failures.append(
            f"the release has {len(made_up)} counterfeits instead of {counterfeits}; "
            "run again from the partition task"
        )
    left = np.unpackbits(followed.common.view(np.uint8), axis=1).sum(axis=1)
    figures = {
        "persons": len(hashes),
        "known_before": is_known,
        "least_common": int(left.min()) if len(left) else 0,
        "value_changed": changed,
    }
    notes = _notes(job, known, number)
    if not job.has_counterfeits:
        return Outcome(failures, figures, notes)
    figures["counterfeits"] = len(made_up)
    figures["counterfeit_classes"] = len(np.unique(made_up[:, 0]))
    if len(made_up):
        notes.append(
            f"{in_classes(len(made_up), figures['counterfeit_classes'])}: made-up rows, which give "
            "these classes enough sensitive values; _counterfeits.parquet says how many each class "
            "has"
        )
    return Outcome(failures, figures, notes, classes.filter(pa.array(is_made_up)))


def _in_order(job: Job, places: pa.Table, before: list[int]) -> list[int]:
    """The hashes of values by their codes: as the signatures have them, where there are some."""
    noted = (places.schema.metadata or {}).get(b"values", b"").decode()
    return [int(each) for each in noted.split(",") if each] if job.is_balanced else before


def _signatures(work: publish.WorkDir, parts: Sequence[str], words: int) -> Words:
    """The signature of each row of the parts, (rows, words); none for a row that is made up."""
    found = [np.zeros((0, words), np.uint64)]
    for path in parts:
        column = work.read_signatures(publish.digest_of(path))
        packed = b"".join(each or bytes(8 * words) for each in column.to_pylist())
        found.append(np.frombuffer(packed, "<u8").reshape(-1, words).astype(np.uint64))
    return np.concatenate(found)


def in_classes(counterfeits: int, classes: int) -> str:
    """How many there are, in how many classes, as text."""
    return (
        f"{counterfeits} counterfeit{'s' * (counterfeits != 1)} in {classes} "
        f"class{'es' * (classes != 1)}"
    )


def persons_of(work: publish.WorkDir) -> pa.Table:
    """The persons of the night that :func:`checked` has kept."""
    return work.read_arrow(_PERSONS)


def _strangers(job: Job, number: int, known: int, changed: int, rows: int) -> list[str]:
    """Why the people, or their values, cannot be those of the nights before.

    Everybody would be followed anew, as if nothing had been released of them. The texts give no
    numbers. With them somebody could deliver invented persons and a real one, and read from the
    number whether the real one was there before.
    """
    failures = []
    comes_again = job.series is not None and job.series.kind == "snapshots" and number > 1
    if comes_again and known < _SHARE * rows:
        failures.append(
            "intersection of all nights: fewer than half of the persons were in a night before; "
            f"deliver {job.entity_id} as it was delivered then, release late drops before this "
            "one, or begin another series with another output; if each drop has new rows only, use "
            "kind: increments there"
        )
    if changed > _SHARE * known:
        failures.append(
            "intersection of all nights: more than half of the persons who were in a night before "
            "have another value of "
            f"{', '.join(job.sensitive)} than before; deliver the values as they were written "
            "then, or begin another series with another output"
        )
    return failures


def _notes(job: Job, known: Known, number: int) -> list[str]:
    """A note where increments look like snapshots."""
    share = float(np.mean(known.class_of >= 0)) if number > 1 else 0.0
    if job.series is None or job.series.kind != "increments" or share <= _SHARE:
        return []
    return [
        f"series.kind is increments, but {share:.0%} of the people were in the last release; if a "
        "drop holds all people as they are now, begin a series of kind: snapshots"
    ]


def _as_published(
    job: Job, name: str, work: publish.WorkDir, parts: Sequence[str]
) -> tuple[Ints, Ints, Ints, Ints, pa.Table, int]:
    """Of each row the class, its number and a hash of it, the person, the value, and its columns.

    The person of a counterfeit is _NOBODY. At last how many values have another spelling than one
    that the series publishes.
    """
    from mondrian_ops.verify.requirements import published_columns

    labels: list[pa.Array] = []
    classes: list[pa.Table] = []
    nothing = np.zeros(0, np.int64)
    hashes, values, misspelled = [nothing], [nothing], 0
    (sensitive,) = job.sensitive
    for path in parts:
        digest = publish.digest_of(path)
        persons = work.read_persons(digest)
        (part,) = publish.release_files(path)
        names = list(published_columns(job, part.columns))
        table = pa.Table.from_batches(part.batches([*names, sensitive]))
        of_class = _plain(table.select(names))
        classes.append(of_class)
        labels.append(class_texts(of_class))
        hashes.append(hashes_of(name, spelled(persons), b"person"))
        values.append(value_hashes(job, name, table[sensitive]))
        written = hashes_as_written(job, name, table[sensitive])
        misspelled += int(np.count_nonzero(written != values[-1]))
        if publish.digest_of(path) != digest:
            raise OSError("a part was written again while it was read")  # a retry reads it whole
    if not labels:
        return nothing, nothing, nothing, nothing, pa.table({}), 0
    texts = pa.concat_arrays(labels).dictionary_encode()
    numbers = texts.indices.to_numpy().astype(np.int64)
    published = class_hashes(name, texts.dictionary)[numbers]
    columns = pa.concat_tables(classes)
    of_rows = np.concatenate(hashes), np.concatenate(values)
    return numbers, published, *of_rows, columns, misspelled


def _plain(table: pa.Table) -> pa.Table:
    """The table without dictionaries."""
    columns = [as_array(column).cast(value_type(column.type)) for column in table.columns]
    return pa.table(columns, names=table.column_names)


def _coded(of_value: Ints, stored: list[int]) -> tuple[Ints, list[int]]:
    """A code for each row's value, -1 for a missing one; and the hashes of all values by code."""
    distinct, place = np.unique(of_value, return_inverse=True)
    values = distinct.tolist()
    stored = [*stored, *sorted({*values} - {*stored, NO_VALUE})]
    code_of = {value: code for code, value in enumerate(stored)} | {NO_VALUE: -1}
    return np.array([code_of[value] for value in values], np.int64)[place], stored
