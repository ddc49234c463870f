"""Runs of which there is only what the comparison of people and the publication look at."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from mondrian_ops import catalogue
from mondrian_ops.catalogue import secret_key, sketches
from mondrian_ops.catalogue.publication import Intention
from mondrian_ops.catalogue.sketches import People
from mondrian_ops.data.sketch import Sketch
from mondrian_ops.job.job import Job
from mondrian_ops.pipeline import overlap_check
from waiting_runs import WaitingRun


def sketch_of(numbers: Iterable[int]) -> Sketch:
    """The sketch of people whose hashes are these numbers."""
    hashes = np.array(sorted(numbers), np.uint64)
    return Sketch.of(hashes, np.ones(len(hashes), np.int64))


def publications(population: str = "") -> list[People]:
    """What the catalogue has of a population, the oldest first."""
    with catalogue.current().reading() as connection:
        return list(sketches.of_others(connection, population, work="", after=0))


class PeopleRun(WaitingRun):
    """A run with a drop of some people, whose release was checked, and is to be published."""

    def __init__(
        self,
        place: Path | str,
        name: str,
        numbers: Iterable[int],
        overlap: str = "refuse",
        population: str | None = None,
        by: str = "name",
    ) -> None:
        super().__init__(place, name)
        described = {"k": 2, "quasi_identifiers": ["age"], "overlap": overlap}
        locations = {"input": f"{place}/in", "output": self.output, "population": population}
        self.job = Job.from_dict({**described, **locations})
        drop = {
            "by": [by],
            "key": secret_key.fingerprint(catalogue.current().key),
            "sketch": sketch_of(numbers).to_json(),
        }
        self.work.write_json("people.json", drop)

    def publish(self) -> None:
        with overlap_check.recorded(self.job, self.work):
            self.place()

    def intend(self) -> Intention:
        """Note the intention, as a publisher does that is killed then."""
        with catalogue.current().writing() as connection:
            return overlap_check._noted(self.job, self.work, connection)
