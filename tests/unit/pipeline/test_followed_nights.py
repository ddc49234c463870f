"""In which nights of a series a release's persons are followed before it is published."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from mondrian_ops import series
from mondrian_ops.pipeline import wrapping_up


@pytest.mark.parametrize("night", [None, SimpleNamespace(series="town", number=2)])
@pytest.mark.parametrize("follows", [False, True])
def test_persons_are_followed_in_nights_of_a_series_that_protects_them(monkeypatch, night, follows):
    calls = []
    monkeypatch.setattr(series, "checked", lambda *args: calls.append(args))
    job = SimpleNamespace(follows_persons=follows)
    work = SimpleNamespace(part_paths=lambda numbers: [f"part {number}" for number in numbers])
    run = SimpleNamespace(dataset=SimpleNamespace(night=night), work=work)
    summaries = [SimpleNamespace(id=at, rows=rows, counterfeits=at) for at, rows in enumerate("ab")]
    summaries.append(SimpleNamespace(id=2, rows=0, counterfeits=2))
    assert wrapping_up._followed(job, run, summaries) is None
    expected = [(job, "town", 2, work, ["part 0", "part 1"], 3)]
    assert calls == (expected if follows and night else [])
