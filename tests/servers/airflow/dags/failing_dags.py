"""DAGs in which something goes wrong on purpose; each takes its job from the run's conf."""

from __future__ import annotations

import os
import signal
import time
from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG, Param, task
from airflow.sdk.exceptions import AirflowSkipException

from mondrian_ops import task_groups
from mondrian_ops.operators import (
    AnonymizeFragmentOperator,
    PartitionOperator,
    SpecializePartOperator,
)

SOON = timedelta(seconds=1)


class StoppedHalfWay(AnonymizeFragmentOperator):
    """Something happens to fragment 1 when half of its part is written, the first time."""

    def half_way(self):
        raise NotImplementedError

    def execute(self, context):
        from mondrian_ops.stores.local import NewLocalFile

        commit = NewLocalFile.commit

        def stop_half_way(file, *how):
            if "part-" not in file.path.name:
                return commit(file, *how)
            file.sink.flush()
            file.temporary.write_bytes(file.temporary.read_bytes()[: file.sink.tell() // 2])
            return self.half_way()

        if context["ti"].try_number == 1 and self.fragment["id"] == 1:
            NewLocalFile.commit = stop_half_way
        return super().execute(context)


class KilledOnce(StoppedHalfWay):
    """Its process is killed."""

    def half_way(self):
        os.kill(os.getpid(), signal.SIGKILL)


class KilledUntilCleared(StoppedHalfWay):
    """Its process is killed, until somebody has repaired what was wrong."""

    def half_way(self):
        os.kill(os.getpid(), signal.SIGKILL)

    def execute(self, context):
        if Path(f"{self.job['output']}.repaired").exists():
            return AnonymizeFragmentOperator.execute(self, context)
        return super().execute(context)


class HeldOnce(StoppedHalfWay):
    """It says so, in a file, and waits for its worker to be killed."""

    def half_way(self):
        Path(os.environ["HELD"]).write_text(str(os.getpid()))
        time.sleep(600)


class KilledPartition(PartitionOperator):
    """Killed when the working files are there, every time."""

    def execute(self, context):
        from mondrian_ops import pipeline

        partition = pipeline.partition

        def die_after(*arguments, **options):
            partition(*arguments, **options)
            os.kill(os.getpid(), signal.SIGKILL)

        pipeline.partition = die_after
        return super().execute(context)


class KilledPartOnce(SpecializePartOperator):
    """The process of part 1 is killed when half of what it found is written, the first time."""

    def execute(self, context):
        from mondrian_ops import publish
        from mondrian_ops.stores.files import new_file

        def die_half_way(work, name, _table):
            with new_file(work.path(name)) as sink:
                sink.write(b"half of a level")
                os.kill(os.getpid(), signal.SIGKILL)

        if context["ti"].try_number == 1 and self.part["part"] == 1:
            publish.WorkDir.write_arrow = die_half_way
        return super().execute(context)


class FailingPart(SpecializePartOperator):
    """Part 1 never has a disk."""

    def execute(self, context):
        if self.part["part"] == 1:
            raise OSError(28, "no space left on device")
        return super().execute(context)


class Slow(AnonymizeFragmentOperator):
    """A fragment that takes its time."""

    def execute(self, context):
        time.sleep(300)


@task
def tamper(summaries):
    """Change one row of the release that is about to be checked."""
    import pyarrow as pa
    from pyarrow import parquet

    from mondrian_ops import publish

    summary = next(iter(summaries))
    path = publish.WorkDir(summary["work"]).part_path(summary["id"])
    released = parquet.read_table(path)
    ages = ["[7, 8]", *released["age"].to_pylist()[1:]]
    column = released.schema.get_field_index("age")
    parquet.write_table(released.set_column(column, "age", pa.array(ages)), path)


@task
def nothing_to_do():
    """Skip what follows."""
    raise AirflowSkipException


def failing_dag(dag_id, *, retries=2, map_first_phase=False, **replaced):
    """A DAG of the three phases, some of whose operators are replaced."""
    before = {name: getattr(task_groups, name) for name in replaced}
    vars(task_groups).update(replaced)
    with DAG(dag_id, schedule=None, catchup=False, params={"job": Param({}, type="object")}) as dag:
        task_groups.anonymize_tasks(
            dag.param("job"),
            map_first_phase=map_first_phase,
            retries=retries,
            retry_delay=SOON,
        )
    vars(task_groups).update(before)
    return dag


killed_once = failing_dag("killed_once", AnonymizeFragmentOperator=KilledOnce)
held_once = failing_dag("held_once", AnonymizeFragmentOperator=HeldOnce)
killed_partition = failing_dag("killed_partition", retries=0, PartitionOperator=KilledPartition)
disturbed = failing_dag("disturbed")
killed_until_cleared = failing_dag(
    "killed_until_cleared", retries=0, AnonymizeFragmentOperator=KilledUntilCleared
)
slow = failing_dag("slow", AnonymizeFragmentOperator=Slow)
timed_out = failing_dag("timed_out", AnonymizeFragmentOperator=Slow)
# Long enough for partition on a busy machine; other runs take as long.
timed_out.dagrun_timeout = timedelta(seconds=90)
mapped_first_phase = failing_dag("mapped_first_phase", map_first_phase=True)
killed_part = failing_dag(
    "killed_part", map_first_phase=True, SpecializePartOperator=KilledPartOnce
)
failing_part = failing_dag(
    "failing_part", retries=0, map_first_phase=True, SpecializePartOperator=FailingPart
)
tampered = failing_dag("tampered")
with tampered:
    tamper(tampered.get_task("anonymize_fragment").output) >> tampered.get_task("wrap_up")
skipped_group = failing_dag("skipped_group", map_first_phase=True)
with skipped_group:
    nothing_to_do() >> skipped_group.get_task("partition")

# In each of these, one task runs where the files of the others are out of sight.
blind_partition = failing_dag("blind_partition")
blind_partition.get_task("partition").queue = "blind"
blind_anonymize_fragment = failing_dag("blind_anonymize_fragment")
blind_anonymize_fragment.get_task("anonymize_fragment").partial_kwargs["queue"] = "blind"
blind_wrap_up = failing_dag("blind_wrap_up")
blind_wrap_up.get_task("wrap_up").queue = "blind"
