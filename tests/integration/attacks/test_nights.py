"""What tells a person's rows of several nights from others: spelling, and columns beside."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mondrian_ops import pipeline
from mondrian_ops.cut import anonymizer
from mondrian_ops.datasets import nights
from mondrian_ops.engines import fragment
from mondrian_ops.errors import JobError, PrivacyError
from mondrian_ops.job.job import Job
from nights import silent
from tiers import one_in
from town import POPULATION, PROTECTED, Town

PEOPLE = replace(POPULATION, nights=4, change=0.0)
BLANK, INVISIBLE = " ", "\u200b"


def spelled(drop: pa.Table) -> pa.Table:
    """The drop, in which some people's diagnosis has a blank at the end, or an invisible one."""
    ends = np.array(["", BLANK, INVISIBLE])[drop["person"].to_numpy() % 3]
    texts = [
        text and text + end for text, end in zip(drop["diagnosis"].to_pylist(), ends, strict=True)
    ]
    return drop.set_column(drop.column_names.index("diagnosis"), "diagnosis", pa.array(texts))


def released(job: Job) -> list[str]:
    return pq.read_table(str(job.output))["diagnosis"].to_pylist()


def test_a_protected_series_publishes_one_spelling_and_nobody_is_told_by_it(tmp_path: Path) -> None:
    town = Town(tmp_path, **PROTECTED)
    for _, drop in nights(PEOPLE):
        town.run(spelled(drop))
        values = {each for each in released(town.job(len(town.drops) - 1)) if each}
        assert values == {each.strip(BLANK + INVISIBLE) for each in values}
    assert pipeline.verify_series(town.job(0), str(town.job(0).output))["passed"]


def computed(drop: pa.Table) -> pa.Table:
    """The drop with a number in place of the diagnosis, which some people's rounding changes."""
    diagnoses = drop["diagnosis"].combine_chunks().dictionary_encode()
    tenths = [None if code is None else code / 10 for code in diagnoses.indices.to_pylist()]
    noisy = [
        each and each + 1e-16 * (person % 3)
        for each, person in zip(tenths, drop["person"].to_pylist(), strict=True)
    ]
    return drop.set_column(drop.column_names.index("diagnosis"), "diagnosis", pa.array(noisy))


def test_nor_by_the_rounding_of_a_number(tmp_path: Path) -> None:
    town = Town(tmp_path, **PROTECTED)
    for _, drop in nights(replace(PEOPLE, nights=2)):
        noisy = computed(drop)
        town.run(noisy)
        published = {each for each in released(town.job(len(town.drops) - 1)) if each}
        assert published <= {at / 10 for at in range(100)}
        assert not {*noisy["diagnosis"].to_pylist()} - {None} <= {at / 10 for at in range(100)}
    assert pipeline.verify_series(town.job(0), str(town.job(0).output))["passed"]


@pytest.mark.servers
def test_codes_that_are_one_number_are_values_of_their_own_in_a_protected_series(
    tmp_path: Path,
) -> None:
    """They are published byte by byte, so persons are followed by them."""
    town = Town(tmp_path, **PROTECTED)
    codes = pa.array(["250.1", "250.10", "401.9", None])
    for _, drop in nights(replace(PEOPLE, nights=2)):
        of_person = codes.take(pa.array(drop["person"].to_numpy() % 4))
        at = drop.column_names.index("diagnosis")
        town.run(drop.set_column(at, "diagnosis", of_person))
        assert {*released(town.job(len(town.drops) - 1))} == {*codes.to_pylist()}
    assert pipeline.verify_series(town.job(0), str(town.job(0).output))["passed"]


@pytest.mark.servers
def test_without_protection_the_attacker_compares_bytes(tmp_path: Path) -> None:
    given_away = []
    for name, change in (("as a reader", lambda drop: drop), ("bytes", spelled)):
        (tmp_path / name).mkdir()
        town = Town(tmp_path / name, kind="snapshots")
        for _, drop in nights(PEOPLE):
            town.run(change(drop))
        verdict = pipeline.verify_series(town.job(0), str(town.job(0).output))
        given_away.append(verdict["nights"][-1]["given_away"])
    assert given_away[1] > 1.2 * given_away[0]


def respelled(town: Town, day: int) -> None:
    """A release as it was published before: with the spelling of the source."""
    job = town.job(day)
    (part,) = Path(str(job.output)).glob("part-*")
    table = pq.read_table(part)
    texts = [each and each + BLANK * (row % 7 == 0) for row, each in enumerate(released(job))]
    at = table.column_names.index("diagnosis")
    pq.write_table(table.set_column(at, "diagnosis", pa.array(texts)), part)


def test_the_attack_finds_a_release_that_spells_a_value_in_two_ways(tmp_path: Path) -> None:
    town = Town(tmp_path, **PROTECTED)
    for _, drop in nights(replace(PEOPLE, nights=2)):
        town.run(drop)
    respelled(town, 1)
    verdict = pipeline.verify_series(town.job(0), str(town.job(0).output))
    assert any("row(s) spell their value of diagnosis" in each for each in verdict["failures"])


def test_a_release_that_spells_a_value_in_two_ways_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the fragments left the spelling as it is, the last check would notice."""
    for module in (anonymizer, fragment):
        monkeypatch.setattr(module, "in_one_spelling", lambda column: column)
    _, drop = next(iter(nights(PEOPLE)))
    with pytest.raises(PrivacyError, match=r"row\(s\) spell their value of diagnosis otherwise"):
        Town(tmp_path, **PROTECTED).run(spelled(drop))


@pytest.mark.parametrize("unmatched", one_in(2, ["suppress", "counterfeit"]))
def test_a_protected_series_publishes_no_other_column_raw(tmp_path: Path, unmatched: str) -> None:
    town = Town(tmp_path, **PROTECTED, unmatched=unmatched)
    town.options = {"unlisted": "publish"}
    _, drop = next(iter(nights(PEOPLE)))
    ward = pa.array(drop["person"].to_numpy() % 10)
    job = town.deliver(drop)
    pq.write_table(drop.append_column("ward", ward), str(job.input))
    with pytest.raises(JobError, match=r"series.protect: intersection .* 'ward'"):
        pipeline.run(job, silent)
    pipeline.run(replace(job, unlisted="drop"), silent)
    assert "ward" not in pq.read_table(str(job.output)).column_names
