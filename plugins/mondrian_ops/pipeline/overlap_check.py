"""Compare a run with the catalogue: were people of its drop released before?

The drop's sketch is made in phase one. It is compared then, when the release is checked, and before
the release is published: in the transaction that notes the intention to publish. Those transactions
take turns, so of two runs with the same people one sees the other's intention, and gives way.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mondrian_ops import catalogue, publish, stores, tables
from mondrian_ops.catalogue import secret_key
from mondrian_ops.data.encoding import as_array
from mondrian_ops.data.sketch import Sketch
from mondrian_ops.data.values import text_of
from mondrian_ops.errors import JobError, PrivacyError, StorageError
from mondrian_ops.job.job import Job
from mondrian_ops.job.policy import folded
from mondrian_ops.pipeline.report_builder import Report
from mondrian_ops.report.number_format import number, percent
from mondrian_ops.report.outcome import now
from mondrian_ops.stores.dataset_name import dataset_name
from mondrian_ops.stores.places import place_of

if TYPE_CHECKING:
    import sqlalchemy as sa

    from mondrian_ops.catalogue.publication import Intention
    from mondrian_ops.catalogue.sketches import People

_SKETCH, _COLUMNS = "people.json", "people_by.json"
_BETWEEN, _MISSING = "\x1f", "\x00"

_log = logging.getLogger(__name__)


class Overlap(NamedTuple):
    """The share of a drop's people in an earlier release, and the standard error of the share."""

    dataset: str
    time: str
    share: float
    error: float
    same: bool

    @property
    def text(self) -> str:
        """The overlap in words."""
        if self.same:
            return f"the same drop was released as {self.dataset} on {self.time}"
        error = f" (± {percent(2 * self.error)})" if self.error else ""
        return (
            f"{percent(self.share)}{error} of its people are in the release of {self.dataset} of "
            f"{self.time} too"
        )


class Compared(NamedTuple):
    """A drop beside one release of the same population."""

    overlap: Overlap | None = None
    too_large: bool = False
    by_other_columns: bool = False


class Comparison:
    """A drop beside the releases of all other runs, as far as the catalogue was read.

    ``released`` are they by their tokens, since several attempts at one release count once;
    ``pending`` the intentions that may become releases of the same people.
    """

    def __init__(self, job: Job, work: publish.WorkDir) -> None:
        drop = work.read_json(_SKETCH)
        self._by, self._people = drop["by"], Sketch.from_json(drop["sketch"])
        self._where = job.population or "", work.root
        self._last = 0
        self.released: dict[str, Compared] = {}
        self.pending: list[Intention] = []

    def read_on(self) -> None:
        """Compare with what was noted since the last call."""
        from mondrian_ops.catalogue import publication, sketches

        opened, unsettled = catalogue.current(), []
        with opened.reading() as connection:
            for other in sketches.of_others(connection, *self._where, self._last):
                self._last = other.intention.id
                compared = self._with(other)
                if other.published:
                    self.released[other.intention.token] = compared
                else:
                    unsettled.append((other.intention, compared))
        for intention, compared in unsettled:
            state = publication.settle(opened, intention)
            if state is publication.State.PUBLISHED:
                self.released[intention.token] = compared
            elif state is publication.State.PENDING and (compared.overlap or compared.too_large):
                self.pending.append(intention)

    def is_current(self, connection: sa.Connection) -> bool:
        """Whether nothing was noted since `read_on`."""
        from mondrian_ops.catalogue import sketches

        return not sketches.any_since(connection, *self._where, self._last)

    def _with(self, other: People) -> Compared:
        if list(map(folded, other.by)) != list(map(folded, self._by)):
            return Compared(by_other_columns=True)
        share, error = self._people.shared_with(other.sketch)
        same = self._people.is_drop_of(other.sketch)
        overlap = Overlap(other.dataset, other.time, share, error, same) if share else None
        return Compared(overlap, not self._people.tells_of(other.sketch))

    @property
    def overlaps(self) -> list[Overlap]:
        """The overlaps, the largest first."""
        found = [each.overlap for each in self.released.values() if each.overlap]
        return sorted(found, key=lambda each: (each.same, each.share, each.time), reverse=True)

    def findings(self) -> Iterator[tuple[str, str]]:
        """All of it in words, each with its remedy; nothing is refused for one without a remedy."""
        if overlaps := self.overlaps:
            first, *more = overlaps
            others = f" (and in {len(more)} more)" if more else ""
            yield (
                f"{first.text}{others}; releases of overlapping people can be intersected",
                "remove from this drop the people who are in an earlier release",
            )
        if too_large := sum(each.too_large for each in self.released.values()):
            yield (
                f"{number(too_large)} release(s) in the catalogue are so much larger than this "
                "drop that an overlap could not be seen",
                "release larger drops, give a population of its own to people who are in no other "
                "release",
            )
        if by_others := sum(each.by_other_columns for each in self.released.values()):
            yield (
                f"{number(by_others)} release(s) in the catalogue tell people apart by other "
                "columns and could not be compared",
                "",
            )


def key_of(job: Job) -> bytes | None:
    """The key of the persons' hashes; None where the job ignores overlaps."""
    return catalogue.current().key if job.compares_people else None


def choose_columns(job: Job, source: tables.Table, work: publish.WorkDir) -> None:
    """Note which columns tell the people of the drop apart, where the job compares them.

    They are those that a policy names, the entity's, the identifiers or all. This is for
    :func:`sketch`, which may be called where nobody knows the policies.

    Raises JobError where no column tells people apart.
    """
    if job.compares_people:
        work.write_json(_COLUMNS, _telling_apart(job, source.schema))


def sketch(source: tables.Table, work: publish.WorkDir, key: bytes | None) -> None:
    """Write the sketch of the drop's people to the working files, unless there is no ``key``."""
    if key is None:
        return
    columns = work.read_json(_COLUMNS)
    whole = Sketch.nothing()
    for batch in source.batches(columns):
        whole = whole.merged(_sketch_of(batch, key))
    fingerprint = secret_key.fingerprint(key)
    work.write_json(_SKETCH, {"by": columns, "key": fingerprint, "sketch": whole.to_json()})


def is_sketched(work: publish.WorkDir) -> bool:
    """Whether it is done: rows that waited in a series are not the drop's, copies lack columns."""
    return _SKETCH in stores.names_in(work.root)


def _telling_apart(job: Job, schema: pa.Schema) -> list[str]:
    """The columns that tell people apart: a policy's, the entity's, the identifiers or all."""
    by_policy = publish.required(job).people_by
    if by_policy:
        columns = [_named(job, name) for name in sorted(by_policy, key=folded)]
        if without := [name for name in columns if not _has_text(schema.field(name).type)]:
            raise _cannot_tell_apart(without, "have an administrator name others in the policy")
        return columns
    wanted = [job.entity_id] if job.entity_id is not None else list(job.identifiers) or schema.names
    columns = sorted(name for name in wanted if _has_text(schema.field(name).type))
    if not columns:
        raise _cannot_tell_apart(wanted, "list one that has under identifiers")
    return columns


def _named(job: Job, column: str) -> str:
    """How the job writes a column that a policy names."""
    alike = [name for name in job.named_columns if folded(name) == folded(column)]
    return column if column in alike else alike[0]


def _cannot_tell_apart(columns: Sequence[str], remedy: str) -> JobError:
    return JobError(
        f"overlap: {', '.join(columns)}: none of these columns has text, numbers or times, by "
        f"which people can be told apart; {remedy}"
    )


def _has_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return any(
        is_one(kind)
        for is_one in (
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_boolean,
            pa.types.is_integer,
            pa.types.is_floating,
            pa.types.is_decimal,
            pa.types.is_date,
            pa.types.is_timestamp,
        )
    )


def _sketch_of(batch: pa.RecordBatch, key: bytes) -> Sketch:
    """The sketch of a batch; rows without any text are left out."""
    texts = [text_of(as_array(column)).cast(pa.large_string()) for column in batch.columns]
    named = np.logical_or.reduce([each.is_valid().to_numpy(zero_copy_only=False) for each in texts])
    joined = pc.binary_join_element_wise(
        *texts, pa.scalar(_BETWEEN, pa.large_string()),
        null_handling="replace", null_replacement=_MISSING,
    )  # fmt: skip
    people = joined.filter(pa.array(named)).value_counts()
    hashes = (
        hashlib.blake2b(each.encode(), key=key, digest_size=8).digest()
        for each in people.field("values").to_pylist()
    )
    least = np.frombuffer(b"".join(hashes), "<u8").astype(np.uint64)
    return Sketch.of(least, people.field("counts").to_numpy())


def refuse(job: Job, work: publish.WorkDir) -> None:
    """Raise PrivacyError where the job refuses overlaps and there is one, or may be."""
    if job.overlap == "refuse":
        _refuse(_compared(job, work))


def note(job: Job, work: publish.WorkDir, report: Report) -> None:
    """Add overlaps, and releases that could not be compared, to the report and the log.

    Raises PrivacyError where the job refuses overlaps and there is one, or may be.
    """
    if not job.compares_people:
        return
    comparison = _compared(job, work)
    if job.overlap == "refuse":
        _refuse(comparison, report)
    own = work.read_json(_SKETCH)
    report["overlap"] = {
        "people_by": own["by"],
        "people": Sketch.from_json(own["sketch"]).persons,
        "releases": [each._asdict() for each in comparison.overlaps],
    }
    for text, _ in comparison.findings():
        _log.warning("%s", text)
        report["notes"].append(text)


def _compared(job: Job, work: publish.WorkDir) -> Comparison:
    comparison = Comparison(job, work)
    comparison.read_on()
    return comparison


def _refuse(comparison: Comparison, report: Report | None = None) -> None:
    """Raise PrivacyError for the first finding that has a remedy."""
    for text, remedy in comparison.findings():
        if remedy:
            raise PrivacyError(
                f"overlap: the release is refused and not published: {text}; {remedy}, or set "
                "overlap: warn",
                report,
            )


@contextmanager
def recorded(job: Job, work: publish.WorkDir) -> Iterator[None]:
    """Record a publication: its intention is durable before the release is published.

    A release that is refused for good leaves nothing. Without the catalogue nothing is published,
    also where the job only warns: those who refuse overlaps could not see its people.

    Raises PrivacyError where the job refuses overlaps and people were released elsewhere since the
    release was checked; StorageError where the catalogue's key changed since the sketch was made;
    OSError, which a retry may cure, where the catalogue cannot be reached, or another run may be
    publishing the same people now.
    """
    if not job.compares_people:
        yield
        return
    from mondrian_ops.catalogue import publication

    opened = catalogue.current()
    if secret_key.fingerprint(opened.key) != work.read_json(_SKETCH)["key"]:
        raise StorageError(
            "catalogue: its key changed since this run began; nothing is published; run again from "
            "the partition task"
        )
    noted = partial(_noted, job, work)
    with publication.publishing(opened, _intention(job, work, noted), noted):
        yield


def _intention(
    job: Job, work: publish.WorkDir, noted: Callable[[sa.Connection], Intention]
) -> Intention:
    """The intention to publish, noted unless the job refuses who is released or may be."""
    opened, comparison = catalogue.current(), Comparison(job, work)
    while True:
        if job.overlap == "refuse":
            comparison.read_on()
            _refuse(comparison)
            _give_way(comparison.pending)
        with opened.writing() as connection:
            if job.overlap != "refuse" or comparison.is_current(connection):
                return noted(connection)


def _give_way(pending: Sequence[Intention]) -> None:
    """Raise OSError where others may be publishing people of this drop."""
    if pending:
        files = sorted({stores.shown(each.work) for each in pending})
        raise OSError(
            f"overlap: {len(files)} other run(s) may be publishing people of this drop right now; "
            "nothing is published; run again when they are done. If one of them was killed, remove "
            f"its working files: {', '.join(files)}"
        )


def confirm(job: Job, work: publish.WorkDir) -> None:
    """Confirm the publication of an attempt that was killed after it published."""
    if not job.compares_people:
        return
    from mondrian_ops.catalogue import publication, sketches

    noted = partial(_noted, job, work)
    publication.confirm(catalogue.current(), sketches.SCOPE, work.token, noted)


def _noted(job: Job, work: publish.WorkDir, connection: sa.Connection) -> Intention:
    """Note the intention to publish, with the drop's people."""
    from mondrian_ops.catalogue import publication, sketches

    drop = work.read_json(_SKETCH)
    output = place_of(str(job.output)).absolute(str(job.output))
    intention = publication.intend(
        connection, sketches.SCOPE, token=work.token, work=work.root, output=output, time=now()
    )
    sketches.note(
        connection,
        intention,
        population=job.population or "",
        by=drop["by"],
        dataset=dataset_name(stores.shown(str(job.output))),
        people=Sketch.from_json(drop["sketch"]),
    )
    return intention
