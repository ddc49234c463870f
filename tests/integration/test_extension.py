"""A package that adds a criterion and a store is installed, and used by processes of their own."""

from __future__ import annotations

import json
import os
import shutil
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

pytestmark = pytest.mark.servers  # which it needs not, but half a minute

ROWS, BETA = 3000, 1.2
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


def ops(site: Path | None, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """A command of mondrian_ops, with the package that is installed in ``site``."""
    path = os.pathsep.join(filter(None, [str(site or ""), os.environ.get("PYTHONPATH", "")]))
    return subprocess.run(
        [sys.executable, "-m", "mondrian_ops", *arguments],
        env={**os.environ, "PYTHONPATH": path, **settings},
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
    assert report["equivalence_classes"] > 10
    assert f"β-likeness of ill, β = {BETA}" in report["verification"]["checked"]
    assert "2.2 times as frequent" in (out / "_report.html").read_text("utf-8")
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


def test_a_job_reads_and_publishes_on_the_store_of_an_installed_package(
    site: Path, people: Path, tmp_path: Path
) -> None:
    shelf = tmp_path / "shelves" / "a"
    shelf.mkdir(parents=True)
    shutil.copy(people, shelf / "people.parquet")
    job = job_file(tmp_path, people, input="shelf://a/people.parquet", output="shelf://a/out")
    settings = {"SHELF_ROOT": str(shelf.parent)}
    for _ in range(2):  # the second release replaces the first
        run = ops(site, "run", str(job), **settings)
        assert run.returncode == 0, run.stderr
    assert sorted(path.name for path in shelf.iterdir()) == ["out", "people.parquet"]
    assert pq.read_table(shelf / "out").num_rows == ROWS
    checked = ops(site, "verify", "shelf://a/out", "--job", str(job), **settings)
    assert checked.returncode == 0, checked.stderr
    lost = ops(site, "run", str(job))
    assert "shelf://a: SHELF_ROOT does not name the folder" in lost.stderr
    none = ops(None, "run", str(job), **settings)
    assert "the scheme 'shelf' is not available" in none.stderr


def test_what_a_package_adds_travels_to_executors_that_lack_it(site: Path, tmp_path: Path) -> None:
    """As those of a Spark cluster: the zip is all that they get."""
    place, path = tmp_path / "place", os.environ.get("PYTHONPATH", "")
    settings = {**os.environ, "MONDRIAN_OPS_CACHE": str(place)}
    pack = "from mondrian_ops.engines import shipping; print(shipping.packed())"
    archive = subprocess.check_output(
        [sys.executable, "-c", pack],
        env={**settings, "PYTHONPATH": os.pathsep.join([str(site), path])},
        text=True,
    ).strip()
    assert {"beta_likeness.py", "shelf.py", "sqlite_table.py"} <= {
        *zipfile.ZipFile(archive).namelist()
    }
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
from mondrian_ops.stores.store import store_of
from mondrian_ops.tables.opening import kind_of
print(report["achieved"]["beta_likeness"] <= 0.5, store_of("shelf://a/x").name, kind_of("sqlite:///a/x").__name__)
print(sys.modules["beta_likeness"].__file__)
"""
    said = subprocess.check_output(
        [sys.executable, "-S", "-c", code], env={**settings, "PYTHONPATH": archive}, text=True
    )
    holds, store, table, module = said.split()
    assert (holds, store, table) == ("True", "shelf", "SqliteTable")
    assert Path(module) == place / Path(archive).stem / "beta_likeness.py"


def test_the_documentation_shows_the_file_of_the_example() -> None:
    pages = EXAMPLE.parents[1] / "docs" / "extend.md"
    shown = pages.read_text("utf-8")
    for file in EXAMPLE.glob("*.py"):
        assert file.read_text("utf-8") in shown
