"""Runs of which there is only what the ledger of releases and the publication look at."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from mondrian_ops import storage
from mondrian_ops.core.job import Job
from mondrian_ops.core.sketch import Sketch
from mondrian_ops.pipeline import overlap_check

KEY = bytes(range(32))
REPORT = {"rows": {"published": 10}, "achieved": {"k": 2}}


def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for others who publish."""

    def sleep(_seconds: float) -> None:
        raise AssertionError("waits")

    monkeypatch.setattr(overlap_check, "PATIENCE_S", 0)
    monkeypatch.setattr(overlap_check, "sleep", sleep)


def make_ledger(url: str) -> None:
    """An empty ledger, whose key is known."""
    store, path = storage.filesystem(url)
    store.create_dir(path, recursive=True)
    storage.write_file(f"{url}/key", KEY)


def sketch_of(people: Iterable[int]) -> Sketch:
    hashes = np.array(sorted(people), np.uint64)
    return Sketch.of(hashes, np.ones(len(hashes), np.int64))


class Run:
    """A run whose release was checked, and is to be published."""

    def __init__(
        self, place: str, name: str, people: Iterable[int], overlap: str = "refuse"
    ) -> None:
        self.output = f"{place}/{name}"
        keys = {"input": f"{place}/in", "output": self.output, "ledger": f"{place}/ledger"}
        described = {**keys, "k": 2, "quasi_identifiers": ["age"], "overlap": overlap}
        self.job = Job.from_dict(described, where="job")
        self.work = storage.WorkDir(storage.work_path(self.output, name))
        self.work.create()
        key, told = storage.Ledger.key_id(KEY), sketch_of(people).to_json()
        self.work.write_json("ledger.json", {"by": ["name"], "key": key, "sketch": told})
        storage.write_file(f"{self.work.staging}/_report.json", b'{"job": 1}')

    def publish(self) -> None:
        with overlap_check.recorded(self.job, self.work, REPORT):
            storage.publish(self.work.staging, self.output, self.work.token)

    @property
    def is_published(self) -> bool:
        return storage.current_token(self.output) is not None
