"""How the input is read: the types of its columns, and the section ``csv`` of a job."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal, Self

from mondrian_ops.job.options import Options, option, shown, wrong
from mondrian_ops.late_methods import dataclass

READING = "How the input is read"
"""The section of the trigger form."""

Type = Literal["text", "integer", "number", "float", "decimal", "boolean", "date", "timestamp"]

TYPES: Mapping[Type, str] = {
    "text": "any texts, such as codes and telephone numbers",
    "integer": "whole numbers",
    "number": "numbers, published as `70` and `71.5`",
    "float": "numbers as Python writes them, published as `70.0` and `71.5`",
    "decimal": "exact numbers with a fixed number of decimals, such as prices: `250.10`",
    "boolean": "true and false",
    "date": "dates, such as `2024-01-31`",
    "timestamp": "dates with times, such as `2024-01-31 10:00`; with a time zone in all or in none",
}
"""The types that a job can give a column, and what each is for."""

_TAB = ("tab", "\\t")


@dataclass(frozen=True, slots=True)
class Csv(Options):
    """How CSV files are read, and which texts are missing values."""

    separator: str | None = option(
        None,
        title="CSV: separator",
        text="The character between two values, such as `;`, or `tab`.",
        unset="found in the first lines, from `,`, `;`, `|` and tab",
        blank=True,
        examples=(";", "|", "tab"),
        form=READING,
    )
    decimal: Literal[".", ","] = option(
        ".",
        title="CSV: decimal mark",
        text="The mark before the decimals of a number.",
        choices={".": "as in 250.10", ",": "as in 250,10"},
        form=READING,
    )
    encoding: str | None = option(
        None,
        title="CSV: encoding",
        text="The encoding of the text, such as `latin-1`, `cp1252` or `utf-16-le`.",
        unset="that of the byte order mark, or else UTF-8; other text is refused",
        examples=("latin-1",),
        form=READING,
    )
    missing: tuple[str, ...] = option(
        (),
        title="Texts that are missing values",
        text="Texts that stand for a missing value, in every column of CSV files and in the text "
        "columns of other inputs. An empty field of a CSV file always does.",
        details="They are compared as they are written, with upper and lower case.",
        noun="a text",
        examples=(("NA", "N/A", "unknown", "-"),),
        form=READING,
    )

    def completed(self) -> Self:
        """The same, with the tab as a character."""
        separator = self.separator or None
        return replace(self, separator="\t" if separator in _TAB else separator)

    def check(self, path: str) -> None:
        """Raise JobError for a separator or an encoding with which no CSV file can be read."""
        mark = self.separator
        if mark is not None and (
            len(mark) != 1 or not mark.isascii() or mark.isalnum() or mark in "\"'.\r\n\0"
        ):
            raise wrong(
                f"{path}.separator",
                f"must be one character such as ';', or tab, not {shown(mark)}",
            )
        if mark == self.decimal:
            raise wrong(
                f"{path}.decimal",
                f"{mark!r} is also the separator; choose another of the two",
            )
        if self.encoding is not None:
            _check_encoding(f"{path}.encoding", self.encoding)


def _check_encoding(path: str, name: str) -> None:
    try:
        # A codec such as base64 is no encoding of text, and refuses to be used as one.
        text = "".encode(name).decode(name)
        codecs.lookup(name)
    except (LookupError, ValueError, TypeError):
        text = None
    if text != "":
        raise wrong(
            path, f"{shown(name)} is no encoding that Python knows; use utf-8, latin-1 or utf-16"
        )
