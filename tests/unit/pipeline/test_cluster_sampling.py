"""How many rows a frontier needs, and which ones it draws."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontier_jobs import job_over, small_job
from mondrian_ops import anonymize, datasets, pipeline, publish, tables
from mondrian_ops.engines.handover import Sample
from mondrian_ops.engines.run import Dataset
from mondrian_ops.errors import JobError, MondrianOpsError, PrivacyError
from mondrian_ops.job.job import Job
from mondrian_ops.pipeline import cluster_sampling, frontier
from mondrian_ops.pipeline.checks import hierarchies_of
from mondrian_ops.progress import Display
from mondrian_ops.verify.counts import PartCount

HANDS = 40_000


@pytest.fixture(scope="module")
def hands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Poker hands, far more than the samples of the tests."""
    path = tmp_path_factory.mktemp("hands") / "hands.parquet"
    datasets.generate("poker", rows=HANDS, seed=0, output=str(path))
    return path


def dataset_of(job: Job) -> Dataset:
    return Dataset(job, tables.open_table(str(job.input)), hierarchies_of(job))


class TestSize:
    @given(st.integers(1, 10**9), st.integers(1, 10**9), st.integers(2, 10**4))
    def test_a_sample_is_a_part_in_fragments_that_hold_many_classes(
        self, rows: int, wanted: int, k: int
    ) -> None:
        size = cluster_sampling.size_of(rows, wanted, k)
        if size is None:
            least = max(100 * k, 1000, -(-rows // 4096), -(-wanted // 400))
            assert wanted >= rows or max(16, round(wanted / least)) >= rows // least
            return
        assert 16 <= size.drawn < size.fragments <= 4096
        assert size.drawn <= 400
        assert rows / size.fragments >= max(100 * k, 1000)

    @pytest.mark.parametrize("size", [{"rows": 0}, {"rate": 0.0}, {"rate": 1.5}])
    def test_a_size_that_makes_no_sense(self, tmp_path: Path, size: dict[str, Any]) -> None:
        with pytest.raises(JobError, match="must be"):
            frontier.trace(small_job(tmp_path), frontier.points([2], [1]), **size)

    def test_one_size_at_a_time(self, tmp_path: Path) -> None:
        with pytest.raises(JobError, match="give only one of them"):
            frontier.trace(small_job(tmp_path), frontier.points([2], [1]), rows=9, rate=0.5)

    @given(st.integers(1, 500), st.integers(1, 500), st.integers(0, 2**32))
    def test_fragments_are_drawn_evenly(self, fragments: int, drawn: int, seed: int) -> None:
        chosen = cluster_sampling._evenly(fragments, drawn, seed)
        assert len(chosen) == min(drawn, fragments)
        assert chosen[0] >= 0 and chosen[-1] < fragments
        step = fragments / len(chosen)
        gaps = np.diff(chosen)
        assert np.all((gaps >= math.floor(step)) & (gaps <= math.ceil(step)))

    def test_each_fragment_is_as_likely_as_any_other(self) -> None:
        drawn = Counter(at for seed in range(4000) for at in cluster_sampling._evenly(10, 3, seed))
        assert all(abs(drawn[at] - 1200) < 120 for at in range(10))


class TestSample:
    def test_drawing_all_fragments_takes_every_row_once(self, hands: Path, tmp_path: Path) -> None:
        job = job_over(hands, tmp_path)
        work = publish.WorkDir(str(tmp_path / "work"))
        work.create()
        drawn = cluster_sampling.draw(
            dataset_of(job), cluster_sampling.Size(20, 20), work.root, Display()
        )
        assert drawn == Sample(work.root, HANDS, HANDS, fragments=20, drawn=20)
        kept = pa.concat_tables([publish.read_fragment(work, leaf) for leaf in range(20)])
        source = pq.read_table(hands).select(kept.column_names)
        order = [(name, "ascending") for name in kept.column_names]
        assert kept.sort_by(order).equals(source.sort_by(order))

    @pytest.mark.servers
    def test_all_fragments_lose_what_a_run_loses(self, hands: Path, tmp_path: Path) -> None:
        job = job_over(hands, tmp_path, k=10, l=2)
        work = publish.WorkDir(str(tmp_path / "work"))
        work.create()
        cluster_sampling.draw(dataset_of(job), cluster_sampling.Size(20, 20), work.root, Display())
        point = cluster_sampling.measure(job, work.root)
        metrics = pipeline.run(job)["metrics"]
        assert point["GCP_error"] == 0
        assert point["NCP"] == pytest.approx(metrics["NCP"], rel=0.02)
        assert point["DP"] == pytest.approx(metrics["DP"], rel=0.02)

    @pytest.mark.servers  # those below draw fragments, too
    def test_drawn_fragments_tell_what_a_sample_of_rows_does_not(
        self, hands: Path, tmp_path: Path
    ) -> None:
        job = job_over(hands, tmp_path)
        grid = frontier.points([2, 10], [2])
        truth = frontier.trace(job, grid, rate=1.0)
        traced = frontier.trace(job, grid, rows=HANDS // 4)
        assert traced["drawn"] < traced["fragments"]
        assert traced["measured"] < HANDS / 2
        rows = pq.read_table(hands).slice(0, traced["measured"])
        for point, true in zip(traced["points"], truth["points"], strict=True):
            assert point["GCP"] == pytest.approx(true["GCP"], rel=0.03)
            assert point["risk_avg"] == pytest.approx(true["risk_avg"], rel=0.1)
            assert point["NCP"] == pytest.approx(true["NCP"], rel=0.03)
            assert point["rows"] == true["rows"] == HANDS
            _released, report = anonymize(rows, frontier.job_at(job, point))
            assert report["metrics"]["GCP"] > 1.1 * true["GCP"]

    @pytest.mark.servers
    def test_the_truth_is_mostly_within_two_standard_errors(
        self, hands: Path, tmp_path: Path
    ) -> None:
        grid = frontier.points([10], [1])
        truth = frontier.trace(job_over(hands, tmp_path), grid, rate=1.0)["points"][0]["GCP"]
        off = []
        for seed in range(5):
            job = job_over(hands, tmp_path, partitioning={"seed": seed})
            (point,) = frontier.trace(job, grid, rows=HANDS // 4)["points"]
            off.append(abs(point["GCP"] - truth) / point["GCP_error"])
        assert sum(each <= 2 for each in off) >= 4

    def test_same_seed_same_figures(self, hands: Path, tmp_path: Path) -> None:
        def figures() -> list[dict[str, Any]]:
            points = frontier.trace(
                job_over(hands, tmp_path), frontier.points([10], [3]), rows=HANDS // 4
            )["points"]
            return [{key: p[key] for key in p if key != "seconds"} for p in points]

        assert figures() == figures()

    def test_the_standard_error_is_that_of_a_ratio(self) -> None:
        job = Job.from_dict({"k": 2, "quasi_identifiers": ["a", "b"]}, paths_required=False)
        rows, ncp = [10, 20, 30, 25], [4.0, 9.0, 10.0, 12.0]
        parts = [
            PartCount(n, 1, n * n, {"a": {"NCP": lost - 1}, "b": {"NCP": 1.0}})
            for n, lost in zip(rows, ncp, strict=True)
        ]
        ratio = sum(ncp) / 2 / sum(rows)
        spread = sum((lost / 2 - ratio * n) ** 2 for n, lost in zip(rows, ncp, strict=True)) / 3
        mean = sum(rows) / 4
        expected = math.sqrt((1 - 0.25) / 4 * spread) / mean
        assert cluster_sampling._standard_error(job, parts, 0.25) == pytest.approx(expected)
        assert cluster_sampling._standard_error(job, parts[:1], 0.25) is None

    def test_a_fragment_that_cannot_stand_is_merged(self, tmp_path: Path) -> None:
        """Half of the space has one sensitive value only."""
        count = 40_000
        at = np.random.default_rng(3).integers(0, 1000, count)
        other = np.random.default_rng(4).integers(0, 1000, count)
        illness = np.where(at < 500, 0, at % 7)
        path = tmp_path / "rows.parquet"
        pq.write_table(pa.table({"x": at, "y": other, "illness": illness}), path)
        job = job_over(path, tmp_path, quasi_identifiers=["x", "y"], sensitive=["illness"])
        traced = frontier.trace(job, frontier.points([5], [1, 3, 8]), rows=8_000)
        loose, strict, impossible = traced["points"]
        assert traced["drawn"] and loose["achieved"]["l"] == 1
        assert strict["achieved"]["l"] >= 3
        assert strict["GCP"] > loose["GCP"]
        assert "distinct value(s), fewer than l = 8" in impossible["reason"]

    @pytest.mark.servers
    def test_missing_and_skewed_values(self, tmp_path: Path) -> None:
        count = 40_000
        chosen = np.random.default_rng(5)
        table = pa.table(
            {
                "age": pa.array(chosen.gamma(9, 5, count).round(), mask=chosen.random(count) < 0.3),
                "height": pa.array(chosen.normal(170, 9, count), mask=chosen.random(count) < 0.1),
                "town": [f"t{at}" for at in np.minimum(chosen.geometric(0.2, count), 12)],
                "ill": np.minimum(chosen.geometric(0.5, count), 6),
            }
        )
        path = tmp_path / "rows.parquet"
        pq.write_table(table, path)
        names = ["age", "height", "town"]
        job = job_over(path, tmp_path, quasi_identifiers=names, sensitive=["ill"])
        grid = frontier.points([5, 10], [2])
        truth = frontier.trace(job, grid, rate=1.0)["points"]
        traced = frontier.trace(job, grid, rows=10_000)
        assert traced["drawn"]
        for point, true in zip(traced["points"], truth, strict=True):
            assert point["achieved"]["k"] >= point["k"]
            assert abs(point["GCP"] - true["GCP"]) <= 4 * point["GCP_error"]

    @pytest.mark.servers
    def test_other_algorithms_of_fragments_are_drawn_too(self, hands: Path, tmp_path: Path) -> None:
        job = job_over(hands, tmp_path, algorithm="di_mondrian", cut="auto")
        grid = frontier.points([10], [2])
        (true,) = frontier.trace(job, grid, rate=1.0)["points"]
        traced = frontier.trace(job, grid, rows=HANDS // 4)
        assert traced["drawn"]
        assert traced["points"][0]["GCP"] == pytest.approx(true["GCP"], rel=0.05)

    @pytest.mark.parametrize(
        "keys",
        [
            {"t": 0.6},
            {
                "algorithm": "samarati",
                "cut": "auto",
                "quasi_identifiers": ["r1=ladder:2/4/8", "r2=ladder:5"],
            },
        ],
    )
    def test_what_fragments_cannot_tell_is_measured_on_all_rows(
        self, hands: Path, tmp_path: Path, keys: dict[str, Any]
    ) -> None:
        job = job_over(hands, tmp_path, **keys)
        traced = frontier.trace(job, frontier.points([50], [1]), rows=HANDS // 4)
        assert (traced["measured"], traced["drawn"]) == (HANDS, 0)

    @pytest.mark.parametrize("error", [OSError("disk"), KeyboardInterrupt(), PrivacyError("k")])
    def test_nothing_stays_when_it_breaks_down(
        self, hands: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
    ) -> None:
        seen = []

        def break_down(*_arguments: object) -> None:
            seen.extend(tmp_path.iterdir())
            raise error

        monkeypatch.setattr(cluster_sampling, "_keep", break_down)
        with pytest.raises((OSError, KeyboardInterrupt, MondrianOpsError)):
            frontier.trace(job_over(hands, tmp_path), frontier.points([5], [1]), rows=HANDS // 4)
        assert len(seen) == 1
        assert seen[0].name.startswith(".release.mondrian_ops-")
        assert list(tmp_path.iterdir()) == []

    def test_the_drawn_rows_are_private(self, hands: Path, tmp_path: Path) -> None:
        job = job_over(hands, tmp_path)
        grid = frontier.points([5], [1])
        drawn = frontier.draw(job, grid, work=str(tmp_path / "work"), rows=HANDS // 4)
        assert (tmp_path / "work").stat().st_mode & 0o777 == 0o700
        kept = publish.WorkDir(str(tmp_path / "work")).read_json("drawn.json")
        assert len(kept) == drawn.drawn
        pipeline.discard(str(tmp_path / "work"))
