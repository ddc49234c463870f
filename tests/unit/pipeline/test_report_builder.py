"""What a report counts: the rows that are published, left out and waiting, and the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from mondrian_ops import report as reports
from mondrian_ops.engines.handover import Summary
from mondrian_ops.engines.release_check import Counted
from mondrian_ops.pipeline import report_builder
from mondrian_ops.pipeline.report_builder import Measured, is_held
from mondrian_ops.verify.counts import PartCount
from mondrian_ops.verify.loss import nothing_lost
from mondrian_ops.verify.requirements import Verdict


def summary(number: int, **keys: Any) -> Summary:
    return Summary(number, "", "", 10, keys.pop("suppressed", 0), 9, 900, 1.0, 1.0, **keys)


def measured(
    rows: int,
    *summaries: Summary,
    failures: Sequence[str] = (),
    lacking: Sequence[str] = (),
    **keys: Any,
) -> Measured:
    """Of a release of some rows; each part loses 1.5 in age and 0.5 in zip."""
    verdict = Verdict(not failures, {"k": 5}, ("k",), tuple(failures))
    count: Any = SimpleNamespace(rows=rows)
    state: Any = SimpleNamespace(generalizations={"age": "interval", "zip": "prefix"})
    lost = {"age": {**nothing_lost(), "NCP": 1.5}, "zip": {**nothing_lost(), "NCP": 0.5}}
    losses = {name: lost[name] for name in lost if name not in lacking}
    parts = [PartCount(3, 2, 50, losses) for _ in summaries]
    counted = Counted(count, parts, verdict)
    return Measured(state=state, summaries=summaries, counted=counted, wrap_up_s=1.0, **keys)


def test_rows_that_are_made_up_are_none_that_are_published() -> None:
    of_night = measured(
        20,
        summary(0, suppressed=2, counterfeits=3),
        summary(1, suppressed=1, counterfeits=1),
        waiting=((1, 4), (2, 3)),
    )
    assert (of_night.published, of_night.suppressed, of_night.held) == (16, 3, 7)


def test_a_release_with_any_failure_does_not_pass() -> None:
    fine = measured(20, summary(0))
    assert fine.failing([]).counted.verdict.passed
    found = fine.failing(["one"]).failing([]).failing(["two"])
    verdict = found.counted.verdict
    assert (verdict.passed, verdict.failures) == (False, ("one", "two"))
    assert (verdict.achieved, found.published) == ({"k": 5}, 20)
    assert not measured(20, summary(0), failures=["one"]).failing([]).counted.verdict.passed


def test_a_summary_has_the_classes_and_the_loss_of_its_part_as_written() -> None:
    one, other = measured(20, summary(0), summary(1)).recounted()
    assert (one.id, one.equivalence_classes, one.DP) == (0, 2, 50)
    assert (one.NCP, other.NCP) == (2.0, 2.0)
    assert one.attributes["age"]["NCP"] == 1.5
    (lacking,) = measured(20, summary(0), lacking=["zip"]).recounted()  # it was not measured
    assert lacking.attributes["zip"] == nothing_lost()
    assert lacking.NCP == 1.5


@pytest.mark.parametrize(
    ("waited", "waiting", "shown"),
    [
        ((), (), {"input": 12, "waited": 0, "waiting": 0}),
        (((1, 7), (2, 1)), ((2, 6),), {"input": 10, "waited": 8, "waiting": 6}),
        (((1, 1),), ((2, 2),), {"input": 12, "waited": 0, "waiting": 0}),  # of fewer than k rows
        (((1, 3),), (), {"input": 7, "waited": 5, "waiting": 0}),
        (((1, 99),), (), {"input": 0, "waited": 99, "waiting": 0}),
    ],
)
def test_rows_that_wait_are_shown_from_k_on(
    waited: Sequence[Any], waiting: Sequence[Any], shown: dict[str, int]
) -> None:
    """The rows that came are what the others leave, so that these tell no smaller number."""
    night: Any = SimpleNamespace(waited=waited)
    rows = {"input": 4711, "published": 10, "suppressed": 2}
    assert report_builder._of_night(rows, night, waiting, 5) == {**rows, **shown}


@pytest.mark.parametrize("state", ["published", "held", "refused", ""])
def test_a_night_is_held_where_its_report_says_so(state: str) -> None:
    assert is_held(reports.conclude({}, state)) is (state == "held")
