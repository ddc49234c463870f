"""The golden set: each job's release, figures and refusal are those of the day they were written.

A change that is meant to change them renews what is expected; its author reads the difference:

    MONDRIAN_OPS_RENEW=1 .venv/bin/python -m pytest tests/golden
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from golden.figures import figures, points
from golden.jobs import BY_LOT, REFUSALS, RELEASES, job_of
from golden.running import command, expect, run, write_job
from mondrian_ops import anonymize
from tiers import one_here

REPOSITORY = Path(__file__).resolve().parents[2]
TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:+]+")

pytestmark = pytest.mark.usefixtures("golden_folder")


# The other half runs with the tests of servers.
HALF = [
    pytest.param(name, marks=pytest.mark.servers if at % 2 else ())
    for at, name in enumerate(RELEASES)
]


@pytest.mark.parametrize("name", HALF)
def test_a_release(name: str) -> None:
    job = job_of(name)
    report = run(job)
    expect("releases.json", name, figures(report, pq.read_table(job["output"]), name in BY_LOT))


@pytest.mark.parametrize("name", one_here(["gain", "samarati optimal", "tds", "persons"]))
def test_a_release_in_memory(name: str) -> None:
    job = job_of(name)
    table = pq.read_table(job["input"])
    released, report = anonymize(table, write_job(job))
    expect("releases.json", f"{name} in memory", figures(report, released))
    frame, its_report = anonymize(table.to_pandas(), write_job(job))
    assert its_report["metrics"] == report["metrics"]
    assert list(frame.columns) == released.column_names


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal(name: str, golden_folder: Path) -> None:
    job = job_of(name)
    if name == "a weaker release":
        run({**job, "k": 5})
    if name == "people released before":
        run({**job, "output": "out/overlap"})
    path = write_job(job)
    before = sorted(golden_folder.rglob("*"))
    done = command("run", path, "--quiet")
    assert sorted(golden_folder.rglob("*")) == before
    assert not done.out
    said = TIME.sub("TIME", done.err.replace(str(golden_folder), "").replace(str(REPOSITORY), ""))
    expect("refusals.json", name, {"status": done.status, "error": said})


def test_a_plan() -> None:
    done = command("plan", write_job(job_of("merged fragments")), "--json")
    fragments = {each["where"]: each["rows"] for each in json.loads(done.out)}
    expect("commands.json", "plan", fragments)


@pytest.mark.servers  # unit/pipeline/test_frontier.py compares its points with runs
def test_a_frontier() -> None:
    done = command(
        *("frontier", write_job(job_of("gain")), "--json", "--output", "frontier"),
        *("--k", "2,5,20,1501", "--l", "1,2"),
    )
    expect("commands.json", "frontier", points(json.loads(done.out)))


@pytest.mark.parametrize("asked", ["k=7", "k=8", "l=5", "t=0.01"])
def test_a_check(asked: str) -> None:
    job = {**job_of("gain"), "k": 7, "l": 2, "output": "checked"}
    if not Path("checked").exists():
        run(job)
    done = command("verify", "checked", "--job", write_job(job), "--set", asked, "--json")
    verdict = json.loads(done.out)
    kept = {name: verdict[name] for name in ("passed", "rows", "equivalence_classes", "achieved")}
    expect("commands.json", f"verify {asked}", {**kept, "status": done.status})
