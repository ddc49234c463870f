"""No value of a person in anything that a run leaves behind but the release itself.

Every column holds canaries: texts with CANARY in them, numbers and dates as nobody else has. After
runs that succeed, wait and fail, all that is left is searched for them: the metadata database with
its XComs and rendered templates, every log, reports, the catalogue, and the names of all files that
were there meanwhile. Not searched are the published files. Conditions in XComs and names of tasks
name values of quasi-identifiers only where k rows have them (`test_conditions.py` among the
attacks).
"""

from __future__ import annotations

import os
import random
import re
import tempfile
import threading
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pandas as pd
import pytest
import sqlalchemy

from dag_runs import asked_for, form, published, states, tries

pytestmark = pytest.mark.airflow

DAG = "mondrian_anonymize"
ROWS = 900
AGE, WEIGHT, VISIT = 975318642, 86421.97531, "2871-03-09"
# So many digits that no clock and no duration in a log has them by chance.
IDENTIFIER, INCOME, CODE = 731 * 10**12, 555 * 10**12, 888 * 10**12
# Exponents and thousands separators too; of numbers that all rows have, those of the rows.
RARE = re.compile(
    r"CANARY|975,?318,?642|9\.75318\d*e|9\.75319e|86,?421\.97|8\.64219[78]\d*e|2871-0?3",
    re.IGNORECASE,
)
COMMON = re.compile(r"(?=((?:731|555|888)\d{12}))")
ROLES = {
    "identifiers": ["name", "ssn"],
    "quasi_identifiers": [
        "age",
        "weight",
        "visit",
        "zip=prefix",
        "town=hierarchy:towns.csv",
        "job=set",
    ],
    "sensitive": ["diagnosis", "income"],
    "unlisted": "publish",
}
SAYS = {
    "impossible": "k: the input has 900 rows",
    "undiverse": "lower l",
    "no_leaf": "column 'town': 1 row(s)",
    "no_number": "column 'age'",
    "ragged": "ragged.csv, line 452",
    "damaged": "cannot be read as Parquet",
    "not_text": "not UTF-8 text",
}


def people() -> pd.DataFrame:
    """Each value of an identifying, sensitive or unlisted column is a canary."""
    chance = random.Random(0)
    rows = pd.DataFrame(
        {
            "name": [f"CANARYname{row:04d}" for row in range(ROWS)],
            "ssn": [IDENTIFIER + row for row in range(ROWS)],
            "age": [chance.randrange(20, 80) for _ in range(ROWS)],
            "weight": [chance.randrange(400, 1200) / 10 for _ in range(ROWS)],
            "visit": [date(2025, 1, 1) + timedelta(chance.randrange(300)) for _ in range(ROWS)],
            "zip": [f"{chance.randrange(10000, 99999)}" for _ in range(ROWS)],
            "town": [f"town{chance.randrange(20):02d}" for _ in range(ROWS)],
            "job": [f"job{chance.randrange(20):02d}" for _ in range(ROWS)],
            "diagnosis": [f"CANARYdiagnosis{row % 25}" for row in range(ROWS)],
            "income": [INCOME + row % 30 for row in range(ROWS)],
            "note": [f"CANARYnote{row}" for row in range(ROWS)],
            "code": [CODE + row for row in range(ROWS)],
        }
    )
    rare = [("age", AGE), ("weight", WEIGHT), ("visit", date.fromisoformat(VISIT))]
    rare += [("zip", "19CANARY9"), ("town", "town03CANARY"), ("job", "job03CANARY")]
    for row, (column, value) in enumerate(rare):
        rows.loc[100 * row + 50, column] = value
    return rows


@pytest.fixture(scope="module")
def seen(project) -> Iterator[set[str]]:
    """The names of all files and folders that are there while the runs last."""
    names: set[str] = set()
    over = threading.Event()

    def watch():
        while not over.wait(0.05):
            for place in (project.root / "out", Path(tempfile.gettempdir())):
                names.update(_names(place, deep=place.name == "out"))

    watching = threading.Thread(target=watch)
    watching.start()
    yield names
    over.set()
    watching.join()


def _names(place: Path, deep: bool) -> Iterator[str]:
    for _folder, folders, files in os.walk(place):
        yield from [*folders, *files]
        if not deep:
            return


@pytest.fixture(scope="module")
def runs(request, project, seen) -> dict[str, str]:
    """Start them all; run id by name."""
    data = project.root / "data" / "canaries"
    data.mkdir(parents=True)
    rows = people()
    towns = sorted(rows["town"].unique())
    tree = "".join(f"{town};{town[:5]};*\n" for town in towns)
    (project.root / "include" / "hierarchies" / "towns.csv").write_text(tree)
    rows.to_parquet(data / "people.parquet")
    rows.to_csv(data / "people.csv", index=False)
    text = (data / "people.csv").read_text()
    lines = text.splitlines(keepends=True)
    rows.assign(town=rows["town"].where(rows.index != 450, "CANARYvillage")).to_parquet(
        data / "no_leaf.parquet"
    )
    ages = rows["age"].astype(str).where(rows.index != 450, "CANARYage")
    rows.assign(age=ages).to_csv(data / "no_number.csv", index=False)
    lines[451] = lines[451].rstrip("\n") + ",CANARYmore\n"
    (data / "ragged.csv").write_text("".join(lines))
    whole = (data / "people.parquet").read_bytes()
    (data / "damaged.parquet").write_bytes(whole[:2000] + b"CANARY" * 99 + whole[2594:-60])
    (data / "not_text.csv").write_bytes(text.encode().replace(b"CANARYname0600", b"CANARY\xff\xfe"))

    def start(name, file=None, **changed):
        job = project.job(
            f"canaries_{name}", **{**ROLES, "input": str(data / (file or "people.parquet"))}
        )
        options = {"unlisted": "publish", "overlap": "warn", "retrieval": "scatter", **changed}
        return project.airflow.trigger(DAG, form({**job, **options}, fragments=2))

    fails = {
        "impossible": {"k": 100_000},
        "undiverse": {"l": 500},
        "no_leaf": {"file": "no_leaf.parquet"},
        "no_number": {"file": "no_number.csv", "quasi_identifiers": ["age=interval"]},
        "ragged": {"file": "ragged.csv"},
        "damaged": {"file": "damaged.parquet"},
        "not_text": {"file": "not_text.csv"},
    }
    return {
        "parquet": start("parquet"),
        "csv": start("csv", "people.csv", retrieval="pushdown", interval_style="bounds"),
        "levels": start("levels", algorithm="samarati", cut="auto", samarati_max_suppressed=0.1),
        "top_down": start("top_down", algorithm="tds", cut="auto", tds_partitions=2),
        "waiting": start("waiting", require_approval=True),
        **{name: start(name, **fails[name]) for name in asked_for(request, "failing")},
    }


@pytest.mark.parametrize("name", ["parquet", "csv", "levels", "top_down"])
def test_the_canaries_are_published(project, runs, name):
    """Or there would be nothing to find elsewhere."""
    assert project.airflow.finish(DAG, runs[name]) == "success"
    assert published(project.output(f"canaries_{name}")) > 0
    files = project.output(f"canaries_{name}").glob("part-*.parquet")
    assert any(canaries(pd.read_parquet(file).to_csv()) for file in files)


@pytest.mark.parametrize(
    "failing",
    [
        # One of each kind of error; that the others name no value, the tests of bad input show.
        *("undiverse", "no_leaf", "ragged", "damaged"),
        *(pytest.param(name, marks=pytest.mark.soak) for name in ("impossible", "no_number")),
        pytest.param("not_text", marks=pytest.mark.soak),
    ],
)
def test_a_failure_tells_what_is_wrong(project, runs, failing):
    assert project.airflow.finish(DAG, runs[failing]) == "failed"
    tasks = project.airflow.tasks(DAG, runs[failing])
    assert states(tasks)["partition", "failed"] == 1
    assert tries(tasks)["partition"] == 1
    (partition,) = [task for task in tasks if task["task_id"] == "partition"]
    assert SAYS[failing] in project.airflow.log_of(DAG, runs[failing], partition)


def test_nothing_else_holds_a_canary(project, runs, seen):
    def waits():
        tasks = project.airflow.tasks(DAG, runs["waiting"])
        return states(tasks)["wrap_up", "awaiting_input"] == 1

    assert project.airflow.comes_true(waits)
    found = {}
    searched = {"names": "\n".join(seen), **database(project), **files(project)}
    for place, text in searched.items():
        if hits := canaries(text):
            found[place] = sorted(hits)[:3]
    assert {place for place in searched if "xcom" in place}
    assert {place for place in searched if place.endswith(".log")}
    assert {place for place in searched if place.endswith("_report.html")}
    assert found == {}


def test_the_search_finds_canaries():
    assert canaries("…, canaryname0001") == {"canary"}
    assert canaries(f"[{AGE:,}] {AGE:.5e} {WEIGHT} {VISIT}") == {
        *("975,318,642", "9.75319e", "86421.97", "2871-03")
    }
    assert canaries(f"0.1{INCOME + 3}9 {CODE + 5000}") == {str(INCOME + 3)}
    assert canaries(f"{WEIGHT:e} 2025-11-24T08:13:08.642197Z") == {"8.642198e"}


def canaries(text: str) -> set[str]:
    """What in a text is a value of somebody."""
    numbers = {match[1] for match in COMMON.finditer(text)}
    planted = {
        number
        for number in numbers
        for first in (IDENTIFIER, INCOME, CODE)
        if first <= int(number) < first + ROWS
    }
    return planted | {match[0].lower() for match in RARE.finditer(text)}


def database(project) -> dict[str, str]:
    """All that Airflow's database holds, by table."""
    url = project.airflow.environment["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"]
    engine = sqlalchemy.create_engine(url)
    with engine.connect() as connection:
        tables = sqlalchemy.inspect(connection).get_table_names()
        held = {
            f"table {table}": [
                _text(value)
                for row in connection.execute(sqlalchemy.text(f'SELECT * FROM "{table}"'))  # noqa: S608
                for value in row
            ]
            for table in tables
        }
    engine.dispose()
    return {table: "\n".join(texts) for table, texts in held.items()}


def _text(value: object) -> str:
    if isinstance(value, bytes | memoryview):
        return bytes(value).decode("latin-1")
    return str(value)


def files(project) -> dict[str, str]:
    """Every file of Airflow and of the releases, but the published rows and the database."""
    places = [project.root / "airflow", project.root / "out"]
    return {
        str(path): path.read_bytes().decode("latin-1")
        for place in places
        for path in place.rglob("*")
        if path.is_file() and not _holds_rows(path)
    }


def _holds_rows(path: Path) -> bool:
    """Published files, the private working files of the release that waits, and SQLite's."""
    working = any(".mondrian_ops-" in part for part in path.parts)
    return path.name.startswith(("part-", "airflow.db")) or working
