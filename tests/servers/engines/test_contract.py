"""What every engine promises of each step: told by the data itself, not by the other engine."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from brute_force import classes_of
from engines.samples import ROWS, Site, quasi_identifiers
from mondrian_ops import pipeline, publish
from mondrian_ops.cut import planning
from mondrian_ops.cut.boundary_fitting import settle
from mondrian_ops.cut.planning import Draft, LeafCounts
from mondrian_ops.cut.routing import Router
from mondrian_ops.data.disclosing_columns import survey
from mondrian_ops.data.profile import Profiler
from mondrian_ops.engines import Engine
from mondrian_ops.engines.run import Run
from published_text import KINDS, Column, in_any_order

KEYS: dict[str, Any] = {
    "sensitive": ["grade", "word"],
    "l": 2,
    "cut": "gain",
    "partitioning": {"fragments": 6, "sample": 0.4, "min_sample": 0, "seed": 5},
}


def begun(site: Site, here: Path, **keys: Any) -> Run:
    """A run whose working files are there."""
    return pipeline.begin(site.job(here / "out", **{**KEYS, **keys}), str(here / "work"))


def expected_draft(run: Run, table: pa.Table) -> Draft:
    """The draft of all rows at once."""
    job, hierarchies = run.dataset.job, run.dataset.hierarchies
    profiler = Profiler(job, table.schema, hierarchies)
    profiler.add(table)
    chosen = planning.chosen_rows(ROWS, planning.sample_size(job, ROWS), job.partitioning.seed)
    return planning.draft(job, profiler.finish(), hierarchies, table.take(chosen), table)


def drafted(run: Run, table: pa.Table) -> Run:
    run.save_draft(expected_draft(run, table))
    return run


def leaves_of(run: Run, table: pa.Table) -> np.ndarray:
    return Router(run.draft.plan, run.anonymizer.orders).route(table)


def test_sampling(site: Site, engine: Engine, tmp_path: Path) -> None:
    run = begun(site, tmp_path)
    told: list[int] = []
    engine.draft(run, told.append)
    found = run.draft
    expected = expected_draft(run, site.table)
    assert found.sample_rows == 240
    assert found.plan == expected.plan
    assert found.plan.leaves == 6
    assert found.cut == expected.cut
    assert found.profile.rows == ROWS == sum(told)
    assert found.profile.types == expected.profile.types
    for name, domain in expected.profile.domains.items():
        assert found.profile.domains[name].equals(domain)
    for name, counts in expected.profile.counts.items():
        assert found.profile.counts[name].equals(counts)


def test_stable_boundaries_of_a_series(site: Site, engine: Engine, tmp_path: Path) -> None:
    job = site.job(tmp_path / "out/2025-06-01", **KEYS, series={"boundaries": "stable"})
    run = pipeline.begin(job, str(tmp_path / "work"))
    profiler = Profiler(job, site.table.schema, run.dataset.hierarchies)
    profiler.add(site.table)
    profile = profiler.finish()
    expected = settle(job, profile, run.dataset.hierarchies, site.table, None, 1)
    engine.draft(run, lambda _rows: None)
    found = run.draft.boundaries
    assert found is not None
    assert found.fitted == "first"
    assert found.boundaries.columns == expected.boundaries.columns
    assert found.boundaries.columns
    assert (found.loss, found.loss_nightly) == (expected.loss, expected.loss_nightly)
    for name, values in expected.boundaries.arrays(profile.types).items():
        assert run.draft.profile.boundaries[name].equals(values)


def test_counting(site: Site, engine: Engine, tmp_path: Path) -> None:
    run = drafted(begun(site, tmp_path), site.table)
    seen: list[int] = []
    counts = engine.count(run, scatter=False, rows_seen=seen.append)
    assert sum(seen) == ROWS
    check_counts(counts, run, site.table)
    assert not list((tmp_path / "work" / "fragments").iterdir())


def test_scattering(site: Site, engine: Engine, tmp_path: Path) -> None:
    """Each row goes to one fragment, with all that is released of it, in the source's order."""
    run = drafted(begun(site, tmp_path), site.table)
    check_counts(engine.count(run, scatter=True, rows_seen=lambda _: None), run, site.table)
    leaf = leaves_of(run, site.table)
    for number in range(run.draft.plan.leaves):
        rows = publish.read_fragment(run.work, number)
        assert rows.schema.equals(run.schema)
        assert "ssn" not in rows.column_names
        expected = site.table.select(run.columns).filter(pa.array(leaf == number))
        assert str(rows.to_pylist()) == str(expected.to_pylist())  # NaN is not equal to NaN
    names = [path.name for path in (tmp_path / "work" / "fragments").iterdir()]
    assert not [name for name in names if name.startswith(".")]


def test_following(site: Site, engine: Engine, tmp_path: Path) -> None:
    """Values that are followed are the same ones however the source is split."""
    run = drafted(begun(site, tmp_path, unlisted="publish"), site.table)
    raw = ["row", "bytes", "grade", "word"]
    surveyed = survey(run.dataset.job, raw, site.table.take(list(range(0, ROWS, 6))), ROWS)
    assert "row" in [watch.column for watch in surveyed.watched]
    run.save_draft(replace(run.draft, survey=surveyed))
    counts = engine.count(run, scatter=False, rows_seen=lambda _: None)
    (batch,) = site.table.combine_chunks().to_batches()
    for watch in surveyed.watched:
        found, expected = counts.followed[watch.column], watch.follow(batch, 0, None)
        assert found.rows.tolist() == expected.rows.tolist()
        rows = [each.thinned().kept.sort_by("rank") for each in (found, expected)]
        assert str(rows[0].to_pylist()) == str(rows[1].to_pylist())


def check_counts(counts: LeafCounts, run: Run, table: pa.Table) -> None:
    leaf = leaves_of(run, table)
    assert counts.rows.tolist() == np.bincount(leaf, minlength=run.draft.plan.leaves).tolist()
    for domain, found in zip(run.anonymizer.domains, counts.sensitive, strict=True):
        values = [None, *domain.values.to_pylist()]
        codes = [values.index(value) for value in table[domain.name].to_pylist()]
        expected = Counter(zip(leaf.tolist(), codes, strict=True))
        by_pair = {
            (int(a), int(b)): int(found[a, b]) for a, b in zip(*np.nonzero(found), strict=True)
        }
        assert by_pair == expected


@pytest.mark.parametrize("retrieval", ["scatter", "pushdown", "shuffle"])
def test_cutting_and_writing(site: Site, engine: Engine, tmp_path: Path, retrieval: str) -> None:
    """Parts as the rows of each fragment give them; done again, they have the same rows."""
    shuffled = {"engine": "spark", "spark": {"shape": "application"}, "retrieval": "auto"}
    keys = shuffled if retrieval == "shuffle" else {"retrieval": retrieval}
    run = begun(site, tmp_path, **keys)
    pipeline.divide(run, engine=engine)
    assert run.state.retrieval == retrieval
    again = run.state.fragments[1:2] if retrieval != "shuffle" else run.state.fragments
    found = [*engine.anonymize(run, run.state.fragments), *engine.anonymize(run, again)]
    summaries = {summary.id: summary for summary in found}
    assert len(summaries) == len(run.state.fragments) > 3
    leaf = leaves_of(run, site.table)
    for fragment in run.state.fragments:
        mask = np.isin(leaf, run.state.leaves[fragment.id])
        rows = site.table.select(run.columns).filter(pa.array(mask))
        released, expected, *_ = run.anonymizer.release(rows)
        alone = tmp_path / f"{fragment.id}.parquet"
        publish.write_part(str(alone), released, declared=run.declared)
        part = pq.read_table(run.work.part_path(fragment.id))
        written = pq.read_table(alone)
        assert part.schema.equals(written.schema)
        assert in_any_order(part) == in_any_order(written)
        summary = summaries[fragment.id]
        assert summary.rows == fragment.rows == len(rows)
        for name in ("equivalence_classes", "DP"):
            assert getattr(summary, name) == expected[name]
    assert len(run.work.staged()) == len(summaries)


@pytest.mark.parametrize(
    "engine",
    [  # the whole of it by the local engine is what the tests of the promises read
        pytest.param("local", marks=pytest.mark.soak),
        pytest.param("spark", marks=pytest.mark.java),
    ],
    indirect=True,
)
def test_the_whole_of_it_without_the_files_of_the_hierarchies(
    site: Site, engine: Engine, tmp_path: Path
) -> None:
    """Once a run has begun, its working files are all that an engine needs; and it is right."""
    (tmp_path / "site").mkdir()
    other = Site(tmp_path / "site")  # the same: it is drawn from one seed
    listed = quasi_identifiers(2)
    run = begun(other, tmp_path, quasi_identifiers=listed, retrieval="pushdown")
    assert {q.hierarchy for q in run.dataset.job.quasi_identifiers} > {"tree.csv"}
    shutil.rmtree(other.hierarchies)
    pipeline.divide(run, engine=engine)
    summaries = list(engine.anonymize(run, run.state.fragments))
    keys: dict[str, Any] = {"summaries": summaries, "engine": engine}
    report = pipeline.wrap_up(run.dataset.job, work=run.work.root, **keys)
    assert report["rows"]["published"] == ROWS
    release = pq.read_table(tmp_path / "out").sort_by("row")
    columns = [column_of(site.table, item) for item in listed]
    rows = zip(*(release[column.name].to_pylist() for column in columns), strict=True)
    classes = classes_of(dict(enumerate(rows)))
    assert 5 < len(classes) == report["equivalence_classes"]
    assert min(map(len, classes.values())) >= 5
    for published, members in classes.items():
        for sensitive in ("grade", "word"):
            assert len({site.table[sensitive][at].as_py() for at in members}) >= 2
        for column, text in zip(columns, published, strict=True):
            column.check(text, [column.values[at] for at in members])


def column_of(table: pa.Table, listed: str) -> Column:
    name, _, way = listed.partition("=")
    return Column(name, KINDS[name], way, table[name].to_pylist())
