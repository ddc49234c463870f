"""DAGs whose releases wait for an approval; each takes its job from the run's conf."""

from __future__ import annotations

import json
import os
import signal
from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG, Asset, BaseNotifier, Param, TriggerRule, task

from mondrian_ops import task_groups
from mondrian_ops.operators import WrapUpOperator

SOON = timedelta(seconds=1)
JOB = {"job": Param({}, type="object")}
JOBS = {"jobs": Param([], type="array")}


class Noting(BaseNotifier):
    """Writes down what it is told, a line of JSON each."""

    def notify(self, context):
        with Path(os.environ["TOLD"]).open("a") as file:
            file.write(json.dumps({**context["release"], "run_id": context["run_id"]}) + "\n")


class KilledInTheEnd(WrapUpOperator):
    """Killed when the release is about to be published, or removed, the first time."""

    def decided(self, context, parked, event):
        from mondrian_ops import publish

        def die(*_arguments):
            os.kill(os.getpid(), signal.SIGKILL)

        if context["ti"].try_number == 1:
            publish.publish = publish.WorkDir.remove = die
        return super().decided(context, parked, event)


@task
def needs_the_release():
    """Would load it."""


@task(trigger_rule=TriggerRule.ALL_DONE)
def always():
    """Runs when everything before it is over, however that ended."""


@task(trigger_rule=TriggerRule.ALL_DONE)
def for_each(_number):
    """The same, mapped."""


@task.bash(trigger_rule=TriggerRule.ALL_DONE)
def in_the_end():
    """The same, after that."""
    return "true"


TOLD = {"on_refusal": Noting(), "on_waiting": Noting()}
AGAIN = {"retries": 1, "retry_delay": SOON}

with DAG("approved", schedule=None, params=JOB) as dag:
    wrap_up = task_groups.anonymize_tasks(
        dag.param("job"), asset=Asset("approved_release"), **TOLD, **AGAIN
    )
    wrap_up >> needs_the_release()
    wrap_up >> always() >> in_the_end()
    wrap_up >> for_each.expand(_number=[1, 2])

with DAG("approved_each", schedule=None, params=JOBS):

    @task
    def jobs(params):
        """What the run was asked for."""
        return params["jobs"]

    task_groups.anonymize_each(jobs(), **TOLD, **AGAIN) >> always()

with DAG(
    "approved_in_time",
    schedule=None,
    params=JOB,
    dagrun_timeout=timedelta(minutes=4),  # it is discarded after two
    default_args={"priority_weight": 100},
) as dag:
    task_groups.anonymize_tasks(dag.param("job"), **AGAIN)

task_groups.WrapUpOperator = KilledInTheEnd
with DAG("approved_killed", schedule=None, params=JOB) as dag:
    task_groups.anonymize_group(dag.param("job"), **TOLD, **AGAIN) >> [
        needs_the_release(),
        always(),
    ]
task_groups.WrapUpOperator = WrapUpOperator
