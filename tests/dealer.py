"""How tests are dealt out to several processes: pytest-xdist's ``loadfile``, and two things more.

The tests of one file run in one process, one after the other. So do all files that start HDFS or
Spark, so that each is started once, and those that do harm to a Spark of their own. What runs a
whole Airflow, which keeps all cores busy and is waited for with a limit, comes last and has the
machine for itself.
"""

from __future__ import annotations

import pytest
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

from running_order import AIRFLOWS, scope_of

__all__ = ["Dealer"]


class Dealer(LoadFileScheduling):
    """Deals out scopes in the order in which they were collected."""

    def __init__(self, config: pytest.Config, log: object = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        """All processes but one end before a whole Airflow is run in that one."""
        others = [other for other in self.nodes if other is not node]
        if not others or next(iter(self.workqueue)) != AIRFLOWS:
            super()._assign_work_unit(node)
        elif not all(other.shutting_down for other in others):
            node.shutdown()

    def remove_node(self, node: WorkerController) -> str | None:
        """A process has ended; the one that waited for it may go on."""
        crashed: str | None = super().remove_node(node)
        for other in self.nodes:
            self._reschedule(other)
        return crashed
