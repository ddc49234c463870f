"""Values as a reader takes them: one spelling of a text, on both sides of the check; codes."""

from __future__ import annotations

import sys
import unicodedata

import pyarrow as pa
import pytest

from mondrian_ops.data.values import one_spelling
from mondrian_ops.errors import PrivacyError
from mondrian_ops.verify import values
from mondrian_ops.verify.values import (
    ColumnCodes,
    ColumnValues,
    IdentifierValues,
    as_number,
    as_read,
)


def characters() -> list[str]:
    """Every character of an early Unicode, which all libraries know, and those that show nothing.

    Not the ideographs and syllables: they are many, and like one another.
    """
    early = unicodedata.ucd_3_2_0
    known = [
        chr(at)
        for at in range(sys.maxunicode + 1)
        if early.category(chr(at)) not in ("Cn", "Cs", "Co")
        and not (0x3400 <= at < 0x9FA6 or 0xAC00 <= at < 0xD7A4 or 0x20000 <= at < 0x2A6D7)
    ]
    unseen = [*range(0x17B0, 0x1812), *range(0x27FE, 0x2802), *range(0xFDFE, 0xFE12)]
    return [*known, *map(chr, [*unseen, *range(0xE00FE, 0xE01F2)])]


@pytest.mark.parametrize("text", ["{}", "a{}b", " {} e", "e{}\u0301"])
def test_both_sides_read_every_character_alike(text):
    """The cutting and the check: neither knows of the other."""
    texts = [text.format(character) for character in characters()]
    cut = one_spelling(pa.array(texts)).to_pylist()
    differing = [each for each, spelled in zip(texts, cut, strict=True) if as_read(each) != spelled]
    assert [list(map(hex, map(ord, each))) for each in differing] == []
    again = [None if each is None else as_read(each) for each in cut]
    assert again == cut


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("flu", "flu"),
        ("", None),
        (" \t\r\n\x00\x1f\x7f\x85\u00a0\u2003\u2028\u2029\u3000", None),
        ("\u00ad\u061c\u200b\u200d\u2060\ufeff\u034f\u115f\u1160\u3164\uffa0\u2800", None),
        ("\u17b4\u17b5\u180b\u180f\ufe00\ufe0f\U000e0100\U000e01ef", None),
        ("\u2065\ufff0\ufff8\U000e0000\U000e0fff", None),
        ("\uffef", "\uffef"),
        ("  flu\t and\n\ncold ", "flu and cold"),
        ("\ufb02u", "flu"),
        ("fl\u200bu", "flu"),
        ("e\u200b\u0301", "\u00e9"),
        ("Flu", "Flu"),
        ("\u2468", "9"),
        ("flu\x00", "flu"),
        ("\u180a\u1810\u27ff\u2801", "\u180a\u1810\u27ff\u2801"),  # beside what shows nothing
        ("\ufdff\ufe10\U000dffff\U000e1000", "\ufdff,\U000dffff\U000e1000"),
    ],
)
def test_what_a_text_is_read_as(text, read):
    assert as_read(text) == read
    assert one_spelling(pa.array([text])).to_pylist() == [read]


def test_plain_text_is_left_as_it_is():
    """Without a look at each character, for there may be millions of texts."""
    plain = pa.array(["flu", "type 2", None, "~!"], pa.large_string())
    assert values._all_read(plain) is plain
    assert one_spelling(plain) is plain
    for text in ("a\n", " a", "a ", "a  b", "", "é"):
        untidy = pa.array(["flu", text], pa.large_string())
        assert values._all_read(untidy).to_pylist() == ["flu", as_read(text)]
    for other in (pa.array([1, 2]), pa.array([b" a"]), pa.nulls(2)):
        assert one_spelling(other) is other


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1", "1"),
        ("01", "1"),
        ("1.0", "1"),
        ("1E0", "1"),
        ("+5", "5"),
        ("-5.50", "-5.5"),
        (".5", "0.5"),
        ("-.05", "-0.05"),
        ("5e-3", "0.005"),
        ("120e1", "1200"),
        ("-0", "0"),
        ("0.00", "0"),
        ("123456789012345", "123456789012345"),
        ("12345678901234.5", "12345678901200"),
        ("1.234567890121", "1.23456789012"),
        ("1.234567890125", "1.23456789012"),  # a half, to the even one
        ("1.234567890135", "1.23456789014"),
        ("1.2345678901251", "1.23456789013"),
        ("0.9999999999999", "1"),
        ("9.99999999999999e5", "1000000"),
        ("", ""),
        (".", "."),
        ("e5", "e5"),
        ("1 000", "1 000"),
        ("0" * 100 + "1", "0" * 100 + "1"),
    ],
)
def test_what_number_a_text_is_read_as(text, number):
    assert as_number(text) == number


@pytest.mark.parametrize(
    ("how", "listed", "codes"),
    [
        ({}, ["1", " 1 ", "1.0", "1"], [1, 2, 3, 1, 0]),
        ({"read": True}, ["1", " 1 ", "1.0", "1"], [1, 1, 2, 1, 0]),
        ({"read": True, "numbers": True}, ["1", " 1 ", "1.0", "x"], [1, 1, 1, 2, 0]),
        ({}, [0.3, 0.1 + 0.2, 5.0], [1, 2, 3, 0]),
        ({"read": True}, [0.3, 0.1 + 0.2, 5.0, None], [1, 1, 2, 0, 0]),
        ({"read": True}, [2.0**53 - 1, 2.0**53 - 2], [1, 2, 0]),
        ({"nan_is_missing": True}, [float("nan"), 1.0], [0, 1, 0]),
        ({}, [float("nan"), 1.0, 0.0, -0.0], [1, 2, 3, 3, 0]),
    ],
)
def test_the_codes_of_values(how, listed, codes):
    column = ColumnValues("s", **how)
    assert column.codes_of(pa.array(listed)).tolist() == codes
    assert column.size == max(codes) + 1


def test_the_codes_of_the_values_of_several_parts():
    whole, one, other, none = (ColumnValues("s") for _ in range(4))
    for column, listed in ((whole, "c"), (one, "ab"), (other, "bc")):
        column.codes_of(pa.array(list(listed)))
    found = whole.add_all([one, other, none, one])
    assert [each.tolist() for each in found] == [[0, 2, 3], [0, 3, 1], [0], [0, 2, 3]]
    assert whole.values.to_pylist() == ["c", "a", "b"]
    assert [each.tolist() for each in whole.add_all([none])] == [[0]]
    numbers = ColumnValues("s")
    numbers.codes_of(pa.array([1]))
    with pytest.raises(PrivacyError, match=r"'s' is .* in one part and .* in another"):
        whole.add_all([one, numbers])
    whole.keep(2)
    assert whole.codes_of(pa.array(["b", "a"])).tolist() == [3, 2, 0]


@pytest.mark.parametrize(
    "listed", [[5, 7, 5, None], [-3, 2**62, -3], [None, None], [250, 7, 255, 250, 8, 9, 250]]
)
def test_the_codes_of_whole_numbers_of_a_part(listed):
    column = ColumnCodes(ColumnValues("q"))
    places = column.places(pa.array(listed, pa.int64()))
    rows = column.codes[places].tolist()
    present = sorted({each for each in listed if each is not None})
    assert sorted(column.values.values.to_pylist()) == present
    code_of = {value: code for code, value in enumerate(column.values.values.to_pylist(), 1)}
    assert rows == [code_of.get(each, 0) for each in listed]


@pytest.mark.parametrize(
    ("parts", "distinct"),
    [
        ([["*", "*"], ["*"]], ["*"]),
        ([[], ["*"]], ["*"]),
        ([["*"], []], ["*"]),
        ([[None], [None, None]], [None]),
        ([["*"], [None]], [None, "*"]),
        ([["*"], ["Jane"]], ["*", "Jane"]),
        ([["*"], ["Jane", "Joe"]], None),
    ],
)
def test_two_values_show_that_an_identifier_is_not_blank(parts, distinct):
    one, other = (IdentifierValues("name") for _ in range(2))
    assert not one.is_published
    for column, listed in zip((one, other), parts, strict=True):
        column.add(pa.array(listed, pa.string()))
    one.merge(other)
    assert one.is_published
    assert one.is_blank is (distinct is not None and len(distinct) < 2)
    if distinct is not None:
        assert one.distinct.to_pylist() == distinct
