"""Which drops a run takes: late, growing, missing, redelivered, rejected, held and overdue ones."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Collection
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mondrian_ops.nightly.landing import read_landing
from mondrian_ops.nightly.night import Claim, Night, Request

DAY = date(2025, 6, 10)
ONE_DAY = timedelta(days=1)


class Nights:
    """A landing folder, its releases, and the runs of the nightly DAG as its database has them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.landing.mkdir()
        self.store: dict[str, str] = {}
        self.at_work: set[str] = set()
        self.rejected: set[tuple[str, int]] = set()
        self.published = 0
        self.series: set[str] = set()
        self.over: dict[str, str] = {}
        self.is_away = False

    def has(self, dataset: str) -> bool:
        return dataset in self.series

    def held(self, outputs: Collection[str]) -> dict[str, str]:
        if self.is_away:
            raise OSError("the database does not answer")
        return {output: self.over[output] for output in outputs if output in self.over}

    @property
    def landing(self) -> Path:
        return self.folder / "landing"

    def deliver(self, *names: str, content: str = "a\n1\n") -> None:
        """Files, or directories with their marker."""
        for name in names:
            path = self.landing / name
            if not path.suffix:
                path.mkdir(parents=True)
                (path / "part-0.csv").write_text(content)
                path /= "_SUCCESS"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)

    def publish(self, *names: str) -> None:
        self.published += 1
        for name in names:
            release = self.folder / "out" / name
            release.mkdir(parents=True, exist_ok=True)
            (release / "_SUCCESS").write_text("{}")
            created = f"2025-06-11T00:00:{self.published:02}+00:00"
            (release / "_report.json").write_text(json.dumps({"created": created}))

    def run(
        self,
        run_id: str = "a run",
        request: Request | None = None,
        last: date = DAY,
        publishes: bool = True,
        settle: float = 0,
    ) -> Night:
        """What a run finds; by default a night that looks back seven days, and publishes."""
        found = Night(
            request or Request(last - 6 * ONE_DAY, last),
            str(self.folder / "out"),
            KnownClaims(self, run_id),
            self,
            timedelta(minutes=settle),
        )
        found.sort_out(read_landing(str(self.landing)))
        if publishes:
            self.publish(*(drop.name for drop in found.taken))
        return found


class KnownClaims:
    """The claims of all runs, as one of them sees them."""

    def __init__(self, nights: Nights, run_id: str) -> None:
        self.nights, self.run_id = nights, run_id

    def of(self, dataset: str) -> dict[str, Claim]:
        kept = json.loads(self.nights.store.get(dataset, "{}"))
        return {day: Claim(*claim) for day, claim in kept.items()}

    def keep(self, dataset: str, claims: Any) -> None:
        self.nights.store[dataset] = json.dumps(claims)

    def is_at_work(self, claim: Claim) -> bool:
        return claim.run != self.run_id and claim.run in self.nights.at_work

    def is_rejected(self, claim: Claim) -> bool:
        return claim.run != self.run_id and (claim.run, claim.number) in self.nights.rejected


@pytest.fixture
def nights(tmp_path: Path) -> Nights:
    return Nights(tmp_path)


def taken(night: Night) -> list[str]:
    return [drop.name for drop in night.taken]


def named(night: Night, state: str) -> Collection[str]:
    return night.summary().get(state, [])


def test_every_drop_without_a_release_is_taken_the_oldest_first(nights: Nights) -> None:
    nights.deliver("people/2025-06-10.csv", "people/2025-06-08.csv", "stays/2025-06-09")
    assert taken(nights.run()) == ["people/2025-06-08", "stays/2025-06-09", "people/2025-06-10"]
    assert taken(nights.run("next", last=DAY + ONE_DAY)) == []


def test_a_drop_that_arrives_after_its_night_is_taken_by_the_next(nights: Nights) -> None:
    assert taken(nights.run()) == []
    nights.deliver("people/2025-06-10.csv")
    assert taken(nights.run("next", last=DAY + ONE_DAY)) == ["people/2025-06-10"]


def test_the_first_night_after_an_outage_takes_what_the_others_would_have(nights: Nights) -> None:
    nights.deliver(*(f"people/2025-06-{day:02}.csv" for day in (7, 8, 9, 10)))
    nights.run(last=date(2025, 6, 7))
    assert taken(nights.run("next")) == [f"people/2025-06-{day:02}" for day in (8, 9, 10)]


def test_a_growing_drop_is_left_to_a_later_night(nights: Nights) -> None:
    nights.deliver("people/2025-06-10.csv", "stays/2025-06-10")
    night = nights.run(settle=10)
    assert taken(night) == ["stays/2025-06-10"]
    assert named(night, "incomplete") == ["people/2025-06-10"]
    assert taken(nights.run("next", last=DAY + ONE_DAY)) == ["people/2025-06-10"]


def test_a_missing_drop_shows_and_is_no_error(nights: Nights) -> None:
    nights.deliver("people/2025-06-08.csv", "people/2025-06-10.csv", "new/2025-06-10.csv")
    night = nights.run()
    assert named(night, "missing") == ["people/2025-06-09"]
    (nights.landing / "people" / "2025-06-10.csv").unlink()  # as is good practice
    assert named(nights.run("again"), "missing") == ["people/2025-06-09"]


def test_a_drop_that_is_delivered_again_is_taken_again(nights: Nights) -> None:
    nights.deliver("people/2025-06-10.csv", "stays/2025-06-10", "other/2025-06-10.csv")
    nights.run()
    nights.deliver("people/2025-06-10.csv", content="a\n2\n3\n")
    (nights.landing / "stays" / "2025-06-10" / "part-1.csv").write_text("a\n4\n")
    night = nights.run("next", last=DAY + ONE_DAY)
    assert taken(night) == ["people/2025-06-10", "stays/2025-06-10"]
    assert "delivered again" in night.states["people/2025-06-10"][1]
    assert taken(nights.run("after", last=DAY + 2 * ONE_DAY)) == []


def test_a_late_redelivery_that_an_event_names_is_taken_though_its_claim_is_gone(
    nights: Nights,
) -> None:
    nights.deliver("people/2025-06-10.csv")
    nights.publish("people/2025-06-10")
    announced = Request(date.max, date.min, frozenset({"people/2025-06-10"}))
    assert taken(nights.run("event", announced)) == ["people/2025-06-10"]
    assert taken(nights.run("the event again", announced)) == []


def test_a_redelivery_whose_run_failed_is_tried_again_though_there_is_a_release(
    nights: Nights,
) -> None:
    nights.deliver("people/2025-06-10.csv")
    nights.run()
    nights.deliver("people/2025-06-10.csv", content="a\n2\n3\n")
    for run_id in ("fails", "fails too"):
        assert taken(nights.run(run_id, publishes=False)) == ["people/2025-06-10"]
    assert taken(nights.run("works")) == ["people/2025-06-10"]
    assert taken(nights.run("after")) == []


def test_a_release_that_no_run_claimed_stays(nights: Nights) -> None:
    """It was published by hand, or before there were claims."""
    nights.deliver("people/2025-06-10.csv")
    nights.publish("people/2025-06-10")
    assert taken(nights.run()) == []


@pytest.mark.parametrize("left", ["", "_SUCCESS", "_report.json"])
def test_a_folder_without_a_whole_release_is_no_release(nights: Nights, left: str) -> None:
    nights.deliver("people/2025-06-10.csv")
    nights.publish("people/2025-06-10")
    for name in {"_SUCCESS", "_report.json"} - {left}:
        (nights.folder / "out" / "people" / "2025-06-10" / name).unlink()
    assert taken(nights.run()) == ["people/2025-06-10"]


def test_a_failed_drop_is_tried_again_each_night(nights: Nights) -> None:
    nights.deliver("people/2025-06-10.csv")
    for run_id in ("one", "two", "three"):
        assert taken(nights.run(run_id, publishes=False)) == ["people/2025-06-10"]


# Runs that are at work


def test_a_release_that_waits_holds_its_own_dataset(nights: Nights) -> None:
    nights.deliver("people/2025-06-09.csv", "stays/2025-06-09.csv")
    nights.run("waits", last=DAY - ONE_DAY, publishes=False)
    nights.publish("stays/2025-06-09")
    nights.at_work.add("waits")
    nights.deliver("people/2025-06-10.csv")
    night = nights.run("next")
    assert named(night, "held") == ["people/2025-06-09", "people/2025-06-10"]
    assert "waits" in night.states["people/2025-06-10"][1]
    nights.publish("people/2025-06-09")
    nights.at_work.clear()
    assert taken(nights.run("after", last=DAY + ONE_DAY)) == ["people/2025-06-10"]


def test_a_run_at_work_on_a_redelivery_holds_its_dataset(nights: Nights) -> None:
    nights.deliver("people/2025-06-09.csv")
    nights.run("first", last=DAY - ONE_DAY)
    nights.deliver("people/2025-06-09.csv", "people/2025-06-10.csv", content="a\n2\n3\n")
    nights.run("works", last=DAY - ONE_DAY, publishes=False)
    nights.at_work.add("works")
    assert named(nights.run("next"), "held") == ["people/2025-06-09", "people/2025-06-10"]
    shutil.rmtree(nights.landing / "people")
    nights.deliver("people/2025-06-10.csv")
    assert named(nights.run("next"), "held") == ["people/2025-06-10"]


def test_a_run_that_was_killed_holds_nothing(nights: Nights) -> None:
    nights.deliver("people/2025-06-10.csv")
    nights.run("killed", publishes=False)
    nights.at_work.add("killed")
    assert taken(nights.run("next")) == []
    nights.at_work.clear()
    assert taken(nights.run("next")) == ["people/2025-06-10"]


def test_the_next_try_of_a_run_takes_what_it_had_taken(nights: Nights) -> None:
    nights.deliver("people/2025-06-10.csv")
    nights.at_work.add("a run")
    for _ in range(2):
        assert taken(nights.run(publishes=False)) == ["people/2025-06-10"]


def test_two_runs_at_once_never_take_the_same_drop(nights: Nights) -> None:
    nights.deliver("people/2025-06-10.csv", "stays/2025-06-10.csv")
    nights.at_work |= {"one", "two"}
    one = nights.run("one", publishes=False)
    two = nights.run("two", publishes=False)
    assert (len(taken(one)), taken(two)) == (2, [])


# Rejected releases


@pytest.fixture
def rejected(nights: Nights) -> Nights:
    """Of two drops that a run has taken, the second was rejected."""
    nights.deliver("people/2025-06-10.csv", "stays/2025-06-10.csv")
    nights.run("asked", publishes=False)
    nights.publish("people/2025-06-10")
    nights.rejected.add(("asked", 1))
    return nights


def test_a_rejected_drop_is_not_asked_about_again(rejected: Nights) -> None:
    for later in (1, 5, 50):
        night = rejected.run(f"night {later}", last=DAY + later * ONE_DAY)
        assert taken(night) == []
        assert named(night, "rejected") == ["stays/2025-06-10"]
        assert named(night, "overdue") == []


def test_a_rejected_drop_that_is_delivered_again_is_taken(rejected: Nights) -> None:
    rejected.deliver("stays/2025-06-10.csv", content="a\n2\n3\n")
    assert taken(rejected.run("next", last=DAY + ONE_DAY)) == ["stays/2025-06-10"]


def test_a_rejected_redelivery_is_not_asked_about_again(nights: Nights) -> None:
    nights.deliver("people/2025-06-10.csv")
    nights.run()
    nights.deliver("people/2025-06-10.csv", content="a\n2\n3\n")
    nights.run("asked", publishes=False)
    nights.rejected.add(("asked", 0))
    assert named(nights.run("next"), "rejected") == ["people/2025-06-10"]


# Drops that would be lost


def test_a_drop_without_a_release_that_leaves_the_look_back_is_overdue(nights: Nights) -> None:
    nights.deliver("people/2025-06-10.csv", "people/2025-01-01.csv")
    nights.run(publishes=False)
    nights.at_work.add("a run")
    later = [nights.run(f"{days}", last=DAY + days * ONE_DAY) for days in (6, 7)]
    assert [named(night, "overdue") for night in later] == [
        ["people/2025-01-01"],
        ["people/2025-01-01", "people/2025-06-10"],
    ]
    nights.at_work.clear()
    assert taken(nights.run("by hand", Request(DAY, DAY, is_explicit=True))) == [
        "people/2025-06-10"
    ]
    nights.publish("people/2025-01-01")
    assert named(nights.run("after", last=DAY + 8 * ONE_DAY), "overdue") == []


def test_what_looks_like_a_drop_and_cannot_be_taken_is_overdue(nights: Nights) -> None:
    nights.deliver("people/2025-06-10", "people/2025-06-10.csv", "s3:/2025-06-10.csv")
    assert named(nights.run(), "overdue") == ["'s3:'", "people/2025-06-10"]


def test_a_drop_of_the_future_waits_and_shows(nights: Nights) -> None:
    nights.deliver("people/2025-06-11.csv", "people/2052-06-10.csv")
    night = nights.run()
    assert taken(night) == []
    assert named(night, "dated in the future") == ["people/2052-06-10"]


def test_claims_do_not_grow_for_ever(nights: Nights) -> None:
    for days in range(20):
        nights.deliver(f"people/{DAY + days * ONE_DAY}.csv")
        nights.run(f"night {days}", last=DAY + days * ONE_DAY)
    assert len(json.loads(nights.store["people"])) == 7


# What a run is asked for


def run_of(run_type: str = "scheduled", start: date | None = DAY, days: int = 1) -> Any:
    """A DAG run as a task sees it; without a data interval it is due on the day after DAY."""

    def midnight(day: date) -> datetime:
        return datetime(day.year, day.month, day.day, tzinfo=UTC)

    return SimpleNamespace(
        run_type=run_type,
        data_interval_start=start and midnight(start),
        data_interval_end=start and midnight(start + days * ONE_DAY),
        run_after=midnight(DAY + ONE_DAY) + timedelta(hours=9),
    )


def test_a_night_looks_back_from_the_end_of_its_interval() -> None:
    assert Request.of(run_of(), None, [], 7) == Request(date(2025, 6, 4), DAY)
    assert Request.of(run_of("manual"), None, [], 1) == Request(DAY, DAY)
    assert Request.of(run_of(days=0), None, [], 1) == Request(DAY, DAY)
    assert Request.of(run_of(days=9), None, [], 2) == Request(DAY, date(2025, 6, 18))
    assert Request.of(run_of("manual", None), None, [], 2) == Request(
        date(2025, 6, 10), date(2025, 6, 11)
    )


def test_a_day_by_hand_and_a_backfill_ask_for_their_days() -> None:
    asked = Request.of(run_of("manual"), "2025-01-02", [], 7)
    assert asked == Request(date(2025, 1, 2), date(2025, 1, 2), is_explicit=True)
    assert Request.of(run_of("backfill"), None, [], 7) == Request(DAY, DAY, is_explicit=True)


def test_what_was_asked_for_is_taken_whatever_became_of_it(rejected: Nights) -> None:
    rejected.deliver("growing/2025-06-10.csv")
    night = rejected.run("by hand", Request(DAY, DAY, is_explicit=True), settle=10)
    assert taken(night) == ["growing/2025-06-10", "people/2025-06-10", "stays/2025-06-10"]
    assert night.summary().keys() == {"taken"}


def test_what_was_asked_for_is_not_taken_from_a_run_that_is_at_work_on_it(nights: Nights) -> None:
    nights.deliver("people/2025-06-09.csv", "people/2025-06-10.csv")
    nights.run("works", last=DAY - ONE_DAY, publishes=False)
    nights.at_work.add("works")
    night = nights.run("by hand", Request(DAY - ONE_DAY, DAY, is_explicit=True))
    assert taken(night) == ["people/2025-06-10"]
    assert named(night, "held") == ["people/2025-06-09"]


# Drops that events name


def announced(*extras: Any) -> Request:
    return Request.of(run_of("asset_triggered", None), None, extras, 7)


def test_events_name_the_drops_of_their_run(nights: Nights) -> None:
    nights.deliver("people/2025-06-11.csv", "stays/2025-01-01.csv", "other/2025-06-10.csv")
    request = announced({"drop": "people/2025-06-11"}, {"drop": "stays/2025-01-01", "more": 1})
    night = nights.run(request=request, settle=10)
    assert taken(night) == ["stays/2025-01-01", "people/2025-06-11"]
    assert night.summary().keys() == {"taken"}
    assert taken(nights.run("the same event again", request)) == []


@pytest.mark.parametrize("extra", [{}, None, {"drop": 5}, {"drop": [{}]}, "people/2025-06-09"])
def test_an_event_that_names_no_drop_starts_a_night(nights: Nights, extra: Any) -> None:
    nights.deliver("people/2025-06-09.csv", "stays/2025-01-01.csv")
    night = nights.run(request=announced(extra, {"drop": "stays/2025-01-01"}))
    assert taken(night) == ["stays/2025-01-01", "people/2025-06-09"]


@pytest.mark.parametrize(
    "name", ["../people/2025-06-09", "/etc/2025-06-09", "people/2025-06-09.csv", "a\nb", ""]
)
def test_a_name_in_an_event_is_no_path(nights: Nights, name: str) -> None:
    nights.deliver("people/2025-06-09.csv")
    night = nights.run(request=announced({"drop": name}))
    assert taken(night) == []
    assert night.summary() == {"missing": [ascii(name)]}


def test_an_announced_drop_waits_for_its_dataset(rejected: Nights) -> None:
    rejected.at_work.add("works")
    rejected.deliver("people/2025-06-09.csv")
    rejected.run("works", Request(DAY - ONE_DAY, DAY - ONE_DAY), publishes=False)
    rejected.deliver("people/2025-06-11.csv")
    request = announced({"drop": "people/2025-06-11"}, {"drop": "stays/2025-06-10"})
    night = rejected.run(request=request)
    assert night.summary() == {"held": ["people/2025-06-11"], "rejected": ["stays/2025-06-10"]}


def test_the_releases_of_others_cannot_stop_a_night(nights: Nights) -> None:
    nights.deliver("people/2025-06-10.csv", "stays/2025-06-10.csv")
    (nights.folder / "out").mkdir()
    (nights.folder / "out" / "people").write_text("a file")
    nights.publish("stays/2025-06-10")
    report = nights.folder / "out" / "stays" / "2025-06-10" / "_report.json"
    for content in ("[]", "no JSON", "[" * 10_000, '{"created": 5}'):
        report.write_text(content)
        assert "people/2025-06-10" in taken(nights.run(f"{content[:9]}", publishes=False))
    os.unlink(report)


@pytest.fixture
def series(nights: Nights) -> Nights:
    """Three drops of a series, and one of another dataset."""
    nights.series = {"people"}
    nights.deliver(*(f"people/2025-06-{day:02}.csv" for day in (8, 9, 10)), "stays/2025-06-09")
    return nights


def test_a_run_takes_one_drop_of_a_series_and_leaves_the_others_in_order(series: Nights) -> None:
    night = series.run()
    assert taken(night) == ["people/2025-06-08", "stays/2025-06-09"]
    left = named(night, "left")
    assert left == [drop.name for drop in night.left] == ["people/2025-06-09", "people/2025-06-10"]
    event = announced({"drops": left})
    followed = series.run("followed", event)
    assert (taken(followed), named(followed, "left")) == (left[:1], left[1:])
    assert taken(series.run("next")) == ["people/2025-06-10"]


def test_a_drop_of_a_series_is_over_with_a_night_that_published_nothing(series: Nights) -> None:
    series.run(publishes=False)
    output = str(series.folder / "out/people/2025-06-08")
    series.over[output] = "2025-06-11T00:00:01+00:00"
    night = series.run("next", last=date(2025, 6, 15))
    assert taken(night)[0] == "people/2025-06-09"
    assert "people/2025-06-08" not in night.states


def test_a_drop_of_a_series_that_is_delivered_again_is_not_taken_again(series: Nights) -> None:
    series.run()
    series.deliver("people/2025-06-08.csv", content="a\n2\n3\n")
    night = series.run("next")
    assert taken(night) == ["people/2025-06-09"]
    state, reason = night.states["people/2025-06-08"]
    assert state == "overdue"
    assert "drop of another day" in reason


def test_without_the_catalogue_only_series_wait(series: Nights) -> None:
    series.is_away = True
    night = series.run()
    assert taken(night) == ["stays/2025-06-09"]
    assert named(night, "overdue") == [f"people/2025-06-{day:02}" for day in (8, 9, 10)]
    assert "does not answer" in night.states["people/2025-06-08"][1]
    with pytest.raises(OSError, match="does not answer"):  # no later night would take it
        series.run("by hand", Request(date(2025, 6, 9), date(2025, 6, 9), is_explicit=True))
    series.is_away = False
    assert taken(series.run("next")) == ["people/2025-06-08"]


def test_what_was_asked_for_of_a_series_waits_for_the_run_at_work_on_it(series: Nights) -> None:
    series.run("at work", publishes=False)
    series.at_work.add("at work")
    asked = Request(date(2025, 6, 9), date(2025, 6, 9), is_explicit=True)
    night = series.run("by hand", asked)
    assert night.is_blocked
    assert taken(night) == []
    series.at_work.clear()
    night = series.run("by hand", asked)
    assert not night.is_blocked
    assert "people/2025-06-09" in taken(night)
