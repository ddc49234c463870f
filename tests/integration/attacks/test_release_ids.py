"""Enumeration: somebody who knows the names of a run looks for the page of its release.

Names of DAGs, tasks and runs are no secret, and most runs are named after the time they were due.
Where an id can be computed from them, whoever may not read a release can ask for it by its id, and
tell of any id that turns up somewhere which run it belongs to.
"""

from __future__ import annotations

import hashlib
import json
import random
import uuid
from datetime import UTC, datetime
from types import SimpleNamespace

import numpy as np
import pytest

from mondrian_ops import catalogue, stores
from mondrian_ops.operators import release_records
from releases import recorded_releases
from report_samples import make

DAG, RUN, GROUP, MAPPED = "mondrian_nightly", "scheduled__2025-06-01T02:30:00+00:00", "night", 0
MOMENT = datetime(2025, 6, 1, 2, 41, 7, 123456, tzinfo=UTC)
JOB = {"input": "in.csv", "output": "out/people", "k": 2, "quasi_identifiers": ["age"]}


@pytest.fixture
def released(tmp_path, monkeypatch):
    """Has an Airflow of its own release the same twice, at the same moment; returns its ids."""
    job = stores.load_job(JOB)
    monkeypatch.setattr(release_records, "datetime", SimpleNamespace(now=lambda _zone: MOMENT))

    def release(name: str) -> list[str]:
        random.seed(0)
        np.random.seed(0)
        for setting, file in (("CATALOGUE", "catalogue.db"), ("CATALOGUE_KEY", "key")):
            path = str(tmp_path / name / file)
            monkeypatch.setenv(f"AIRFLOW__MONDRIAN_OPS__{setting}", path)
        catalogue.use(None)  # a process asks its Airflow once where that is
        run = SimpleNamespace(dag_id=DAG, run_id=RUN)
        instance = SimpleNamespace(task_id=f"{GROUP}.wrap_up", map_index=MAPPED)
        for state in ("published", "refused"):  # the first is kept as an entry of its own
            release_records.record({"dag_run": run, "ti": instance}, job, make(state=state))
        return [entry["id"] for entry in recorded_releases()]

    return release


def test_who_has_the_names_and_the_code_computes_no_id(released):
    """Two Airflows have the same run at the same moment: each has its own ids, twice as many."""
    ours, theirs = released("ours"), released("theirs")
    assert len(ours) == len(theirs) == 2
    assert len({*ours, *theirs}) == 4


def texts() -> set[str]:
    """The names of the run, with and without the time, as one would write them down."""
    names = (DAG, RUN, GROUP, MAPPED), (DAG, RUN, f"{GROUP}.wrap_up", MAPPED), (DAG, RUN), (RUN,)
    known = [*names, *((*each, MOMENT.isoformat(timespec="microseconds")) for each in names)]
    found = {json.dumps(each, separators=signs) for each in known for signs in (None, (",", ":"))}
    return found | {sign.join(map(str, each)) for each in known for sign in ("", *" /|:.,\n\0")}


def guesses() -> set[str]:
    """All that is as long as an id among the digests of what is known of the run."""
    found = set()
    for text in (each.encode() for each in texts()):
        found |= {uuid.uuid5(uuid.NAMESPACE_URL, text.decode()).hex}
        found |= {hashlib.blake2b(text, digest_size=16).hexdigest()}
        digests = [hashlib.new(name, text) for name in hashlib.algorithms_guaranteed]
        for digest in (each.hexdigest() for each in digests if each.digest_size):
            found |= {digest[:32], digest[-32:]}
    return found


def test_no_digest_of_the_names_is_an_id(released):
    assert not guesses() & set(released("ours"))
