"""Whole runs on folders that are more than their files: each row is read once, or none is."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mondrian_ops import pipeline
from mondrian_ops.errors import InputError
from tiers import one_in

PEOPLE = 1000
K = 4


@pytest.fixture
def drops(tmp_path) -> Path:
    """A folder with one drop of a thousand people, whose numbers are published beside them."""
    rng = np.random.default_rng(1)
    people = {"age": rng.integers(0, 100, PEOPLE), "zip": rng.integers(0, 50, PEOPLE)}
    (tmp_path / "drops").mkdir()
    pq.write_table(
        pa.table({**people, "person": np.arange(PEOPLE)}), tmp_path / "drops" / "2024-05-01.parquet"
    )
    return tmp_path / "drops"


def job(drops: Path, **changes: object) -> dict[str, object]:
    return {
        "input": str(drops),
        "output": str(drops.parent / "out"),
        "k": K,
        "quasi_identifiers": ["age", "zip"],
        "sensitive": ["person"],
    } | changes


def released(drops: Path, **changes: object) -> pd.DataFrame:
    pipeline.run(pipeline.load_job(job(drops, **changes)))
    return pd.read_parquet(drops.parent / "out")


@pytest.mark.parametrize("kind", ["link", "hard link", "link to a folder"])
@pytest.mark.parametrize("retrieval", one_in(2, ["pushdown", "scatter"]))
def test_k_counts_people_whatever_other_names_their_file_has(drops, kind, retrieval):
    first = drops / "2024-05-01.parquet"
    if kind == "link":
        (drops / "latest.parquet").symlink_to(first.name)
    elif kind == "hard link":
        os.link(first, drops / "latest.parquet")
    else:
        (drops / "latest").symlink_to(drops)
    release = released(drops, retrieval=retrieval, partitioning={"fragments": 3})
    assert len(release) == PEOPLE
    assert release.groupby(["age", "zip"])["person"].nunique().min() >= K


def test_a_copy_beside_the_file_refuses_the_run(drops):
    (drops / "2024-05-01.parquet.bak").write_bytes((drops / "2024-05-01.parquet").read_bytes())
    with pytest.raises(InputError, match=r"2024-05-01\.parquet\.bak: has no name of a data file"):
        released(drops)
    assert not (drops.parent / "out").exists()


def test_a_table_that_removed_people_is_not_read_as_a_folder(drops):
    """Its log says that the file of a person who was deleted is none of the table's."""
    pq.write_table(
        pa.table({"age": [111], "zip": [7], "person": [PEOPLE]}), drops / "part-1.parquet"
    )
    log = drops / "_delta_log"
    log.mkdir()
    (log / "00000000000000000001.json").write_text('{"remove": {"path": "part-1.parquet"}}\n')
    for given in (drops, drops / "*.parquet", drops / "2024-05-01.parquet"):
        with pytest.raises(InputError, match=r"drops: is a table of Delta, .* snapshot"):
            released(drops, input=str(given))
    assert not (drops.parent / "out").exists()
