"""The tasks of a job one by one, in one process and without an Airflow."""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException

from mondrian_ops.task_groups import anonymize_tasks
from task_contexts import task_context


class TaskRun:
    """A run of the tasks that :func:`anonymize_tasks` makes; ``job`` is what each task is given.

    ``context`` is what Airflow gives to each of them; ``ended`` are the states of the tasks.
    """

    def __init__(self, job: Any, **options: Any) -> None:
        self.job, self.options = job, options
        self.context = task_context()
        self.fragments: list[dict[str, Any]] = []
        self.summaries: list[dict[str, Any]] = []

    @property
    def ended(self) -> dict[str, str]:
        return self.context["ti"].ended

    def partition(self) -> None:
        self.fragments = self._done("partition")

    def anonymize(self, only: int | None = None) -> None:
        chosen = self.fragments if only is None else [self.fragments[only]]
        for index, fragment in enumerate(chosen):
            task = self.task("anonymize_fragment").unmap({"fragment": fragment})
            summary = self._outcome(task, index)
            if only is None:
                self.summaries.append(summary)
            else:
                self.summaries[only] = summary

    def wrap_up(self) -> dict[str, Any]:
        return self._done("wrap_up", summaries=self.summaries)

    def clean_up(self) -> None:
        self._done("clean_up")

    def whole(self) -> dict[str, Any]:
        """All tasks; the summary of the release."""
        self.partition()
        self.anonymize()
        summary = self.wrap_up()
        self.clean_up()
        return summary

    def task(self, name: str, **arguments: Any) -> Any:
        """A task, as a new process has it."""
        with DAG("a_dag", schedule=None) as dag:
            anonymize_tasks(self.job, **self.options)
        task = dag.get_task(name)
        for argument, value in arguments.items():
            setattr(task, argument, value)
        return task

    def _done(self, name: str, **arguments: Any) -> Any:
        return self._outcome(self.task(name, **arguments), -1)

    def _outcome(self, task: Any, index: int) -> Any:
        self.context["ti"].task_id, self.context["ti"].map_index = task.task_id, index
        try:
            returned = task.execute(self.context)
        except AirflowFailException:
            self.ended[task.task_id] = "failed"
            raise
        self.ended[task.task_id] = "success"
        return returned
