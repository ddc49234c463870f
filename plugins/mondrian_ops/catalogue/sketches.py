"""The people of publications, as sketches, to find who was released before."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa

from mondrian_ops.catalogue.publication import Intention
from mondrian_ops.catalogue.tables import publication, sketch
from mondrian_ops.data.sketch import Sketch

SCOPE = "people"
"""The scope of the intentions to publish people."""

_ROWS_AT_ONCE = 64


class People(NamedTuple):
    """The people of a publication, or of an intention that is not yet ``published``.

    ``time`` is in ISO 8601; ``by`` are the columns that tell people apart, in order.
    """

    intention: Intention
    published: bool
    time: str
    dataset: str
    by: list[str]
    sketch: Sketch


def note(
    connection: sa.Connection,
    intention: Intention,
    *,
    population: str,
    by: Sequence[str],
    dataset: str,
    people: Sketch,
) -> None:
    """Note the people of an intention; they go when it is withdrawn."""
    connection.execute(
        sketch.insert().values(
            publication=intention.id,
            population=population,
            people_by=json.dumps(list(by)),
            dataset=dataset,
            rows=people.rows,
            total=f"{people.total:016x}",
            least=people.least.astype("<u8").tobytes(),
        )
    )


def of_others(
    connection: sa.Connection, population: str, work: str, after: int
) -> Iterator[People]:
    """The people of the publications of a population, in the order in which they were intended.

    Those of the run with the working files ``work`` are left out, and those with an id up to
    ``after``.
    """
    columns = [publication.c[name] for name in Intention._fields]
    own = publication.c.published, publication.c.time
    told = sketch.c.dataset, sketch.c.people_by, sketch.c.rows, sketch.c.total, sketch.c.least
    found = (
        _others(sa.select(*columns, *own, *told), population, work, after)
        .order_by(publication.c.id)
        .execution_options(yield_per=_ROWS_AT_ONCE)
    )
    split = len(columns)
    for row in connection.execute(found):
        published, time, dataset, by, rows, total, least = row[split:]
        people = Sketch(np.frombuffer(least, "<u8").astype(np.uint64), int(total, 16), rows)
        yield People(Intention(*row[:split]), published, time, dataset, json.loads(by), people)


def any_since(connection: sa.Connection, population: str, work: str, after: int) -> bool:
    """Whether `of_others` would find any."""
    one = _others(sa.select(publication.c.id), population, work, after).limit(1)
    return connection.execute(one).first() is not None


def _others(statement: sa.Select[Any], population: str, work: str, after: int) -> sa.Select[Any]:
    return statement.join_from(publication, sketch).where(
        sketch.c.population == population, publication.c.work != work, publication.c.id > after
    )
