"""Phase three: check the release as written, then publish it, ask for an approval, or refuse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, AssetAlias
from airflow.sdk.exceptions import AirflowSkipException

from mondrian_ops.errors import MondrianOpsError, StorageError
from mondrian_ops.lean_imports import import_lean
from mondrian_ops.operators import approval, questions
from mondrian_ops.operators.anonymize_fragment import SUMMARIES
from mondrian_ops.operators.base import (
    MondrianOperator,
    final_errors,
    is_trial,
    release_name,
    work_of_run,
)
from mondrian_ops.operators.metrics import count_release, send_figures
from mondrian_ops.operators.notify import (
    Notifiers,
    OneOrMore,
    failure_recorded,
    notify,
    refusal_notified,
)
from mondrian_ops.operators.release_link import ReleaseLink
from mondrian_ops.operators.release_records import ended, record, recorded_state, release_url
from mondrian_ops.operators.released import released
from mondrian_ops.progress import Lines
from mondrian_ops.stores.dataset_name import dates_in

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from airflow.sdk import Context

    from mondrian_ops import pipeline
    from mondrian_ops.catalogue.approvals import Asked
    from mondrian_ops.engines.handover import Summary
    from mondrian_ops.job.job import Job


class WrapUpOperator(MondrianOperator):
    """Verify the files as written and publish them as a whole, or refuse and publish nothing.

    A release that needs an approval (``require_approval``, or a limit with ``on_exceeded: ask``)
    waits in the state ``awaiting_input`` until somebody approves or rejects it under *Required
    Actions*; if nobody does in time, it is rejected. A rejected release is discarded: this task and
    all tasks that follow it are skipped, whatever their trigger rules.

    Each Asset among the outlets gets an event with the summary; each AssetAlias also gets the
    release itself as an Asset, whose URI is that of the output.

    :param summaries: what the :class:`AnonymizeFragmentOperator` tasks returned (templated); those
        of other releases are ignored.
    :param by_night: the event of an Asset has the last date in the output as its partition. Airflow
        then starts only DAGs whose schedule is partitioned.
    :param stewards: ids of the users who may approve; by default every user who may answer in
        Airflow.
    :param on_refusal: notifiers to call when a release is refused, rejected or not approved in
        time; see :mod:`mondrian_ops.notifications`.
    :param on_waiting: notifiers to call when a release waits for an approval.
    """

    template_fields: Sequence[str] = (*MondrianOperator.template_fields, "summaries")
    operator_extra_links = (ReleaseLink(),)
    ends_run = True
    inherits_from_skipmixin = True  # a task that it has skipped stays so when it is cleared

    release_url = ""
    """The page of the release, once there is something to show."""

    _report: dict[str, Any] | None = None

    def __init__(
        self,
        *,
        summaries: Any,
        by_night: bool = False,
        stewards: Sequence[str] = (),
        on_refusal: OneOrMore = (),
        on_waiting: OneOrMore = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.summaries = summaries
        self.by_night = by_night
        self.stewards = stewards
        self.on_refusal = Notifiers.of(on_refusal)
        self.on_waiting = Notifiers.of(on_waiting)

    def execute(self, context: Context) -> dict[str, Any]:
        """Publish the release, or ask for an approval; return a summary."""
        import_lean()
        from mondrian_ops import pipeline

        summaries = self.summaries[:]  # one request for all of them
        if not is_trial():
            with final_errors():
                works = {item["work"] for item in summaries}
                earlier = approval.earlier_decision(context, works)
            if earlier is not None:
                return self._carry_out(*earlier, context)
        with final_errors(), failure_recorded(self, context):
            work = work_of_run(self, context)
            report = released(self, context, work)
            if report is not None:
                return self._again(report, context)
            job = self.job_of_run(context, work)
            own = self._own(summaries, work)
            if is_trial():
                return self._tried(job, work, own, context)
            with refusal_notified(self, context, job):
                report = pipeline.published_once(
                    job, work, lambda: self._published(job, work, own, context)
                )
        return self._concluded(job, report, context)

    def _published(
        self, job: Job, work: str, summaries: list[Summary], context: Context
    ) -> dict[str, Any]:
        """Check and publish; return the report. A release that needs approval ends the task."""
        from mondrian_ops import pipeline

        checked = self._checked(job, work, summaries, context)
        if pipeline.asks(job, checked.report):
            parked = approval.Parked.of(job, work, checked.seal, context)
            self._ask(job, parked, checked.report, context)
            approval.park(job, context, resume=self.decided.__name__, parked=parked)
        return pipeline.publish(job, work=work, progress=Lines(self.log.info))

    def _checked(
        self, job: Job, work: str, summaries: list[Summary], context: Context
    ) -> pipeline.Checked:
        from mondrian_ops import pipeline

        progress = Lines(self.log.info)
        with self.working(job, context) as engine:
            return pipeline.check(
                job, work=work, summaries=summaries, progress=progress, engine=engine
            )

    def _tried(
        self, job: Job, work: str, summaries: list[Summary], context: Context
    ) -> dict[str, Any]:
        """Check the release for ``airflow tasks test``, and leave it unpublished."""
        from mondrian_ops import stores
        from mondrian_ops.report import render_text

        self.outlets = []
        report = self._checked(job, work, summaries, context).report
        self.log.warning(
            "airflow tasks test publishes nothing, asks nobody and records nothing: the release "
            "passes its check\n%s",
            render_text(report, 100),
        )
        return _summary(stores.shown(str(job.output)), report)

    def _again(self, report: dict[str, Any], context: Context) -> dict[str, Any]:
        """Announce a release that was published before this task was cleared; its summary."""
        from mondrian_ops import stores
        from mondrian_ops.job.job import Job

        self.release_url = release_url(context)
        if recorded_state(context).state not in ("published", "held") and not is_trial():
            with suppress(MondrianOpsError):  # an older version may have had other options
                job = Job.from_dict(report["job"], paths_required=False)
                self.release_url = record(context, job, report)
        return self._told(stores.shown(str(report["job"]["output"])), report, context)

    def _own(self, summaries: Sequence[dict[str, Any]], work: str) -> list[Summary]:
        """The summaries of this release's fragments.

        The first of each: later ones are of tasks that a cleared run has no more.
        """
        own: dict[int, Summary] = {}
        for item in summaries:
            for part in _parts_of(item) if item["work"] == work else ():
                own.setdefault(part.id, part)
        if not own:
            raise StorageError(
                f"{release_name(self.job)}: no fragment of it was anonymized; see the log of its "
                "partition or anonymize_fragment task for the reason"
            )
        return list(own.values())

    def _ask(
        self, job: Job, parked: approval.Parked, report: dict[str, Any], context: Context
    ) -> None:
        from mondrian_ops import publish, stores
        from mondrian_ops.report import render_markdown, render_text

        # No task needs the original rows any more, and the answer may take days.
        publish.WorkDir(parked.work).remove_fragments()
        parked.leave()
        self.release_url = record(context, job, report)
        approval.ask(
            context,
            job,
            parked=parked,
            subject=f"Publish {stores.shown(str(job.output))}?",
            body=render_markdown(report),
            stewards=self.stewards,
            link=self.release_url,
        )
        self.log.info("waits for approval\n%s", render_text(report, 100))
        notify(self.on_waiting, context, job, report, self.release_url)

    def decided(
        self, context: Context, parked: Mapping[str, Any], event: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Publish or discard the release that waited; ``event`` holds the steward's answer."""
        from mondrian_ops.hooks.settings import use_settings

        use_settings()
        with final_errors(), failure_recorded(self, context):
            asked, decision = approval.taken(context, event, approval.Parked(**parked))
        return self._carry_out(asked, decision, context)

    def _carry_out(
        self, asked: Asked, decision: approval.Decision, context: Context
    ) -> dict[str, Any]:
        """Publish or discard; an earlier try may have done some of it."""
        from mondrian_ops import pipeline
        from mondrian_ops.catalogue import approvals

        self.release_url = release_url(context)
        if decision.approved:
            with final_errors(), failure_recorded(self, context):
                asked, decision = approval.confirmed(context, asked, decision, self.stewards)
        if not decision.approved:
            context["ti"].xcom_push(key=approval.DECISION, value=decision.decision)
            approval.skip_followers(self, context)
            self._discard(asked, decision, context)
            raise AirflowSkipException(_discarded(decision))
        parked = approval.Parked(**asked.release)
        with final_errors(), failure_recorded(self, context):
            job = self.job_of_run(context, parked.work)
            approved = pipeline.Approval(parked.seal, decision.by, decision.at, decision.why)
            with refusal_notified(self, context, job):
                report = pipeline.published_once(
                    job,
                    parked.work,
                    lambda: pipeline.publish(
                        job, work=parked.work, approval=approved, progress=Lines(self.log.info)
                    ),
                )
            questions.note(context, asked, approvals.USED)
        return self._concluded(job, report, context)

    def _discard(self, asked: Asked, decision: approval.Decision, context: Context) -> None:
        """Record that the release is discarded, remove it, and then tell whom it concerns.

        A notifier may take its time: there is nothing left to publish meanwhile.
        """
        from mondrian_ops import pipeline, stores
        from mondrian_ops.catalogue import approvals

        parked, reason = approval.Parked(**asked.release), _discarded(decision)
        self.log.warning(reason)  # of a skip, Airflow's own log has no reason
        if asked.state == approvals.USED:  # the task was cleared
            return
        with final_errors():
            job = stores.load_job(parked.job)  # it need not be allowed any more
        staged = approval.staged_report(parked.work)
        report = ended(context, job, decision.decision, reason, staged, decision.reported)
        recorded = recorded_state(context)
        if staged is not None or recorded.state != decision.decision or not recorded.is_new:
            self.release_url = record(context, job, report)
        pipeline.discard(parked.work)
        notify(self.on_refusal, context, job, report, self.release_url)
        questions.note(context, asked, approvals.USED)

    def _concluded(self, job: Job, report: dict[str, Any], context: Context) -> dict[str, Any]:
        """Log, record, measure and announce the published release; return a summary."""
        from mondrian_ops import stores
        from mondrian_ops.report import render_text, state_of

        output = stores.shown(str(job.output))
        self.log.info("%s\n%s", output, render_text(report, 100))
        self.release_url = record(context, job, report)
        count_release(context, job, state_of(report))
        send_figures(context, job, report)
        return self._told(output, report, context)

    def _told(self, output: str, report: dict[str, Any], context: Context) -> dict[str, Any]:
        """Announce the release to those that follow it; its summary."""
        from mondrian_ops import pipeline

        summary = _summary(output, report)
        if is_trial():
            self.outlets = []
        elif pipeline.is_held(report):
            self._announce_nothing(context)
        else:
            self._report = report
            self._announce(summary, context)
        return summary

    def _announce_nothing(self, context: Context) -> None:
        """There is no release tonight: no Asset has an event, and its readers are skipped."""
        self.outlets = []
        if context["ti"].map_index in (None, -1):  # of several releases others may be published
            approval.skip_followers(self, context)

    def _announce(self, summary: dict[str, Any], context: Context) -> None:
        output = summary["output"]
        uri = output if "://" in output else Path(output).absolute().as_uri()
        for outlet in self.outlets:
            if isinstance(outlet, AssetAlias):
                context["outlet_events"][outlet].add(Asset(uri=uri), extra=summary)
            elif isinstance(outlet, Asset):
                context["outlet_events"][outlet].extra = summary
                if self.by_night and (dates := dates_in(output)):
                    context["outlet_events"][outlet].add_partitions(dates.split()[-1])

    def get_openlineage_facets_on_start(self) -> OperatorLineage[Any, Any]:
        """The dataset and its release; called by the OpenLineage provider, if it is installed."""
        from mondrian_ops.operators.lineage import names_of

        job = self.read_job()
        return names_of([job.input], [job.output])

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> OperatorLineage[Any, Any]:
        """The lineage of the release, also if the task failed; no output if there is none."""
        from mondrian_ops.operators.lineage import lineage_of, names_of

        if self._report is None:
            return names_of([(self.known_job or self.read_job()).input])
        return lineage_of(self._report)


def _discarded(decision: approval.Decision) -> str:
    return f"{decision}: the release is discarded, nothing is published"


def _parts_of(summary: dict[str, Any]) -> list[Summary]:
    """The summaries that a task returned, or wrote to the working files."""
    from mondrian_ops import publish
    from mondrian_ops.engines.handover import Summary

    if "summaries" not in summary:
        return [Summary.from_dict(summary)]
    summaries = publish.WorkDir(summary["work"]).read_json(SUMMARIES)
    return [Summary.from_dict(item) for item in summaries]


def _summary(output: str, report: dict[str, Any]) -> dict[str, Any]:
    job = report["job"]
    options = ("k", "l", "t", *(each["key"] for each in report.get("criteria", ())), "algorithm")
    return {
        "output": output,
        "asked": {key: job[key] for key in options if job.get(key) is not None},
        "achieved": report["achieved"],
        "rows": report["rows"],
        "equivalence_classes": report["equivalence_classes"],
        "metrics": report["metrics"],
        "risk": report["risk"],
        "timings_s": report["timings_s"],
    }
