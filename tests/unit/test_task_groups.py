"""Task groups: their tasks, and how they fit into other DAGs."""

from __future__ import annotations

import pytest
from airflow.serialization.serialized_objects import DagSerialization


def test_a_first_phase_can_be_mapped_tasks_of_the_group():
    from airflow.sdk import DAG, TriggerRule

    from mondrian_ops.task_groups import anonymize_group

    job = {"input": "i", "output": "o", "k": 2, "quasi_identifiers": ["a"], "algorithm": "tds"}
    with DAG("d", schedule=None) as dag:
        anonymize_group(job, "threads")
        anonymize_group(job, "mapped", map_first_phase=True, retries=5)

    def below(task_id):
        return dag.get_task(task_id).downstream_task_ids

    added = {"mapped.specialize_part", "mapped.recode"}
    usual = ("partition", "anonymize_fragment", "wrap_up", "clean_up")
    assert {task_id for task_id in dag.task_ids if task_id.startswith("threads.")} == {
        f"threads.{name}" for name in usual
    }
    assert {task_id for task_id in dag.task_ids if task_id.startswith("mapped.")} == {
        *(f"mapped.{name}" for name in usual),
        *added,
    }
    assert below("mapped.partition") == added | {"mapped.clean_up"}
    assert below("mapped.specialize_part") == {"mapped.recode", "mapped.clean_up"}
    assert below("mapped.recode") == {"mapped.anonymize_fragment", "mapped.clean_up"}
    assert below("mapped.anonymize_fragment") == {"mapped.wrap_up", "mapped.clean_up"}
    assert dag.get_task("mapped.specialize_part").is_mapped
    assert dag.get_task("mapped.specialize_part").retries == 5
    recode = dag.get_task("mapped.recode")
    assert recode.trigger_rule == TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS
    assert DagSerialization.to_dict(dag)


JOB = {"input": "i", "output": "o", "k": 2, "quasi_identifiers": ["a"]}


def test_groups_fit_into_groups_and_tasks_into_any():
    from datetime import timedelta

    from airflow.sdk import DAG, TaskGroup

    from mondrian_ops.task_groups import anonymize_group, anonymize_tasks

    with DAG("d", schedule=None, default_args={"retries": 7, "queue": "default"}) as dag:
        with TaskGroup("outer", default_args={"pool": "raw"}):
            anonymize_group(JOB, "inner", retries=4, retry_delay=timedelta(seconds=1))
        anonymize_group(JOB, "other", default_args={"queue": "big"})
        anonymize_tasks(JOB)
    fragments = dag.get_task("outer.inner.anonymize_fragment")
    assert (fragments.retries, fragments.pool) == (4, "raw")
    assert dag.get_task("other.wrap_up").queue == "big"


DEFAULTS = {"retries": 7, "retry_delay": 90, "pool": "raw", "executor_config": {"cpu": 2}}


def jobs():
    """No job, for a task that returns jobs."""
    return []


def made_by(builder: str, default_args, **options):
    """The DAG of one of the builders of task groups."""
    from airflow.sdk import DAG, task

    from mondrian_ops import task_groups

    with DAG("d", schedule=None, default_args=default_args) as dag:
        if builder == "anonymize_each":
            task_groups.anonymize_each(task(jobs)(), **options)
        elif builder == "frontier_tasks":
            task_groups.frontier_tasks(JOB, k=[2], **options)
        else:
            getattr(task_groups, builder)(JOB, **options)
    return {task.label: task for task in dag.tasks if task.task_id != "jobs"}


@pytest.mark.parametrize(
    "builder", ["anonymize_group", "anonymize_tasks", "anonymize_each", "frontier_tasks"]
)
def test_default_arguments_of_the_dag_reach_every_task(builder):
    for task in made_by(builder, DEFAULTS).values():
        assert (task.retries, task.retry_delay.total_seconds(), task.pool) == (7, 90, "raw")
        assert task.executor_config == {"cpu": 2}
    assert {task.retries for task in made_by(builder, {}).values()} == {2}
    assert {task.retry_delay.total_seconds() for task in made_by(builder, {}).values()} == {10}


@pytest.mark.parametrize("builder", ["anonymize_group", "anonymize_tasks", "anonymize_each"])
def test_each_phase_takes_arguments_of_its_own(builder):
    mapped = {} if builder == "anonymize_each" else {"map_first_phase": True}
    tasks = made_by(
        builder,
        DEFAULTS,
        retries=3,
        partition_args={"queue": "first"},
        fragment_args={"queue": "second", "retries": 5},
        wrap_up_args={"queue": "third", "pool": "one"},
        **mapped,
    )
    queues = {name: task.queue for name, task in tasks.items()}
    assert queues.pop("anonymize_fragment") == "second"
    assert queues.pop("wrap_up") == "third"
    assert queues.pop("clean_up") == "default"
    assert set(queues.values()) == {"first"}
    retries = {name: task.retries for name, task in tasks.items()}
    assert retries.pop("anonymize_fragment") == 5
    assert set(retries.values()) == {3}
    assert (tasks["wrap_up"].pool, tasks["partition"].pool) == ("one", "raw")


@pytest.mark.parametrize(
    "builder", ["anonymize_group", "anonymize_tasks", "anonymize_each", "frontier_tasks"]
)
def test_connections_are_arguments_of_every_task(builder):
    named = {"spark_conn_id": "a_spark", "storage_conn_id": "a_store"}
    for task in made_by(builder, {}, **named).values():
        given = task.partial_kwargs if task.is_mapped else vars(task)
        assert {name: given[name] for name in named} == named
