"""Bad input: a clear error without any value of the data, nothing published, nothing left."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import traceback
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from canary_people import CANARIES, canary_people
from kept_folder import KeptFolder
from mondrian_ops import anonymize, pipeline, publish
from mondrian_ops.engines.handover import Fragment
from mondrian_ops.errors import (
    HierarchyError,
    InputError,
    JobError,
    MondrianOpsError,
    PrivacyError,
    StorageError,
)


class Site:
    """A directory with an input, hierarchies, and a good release of another day."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.input = root / "data" / "people.parquet"
        self.output = root / "out" / "people"

    def make(self) -> None:
        self.input.parent.mkdir()
        pq.write_table(canary_people(40), self.input)
        self.write("countries.csv", "Italy;Europe;*\nCanaria;Africa;*\n")
        self.output.parent.mkdir()
        self.run()

    def write(self, name: str, text: str) -> None:
        (self.root / name).write_text(text, encoding="utf-8")

    def job(self, **keys: Any) -> dict[str, Any]:
        return {
            "input": str(self.input),
            "output": str(self.output),
            "k": 3,
            "l": 2,
            "identifiers": ["ssn"],
            "quasi_identifiers": ["age", "country=set", "zip=prefix"],
            "sensitive": ["illness"],
            "cut": "gain",
            "partitioning": {"fragments": 3, "sample": 1.0},
            **keys,
        }

    def load(self, job: dict[str, Any]):
        self.write("job.json", json.dumps(job))
        return pipeline.load_job(self.root / "job.json")

    def run(self, **keys: Any) -> dict[str, Any]:
        return pipeline.run(self.load(self.job(**keys)))

    def state(self) -> dict[str, str]:
        """Every file and directory below the output's parent, with what it holds."""
        return {
            str(path.relative_to(self.output.parent)): ""
            if path.is_dir()
            else hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(self.output.parent.rglob("*"))
        }


@pytest.fixture(scope="module")
def kept_site(tmp_path_factory: pytest.TempPathFactory) -> KeptFolder:
    return KeptFolder(tmp_path_factory.mktemp("site"), lambda root: Site(root).make())


@pytest.fixture
def site(kept_site: KeptFolder, monkeypatch: pytest.MonkeyPatch) -> Site:
    found = Site(kept_site.brought_back(monkeypatch))
    assert (found.output / "_SUCCESS").exists()
    return found


def refused(call: Callable[[], object], kind: type[MondrianOpsError], *says: str) -> None:
    """``call`` must fail with ``kind``, say all of ``says`` and none of the canaries."""
    with pytest.raises(MondrianOpsError) as caught:
        call()
    shown = "".join(traceback.format_exception(caught.value))
    assert isinstance(caught.value, kind), shown
    for word in says:
        assert word in str(caught.value)
    # Not in the message, and not in what a task's log shows of it.
    assert not [canary for canary in CANARIES if canary in shown]


# What the job or the data cannot give: (job keys, error, words of the message)

JOBS: dict[str, tuple[dict[str, Any], type[MondrianOpsError], tuple[str, ...]]] = {
    "missing file": ({"input": "nowhere.parquet"}, InputError, ("nowhere.parquet", "no such")),
    "fewer rows than k": ({"k": 41}, PrivacyError, ("40 rows", "k = 41", "lower k")),
    "fewer sensitive values than l": ({"l": 3}, PrivacyError, ("'illness'", "l = 3", "lower l")),
    "an entropy that the data has not": (
        {"l": 2.5, "diversity": "entropy"},
        PrivacyError,
        ("'illness'", "lower l"),
    ),
    "a recursive diversity that the data has not": (
        {"l": 2, "diversity": "recursive", "c": 0.5},
        PrivacyError,
        ("recursive", "illness", "lower k or l"),
    ),
    "unknown quasi-identifier": (
        {"quasi_identifiers": ["agee"]},
        JobError,
        ("quasi_identifiers", "'agee'", "did you mean 'age'"),
    ),
    "unknown identifier": ({"identifiers": ["name"]}, JobError, ("identifiers", "'name'")),
    "unknown sensitive column": ({"sensitive": ["ill"]}, JobError, ("sensitive", "'ill'")),
    "a quasi-identifier twice": (
        {"quasi_identifiers": ["age", "zip=prefix", "age=set"]},
        JobError,
        ("quasi_identifiers[2]", "'age'", "twice"),
    ),
    "a sensitive column that is a quasi-identifier": (
        {"sensitive": ["zip"]},
        JobError,
        ("sensitive[0]", "'zip'", "remove it from one"),
    ),
    "an identifier that is a quasi-identifier": (
        {"identifiers": ["zip"]},
        JobError,
        ("quasi_identifiers[2]", "'zip'"),
    ),
    "k below 2": ({"k": 1}, JobError, ("k:", "at least 2")),
    "l without sensitive": ({"sensitive": []}, JobError, ("l:", "sensitive")),
    "t without sensitive": ({"l": None, "t": 0.2, "sensitive": []}, JobError, ("t:", "sensitive")),
    "an interval of text": (
        {"quasi_identifiers": ["age", "zip=interval"]},
        JobError,
        ("'zip'", "to intervals", "prefix"),
    ),
    "a grid of text": ({"quasi_identifiers": ["zip=grid:5"]}, JobError, ("'zip'", "intervals")),
    "a ladder of text": ({"quasi_identifiers": ["zip=ladder:5"]}, JobError, ("'zip'", "ladder")),
    "too many quantiles": (
        {"partitioning": {"strategy": "quantile", "fragments": 30}},
        JobError,
        ("partitioning.fragments", "30", "at most", "multidimensional"),
    ),
    "no such hierarchy": (
        {"quasi_identifiers": ["country=hierarchy:nowhere.csv"]},
        MondrianOpsError,
        ("nowhere.csv",),
    ),
    "an unknown key": ({"fragments": 3}, JobError, ("fragments", "partitioning.fragments")),
}


@pytest.mark.parametrize("case", JOBS)
def test_a_job_that_cannot_be_done(site, case):
    keys, kind, says = JOBS[case]
    before = site.state()
    refused(lambda: site.run(**keys), kind, *says)
    assert site.state() == before


HIERARCHIES = {
    "a value that is not in it": ("Italy;Europe;*\n", ("'country'", "1 row", "countries.csv")),
    "a leaf twice": ("Italy;Europe;*\nItaly;Asia;*\n", ("row 2 is the same leaf as row 1",)),
    "two parents": ("Italy;South;Europe;*\nSpain;South;Asia;*\n", ("row 2", "another parent")),
    "two roots": ("Italy;Europe\nJapan;Asia\n", ("row 2", "another root than row 1")),
    "a cycle": ("Italy;Europe;Italy;Europe;*\n", ("cycle",)),
    "an empty cell": ("Italy;;*\n", ("empty cell",)),
    "a leaf without ancestor": ("Italy\n", ("ancestor",)),
    "nothing": ("", ("countries.csv",)),
}


@pytest.mark.parametrize("case", HIERARCHIES)
def test_a_malformed_hierarchy(site, case):
    text, says = HIERARCHIES[case]
    site.write("countries.csv", text)
    before = site.state()
    keys = {"quasi_identifiers": ["age", "country=hierarchy:countries.csv"]}
    refused(lambda: site.run(**keys), HierarchyError, *says)
    assert site.state() == before


def test_a_hierarchy_that_is_no_json(site):
    site.write("countries.json", '{"*": {"Europe": ["Italy"]')
    before = site.state()
    keys = {"quasi_identifiers": ["age", "country=hierarchy:countries.json"]}
    refused(lambda: site.run(**keys), HierarchyError, "countries.json")
    assert site.state() == before


def test_a_sensitive_value_that_the_hierarchy_has_not(site):
    site.write("illnesses.csv", "flu;infection;*\ncold;infection;*\n")
    keys = {
        "t": 0.5,
        "t_distance": "hierarchical",
        "sensitive_hierarchy": {"illness": "illnesses.csv"},
    }
    before = site.state()
    refused(lambda: site.run(**keys), HierarchyError, "'illness'", "20 row", "illnesses.csv")
    assert site.state() == before


# Sources that cannot be read


def mixed_schema(site: Site) -> None:
    other = canary_people(40).set_column(1, "age", pa.array(["Canaria"] * 40))
    pq.write_table(other, site.input.parent / "second.parquet")


def mixed_formats(site: Site) -> None:
    (site.input.parent / "second.csv").write_text("age\nCanaria\n")


def damaged(site: Site) -> None:
    site.input.write_bytes(site.input.read_bytes()[:200] + b"Canaria")


def empty_file(site: Site) -> None:
    site.input.write_bytes(b"")


def no_rows(site: Site) -> None:
    pq.write_table(canary_people(40)[:0], site.input)


def no_files(site: Site) -> None:
    site.input.unlink()


def infinite(site: Site) -> None:
    ages = pa.array([77317731.0, float("inf"), *[3.0] * 38])
    pq.write_table(canary_people(40).set_column(1, "age", ages), site.input)


def nested(site: Site) -> None:
    ages = pa.array([["Canaria"]] * 40)
    pq.write_table(canary_people(40).set_column(1, "age", ages), site.input)


def duration(site: Site) -> None:
    ages = pa.array([77317731] * 40).cast(pa.duration("s"))
    pq.write_table(canary_people(40).set_column(1, "age", ages), site.input)


SOURCES = {
    mixed_schema: (InputError, ("second.parquet", "'age'", "one schema")),
    mixed_formats: (InputError, ("second.csv", "one format")),
    damaged: (InputError, ("people.parquet", "cannot be read")),
    empty_file: (InputError, ("people.parquet",)),
    no_rows: (InputError, ("no rows",)),
    no_files: (InputError, ("data",)),
    infinite: (InputError, ("'age'", "1 infinite")),
    nested: (JobError, ("'age'", "cannot be generalized", "flatten")),
    duration: (JobError, ("'age'", "cannot be generalized", "number")),
}


@pytest.mark.parametrize("spoil", SOURCES, ids=lambda spoil: spoil.__name__)
def test_a_source_that_cannot_be_read(site, spoil):
    kind, says = SOURCES[spoil]
    spoil(site)
    before = site.state()
    refused(lambda: site.run(input=str(site.input.parent)), kind, *says)
    assert site.state() == before


def test_a_sensitive_column_of_lists(site):
    illnesses = pa.array([["Secretus"], ["flu"]] * 20)
    pq.write_table(canary_people(40).set_column(4, "illness", illnesses), site.input)
    before = site.state()
    refused(lambda: site.run(), JobError, "'illness'")
    assert site.state() == before


# Outputs that cannot be written


def test_output_inside_input(site):
    before = site.state()
    directory = site.input.parent
    refused(
        lambda: site.run(input=str(directory), output=str(directory / "out")),
        StorageError,
        "inside",
    )
    assert os.listdir(directory) == ["people.parquet"]
    assert site.state() == before


def test_input_inside_output(site):
    refused(lambda: site.run(output=str(site.input.parent)), StorageError, "inside")
    assert os.listdir(site.input.parent) == ["people.parquet"]


def test_an_output_that_is_no_release_of_this_project(site):
    other = site.output.parent / "thesis"
    other.mkdir()
    (other / "chapter1.txt").write_text("Canaria")
    before = site.state()
    refused(lambda: site.run(output=str(other)), StorageError, "thesis")
    assert site.state() == before


# What changes or vanishes between the tasks


def partitioned(site: Site, **keys: Any):
    job = site.load(site.job(**keys))
    work = publish.work_path(job.output, "a run")
    return job, work, pipeline.partition(job, work=work)


@contextmanager
def refused_later(site: Site, **keys: Any):
    """A run up to its fragments, of which nothing stays when a later task has been refused."""
    before = site.state()
    job, work, fragments = partitioned(site, **keys)
    yield job, work, fragments
    pipeline.discard(work)
    assert site.state() == before


VANISHED = (StorageError, "vanished", "partition task")


@pytest.mark.parametrize("retrieval", ["scatter", "pushdown"])
def test_working_files_that_vanished_before_a_fragment(site, retrieval):
    with refused_later(site, retrieval=retrieval) as (_job, work, fragments):
        shutil.rmtree(work)
        refused(lambda: pipeline.anonymize_fragment(fragments[0]), *VANISHED)


def test_a_fragment_file_that_vanished(site):
    with refused_later(site, retrieval="scatter") as (_job, work, fragments):
        for path in Path(work).rglob("*.arrow"):
            if path.parent != Path(work):
                path.unlink()
        refused(lambda: pipeline.anonymize_fragment(fragments[0]), *VANISHED)


def test_a_part_that_vanished(site):
    with refused_later(site) as (job, work, fragments):
        summaries = [pipeline.anonymize_fragment(each) for each in fragments]
        next(Path(work).rglob("part-*.parquet")).unlink()
        refused(lambda: pipeline.wrap_up(job, work=work, summaries=summaries), *VANISHED)


def test_a_summary_that_is_missing(site):
    with refused_later(site) as (job, work, fragments):
        summaries = [pipeline.anonymize_fragment(each) for each in fragments]
        refused(
            lambda: pipeline.wrap_up(job, work=work, summaries=summaries[:-1]), MondrianOpsError
        )


@pytest.mark.parametrize("retrieval", ["scatter", "pushdown"])
def test_an_input_that_changes_between_the_tasks(site, retrieval):
    job, work, fragments = partitioned(site, retrieval=retrieval)
    pq.write_table(canary_people(80), site.input)
    if retrieval == "pushdown":
        refused(
            lambda: pipeline.anonymize_fragment(fragments[0]),
            InputError,
            "changed",
            "partition task",
        )
    else:  # its rows were fetched before
        summaries = [pipeline.anonymize_fragment(each) for each in fragments]
        report = pipeline.wrap_up(job, work=work, summaries=summaries)
        assert report["rows"]["published"] == 40
    pipeline.discard(work)


def test_a_part_that_was_tampered_with_is_refused(site):
    with refused_later(site) as (job, work, fragments):
        summaries = [pipeline.anonymize_fragment(each) for each in fragments]
        path = next(Path(work).rglob("part-*.parquet"))
        table = pq.read_table(path)
        first = pa.array(["77317731", *table["age"].to_pylist()[1:]])
        pq.write_table(table.set_column(table.column_names.index("age"), "age", first), path)
        refused(
            lambda: pipeline.wrap_up(job, work=work, summaries=summaries),
            PrivacyError,
            "k-anonymity",
            "not published",
        )


def test_a_fragment_of_another_version(site):
    _job, work, fragments = partitioned(site)
    other = {**fragments[0].to_dict(), "schema": 99}
    refused(lambda: Fragment.from_dict(other), StorageError, "99", "partition task")
    pipeline.discard(work)


# In memory

FRAME = pd.DataFrame({"age": [1, 2, 3, 4], "who": ["Canaria", "b", "c", "Quasimodo"]})


def test_a_frame_of_mixed_types():
    frame = FRAME.assign(age=["Canaria", 2, 3, 4])
    refused(lambda: anonymize(frame, {"k": 2, "quasi_identifiers": ["age"]}), InputError, "'age'")


def test_a_table_with_a_column_twice():
    table = pa.table([pa.array([77317731, 2]), pa.array([1, 2])], names=["age", "age"])
    job = {"k": 2, "quasi_identifiers": ["age"]}
    refused(lambda: anonymize(table, job), InputError, "'age'", "duplicate")


def test_a_frame_with_a_column_twice():
    frame = pd.DataFrame([[77317731, 1], [2, 2]], columns=["age", "age"])
    job = {"k": 2, "quasi_identifiers": ["age"]}
    refused(lambda: anonymize(frame, job), InputError, "'age'", "duplicate")


@pytest.mark.parametrize("rows", [0, 1])
def test_a_table_of_too_few_rows(rows):
    job = {"k": 2, "quasi_identifiers": ["age"]}
    refused(lambda: anonymize(FRAME[:rows], job), MondrianOpsError, "rows")


def test_bounds_that_would_replace_a_column():
    table = pa.table({"age": [1, 2, 3, 4], "age_min": [77317731, 2, 3, 4]})
    job = {"k": 2, "quasi_identifiers": ["age"], "interval_style": "bounds", "unlisted": "publish"}
    refused(lambda: anonymize(table, job), JobError, "interval_style", "'age_min'", "rename")


def test_a_grid_too_narrow_for_its_numbers():
    table = pa.table({"age": [1e300, 77317731.0, 3.0, 4.0]})
    job = {"k": 2, "quasi_identifiers": ["age=grid:0.01"]}
    refused(lambda: anonymize(table, job), InputError, "'age'", "use a larger step")


# A CSV file without its header: the names of its columns are a person's values


HEADERLESS = "Quasimodo,77317731,Canaria\nEsmeralda,5,Italy\nClaude,6,Italy\n"


def test_a_csv_file_without_a_header(site):
    path = site.input.parent / "people.csv"
    path.write_text(HEADERLESS)
    keys = {"input": str(path), "identifiers": ["Quasimod"], "quasi_identifiers": ["Canari"]}
    keys |= {"sensitive": [], "l": None, "replace": "any"}
    refused(lambda: site.run(**keys), JobError, "'Quasimod'", "header")


def test_a_csv_file_without_a_header_where_two_values_are_equal(site):
    path = site.input.parent / "people.csv"
    path.write_text(HEADERLESS.replace("77317731", "Quasimodo"))
    refused(lambda: site.run(input=str(path)), InputError, "columns 1 and 2", "header")


def test_csv_files_of_which_only_one_has_a_header(site):
    site.input.unlink()
    (site.input.parent / "a.csv").write_text("ssn,age,country\nx,1,Italy\n")
    (site.input.parent / "b.csv").write_text(HEADERLESS)
    says = ("b.csv", "column 1", "a.csv", "header")
    refused(lambda: site.run(input=str(site.input.parent)), InputError, *says)


def test_a_column_that_arrow_keeps_for_itself(site):
    named = canary_people(40).rename_columns(["ssn", "age", "country", "zip", "__filename"])
    pq.write_table(named, site.input)
    keys = {"sensitive": ["__filename"]}
    refused(lambda: site.run(**keys), InputError, "'__filename'", "rename")
