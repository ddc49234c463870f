"""The fuzzers' targets on their corpus, on what crashed them, and on edited valid input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz_targets import TARGETS
from hypothesis_profiles import examples
from mondrian_ops.errors import JobError
from mondrian_ops.stores import load_job

CORPUS = Path(__file__).parents[1] / "fuzz" / "corpus"
FILES = sorted(path for path in CORPUS.glob("*/*") if path.is_file())

# Found by fuzzing, or written to be found: (target, content)
CRASHERS = {
    "deep lists": ("job", b"k: " + b"[" * 5000),
    "deep objects": ("job", b'{"k": ' * 5000),
    "deep tree": ("hierarchy_json", b'{"a": ' * 100_000),
    "an alias bomb": (
        "job",
        b"a: &a [x]\n"
        + b"".join(
            b"%c: &%c [%s]\n" % (98 + at, 98 + at, b",".join([b"*%c" % (97 + at)] * 9))
            for at in range(9)
        )
        + b"k: *j\n",
    ),
    "an alias of itself": ("job", b"k: &a [*a]\n"),
    "a merge of itself": ("job", b"k: 5\nspark: &a\n  <<: *a\n"),
    "a huge number": ("job", b"k: " + b"9" * 10_000),
    "a huge number in JSON": ("job", b'{"k": ' + b"9" * 10_000 + b"}"),
    "an infinite k": ("job", b"input: a\noutput: b\nquasi_identifiers: [x]\nk: .inf\n"),
    "a k that is not a number": ("job", b'{"k": NaN, "input": "a", "output": "b"}'),
    "no date": ("job", b"k: 2024-99-99\n"),
    "NUL": ("job", b"k: 5\0\n"),
    "NUL in JSON": ("job", b'{"input": "\\u0000", "output": "b", "k": 5}'),
    "half a character": ("job", b'{"input": "\\ud800", "output": "b", "k": 5}'),
    "half a character in a tree": ("hierarchy_json", b'{"*": ["\\ud800"]}'),
    "a key that is a list": ("job", b"? [a]\n: 5\n"),
    "a set": ("job", b"k: !!set {a}\n"),
    "binary": ("job", b"input: !!binary AAAA\n"),
    "a plan in a circle": (
        "plan",
        b'{"schema": 2, "nodes": [{"column": "x", "value": 1, "left": 0, "right": 0}],'
        b' "fragments": []}',
    ),
    "a plan without leaves": ("plan", b'{"schema": 2, "nodes": [], "fragments": []}'),
    "a plan of lists": ("plan", b'{"schema": 2, "nodes": [[1]], "fragments": [1]}'),
    "no plan": ("plan", b"[]"),
}


@pytest.mark.parametrize("case", CRASHERS)
def test_what_crashed_a_parser(case):
    target, content = CRASHERS[case]
    TARGETS[target](content)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_the_corpus(path):
    TARGETS[path.parent.name](path.read_bytes())


def test_there_is_a_corpus_for_every_target():
    assert {path.parent.name for path in FILES} == set(TARGETS)


@pytest.mark.parametrize("text", ["k: 5\nk: 6\n", '{"k": 5, "k": 6}'])
def test_a_key_that_is_there_twice_is_refused(tmp_path, text):
    (tmp_path / "job").write_text(text)
    with pytest.raises(JobError, match="duplicate key; correct the file"):
        load_job(tmp_path / "job")


def test_a_character_beyond_16_bits_is_one_in_yaml_and_json(tmp_path):
    job = {"input": "a", "output": "b", "k": 5, "quasi_identifiers": ["💥"]}
    (tmp_path / "job").write_text(json.dumps(job))  # as "\\ud83d\\udca5"
    assert load_job(tmp_path / "job").quasi_identifier_names == ("💥",)


JOB = (CORPUS / "job" / "whole.yaml").read_bytes()
_EDITS = st.lists(
    st.tuples(
        st.integers(0, len(JOB)),
        st.integers(0, 12),
        st.sampled_from([b"", b"\0", b"[", b"{", b": ", b"\n", b"&a ", b"*a", b"-", b"1e400", b"'"])
        | st.binary(max_size=4),
    ),
    max_size=4,
)


@examples(150)
@given(_EDITS)
def test_a_job_with_edits_is_read_or_refused(edits):
    content = JOB
    for start, length, new in edits:
        content = content[:start] + new + content[start + length :]
    TARGETS["job"](content)


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@examples(100)
@given(st.dictionaries(st.sampled_from(["schema", "nodes", "fragments"]), _ANY))
def test_no_plan_is_read_as_one(value):
    TARGETS["plan"](json.dumps({"schema": 2, **value}).encode())


@examples(100)
@given(st.sampled_from(["hierarchy_json", "hierarchy_csv"]), _ANY, st.text(max_size=40))
def test_any_tree_is_read_or_refused(target, value, text):
    TARGETS[target](json.dumps(value).encode())
    TARGETS[target](text.encode(errors="replace"))


@examples(100)
@given(
    st.lists(
        st.sampled_from(['"', ",", ";", "\n", "\r", "a", "1", "é", "\0", " ", "-"]), max_size=40
    )
)
def test_any_csv_file_is_read_or_refused(pieces):
    TARGETS["csv"]("".join(pieces).encode())
