"""The conditions of fragments: what they tell of values that few people have.

A cut value is a value of the data. With many fragments of a column whose values are unique, nearly
all of them are cut values of one plan or another: whoever may see labels, logs, XComs or reports
would collect them, run by run. The long examples run with the tests of servers.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mondrian_ops import cli, pipeline
from mondrian_ops import report as reports
from mondrian_ops.operators import AnonymizeFragmentOperator
from mondrian_ops.stores import load_job
from tiers import in_soak, one_here

K = 5
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_NAME = re.compile(r"Nom[a-z]+")


def source(rows: int, seed: int = 0) -> pa.Table:
    """People whose numbers, names, weights and days of birth are their own, or nearly so."""
    draw = np.random.default_rng(seed)
    first = date(1920, 1, 1)
    days = draw.choice(36_500, rows, replace=rows > 36_500)
    return pa.table(
        {
            "ssn": 100_000_000 + 7 * draw.choice(128_571_429, rows, replace=False),
            "name": ["Nom" + "".join(draw.choice([*"abcdefgh"], 9)) for _ in range(rows)],
            "weight": draw.uniform(40, 140, rows),
            "born": [first + timedelta(int(day)) for day in days],
            "age": draw.integers(18, 90, rows),
            "income": np.round(draw.lognormal(10, 1, rows)).astype(np.int64),
            "person": draw.integers(0, rows // 2, rows),
            "illness": [f"Illness{at % 7}" for at in range(rows)],
        }
    )


def described(directory: Path, table: pa.Table, **keys: Any) -> Path:
    """The file of a job on these people, whose input is written."""
    path = directory / "people.parquet"
    if not path.exists():
        pq.write_table(table, path)
    job = {
        "input": str(path),
        "output": str(directory / "release"),
        "k": K,
        "sensitive": ["illness"],
        "unlisted": "drop",
        **keys,
    }
    (directory / "job.json").write_text(json.dumps(job))
    return directory / "job.json"


def all_that_is_shown(
    path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> str:
    """All that is said of a run: XComs, labels, logs, what is printed, the report in every form."""
    caplog.set_level("DEBUG")
    work, job = str(path.parent / ".work"), load_job(path)
    said: list[str] = []
    fragments = pipeline.partition(job, work=work, progress=lambda *told: said.append(str(told)))
    labels = [
        AnonymizeFragmentOperator(task_id="t", job={}, fragment=each.to_dict()).fragment_name
        for each in fragments
    ]
    summaries = [pipeline.anonymize_fragment(each) for each in fragments]
    report = pipeline.wrap_up(job, work=work, summaries=summaries)
    pipeline.discard(work)
    assert cli.main(["plan", str(path)]) == 0
    printed = capsys.readouterr()
    files = [path.read_text() for path in (path.parent / "release").glob("_*")]
    return "\n".join(
        [
            *(json.dumps(each.to_dict()) for each in [*fragments, *summaries]),
            *labels,
            *said,
            *files,
            reports.render_text(report),
            reports.render_markdown(report),
            json.dumps(reports.Report.of(report).overview()),
            printed.out,
            printed.err,
            caplog.text,
        ]
    )


def named(text: str, table: pa.Table, column: str, least: int = K) -> set[Any]:
    """The values of a column that a text names, and that fewer than ``least`` rows have."""
    rows = Counter(table[column].to_pylist())
    if column == "name":
        mentioned: Iterable[Any] = _NAME.findall(text)
    elif column == "born":
        mentioned = map(date.fromisoformat, _DAY.findall(text))
    else:
        mentioned = map(float, _NUMBER.findall(text))
    return {value for value in mentioned if 0 < rows[value] < least}


@pytest.mark.servers
@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.soak) for n in (1, 2))])
def test_a_unique_number_is_named_nowhere(tmp_path, caplog, capsys, seed):
    table = source(5_000)
    partitioning = {"fragments": 200, "seed": seed, "sample": 0.5}
    job = described(tmp_path, table, quasi_identifiers=["ssn"], partitioning=partitioning)
    text = all_that_is_shown(job, caplog, capsys)
    assert text.count("ssn: from") > 200  # what is searched is there
    assert not named(text, table, "ssn")


WAYS: Sequence[Mapping[str, Any]] = (
    {},
    {"entity_id": "person"},
    {"algorithm": "di_mondrian"},
    {"strategy": "quantile"},
    {"retrieval": "pushdown"},
    {"algorithm": "samarati", "samarati": {"max_suppressed": 0.3}},
    {"algorithm": "tds"},
)


@pytest.mark.parametrize(
    ("column", "keys"),
    [
        *one_here(("ssn", keys) for keys in (*WAYS[:4], WAYS[-1])),
        *(("name", WAYS[1]), ("weight", WAYS[-1]), ("born", WAYS[1])),
        *in_soak(("ssn", keys) for keys in WAYS[4:-1]),
        *in_soak([("name", WAYS[-1]), ("weight", WAYS[1]), ("born", WAYS[-1])]),
    ],
    ids=lambda each: each if isinstance(each, str) else "-".join(map(str, each.values())),
)
def test_what_few_people_have_is_named_nowhere(tmp_path, caplog, capsys, column, keys):
    """Whatever type it has, however fragments and classes are made of it, whoever counts."""
    table = source(1_500)
    keys = dict(keys)
    partitioning = {"fragments": 30, "sample": 1.0, "strategy": keys.pop("strategy", None)}
    partitioning = {key: value for key, value in partitioning.items() if value is not None}
    job = described(tmp_path, table, quasi_identifiers=[column], partitioning=partitioning, **keys)
    text = all_that_is_shown(job, caplog, capsys)
    if keys.get("algorithm") not in ("samarati", "tds"):  # whose fragments may be merged into one
        assert re.search(f"{column}: (lowest|highest|from)", text)
    assert not named(text, table, column)


def values_shown(job: Path) -> dict[str, set[Any]]:
    """The values that the fragments of a plan show, by column."""
    found: dict[str, set[Any]] = {}
    for fragment in pipeline.plan(load_job(job)):
        for predicate in (each for all_of in fragment.any_of for each in all_of):
            found.setdefault(predicate["column"], set()).add(predicate.get("value"))
    return {column: values - {None} for column, values in found.items()}


@pytest.mark.servers
@pytest.mark.parametrize(
    ("column", "entity"),
    [
        *(("ssn", None), ("born", "person"), ("income", "person"), ("weight", None)),
        pytest.param("ssn", "person", marks=pytest.mark.soak),
        pytest.param("born", None, marks=pytest.mark.soak),
        pytest.param("income", None, marks=pytest.mark.soak),
        pytest.param("weight", "person", marks=pytest.mark.soak),
    ],
)
def test_many_runs_together_show_no_two_values_that_few_people_are_between(
    tmp_path, column, entity
):
    """Round values are shown where the data has gaps; together they close in on nobody."""
    table = source(2_000)
    shown: set[Any] = set()
    for seed in range(6):
        for fragments in (7, 60):
            asked = {"fragments": fragments, "seed": seed, "sample": 0.5}
            keys = {} if entity is None else {"entity_id": entity}
            job = described(tmp_path, table, quasi_identifiers=[column], partitioning=asked, **keys)
            shown |= values_shown(job).get(column, set())
    if column == "born":
        shown = set(map(date.fromisoformat, shown))
    assert len(shown) > 5
    rows = table[column].to_pylist()
    of = table["person"].to_pylist() if entity else range(len(rows))

    def people(first: Any, last: Any, *, between: bool) -> int:
        found = zip(rows, of, strict=True)
        if between:
            return len({who for value, who in found if first < value < last})
        return len({who for value, who in found if first <= value <= last})

    held = {value for value in shown if people(value, value, between=False) >= K}
    assert all(value in held or value not in rows for value in shown)
    # Between two that are no neighbours are the people between those that lie between them.
    assert all(people(*pair, between=True) >= K for pair in pairwise(sorted(shown - held)))


def test_what_many_people_have_is_still_told(tmp_path):
    table = source(2_000)
    partitioning = {"fragments": 4, "sample": 1.0}
    job = described(tmp_path, table, quasi_identifiers=["age"], partitioning=partitioning)
    wheres = [fragment.where for fragment in pipeline.plan(load_job(job))]
    assert re.fullmatch(r"age <= \d+", wheres[0])
    assert re.fullmatch(r"age > \d+", wheres[-1])
    assert all("%" not in where for where in wheres)


@pytest.mark.parametrize(
    ("column", "strategy", "is_round"),
    [("age", "multidimensional", False), ("salary", "quantile", True)],
)
def test_what_is_shown_in_values_takes_the_rows_that_the_fragment_has(
    tmp_path, column, strategy, is_round
):
    """Read by somebody who has the source, and only the condition."""
    table = source(2_000)
    draw = np.random.default_rng(1)
    steps = [100 * at + 20 + draw.choice(60, 50, replace=False) for at in range(40)]
    table = table.append_column("salary", pa.array(np.concatenate(steps)))
    partitioning = {"fragments": 40, "sample": 1.0, "strategy": strategy}
    job = described(tmp_path, table, quasi_identifiers=[column], partitioning=partitioning)
    fragments = pipeline.plan(load_job(job))
    assert len(fragments) > 4
    for fragment in fragments:
        taken = [
            any(
                all((value <= each["value"]) == (each["op"] == "<=") for each in all_of)
                for all_of in fragment.any_of
            )
            for value in table[column].to_pylist()
        ]
        assert sum(taken) == fragment.rows
    shown = {each["value"] for f in fragments for all_of in f.any_of for each in all_of}
    assert len(shown) == len(fragments) - 1
    assert is_round == shown.isdisjoint(table[column].to_pylist())


COUNTRIES = "\n".join(f"C{at:04};{'North' if at < 2_000 else 'South'};World" for at in range(4_000))


def test_leaves_of_a_hierarchy_that_few_people_have_are_neither_named_nor_counted(
    tmp_path, caplog, capsys
):
    """The file is known: how many leaves a fragment takes would tell which one is the last."""
    (tmp_path / "codes.csv").write_text(COUNTRIES + "\n")
    draw = np.random.default_rng(4)
    codes = [f"C{at:04}" for at in draw.choice(4_000, 900, replace=False)]
    common = ["C0100", "C1500", "C2500", "C3900"]
    codes = [code for code in codes if code not in common]
    table = pa.table({"code": codes + common * 150})
    table = table.append_column("illness", pa.array(["a", "b", "c"] * 500)[: table.num_rows])
    job = described(
        tmp_path,
        table,
        quasi_identifiers=["code=hierarchy:codes.csv"],
        partitioning={"fragments": 30, "sample": 1.0},
    )
    text = all_that_is_shown(job, caplog, capsys)
    assert set(re.findall(r"C\d{4}", text)) == set(common)
    assert not re.findall(r"IN \{[^}]*\d+ more", text)
