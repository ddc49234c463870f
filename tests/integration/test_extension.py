"""A package that adds a criterion is installed, and jobs ask for it in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from added_criteria import EXAMPLE

ROWS, BETA = 3000, 0.8
ILLS = ("flu", "cold", "ulcer", "asthma", None)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the installed package."""
    place = tmp_path_factory.mktemp("installed")
    install = ("pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index")
    command = [sys.executable, "-m", *install, "--target", str(place), str(EXAMPLE)]
    subprocess.run(command, check=True, env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"})
    return place


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows whose ill depends on the age, so that small classes are far from the whole."""
    random = np.random.default_rng(7)
    age = random.integers(18, 90, ROWS)
    ill = (age // 25 + random.integers(0, 3, ROWS)) % len(ILLS)
    path = tmp_path_factory.mktemp("data") / "people.parquet"
    columns = {
        "age": pa.array(age),
        "zip": pa.array(random.integers(1000, 9999, ROWS)),
        "ill": pa.array([ILLS[at] for at in ill]),
    }
    pq.write_table(pa.table(columns), path)
    return path


def ops(site: Path | None, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command of mondrian_ops, with the package that is installed in ``site``."""
    path = os.pathsep.join(filter(None, [str(site or ""), os.environ.get("PYTHONPATH", "")]))
    return subprocess.run(
        [sys.executable, "-m", "mondrian_ops", *arguments],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )


def job_file(folder: Path, people: Path, **options: object) -> Path:
    job = {
        "input": str(people),
        "output": str(folder / "out"),
        "k": 4,
        "quasi_identifiers": ["age", "zip"],
        "sensitive": ["ill"],
        "partitioning": {"fragments": 3},
        **options,
    }
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump(job), "utf-8")
    return path


def greatest_beta(release: Path) -> float:
    """By the paper's definition: the greatest relative gain of a value in a class."""
    rows = pq.read_table(release).to_pylist()
    whole = Counter(row["ill"] for row in rows)
    classes: dict[tuple[str, str], Counter[str | None]] = {}
    for row in rows:
        classes.setdefault((row["age"], row["zip"]), Counter())[row["ill"]] += 1
    return max(
        (of_class[ill] / of_class.total()) / (whole[ill] / len(rows)) - 1
        for of_class in classes.values()
        for ill in whole
    )


def test_a_job_asks_for_the_criterion_of_an_installed_package(
    site: Path, people: Path, tmp_path: Path
) -> None:
    job, out = job_file(tmp_path, people), tmp_path / "out"
    without = ops(site, "run", str(job))
    assert without.returncode == 0, without.stderr
    assert greatest_beta(out) > BETA  # so the criterion has something to do

    run = ops(site, "run", str(job), "--set", f"beta_likeness.beta={BETA}")
    assert run.returncode == 0, run.stderr
    assert "β-likeness" in run.stdout
    report = json.loads((out / "_report.json").read_text("utf-8"))
    assert report["job"]["beta_likeness"] == {"beta": BETA}
    assert report["achieved"]["beta_likeness"] == pytest.approx(greatest_beta(out))
    assert report["achieved"]["beta_likeness"] <= BETA
    assert f"β-likeness of ill, β = {BETA}" in report["verification"]["checked"]
    assert "1.8 times as frequent" in (out / "_report.html").read_text("utf-8")
    assert report["rows"]["published"] == ROWS

    # The release as written is measured again, and a stricter requirement fails.
    for beta, status in ((BETA, 0), (BETA / 4, 1)):
        asked = ("--job", str(job), "--set", f"beta_likeness.beta={beta}")
        checked = ops(site, "verify", str(out), *asked)
        assert (checked.returncode == 0) == (status == 0), checked.stderr

    # A release that promises less does not take its place.
    weaker = ops(site, "run", str(job), "--set", f"beta_likeness.beta={2 * BETA}")
    assert weaker.returncode != 0
    assert "beta_likeness has other options, which promise less" in weaker.stderr
    none = ops(site, "run", str(job))
    assert none.returncode != 0
    assert "beta_likeness is not set, and was" in none.stderr


def test_without_the_package_the_section_is_unknown(people: Path, tmp_path: Path) -> None:
    job = job_file(tmp_path, people, beta_likeness={"beta": 1})
    run = ops(None, "run", str(job))
    assert run.returncode != 0
    assert "beta_likeness: unknown option" in run.stderr


def test_the_schema_for_editors_has_the_section(site: Path) -> None:
    written = ops(site, "schema")
    schema = json.loads(written.stdout)["properties"]["beta_likeness"]
    assert schema["required"] == ["beta"]
    assert schema["properties"]["beta"]["exclusiveMinimum"] == 0


def test_the_criterion_travels_to_executors_that_lack_it(site: Path, tmp_path: Path) -> None:
    """As those of a Spark cluster: the zip is all that they get."""
    place, path = tmp_path / "place", os.environ.get("PYTHONPATH", "")
    settings = {**os.environ, "MONDRIAN_OPS_CACHE": str(place)}
    pack = "from mondrian_ops.engines import shipping; print(shipping.packed())"
    archive = subprocess.check_output(
        [sys.executable, "-c", pack],
        env={**settings, "PYTHONPATH": os.pathsep.join([str(site), path])},
        text=True,
    ).strip()
    assert "beta_likeness.py" in zipfile.ZipFile(archive).namelist()
    libraries = sysconfig.get_path("purelib")
    job = {"k": 2, "quasi_identifiers": ["x"], "sensitive": ["s"], "beta_likeness": {"beta": 0.5}}
    code = f"""
import sys
sys.path.append({libraries!r})
from mondrian_ops.engines import executor
import pyarrow as pa
from mondrian_ops import anonymize
table = pa.table({{"x": range(400), "s": [at % 3 for at in range(400)]}})
_, report = anonymize(table, {job!r})
print(report["achieved"]["beta_likeness"] <= 0.5, sys.modules["beta_likeness"].__file__)
"""
    said = subprocess.check_output(
        [sys.executable, "-S", "-c", code], env={**settings, "PYTHONPATH": archive}, text=True
    )
    holds, module = said.split()
    assert holds == "True"
    assert Path(module) == place / Path(archive).stem / "beta_likeness.py"


def test_the_documentation_shows_the_file_of_the_example() -> None:
    pages = EXAMPLE.parents[1] / "docs" / "extend.md"
    shown = pages.read_text("utf-8")
    for file in EXAMPLE.glob("*.py"):
        assert file.read_text("utf-8") in shown
