"""Texts of sets and values, written by one side and read by the other."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mondrian_ops.generalize.labels import set_text, single_text
from mondrian_ops.verify.quoted_texts import as_texts, is_set, members_of, values_of

VALUES = st.text(st.sampled_from('ab,{}"* '), max_size=6)


@given(st.lists(VALUES, min_size=1, max_size=4, unique=True), VALUES)
@example(["Forestry, Fishing", "Sales"], "*")
@example(["", "*"], '"')
@example(["a"], "{a}")
def test_a_reader_finds_what_was_published(members: list[str], value: str) -> None:
    texts = pa.array([set_text(members), single_text(value)])
    assert is_set(texts).tolist() == [True, False]
    assert members_of(texts[:1]).to_pylist() == [members]
    assert values_of(texts[1:]).to_pylist() == [value]
    assert texts[1].as_py() != "*"


@given(st.lists(st.none() | st.lists(VALUES, max_size=4), max_size=6))
@example([["a", "b"], ["a, b"], ["{a, b}"], [], ["*"], None, [""]])
def test_different_lists_have_different_texts(lists: list[list[str] | None]) -> None:
    texts = as_texts(pa.array(lists, pa.list_(pa.string()))).to_pylist()
    for members, text in zip(lists, texts, strict=True):
        if not members:
            assert text == (None if members is None else "*")
        elif len(members) == 1:
            assert values_of(pa.array([text])).to_pylist() == members
            assert text != "*"
            assert not is_set(pa.array([text]))[0]
        else:
            assert is_set(pa.array([text]))[0]
            assert members_of(pa.array([text])).to_pylist() == [members]
    assert as_texts(pa.array(texts, pa.string())).to_pylist() == texts


def test_a_slice_of_lists_and_one_of_chunks_are_read() -> None:
    lists = pa.array([["x"], ["a", "b"], None, ["c"]], pa.list_(pa.string()))
    assert as_texts(lists[1:]).to_pylist() == ["{a, b}", None, "c"]
    chunks = pa.chunked_array([lists[:1], lists[3:]])
    assert as_texts(chunks).to_pylist() == ["x", "c"]


def test_plain_texts_stay_as_they_are() -> None:
    assert set_text(["France", "Côte d'Ivoire", "-1.5"]) == "{France, Côte d'Ivoire, -1.5}"
    assert single_text("Forestry, Fishing") == "Forestry, Fishing"
    assert set_text(["Forestry, Fishing", 'a "b"']) == '{"Forestry, Fishing", "a ""b"""}'
    assert single_text("10*") == '"10*"'
    assert values_of(pa.array(["a", None, '"'])).to_pylist() == ["a", None, '"']


@pytest.mark.parametrize("text", ['{"a}', '{"a"b}', "{a,b}", "{}", "{a, }", "{{a}}"])
def test_what_is_no_set_has_no_members(text: str) -> None:
    assert members_of(pa.array([text])).to_pylist() == [[]]
    assert members_of(pa.array([text, '{"b"}'])).to_pylist() == [[], ["b"]]
