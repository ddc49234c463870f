"""Samples of whole classes: taken where a part is written, measured where the release is checked.

Each of up to `PARTS` fragments writes its share of `singling_out.SAMPLED` rows to working files,
as the rows came from the source. Nothing of them is published.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from mondrian_ops.cut.anonymizer import Released
from mondrian_ops.engines.handover import Fragment, Summary
from mondrian_ops.engines.run import Run
from mondrian_ops.engines.scan import raw_columns
from mondrian_ops.engines.threads import in_threads
from mondrian_ops.verify.singling_out import SAMPLED, measured, sampled_classes

_Figures = TypeVar("_Figures")

PARTS = 64
"""Fragments of which classes are sampled: each is a file to be read."""

_FIGURES = "singled_out.json"


def take_sample(run: Run, fragment: Fragment, rows: pa.Table, released: Released) -> None:
    """Write the sample of a fragment to the working files, if it is one of those to sample."""
    chosen = sampled_fragments(run.state.fragments)
    if fragment.id in chosen and raw_columns(run.dataset)[0]:
        share = SAMPLED * fragment.rows / max(1, sum(chosen.values()))
        sample = sample_of(run, rows, released, share, fragment.id)
        run.work.write_arrow(_name(fragment.id), sample)


def sample_of(
    run: Run, rows: pa.Table, released: Released, most: float = SAMPLED, seed: int = 0
) -> pa.Table:
    """About ``most`` of the ``rows``, by whole classes of their released form."""
    job = run.dataset.job
    return sampled_classes(
        rows,
        released.table,
        released.order,
        released.made_up,
        job.quasi_identifier_names,
        raw_columns(run.dataset)[0],
        job.entity_id,
        most,
        seed,
    )


def written_figures(run: Run, summaries: Sequence[Summary]) -> list[dict[str, Any]]:
    """Whom the columns that are published as they are find, by the samples that were written."""
    if not raw_columns(run.dataset)[0]:
        return []
    return measured_once(run, summaries, _FIGURES, _name, figures_of)


def measured_once(
    run: Run,
    summaries: Sequence[Summary],
    file: str,
    name_of: Callable[[int], str],
    measure: Callable[[Run, Sequence[pa.Table]], _Figures],
) -> _Figures:
    """What ``measure`` finds in the samples of the fragments, whose files ``name_of`` names.

    It is kept in the working file ``file`` for a check that is repeated: the samples are removed as
    soon as no task needs rows of the source any more.
    """
    if run.work.is_written(run.work.path(file)):
        kept: _Figures = run.work.read_json(file)
        return kept
    chosen = sampled_fragments(run.state.fragments)
    names = [name_of(each.id) for each in summaries if each.rows and each.id in chosen]
    figures = measure(run, list(in_threads(run.work.read_arrow, names)))
    run.work.write_json(file, figures)
    return figures


def figures_of(run: Run, samples: Sequence[pa.Table]) -> list[dict[str, Any]]:
    """Whom the columns that are published as they are find; empty where too few rows tell."""
    quasi_identifiers = len(run.dataset.job.quasi_identifier_names)
    found = measured(samples, quasi_identifiers, raw_columns(run.dataset)[0])
    return [each.to_dict() for each in found]


def sampled_fragments(fragments: Sequence[Fragment]) -> dict[int, int]:
    """The rows of the fragments to sample; the same in every task."""
    order = np.random.default_rng(0).permutation(len(fragments))[:PARTS]
    return {fragments[at].id: fragments[at].rows for at in order}


def _name(fragment_id: int) -> str:
    return f"fragments/classes-{fragment_id:05d}.arrow"
