"""A process that does one night after the other, as the tasks of Airflow would in their own."""

from __future__ import annotations

import ctypes
import gc
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import psutil

from soak.resource_probes import Usage, usage_of

_GIVING_BACK = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1"}
"""Allocators that can give back all that nobody holds, so that what is left is what is held.

mimalloc and the C library's arenas keep some of it for each thread that ever asked for memory.
"""


@dataclass(frozen=True)
class Ended:
    """A night that is over: what was refused, if anything was, and what the process holds then.

    ``objects`` that Python tracks, ``arrow`` bytes in Arrow's buffers.
    """

    refused: str
    held: Usage
    objects: int
    arrow: int


@contextmanager
def worker(settings: Mapping[str, str]) -> Iterator[Callable[[str, Any], Ended]]:
    """Start one; gives a function that has it do the job of a night."""
    ours, theirs = get_context("spawn").Pipe()
    process = get_context("spawn").Process(target=_work, args=(theirs,))
    with patch.dict(os.environ, {**_GIVING_BACK, **settings}):
        process.start()
    theirs.close()  # or nobody here would learn that it has ended

    def night(name: str, job: Any) -> Ended:
        ours.send((name, job))
        ended: Ended = ours.recv()
        return ended

    try:
        yield night
    finally:
        process.terminate()
        process.join()


def _work(pipe: Connection) -> None:
    while True:
        refused = _night(*pipe.recv())
        _give_back()
        pipe.send(_ended(refused))


def _ended(refused: str) -> Ended:
    import pyarrow as pa

    return Ended(
        refused, usage_of(psutil.Process()), len(gc.get_objects()), pa.total_allocated_bytes()
    )


def _give_back() -> None:
    """What nobody holds any more, and allocators keep for the next night, goes to the system."""
    import pyarrow as pa

    gc.collect()
    pa.default_memory_pool().release_unused()
    ctypes.CDLL(None).malloc_trim(0)


def _night(name: str, job: Any) -> str:
    """All tasks of a run; what its first that failed said."""
    from airflow.sdk.exceptions import AirflowFailException

    from mondrian_ops.operators import CleanUpOperator

    context = _context(name)
    try:
        _anonymize(job, context)
    except AirflowFailException as error:
        return str(error)
    finally:
        CleanUpOperator(task_id="clean_up", job=job).execute(context)
    return ""


def _anonymize(job: Any, context: Any) -> None:
    from mondrian_ops.operators import (
        AnonymizeFragmentOperator,
        PartitionOperator,
        WrapUpOperator,
    )

    fragments = _handed_on(PartitionOperator(task_id="partition", job=job).execute(context))
    summaries = [
        AnonymizeFragmentOperator(task_id="anonymize_fragment", job=job, fragment=fragment).execute(
            context
        )
        for fragment in fragments
    ]
    WrapUpOperator(task_id="wrap_up", job=job, summaries=_handed_on(summaries)).execute(context)


def _handed_on(value: Any) -> Any:
    """What a task returned, as the next one gets it."""
    return json.loads(json.dumps(value, allow_nan=False))


def _context(name: str) -> dict[str, Any]:
    """As much of a task's context as the operators use."""
    run = SimpleNamespace(dag_id="a_dag", run_id=name, start_date=None)
    tags = {"dag_id": run.dag_id, "task_id": "t"}
    instance = SimpleNamespace(
        id=name,
        task_id="t",
        map_index=-1,
        stats_tags=tags,
        xcom_push=lambda key, value: None,
        xcom_pull=lambda task_ids, key: [],
    )
    return {"dag_run": run, "outlet_events": {}, "task_state_store": {}, "ti": instance}
