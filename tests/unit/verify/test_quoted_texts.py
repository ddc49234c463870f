"""Texts of sets and values, written by one side and read by the other."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mondrian_ops.generalize.labels import set_text, single_text
from mondrian_ops.verify.quoted_texts import is_set, members_of, values_of

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
