"""A run and the ledger of releases: whether people in its drop are in others' releases already.

The drop's sketch is made in phase one and compared then and before publication. An entry is written
before the release is published, as not yet sure, and again after it. One that was left so by a kill
counts if the release at its output is its own.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mondrian_ops import storage
from mondrian_ops.core.encoding import as_array
from mondrian_ops.core.errors import JobError, MondrianOpsError, PrivacyError
from mondrian_ops.core.generalization import text_of
from mondrian_ops.core.job import Job
from mondrian_ops.core.series import undated
from mondrian_ops.core.sketch import Sketch
from mondrian_ops.pipeline.approval import now
from mondrian_ops.pipeline.assembly import Report
from mondrian_ops.report.figures import percent

__all__ = ["confirm", "note", "recorded", "refuse", "sketch"]

_SKETCH = "ledger.json"
_BETWEEN, _MISSING = "\x1f", "\x00"

_log = logging.getLogger(__name__)


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
    """Raise PrivacyError where the job wants no overlap and there is one."""
    if job.ledger is None or job.overlap != "refuse":
        return
    found = _overlaps(job, work)
    if found:
        raise PrivacyError(_refusal(found))


def note(job: Job, work: storage.WorkDir, report: Report) -> None:
    """Tell the report, and the log, of overlaps.

    Raises PrivacyError where the job wants none and there is one.
    """
    if job.ledger is None:
        return
    found = _overlaps(job, work)
    if found and job.overlap == "refuse":
        raise PrivacyError(_refusal(found), report)
    told = work.read_json(_SKETCH)
    report["ledger"] = {
        "people_by": told["by"],
        "people": Sketch.from_json(told["sketch"]).entities,
        "overlaps": [each._asdict() for each in found],
    }
    if found:
        said = _said(found)
        _log.warning("%s", said)
        report["notes"].append(said)


def _refusal(found: Sequence[Overlap]) -> str:
    return (
        f"overlap: the release is refused and not published: {_said(found)}; take out who was "
        "released before, or set overlap: warn"
    )


def _said(found: Sequence[Overlap]) -> str:
    others = f" (and in {len(found) - 1} more)" if len(found) > 1 else ""
    return f"{found[0].said}{others}; releases of overlapping people can be intersected"


def _overlaps(job: Job, work: storage.WorkDir) -> list[Overlap]:
    """The overlaps with releases of other runs, the largest first."""
    own = work.read_json(_SKETCH)
    own_sketch = Sketch.from_json(own["sketch"])
    found = []
    for entry in storage.Ledger(str(job.ledger)).entries():
        if entry["run"] == _run_of(work) or not _is_released(entry):
            continue
        if (entry["by"], entry["key"]) != (own["by"], own["key"]):
            continue
        other = Sketch.from_json(entry["sketch"])
        share, error = own_sketch.shared_with(other)
        if share:
            same = own_sketch.is_drop_of(other)
            found.append(Overlap(entry["dataset"], entry["time"], share, error, same))
    return sorted(found, key=lambda each: (each.same, each.share, each.time), reverse=True)


def _is_released(entry: Mapping[str, Any]) -> bool:
    """Whether the release of an entry was published, which a killed run did not come to say.

    One whose output cannot be looked at from here counts as published.
    """
    if entry["sure"]:
        return True
    try:
        return storage.published(entry["output"], entry["id"])
    except (MondrianOpsError, OSError) as error:
        _log.warning(
            "ledger: entry %s: whether it was published cannot be found out here (%s); it counts",
            entry["id"],
            type(error).__name__,
        )
        return True


def _run_of(work: storage.WorkDir) -> str:
    """What the attempts at one run have in common, and no other run has."""
    return hashlib.sha256(work.root.encode()).hexdigest()[:32]


@contextmanager
def recorded(job: Job, work: storage.WorkDir, report: Report) -> Iterator[None]:
    """Around the publication: an entry of it is there afterwards, whoever is killed.

    A release that is refused for good leaves none.

    Raises PrivacyError where people were released elsewhere since the release was checked, and the
    job wants no overlap.
    """
    if job.ledger is None:
        yield
        return
    refuse(job, work)
    ledger = storage.Ledger(job.ledger)
    entry = {**_entry(job, work, report), "sure": False}
    ledger.write(entry)
    try:
        yield
    except MondrianOpsError:
        with suppress(MondrianOpsError, OSError):  # the refusal is what matters
            if not _is_released(entry):
                ledger.remove(entry)
        raise
    ledger.write({**entry, "sure": True})


def confirm(job: Job, work: storage.WorkDir) -> None:
    """Make sure of the entry of a release that was published by an attempt which was killed."""
    if job.ledger is None:
        return
    ledger = storage.Ledger(job.ledger)
    for entry in ledger.entries():
        if entry["id"] == work.token and not entry["sure"]:
            ledger.write({**entry, "sure": True})


def _entry(job: Job, work: storage.WorkDir, report: Report) -> dict[str, Any]:
    output = str(job.output)
    return {
        "id": work.token,
        "run": _run_of(work),
        "time": now(),
        "dataset": undated(storage.shown(output)),
        "output": os.path.abspath(storage.local_path(output))
        if storage.is_local(output)
        else output,
        "rows": report["rows"],
        "achieved": report["achieved"],
        **work.read_json(_SKETCH),
    }
