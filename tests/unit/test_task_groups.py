"""Task groups: their tasks, and how they fit into other DAGs."""

from __future__ import annotations

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


def test_groups_fit_into_groups_and_tasks_into_any():
    from datetime import timedelta

    from airflow.sdk import DAG, TaskGroup

    from mondrian_ops.task_groups import anonymize_group, anonymize_tasks

    job = {"input": "i", "output": "o", "k": 2, "quasi_identifiers": ["a"]}
    with DAG("d", schedule=None, default_args={"retries": 7, "queue": "default"}) as dag:
        with TaskGroup("outer", default_args={"pool": "raw"}):
            anonymize_group(job, "inner", retries=4, retry_delay=timedelta(seconds=1))
        anonymize_group(job, "other", default_args={"queue": "big"})
        anonymize_tasks(job)
    fragments = dag.get_task("outer.inner.anonymize_fragment")
    assert (fragments.retries, fragments.pool) == (4, "raw")
    assert dag.get_task("other.wrap_up").queue == "big"
    assert dag.get_task("partition").retries == 2
