"""pytest-xdist's ``loadfile`` by group.

Its own ``loadgroup`` writes the group into the ids of tests, which pytest has not let it do since
9.2: it then deals out tests one by one, and says nothing.
"""

from __future__ import annotations

from xdist.scheduler import LoadFileScheduling

from groups import group_of

__all__ = ["GroupScheduler"]


class GroupScheduler(LoadFileScheduling):
    """Deals out groups, in the order of the tests where xdist is asked not to reorder them."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
