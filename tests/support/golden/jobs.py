"""The jobs of the golden set: one for each algorithm, criterion, generalization and way of reading.

A job has the keys that differ from :data:`COMMON`; its input and hierarchies are files that
:mod:`golden.sources` makes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_WHOLE = {"fragments": 1, "sample": 1.0}
_FOUR = {"fragments": 4, "sample": 1.0}
_PEOPLE = ["age", "sex", "zip=prefix", "country=hierarchy:countries.csv", "visit_date"]
_TREES = [
    "age=ladder:5/10/20@16",
    "sex",
    "zip=prefix",
    "country=hierarchy:countries.csv",
    "occupation=hierarchy:occupations.csv",
]
_HANDS = ["s1", "r1", "s2", "r2", "s3", "r3"]
_VISITS = {
    "input": "visits.parquet",
    "identifiers": [],
    "quasi_identifiers": ["born", "weight", "smokes", "ward=hierarchy:wards.json"],
    "sensitive": ["stage"],
}

COMMON: Mapping[str, Any] = {
    "input": "people.parquet",
    "k": 5,
    "identifiers": ["name"],
    "quasi_identifiers": _PEOPLE,
    "sensitive": ["diagnosis"],
    "cut": "median",
    "partitioning": _FOUR,
}

RELEASES: Mapping[str, Mapping[str, Any]] = {
    "median": {
        "input": "hands.parquet",
        "identifiers": [],
        "quasi_identifiers": _HANDS,
        "sensitive": ["hand"],
        "l": 2,
    },
    "gain": {"cut": "gain", "l": 2, "sensitive": ["diagnosis", "income"]},
    "lookahead": {"cut": "lookahead", "l": 3},
    "auto": {
        "input": "hands.parquet",
        "identifiers": [],
        "quasi_identifiers": _HANDS,
        "sensitive": ["hand"],
        "cut": "auto",
        "k": 10,
    },
    "relaxed": {"relaxed": True, "quasi_identifiers": ["age", "sex"], "k": 7},
    "di_mondrian": {"algorithm": "di_mondrian", "di_mondrian": {"cut_points": 3}, "l": 2},
    "samarati first": {
        "algorithm": "samarati",
        "samarati": {"max_suppressed": 40, "choice": "first"},
        "quasi_identifiers": _TREES,
    },
    "samarati minimal": {
        "algorithm": "samarati",
        "samarati": {"max_suppressed": 0.02, "choice": "minimal"},
        "quasi_identifiers": _TREES,
    },
    "samarati optimal": {
        "algorithm": "samarati",
        "samarati": {"max_suppressed": 40, "choice": "optimal"},
        "quasi_identifiers": _TREES,
        "l": 2,
    },
    "tds": {
        "algorithm": "tds",
        "tds": {"partitions": 3, "k_intermediate": 60},
        "quasi_identifiers": _TREES,
        "l": 2,
    },
    "entropy": {"l": 2.5, "diversity": "entropy", "cut": "gain"},
    "recursive": {"l": 2, "diversity": "recursive", "c": 2, "partitioning": _WHOLE},
    "t equal": {"t": 0.6},
    "t ordered": {"t": 0.3, "t_distance": "ordered", "sensitive": ["income"], "cut": "gain"},
    "t hierarchical": {
        **_VISITS,
        "t": 0.3,
        "t_distance": "hierarchical",
        "sensitive_hierarchy": {"stage": "stages.csv"},
    },
    "persons": {**_VISITS, "entity_id": "patient", "retrieval": "scatter"},
    "persons and levels": {
        **_VISITS,
        "entity_id": "patient",
        "algorithm": "samarati",
        "quasi_identifiers": ["smokes", "ward=hierarchy:wards.json", "weight=ladder:10/20@40"],
        "samarati": {"max_suppressed": 30},
    },
    "missing values": {**_VISITS, "missing_sensitive": "value", "l": 2, "cut": "gain"},
    "bounds": {
        **_VISITS,
        "interval_style": "bounds",
        "quasi_identifiers": ["born", "seen", "weight", "dose=grid:0.5@0.25", "smokes"],
    },
    "grids": {
        **_VISITS,
        "quasi_identifiers": ["born=grid:7@4", "seen=grid:1", "weight=grid:5", "dose=prefix"],
        "cut": "gain",
    },
    "quantile": {
        "partitioning": {"strategy": "quantile", "fragments": 3, "sample": 1.0},
        "identifier_policy": "redact",
    },
    "a small sample": {
        "partitioning": {"fragments": 5, "sample": 0.1, "min_sample": 0, "seed": 3},
        "retrieval": "pushdown",
    },
    "another seed": {
        "partitioning": {"fragments": 5, "sample": 0.1, "min_sample": 0, "seed": 4},
        "retrieval": "scatter",
    },
    "merged fragments": {
        "partitioning": {"fragments": 24, "sample": 0.05, "min_sample": 0},
        "k": 40,
        "l": 4,
    },
    "fragments of few rows": {"partitioning": {"fragments": 2, "sample": 1.0, "max_rows": 400}},
    "CSV": {"input": "people_csv", "quasi_identifiers": [*_PEOPLE, "income"]},
    "pushdown": {"input": "people_files", "retrieval": "pushdown"},
    "scatter": {"input": "people_files/*.parquet", "retrieval": "scatter"},
    "unlisted": {"unlisted": "publish", "quasi_identifiers": ["age", "country=set"]},
    "limits": {"max_gcp": 0.5, "max_risk": 0.2, "max_suppressed": 0, "require_approval": True},
    "overlap": {"overlap": "refuse"},
}
"""Jobs that publish a release, each into a directory of its name."""

BY_LOT = frozenset({"lookahead", "auto", "relaxed"})
"""Jobs where chance decides which of several equal rows is in which class."""

REFUSALS: Mapping[str, Mapping[str, Any]] = {
    "an unknown key": {"fragments": 3},
    "an unknown key of a section": {"partitioning": {"fragment": 3}},
    "a wrong type": {"k": "many"},
    "a value out of range": {"partitioning": {"sample": 5}},
    "an unknown choice": {"cut": "mean"},
    "k below 2": {"k": 1},
    "l without a sensitive column": {"l": 2, "sensitive": []},
    "recursive without c": {"l": 2, "diversity": "recursive"},
    "a cut of another algorithm": {"algorithm": "tds", "cut": "gain"},
    "a grid of another algorithm": {"algorithm": "tds", "quasi_identifiers": ["age=grid:5"]},
    "a column in two roles": {"sensitive": ["zip"]},
    "an unknown column": {"quasi_identifiers": ["agee"]},
    "an interval of text": {"quasi_identifiers": ["zip=interval"]},
    "fewer rows than k": {"k": 1501},
    "an l that the data has not": {"l": 3, "sensitive": ["sex"], "quasi_identifiers": ["age"]},
    "a diversity that the data has not": {"l": 2, "diversity": "recursive", "c": 0.01},
    "fewer persons than k": {**_VISITS, "entity_id": "patient", "k": 400},
    "a value that no leaf is": {"quasi_identifiers": ["sex=hierarchy:colours.csv"]},
    "a hierarchy of two roots": {"quasi_identifiers": ["sex=hierarchy:roots.csv"]},
    "no such hierarchy": {"quasi_identifiers": ["sex=hierarchy:nowhere.csv"]},
    "no such input": {"input": "nowhere.parquet"},
    "an output that is no release": {"output": "people_csv", "input": "people.parquet"},
    "an output inside the input": {"output": "people_csv/out", "input": "people_csv"},
    "a weaker release": {"output": "weaker", "k": 4},
    "people released before": {"overlap": "refuse", "k": 6},
    "more loss than allowed": {"max_gcp": 0.01},
    "nobody to approve": {"require_approval": True},
}
"""Jobs that are refused, with the reason on one line and exit status 1."""


def job_of(name: str) -> dict[str, Any]:
    """All keys of a job of the set."""
    keys = RELEASES[name] if name in RELEASES else REFUSALS[name]
    job = {**COMMON, "output": f"out/{name}", **keys}
    if "algorithm" in keys and "cut" not in keys:
        del job["cut"]  # only Mondrian has this option
    return job
