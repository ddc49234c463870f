"""Fragments whose persons have too few values are merged before anything is cut, or refused."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mondrian_ops import pipeline
from mondrian_ops.errors import PrivacyError, UnattainableError
from mondrian_ops.stores import load_job
from nights import Nights

PEOPLE, VISITS = 400, 4
JOB = {"k": 3, "l": 2, "quasi_identifiers": ["age", "zip"], "sensitive": ["ill"],
       "entity_id": "patient", "cut": "median",
       "partitioning": {"fragments": 2, "sample": 1.0}}  # fmt: skip
WAGES = {**JOB, "sensitive": ["wage"], "l_width": {"wage": "10 %"}}


def visits(young: bool, old: bool, seed: int = 0) -> pa.Table:
    """Visits of young and old people, and whether they share an illness, and most of them a wage.

    In rows each value is rare enough.
    """
    random = np.random.default_rng(seed)
    person = np.repeat(np.arange(PEOPLE), VISITS)
    is_old = np.arange(PEOPLE) >= PEOPLE // 2
    age = np.where(is_old, 60, 20) + random.integers(0, 20, PEOPLE)
    ill = random.integers(1, 12, len(person))
    wage = 10_000 * np.exp(random.uniform(0, 4, PEOPLE))[person]
    first = np.where(is_old, old, young)[person] & (np.arange(len(person)) % VISITS == 0)
    ill[first] = 0
    wage[first & (random.random(PEOPLE) < 0.6)[person]] = 1000
    order = random.permutation(len(person))
    return pa.table(
        {
            "patient": pa.array(person).take(order),
            "age": pa.array(age[person]).take(order),
            "zip": pa.array(random.integers(0, 10, PEOPLE)[person]).take(order),
            "ill": pa.array([f"ill{each}" for each in ill]).take(order),
            "wage": pa.array(wage).take(order),
        }
    )


def job_on(folder, table: pa.Table, job: dict, **keys):
    pq.write_table(table, folder / "in.parquet")
    return load_job({**job, "input": f"{folder}/in.parquet", "output": f"{folder}/out", **keys})


@pytest.mark.parametrize("keys", [JOB, WAGES, {**JOB, "retrieval": "pushdown"}], ids=str)
def test_a_fragment_whose_persons_share_a_value_is_merged(tmp_path, keys):
    job = job_on(tmp_path, visits(False, True), keys)
    assert len(pipeline.plan(job)) == 1
    report = pipeline.run(job)
    assert report["partitioning"]["merged"] == 1
    assert report["equivalence_classes"] > 10


@pytest.mark.parametrize("keys", [JOB, WAGES], ids=str)
def test_fragments_that_can_keep_l_stay_as_they_are(tmp_path, keys):
    assert len(pipeline.plan(job_on(tmp_path, visits(False, False), keys))) == 2


@pytest.mark.parametrize("algorithm", [{}, {"algorithm": "di_mondrian", "cut": "auto"}], ids=str)
@pytest.mark.parametrize(
    ("keys", "said"),
    [(JOB, "^l: each person has one of 1 value.* lower l, or choose another column"),
     (WAGES, "^l: more than 1/2 of the persons .* lower l or the width")],
)  # fmt: skip
@pytest.mark.parametrize("fragments", [1, 2])
def test_people_who_all_share_a_value_are_refused_before_cutting(
    tmp_path, keys, said, algorithm, fragments
):
    options = {**keys["partitioning"], "fragments": fragments}
    table = visits(True, True)
    job = job_on(tmp_path, table, {**keys, **algorithm}, partitioning=options)
    with pytest.raises(UnattainableError, match=said):
        pipeline.partition(job, work=f"{tmp_path}/work")
    assert os.listdir(tmp_path) == ["in.parquet"]


@pytest.mark.parametrize("cut", ["median", "lookahead"])
def test_in_a_series_their_rows_wait(tmp_path, cut):
    """With ``lookahead`` rows of equal quasi-identifiers are parted: only the cutting shows it."""
    nights = Nights(tmp_path, series={"hold_above": 0.9, "hold_nights": 3}, **{**JOB, "cut": cut})
    for day, shared in enumerate((True, False)):
        table = visits(shared, shared).drop_columns("wage")
        others = pa.array(table["patient"].to_numpy() + PEOPLE * day)
        nights.drop(day).parent.mkdir(exist_ok=True)
        pq.write_table(table.set_column(0, "patient", others), nights.drop(day))
    rows = PEOPLE * VISITS
    held, published = (pipeline.run(nights.job(day)) for day in range(2))
    assert held["outcome"]["state"] == "held"
    assert held["series"]["waiting"] == [[1, rows]]
    assert published["rows"]["published"] == 2 * rows


def test_persons_whose_rows_are_in_several_classes_are_not_refused(tmp_path):
    """All have been at a check-up at some time, but not at the same age."""
    rows = 4000
    random = np.random.default_rng(1)
    person, age = np.repeat(np.arange(rows // 8), 8), np.tile(np.arange(20, 84, 8), rows // 8)
    ill = random.integers(1, 9, rows)
    ill[np.arange(0, rows, 8) + random.integers(0, 8, rows // 8)] = 0
    table = pa.table(
        {
            "patient": person,
            "age": age + random.integers(0, 8, rows),
            "zip": random.integers(0, 10, rows),
            "ill": ill.astype(str),
        }
    )
    job = job_on(tmp_path, table, JOB)
    assert len(pipeline.plan(job)) == 2
    assert pipeline.run(job)["equivalence_classes"] > 100


def test_of_many_persons_a_sample_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("mondrian_ops.data.person_rows.MOST_ROWS", 1200)
    for old, fragments in (False, 2), (True, 1):
        for keys in JOB, WAGES:
            assert len(pipeline.plan(job_on(tmp_path, visits(False, old), keys))) == fragments
    # Whether everybody shares a value is not known for certain.
    job = job_on(tmp_path, visits(True, True), JOB)
    assert len(pipeline.plan(job)) == 2
    with pytest.raises(PrivacyError, match="cannot be divided into classes"):
        pipeline.run(job)
