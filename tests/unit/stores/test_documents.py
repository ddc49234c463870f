"""YAML and JSON that a person wrote: what it says, and where it is wrong."""

from __future__ import annotations

import json

import pytest

from mondrian_ops.stores.documents import (
    MAX_ALIASES,
    MAX_LEVELS,
    MAX_MERGED_KEYS,
    DocumentError,
    parsed,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("k: 5\nsensitive: [a, b]\n", {"k": 5, "sensitive": ["a", "b"]}),
        ('{"k": 5}', {"k": 5}),
        ("{k: 5, cut: gain}", {"k": 5, "cut": "gain"}),  # YAML that begins as JSON does
        (json.dumps({"name": "\U0001f600"}), {"name": "\U0001f600"}),  # two halves, escaped
        ("", None),
    ],
)
def test_both_are_read(text, value):
    assert parsed(text) == value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("k: 5\nl: [1\n", ", line 3: not valid YAML"),
        ("k: 2025-02-30\n", ": not valid YAML"),
        ("k: 5\nl: {a: 1,\n  a: 2}\n", ", line 2: duplicate key"),
        ('{"k": 5, "k": 6}', ": duplicate key"),
        ('{"a": "\\ud83d"}', ": a text has an unpaired surrogate"),
        ("[" * 100_000, ": nested too deeply"),
        ("!!python/object/apply:os.getcwd []", ", line 1: not valid YAML"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text, said):
    with pytest.raises(DocumentError) as caught:
        parsed(text)
    assert str(caught.value) == said


def test_no_document_grows_by_what_it_repeats():
    aliases = "a: &a [1]\nb: [{}]\n"
    assert parsed(aliases.format(", ".join(["*a"] * MAX_ALIASES)))["b"] == [[1]] * MAX_ALIASES
    with pytest.raises(DocumentError, match=f"more than {MAX_ALIASES} aliases"):
        parsed(aliases.format(", ".join(["*a"] * (MAX_ALIASES + 1))))
    keys = ", ".join(f"k{at}: 1" for at in range(MAX_MERGED_KEYS))
    assert len(parsed(f"a: &a {{{keys}}}\nb: {{<<: *a}}\n")["b"]) == MAX_MERGED_KEYS
    with pytest.raises(DocumentError, match="more than 10,000 keys"):
        parsed(f"a: &a {{{keys}}}\nb: {{<<: *a, c: 1}}\n")


def test_levels_have_a_limit():
    levels = "".join(f"{' ' * level}k:\n" for level in range(MAX_LEVELS - 1))
    parsed(f"{levels}{' ' * MAX_LEVELS}1")
    with pytest.raises(DocumentError, match="nested too deeply"):
        parsed(f"{levels}{' ' * MAX_LEVELS}k: 1")
