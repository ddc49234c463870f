"""A run and the ledger of releases: whether people in its drop are in others' releases already.

The drop's sketch is made in phase one and compared then, when the release is checked, and before it
is published. An entry is written before the last comparison, as not yet sure, and again after the
publication: of two that publish at once, at least one finds the other's entry, on any store that
shows what was written to whoever lists after that. An entry that was left unsure counts if the
release at its output is its own, and stands in the way while it may still become that.
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
from mondrian_ops.report.figures import number, percent

__all__ = ["confirm", "note", "recorded", "refuse", "sketch"]

PATIENCE_S = 60.0
"""How long to wait for others who publish, or give way."""

_PAUSE_S = 1.0
_SKETCH = "ledger.json"
_BETWEEN, _MISSING = "\x1f", "\x00"

Entry = Mapping[str, Any]

_log = logging.getLogger(__name__)


class _Is(Enum):
    """What became of the release of an entry, as far as that can be found out from here."""

    RELEASED = auto()
    PENDING = auto()
    GONE = auto()


class Overlap(NamedTuple):
    """What an earlier release has in common with a drop: a share of the drop, and its error."""

    dataset: str
    time: str
    share: float
    error: float
    same: bool

    @property
    def said(self) -> str:
        """The overlap in words."""
        if self.same:
            return f"the same drop was released as {self.dataset} on {self.time}"
        error = f" (± {percent(2 * self.error)})" if self.error else ""
        return (
            f"{percent(self.share)}{error} of its people are in the release of {self.dataset} of "
            f"{self.time} too"
        )


class Compared(NamedTuple):
    """The overlaps, the largest first, and what could not be looked for any."""

    overlaps: list[Overlap]
    damaged: list[str]
    of_other_keys: int
    by_other_columns: int
    too_large: int

    @property
    def notes(self) -> list[str]:
        """All of it in words."""
        noted = [_said(self.overlaps)] if self.overlaps else []
        if self.damaged:
            noted.append(_damaged(self.damaged))
        if self.of_other_keys:
            noted.append(_other_keys(self.of_other_keys))
        if self.by_other_columns:
            noted.append(
                f"{number(self.by_other_columns)} release(s) in the ledger tell people apart by "
                "other columns, and could not be compared"
            )
        if self.too_large:
            noted.append(_too_large(self.too_large))
        return noted

    @property
    def is_clear(self) -> bool:
        """Whether there is no overlap, nor may be one."""
        return not (self.overlaps or self.of_other_keys or self.too_large)


class Others(NamedTuple):
    """What the ledger holds of other runs: releases, what may become one at any moment, the rest.

    Each release is there once, though several attempts at it may have noted it.
    """

    released: list[Entry]
    pending: list[Entry]
    damaged: list[str]


def sketch(job: Job, source: storage.Source, work: storage.WorkDir) -> None:
    """Read who is in the drop, and leave their sketch in the working files.

    Raises JobError where no column tells people apart.
    """
    if job.ledger is None:
        return
    columns = _telling_apart(job, source.schema)
    key = storage.Ledger(job.ledger).key()
    whole = Sketch.nothing()
    for batch in source.batches(columns):
        whole = whole.merged(_sketch_of(batch, key))
    told = {"by": columns, "key": storage.Ledger.key_id(key), "sketch": whole.to_json()}
    work.write_json(_SKETCH, told)


def _telling_apart(job: Job, schema: pa.Schema) -> list[str]:
    """The columns by which people are told apart: the entity's, the identifiers or all."""
    wanted = [job.entity_id] if job.entity_id is not None else list(job.identifiers) or schema.names
    found = sorted(name for name in wanted if _has_text(schema.field(name).type))
    if not found:
        raise JobError(
            f"ledger: {', '.join(wanted)}: no text, number or time by which people could be told "
            "apart; name a column of these as an identifier"
        )
    return found


def _has_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return any(
        known(kind)
        for known in (
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
    """The sketch of a batch; rows that name nobody are left out."""
    texts = [text_of(as_array(column)).cast(pa.large_string()) for column in batch.columns]
    named = np.logical_or.reduce([each.is_valid().to_numpy(zero_copy_only=False) for each in texts])
    joined = pc.binary_join_element_wise(
        *texts, pa.scalar(_BETWEEN, pa.large_string()),
        null_handling="replace", null_replacement=_MISSING,
    )  # fmt: skip
    found = joined.filter(pa.array(named)).value_counts()
    hashes = (
        hashlib.blake2b(each.encode(), key=key, digest_size=8).digest()
        for each in found.field("values").to_pylist()
    )
    least = np.frombuffer(b"".join(hashes), "<u8").astype(np.uint64)
    return Sketch.of(least, found.field("counts").to_numpy())


def refuse(job: Job, work: storage.WorkDir) -> None:
    """Raise PrivacyError where the job wants no overlap and there is one, or may be."""
    if _refuses_overlaps(job):
        _refuse(_compared_with_released(work, _others(job, work)))


def note(job: Job, work: storage.WorkDir, report: Report) -> None:
    """Tell the report, and the log, of overlaps and of releases that could not be compared.

    Raises PrivacyError where the job wants no overlap and there is one, or may be.
    """
    if job.ledger is None:
        return
    found = _compared_with_released(work, _others(job, work))
    if _refuses_overlaps(job):
        _refuse(found, report)
    told = work.read_json(_SKETCH)
    report["ledger"] = {
        "people_by": told["by"],
        "people": Sketch.from_json(told["sketch"]).entities,
        "overlaps": [each._asdict() for each in found.overlaps],
    }
    for said in found.notes:
        _log.warning("%s", said)
        report["notes"].append(said)


def _refuses_overlaps(job: Job) -> bool:
    return job.ledger is not None and job.overlap == "refuse"


def _refuse(found: Compared, report: Report | None = None) -> None:
    refused = "overlap: the release is refused and not published"
    if found.overlaps:
        raise PrivacyError(
            f"{refused}: {_said(found.overlaps)}; take out who was released before, or set "
            "overlap: warn",
            report,
        )
    if found.damaged:
        raise PrivacyError(
            f"{refused}: {_damaged(found.damaged)}; restore what is damaged, or, where its release "
            "was never read by anybody, remove it, or set overlap: warn",
            report,
        )
    if found.of_other_keys:
        raise PrivacyError(
            f"{refused}: {_other_keys(found.of_other_keys)}; restore the key that they were noted "
            "with, take their files out of the ledger, or set overlap: warn",
            report,
        )
    if found.too_large:
        raise PrivacyError(
            f"{refused}: {_too_large(found.too_large)}; release larger drops, keep a ledger of "
            "drops of one size, or set overlap: warn",
            report,
        )


def _damaged(files: Sequence[str]) -> str:
    first, *more = files
    others = f" and {len(more)} more" if more else ""
    return (
        f"the ledger could not be read in full: {first}{others} is damaged, and who was "
        "released then is not known"
    )


def _too_large(count: int) -> str:
    return (
        f"{number(count)} release(s) in the ledger are so much larger than this drop that an "
        "overlap would not show"
    )


def _other_keys(count: int) -> str:
    return (
        f"{number(count)} release(s) in the ledger were noted with another key, and could not be "
        "compared"
    )


def _said(found: Sequence[Overlap]) -> str:
    first, *more = found
    others = f" (and in {len(more)} more)" if more else ""
    return f"{first.said}{others}; releases of overlapping people can be intersected"


def _others(job: Job, work: storage.WorkDir) -> Others:
    ledger = storage.Ledger(str(job.ledger))
    noted, own = ledger.noted(), _run_of(work)
    found: dict[_Is, dict[str, Entry]] = {each: {} for each in _Is}
    for entry in noted.entries:
        if entry["run"] != own:
            found[_became(ledger, entry)][entry["token"]] = entry
    released, pending = (list(found[each].values()) for each in (_Is.RELEASED, _Is.PENDING))
    return Others(released, pending, noted.damaged)


def _compared_with_released(work: storage.WorkDir, others: Others) -> Compared:
    return _compared(work, others.released)._replace(damaged=others.damaged)


def _compared(work: storage.WorkDir, others: Sequence[Entry]) -> Compared:
    """What these entries have in common with the drop."""
    own = work.read_json(_SKETCH)
    of_key = [entry for entry in others if entry["key"] == own["key"]]
    alike = [entry for entry in of_key if entry["by"] == own["by"]]
    drop = Sketch.from_json(own["sketch"])
    known = [(entry, Sketch.from_json(entry["sketch"])) for entry in alike]
    return Compared(
        _overlaps(drop, known),
        damaged=[],
        of_other_keys=len(others) - len(of_key),
        by_other_columns=len(of_key) - len(alike),
        too_large=sum(not drop.tells_of(other) for _, other in known),
    )


def _overlaps(own: Sketch, known: Sequence[tuple[Mapping[str, Any], Sketch]]) -> list[Overlap]:
    found = []
    for entry, other in known:
        share, error = own.shared_with(other)
        if share:
            same = own.is_drop_of(other)
            found.append(Overlap(entry["dataset"], entry["time"], share, error, same))
    return sorted(found, key=lambda each: (each.same, each.share, each.time), reverse=True)


def _became(ledger: storage.Ledger, entry: Entry) -> _Is:
    """What became of an entry's release, which a killed run did not come to say.

    One that is found published is noted as sure: another may take its place. One whose output
    cannot be looked at from here counts as published.
    """
    if entry.get("sure"):
        return _Is.RELEASED
    try:
        # In this order: what leaves its working files in between is published, or never is.
        may_publish = storage.may_publish(entry["work"], entry["token"])
        if not storage.published(entry["output"], entry["token"]):
            return _Is.PENDING if may_publish else _Is.GONE
        ledger.make_sure(entry)
    except (MondrianOpsError, OSError) as error:
        _log.warning(
            "ledger: entry %s: whether it was published cannot be found out here (%s); it counts",
            entry["id"],
            type(error).__name__,
        )
    return _Is.RELEASED


def _run_of(work: storage.WorkDir) -> str:
    """What the attempts at one run have in common, and no other run has."""
    return hashlib.sha256(work.root.encode()).hexdigest()


@contextmanager
def recorded(job: Job, work: storage.WorkDir, report: Report) -> Iterator[None]:
    """Around the publication: an entry of it is there afterwards, whoever is killed.

    A release that is refused for good leaves none.

    Raises PrivacyError where people were released elsewhere since the release was checked, and the
    job wants no overlap; StorageError where the ledger's key is not that of the sketch any more;
    OSError, which a retry may cure, where people may be released elsewhere at this moment.
    """
    if job.ledger is None:
        yield
        return
    ledger = storage.Ledger(job.ledger)
    if ledger.key_id(ledger.key()) != work.read_json(_SKETCH)["key"]:
        raise StorageError(
            f"ledger: the key in {storage.shown(job.ledger)} is another than when this run began; "
            "nothing is published, run again from the partition task"
        )
    entry = _entry(job, work, report)
    ledger.write(entry)
    try:
        _give_way(job, work, entry)
    except BaseException:  # this attempt published nothing; another at this run has its own entry
        _remove(ledger, entry)
        raise
    try:
        yield
    except MondrianOpsError:
        if _became(ledger, entry) is not _Is.RELEASED:
            _remove(ledger, entry)
        raise
    ledger.make_sure(entry)


def _give_way(job: Job, work: storage.WorkDir, own: Entry) -> None:
    """Compare with all others, now that they can see the entry of this release.

    Whoever publishes wrote its entry first and found nobody else's then. Of two, the one that
    wrote later finds the other's. If both do, the one of the least id waits for the others, who
    give way at once.
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
            f"overlap: {len(rivals)} other run(s) may publish people of this drop at this moment; "
            "nothing is published, run again when they are done. Of one that was killed, remove "
            f"the working files beside its output, or its entry: {', '.join(files)}"
        )


def _rivals(job: Job, work: storage.WorkDir) -> list[Entry]:
    """Entries that may become releases of the same people; PrivacyError where they are some."""
    others = _others(job, work)
    _refuse(_compared_with_released(work, others))
    return [entry for entry in others.pending if not _compared(work, [entry]).is_clear]


def _remove(ledger: storage.Ledger, entry: Entry) -> None:
    with suppress(MondrianOpsError, OSError):  # why it is removed is what matters
        ledger.remove(entry)


def confirm(job: Job, work: storage.WorkDir) -> None:
    """Make sure of the entry of a release that was published by an attempt which was killed."""
    if job.ledger is None:
        return
    ledger = storage.Ledger(job.ledger)
    for entry in ledger.noted().entries:
        if entry["token"] == work.token and not entry["sure"]:
            ledger.make_sure(entry)


def _entry(job: Job, work: storage.WorkDir, report: Report) -> dict[str, Any]:
    output = str(job.output)
    return {
        "id": uuid.uuid4().hex,  # not the run's: each attempt takes back its own entry only
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
