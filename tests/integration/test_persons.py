"""Where k counts persons: every class of a release holds rows of k of them, however it was made."""

from __future__ import annotations

import math
import os
import shutil
from collections import Counter
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import brute_force
from drawn_jobs import Case, cases, plans, run
from hypothesis_profiles import examples
from mondrian_ops import anonymize, pipeline, publish
from mondrian_ops.cli import main
from mondrian_ops.engines.handover import Fragment
from mondrian_ops.errors import JobError, PrivacyError, StorageError
from mondrian_ops.pipeline import frontier
from mondrian_ops.publish import WorkDir
from mondrian_ops.report import render_html, render_text
from tiers import one_in

KINDS = {
    "number": pa.int64(),
    "text": pa.string(),
    "bytes": pa.binary(),
    "float": pa.float64(),
}


@dataclass(frozen=True)
class PersonsCase(Case):
    """A case whose rows are those of persons; None has no id."""

    persons: list[int | None]
    type: pa.DataType

    @property
    def table(self) -> pa.Table:
        texts = [None if person is None else f"p{person}" for person in self.persons]
        is_text = pa.types.is_string(self.type) or pa.types.is_binary(self.type)
        column = pa.array(texts if is_text else self.persons).cast(self.type)
        return super().table.append_column("person", column)

    @property
    def job(self) -> dict:
        return {**super().job, "entity_id": "person"}

    @property
    def attainable(self) -> bool:
        is_diverse = self.has_values_of_persons(range(self.rows))
        return super().attainable and len(set(self.persons)) >= self.keys["k"] and is_diverse

    def has_values_of_persons(self, rows):
        """Whether no l - 1 values are such that each person with a value has one of them."""
        counts_missing = self.keys.get("missing_sensitive") == "value"
        for column in self.sensitive if "l" in self.keys else ():
            of_person: dict = {}
            for row in rows:
                if column[row] is not None or counts_missing:
                    of_person.setdefault(self.persons[row], set()).add(column[row])
            values = set().union(*of_person.values())
            for some in combinations(values, min(len(values), math.ceil(self.keys["l"]) - 1)):
                if all(own & {*some} for own in of_person.values()):
                    return False
        return True


@st.composite
def persons_cases(draw, **options):
    case = draw(cases(**options))
    several = draw(st.integers(0, case.rows))
    ids = draw(st.sampled_from([st.integers(0, several), st.none() | st.integers(0, several)]))
    persons = draw(st.lists(ids, min_size=case.rows, max_size=case.rows))
    type_ = draw(st.sampled_from(list(KINDS.values())))
    return PersonsCase(case.columns, case.sensitive, case.keys, persons, type_)


def classes_of(case, release):
    """The classes of a release, lists of rows; every requirement is checked on each."""
    rows = release.table.to_pylist()
    assert len({row["row"] for row in rows}) == len(rows)
    assert not any(name.startswith("person") for name in release.table.column_names)
    classes = list(brute_force.classes_of(release.published(case.columns)).values())
    holds = case.privacy.of_rows(case.sensitive)
    assert all(holds(members) for members in classes)
    assert all(case.has_values_of_persons(members) for members in classes)
    persons = [len({case.persons[row] for row in members}) for members in classes]
    assert release.report["achieved"]["k"] == min(persons) >= case.keys["k"]
    assert release.report["class_persons"] == sorted(map(list, Counter(persons).items()))
    risk = release.report["risk"]
    assert risk["prosecutor_max"] == 1 / min(persons)
    assert risk["prosecutor_avg"] == pytest.approx(len(classes) / sum(persons))
    smallest = [c for c, n in zip(classes, persons, strict=True) if n == min(persons)]
    assert risk["rows_at_most_risk"] == sum(map(len, smallest))
    return classes


def released(case, **keys):
    """The release, or None where there can be none, or not by so many quantiles."""
    try:
        return run(case, **keys)
    except PrivacyError as error:
        # A fragment may fail though the dataset does not.
        is_fragment = "each person has one of" in str(error)
        assert not case.attainable or (is_fragment and keys["partitioning"]["fragments"] != 1)
    except JobError as error:
        assert keys["partitioning"]["strategy"] == "quantile"
        assert "at most" in str(error)
    return None


@examples(60)
@given(persons_cases(), plans())
def test_every_class_holds_k_persons(case, plan):
    release = released(case, **plan)
    if release is not None:
        assert case.attainable
        classes = classes_of(case, release)
        assert sorted(row for members in classes for row in members) == list(range(case.rows))


@examples(25)
@given(
    persons_cases(grids=False),
    st.sampled_from(
        [
            {"algorithm": "samarati"},
            {"algorithm": "samarati", "samarati": {"choice": "optimal"}},
            {"algorithm": "samarati", "samarati": {"max_suppressed": 4}},
            {"algorithm": "tds", "tds": {"partitions": 3, "k_intermediate": 41}},
            {"algorithm": "tds", "tds": {"partitions": 1}},
        ]
    ),
    st.integers(1, 4),
)
def test_where_columns_are_recoded_as_a_whole(case, how, fragments):
    assume("t" not in case.keys)
    case = replace(case, keys={**case.keys, "cut": "auto", **how})
    try:
        release = run(case, partitioning={"fragments": fragments, "sample": 1.0})
    except PrivacyError:
        assert not case.attainable or "max_suppressed" in how.get("samarati", {})
        return
    classes_of(case, release)
    told = release.report["rows"]
    assert told["input"] == case.rows == told["published"] + told["suppressed"]


@pytest.mark.servers
@examples(25)
@given(persons_cases(), st.integers(2, 6))
def test_fragments_cut_as_the_whole_is(case, fragments):
    # Classes are joined for persons' values within a fragment.
    assume(case.attainable and "l" not in case.keys)
    whole = run(case, partitioning={"fragments": 1})
    divided = run(case, partitioning={"fragments": fragments, "sample": 1.0})
    assert divided.labels(case.columns) == whole.labels(case.columns)


@examples(25)
@given(persons_cases())
def test_one_row_each_is_as_without_persons(case):
    """Where nobody has two rows, persons are rows."""
    case = replace(case, persons=list(range(case.rows)))
    plain = Case(case.columns, case.sensitive, case.keys)
    assume(case.attainable)
    assert run(case).published(case.columns) == run(plain).published(case.columns)


# Larger than a block, many rows of one, all rows of one


def people(rows, persons, seed=0):
    draw = np.random.default_rng(seed)
    return pa.table(
        {
            "person": persons,
            "age": draw.integers(0, 90, rows),
            "zip": draw.integers(0, 300, rows).astype(str),
            "income": draw.integers(0, 4, rows),
        }
    )


JOB = {
    "k": 5,
    "quasi_identifiers": ["age", "zip=set"],
    "sensitive": ["income"],
    "l": 2,
    "entity_id": "person",
}


def persons_by_class(table, job, **keys):
    """Distinct persons of each class, of a release that also publishes the row's number."""
    rows = table.append_column("row", pa.array(range(table.num_rows)))
    release, report = anonymize(rows, {**job, "unlisted": "publish", **keys})
    of_row = dict(enumerate(table["person"].to_pylist()))
    classes: dict = {}
    for row in release.to_pylist():
        classes.setdefault((row["age"], row["zip"]), set()).add(of_row[row["row"]])
    assert sorted(release["row"].to_pylist()) == list(range(table.num_rows))
    return [len(found) for found in classes.values()], report


@pytest.mark.parametrize(
    "keys",
    one_in(
        5,
        [
            {"cut": "median"},
            {"cut": "gain"},
            {"cut": "lookahead", "cut_budget_s": 60},
            {"relaxed": True},
            {"algorithm": "di_mondrian"},
        ],
    ),
    ids=str,
)
def test_more_persons_than_a_block_has_rows(keys):
    draw = np.random.default_rng(1)
    rows = 40_000 if "cut_budget_s" not in keys else 6_000
    table = people(rows, draw.integers(0, rows * 9 // 10, rows) * 1_000_003)
    persons, report = persons_by_class(table, JOB, **keys)
    assert min(persons) == report["achieved"]["k"] >= 5
    assert len(persons) > rows / 30


@pytest.mark.servers
def test_one_person_has_thousands_of_rows():
    """They are in all classes, and count once in each."""
    draw = np.random.default_rng(2)
    persons = np.where(draw.random(8_000) < 0.7, 0, np.arange(8_000))
    found, report = persons_by_class(people(8_000, persons), JOB)
    assert min(found) == report["achieved"]["k"] >= 5
    assert report["metrics"]["C_avg"] > 2  # classes of 5 rows would not do


@pytest.mark.parametrize("persons", [np.zeros(500, int), [None] * 500, np.arange(500) % 4])
@pytest.mark.parametrize("algorithm", ["mondrian", "di_mondrian", "samarati", "tds"])
def test_rows_of_fewer_than_k_persons_are_refused(tmp_path, persons, algorithm):
    table = people(500, pa.array(persons, pa.int64()))
    job = {**JOB, "algorithm": algorithm, "partitioning": {"fragments": 3}}
    job["samarati"] = {"max_suppressed": 400}
    said = r"has [14] person\(s\) by column 'person', fewer than k = 5; .*lower k"
    with pytest.raises(PrivacyError, match=said):
        anonymize(table, job)
    pq.write_table(table, tmp_path / "in.parquet")
    paths = {"input": str(tmp_path / "in.parquet"), "output": str(tmp_path / "out")}
    with pytest.raises(PrivacyError, match=said):
        pipeline.run(pipeline.load_job({**job, **paths}))
    assert os.listdir(tmp_path) == ["in.parquet"]


def test_a_redacted_id_is_the_same_in_all_rows():
    table = people(300, np.arange(300) // 2)
    release, report = anonymize(table, {**JOB, "identifier_policy": "redact"})
    assert set(release["person"].to_pylist()) == {"*"}
    assert report["columns"]["identifiers"] == ["person"]
    dropped, report = anonymize(table, {**JOB, "identifiers": ["person"]})
    assert dropped.column_names == ["age", "zip", "income"]
    assert report["columns"]["unlisted"] == []


def test_an_id_that_cannot_be_counted_is_refused():
    table = people(100, pa.array([[n] for n in range(100)]))
    with pytest.raises(JobError, match=r"^entity_id: values of column 'person' of type list"):
        anonymize(table, JOB)
    with pytest.raises(JobError, match=r"^identifiers: the input has no column 'nobody'"):
        anonymize(table, {**JOB, "entity_id": "nobody"})


# The check of the release as written


@pytest.fixture
def parted(tmp_path):
    """A run whose fragments are anonymized and wait for their check."""
    pq.write_table(people(2_000, np.arange(2_000) // 3), tmp_path / "in.parquet")
    paths = {"input": str(tmp_path / "in.parquet"), "output": str(tmp_path / "out")}
    keys = {"partitioning": {"fragments": 3}, "retrieval": "scatter"}
    return Parted(pipeline.load_job({**JOB, **keys, **paths}), str(tmp_path / "work"))


class Parted:
    def __init__(self, job, work):
        self.job, self.work = job, work
        fragments: list[Fragment] = pipeline.partition(job, work=work)
        self.summaries = [pipeline.anonymize_fragment(each) for each in fragments]
        self.directory = WorkDir.attach(work)

    def digest(self, fragment):
        return publish.digest_of(self.directory.part_path(fragment))

    def persons(self, fragment):
        return self.directory.read_persons(self.digest(fragment))

    def wrap_up(self):
        return pipeline.wrap_up(self.job, work=self.work, summaries=self.summaries)


def test_persons_lie_beside_the_parts_in_their_order(parted):
    source = pq.read_table(parted.job.input).to_pylist()
    by_person = {(row["person"], row["income"]) for row in source}
    for summary in parted.summaries:
        part = pq.read_table(parted.directory.part_path(summary.id))
        persons = parted.persons(summary.id).to_pylist()
        incomes = part["income"].to_pylist()
        assert set(zip(persons, incomes, strict=True)) <= by_person
    assert parted.wrap_up()["achieved"]["k"] >= 5


def test_a_class_of_too_few_persons_is_refused(parted):
    persons = parted.persons(1)
    one = [*[persons[0]] * 7, *persons[7:]]
    parted.directory.write_persons(parted.digest(1), pa.chunked_array([pa.array(one)]))
    said = r"k-anonymity, k = 5 persons by person: \d of \d+ classes fail; the worst .* k = 1 "
    with pytest.raises(PrivacyError, match=said) as caught:
        parted.wrap_up()
    assert caught.value.report["risk"]["prosecutor_max"] == 1
    assert not Path(parted.job.output).exists()


def test_persons_of_other_rows_are_refused(parted):
    persons = parted.persons(0)
    parted.directory.write_persons(parted.digest(0), persons[:-1])
    with pytest.raises(PrivacyError, match="persons cannot be counted"):
        parted.wrap_up()
    assert not Path(parted.job.output).exists()


def test_without_persons_nothing_is_published(parted):
    os.remove(Path(parted.work) / f"persons-{parted.digest(2)}.arrow")
    with pytest.raises(StorageError, match="run again from the partition task"):
        parted.wrap_up()
    assert not Path(parted.job.output).exists()


def test_the_check_can_be_done_again_while_a_release_waits(parted):
    """A worker may be killed between the check and the question, or the task cleared."""
    first = pipeline.check(parted.job, work=parted.work, summaries=parted.summaries)
    parted.directory.remove_fragments()
    again = pipeline.check(parted.job, work=parted.work, summaries=parted.summaries)
    assert again.report["achieved"] == first.report["achieved"]
    pipeline.publish(parted.job, work=parted.work)
    shutil.rmtree(parted.work, ignore_errors=True)
    assert pq.read_table(parted.job.output).num_rows == 2_000


def test_a_published_release_is_verified_by_rows_and_says_so(parted, tmp_path, capsys):
    report = parted.wrap_up()
    assert report["verification"]["checked"][0] == "k-anonymity, k = 5 persons by person"
    found = pipeline.verify(parted.job, parted.job.output)
    assert found["passed"]
    assert found["checked"][0] == "k-anonymity, k = 5 in rows, not persons"
    assert "k and l count rows here" in found["notes"][0]
    (tmp_path / "job.json").write_text(
        '{"input": "x", "output": "y", "k": 5, "entity_id": "person", "sensitive": ["income"],'
        ' "quasi_identifiers": ["age", "zip=set"]}'
    )
    assert main(["verify", parted.job.output, "--job", str(tmp_path / "job.json")]) == 0
    assert "k counts rows here" in capsys.readouterr().out
    plain = replace(parted.job, entity_id=None)
    assert pipeline.verify(plain, parted.job.output)["notes"] == []


def test_the_report_tells_of_persons(parted):
    report = parted.wrap_up()
    for page in (" ".join(render_text(report).split()), render_html(report)):
        assert "If most rows of a class are one person" in page
        assert "A person who has several rows" not in page
    assert "Persons are counted, not rows." in render_html(report)


@pytest.mark.servers
def test_the_frontier_counts_persons_over_all_rows(parted):
    """Fragments are not drawn: whether one stands alone is known by its rows only."""
    points = frontier.points([5], [1])
    found = frontier.trace(parted.job, points, rows=100)
    assert found["drawn"] == 0
    assert found["points"][0]["achieved"]["k"] >= 5
    assert found["points"][0]["rows"] == 2_000
