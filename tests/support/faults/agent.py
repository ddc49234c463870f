"""Faults in processes that others start: Spark's Python workers, the tasks of Celery's workers.

Such a process calls :func:`watch` when it begins. As soon as it has imported the package, wherever
that comes from, the points of :mod:`faults.injection` are wrapped; the folder that the environment
names (:mod:`faults.mailbox`) says which of them strikes. The package itself is as it always is.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from faults.mailbox import VARIABLE, Mailbox

if TYPE_CHECKING:
    from faults.injection import Points

_TASK = "AIRFLOW_CTX_TASK_ID"


def watch() -> None:
    """Wait for the package, if the environment names a folder."""
    if VARIABLE not in os.environ:
        return
    agent = _Agent(Mailbox(os.environ[VARIABLE]))
    sys.meta_path.insert(
        0,
        _AfterImport(
            {"mondrian_ops.stores": agent.install, "mondrian_ops.engines.executor": agent.mark}
        ),
    )


class _Agent:
    """Wraps the points of this process, once the package is there."""

    def __init__(self, mailbox: Mailbox) -> None:
        self._mailbox = mailbox
        self._points: Points | None = None

    def install(self, _storage: ModuleType) -> None:
        """Wrap what the package reaches the file system through."""
        from faults.injection import install

        self._points = _points(self._mailbox)
        install(self._points)

    def mark(self, executor: ModuleType) -> None:
        """Let points tell the steps of Spark's tasks apart; each is as in a fresh worker."""
        real = executor.Step.__call__

        def call(step: Any, batches: Any) -> Any:
            executor._run.cache_clear()
            work = step._work
            self._points.begin(getattr(work, "func", work).__name__)
            return real(step, batches)

        executor.Step.__call__ = call


def _points(mailbox: Mailbox) -> Any:
    import pyarrow as pa

    from faults.injection import Points
    from faults.mailbox import Passed

    class Ordered(Points):
        """Points at which strikes what is ordered when they are passed."""

        def __init__(self) -> None:
            super().__init__(str(mailbox.seen), None)
            self._step = ""
            os.register_at_fork(after_in_child=lambda: self.begin(""))

        def begin(self, step: str) -> None:
            """Count from one on; without a step, that of Airflow's task."""
            self._step = step
            self._calls.clear()

        def fault_at(self, point: str, path: Any) -> str | None:
            passed = Passed(self._step or os.environ.get(_TASK, ""), point)
            mailbox.note(passed)
            return mailbox.take(passed, os.fsdecode(path))

    # One at a time, so that points come in the same order in every process.
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    return Ordered()


class _AfterImport(importlib.abc.MetaPathFinder):
    """Does something with modules of some names when they have been imported."""

    def __init__(self, acts: dict[str, Callable[[ModuleType], None]]) -> None:
        self._acts = acts

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        act = self._acts.get(name)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target) if act else None
        if spec is not None:
            spec.loader = _Followed(spec.loader, act)
        return spec


class _Followed(importlib.abc.Loader):
    """A loader after which something is done."""

    def __init__(self, loader: Any, act: Callable[[ModuleType], None]) -> None:
        self._loader = loader
        self._act = act

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        self._act(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
