"""The profile: domains, ranges and counts of a whole dataset, whatever the batches."""

from __future__ import annotations

import csv
import math
from collections import Counter
from dataclasses import replace
from datetime import date
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import brute_force
from hypothesis_profiles import examples
from mondrian_ops.data import profile
from mondrian_ops.data.encoding import as_array
from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.data.profile import (
    PartialProfile,
    Profile,
    Profiler,
)
from mondrian_ops.data.unlisted_values import no_leaf
from mondrian_ops.errors import HierarchyError, InputError, JobError
from mondrian_ops.generalize.resolving import attributes_of
from mondrian_ops.job.job import Job
from published_text import KINDS, TREE_FILE, is_missing, text_of

COUNTRIES = Hierarchy.from_rows([["Italy", "Europe", "*"], ["Japan", "*"]], "countries.csv")


def a_job(*quasi_identifiers: object, **keys) -> Job:
    return Job.from_dict(
        {"k": 2, "quasi_identifiers": list(quasi_identifiers), **keys}, paths_required=False
    )


def profiler_of(job: Job, *batches: pa.Table, hierarchies=None) -> Profiler:
    profiler = Profiler(job, batches[0].schema, hierarchies or {})
    for batch in batches:
        profiler.add(batch)
    return profiler


def profiled(job: Job, *batches: pa.Table, hierarchies=None) -> Profile:
    return profiler_of(job, *batches, hierarchies=hierarchies).finish()


def merged(job: Job, *parts: list[pa.Table], hierarchies=None) -> Profiler:
    """A profiler of parts, each of some batches, that others profiled and sent."""
    whole = Profiler(job, parts[0][0].schema, hierarchies or {})
    for batches in parts:
        part = profiler_of(job, *batches, hierarchies=hierarchies).so_far()
        whole.merge(PartialProfile.from_table(sent(part.to_table())))
    return whole


def divided(table: pa.Table, size: int) -> list[pa.Table]:
    return [table[at : at + size] for at in range(0, len(table), size)]


@st.composite
def columns(draw):
    name = draw(st.sampled_from([n for n in KINDS if "dictionary" not in n]))
    kind = KINDS[name]
    texts = st.sampled_from(["", " a", "a\u00a0", "\uff41", "o\u0308"])
    some = kind.values | texts if kind is KINDS["large text"] else kind.values
    values = draw(st.lists(st.none() | some, min_size=1, max_size=30))
    return kind, values, draw(st.integers(1, 10))


@examples(200)
@given(columns())
def test_domains_and_counts_do_not_depend_on_the_batches(column):
    kind, values, size = column
    array = pa.array(values, kind.type)
    table = pa.table({"q": array, "s": array})
    way = "set" if kind.ways[0] == "interval" else kind.ways[0].partition(":")[0]
    job = a_job("q=prefix" if way == "prefix" else "q=set", sensitive=["s"])
    found = profiled(job, *divided(table, size))
    assert found.rows == len(values)
    written = Counter(None if is_missing(v) else text_of(kind, v) for v in values)
    counts = brute_force.of_alike(written)
    assert ("q" in found.complete, "s" in found.complete) == (
        None not in written,
        None not in counts,
    )
    texts = found.domains["s"].cast(pa.string()).to_pylist()
    occurrences = found.counts["s"].to_pylist()
    assert len(occurrences) == len(texts) + (None in counts)
    keys = [None] * (None in counts) + texts
    assert dict(zip(keys, occurrences, strict=True)) == counts
    read = [v if is_missing(v) else brute_force.alike(v) for v in values]
    present = sorted({v + 0.0 if isinstance(v, float) else v for v in read if not is_missing(v)})
    assert found.domains["s"].to_pylist() == present
    as_written = sorted(text for text in written if text is not None)
    assert sorted(found.domains["q"].cast(pa.string()).to_pylist()) == as_written


@examples(100)
@given(columns())
def test_a_range_is_that_of_the_present_values(column):
    kind, values, size = column
    if "interval" not in kind.ways:
        return
    table = pa.table({"q": pa.array(values, kind.type)})
    found = profiled(a_job("q"), *divided(table, size))
    present = [value for value in values if not is_missing(value)]
    assert found.domains["q"].to_pylist() == ([min(present), max(present)] if present else [])
    assert found.complete == (("q",) if len(present) == len(values) else ())


@examples(100)
@given(columns())
def test_a_profile_survives_its_file(column):
    kind, values, _ = column
    array = pa.array(values, kind.type)
    found = profiled(a_job("q", sensitive=["s"]), pa.table({"q": array, "s": array}))
    again = Profile.from_table(found.to_table())
    assert again.rows == found.rows
    assert again.types == found.types
    assert again.complete == found.complete
    for name in ("q", "s"):
        assert again.domains[name].equals(found.domains[name])
    assert again.counts["s"].equals(found.counts["s"])


@examples(150)
@given(columns(), st.data())
def test_profiles_of_parts_are_the_profile_of_the_whole(column, data):
    """However the rows are divided among profilers, and those among batches."""
    kind, values, size = column
    array = pa.array(values, kind.type)
    table = pa.table({"q": array, "s": array})
    for way in kind.ways:
        word = way.partition(":")[0]
        hierarchies = {}
        if word == "hierarchy":
            hierarchies = {
                "q": Hierarchy.from_rows(csv.reader(TREE_FILE.split(), delimiter=";"), "x")
            }
        job = a_job(f"q={way}", sensitive=["s"])
        places = data.draw(st.lists(st.integers(1, len(values)), max_size=4, unique=True))
        ends = sorted({*places, len(values)})
        parts = [divided(table[start:end], size) for start, end in pairwise([0, *ends])]
        whole = merged(job, *parts, hierarchies=hierarchies)
        assert_same(whole.finish(), profiled(job, table, hierarchies=hierarchies))


@examples(100)
@given(columns(), st.data())
def test_where_combinations_are_counted_the_domains_are_theirs(column, data):
    """Of parts, too; and each combination is there with all of its rows."""
    kind, values, size = column
    array = pa.array(values, kind.type)
    shuffled = data.draw(st.permutations(range(len(values))))
    table = pa.table({"q": array.take(pa.array(shuffled)), "s": array})
    job = a_job("q=prefix" if kind.ways[0] == "prefix" else "q=set", sensitive=["s"])
    recoded = replace(job, algorithm="samarati")
    whole = merged(recoded, *([batch] for batch in divided(table, size)))
    assert_same(whole.finish(), profiled(job, table))
    found = whole.combinations
    named = [found.values[name].take(pa.array(found.indices(name))) for name in ("q", "s")]
    rows = Counter()
    for combination, number in zip(
        zip(*(each.cast(pa.string()).to_pylist() for each in named), strict=True),
        found.frequencies.rows.tolist(),
        strict=True,
    ):
        rows[combination] += number
    texts = [as_array(table[name]).cast(pa.string()).to_pylist() for name in ("q", "s")]
    texts[1] = [brute_force.alike(text) for text in texts[1]]
    assert rows == Counter(zip(*texts, strict=True))


def test_many_parts_are_merged_on_the_way():
    table = pa.table({"q": pa.array([str(at % 7) for at in range(700)]), "x": range(700)})
    job = a_job("q", "x")
    whole = merged(job, *([batch] for batch in divided(table, 5)))
    assert_same(whole.finish(), profiled(job, table))


def sent(table: pa.Table) -> pa.Table:
    """The table after a journey as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return pa.ipc.open_stream(sink.getvalue()).read_all()


def assert_same(found: Profile, expected: Profile) -> None:
    assert found.rows == expected.rows
    assert found.types == expected.types
    assert {*found.complete} == {*expected.complete}
    for some, others in ((found.domains, expected.domains), (found.counts, expected.counts)):
        assert some.keys() == others.keys()
        assert all(some[name].equals(others[name]) for name in some)


def test_many_batches_are_merged_on_the_way():
    table = pa.table({"q": pa.array([str(at % 7) for at in range(700)]), "x": range(700)})
    found = profiled(a_job("q", "x"), *divided(table, 5))
    assert found.domains["q"].to_pylist() == list("0123456")
    assert found.domains["x"].to_pylist() == [0, 699]


def test_the_work_of_distinct_values_grows_as_their_number(monkeypatch):
    """In values that are put into a table; a table anew for each batch would take 128 times as
    many as there are."""
    batches, rows, merged = 256, 100, []
    merge = profile._Tally._merge

    def counted(tally):
        merged.append(sum(part.num_rows for part in tally._parts))
        merge(tally)

    monkeypatch.setattr(profile._Tally, "_merge", counted)
    table = pa.table({"q": [1] * (batches * rows), "s": list(map(str, range(batches * rows)))})
    found = profiled(a_job("q", sensitive=["s"]), *divided(table, rows))
    assert len(found.domains["s"]) == batches * rows
    assert batches * rows <= sum(merged) <= 6 * batches * rows


def test_values_that_are_no_leaf_are_counted_not_shown():
    table = pa.table({"country": ["Italy", "Atlantis", "Mu", "Atlantis", None]})
    job = a_job("country=hierarchy:countries.csv")
    with pytest.raises(HierarchyError) as caught:
        profiled(job, table, hierarchies={"country": COUNTRIES})
    message = str(caught.value)
    assert "'country': 3 row(s) hold 2 value(s)" in message
    assert "countries.csv" in message
    assert "Atlantis" not in message


def test_numbers_are_leaves_by_their_text():
    tree = Hierarchy.from_rows([["1", "low", "*"], ["2", "*"]], "numbers.csv")
    table = pa.table({"q": [1, 2, 1, None], "s": [1.0, 2.0, math.nan, None]})
    job = a_job(
        "q=hierarchy:numbers.csv",
        sensitive=["s"],
        t=0.9,
        t_distance="hierarchical",
        sensitive_hierarchy={"s": "numbers.csv"},
    )
    trees = {"q": tree, "s": tree}
    found = profiled(job, table, hierarchies=trees)
    (domain,) = found.sensitive(job, trees)
    assert domain.values.to_pylist() == ["1", "2"]
    assert domain.counts.tolist() == [2, 1, 1]
    assert domain.encode(pa.array([2.0, 1.0, None])).tolist() == [2, 1, 0]
    (attribute,) = attributes_of(found, job, trees, tree_order=True)
    assert attribute.encode(table["q"]).codes.tolist() == [1, 2, 1, 0]


def test_a_ladder_over_floats_finds_its_own_leaves():
    table = pa.table({"q": [38.0, 0.1, 1e20 / 1e18, None]})
    job = a_job("q=ladder:50/100")
    (attribute,) = attributes_of(profiled(job, table), job, {}, tree_order=False)
    assert attribute.leaves.to_pylist() == ["0.1", "38", "100"]
    assert attribute.encode(table["q"]).codes.tolist() == [2, 1, 3, 0]


def test_sensitive_numbers_of_16_bits_are_counted():
    half = pa.array([1.5, -0.0, math.nan, 0.0, None], pa.float32()).cast(pa.float16())
    found = profiled(a_job("q", sensitive=["s"]), pa.table({"q": range(5), "s": half}))
    assert found.domains["s"].to_pylist() == [0.0, 1.5]
    assert found.counts["s"].to_pylist() == [2, 2, 1]  # the missing value first


def test_infinite_values_of_an_interval():
    with pytest.raises(InputError, match="'q': 1 infinite"):
        profiled(a_job("q"), pa.table({"q": [1.0, -math.inf]}))


@pytest.mark.parametrize("type_", [pa.list_(pa.int8()), pa.struct([("a", pa.int8())])])
def test_sensitive_values_that_cannot_be_counted(type_):
    schema = pa.schema([("q", pa.int64()), ("s", type_)])
    with pytest.raises(JobError, match="'s' of type"):
        Profiler(a_job("q", sensitive=["s"]), schema, {})


@pytest.mark.parametrize(
    ("quasi", "algorithm", "named"),
    [
        ("q=hierarchy:countries.csv", "mondrian", True),
        ("q=hierarchy:countries.csv", "tds", True),
        ("q=set", "tds", False),
        ("q=prefix", "tds", False),
        ("n=interval", "samarati", False),
        ("n=ladder:5/10", "mondrian", False),
    ],
)
def test_leaves_that_are_no_files_are_not_to_be_told(quasi, algorithm, named):
    table = pa.table({"q": ["Italy", "Japan", "Italy"], "n": [1, 2, 3]})
    job = a_job(quasi, algorithm=algorithm)
    found = profiled(job, table, hierarchies={"q": COUNTRIES})
    (attribute,) = attributes_of(found, job, {"q": COUNTRIES} if named else {}, tree_order=False)
    assert attribute.named is named


def hierarchical(**keys) -> Job:
    return a_job(
        "q",
        sensitive=["s"],
        l=2,
        t=0.9,
        t_distance="hierarchical",
        sensitive_hierarchy={"s": "countries.csv"},
        **keys,
    )


@pytest.mark.parametrize("algorithm", ["mondrian", "samarati"])
def test_leaves_of_sensitive_values_are_found_in_any_spelling(algorithm):
    table = pa.table({"q": [1] * 5, "s": [" Italy", "Japan\u00a0", "Italy", "", None]})
    job, trees = hierarchical(algorithm=algorithm), {"s": COUNTRIES}
    (domain,) = profiled(job, table, hierarchies=trees).sensitive(job, trees)
    assert domain.counts.tolist() == [2, 2, 1]
    assert domain.encode(table["s"]).tolist() == [1, 2, 1, 0, 0]
    with pytest.raises(HierarchyError, match="'s': 1 row"):
        profiled(job, pa.table({"q": [1], "s": ["Mu "]}), hierarchies=trees)


def test_values_that_are_no_leaves_are_refused_with_the_form_of_leaves_and_the_command():
    job = a_job({"name": "date of birth", "hierarchy": "born.csv"})
    table = pa.table({"date of birth": [date(1951, 7, 8), None]})
    with pytest.raises(HierarchyError) as caught:
        tree = Hierarchy.flat(["08/07/1951"], "born.csv")
        profiled(job, table, hierarchies={"date of birth": tree})
    assert str(caught.value) == (
        "column 'date of birth': 1 row(s) hold 1 value(s) that are not leaves of the hierarchy "
        "'born.csv', where values of type date32[day] are written as 2024-05-01; add them to it, "
        "or make them missing; to list them in a private file: "
        "python -m mondrian_ops hierarchy missing JOB --column 'date of birth'"
    )
    tree = Hierarchy.flat(["1951-07-08"], "born.csv")
    profiled(job, table, hierarchies={"date of birth": tree})


NO_CELL = "which no hierarchy can list"
REMEDY = "csv.missing: [''] makes it a missing value, in Parquet files and tables, too"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            ["a", "", ""],
            f"column 'q': 2 row(s) hold the empty text, {NO_CELL}; {REMEDY}",
        ),
        (
            ["", "b", "a"],
            "column 'q': 2 row(s) hold 2 value(s) that are not leaves of the hierarchy 'h.csv'; "
            f"add them to it, or make them missing; one is the empty text, {NO_CELL}: {REMEDY}; "
            "to list them in a private file: python -m mondrian_ops hierarchy missing JOB "
            "--column q",
        ),
    ],
)
def test_an_empty_text_cannot_become_a_leaf_so_it_is_made_missing(values, message):
    """A column of Parquet holds it; in CSV files it is missing already."""
    job, trees = a_job({"name": "q", "hierarchy": "h.csv"}), {"q": Hierarchy.flat(["a"], "h.csv")}
    with pytest.raises(HierarchyError) as caught:
        profiled(job, pa.table({"q": values}), hierarchies=trees)
    assert str(caught.value) == message
    known = profiled(job, pa.table({"q": ["a"]}), hierarchies=trees)
    (attribute,) = attributes_of(known, job, trees, tree_order=True)
    with pytest.raises(HierarchyError, match="the empty text, which no hierarchy can list"):
        attribute.encode(pa.array(values))


@pytest.mark.parametrize("sensitive", [False, True])
def test_the_values_that_are_no_leaves_are_listed_once_in_order(sensitive):
    parts = [
        pa.array([" Italy", "Japan", None, "Mu ", "Nowhere"]),
        pa.array(["Nowhere\u00a0", "Mu ", "", "Japan"]).dictionary_encode(),
    ]
    listed = [] if sensitive else ["", " Italy", "Mu "]
    listed += ["Nowhere"] if sensitive else ["Nowhere", "Nowhere\u00a0"]
    tree = Hierarchy.flat(["Italy", "Japan", "Mu"], "countries.csv")
    assert no_leaf("country", parts, tree, sensitive) == listed


def test_leaves_of_quasi_identifiers_are_found_as_they_are_written():
    job = a_job("country=hierarchy:countries.csv")
    with pytest.raises(HierarchyError, match="'country': 1 row"):
        profiled(job, pa.table({"country": [" Italy"]}), hierarchies={"country": COUNTRIES})


def test_leaves_that_are_one_sensitive_value_are_refused():
    """They would count as two, whatever is merged among the rows."""
    twins = Hierarchy.from_rows(
        [["Italy", "Europe", "*"], ["Italy ", "Europe", "*"], ["Mu", "*"], [" ", "*"]], "twins.csv"
    )
    table = pa.table({"q": [1], "s": ["Mu"]})
    with pytest.raises(HierarchyError, match=r"'twins\.csv' has 1 leaves .*; keep one") as caught:
        profiled(hierarchical(), table, hierarchies={"s": twins})
    assert "Italy" not in str(caught.value)
    blank = Hierarchy.from_rows([["Mu", "*"], ["\t", "*"], [" ", "*"]], "blank.csv")
    job, trees = hierarchical(), {"s": blank}
    (domain,) = profiled(
        job, pa.table({"q": [1, 1], "s": ["Mu", " "]}), hierarchies=trees
    ).sensitive(job, trees)
    assert domain.counts.tolist() == [1, 1, 0, 0]
    assert domain.encode(pa.array([" ", None, "Mu"])).tolist() == [0, 0, 1]


@pytest.mark.parametrize("algorithm", ["mondrian", "samarati"])
def test_sensitive_text_that_is_no_utf_8_is_refused(algorithm):
    broken = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")]
    )
    job = a_job("q", sensitive=["s"], algorithm=algorithm)
    with pytest.raises(InputError, match="'s': holds text that is not UTF-8"):
        profiled(job, pa.table({"q": [1], "s": broken}))


def test_persons_are_as_they_are_written():
    table = pa.table({"q": [1] * 4, "p": ["1", " 1", "", None]})
    job = a_job("q", entity_id="p", algorithm="samarati")
    domain = profiled(job, table).persons(job)
    assert domain.counts.tolist() == [1, 1, 1, 1]
    assert sorted(domain.encode(table["p"]).tolist()) == [0, 1, 2, 3]


def test_values_of_few_persons_are_rare_and_make_a_column_be_published_as_prefixes():
    """Of 12 rows, four have "b", all of one person; parts are sent from task to task."""
    people = pa.table(
        {"q": [*"aabbaabbaacc"], "x": ["m"] * 12, "who": [1, 2, 9, 9, 3, 4, 9, 9, 5, 6, 7, 8]}
    )
    job = a_job("q", "x", k=3, entity_id="who")
    parts = [divided(people[:5], 2), divided(people[5:], 3)]
    for found in (profiled(job, people), merged(job, *parts).finish()):
        assert found.rare == {"q": 0.5, "x": 0.0}
        assert found.prefixes == ("q",)
        assert Profile.from_table(sent(found.to_table())).prefixes == ("q",)
        kinds = [each.generalization for each in found.resolved(job).quasi_identifiers]
        assert kinds == ["prefix", None]
    assert profiled(a_job("q", k=3), people).prefixes == ()
    named = profiled(a_job("q=set", k=3, entity_id="who"), people)
    assert (named.rare, named.prefixes) == ({"q": 0.5}, ())
