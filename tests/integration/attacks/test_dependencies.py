"""A column that is published as it is and gives a generalized one away: an election's results.

A published extract had ``popul`` generalized and ``logpopul`` beside it. Every ``popul`` could be
computed, and a check of the release still found k = 10.
"""

from __future__ import annotations

import json
import logging
import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adversary import Release, opened
from mondrian_ops import anonymize, pipeline, publish
from mondrian_ops.errors import PrivacyError
from mondrian_ops.report import render_html, render_markdown, render_text
from mondrian_ops.stores import load_job

K = 10
JOB: dict[str, Any] = {
    "k": K,
    "quasi_identifiers": ["popul", "state"],
    "sensitive": ["winner"],
    "unlisted": "publish",
    "cut": "median",
}
LOGARITHM = "'logpopul' stays as it is and singles out"
FOLLOWS = "gives away 'popul' (by its order, 100 %)"
CAPITAL = "'capital' stays as it is and gives away 'state' (in 100 % of the rows)"


def counties(rows: int = 3000) -> pa.Table:
    """Counties of fifty states, with columns that somebody has added to compute with."""
    random = np.random.default_rng(0)
    popul = random.lognormal(10, 1.5, rows).astype(np.int64) + 1
    state = random.integers(0, 50, rows)
    return pa.table(
        {
            "popul": popul,
            "state": [f"state{each:02}" for each in state],
            "logpopul": np.log(popul),
            "capital": [f"capital{each * 37 % 50:02}" for each in state],
            "winner": np.where(random.random(rows) < 0.6, "A", "B"),
        }
    )


def released(folder: Path, table: pa.Table, **keys: Any) -> Release:
    folder.mkdir(exist_ok=True)
    pq.write_table(table, folder / "in.parquet", row_group_size=10_000)
    job = {"input": str(folder / "in.parquet"), "output": str(folder / "release"), **JOB, **keys}
    if "algorithm" in keys:
        del job["cut"]
    return opened(folder / "release", pipeline.run(load_job(job)))


def of_survey(report: Any) -> list[dict[str, Any]]:
    """What was found before the rows were cut, and so is the same however they are divided."""
    return [each for each in report["dependencies"]["findings"] if each["how"] != "jointly"]


def computed(release: Release, table: pa.Table) -> float:
    """The share of counties whose population the attacker computes right."""
    exact = set(table["popul"].to_pylist())
    guesses = [round(math.exp(row["logpopul"])) for row in release.rows if "logpopul" in row]
    return sum(guess in exact for guess in guesses) / table.num_rows


@pytest.mark.parametrize("keys", [{}, {"algorithm": "samarati", "samarati": {"max_suppressed": 1}}])
def test_a_logarithm_gives_away_what_was_generalized_and_the_report_begins_with_it(
    tmp_path, caplog, keys
):
    caplog.set_level(logging.WARNING)
    table = counties()
    if keys:
        table = table.set_column(0, "popul", pa.array(table["popul"].to_numpy() // 5000 * 5000 + 1))
        logarithms = pa.array(np.log(table["popul"].to_numpy()))
        table = table.set_column(2, "logpopul", logarithms)
    release = released(tmp_path, table, **keys)
    assert release.report["achieved"]["k"] >= K
    assert computed(release, table) > 0.9
    *capital, logarithm, jointly = release.report["dependencies"]["notes"]
    assert "'logpopul'" in jointly and "in their classes" in jointly
    assert "'logpopul'" in logarithm and "gives away 'popul'" in logarithm
    assert capital[0].startswith(CAPITAL)
    shown = " ".join(render_text(release.report, 120).split())
    assert shown.index(logarithm) < shown.index("k-anonymity")
    page = render_html(release.report).replace("&#39;", "'")
    assert page.index(logarithm) < page.index("Required and achieved")
    assert render_markdown(release.report).index("logpopul") < 500
    assert logarithm in caplog.messages
    for value in ("state07", "capital07", "winner"):
        assert value not in " ".join(release.report["dependencies"]["notes"])


def test_refused_before_the_rows_are_cut(tmp_path, monkeypatch):
    monkeypatch.setattr("mondrian_ops.pipeline.api.anonymize_all", None)
    with pytest.raises(PrivacyError) as refused:
        released(tmp_path, counties(), dependencies="refuse")
    assert str(refused.value).startswith("dependencies: the release is refused and not published: ")
    assert LOGARITHM in str(refused.value) and FOLLOWS in str(refused.value)
    assert "make it a quasi-identifier or an identifier, or leave it out" in str(refused.value)
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


def test_refused_where_a_policy_says_so(tmp_path, monkeypatch):
    pq.write_table(counties(), tmp_path / "in.parquet")
    policy = {"name": "elections", "inputs": [str(tmp_path)], "dependencies": "refuse"}
    (tmp_path / "policies.json").write_text(json.dumps({"policies": [policy]}))
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__POLICIES", str(tmp_path / "policies.json"))
    job = load_job({"input": f"{tmp_path}/in.parquet", "output": f"{tmp_path}/release", **JOB})
    with pytest.raises(PrivacyError, match=r"^dependencies: the release is refused"):
        pipeline.run(publish.check_job(job))
    assert not (tmp_path / "release").exists()


def test_refused_where_a_policy_says_so_only_since_the_rows_were_partitioned(tmp_path):
    pq.write_table(counties(), tmp_path / "in.parquet")
    job = load_job({"input": f"{tmp_path}/in.parquet", "output": f"{tmp_path}/release", **JOB})
    work = publish.work_path(str(job.output), "a run")
    fragments = pipeline.partition(job, work=work)
    summaries = [pipeline.anonymize_fragment(fragment) for fragment in fragments]
    stricter = replace(job, dependencies="refuse")
    for step in (
        partial(pipeline.check, stricter, work=work, summaries=summaries),
        partial(pipeline.publish, stricter, work=work),
    ):
        pipeline.check(job, work=work, summaries=summaries)
        with pytest.raises(PrivacyError, match=r"^dependencies: the release is refused"):
            step()
    assert not (tmp_path / "release").exists()


def test_refused_in_memory(caplog):
    with pytest.raises(PrivacyError, match="'logpopul' stays as it is"):
        anonymize(counties(), {**JOB, "dependencies": "refuse"})
    _, report = anonymize(counties(), JOB)
    assert any(FOLLOWS in note for note in report["dependencies"]["notes"])
    assert report["dependencies"]["notes"] == caplog.messages


def test_the_remedies_end_the_attack(tmp_path):
    """Left out, or generalized too: nothing is warned of, and nothing refused."""
    table = counties().drop_columns("capital")
    left_out = released(tmp_path / "1", table, unlisted="drop", dependencies="refuse")
    quasi = [*JOB["quasi_identifiers"], "logpopul"]
    both = released(tmp_path / "2", table, quasi_identifiers=quasi, dependencies="refuse")
    for release in (left_out, both):
        assert "dependencies" not in release.report
    assert computed(left_out, table) == 0


@pytest.mark.parametrize(
    ("retrieval", "fragments"),
    [
        ("scatter", 4),
        *(
            pytest.param(*each, marks=pytest.mark.servers)
            for each in (("scatter", 1), ("pushdown", 1), ("pushdown", 4))
        ),
    ],
)
def test_of_many_rows_a_sample_is_confirmed_by_a_pass_over_all(tmp_path, fragments, retrieval):
    """Of 60,000 rows a third is sampled: most households have one row there, and four in all."""
    rows = 60_000
    order = np.random.default_rng(0).permutation(rows)
    table = counties(rows).append_column("household", pa.array(order // 4))
    table = table.append_column("street", pa.array(order // 400))
    keys = {"quasi_identifiers": ["popul", "street"], "retrieval": retrieval,
            "partitioning": {"fragments": fragments}}  # fmt: skip
    report = released(tmp_path, table, **keys).report
    surveyed = of_survey(report)
    found = {(each["column"], each["quasi_identifier"]): each["share"] for each in surveyed}
    assert found.keys() == {
        ("household", None),
        ("household", "street"),
        ("logpopul", None),
        ("logpopul", "popul"),
    }
    assert found["household", None] == found["household", "street"] == 1.0
    in_memory = anonymize(table, {**JOB, "quasi_identifiers": ["popul", "street"]})[1]
    assert of_survey(in_memory) == surveyed


def test_a_sensitive_column_is_published_by_design_and_not_warned_of(tmp_path):
    table = counties().select(["popul", "state", "winner"])
    assert "dependencies" not in released(tmp_path, table, dependencies="refuse").report
