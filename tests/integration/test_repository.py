"""The git hooks and the hosted CI run what make runs."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
JOBS = yaml.safe_load((ROOT / ".github/workflows/ci.yaml").read_text("utf-8"))["jobs"]


def steps() -> Iterator[dict[str, Any]]:
    for job in JOBS.values():
        yield from job["steps"]


def test_the_git_hooks_are_the_parts_of_make_lint() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))
    (repository,) = config["repos"]
    (parts,) = re.findall(r"^LINTS := (.+)$", MAKEFILE, re.MULTILINE)
    assert [hook["entry"] for hook in repository["hooks"]] == [
        f"make {part}" for part in parts.split()
    ]


def test_the_hosted_ci_calls_targets_of_make() -> None:
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
    called = [step["run"].split()[1] for step in steps() if step.get("run", "").startswith("make ")]
    assert {"lint", "test", "test-servers", "wheels"} <= {*called}
    assert {*called} <= targets


def test_the_hosted_ci_tests_each_python_that_the_package_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    assert JOBS["test"]["strategy"]["matrix"]["python"] == named


def test_nothing_suggests_to_install_the_package_by_name() -> None:
    """Until the name is ours on the index, who claims it there would own who follows."""
    by_name = re.compile(
        r"install [^\n@]*\bmondrian[-_]ops\b[^\n@]*$|\bmondrian[-_]ops\[.*\](?! @)", re.M
    )
    listed = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines()
    text = {".md", ".py", ".toml", ".yaml", ".txt", ".sh", ".html", ""}
    suggesting = [
        f"{name}: {match[0]}"
        for name in listed
        if Path(name).suffix in text and not name.startswith("tests/") and (ROOT / name).is_file()
        for match in by_name.finditer((ROOT / name).read_text("utf-8"))
    ]
    assert suggesting == []


def test_actions_are_pinned_by_commit() -> None:
    used = [step["uses"] for step in steps() if "uses" in step]
    assert used
    assert [action for action in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action)] == []
