"""One spelling of a text, on both sides of the check."""

from __future__ import annotations

import sys
import unicodedata

import pyarrow as pa
import pytest

from mondrian_ops.data.values import one_spelling
from mondrian_ops.verify import values
from mondrian_ops.verify.values import as_read


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
