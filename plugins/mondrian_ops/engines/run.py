"""A run, described in its working files, so that its tasks can be on any machine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mondrian_ops import publish, stores, tables
from mondrian_ops.cut.anonymizer import Anonymizer, ClassMaker, columns_to_read
from mondrian_ops.cut.holding import Holding
from mondrian_ops.cut.plan import Plan
from mondrian_ops.cut.planning import Draft, Slots
from mondrian_ops.cut.recoding import Recoding
from mondrian_ops.data.frequency_set import FrequencySet
from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.engines.handover import RunState, SeriesNight
from mondrian_ops.engines.kept_rows import KeptRows
from mondrian_ops.job import limits as resource_limits
from mondrian_ops.job.job import Job
from mondrian_ops.late_methods import dataclass
from mondrian_ops.phases import Phases
from mondrian_ops.verify.labels import labels_of_job
from mondrian_ops.verify.published_labels import PublishedLabels

if TYPE_CHECKING:
    from mondrian_ops.cut.algorithms.tds import Level

_DATASET = "dataset.json"
_DRAFT = "draft.arrow"
_RECODING = "recoding.arrow"
_STATE = "run.json"


@dataclass(frozen=True)
class Dataset:
    """A source, the job that anonymizes it, its hierarchies by column, and room for fragments.

    In a series the source is the pool of the ``night``, not the job's input. ``contract``: the
    columns of the drop, as :mod:`mondrian_ops.pipeline.contract` writes them, where the job's
    releases have to be alike.
    """

    job: Job
    source: tables.Table
    hierarchies: Mapping[str, Hierarchy]
    slots: Slots = Slots()
    night: SeriesNight | None = None
    contract: Mapping[str, Any] | None = None

    @property
    def chosen(self) -> dict[str, str]:
        """By column, what the values of an earlier release decided, which this one keeps."""
        columns = {} if self.contract is None else self.contract["columns"]
        return {name: each["chosen"] for name, each in columns.items() if each.get("chosen")}

    @property
    def holding(self) -> Holding | None:
        """Which rows wait for the next night; None where none may."""
        series = self.job.series
        if series is None or self.night is None or not series.holds:
            return None
        return Holding(
            series.hold_above,
            self.night.number - series.hold_nights,
            suppress=series.overdue == "suppress",
            unmatched_wait=series.unmatched != "suppress",
        )

    def save(self, work: publish.WorkDir) -> None:
        """Describe it in the working files, with the hierarchies, whose files may be elsewhere."""
        described = {
            "job": self.job.to_dict(),
            "source": self.source.to_json(),
            "slots": asdict(self.slots),
            "hierarchies": {name: each.to_json() for name, each in self.hierarchies.items()},
            "night": None if self.night is None else self.night.to_dict(),
            "contract": self.contract,
        }
        work.write_json(_DATASET, described)

    @classmethod
    def load(cls, work: publish.WorkDir) -> Dataset:
        """The dataset that `save` described."""
        described = work.read_json(_DATASET)
        hierarchies = {
            name: Hierarchy.from_json(each) for name, each in described["hierarchies"].items()
        }
        job = Job.from_dict(described["job"])
        source = tables.table_of_json(described["source"])
        night = described["night"] and SeriesNight.from_dict(described["night"])
        slots = Slots(**described["slots"])
        return cls(job, source, hierarchies, slots, night, described["contract"])


class Run:
    """One run: its dataset, the draft of its plan, and its state, read when they are needed.

    Without working files, ``work``, this object is all that there is of a run, and needs a dataset.
    ``class_maker`` forms the classes of a night whose persons are followed; whoever has its
    fragments anonymized sets it. ``phases`` measures what this process does of the run as a whole.
    ``kept`` are the rows of the first pass over the source, for the second.
    """

    def __init__(self, work: publish.WorkDir | None, dataset: Dataset | None = None) -> None:
        self._work = work
        self.class_maker: ClassMaker | None = None
        self.phases = Phases()
        self._frequencies: FrequencySet | None = None
        self.kept: KeptRows | None = None
        if dataset is not None:
            self.dataset = dataset

    @property
    def work(self) -> publish.WorkDir:
        if self._work is None:
            raise RuntimeError("this run has no working files")
        return self._work

    @property
    def root(self) -> str:
        """The path of the working files; empty without them."""
        return "" if self._work is None else self._work.root

    @cached_property
    def dataset(self) -> Dataset:
        return Dataset.load(self.work)

    @cached_property
    def draft(self) -> Draft:
        """The decisions on a sample."""
        return Draft.from_table(self.work.read_arrow(_DRAFT))

    @cached_property
    def state(self) -> RunState:
        return RunState.from_dict(self.work.read_json(_STATE))

    @cached_property
    def anonymizer(self) -> Anonymizer:
        """It turns the run's rows into rows of its release."""
        return self.draft.anonymizer(self.dataset.job, self.dataset.hierarchies)

    @cached_property
    def labels(self) -> dict[str, PublishedLabels]:
        """What reads the published labels, by quasi-identifier."""
        profile = self.draft.profile
        return labels_of_job(
            profile.resolved(self.dataset.job),
            profile.types,
            profile.domains,
            profile.boundaries,
            self.dataset.hierarchies,
            profile.pointed,
            profile.counts,
            profile.quantiles,
            profile.robust_ends,
        )

    @property
    def plan(self) -> Plan:
        """The plan, with the leaves of each fragment."""
        return Plan(self.draft.plan.nodes, tuple(map(tuple, self.state.leaves)))

    @property
    def frequencies(self) -> FrequencySet:
        """The combinations of codes and their rows, where recoding is global.

        Without those that are set, each access reads the working files: there can be as many
        combinations as rows, too many to keep.
        """
        if self._frequencies is not None:
            return self._frequencies
        return FrequencySet.from_table(self.work.read_arrow(publish.FREQUENCIES))

    @frequencies.setter
    def frequencies(self, frequencies: FrequencySet | None) -> None:
        self._frequencies = frequencies

    @cached_property
    def recoding(self) -> Recoding | None:
        """The generalization of each value, where recoding is global."""
        if not self.dataset.job.recodes_globally:
            return None
        return Recoding.from_table(self.work.read_arrow(_RECODING))

    @property
    def columns(self) -> list[str]:
        """The columns of the source that the release needs."""
        return columns_to_read(self.dataset.job, self.dataset.source.schema.names)

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([self.dataset.source.schema.field(name) for name in self.columns])

    @property
    def required(self) -> frozenset[str]:
        """The columns of which no row of the release has a missing value.

        None where releases have to be alike: another one may have missing values.
        """
        job = self.dataset.job
        if job.series is not None or self.dataset.contract is not None:
            return frozenset()
        return frozenset([*self.draft.profile.complete, *job.identifiers])

    @property
    def declared(self) -> list[pa.Field]:
        """The columns that are published as they are in types that are not plain."""
        job = self.dataset.job
        changed = {*job.quasi_identifier_names, *job.identifiers}
        return [each for each in self.dataset.source.declared if each.name not in changed]

    def forget_rows(self) -> None:
        """Give back the memory of the rows that were kept for a second pass over the source."""
        if self.kept is not None:
            self.kept = None
            pa.default_memory_pool().release_unused()

    def save_draft(self, draft: Draft) -> None:
        self.draft = draft
        if self._work is not None:
            self._work.write_arrow(_DRAFT, self.draft.to_table())

    def save_frequencies(self, frequencies: FrequencySet) -> None:
        """Write the combinations of codes to the working files, for later tasks."""
        self.work.write_arrow(publish.FREQUENCIES, frequencies.to_table())

    def save_level(self, part: int, level: Level) -> None:
        """Write the level of a part in the first phase; a retry replaces it."""
        self.work.write_arrow(_level_name(part), level.to_table())

    def level(self, part: int) -> Level:
        from mondrian_ops.cut.algorithms.tds import Level

        return Level.from_table(self.work.read_arrow(_level_name(part)))

    def save_recoding(self, recoding: Recoding) -> None:
        self.recoding = recoding
        if self._work is not None:
            self._work.write_arrow(_RECODING, recoding.to_table())

    def save_state(self, state: RunState) -> None:
        self.state = state
        self.work.write_json(_STATE, state.to_dict())


@dataclass(frozen=True)
class RunLocation:
    """What a process elsewhere needs to find a run, with the permissions of this process.

    ``attempt`` identifies the attempt that the working files ``work`` belong to. ``storage``
    describes how they and the input are reached, and may hold secrets; ``allowed`` is the access
    policy; ``limits`` are the limits on input that differ from the defaults.
    """

    work: str
    attempt: str
    storage: Mapping[str, Any] = field(default_factory=dict)
    allowed: Mapping[str, Any] | None = None
    limits: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, run: Run) -> RunLocation:
        """The location of a run and its input."""
        allowed = stores.current_policy()
        return cls(
            run.work.root,
            run.work.token,
            stores.options_of([run.dataset.source.url, run.work.root]),
            None if allowed is None else allowed.to_json(),
            dict(resource_limits.in_use()),
        )

    def to_json(self) -> str:
        """A JSON text; the same for the same location."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> RunLocation:
        """The location that :meth:`to_json` described."""
        return cls(**json.loads(text))

    def enter(self) -> Run:
        """The run. This process is bound to the policy and limits from here on."""
        stores.use_options(self.storage)
        stores.use_policy(stores.AccessPolicy.from_json(self.allowed))
        resource_limits.use(self.limits)
        return Run(publish.WorkDir(self.work, self.attempt))


def _level_name(part: int) -> str:
    return f"level-{part:05d}.arrow"
