"""What an inspection shows of a table names nobody: no value of fewer than five people."""

from __future__ import annotations

import json
import re
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mondrian_ops.cli import main

ROWS = 2000
ORDER = ["very low", "low", "medium", "high"]


def rare_and_common(rows: int, draw: np.random.Generator) -> list[str]:
    """Texts of four people each, among common ones."""
    texts = [f"Canary{number // 4:03}" for number in range(40)]
    return [*texts, *draw.choice(["Common1", "Common2"], rows - 40).tolist()]


@pytest.fixture
def people() -> pa.Table:
    draw = np.random.default_rng(3)
    columns = {
        name: rare_and_common(ROWS, draw)
        for name in ("town", "x", "diagnosis", "code", "title", "level")
    }
    columns["salary"] = [*(700_001 + 13 * number for number in range(40)), *[50_000] * (ROWS - 40)]
    columns["income"] = [
        *[9_999_999] * 4,
        *(20_007 + number % 900 * 20 for number in range(ROWS - 4)),
    ]
    columns["education"] = [*["very low"] * 4, *ORDER[1:] * 665, "low"]
    columns["email"] = [f"canary{number}@mail.example" for number in range(ROWS)]
    return pa.table(columns)


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "JSON"])
def test_no_value_of_four_people_is_shown(options, people, tmp_path, capsys):
    path = tmp_path / "t.parquet"
    pq.write_table(people, path)
    assert main(["inspect", str(path), "--write", str(tmp_path / "job.yaml"), *options]) == 0
    shown = capsys.readouterr().out + (tmp_path / "job.yaml").read_text()
    assert "Common1" in shown
    hidden = {
        str(value)
        for name in people.column_names
        for value, times in Counter(people[name].to_pylist()).items()
        if times < 5
    }
    assert len(hidden) > 100
    numbers_and_words = set(re.findall(r"[\w.@]+", shown.replace(",", "")))
    assert hidden & numbers_and_words == set()
    assert not any(text in shown for text in hidden if not text.isdigit())


@pytest.mark.parametrize("often", [10, 400], ids=["200 people", "5 people"])
@pytest.mark.parametrize(
    ("name", "written"), [("patient_id", "{}"), ("MRN", "{}"), ("contact", "p{}@mail.example")]
)
def test_a_value_of_one_person_with_many_rows_is_not_shown(name, written, often, tmp_path, capsys):
    persons = [number // often for number in range(ROWS)]
    towns = ["Canary" if person == 2 else "Common" for person in persons]
    weights = [286 if person == 2 else 40 + number % 60 for number, person in enumerate(persons)]
    keys = [written.format(person) for person in persons]
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({name: keys, "town": towns, "weight": weights}), path)
    assert main(["inspect", str(path), "--json"]) == 0
    shown = capsys.readouterr().out
    assert "Canary" not in shown
    assert not re.search(r"28\d|300", json.dumps(json.loads(shown)["columns"][2]["mostly"]))


@pytest.fixture
def fifty(tmp_path, monkeypatch):
    """A policy of 50 people for what lies in ``tmp_path``."""
    policies = tmp_path / "policies.yaml"
    policies.write_text(
        "policies:\n"
        f"- {{name: clinic, inputs: [{tmp_path}/clinic], min_k: 50, min_l: 3, max_t: 0.9,\n"
        "   roles: {x: identifier, town: sensitive}}\n"
    )
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__POLICIES", str(policies))
    (tmp_path / "clinic").mkdir()
    return tmp_path / "clinic"


def test_values_of_fewer_people_than_a_policy_asks_are_not_shown(fifty, capsys):
    texts = [*["Canary"] * 40, *["Common1"] * 980, *["Common2"] * 980]
    missing = [*["n/a"] * 40, *["Common1"] * 1960]
    numbers = [*[9_999_999] * 40, *(20_007 + number % 900 * 20 for number in range(1960))]
    pq.write_table(
        pa.table({"town": texts, "x": texts, "code": missing, "income": numbers, "sex": texts}),
        fifty / "t.parquet",
    )
    job = fifty / "job.yaml"
    assert main(["inspect", str(fifty / "t.parquet"), "--write", str(job)]) == 0
    shown = capsys.readouterr().out
    assert "no value of fewer than 50 people" in shown
    assert "Common1" in shown
    assert not re.search("Canary|9,?999,?999|n/a", shown + job.read_text())


def test_the_proposed_job_meets_what_policies_ask_or_says_it(fifty, monkeypatch, capsys):
    draw = np.random.default_rng(3)
    pq.write_table(
        pa.table({
            "age": draw.integers(20, 80, ROWS),
            "x": draw.choice(["flu", "cold", "gout"], ROWS),
            "town": draw.choice(["Bonn", "Ulm", "Trier", "Hof"], ROWS),
        }),
        fifty / "t.parquet",
    )  # fmt: skip
    monkeypatch.chdir(fifty.parent)
    assert main(["inspect", str(fifty / "t.parquet"), "--write", "job.yaml"]) == 0
    text = (fifty.parent / "job.yaml").read_text()
    assert "k: 50\nl: 3\n" in text
    assert "sensitive:  # published as it is\n  - town  # a policy gives it this role" in text
    assert "set 0.9 or less" in text
    capsys.readouterr()
    assert main(["run", "job.yaml"]) == 1
    assert "max_t: 0.9; set 0.9 or less" in capsys.readouterr().err
    assert main(["run", "job.yaml", "--set", "t=0.9"]) == 0


def test_an_input_is_held_to_access_and_policies(tmp_path, monkeypatch, capsys):
    path = tmp_path / "t.csv"
    path.write_text("age\n20\n30\n")
    policies = tmp_path / "policies.yaml"
    policies.write_text(
        "unmatched: refuse\npolicies:\n"
        f"  - {{name: clinic, inputs: [{tmp_path}/clinic], min_k: 5}}\n"
    )
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__POLICIES", str(policies))
    assert main(["inspect", str(path)]) == 1
    assert "no policy matches" in capsys.readouterr().err
    monkeypatch.delenv("AIRFLOW__MONDRIAN_OPS__POLICIES")
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__ALLOWED_INPUTS", str(tmp_path / "clinic"))
    assert main(["inspect", str(path)]) == 1
    assert "allowed_inputs" in capsys.readouterr().err
