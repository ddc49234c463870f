"""Limits and approvals as such, at their edges; whole runs with them are in test_approval."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from mondrian_ops import publish
from mondrian_ops import report as reports
from mondrian_ops.errors import ApprovalError, PrivacyError
from mondrian_ops.job.job import Job
from mondrian_ops.job.policy import Required
from mondrian_ops.pipeline.approval import (
    Approval,
    approver,
    asks,
    exceeded,
    hold,
    judge,
    refusal_reported,
    refuse_without_users,
    rejected,
)

LIMITS = {"max_gcp": 0.2, "max_risk": 0.25, "max_query_error": 0.1, "max_suppressed": 0.01}


def a_job(**keys: Any) -> Job:
    return Job.from_dict({"k": 3, "quasi_identifiers": ["age"], **keys}, paths_required=False)


def a_report(
    gcp: float = 0.2, risk: float = 0.25, suppressed: int = 20, error: float = 0.1
) -> dict[str, Any]:
    return {
        "rows": {"input": 2000, "published": 2000 - suppressed, "suppressed": suppressed},
        "metrics": {"GCP": gcp},
        "risk": {"prosecutor_max": risk},
        "use": {"rows": 2000, "query_error": {"median": error}},
        "notes": ["a note"],
    }


@pytest.mark.parametrize("use", [{}, {"rows": 12, "query_error": None}])
def test_an_error_that_was_not_measured_is_beyond_any_limit(use):
    report = {**a_report(), "use": use}
    assert exceeded(a_job(max_gcp=0.2), report) == {}
    found = exceeded(a_job(max_query_error=9), report)
    assert found == {
        "max_query_error": "max_query_error: no error was measured, for the release has too few "
        "rows to count"
    }


def test_a_limit_that_is_reached_is_not_exceeded():
    assert exceeded(a_job(**LIMITS), a_report()) == {}
    assert exceeded(a_job(**LIMITS), a_report(0.1, 0.1, 10)) == {}
    assert exceeded(a_job(max_suppressed=20), a_report()) == {}
    assert exceeded(a_job(), a_report(1, 1, 2000)) == {}
    report = a_report()
    judge(a_job(**LIMITS), report)
    assert report == a_report()


@pytest.mark.parametrize(
    ("option", "reached", "text", "remedy"),
    [
        (
            "max_gcp",
            {"gcp": 0.2001},
            "max_gcp: GCP, the share of information lost, is 0.2001 (20.0 %), above the "
            "limit of 0.2 (20.0 %)",
            "lower k or l, generalize fewer columns, or raise max_gcp",
        ),
        (
            "max_risk",
            {"risk": 0.5},
            "max_risk: the highest risk of re-identification is 0.5 (50.0 %), above the limit of "
            "0.25 (25.0 %)",
            "raise k, or raise max_risk",
        ),
        (
            "max_query_error",
            {"error": 0.101},
            "max_query_error: the median error of random counts is 0.101 (10.1 %), above the limit "
            "of 0.1 (10.0 %)",
            "lower k or l, generalize fewer columns, or raise max_query_error",
        ),
        (
            "max_suppressed",
            {"suppressed": 21},
            "max_suppressed: 21 of 2,000 rows are suppressed, and at most 20 may be",
            "lower samarati.max_suppressed or k, or raise max_suppressed",
        ),
    ],
)
def test_each_limit_is_exceeded_by_itself(option, reached, text, remedy):
    report = a_report(**reached)
    for limits in (LIMITS, {option: LIMITS[option]}):
        assert exceeded(a_job(**limits), report) == {option: text}
        with pytest.raises(PrivacyError) as caught:
            judge(a_job(**limits), report)
        assert str(caught.value) == (
            f"the release is refused and not published: {text}; {remedy}; or set on_exceeded: ask"
        )
        assert caught.value.report is report
        assert report == a_report(**reached)  # whoever catches it says that it is refused
        asking = a_job(**limits, on_exceeded="ask")
        assert asks(asking, report)
        noted = a_report(**reached)
        rows = noted["rows"]
        judge(asking, noted)
        assert noted["notes"] == ["a note", text]
        assert noted["outcome"] | {"at": ""} == {"state": "waiting", "reason": text, "at": ""}
        assert (noted["rows"]["published"], noted["rows"]["checked"]) == (0, rows["published"])


def test_all_that_is_exceeded_is_told():
    report = a_report(0.3, 0.3, 30, 0.3)
    assert list(exceeded(a_job(**LIMITS), report)) == list(LIMITS)
    with pytest.raises(PrivacyError) as caught:
        judge(a_job(**LIMITS), report)
    assert all(f"raise {option}" in str(caught.value) for option in LIMITS)


def test_who_wants_to_be_asked_is_asked_whatever_is_exceeded():
    job = a_job(require_approval=True)
    assert asks(job, a_report())
    report = a_report()
    judge(job, report)
    assert report["outcome"]["reason"] == "require_approval is set"
    assert reports.undecided(report) == a_report()
    with pytest.raises(PrivacyError):  # to be asked is not to lift a limit
        judge(a_job(require_approval=True, **LIMITS), a_report(gcp=0.3))
    assert not asks(a_job(**LIMITS, on_exceeded="ask"), a_report())


@pytest.mark.parametrize(
    ("robust", "text"),
    [
        (0.31, "max_gcp: GCP_robust, the share of information lost by spans without extreme values,"
         " is 0.31 (31.0 %), above the limit of 0.2 (20.0 %)"),
        *((each, "max_gcp: GCP, the share of information lost, is 0.3 (30.0 %), above the limit of "
           "0.2 (20.0 %)") for each in (0.3, 0.1, 0.0, None)),
    ],
)  # fmt: skip
def test_the_greater_of_two_losses_counts(robust, text):
    report = a_report(gcp=0.3)
    report["metrics"]["GCP_robust"] = robust
    assert exceeded(a_job(max_gcp=0.2), report) == {"max_gcp": text}
    report["metrics"]["GCP"] = 0.2
    assert bool(exceeded(a_job(max_gcp=0.2), report)) == (robust in (0.31, 0.3))


def test_a_night_that_publishes_nothing_asks_nobody():
    report = a_report()
    hold(report, "")
    assert report["outcome"]["reason"].startswith("every class would lose more than series.hold_")
    assert not asks(a_job(require_approval=True), report)
    hold(report, "a reason")
    assert (report["outcome"]["state"], report["outcome"]["reason"]) == ("held", "a reason")


def test_the_policies_that_want_an_approval_are_named():
    report = a_report()
    judge(a_job(require_approval=True), report, ["patients", "staff"])
    assert report["outcome"]["reason"] == "required by patients, staff"
    report = a_report(risk=0.5)
    job = a_job(require_approval=True, max_risk=0.25, on_exceeded="ask")
    judge(job, report, ["patients"])
    assert report["outcome"]["reason"].startswith("max_risk: ")


def test_somebody_is_asked_only_where_it_is_needed():
    def approve(report):
        return f"ada of {report['rows']['input']}"

    needed = a_job(require_approval=True)
    assert approver(needed, a_report(), approve) == "ada of 2000"
    assert approver(needed, a_report(), None) is None
    assert approver(a_job(), a_report(), approve) is None
    report = a_report()
    error = rejected(report, "nobody is there")
    assert (str(error), error.report) == ("nobody is there", report)
    assert report["outcome"] | {"at": ""} == {
        "state": "rejected", "reason": "nobody approved it", "at": "",
    }  # fmt: skip


def test_a_refusal_carries_the_report_that_says_so():
    report = a_report()
    with pytest.raises(PrivacyError) as caught, refusal_reported(report):
        raise PrivacyError("k: two rows")
    assert caught.value.report is report
    assert (report["outcome"]["state"], report["outcome"]["reason"]) == ("refused", "k: two rows")
    with refusal_reported(unchanged := a_report()):
        pass
    assert unchanged == a_report()


@pytest.mark.parametrize("required", [{"four_eyes": True}, {"approvers": {"1": "ada"}}])
def test_without_airflow_nobody_approves_for_those_whom_a_policy_names(monkeypatch, required):
    names = Required(policies=("a", "b"), **required)
    monkeypatch.setattr(publish, "required", lambda job, work: names)
    with pytest.raises(ApprovalError, match=r"^approval: the policies 'a', 'b' say .* in Airflow$"):
        refuse_without_users(a_job(require_approval=True))
    refuse_without_users(a_job())  # nobody is asked
    monkeypatch.setattr(publish, "required", lambda job, work: Required(policies=("a",)))
    refuse_without_users(a_job(require_approval=True))


def test_an_approval_is_told_with_its_time():
    assert Approval("a seal", "jane", "then", "why").decision == {
        "decision": "approved",
        "decided_by": "jane",
        "decided_at": "then",
        "decision_reason": "why",
    }
    before = datetime.now(UTC).replace(microsecond=0)
    for at in (reports.now(), Approval("a seal", "jane").decision["decided_at"]):
        assert before <= datetime.fromisoformat(at) <= datetime.now(UTC)
        assert at.endswith("+00:00")
        assert "." not in at
