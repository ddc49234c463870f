"""A run as its tasks know it, on whatever machine they are: described in its working files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mondrian_ops import storage
from mondrian_ops.algorithms.anonymizer import Anonymizer, columns_to_read
from mondrian_ops.algorithms.planning import Draft, Slots
from mondrian_ops.algorithms.recoding import Recoding
from mondrian_ops.core import limits
from mondrian_ops.core.frequency_set import FrequencySet
from mondrian_ops.core.hierarchy import Hierarchy
from mondrian_ops.core.job import Job
from mondrian_ops.core.plan import Plan
from mondrian_ops.engines.handover import RunState

if TYPE_CHECKING:
    from mondrian_ops.algorithms.specialization import Level

__all__ = ["Dataset", "Run", "RunLocation"]

_DATASET = "dataset.json"
_DRAFT = "draft.arrow"
_RECODING = "recoding.arrow"
_STATE = "run.json"


@dataclass(frozen=True)
class Dataset:
    """What is to be anonymized, and how; ``hierarchies`` by column.

    ``slots`` is the room for fragments.
    """

    job: Job
    source: storage.Source
    hierarchies: Mapping[str, Hierarchy]
    slots: Slots = Slots()  # noqa: RUF009 - frozen

    def save(self, work: storage.WorkDir) -> None:
        """Describe it in the working files; hierarchies too, which other machines may not have."""
        described = {
            "job": self.job.to_dict(),
            "source": self.source.to_json(),
            "slots": asdict(self.slots),
            "hierarchies": {
                column: {"name": hierarchy.name, "rows": hierarchy.to_rows()}
                for column, hierarchy in self.hierarchies.items()
            },
        }
        work.write_json(_DATASET, described)

    @classmethod
    def load(cls, work: storage.WorkDir) -> Dataset:
        """The dataset that `save` described."""
        described = work.read_json(_DATASET)
        hierarchies = {
            column: Hierarchy.from_rows(each["rows"], each["name"])
            for column, each in described["hierarchies"].items()
        }
        job = Job.from_dict(described["job"])
        source = storage.Source.from_json(described["source"])
        return cls(job, source, hierarchies, Slots(**described["slots"]))


class Run:
    """One run: its dataset, the draft of its plan, and its state, read when they are needed.

    Without working files, ``work``, nothing is kept but in this object; it needs its dataset then.
    """

    def __init__(self, work: storage.WorkDir | None, dataset: Dataset | None = None) -> None:
        self._work = work
        self._frequencies: FrequencySet | None = None
        if dataset is not None:
            self.dataset = dataset

    @property
    def work(self) -> storage.WorkDir:
        """The working files."""
        if self._work is None:
            raise RuntimeError("this run has no working files")
        return self._work

    @property
    def root(self) -> str:
        """Where the working files are; empty where there are none."""
        return "" if self._work is None else self._work.root

    @cached_property
    def dataset(self) -> Dataset:
        """What is to be anonymized."""
        return Dataset.load(self.work)

    @cached_property
    def draft(self) -> Draft:
        """What was decided on a sample."""
        return Draft.from_table(self.work.read_arrow(_DRAFT))

    @cached_property
    def state(self) -> RunState:
        """What the partition task found out."""
        return RunState.from_dict(self.work.read_json(_STATE))

    @cached_property
    def anonymizer(self) -> Anonymizer:
        """What turns the run's rows into rows of its release."""
        return self.draft.anonymizer(self.dataset.job, self.dataset.hierarchies)

    @property
    def plan(self) -> Plan:
        """The plan, with the fragments that the partition task has made of its leaves."""
        return Plan(self.draft.plan.nodes, tuple(map(tuple, self.state.leaves)))

    @property
    def frequencies(self) -> FrequencySet:
        """The combinations of codes, where columns are recoded as a whole.

        Those that are set, else those in the working files; as they can be as many as the rows, no
        process keeps what it read.
        """
        if self._frequencies is not None:
            return self._frequencies
        return FrequencySet.from_table(self.work.read_arrow(storage.FREQUENCIES))

    @frequencies.setter
    def frequencies(self, frequencies: FrequencySet) -> None:
        self._frequencies = frequencies

    @cached_property
    def recoding(self) -> Recoding | None:
        """What the values of each column become, where columns are recoded as a whole."""
        if not self.dataset.job.recodes_columns:
            return None
        return Recoding.from_table(self.work.read_arrow(_RECODING))

    @property
    def columns(self) -> list[str]:
        """The columns that a release needs of the source."""
        return columns_to_read(self.dataset.job, self.dataset.source.schema.names)

    @property
    def schema(self) -> pa.Schema:
        """Their schema."""
        return pa.schema([self.dataset.source.schema.field(name) for name in self.columns])

    def save_draft(self, draft: Draft) -> None:
        """Keep what was decided on a sample in the working files."""
        self.draft = draft
        if self._work is not None:
            self._work.write_arrow(_DRAFT, self.draft.to_table())

    def save_frequencies(self, frequencies: FrequencySet) -> None:
        """Keep the combinations of codes in the working files, for tasks to come."""
        self.work.write_arrow(storage.FREQUENCIES, frequencies.to_table())

    def save_level(self, part: int, level: Level) -> None:
        """Keep what the first phase found on a part; doing it again replaces it."""
        self.work.write_arrow(_level_name(part), level.to_table())

    def level(self, part: int) -> Level:
        """What the first phase found on a part."""
        from mondrian_ops.algorithms.specialization import Level  # compiled functions

        return Level.from_table(self.work.read_arrow(_level_name(part)))

    def save_recoding(self, recoding: Recoding) -> None:
        """Keep the recoding in the working files."""
        self.recoding = recoding
        if self._work is not None:
            self._work.write_arrow(_RECODING, recoding.to_table())

    def save_state(self, state: RunState) -> None:
        """Keep what the partition task found out in the working files."""
        self.state = state
        self.work.write_json(_STATE, state.to_dict())


@dataclass(frozen=True)
class RunLocation:
    """What a process elsewhere needs to find a run, and to reach no more than this one may.

    ``attempt`` tells the working files ``work`` from those of another attempt at the same run.
    ``storage`` says how they and the input are reached, and may hold secrets; ``allowed`` what may
    be read and written; ``limits`` those limits of what is read that are not the defaults.
    """

    work: str
    attempt: str
    storage: Mapping[str, Any] = field(default_factory=dict)
    allowed: Mapping[str, Any] | None = None
    limits: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, run: Run, *locations: str) -> RunLocation:
        """Where a run is; its input is reached from there, and so are further ``locations``."""
        allowed = storage.current_policy()
        return cls(
            run.work.root,
            run.work.token,
            storage.options_of([run.dataset.source.url, run.work.root, *locations]),
            None if allowed is None else allowed.to_json(),
            dict(limits.in_use()),
        )

    def to_json(self) -> str:
        """A JSON text; the same for the same location."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> RunLocation:
        """What :meth:`to_json` gave."""
        return cls(**json.loads(text))

    def enter(self) -> Run:
        """The run. From here on this process is held to what is allowed."""
        storage.use_options(self.storage)
        storage.use_policy(storage.AccessPolicy.from_json(self.allowed))
        limits.use(self.limits)
        return Run(storage.WorkDir(self.work, self.attempt))


def _level_name(part: int) -> str:
    return f"level-{part:05d}.arrow"
