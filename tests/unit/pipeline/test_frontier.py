"""The grid of a frontier, and its points over all rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from frontier_jobs import small_job
from mondrian_ops import pipeline
from mondrian_ops.errors import JobError
from mondrian_ops.pipeline import frontier
from mondrian_ops.report import frontier_files, frontier_text
from people_runs import publications
from tiers import one_here, one_in

RECODED = {"cut": "auto", "quasi_identifiers": ["age=ladder:10/20", "town=prefix"]}

FIGURES = ("NCP", "GCP", "LM", "DP", "C_avg")


class TestGrid:
    def test_each_combination_once_in_order_and_l_of_one_asks_for_nothing(self) -> None:
        assert frontier.points([5, 2, 5.0], [2, 1]) == [
            {"k": 2, "l": None},
            {"k": 5, "l": None},
            {"k": 2, "l": 2},
            {"k": 5, "l": 2},
        ]

    @pytest.mark.parametrize(("ks", "ls"), [([], [1]), ([2], [])])
    def test_an_empty_grid_is_refused(self, ks: list[float], ls: list[float]) -> None:
        with pytest.raises(JobError, match="at least one k and one l"):
            frontier.points(ks, ls)

    def test_a_point_is_the_job_with_other_k_and_l(self, tmp_path: Path) -> None:
        job = small_job(tmp_path, l=2, diversity="recursive", c=3)
        strict = frontier.job_at(job, {"k": 7, "l": 3})
        assert (strict.k, strict.l, strict.diversity, strict.c) == (7, 3, "recursive", 3)
        assert strict.quasi_identifiers == job.quasi_identifiers
        loose = frontier.job_at(job, {"k": 7, "l": None})
        assert (loose.l, loose.diversity, loose.c) == (None, "distinct", None)
        apart = small_job(tmp_path, l=2, l_width={"illness": "5"})
        assert frontier.job_at(apart, {"k": 7, "l": 3}).l_width == {"illness": "5"}
        assert frontier.job_at(apart, {"k": 7, "l": None}).l_width == {}

    @pytest.mark.parametrize("point", [{"k": 1, "l": None}, {"k": 2, "l": 0.5}, {"k": 2.5, "l": 2}])
    def test_a_point_that_makes_no_sense_ends_it_before_any_work(
        self, tmp_path: Path, point: dict[str, Any]
    ) -> None:
        job = small_job(tmp_path)
        before = sorted(tmp_path.iterdir())
        with pytest.raises(JobError, match=f"k = {point['k']}, l = {point['l'] or 1}"):
            frontier.trace(job, [{"k": 2, "l": None}, point])
        assert sorted(tmp_path.iterdir()) == before

    def test_l_needs_sensitive_columns(self, tmp_path: Path) -> None:
        with pytest.raises(JobError, match="l: needs sensitive"):
            frontier.trace(small_job(tmp_path, sensitive=[]), frontier.points([2], [2]))


class TestAllRows:
    @pytest.mark.parametrize(
        "keys",
        one_here(
            one_in(
                2,
                [
                    {},
                    {"t": 0.5},
                    {"interval_style": "bounds"},
                    {"algorithm": "di_mondrian", "cut": "auto"},
                    {"algorithm": "samarati", **RECODED},
                    {"algorithm": "samarati", "samarati": {"max_suppressed": 20}, **RECODED},
                    {"algorithm": "tds", **RECODED},
                ],
            ),
            of=2,
        ),
    )
    def test_a_point_has_the_figures_of_a_run(self, tmp_path: Path, keys: dict[str, Any]) -> None:
        job = small_job(tmp_path, **keys)
        traced = frontier.trace(job, frontier.points([2, 9], [1, 2]))
        assert traced["measured"] == traced["rows"] == 300
        for point in traced["points"]:
            report = pipeline.run(replace(job, k=point["k"], l=point["l"], replace="any"))
            assert [point[each] for each in FIGURES] == [
                report["metrics"][each] for each in FIGURES
            ]
            assert point["achieved"] == report["achieved"]
            assert point["equivalence_classes"] == report["equivalence_classes"]
            assert point["risk_max"] == report["risk"]["prosecutor_max"]
            assert point["risk_avg"] == report["risk"]["prosecutor_avg"]
            assert point["query_error"] == report["use"]["query_error"]["median"]
            assert point["rows"] == report["rows"]["published"]
            assert point["suppressed"] == report["rows"]["suppressed"]

    def test_points_that_cannot_be_had_say_why_and_leave_the_others_alone(
        self, tmp_path: Path
    ) -> None:
        traced = frontier.trace(small_job(tmp_path), frontier.points([5, 301], [1, 2, 9]))
        reasons = {(p["k"], p["l"]): p.get("reason", "") for p in traced["points"]}
        assert reasons[5, None] == reasons[5, 2] == ""
        assert "fewer than k = 301" in reasons[301, None]
        assert "distinct value(s), fewer than l = 9" in reasons[5, 9]
        assert len(reasons) == 6

    def test_nothing_is_published_and_nothing_stays(self, tmp_path: Path) -> None:
        job = small_job(tmp_path)
        before = sorted(tmp_path.iterdir())
        frontier.trace(job, frontier.points([2, 301], [1]))
        assert sorted(tmp_path.iterdir()) == before

    def test_an_earlier_release_stays_as_it_is(self, tmp_path: Path) -> None:
        job = small_job(tmp_path)
        pipeline.run(job)
        before = {path: path.read_bytes() for path in (tmp_path / "release").iterdir()}
        frontier.trace(job, frontier.points([3], [1]))
        assert {path: path.read_bytes() for path in (tmp_path / "release").iterdir()} == before

    def test_no_point_is_recorded_and_none_keeps_the_release_out(self, tmp_path: Path) -> None:
        job = small_job(tmp_path, overlap="refuse")
        traced = frontier.trace(job, frontier.points([2, 5], [1]))
        assert not any("reason" in point for point in traced["points"])
        assert publications() == []
        assert pipeline.run(job)["overlap"]["releases"] == []
        frontier.trace(job, frontier.points([2], [1]))
        assert len(publications()) == 1

    @pytest.mark.parametrize(
        "keys",
        one_in(
            2,
            [
                {"require_approval": True},
                {"max_gcp": 0, "max_risk": 0},
                {"max_gcp": 0, "on_exceeded": "ask"},
                {"algorithm": "samarati", **RECODED, "samarati": {"max_suppressed": 20}}
                | {"max_suppressed": 0, "max_gcp": 0},
            ],
        ),
    )
    def test_what_would_be_refused_or_asked_about_is_shown_too(
        self, tmp_path: Path, keys: dict[str, Any]
    ) -> None:
        traced = frontier.trace(small_job(tmp_path, **keys), frontier.points([2, 9], [1]))
        assert [point["GCP"] > 0 for point in traced["points"]] == [True, True]

    def test_no_value_of_a_person_is_in_any_output(self, tmp_path: Path) -> None:
        job = small_job(tmp_path)
        traced = frontier.trace(job, frontier.points([2, 301], [1, 2]))
        files = frontier_files(traced)
        text = frontier_text(traced) + b"".join(files.values()).decode() + str(traced)
        assert "Secret" not in text.replace(str(tmp_path), "")
