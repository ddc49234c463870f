"""Compare a run with the ledger of releases: were people of its drop released before?

The drop's sketch is made in phase one. It is compared then, when the release is checked, and before
the release is published. A run writes its entry, as not yet sure, before the last comparison, and
marks it as sure after the publication. So of two runs that publish at once, at least one sees the
other's entry, on any store that lists what was written before. An entry that was left unsure counts
as published if the release at its output is its own; while it may still become that, it holds up
other runs with the same people.
"""

from __future__ import annotations

import hashlib
import logging
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from enum import Enum, auto
from time import monotonic, sleep
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mondrian_ops import storage
from mondrian_ops.core.dataset_name import dataset_name
from mondrian_ops.core.encoding import as_array
from mondrian_ops.core.errors import JobError, MondrianOpsError, PrivacyError, StorageError
from mondrian_ops.core.job import Job
from mondrian_ops.core.sketch import Sketch
from mondrian_ops.core.values import text_of
from mondrian_ops.pipeline.approval import now
from mondrian_ops.pipeline.report_builder import Report
from mondrian_ops.report.number_format import number, percent

__all__ = ["confirm", "note", "recorded", "refuse", "sketch"]

PATIENCE_S = 60.0
"""How long to wait until other runs have published, or given way."""

_PAUSE_S = 1.0
_SKETCH = "ledger.json"
_BETWEEN, _MISSING = "\x1f", "\x00"

Entry = Mapping[str, Any]

_log = logging.getLogger(__name__)


class _State(Enum):
    """The state of an entry's release, as far as it can be seen from here."""

    RELEASED = auto()
    PENDING = auto()
    GONE = auto()


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
    """The overlaps, the largest first, and the entries that could not be compared."""

    overlaps: list[Overlap]
    damaged: Sequence[str]
    of_other_keys: int
    by_other_columns: int
    too_large: int

    def findings(self) -> Iterator[tuple[str, str]]:
        """All of it in words, each with its remedy; nothing is refused for one without a remedy."""
        if self.overlaps:
            first, *more = self.overlaps
            others = f" (and in {len(more)} more)" if more else ""
            yield (
                f"{first.text}{others}; releases of overlapping people can be intersected",
                "remove from this drop the people who are in an earlier release",
            )
        if self.damaged:
            file, *more_files = self.damaged
            others = f" and {len(more_files)} more" if more_files else ""
            yield (
                f"the ledger could not be read in full: {file}{others} is damaged, so the "
                "people of its release are unknown",
                "restore the damaged file, remove it if nobody ever read its release",
            )
        if self.of_other_keys:
            yield (
                f"{number(self.of_other_keys)} release(s) in the ledger were recorded with "
                "another key and could not be compared",
                "restore the key that they were recorded with, remove their files from the ledger",
            )
        if self.by_other_columns:
            yield (
                f"{number(self.by_other_columns)} release(s) in the ledger tell people apart "
                "by other columns and could not be compared",
                "",
            )
        if self.too_large:
            yield (
                f"{number(self.too_large)} release(s) in the ledger are so much larger than "
                "this drop that an overlap could not be seen",
                "release larger drops, keep a separate ledger for small drops",
            )

    @property
    def is_clear(self) -> bool:
        """Whether there is no overlap, and none may be hidden."""
        return not (self.overlaps or self.of_other_keys or self.too_large)


def sketch(job: Job, source: storage.Source, work: storage.WorkDir) -> None:
    """Write the sketch of the drop's people to the working files.

    Raises JobError where no column tells people apart.
    """
    if job.ledger is None:
        return
    columns = _telling_apart(job, source.schema)
    key = storage.Ledger(job.ledger).key()
    whole = Sketch.nothing()
    for batch in source.batches(columns):
        whole = whole.merged(_sketch_of(batch, key))
    sketched = {"by": columns, "key": storage.Ledger.key_id(key), "sketch": whole.to_json()}
    work.write_json(_SKETCH, sketched)


def _telling_apart(job: Job, schema: pa.Schema) -> list[str]:
    """The columns that tell people apart: the entity's, the identifiers or all."""
    wanted = [job.entity_id] if job.entity_id is not None else list(job.identifiers) or schema.names
    columns = sorted(name for name in wanted if _has_text(schema.field(name).type))
    if not columns:
        raise JobError(
            f"ledger: {', '.join(wanted)}: none of these columns has text, numbers or times, by "
            "which people can be told apart; list one that has under identifiers"
        )
    return columns


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


def refuse(job: Job, work: storage.WorkDir) -> None:
    """Raise PrivacyError where the job refuses overlaps and there is one, or may be."""
    if _refuses_overlaps(job):
        compared, _pending = _compared_with_others(job, work)
        _refuse(compared)


def note(job: Job, work: storage.WorkDir, report: Report) -> None:
    """Add overlaps, and releases that could not be compared, to the report and the log.

    Raises PrivacyError where the job refuses overlaps and there is one, or may be.
    """
    if job.ledger is None:
        return
    compared, _pending = _compared_with_others(job, work)
    if _refuses_overlaps(job):
        _refuse(compared, report)
    own = work.read_json(_SKETCH)
    report["ledger"] = {
        "people_by": own["by"],
        "people": Sketch.from_json(own["sketch"]).persons,
        "overlaps": [each._asdict() for each in compared.overlaps],
    }
    for text, _ in compared.findings():
        _log.warning("%s", text)
        report["notes"].append(text)


def _refuses_overlaps(job: Job) -> bool:
    return job.ledger is not None and job.overlap == "refuse"


def _refuse(compared: Compared, report: Report | None = None) -> None:
    """Raise PrivacyError for the first finding that has a remedy."""
    for text, remedy in compared.findings():
        if remedy:
            raise PrivacyError(
                f"overlap: the release is refused and not published: {text}; {remedy}, or set "
                "overlap: warn",
                report,
            )


def _compared_with_others(job: Job, work: storage.WorkDir) -> tuple[Compared, list[Entry]]:
    """Compare the drop with the releases of other runs; also returns the pending entries.

    Several attempts at a release may have written an entry each: it counts once.
    """
    ledger = storage.Ledger(str(job.ledger))
    noted, own = ledger.read(), _run_of(work)
    by_state: dict[_State, dict[str, Entry]] = {state: {} for state in _State}
    for entry in noted.entries:
        if entry["run"] != own:
            by_state[_state_of(ledger, entry)][entry["token"]] = entry
    released, pending = (
        list(by_state[state].values()) for state in (_State.RELEASED, _State.PENDING)
    )
    return _compared(work, released, noted.damaged), pending


def _compared(
    work: storage.WorkDir, entries: Sequence[Entry], damaged: Sequence[str] = ()
) -> Compared:
    """Compare the drop with the releases of these entries."""
    own = work.read_json(_SKETCH)
    of_key = [entry for entry in entries if entry["key"] == own["key"]]
    alike = [entry for entry in of_key if entry["by"] == own["by"]]
    drop = Sketch.from_json(own["sketch"])
    overlaps, too_large = [], 0
    for entry in alike:
        other = Sketch.from_json(entry["sketch"])
        too_large += not drop.tells_of(other)
        share, error = drop.shared_with(other)
        if share:
            same = drop.is_drop_of(other)
            overlaps.append(Overlap(entry["dataset"], entry["time"], share, error, same))
    return Compared(
        sorted(overlaps, key=lambda each: (each.same, each.share, each.time), reverse=True),
        damaged=damaged,
        of_other_keys=len(entries) - len(of_key),
        by_other_columns=len(of_key) - len(alike),
        too_large=too_large,
    )


def _state_of(ledger: storage.Ledger, entry: Entry) -> _State:
    """The state of an entry's release, which a killed run could not record.

    A release that is published is marked as sure at once, since another may replace it. One whose
    output cannot be read from here counts as published.
    """
    if entry.get("sure"):
        return _State.RELEASED
    try:
        # In this order: a run that removes its working files in between has published, or never
        # will.
        may_publish = storage.may_publish(entry["work"], entry["token"])
        if not storage.published(entry["output"], entry["token"]):
            return _State.PENDING if may_publish else _State.GONE
        ledger.mark_published(entry)
    except (MondrianOpsError, OSError) as error:
        _log.warning(
            "ledger: entry %s: cannot tell whether it was published (%s); it is treated as "
            "published",
            entry["id"],
            type(error).__name__,
        )
    return _State.RELEASED


def _run_of(work: storage.WorkDir) -> str:
    """The same for all attempts at a run, and for no other run."""
    return hashlib.sha256(work.root.encode()).hexdigest()


@contextmanager
def recorded(job: Job, work: storage.WorkDir, report: Report) -> Iterator[None]:
    """Record a publication: its entry is durable before the release is published.

    A release that is refused for good leaves no entry.

    Raises PrivacyError where the job refuses overlaps and people were released elsewhere since the
    release was checked; StorageError where the ledger's key changed since the sketch was made;
    OSError, which a retry may cure, where another run may be publishing the same people now.
    """
    if job.ledger is None:
        yield
        return
    ledger = storage.Ledger(job.ledger)
    if ledger.key_id(ledger.key()) != work.read_json(_SKETCH)["key"]:
        raise StorageError(
            f"ledger: the key in {storage.shown(job.ledger)} changed since this run began; nothing "
            "is published; run again from the partition task"
        )
    entry = _entry(job, work, report)
    ledger.write(entry)
    try:
        _give_way(job, work, entry)
    except BaseException:  # this attempt published nothing; others at this run have their own entry
        _remove(ledger, entry)
        raise
    try:
        yield
    except MondrianOpsError:
        if _state_of(ledger, entry) is not _State.RELEASED:
            _remove(ledger, entry)
        raise
    ledger.mark_published(entry)


def _give_way(job: Job, work: storage.WorkDir, own: Entry) -> None:
    """Compare with all others, now that they can see the entry of this release.

    A run publishes only if it wrote its entry and then saw no other. Of two runs, the one that
    wrote later sees the other's entry. If both do, the one with the smallest id waits for the
    others, which give way at once.
    """
    if not _refuses_overlaps(job):
        return
    until = monotonic() + PATIENCE_S
    while rivals := _rivals(job, work):
        if own["id"] < min(entry["id"] for entry in rivals) and monotonic() < until:
            sleep(_PAUSE_S)
            continue
        files = sorted(map(storage.Ledger(str(job.ledger)).file_of, rivals))
        raise OSError(
            f"overlap: {len(rivals)} other run(s) may be publishing people of this drop right now; "
            "nothing is published; run again when they are done. If one of them was killed, remove "
            "the working files beside its output, or its entry in the ledger: "
            f"{', '.join(files)}"
        )


def _rivals(job: Job, work: storage.WorkDir) -> list[Entry]:
    """Entries that may become releases of the same people.

    Raises PrivacyError where one has become a release.
    """
    compared, pending = _compared_with_others(job, work)
    _refuse(compared)
    return [entry for entry in pending if not _compared(work, [entry]).is_clear]


def _remove(ledger: storage.Ledger, entry: Entry) -> None:
    with suppress(MondrianOpsError, OSError):  # the error that led here matters more
        ledger.remove(entry)


def confirm(job: Job, work: storage.WorkDir) -> None:
    """Mark as sure the entry of a release whose attempt was killed after it published."""
    if job.ledger is None:
        return
    ledger = storage.Ledger(job.ledger)
    for entry in ledger.read().entries:
        if entry["token"] == work.token and not entry["sure"]:
            ledger.mark_published(entry)


def _entry(job: Job, work: storage.WorkDir, report: Report) -> dict[str, Any]:
    output = str(job.output)
    return {
        "id": uuid.uuid4().hex,  # of this attempt, which removes no other attempt's entry
        "token": work.token,
        "run": _run_of(work),
        "work": work.root,
        "time": now(),
        "dataset": dataset_name(storage.shown(output)),
        "output": os.path.abspath(storage.local_path(output))
        if storage.is_local(output)
        else output,
        "rows": report["rows"],
        "achieved": report["achieved"],
        **work.read_json(_SKETCH),
    }
