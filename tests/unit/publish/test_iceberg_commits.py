"""Commits that are tried again while others commit."""

from __future__ import annotations

import pytest
from pyiceberg.exceptions import CommitFailedException

from mondrian_ops.publish import iceberg_commits
from mondrian_ops.publish.iceberg_commits import retried


class Busy:
    """A table to which others commit during so many tries."""

    def __init__(self, tries: int) -> None:
        self.left = tries

    def commit(self) -> str:
        self.left -= 1
        if self.left >= 0:
            raise CommitFailedException("others")
        return "committed"


def test_each_try_waits_longer_than_the_one_before_and_they_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(iceberg_commits.time, "sleep", pauses.append)
    assert retried("iceberg://lake/a.b", Busy(3).commit) == "committed"
    assert pauses == pytest.approx([0.05, 0.1, 0.15])
    pauses.clear()
    assert retried("iceberg://lake/a.b", Busy(11).commit) == "committed"
    with pytest.raises(OSError, match=r"a\.b: others commit to the table all the time; run again"):
        retried("iceberg://lake/a.b", Busy(12).commit)
    assert len(pauses) == 11 + 12
