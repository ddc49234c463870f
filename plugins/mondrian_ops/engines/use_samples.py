"""Samples by which it is measured how well a release can be worked with.

Each of up to `class_samples.PARTS` fragments writes its share of `SAMPLED` rows to working files,
as the rows came and as they are published. Nothing of them is published; what is measured of all of
them together goes into the report.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from mondrian_ops.cut.anonymizer import Released
from mondrian_ops.cut.planning import chosen_rows
from mondrian_ops.data.person_rows import hashed
from mondrian_ops.data.raw_risk import people_like, raw_risk
from mondrian_ops.engines.class_samples import measured_once, sampled_fragments
from mondrian_ops.engines.handover import Fragment, Summary
from mondrian_ops.engines.run import Run
from mondrian_ops.job.job import Job
from mondrian_ops.verify import use, use_model
from mondrian_ops.verify.arrays import decoded
from mondrian_ops.verify.loss import columns_of

SAMPLED = 10_000
"""Rows, of all fragments together."""

_CORRELATIONS = 10  # of columns, those that changed the most
_DIGITS = 4
_FIGURES = "use.json"
_PUBLISHED, _PEOPLE, _PERSON = "published", "people", "person"
_RAW, _RELEASED = "raw ", "released "


def take_sample(run: Run, fragment: Fragment, rows: pa.Table, released: Released) -> None:
    """Write the sample of a fragment to the working files, if it is one of those to sample."""
    chosen = sampled_fragments(run.state.fragments)
    if fragment.id in chosen:
        most = -(-SAMPLED * fragment.rows // max(1, sum(chosen.values())))
        sample = sample_of(run, rows, released, most, fragment.id)
        run.work.write_arrow(_name(fragment.id), sample)


def sample_of(
    run: Run, rows: pa.Table, released: Released, most: int = SAMPLED, seed: int = 0
) -> pa.Table:
    """Up to ``most`` of the ``rows``, and beside each what is published of it.

    A column is named ``raw age`` or ``released age``. A row that is not ``published`` has nulls in
    the latter. Where rows may wait for another night, there are no such rows.
    """
    made_up, holds = released.made_up, run.dataset.holding is not None
    own = np.arange(len(released.order)) if made_up is None else np.flatnonzero(~made_up)
    published = released.order[own]
    drawn = chosen_rows(len(published) if holds else rows.num_rows, most, seed)
    if holds:
        drawn = np.sort(published)[drawn].astype(np.int64)
    is_drawn = np.zeros(rows.num_rows, bool)
    is_drawn[drawn] = True
    there = np.flatnonzero(is_drawn[published])
    place = np.full(len(drawn), -1)
    place[np.searchsorted(drawn, published[there])] = own[there]
    raw = rows.take(pa.array(drawn))
    shown = released.table.take(pa.array(place, mask=place < 0))
    table, job = {_PUBLISHED: pa.array(place >= 0)}, run.dataset.job
    people = people_like(rows, drawn, job.quasi_identifier_names, job.entity_id)
    table[_PEOPLE] = pa.array(people)
    if job.entity_id is not None:
        table[_PERSON] = pa.array(hashed(raw[job.entity_id]))
    for name in dict.fromkeys([*job.quasi_identifier_names, *([job.target] if job.target else [])]):
        table[_RAW + name] = decoded(raw[name])
    for name in job.quasi_identifier_names:
        for column in columns_of(name, shown.column_names):
            table[_RELEASED + column] = decoded(shown[column])
    return pa.table(table)


def written_figures(run: Run, summaries: Sequence[Summary]) -> dict[str, Any]:
    """The figures by the samples that were written."""
    return measured_once(run, summaries, _FIGURES, _name, figures_of)


def figures_of(run: Run, samples: Sequence[pa.Table]) -> dict[str, Any]:
    """The figures of samples; empty where they have fewer than k rows."""
    job = run.dataset.job
    sample = pa.concat_tables(samples) if samples else None
    if sample is None or sample.num_rows < job.k:
        return {}
    published = sample.filter(sample[_PUBLISHED])
    columns = use.columns_of_table(run.labels, _part(sample, _RAW), _part(published, _RELEASED))
    errors = use.query_errors(list(columns.values()), job.k)
    changes = use.correlation_changes(columns)
    changes.sort(key=lambda change: -abs(change.after - change.before))
    figures: dict[str, Any] = {
        "rows": sample.num_rows,
        "query_error": None if errors is None else _rounded(errors),
        "distance": {name: _round(column.distance()) for name, column in columns.items()},
        "correlations": [_rounded(change) for change in changes[:_CORRELATIONS]],
    }
    persons = None if job.entity_id is None else sample[_PERSON].to_numpy()
    figures["before"] = raw_risk(sample[_PEOPLE].to_numpy(), job.k, persons)
    if job.target is not None:
        figures["model"] = {"target": job.target, **_model(list(columns.values()), sample, job)}
    return figures


def _model(columns: Sequence[use.Column], sample: pa.Table, job: Job) -> dict[str, Any]:
    """How well models predict the target, or why that was not measured."""
    row = np.flatnonzero(sample[_PUBLISHED].to_numpy())
    try:
        return _rounded(use_model.scores(columns, row, sample[f"{_RAW}{job.target}"]))
    except use_model.UnmeasuredError as why:
        return {"reason": str(why)}


def _part(sample: pa.Table, prefix: str) -> pa.Table:
    """The columns whose names have a prefix, by the names without it."""
    names = [name for name in sample.column_names if name.startswith(prefix)]
    return pa.table({name.removeprefix(prefix): sample[name] for name in names})


def _rounded(figures: NamedTuple) -> dict[str, Any]:
    return {name: _round(value) for name, value in figures._asdict().items()}


def _round(value: Any) -> Any:
    return round(value, _DIGITS) if isinstance(value, float) else value


def _name(fragment_id: int) -> str:
    return f"fragments/use-{fragment_id:05d}.arrow"
