"""Play the attacker over all releases of a series: who is left with too little?

Everything is computed anew from the drops as delivered and the releases as published. Where the
persons are followed (``series.protect: intersection``) many classes cover a person, so the
catalogue tells which one it was; it is believed only where drop and release agree. Elsewhere, as
for a release from outside the series, the attacker keeps all classes that cover the person.

The attacker compares sensitive values byte by byte, and once more as a reader sees them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mondrian_ops import catalogue, publish
from mondrian_ops.catalogue import signatures
from mondrian_ops.catalogue.tables import PENDING
from mondrian_ops.data.encoding import as_array
from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.errors import JobError, MondrianOpsError, StorageError
from mondrian_ops.job.job import Job
from mondrian_ops.series.evidence import DropRows, Evidence, Release
from mondrian_ops.series.history import HELD, Noted, noted
from mondrian_ops.series.naming import name_of_series, outputs_beside
from mondrian_ops.stores.dataset_name import dates_in
from mondrian_ops.verify.attacker import NO_VALUE, Attacker, Row
from mondrian_ops.verify.coverage import Coverage, coverage, fitting

Ints = NDArray[np.int64]


class AttackedNight(NamedTuple):
    """A release that was looked at: its rows; all persons so far, and how many fell below."""

    label: str
    rows: int
    persons: int
    below_l: int
    given_away: int
    below_k: int


@dataclass
class Attack:
    """The outcome: the nights that were looked at, what is wrong, and what could not be seen.

    ``subtracted``: how many persons' values are certain to somebody who knows everybody's class in
    every night, at least; None where no classes are known.
    """

    nights: list[AttackedNight] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    subtracted: int | None = None


def attack(job: Job, release: str, hierarchies: Mapping[str, Hierarchy]) -> Attack:
    """Attack the series of a ``release``, the output of any of its nights.

    Raises JobError where the job does not say who is followed; StorageError where the catalogue has
    no such series.
    """
    if job.series is None or job.entity_id is None or len(job.sensitive) != 1:
        raise JobError(
            "verify --series: it follows persons, and one sensitive column of them, through the "
            "nights of a series; give the job series, entity_id and one column in sensitive"
        )
    evidence = Evidence(job, name_of_series(release))
    return Player(job, hierarchies, evidence).play(release)


class Player:
    """The attacker, and the rows of drops that are in no release yet, as far as one can tell.

    Attributes:
        found: what was seen so far.
    """

    def __init__(self, job: Job, hierarchies: Mapping[str, Hierarchy], evidence: Evidence) -> None:
        self._job, self._hierarchies, self._evidence = job, hierarchies, evidence
        (self._sensitive,) = job.sensitive
        self._least = int(job.l or 2)
        self._attacker, self._reader = (
            Attacker(job.k, self._least, knows_changes=job.follows_persons) for _ in range(2)
        )
        self._subtraction: Subtractor | None = None
        if job.follows_persons:
            from mondrian_ops.series.intersection.subtraction_attacker import Subtractor

            self._subtraction = Subtractor()
        self._waits = job.series is not None and job.series.kind == "increments"
        self._pool: list[DropRows] = []
        self._has_gap = False
        self._open = 0  # rows of the pool that were counted in a release, but are in none yet
        self._waited = 0
        self.found = Attack()

    def play(self, release: str) -> Attack:
        nights = noted(self._job, release)
        for night in nights:
            self.see_night(night)
        self._compare_state()
        known = {night.output for night in nights if night.state != HELD}
        beside: list[str] = []
        with self._skipped("beside the nights"):
            beside = outputs_beside(release)
        for output in beside:
            with self._skipped(dates_in(output)):
                if output not in known and publish.current_token(output) is not None:
                    self.see_outside(dates_in(output), output)
        self.conclude()
        return self.found

    def see_night(self, night: Noted) -> None:
        """Attack the release of a night, or keep what its drop holds for later nights."""
        with self._skipped(night.label):
            if not self._waits:  # the night has rows of its own drop only
                self._pool, self._open, self._has_gap = [], 0, False
            self._pool = [*self._pool, self._evidence.drop(night.input, night.output)]
            if night.state != HELD:
                self._see_release(night)

    def _see_release(self, night: Noted) -> None:
        """Raises StorageError where it is not there, or is not the night's."""
        if night.state == PENDING:
            raise StorageError(
                "it is being published, or its run was killed; clear its failed tasks, or run the "
                "next night"
            )
        current = publish.current_token(night.output)
        if current is None:
            raise StorageError("its release is not there any more")
        if current != night.token:
            self.see_outside(night.label, night.output)
            raise StorageError("another release was published in its place")
        self._look(night.label, self._evidence.release(night.output), night)

    def see_outside(self, label: str, output: str) -> None:
        """Attack a release that is of no night of the series: the attacker has it, too."""
        self.found.failures.append(
            f"{label}: a release that does not belong to the series was published here; remove it, "
            "and deliver its rows to the series"
        )
        pool, open_ = self._pool, self._open
        with self._skipped(label):
            self._open = 0
            self._pool = [self._evidence.drop(self._evidence.input_of(output), output)]
            self._look(label, self._evidence.release(output), None)
        self._pool, self._open = pool, open_

    @contextmanager
    def _skipped(self, label: str) -> Iterator[None]:
        try:
            yield
        except (MondrianOpsError, OSError) as error:
            self._has_gap = True
            self.found.unseen.append(f"{label}: {error}")

    def _published(self, value: int, here: Collection[int]) -> int:
        """A value of a drop as a release with these values has it."""
        if value in here or not self._job.follows_persons:
            return value
        return self._evidence.spelled.get(value, value)

    def _look(self, label: str, release: Release, night: Noted | None) -> None:
        """Attack a release; one of a night by the classes that the catalogue has, if it has any."""
        values = release.values
        if night is not None and self._job.follows_persons:
            rows, company = self._by_catalogue(night, release, values)
        else:
            rows, company = self._by_coverage(label, release, values)
        published = len(release.class_of) - release.made_up.total()
        if night is not None and published != night.rows:
            self.found.failures.append(
                f"{label}: the release has {published} rows of persons, but {night.rows} were "
                "published; restore it"
            )
        self._see(values, rows, company)
        misspelled = sum(each in self._evidence.spelled for each in release.value.tolist())
        if misspelled and self._job.follows_persons:
            self.found.failures.append(
                f"{label}: {misspelled} row(s) spell their value of {self._sensitive} in a way "
                "that tells them from others with that value; the release was published before a "
                "series spelled each value in one way, or was changed; remove it"
            )
        counts = self._counts()
        self.found.nights.append(AttackedNight(label, published, *counts))

    def _see(self, values: list[set[int]], rows: list[Row], company: list[Row]) -> None:
        """Attack by the values as they are written, and as a reader takes them."""
        self._attacker.see(values, rows, company)
        spelled = self._evidence.spelled
        alike = [{spelled.get(each, each) for each in of_class} for of_class in values]
        read, beside = (
            [row._replace(value=spelled.get(row.value, row.value)) for row in each]
            for each in (rows, company)
        )
        self._reader.see(alike, read, beside)

    def _by_catalogue(
        self, night: Noted, release: Release, values: list[set[int]]
    ) -> tuple[list[Row], list[Row]]:
        """The rows of persons whose class is known; what does not agree is a failure.

        Apart: rows of persons whose drop is gone, for as many rows of the class as are nobody
        else's. They are company for the others.
        """
        with catalogue.current().reading() as connection:
            classes = signatures.classes_in(connection, night.id)
        if classes is None:
            raise StorageError(
                "the catalogue lost the persons of this night; restore a backup of it"
            )
        number = {person: release.number_of.get(key) for person, key in classes.items()}
        found: dict[int, Row] = {}
        times: Counter[int] = Counter()
        for at, rows in enumerate(self._pool):
            columns, places = self._encoded(release, rows)
            used = []
            persons, written = rows.person.tolist(), rows.value.tolist()
            times.update(persons)
            for row, (person, value) in enumerate(zip(persons, written, strict=True)):
                mine = number.get(person)
                if mine is None or person in found:
                    continue
                own = self._published(value, values[mine])
                if own and own not in values[mine]:
                    continue
                if all(
                    column.covers(places[row, i], column.published[[mine]]).all()
                    for i, column in enumerate(columns)
                ):
                    found[person] = Row(person, own, (mine,))
                    used.append(row)
            self._pool[at] = rows.without(used)
        self._compare_rows(night.label, release, number, found, times)
        gone = self._gone(release, number, found, times) if self._has_gap else []
        if self._subtraction is not None:
            published = zip(release.class_of.tolist(), release.value.tolist(), strict=True)
            self._subtraction.see(len(release.number_of), published, found.values(), gone)
        return list(found.values()), gone

    def _gone(
        self,
        release: Release,
        number: Mapping[int, int | None],
        found: Mapping[int, Row],
        times: Mapping[int, int],
    ) -> list[Row]:
        """The rows of persons whose drop is gone, for as many as are nobody else's."""
        unclaimed: Counter[int | None] = Counter(release.class_of.tolist())
        unclaimed -= release.made_up + Counter(row.classes[0] for row in found.values())
        gone = []
        for person, mine in number.items():
            if mine is not None and unclaimed[mine] and not times[person]:
                unclaimed[mine] -= 1
                gone.append(Row(person, NO_VALUE, (mine,)))
        return gone

    def _compare_rows(
        self,
        label: str,
        release: Release,
        number: Mapping[int, int | None],
        found: Mapping[int, Row],
        times: Mapping[int, int],
    ) -> None:
        """Note a failure where the release's rows are not those of the persons in its classes."""
        lost = sum(1 for person in number if person not in found and times[person])
        if not self._has_gap:
            lost += sum(1 for person in number if not times[person])
            unsure = {number[person] for person in number if times[person] > 1}
            rows = Counter(zip(release.class_of.tolist(), release.value.tolist(), strict=True))
            rows -= Counter((each, row.value) for row in found.values() for each in row.classes)
            left = Counter(each for each, _ in rows.elements() if each not in unsure)
            made_up = {each: n for each, n in release.made_up.items() if each not in unsure}
            lost = max(lost, (left - Counter(made_up)).total(), (Counter(made_up) - left).total())
        if lost:
            self.found.failures.append(
                f"{label}: {lost} row(s) of the release do not match the rows that the drop has "
                "for the persons of their class; the release, the drop or the catalogue was "
                "changed; restore it"
            )

    def _by_coverage(
        self, label: str, release: Release, values: list[set[int]]
    ) -> tuple[list[Row], list[Row]]:
        """The rows whose quasi-identifiers, and value, some class covers; apart those seen before.

        A row may have waited in a night that covers it. So it stays in the pool until it is sure to
        be published: where no more rows fit a class and a value than the release has of both. Notes
        a failure where the release has more rows than fit.
        """
        covered = [self._covered(release, rows, values) for rows in self._pool]
        published = Counter(zip(release.class_of.tolist(), release.value.tolist(), strict=True))
        fits = Counter(
            (number, row.value)
            for found in covered
            for row in found.values()
            for number in row.classes
        )
        strangers = Counter(number for number, _ in (published - fits).elements())
        strange = (strangers - release.made_up).total()
        rows: tuple[list[Row], list[Row]] = [], []
        for pool, found in zip(self._pool, covered, strict=True):
            for at, row in found.items():
                rows[int(pool.seen[at])].append(row)
        more = len(rows[0]) - (len(release.class_of) - release.made_up.total() - strange)
        self._waited += max(0, more)
        strange += max(0, -(self._open + more))
        self._open = max(0, self._open + more)
        if strange and not self._has_gap:
            self.found.failures.append(
                f"{label}: no person of the drop has the values of {strange} row(s) of the "
                "release; the release or the drop was changed; restore it"
            )
        for number, (pool, found) in enumerate(zip(self._pool, covered, strict=True)):
            pool.seen[list(found)] = True
            sure = [
                at
                for at, row in found.items()
                if any(fits[each, row.value] <= published[each, row.value] for each in row.classes)
            ]
            self._pool[number] = pool.without(sure if self._open else np.flatnonzero(pool.seen))
        return rows

    def _covered(self, release: Release, rows: DropRows, values: list[set[int]]) -> dict[int, Row]:
        """The rows that some class covers, by their numbers."""
        columns, places = self._encoded(release, rows)
        distinct, place_of = np.unique(places, axis=0, return_inverse=True)
        candidates = [tuple(each.tolist()) for each in fitting(columns, distinct)]
        here = [set().union(*(values[each] for each in classes)) for classes in candidates]
        own = zip(rows.person.tolist(), rows.value.tolist(), place_of.tolist(), strict=True)
        found = {}
        for row, (person, written, place) in enumerate(own):
            value = self._published(written, here[place])
            if candidates[place] and (not value or value in here[place]):
                found[row] = Row(person, value, candidates[place])
        return found

    def _encoded(self, release: Release, rows: DropRows) -> tuple[list[Coverage], Ints]:
        """The classes' values of each quasi-identifier, and the codes (rows, columns) of theirs."""
        columns, codes = [], []
        for quasi in self._job.quasi_identifiers:
            encoded = as_array(rows.places[quasi.name]).dictionary_encode(null_encoding="encode")
            tree = self._hierarchies.get(quasi.name)
            columns.append(coverage(quasi, release.published, encoded.dictionary, tree))
            codes.append(encoded.indices.to_numpy().astype(np.int64))
        return columns, np.stack(codes, axis=1)

    def _counts(self) -> tuple[int, int, int, int]:
        one, other = self._attacker, self._reader
        return (
            len(one.persons),
            len(one.below_l | other.below_l),
            len(one.given_away | other.given_away),
            len(one.below_k),
        )

    def _compare_state(self) -> None:
        """Note a failure where the next night would begin from something else than the releases."""
        if self.found.unseen or not self._job.follows_persons:
            return
        with catalogue.current().reading() as connection:
            left = signatures.left(connection, self._evidence.name, signed=self._job.is_balanced)
        if differing := self._reader.differing(left):
            self.found.failures.append(
                f"the catalogue and the releases differ in the values left for {differing} "
                "person(s), and the next night relies on the catalogue; restore the catalogue, or "
                "begin another series with another output"
            )

    def conclude(self) -> None:
        """Note what all that was seen comes to."""
        _, below_l, given_away, below_k = self._counts()
        if below_l:
            self.found.failures.append(
                f"{below_l} person(s) are left with fewer than l = {self._least} values of "
                f"{self._sensitive} by all nights together, {given_away} of them with one or none"
            )
        if below_k:
            self.found.failures.append(
                f"{below_k} person(s) were in a class of fewer than k = {self._job.k} persons"
            )
        if self._subtraction is not None and self.found.nights:
            self.found.subtracted = certain = self._subtraction.certain()
            if certain:
                told = (
                    f"{certain} person(s) are certain to somebody who knows everybody's class in "
                    "every night, and subtracts classes"
                )
                fails = self._job.is_balanced
                (self.found.failures if fails else self.found.notes).append(told)
        if not self.found.nights:
            self.found.failures.append("no night could be looked at")
        if self._waited:
            waited, k = self._waited, self._job.k
            how_many = f"at least {waited}" if waited >= k else f"fewer than k = {k}"
            self.found.notes.append(
                f"{how_many} row(s) that waited or were suppressed count as "
                "published, because a class of that night covers them and nothing tells them "
                "from its rows"
            )
