"""What all nights of a series share, since its promise is about all of them.

These are options of the job, and the types of the columns that tell persons and their values apart.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from mondrian_ops import catalogue
from mondrian_ops.catalogue.tables import PENDING, night, series
from mondrian_ops.errors import InputError, JobError
from mondrian_ops.job.job import Job
from mondrian_ops.job.series_options import Series
from mondrian_ops.series.naming import is_one_series

_TYPES = "types"
_AT_LEAST = ("k", "l")


def terms_of(job: Job) -> dict[str, Any]:
    """The options that all nights of a series must share, since its promise is about all of them.

    A later night may have a greater ``k`` or ``l`` than the first one. These, and what tells
    persons and their values apart, count only where persons are followed.
    """
    options = job.series or Series()
    terms: dict[str, Any] = {"series.kind": options.kind, "series.protect": options.protect}
    if options.protect != "intersection":
        return terms
    return {
        **terms,
        "entity_id": job.entity_id,
        "sensitive": ", ".join(job.sensitive),
        "missing_sensitive": job.missing_sensitive,
        "quasi_identifiers": ", ".join(sorted(job.quasi_identifier_names)),
        "k": job.k,
        "l": job.l,
        "series.subtraction": "protect" if job.is_balanced else None,
    }


def protects(connection: sa.Connection, name: str) -> bool:
    """Whether there is such a series, which protects its people from intersection.

    A pending night counts: its release may be there already.
    """
    has_night = sa.exists().where(night.c.series == series.c.id)
    noted = connection.execute(sa.select(series.c.name, series.c.terms).where(has_night)).all()
    return any(
        json.loads(terms).get("series.protect") == "intersection" and is_one_series(each, name)
        for each, terms in noted
    )


def refuse_other_terms(connection: sa.Connection, name: str, job: Job) -> None:
    """Raise JobError where a term of the job is not that of the nights before."""
    before, has_night = _noted(connection, name)
    if not has_night:
        return
    for option, value in terms_of(job).items():
        promised = before.get(option)
        asks_more = option in _AT_LEAST and value is not None and value > (promised or 0)
        if value == promised or asks_more:
            continue
        remedy = "ask for no less" if option in _AT_LEAST else "change it back"
        raise JobError(
            f"{option}: {_in_words(value)}, but {_in_words(promised)} in the nights before, whose "
            f"promise would end; {remedy}, or begin another series with another output"
        )


def _in_words(value: object) -> str:
    return "not set" if value is None else str(value)


def refuse_other_types(name: str, types: Mapping[str, str]) -> None:
    """Raise InputError where a column of a drop has another type than in the nights before."""
    with catalogue.current().reading() as connection:
        terms, has_night = _noted(connection, name)
    before = terms.get(_TYPES, {}) if has_night else {}
    for column, type_ in types.items():
        if before.get(column, type_) != type_:
            raise InputError(
                f"column {column!r}: {type_}, but {before[column]} in the nights before, so its "
                f"values cannot be compared with theirs; deliver it as {before[column]}, or begin "
                "another series with another output"
            )


def keep_terms(connection: sa.Connection, name: str, job: Job, types: Mapping[str, str]) -> None:
    """Note the terms of the first night, and types of columns that had no values before.

    A first night that was taken back may have left its own.
    """
    before, has_night = _noted(connection, name)
    terms = before if has_night else terms_of(job)
    if types:
        terms = {**terms, _TYPES: {**types, **terms.get(_TYPES, {})}}
    if terms != before:
        mine = series.update().where(series.c.name == name)
        connection.execute(mine.values(terms=json.dumps(terms)))


def _noted(connection: sa.Connection, name: str) -> tuple[dict[str, Any], bool]:
    """The terms of a series, with the types among them, and whether it has a night.

    A pending one does not count: it may be taken back.
    """
    there = night.c.series == series.c.id, night.c.state != PENDING
    has_night = sa.exists().where(*there).label("has_night")
    mine = sa.select(series.c.terms, has_night).where(series.c.name == name)
    found = connection.execute(mine).first()
    return (json.loads(found.terms or "{}"), bool(found.has_night)) if found else ({}, False)
