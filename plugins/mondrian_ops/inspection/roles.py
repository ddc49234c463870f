"""Which role a column may have in a job, and how it may be generalized; each with its reason.

Kinds of values, names and counts decide, in this order. A column that none of them explains stays
undecided, and the job leaves it out until a person names it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from mondrian_ops.data.generalizations import generalization_of
from mondrian_ops.errors import JobError
from mondrian_ops.inspection import kinds, vocabulary
from mondrian_ops.inspection.columns import Column
from mondrian_ops.inspection.floor import RequiredRole
from mondrian_ops.inspection.kinds import kind_of
from mondrian_ops.job.quasi_identifier import QuasiIdentifier

Role = Literal["identifier", "entity_id", "quasi_identifier", "sensitive", "left_out", "undecided"]

UNIQUE = 0.9
"""Distinct values by row from which on a column is as good as a number of the rows."""

_FEWEST_PERSONS = 20
_NEARLY_ALL = 0.9
_FLAGS, _FEW = 3, 20
_WORDS_OF_FREE_TEXT = 4


class Proposal(NamedTuple):
    """``generalization``: what follows the name in a quasi-identifier's short form, or nothing."""

    role: Role
    reason: str
    generalization: str = ""


def proposed(
    column: Column, kind: str | None, *, may_list: bool, required: RequiredRole | None = None
) -> Proposal:
    """The role of a column whose values are of a ``kind``.

    ``may_list``: whether a job may show all values of the column, as an order does. ``required``:
    the role that a policy gives it.
    """
    if not column.distinct:
        return Proposal("left_out", "no row has a value")
    proposal = (
        _of_policy(column, kind, required)
        or _of_kind(column, kind)
        or _of_name(column, kind)
        or _of_values(column)
        or _of_counts(column)
    )
    if proposal.role != "quasi_identifier":
        return proposal
    if not _can_be_generalized(column):
        return Proposal(
            "left_out",
            "values of its type cannot be generalized; make it text, a number or a date",
        )
    if proposal.generalization.startswith("order:") and not may_list:
        return proposal._replace(generalization="")
    return proposal


def _can_be_generalized(column: Column) -> bool:
    try:
        generalization_of(QuasiIdentifier(column.name), column.type)
    except JobError:
        return False
    return True


def persons(columns: Sequence[Column], *, sampled: bool) -> Column | None:
    """The column that tells persons apart, of whom some have several rows; None if none does.

    Of a sample, a number of persons is one even if none occurs twice.
    """
    for column in columns:
        repeats = sampled or column.distinct < column.present
        if repeats and column.distinct >= _FEWEST_PERSONS and _numbers_persons(column):
            return column
    return None


def keys_of_people(columns: Sequence[Column]) -> list[Column]:
    """The columns of which each value is one person's, who may have several rows."""
    return [
        column
        for column in columns
        if column.distinct < column.present
        and (_numbers_persons(column) or kind_of(column) in kinds.ONE_PERSONS)
    ]


def _numbers_persons(column: Column) -> bool:
    words = {*column.words, "".join(column.words)}
    is_number = column.distinct > _FLAGS and (column.is_integer or column.is_text)
    of_persons = words & vocabulary.PERSON and (
        _looks_like_key(column) or words & vocabulary.PERSON_NUMBER
    )
    return is_number and bool(of_persons or words == {"id"})


def _looks_like_key(column: Column) -> bool:
    return not vocabulary.NUMBER.isdisjoint(column.words) or any(
        word.endswith(("id", "no", "nr")) for word in column.words
    )


def _of_policy(column: Column, kind: str | None, required: RequiredRole | None) -> Proposal | None:
    if required is None:
        return None
    if required == "left_out":
        return Proposal("left_out", "a policy lets jobs publish listed columns only")
    how = generalization(column, kind) if required == "quasi_identifier" else ""
    return Proposal(required, "a policy gives it this role", how)


def _of_kind(column: Column, kind: str | None) -> Proposal | None:
    if kind in kinds.ONE_PERSONS:
        return Proposal("identifier", f"{kind}: each is one person's")
    if kind == kinds.IP:
        return Proposal("quasi_identifier", f"{kind}: networks hide hosts", "ladder:ip")
    if kind == kinds.POSTAL:
        return Proposal("quasi_identifier", f"{kind}: where a person lives", "ladder:postal")
    if kind == kinds.ICD10 and vocabulary.KNOWN.isdisjoint(column.words):
        return Proposal("sensitive", f"{kind}: a person's health")
    if kind == kinds.DATE_TEXT:
        return Proposal(
            "left_out",
            "dates as text, which no ladder can read; write them as 2024-01-31, so that the "
            "column has months and years",
        )
    return None


def _of_name(column: Column, kind: str | None) -> Proposal | None:
    words = {*column.words, "".join(column.words)}
    many = column.distinct > _FLAGS
    if many and words & vocabulary.NAMES and not words & vocabulary.THINGS and not column.is_number:
        return Proposal("identifier", "names people")
    if (
        many
        and words & vocabulary.LEADS_TO_PERSON
        and not (words & vocabulary.THINGS and column.distinct <= _FEW)
    ):
        return Proposal("identifier", "leads to a person")
    if _is_number_of_rows(column):
        return Proposal("identifier", "a number of its own for nearly every row")
    secret = words & vocabulary.SECRET or _with_stem(words, vocabulary.SECRET_STEMS)
    if secret and not words & {"age", "date", "year", "yr"}:
        return _sensitive(column, min(secret))
    known = words & vocabulary.KNOWN or _with_stem(words, vocabulary.KNOWN_STEMS)
    if known:
        reason = f"{min(known)}: others may know it"
        return Proposal("quasi_identifier", reason, generalization(column, kind))
    return None


def _with_stem(words: set[str], stems: frozenset[str]) -> set[str]:
    return {word for word in words if any(stem in word for stem in stems)}


def _sensitive(column: Column, word: str) -> Proposal:
    share = column.counts.max() / column.rows
    if share > _NEARLY_ALL:
        return Proposal(
            "undecided",
            f"{word}: people may keep it to themselves, but {share:.0%} of the rows have one "
            "value, so that l costs much: name it as sensitive or leave it out",
        )
    return Proposal("sensitive", f"{word}: people may keep it to themselves")


def _is_number_of_rows(column: Column) -> bool:
    """Whether a column numbers rows or persons: unique whole numbers without gaps, or keys."""
    if column.distinction < UNIQUE or column.single < UNIQUE:
        return False
    if not column.is_integer:
        return column.is_text and _looks_like_key(column)
    span = int(column.values[-1].as_py()) - int(column.values[0].as_py()) + 1
    return _looks_like_key(column) or column.distinct > 0.5 * span


def _of_values(column: Column) -> Proposal | None:
    if not column.is_text or column.distinct > _FEW:
        return None
    texts = [text.strip().strip(".").lower().replace(" ", "-") for text in column.texts.to_pylist()]
    for what, known in vocabulary.VALUES.items():
        if len(texts) >= 2 and set(texts) <= known:
            return Proposal(
                "quasi_identifier", f"its values are {what}", generalization(column, None)
            )
    return None


def _of_counts(column: Column) -> Proposal:
    if column.distinct == 1 and column.present == column.rows:
        return Proposal("left_out", "all rows have one value")
    if column.is_text:
        if _free_text(column):
            return Proposal("left_out", "free text, which may name people")
        if _names_of_people(column):
            return Proposal("identifier", "texts that look like names of people")
        if column.single > UNIQUE:
            return Proposal("identifier", "a text of its own for nearly every row")
    if column.is_integer and column.distinct <= _FEW:
        return Proposal("undecided", "few whole numbers: codes or counts? Say what they are")
    return Proposal("undecided", "neither its name nor its values say what it is")


def _free_text(column: Column) -> bool:
    many = column.matching(rf"(?s)(?:\S+\s+){{{_WORDS_OF_FREE_TEXT},}}\S.*")
    return many > 0.5 and column.distinction > 0.2


def _names_of_people(column: Column) -> bool:
    pattern = r"\p{Lu}[\p{L}'’-]+,?(?: \p{Lu}\.?)?(?: \p{Lu}[\p{L}'’-]+){1,2}"
    return column.distinction > 0.3 and column.matching(pattern) >= kinds.MOST


def generalization(column: Column, kind: str | None) -> str:
    """How a quasi-identifier may be generalized, as its short form says it behind ``=``."""
    if kind == kinds.POSTAL:
        return "ladder:postal"
    if column.is_moment:
        birth = not {"birth", "birthday", "birthdate", "born", "dob"}.isdisjoint(column.words)
        return "ladder:year/decade" if birth else "ladder:month/quarter/year"
    if column.is_text:
        return _of_texts(column)
    return ""


def _of_texts(column: Column) -> str:
    order = _order_of(column)
    if order:
        return "order:" + "/".join(order)
    if column.distinct > _FEW and column.matching("[0-9A-Z-]+") >= kinds.MOST:
        return "prefix"
    return ""


def _order_of(column: Column) -> list[str]:
    """The values in their order, if it is one that is known; a job needs all of them."""
    texts = column.texts.to_pylist()
    by_word = {text.lower(): text for text in texts}
    for order in vocabulary.ORDERS:
        if len(by_word) == len(texts) > 2 and by_word.keys() <= set(order):
            return [by_word[word] for word in order if word in by_word]
    ranges = {text: re.fullmatch(r"(\d+) ?[-–] ?(\d+)|(\d+) ?\+", text) for text in texts}
    if len(texts) > 2 and all(ranges.values()):
        starts = {text: int(match[1] or match[3]) for text, match in ranges.items() if match}
        return sorted(texts, key=lambda text: starts[text])
    return []
