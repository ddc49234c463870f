"""What decides that nobody is released twice: a drop beside publications of every kind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mondrian_ops import catalogue, publish
from mondrian_ops.catalogue import secret_key
from mondrian_ops.errors import JobError, PrivacyError, StorageError
from mondrian_ops.job.job import Job
from mondrian_ops.pipeline import overlap_check
from people_runs import PeopleRun, publications

OWN = range(100)
OTHERS = range(100, 200)
HASHES = np.random.default_rng(1).integers(0, 1 << 63, 5_000).tolist()


class Case:
    """A drop that is compared with releases of others."""

    def __init__(self, here: Path) -> None:
        self.here = here
        self.run = PeopleRun(here, "own", OWN)
        self._others = 0

    def released(self, people: Any = OTHERS, **keys: Any) -> PeopleRun:
        """A release of others."""
        other = self.pending(people, **keys)
        other.publish()
        return other

    def pending(self, people: Any = OTHERS, **keys: Any) -> PeopleRun:
        """A run of others that was checked."""
        self._others += 1
        name = f"other{self._others}"
        return PeopleRun(self.here, name, people, **{"overlap": "warn", **keys})

    def refused(self, text: str) -> None:
        """Each of the three comparisons refuses the drop; the second one with its report."""
        with pytest.raises(PrivacyError, match=text):
            overlap_check.refuse(self.run.job, self.run.work)
        report: dict[str, Any] = {"notes": []}
        with pytest.raises(PrivacyError, match=text) as caught:
            overlap_check.note(self.run.job, self.run.work, report)
        assert caught.value.report is report
        before = len(publications())
        with pytest.raises(PrivacyError, match=text):
            self.run.publish()
        assert not self.run.is_published
        assert len(publications()) == before

    def notes(self) -> list[str]:
        """The notes of the report where the job only warns."""
        report: dict[str, Any] = {"notes": []}
        warned = PeopleRun(self.here, "warned", OWN, "warn")
        overlap_check.refuse(warned.job, warned.work)
        overlap_check.note(warned.job, warned.work, report)
        return report["notes"]


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


def test_others_are_in_nobodys_way(case):
    case.released()
    case.pending().intend()
    assert case.notes() == []
    overlap_check.refuse(case.run.job, case.run.work)
    case.run.publish()
    own = publications()[-1]
    assert own.published
    assert own.intention.token == publish.current_token(case.run.output)
    assert own.time > "2025"
    assert own.dataset == own.intention.output == case.run.output
    assert own.by == ["name"]


def test_one_person_who_was_released_is_one_too_many(case):
    case.released(range(99, 200))
    (other,) = publications()
    text = f"1.0 % of its people are in the release of {other.dataset} of {other.time[:10]}"
    case.refused(f"^overlap: the release is refused and not published: {text}.*overlap: warn$")
    assert len(case.notes()) == 1
    assert case.notes()[0].startswith(text)


def test_the_same_drop_comes_first_then_the_largest_share(case):
    for people in (range(40), range(50), OWN):
        case.released(people)
    (note,) = case.notes()
    assert note.startswith(f"the same drop was released as {case.here}/other3 on ")
    assert "(and in 2 more)" in note
    comparison = overlap_check._compared(case.run.job, case.run.work)
    assert [each.share for each in comparison.overlaps] == [1, 0.5, 0.4]
    assert [each.same for each in comparison.overlaps] == [True, False, False]


def test_an_estimate_is_told_with_twice_its_standard_error(case):
    case.run = PeopleRun(case.here, "many", HASHES)
    case.released([*HASHES[:2500], *range(2500)])
    comparison = overlap_check._compared(case.run.job, case.run.work)
    (overlap,) = comparison.overlaps
    assert 0.4 < overlap.share < 0.6
    error = f"{200 * overlap.error:.1f} %"
    ((text, _remedy),) = comparison.findings()
    assert f"{100 * overlap.share:.1f} % (± {error}) of its people" in text


def test_of_equal_shares_the_latest_comes_first(case, monkeypatch):
    for day in ("02", "03", "01"):
        monkeypatch.setattr(overlap_check, "now", lambda day=day: f"2025-01-{day}")
        case.released(range(50))
    comparison = overlap_check._compared(case.run.job, case.run.work)
    assert [each.time[-2:] for each in comparison.overlaps] == ["03", "02", "01"]


@pytest.mark.parametrize("by", ["", "zip"])  # before and after the drop's
def test_releases_by_other_columns_are_counted(case, by):
    case.released(OWN, by=by)
    case.released(OWN, by=by)
    overlap_check.refuse(case.run.job, case.run.work)
    (note,) = case.notes()
    assert note.startswith("2 release(s) in the catalogue tell people apart by other columns")


def test_releases_of_another_population_are_none_of_its_business(case):
    for population in ("patients", "staff", "visitors"):  # before and after the drop's
        case.released(OWN, population=population, overlap="refuse")
    assert case.notes() == []
    case.run = PeopleRun(case.here, "staff", OWN, population="staff")
    case.refused("the same drop")


def test_an_overlap_of_few_with_many_would_not_show(case):
    case.run = PeopleRun(case.here, "few", HASHES[:40])
    case.released(HASHES[40:])
    overlap_check.refuse(case.run.job, case.run.work)  # 33 of the 40 can be compared
    case.released(range(5000))
    case.refused(r"1 release\(s\) in the catalogue are so much larger.* a population of its own")


@pytest.mark.parametrize("people", [range(99, 120), range(5000, 10_000)])
def test_what_may_be_published_at_any_moment_holds_up_who_may_share_somebody(case, people):
    case.run = PeopleRun(case.here, "few", range(90, 100))
    other = case.pending(people)
    other.intend()
    overlap_check.refuse(case.run.job, case.run.work)  # it is not there yet
    for _ in range(2):
        with pytest.raises(OSError, match=f"^overlap: 1 other run.*files: {other.work.root}$"):
            case.run.publish()
        assert not case.run.is_published
        assert len(publications()) == 1
    other.work.remove()
    case.run.publish()
    assert case.run.is_published


def test_what_a_later_attempt_has_made_anew_is_not_in_the_way(case):
    other = case.pending(OWN)
    other.intend()
    other.work.create()
    case.run.publish()
    assert case.run.is_published


def test_nor_are_working_files_that_hold_no_release_any_more(case):
    other = case.pending(OWN)
    other.intend()
    Path(other.work.staging).rename(case.here / "withdrawn")
    case.run.publish()
    assert case.run.is_published


def test_whoever_only_warns_is_not_held_up(case):
    case.pending(OWN).intend()
    warned = PeopleRun(case.here, "warned", OWN, "warn")
    warned.publish()
    assert warned.is_published


def test_whoever_ignores_overlaps_is_not_recorded_and_needs_no_catalogue(case, monkeypatch):
    def unreachable() -> None:
        raise OSError("away")

    ignoring = PeopleRun(case.here, "ignoring", OWN, "ignore")
    with monkeypatch.context() as away:
        away.setattr(catalogue, "current", unreachable)
        ignoring.publish()
        overlap_check.confirm(ignoring.job, ignoring.work)
        assert overlap_check.key_of(ignoring.job) is None
    assert ignoring.is_published
    assert publications() == []


@pytest.mark.parametrize("overlap", ["warn", "refuse"])
def test_nobody_else_publishes_what_the_catalogue_does_not_know(case, monkeypatch, overlap):
    def unreachable(*_: object) -> None:
        raise OSError("away")

    run = PeopleRun(case.here, "unrecorded", OWN, overlap)
    assert catalogue.current().key
    monkeypatch.setattr(catalogue.Catalogue, "writing", unreachable)
    with pytest.raises(OSError, match="away"):
        run.publish()
    assert not run.is_published


def test_a_release_whose_publisher_was_killed_is_found(case):
    other = case.pending(OWN)
    other.intend()
    other.place()
    case.refused("same drop")
    (found,) = publications()
    assert found.published


def test_one_that_cannot_be_looked_for_counts(case):
    other = case.pending(OWN)
    other.output = "s3://no-connection@bucket/out"
    other.job = replace(other.job, output=other.output)
    other.intend()
    case.refused("same drop")


def test_a_release_noted_by_several_attempts_is_one(case):
    other = case.pending(OWN)
    other.intend()
    other.publish()
    assert len(publications()) == 2
    assert "more" not in case.notes()[0]


def test_a_run_is_not_in_its_own_way(case):
    case.run.intend()
    overlap_check.refuse(case.run.job, case.run.work)
    case.run.publish()
    assert case.run.is_published
    overlap_check.refuse(case.run.job, case.run.work)


def test_who_comes_while_the_comparison_reads_is_compared_too(case, monkeypatch):
    """Between the comparison and the intention another publishes; then it looks again."""
    others = [case.pending(people) for people in (OTHERS, range(99, 101))]
    read_on = overlap_check.Comparison.read_on

    def and_another(comparison):
        read_on(comparison)
        if others:
            others.pop(0).publish()

    monkeypatch.setattr(overlap_check.Comparison, "read_on", and_another)
    with pytest.raises(PrivacyError, match=r"1\.0 % of its people"):
        case.run.publish()
    assert not case.run.is_published


@pytest.mark.parametrize("fingerprint", ["", "~"])  # before and after any
def test_a_key_that_was_replaced_since_stops_the_publication(case, monkeypatch, fingerprint):
    monkeypatch.setattr(secret_key, "fingerprint", lambda _: fingerprint)
    with pytest.raises(StorageError, match="its key changed since this run began"):
        case.run.publish()
    assert not case.run.is_published
    assert publications() == []


@pytest.mark.parametrize("kind", [StorageError, OSError])
def test_nothing_is_left_where_the_release_is_refused_for_good(case, kind):
    with pytest.raises(kind, match="no"), overlap_check.recorded(case.run.job, case.run.work):
        (found,) = publications()
        assert not found.published
        raise kind("no")
    assert len(publications()) == (kind is OSError)  # a retry may publish it


def test_the_retry_of_a_publisher_that_was_killed_confirms_its_own_release(case):
    other = case.pending()
    other.intend()
    case.run.intend()
    overlap_check.confirm(case.run.job, case.run.work)
    assert [each.published for each in publications()] == [False, True]


def test_an_intention_names_its_output_wherever_it_is_looked_at_from(case, monkeypatch):
    monkeypatch.chdir(case.here)
    for own, name in ((PeopleRun(".", "relative", OTHERS), "relative"), (case.run, "own")):
        intention = own.intend()
        assert intention.output == f"{case.here}/{name}"
        assert intention.work.startswith(f"{case.here}/.{name}.")


@pytest.mark.parametrize(
    ("by_policy", "keys", "columns"),
    [
        ((), {}, ["age", "name", "zip"]),
        ((), {"identifiers": ["zip", "name"]}, ["name", "zip"]),
        ((), {"identifiers": ["name"], "entity_id": "zip"}, ["zip"]),
        (("ZIP", "Name"), {"identifiers": ["zip", "name"]}, ["name", "zip"]),
    ],
)
def test_a_policy_the_entity_the_identifiers_or_all_columns_tell_people_apart(
    monkeypatch, by_policy, keys, columns
):
    required = SimpleNamespace(people_by=by_policy)
    monkeypatch.setattr(overlap_check.publish, "required", lambda _job: required)
    job = Job.from_dict({"k": 2, "quasi_identifiers": ["age"], **keys}, paths_required=False)
    schema = pa.schema({"age": pa.int64(), "name": pa.string(), "zip": pa.string()})
    assert overlap_check._telling_apart(job, schema) == columns
    without = pa.schema({name: pa.list_(pa.int8()) for name in schema.names})
    remedy = "an administrator name others" if by_policy else "list one that has under identifiers"
    with pytest.raises(JobError, match=f"none of these columns has text.*{remedy}"):
        overlap_check._telling_apart(job, without)


def test_without_a_key_nobody_is_sketched():
    """Neither the rows nor the working files are read."""
    overlap_check.sketch(None, None, None)
