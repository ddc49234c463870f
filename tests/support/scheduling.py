"""Which of several processes collects and runs which tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

from groups import group_of, imports_airflow


class GroupScheduling(LoadFileScheduling):
    """Deals out the groups of :mod:`groups`, each to a process that has collected its tests.

    xdist's own ``loadgroup`` does nothing since pytest 9.2 (pytest-dev/pytest-xdist#1386).
    """

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)

    def schedule(self) -> None:
        if self.collection is None:  # the first one in this dictionary is what is dealt out
            by_size = sorted(self.registered_collections.items(), key=lambda each: -len(each[1]))
            self.registered_collections = dict(by_size)
            self._collected = {node: {*nodeids} for node, nodeids in by_size}
        super().schedule()

    def _check_nodes_have_same_collection(self) -> bool:
        with self._without_airflow():
            return super()._check_nodes_have_same_collection()

    @contextmanager
    def _without_airflow(self) -> Iterator[None]:
        whole = self.registered_collections
        self.registered_collections = {
            node: [nodeid for nodeid in nodeids if not imports_airflow(nodeid)]
            for node, nodeids in whole.items()
        }
        yield
        self.registered_collections = whole

    def _assign_work_unit(self, node: WorkerController) -> None:
        """The next group that the process can run; first what no other one can."""

        def able(group: str) -> list[WorkerController]:
            tests = self.workqueue[group].keys()
            return [each for each in self.nodes if tests <= self._collected[each]]

        groups = [group for group in self.workqueue if node in able(group)]
        if not groups:
            node.shutdown()
            return
        mine = (group for group in groups if able(group) == [node])
        self.workqueue.move_to_end(next(mine, groups[0]), last=False)
        super()._assign_work_unit(node)
