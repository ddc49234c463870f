"""The jobs of ``examples`` do what their comments say; test_airflow_run.py runs the DAG there."""

from __future__ import annotations

import json
import random
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from mondrian_ops import cli, pipeline
from mondrian_ops.nightly.landing import read_landing
from mondrian_ops.stores import load_job

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
ADULT = {
    "age": range(17, 91),
    "marital-status": ("Divorced", "Married-civ-spouse", "Never-married", "Widowed"),
    "education": ("Bachelors", "HS-grad", "Masters", "Some-college"),
    "race": ("Black", "White"),
    "sex": ("Female", "Male"),
    "occupation": ("Adm-clerical", "Craft-repair", "Exec-managerial", "Prof-specialty", "Sales"),
    "salary-class": ("<=50K", ">50K"),
}


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The examples and what they read, and a small extract of Adult, in the working directory."""
    for name in ("examples", "include"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "data" / "stays").mkdir(parents=True)
    write_adult(tmp_path / "adult.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_adult(file: Path) -> None:
    draw = random.Random(0)
    rows = [[str(draw.choice(values)) for values in ADULT.values()] for _ in range(2000)]
    file.write_text("\n".join(map(",".join, [[*ADULT], *rows])) + "\n", "utf-8")


def run_as_shown(example: str) -> None:
    """Run the commands in the comment of a job, cutting by the quickest way."""
    shown = re.findall(r"^# +python -m mondrian_ops (.+)$", (EXAMPLES / example).read_text(), re.M)
    assert any(example in command for command in shown)
    for command in shown:
        quick = ["--set", "cut=median"] if example in command else []
        assert cli.main([*shlex.split(command), *quick]) == 0, command


def report(release: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((release / "_report.json").read_text("utf-8"))
    return told


def columns(release: Path) -> set[str]:
    return set(pq.read_table(release).column_names)


def test_adult_by_hand(checkout: Path) -> None:
    run_as_shown("adult.yaml")
    release = checkout / "out" / "adult"
    assert report(release)["achieved"]["l"] >= 3
    assert columns(release) == ADULT.keys() - {"salary-class"}


def test_adult_by_night(checkout: Path) -> None:
    drop = checkout / "data" / "landing" / "adult" / "2025-06-01.csv"
    drop.parent.mkdir(parents=True)
    shutil.copy(checkout / "adult.csv", drop)
    jobs = checkout / "jobs"
    jobs.mkdir()
    for name in ("adult.yaml", "marital_status.csv"):
        shutil.copy(EXAMPLES / name, jobs)
    (found,) = read_landing("data/landing").drops["adult"]
    job = found.job(jobs, "out/nightly")
    pipeline.run(load_job(job["file"], [*job["set"], "cut=median"]))
    assert (checkout / "out" / "nightly" / "adult" / "2025-06-01" / "_SUCCESS").exists()


def test_hospital_stays(checkout: Path) -> None:
    run_as_shown("hospital_stays.yaml")
    release = checkout / "out" / "stays"
    told = report(release)
    assert told["rows"]["published"] == 8000
    assert told["achieved"]["k"] >= 5
    assert told["achieved"]["t"] <= 0.3
    assert columns(release) == {"age", "sex", "zip", "visit_date", "diagnosis"}


@pytest.mark.servers
def test_choose_k(checkout: Path) -> None:
    run_as_shown("choose_k.yaml")
    assert (checkout / "out" / "choose_k_frontier" / "frontier.html").exists()
    assert report(checkout / "out" / "choose_k")["job"]["k"] == 10


def test_each_job_is_run() -> None:
    jobs = {path.name for path in EXAMPLES.glob("*.yaml")}
    assert jobs == {"adult.yaml", "hospital_stays.yaml", "choose_k.yaml"}
