"""``weight:`` of a quasi-identifier: cuts keep its column finer, and the report weighs its loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mondrian_ops import anonymize
from mondrian_ops.errors import JobError

COLUMNS = {"age": "interval", "zip": "prefix", "job": "set", "town": "ladder:10/50@0"}


def people() -> pa.Table:
    rng = np.random.default_rng(4)
    return pa.table(
        {
            "age": rng.integers(18, 90, 1500),
            "zip": [f"{each:04d}" for each in rng.integers(1000, 1400, 1500)],
            "job": [f"job {each}" for each in rng.integers(0, 30, 1500)],
            "town": rng.integers(0, 200, 1500),
            "ill": rng.choice(["flu", "cold", "burn"], 1500),
        }
    )


def lost(weights: dict[str, float], **options: Any) -> dict[str, Any]:
    quasi = [
        f"{name}={how}" + (f"*{weights[name]}" if name in weights else "")
        for name, how in COLUMNS.items()
    ]
    _, report = anonymize(people(), {"k": 10, "quasi_identifiers": quasi, **options})
    return report


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize(
    "options",
    [
        {"cut": "auto"},
        {"cut": "gain"},
        {"cut": "median"},
        {"algorithm": "di_mondrian", "sensitive": ["ill"], "l": 2},
    ],
    ids=["auto", "gain", "median", "di_mondrian"],
)
def test_a_heavy_column_stays_finer(name: str, options: dict[str, Any]) -> None:
    plain, heavy = lost({}, **options), lost({name: 20}, **options)
    before, after = (each["attributes"][name]["LM"] for each in (plain, heavy))
    assert after < 0.9 * before
    light = lost({name: 0.05}, **options)["attributes"][name]["LM"]
    assert light >= before


@pytest.mark.parametrize("algorithm", ["samarati", "tds"])
def test_recodings_weigh_columns(algorithm: str) -> None:
    options: dict[str, Any] = {"algorithm": algorithm, "sensitive": ["ill"], "l": 2}
    if algorithm == "samarati":
        options["samarati"] = {"choice": "optimal", "max_suppressed": 30}
    figures = {
        weight: {
            name: lost({name: weight}, **options)["attributes"][name]["LM"] for name in COLUMNS
        }
        for weight in (0.001, 1000)
    }
    assert all(figures[1000][name] <= figures[0.001][name] for name in COLUMNS)
    assert any(figures[1000][name] < figures[0.001][name] - 0.05 for name in COLUMNS)


def test_the_report_weighs_what_is_lost() -> None:
    report = lost({"age": 3, "job": 0.5}, cut="gain")
    bits = {name: each["information_lost"] for name, each in report["attributes"].items()}
    weighed = 3 * bits["age"] + bits["zip"] + 0.5 * bits["job"] + bits["town"]
    assert report["metrics"]["information_lost"] == pytest.approx(weighed / 5.5)
    gcp = np.mean([each["NCP"] for each in report["attributes"].values()])
    assert report["metrics"]["GCP"] == pytest.approx(gcp)  # the paper's knows no weights
    (age,) = (each for each in report["job"]["quasi_identifiers"] if each["name"] == "age")
    assert age["weight"] == 3


@pytest.mark.parametrize("weight", ["0", "-1", "1001", "much"])
def test_what_is_no_weight_is_refused(weight: str) -> None:
    with pytest.raises(JobError, match=r"quasi_identifiers\[0\]\.weight"):
        anonymize(people(), {"k": 2, "quasi_identifiers": [f"age=*{weight}"]})
    with pytest.raises(JobError, match=r"is no short form.*\*WEIGHT"):
        anonymize(people(), {"k": 2, "quasi_identifiers": ["age=*"]})
