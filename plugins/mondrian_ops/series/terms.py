"""What all nights of a series share, since its promise is about all of them.

These are options of the job, and the types of the columns that tell persons and their values apart.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from mondrian_ops import catalogue
from mondrian_ops.catalogue.tables import night, series
from mondrian_ops.core.errors import InputError, JobError
from mondrian_ops.core.job import Job
from mondrian_ops.core.series_options import Series

__all__ = ["keep_types", "refuse_other_terms", "refuse_other_types", "terms_of"]

_TYPES = "types"


def terms_of(job: Job) -> dict[str, Any]:
    """The options that all nights of a series must share, since its promise is about all of them.

    What tells persons and their values apart counts only where persons are followed.
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
    }


def refuse_other_terms(connection: sa.Connection, name: str, job: Job) -> None:
    """Raise JobError where a term of the job is not that of the nights before."""
    noted = connection.execute(sa.select(series.c.terms).where(series.c.name == name)).scalar()
    if noted is None:
        return
    before: dict[str, Any] = json.loads(noted)
    for option, value in terms_of(job).items():
        if before.get(option) != value:
            raise JobError(
                f"{option}: {_in_words(value)}, but {_in_words(before.get(option))} in the nights "
                "before, whose promise would end; change it back, or begin another series with "
                "another output"
            )


def _in_words(value: object) -> str:
    return "not set" if value is None else str(value)


def refuse_other_types(name: str, types: Mapping[str, str]) -> None:
    """Raise InputError where a column of a drop has another type than in the nights before."""
    with catalogue.current().reading() as connection:
        _, before = _terms_and_types(connection, series.c.name == name)
    for column, type_ in types.items():
        if before.get(column, type_) != type_:
            raise InputError(
                f"column {column!r}: {type_}, but {before[column]} in the nights before, so nobody "
                f"would be recognized by it; deliver it as {before[column]}, or begin another "
                "series with another output"
            )


def keep_types(connection: sa.Connection, series_id: int, types: Mapping[str, str]) -> None:
    """Note the types of columns that had no values in the nights before."""
    mine = series.c.id == series_id
    terms, known = _terms_and_types(connection, mine)
    if types.keys() - known.keys():
        terms[_TYPES] = {**types, **known}
        connection.execute(series.update().where(mine).values(terms=json.dumps(terms)))


def _terms_and_types(
    connection: sa.Connection, mine: sa.ColumnElement[bool]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The terms of a series, and the types among them; no types where it has no night.

    A first night that was taken back has left its types.
    """
    has_night = sa.exists().where(night.c.series == series.c.id).label("has_night")
    found = connection.execute(sa.select(series.c.terms, has_night).where(mine)).first()
    terms: dict[str, Any] = json.loads(found.terms or "{}") if found is not None else {}
    return terms, terms.get(_TYPES, {}) if found is not None and found.has_night else {}
