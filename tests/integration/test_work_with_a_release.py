"""The page with one example from a raw table to a model: its code runs, and says what it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from threadpoolctl import threadpool_limits

PAGE = Path(__file__).resolve().parents[2] / "docs" / "work-with-a-release.md"


def test_the_example_runs_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(
        r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    assert len(blocks) == 4
    names: dict[str, Any] = {}
    with threadpool_limits(1):  # threads that wait for each other take longer than one alone
        for block in blocks:
            exec(compile(block, str(PAGE), "exec"), names)  # noqa: S102 - the page's own code
    report = names["report"]
    assert report["risk"]["prosecutor_max"] == 0.1
    assert report["risk"]["before"]["unique"] > 0.5
    assert 0 < report["use"]["query_error"]["median"] < 0.2
    assert report["use"]["model"]["released"] > 0
    raw = names["people"](10_000, seed=1)
    nurses = raw["occupation"].to_pylist().count("Nurse")
    assert names["nurses"] == pytest.approx(nurses, rel=0.2)
    old = sum(age >= 65 for age in raw["age"].to_pylist())
    assert names["at_least"] <= old <= names["at_most"]
    assert names["auc"] > 0.7
