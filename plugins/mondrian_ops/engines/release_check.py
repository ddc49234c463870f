"""The check of a release as written, done by a cluster: its parts, shares of them, and their sum.

One task counts a part, and sends its classes in shares to as many buckets as there are. One task
joins the shares of a bucket, so that it has whole classes, and measures them with the code of the
check in one process (:mod:`mondrian_ops.verify`). What comes back are the worst classes,
histograms and sums. Criteria that compare with the whole release need its values: they are
counted in a pass before, of the sensitive columns only.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from mondrian_ops import publish, stores, tables
from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.job.checks import with_codes
from mondrian_ops.job.job import Job
from mondrian_ops.late_methods import dataclass
from mondrian_ops.verify import requirements as verification
from mondrian_ops.verify.counts import (
    CountedPart,
    PartCount,
    ReleaseCount,
    ReleaseCounter,
)
from mondrian_ops.verify.figures import ClassCounts, Figures
from mondrian_ops.verify.published_labels import PublishedLabels
from mondrian_ops.verify.requirements import Requirement
from mondrian_ops.verify.shares import (
    ROW_BITS,
    head_of,
    part_of_head,
    part_of_share,
    shares_of,
)

BUCKET_ROWS = 4_000_000
"""Rows whose classes one task joins, about."""


def counted_part(
    work: publish.WorkDir, counter: ReleaseCounter, with_persons: bool, path: str
) -> CountedPart:
    """The counts of a part, and of its persons if ``with_persons``.

    Raises OSError if the part is written again meanwhile.
    """
    (part,) = publish.release_files(path)
    digest = publish.digest_of(path) if with_persons else ""
    persons = work.read_persons(digest) if with_persons else None
    batches = part.batches(counter.columns)
    counted = counter.count(batches, part.name, persons, part.columns)
    if not with_persons:
        return counted
    if publish.digest_of(path) != digest:
        raise OSError("a part was written again while it was read")  # a retry reads it whole
    return counted


@dataclass(frozen=True)
class Counted:
    """A release that was counted: as a whole, each part of it, and the verdict."""

    count: ReleaseCount
    parts: list[PartCount]
    verdict: verification.Verdict


@dataclass(frozen=True)
class ReleaseCheck:
    """What a cluster checks, in a working file.

    Attributes:
        job: the requirements.
        columns: those of the first part.
        parts: of each part the number of its fragment, and the stamp of its file.
        buckets: into how many the classes are divided.
        hierarchies: by sensitive column.
        boundaries: those of the series, of whose cells published intervals must be unions.
        measures_losses: whether the labels are read; a release without a dataset has none to read.
    """

    job: Job
    columns: Sequence[str]
    parts: Sequence[tuple[int, str]]
    buckets: int
    hierarchies: Mapping[str, Hierarchy]
    boundaries: Mapping[str, Any] | None
    measures_losses: bool = True

    @classmethod
    def of(
        cls,
        job: Job,
        paths: Mapping[int, str],
        rows: int,
        hierarchies: Mapping[str, Hierarchy],
        boundaries: Mapping[str, Any] | None,
    ) -> ReleaseCheck:
        """The check of parts at ``paths``, by fragment, which have about so many ``rows``.

        Raises PrivacyError: a quasi-identifier is not a column of the first part.
        """
        one = next(iter(paths.values()))
        listed = stores.list_directory(os.path.dirname(one), hidden=False)
        stamps = {each.name: each.stamp for each in listed}
        (first,) = publish.release_files(one)
        verification.counter_of(job, first.columns)  # raises if it cannot be counted
        parts = [(number, stamps.get(os.path.basename(path), "")) for number, path in paths.items()]
        buckets = -(-rows // BUCKET_ROWS)
        return cls(job, first.columns, parts, max(1, buckets), hierarchies, boundaries)

    def save(self, work: publish.WorkDir) -> str:
        """Describe it in the working files; returns the name, the same for the same check."""
        described = {
            "job": self.job.to_dict(),
            "columns": self.columns,
            "parts": self.parts,
            "buckets": self.buckets,
            "hierarchies": {name: each.to_json() for name, each in self.hierarchies.items()},
            "boundaries": self.boundaries,
            "measures_losses": self.measures_losses,
        }
        name = f"check-{hashlib.sha256(json.dumps(described).encode()).hexdigest()}"
        work.write_json(f"{name}.json", described)
        return name

    @classmethod
    def load(cls, work: publish.WorkDir, name: str) -> ReleaseCheck:
        """The check that :meth:`save` described."""
        described = work.read_json(f"{name}.json")
        hierarchies = {
            name: Hierarchy.from_json(each) for name, each in described.pop("hierarchies").items()
        }
        return cls(Job.from_dict(described.pop("job")), hierarchies=hierarchies, **described)

    def counter(self, labels: Mapping[str, PublishedLabels] | None = None) -> ReleaseCounter:
        """A counter of the release, which measures losses by ``labels``."""
        return verification.counter_of(self.job, self.columns, labels=labels)

    @property
    def _quasi(self) -> int:
        return len(verification.published_columns(self.job, self.columns))

    # In the tasks of a cluster

    def values(self, work: publish.WorkDir, number: int) -> Iterator[pa.Table]:
        """The values of the sensitive columns of a part; nothing if it has no rows."""
        counter = ReleaseCounter((), self.job.sensitive, of_codes=with_codes(self.job))
        for _, table in shares_of(self._count(work, counter, number, False), 1):
            yield table

    def total(self, values: Iterable[pa.Table]) -> pa.Table:
        """The values of all parts, in the order of the parts, and how often each occurs."""
        counter = ReleaseCounter((), self.job.sensitive, of_codes=with_codes(self.job))
        for table in values:
            # Other columns than these are compared where the heads are joined.
            counter.merge(part_of_share(table, 0)._replace(columns=()))
        (classes,) = counter.result().read()
        lists = []
        for each in classes.sensitive.values():
            for array in (each.values, pa.array(each.totals)):
                lists.append(pa.ListArray.from_arrays(pa.array([0, len(array)], pa.int32()), array))
        return pa.table(lists, list(map(str, range(len(lists)))))

    def count(
        self,
        work: publish.WorkDir,
        number: int,
        labels: Mapping[str, PublishedLabels] | None = None,
    ) -> Iterator[tuple[int, pa.Table]]:
        """Each bucket and the share of a part; last, for the bucket after all, its head.

        The head has the losses of the part, measured by ``labels``.
        """
        with_persons = self.job.entity_id is not None
        part = self._count(work, self.counter(labels), number, with_persons)
        yield from shares_of(part, self.buckets)
        columns = () if self.boundaries is None else self.boundaries["columns"]
        ends = ("", "_min", "_max")
        yield self.buckets, head_of(part, {f"{name}{end}" for name in columns for end in ends})

    def join_heads(self, heads: Iterable[tuple[int, pa.Table]]) -> dict[str, Any]:
        """What the heads of all parts say together, as JSON."""
        counter, parts = self.counter(), []
        for number, table in heads:
            head = part_of_head(table, self._quasi)
            counted = counter.merge(head)
            figures = counted.rows, counted.classes, counted.dp, counted.losses
            parts.append([number, head.name, *figures])
        count = counter.result()
        failures = (
            [] if self.boundaries is None else verification.no_unions_in(count, self.boundaries)
        )
        return {
            "parts": parts,
            "columns": count.columns,
            "identifiers": count.identifiers,
            "failures": failures,
        }

    def join_shares(
        self, bucket: int, shares: Iterable[tuple[int, pa.Table]], values: pa.Table | None
    ) -> dict[str, Any]:
        """How the classes of a bucket meet the requirements, and their figures, as JSON.

        ``values``: those that :meth:`total` has, if the job compares with them.

        Raises OSError, which a retry may cure, if a share came twice.
        """
        counter = self.counter()
        totals = None if values is None else _totals(values)
        if totals is not None:
            counter.know([known for known, _ in totals])
        joined = set[int]()
        for number, table in shares:
            if number in joined:
                raise OSError("a share of a part came twice")
            joined.add(number)
            counter.merge(part_of_share(table, self._quasi), number << ROW_BITS)
        count = counter.result()
        if totals is not None:
            read = count.read
            count = replace(count, read=lambda: (_with_totals(each, totals) for each in read()))
        requirements = verification.measured(count, self.job, self.hierarchies)
        return {
            "bucket": bucket,
            "figures": count.figures.to_json(),
            "requirements": [each.to_json() for each in requirements],
        }

    # In the process that asks

    def concluded(self, answers: Sequence[Mapping[str, Any]]) -> Counted:
        """The count and the verdict, from the answers of all buckets.

        Raises OSError if parts or rows are missing among them, or came twice: a retry may cure it.
        """
        heads = [each for each in answers if "parts" in each]
        buckets = [each for each in answers if "bucket" in each]
        counted = [part for each in heads for part in each["parts"]]
        if [number for number, *_ in counted] != list(range(len(self.parts))):
            raise OSError("the cluster has not counted each part of the release once")
        if len({each["bucket"] for each in buckets}) != len(buckets):
            raise OSError("the cluster has counted some classes of the release twice")
        figures, requirements = Figures(), list[Requirement]()
        if self.job.entity_id is not None:
            figures.persons = Counter()  # also where there is no class
        for each in buckets:
            figures.add_json(each["figures"])
            found = list(map(Requirement.from_json, each["requirements"]))
            requirements = list(map(Requirement.joined, requirements, found)) or found
        parts = [PartCount(*figures_of_part) for _, _, *figures_of_part in counted]
        if figures.rows != sum(part.rows for part in parts):
            raise OSError("the classes that the cluster counted have other rows than the parts")
        with_values = sum(each.get("parts_with_values", 0) for each in answers)
        if self.job.compares_with_whole and with_values != sum(bool(part.rows) for part in parts):
            raise OSError("the cluster has not counted the values of each part of the release")
        (head,) = heads
        count = ReleaseCount(
            rows=figures.rows,
            quasi_identifiers=verification.published_columns(self.job, self.columns),
            sensitive=tuple(self.job.sensitive),
            identifiers=head["identifiers"],
            columns=tuple(head["columns"]),
            published={},
            parts=tuple((name, number << ROW_BITS) for number, name, *_ in counted),
            read=lambda: iter(()),
        )
        vars(count)["figures"] = figures
        verdict = verification.concluded(
            requirements, count, self.job, self.boundaries, head["failures"]
        )
        return Counted(count, parts, verdict)

    def _count(
        self, work: publish.WorkDir, counter: ReleaseCounter, number: int, with_persons: bool
    ) -> CountedPart:
        """The counts of a part; raises OSError if it is not the one that is to be checked."""
        fragment, stamp = self.parts[number]
        path = work.part_path(fragment)
        part = counted_part(work, counter, with_persons, path)
        if tables.data_file(path).stamp != stamp:
            raise OSError("a part was written again since the check began")
        return part


def _totals(values: pa.Table) -> list[tuple[pa.Array[Any], Any]]:
    """The values of each sensitive column and how often they occur, by code."""
    arrays = [column.combine_chunks().flatten() for column in values.columns]
    return [(of, counts.to_numpy()) for of, counts in zip(arrays[::2], arrays[1::2], strict=True)]


def _with_totals(classes: ClassCounts, totals: Sequence[tuple[pa.Array[Any], Any]]) -> ClassCounts:
    """Some classes with the totals of the whole release."""
    sensitive = {}
    for (name, each), (_, counts) in zip(classes.sensitive.items(), totals, strict=True):
        sensitive[name] = replace(each, totals=counts)
    return replace(classes, sensitive=sensitive)
