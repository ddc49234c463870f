"""Each step of Spark's executors is disturbed at each kind of its points, in their own processes.

Spark does the task again, or gives the run up with an error that a retry cures; what then stands is
exactly the release of an undisturbed run, and until then it is the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import zip_longest

import pytest

from engines.executors import unfinished
from faults.injection import STOPS, faults_at
from faults.mailbox import Mailbox, Passed
from faults.spark_harness import SparkHarness
from mondrian_ops.engines.spark import SparkEngine, session_of
from servers.processes import wait_until
from servers.spark import SparkCluster

pytestmark = pytest.mark.java

STEPS = {
    "scatter": ("profile", "draft", "scatter", "total", "anonymize"),
    "shuffle": ("profile", "draft", "count", "total", "route", "release"),
    "pushdown": ("anonymize",),
    "tds": ("draft", "specialize", "recode", "anonymize"),
    "samarati": ("draft", "recode", "anonymize"),
}
"""The steps of each run that are disturbed; those of others are as in one that is named before."""

OF_THEIR_OWN = ("scatter", "shuffle", "pushdown", "tds")
"""Runs that come by kinds of points which no run before them does."""

Harnesses = Callable[[str], SparkHarness]
Case = tuple[Passed, str]


@pytest.fixture(scope="module")
def harness(fragile_cluster: SparkCluster, mailbox: Mailbox) -> Iterator[Harnesses]:
    """The harness of a name."""
    session = session_of(fragile_cluster.remote)
    engine = SparkEngine(session, split_rows=150)
    yield cache(lambda name: SparkHarness(mailbox, engine, name))
    session.stop()


def kinds(harness: SparkHarness, step: str) -> list[Passed]:
    """Of each operation on each kind of file the last call in a step."""
    last: dict[str, Passed] = {}
    for passed in harness.passed:
        if passed.step == step:
            last[passed.point.rpartition(" ")[0]] = passed
    assert last, f"{step} came by no point"
    return list(last.values())


def own_kinds(harness: Harnesses, name: str, step: str) -> list[Passed]:
    """Those of `kinds` that no run has in this step that is named before."""
    before = list(STEPS)[: list(STEPS).index(name)]
    known = {
        passed.point.rpartition(" ")[0]
        for other in before
        if step in STEPS[other]
        for passed in kinds(harness(other), step)
    }
    found = kinds(harness(name), step)
    return [each for each in found if each.point.rpartition(" ")[0] not in known]


def work(harness: SparkHarness, step: str) -> Passed:
    """The point that tells a step best: its last write, or else what it reads."""
    found = kinds(harness, step)
    writes = [each for each in found if each.point.startswith("write")]
    return [*found, *writes][-1]


def check_made_good(harness: SparkHarness, cases: Sequence[Case]) -> None:
    disturbed = harness.disturb(cases)
    assert not disturbed.given_up, f"Spark gave up on {cases}"
    assert disturbed.struck == (1,) * len(cases), f"not reached: {cases}"


@pytest.mark.parametrize("kind", ["killed after", pytest.param("ENOSPC", marks=pytest.mark.soak)])
@pytest.mark.parametrize(
    "name",
    [
        "scatter",
        *(
            pytest.param(name, marks=pytest.mark.soak)
            for name in ("shuffle", "pushdown", "tds", "samarati")
        ),
    ],
)
def test_every_step_disturbed_once_is_made_good(harness: Harnesses, name: str, kind: str) -> None:
    found = harness(name)
    check_made_good(found, [(work(found, step), kind) for step in STEPS[name]])


@pytest.mark.soak
@pytest.mark.parametrize("name", OF_THEIR_OWN)
def test_every_step_disturbed_at_each_kind_of_point_is_made_good(
    harness: Harnesses, name: str
) -> None:
    """A run disturbs each of its steps once: they come one after the other."""
    found = harness(name)
    by_step = [
        [
            (passed, kind)
            for passed in own_kinds(harness, name, step)
            for kind in faults_at(passed.point)
            if kind not in STOPS
        ]
        for step in STEPS[name]
    ]
    assert any(by_step)
    wrong = []
    for cases in zip_longest(*by_step):
        chosen = [case for case in cases if case is not None]
        try:
            check_made_good(found, chosen)
        except Exception as error:
            wrong.append(f"{chosen}: {error!r}")
    count = sum(len(cases) for cases in by_step)
    assert not wrong, f"{len(wrong)} runs of {count} cases:\n" + "\n".join(wrong)


GIVEN_UP = [
    ("scatter", "draft"),
    *(
        pytest.param(name, step, marks=pytest.mark.soak)
        for name, step in (
            ("scatter", "profile"),
            ("scatter", "scatter"),
            ("scatter", "anonymize"),
            ("shuffle", "route"),
            ("shuffle", "release"),
            ("tds", "recode"),
        )
    ),
]


@pytest.mark.parametrize(("name", "step"), GIVEN_UP)
def test_what_spark_gives_up_a_retry_cures(harness: Harnesses, name: str, step: str) -> None:
    """The step fails each time: the old release stands, and a run without the fault replaces it."""
    found = harness(name)
    disturbed = found.disturb([(work(found, step), "EIO")], once=False)
    assert disturbed.given_up
    assert sum(disturbed.struck) >= 1


@pytest.mark.soak
@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("scatter", "draft"),
        ("scatter", "scatter"),
        ("scatter", "anonymize"),
        ("shuffle", "route"),
        ("shuffle", "release"),
    ],
)
def test_a_worker_that_stops_is_overtaken(harness: Harnesses, name: str, step: str) -> None:
    """Spark begins its task anew beside it; what it does when it goes on changes nothing."""
    found = harness(name)
    check_made_good(found, [(work(found, step), "stopped")])


@pytest.mark.soak
@pytest.mark.parametrize("point", ["create fragment 1", "write fragment 1", "rename fragment 1"])
def test_workers_that_outlive_their_driver_change_nothing(
    harness: Harnesses, fragile_cluster: SparkCluster, point: str
) -> None:
    """They find that the working files belong to a later attempt, and leave nothing there."""
    found = harness("scatter")
    before = unfinished(fragile_cluster)

    def quiet() -> None:
        wait_until(lambda: not unfinished(fragile_cluster) - before)

    found.outlive(Passed("scatter", point), fragile_cluster.remote, quiet)
