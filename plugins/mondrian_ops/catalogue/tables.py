"""The tables of the catalogue. No column holds a person's value: persons are keyed hashes.

Times are texts in ISO 8601, UTC, with microseconds, so that they sort as texts. A change here needs
a migration (``migrations/versions``); a test compares both.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import Column, ForeignKey, Index, Table, UniqueConstraint

SCHEMA = "0005"
"""The revision of the last migration."""

VERSIONS = "mondrian_ops_version"
"""Alembic's table of the revision: `alembic_version` is Airflow's, perhaps in this database."""

metadata = sa.MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_name)s",
    }
)

_ID = sa.String(32)
_TIME = sa.String(32)


def _of_publication() -> Column[int]:
    """The key of what a publication has one of; it goes with the publication."""
    publication = ForeignKey("publication.id", ondelete="CASCADE")
    return Column("publication", sa.Integer, publication, primary_key=True, autoincrement=False)


key_table = Table(
    "secret_key",
    metadata,
    Column("id", sa.Integer, primary_key=True, autoincrement=False),
    Column("fingerprint", sa.String(16), nullable=False),
)
"""At most one row: the fingerprint of the key that ids and persons are hashed with."""

FIGURES = (
    "k", "l", "t", "achieved_k", "achieved_l", "achieved_t", "rows_input", "rows_published",
    "rows_suppressed", "equivalence_classes", "NCP", "GCP", "LM", "DP", "risk", "risk_avg",
    "duration_s",
)  # fmt: skip
"""What was required of a release and reached: the overview of its report."""

release = Table(
    "release",
    metadata,
    Column("id", _ID, primary_key=True),
    Column("time", _TIME, nullable=False),
    Column("state", sa.String(16), nullable=False),
    Column("reason", sa.Text),
    Column("series", sa.Text, nullable=False),
    Column("dataset", sa.Text, nullable=False),
    Column("searched", sa.Text, nullable=False),
    Column("input", sa.Text, nullable=False),
    Column("input_series", sa.Text, nullable=False),
    Column("dag_id", sa.Text, nullable=False),
    Column("run_id", sa.Text, nullable=False),
    Column("task_id", sa.Text, nullable=False),
    Column("map_index", sa.Integer, nullable=False),
    Column("algorithm", sa.Text, nullable=False),
    Column("engine", sa.Text, nullable=False),
    *(Column(name, sa.Double) for name in FIGURES),
    Index("ix_release_time", "time", "id"),
    Index("ix_release_series", "series", "state", "dag_id", "time", "id"),
    Index("ix_release_input_series", "input_series", "state", "time"),
    Index("ix_release_dag_id", "dag_id", "state", "time", "id"),
    Index("ix_release_run_id", "run_id", "dag_id"),
)
"""The state of a task group's release (or frontier) in a run, which the pages show.

``id`` is a keyed hash of the run's names. ``series`` is the dataset's name: its location without
dates, as ``input_series`` is the input's. ``searched`` is both names of the dataset, case-folded.
"""

document = Table(
    "document",
    metadata,
    Column("release", _ID, ForeignKey("release.id", ondelete="CASCADE"), primary_key=True),
    Column("name", sa.String(100), primary_key=True),
    Column("content", sa.LargeBinary, nullable=False),
)
"""The report of a release, or the figures of a frontier, as JSON."""

approval = Table(
    "approval",
    metadata,
    Column("release", _ID, primary_key=True),
    Column("time", _TIME, nullable=False),
    Column("content", sa.Text, nullable=False),
    Column("signature", sa.String(64), nullable=False),
    Column("verifier", sa.String(64), nullable=False),
)
"""The last question about each release that waits, or waited, for an approval.

``content``: the question and what was decided, as JSON, with the ``signature`` of the catalogue's
key. ``verifier``: the hash of the password by which a task asks the API server for Airflow's record
of the answer.
"""

publication = Table(
    "publication",
    metadata,
    Column("id", sa.Integer, primary_key=True),
    Column("scope", sa.Text, nullable=False),
    Column("token", sa.Text, nullable=False),
    Column("work", sa.Text, nullable=False),
    Column("output", sa.Text, nullable=False),
    Column("time", _TIME, nullable=False),
    Column("published", sa.Boolean, nullable=False),
    Index("ix_publication_scope", "scope", "published"),
    Index("ix_publication_token", "token"),
    sqlite_autoincrement=True,  # the id of a withdrawn intention is not used again
)
"""Attempts at a publication: intentions until they are ``published``.

``token``, ``work`` and ``output`` tell whoever finds an intention whether the release is out.
"""

sketch = Table(
    "sketch",
    metadata,
    _of_publication(),
    Column("population", sa.Text, nullable=False),
    Column("people_by", sa.Text, nullable=False),
    Column("dataset", sa.Text, nullable=False),
    Column("rows", sa.BigInteger, nullable=False),
    Column("total", sa.String(16), nullable=False),
    Column("least", sa.LargeBinary, nullable=False),
)
"""The people of a publication, as a sketch (:mod:`mondrian_ops.data.sketch`).

``people_by``: the columns that tell people apart, as a JSON array of names. ``population``: the
job's; empty for none. ``least``: little-endian 64-bit hashes.
"""

contract = Table(
    "contract",
    metadata,
    _of_publication(),
    Column("dataset", sa.Text, nullable=False),
    Column("label", sa.Text, nullable=False),
    Column("columns", sa.Text, nullable=False),
    Index("ix_contract_dataset", "dataset", "label"),
)
"""The columns of a publication (:mod:`mondrian_ops.data.contract`), as JSON.

``dataset``: the output without dates; ``label``: the digits of its dates.
"""

contract_change = Table(
    "contract_change",
    metadata,
    Column("id", sa.String(8), primary_key=True),
    Column("dataset", sa.Text, nullable=False),
    Column("digest", sa.String(64), nullable=False),
    Column("changes", sa.Text, nullable=False),
    Column("output", sa.Text, nullable=False),
    Column("time", _TIME, nullable=False),
    Column("accepted_by", sa.Text),
    Column("accepted_at", _TIME),
    Column("publication", sa.Integer, ForeignKey("publication.id", ondelete="SET NULL")),
    Index("ix_contract_change_dataset", "dataset"),
)
"""How a drop, whose release would be ``output``, differs from its dataset's contract, as JSON.

The drop is refused until somebody accepts the change; ``publication`` is the one that used that.
"""

series = Table(
    "series",
    metadata,
    Column("id", sa.Integer, primary_key=True),
    Column("name", sa.Text, nullable=False),
    Column("terms", sa.Text, nullable=False),
    Column("refit", sa.Boolean, nullable=False, server_default=sa.false()),
    UniqueConstraint("name"),
)
"""A series of releases, named by its output without dates.

``terms``: the options that all its nights share, and the types of the columns that tell persons
apart, as JSON; ``refit``: a person asked for new boundaries (`generalize.series_boundaries`) in
the next night.
"""

PENDING = "pending"
"""The state of a night whose release may not be out yet."""

night = Table(
    "night",
    metadata,
    Column("id", sa.Integer, primary_key=True),
    Column("series", sa.Integer, ForeignKey("series.id"), nullable=False),
    Column("number", sa.Integer, nullable=False),
    Column("token", sa.Text, nullable=False),
    Column("state", sa.String(16), nullable=False),
    Column("label", sa.Text, nullable=False),
    Column("input", sa.Text, nullable=False),
    Column("output", sa.Text, nullable=False),
    Column("work", sa.Text, nullable=False),
    Column("time", _TIME, nullable=False),
    Column("rows_in", sa.BigInteger, nullable=False),
    Column("rows_published", sa.BigInteger, nullable=False),
    Column("rows_suppressed", sa.BigInteger, nullable=False),
    Column("rows_waiting", sa.BigInteger, nullable=False),
    Column("policies", sa.Text),
    Column("signature", sa.String(64)),
    Column("boundaries", sa.Text),
    Column("loss", sa.Double),
    Column("sample_loss", sa.Double),
    Column("sample_loss_nightly", sa.Double),
    Column("drift", sa.Double),
    Column("persons", sa.BigInteger),
    Column("least_common", sa.Integer),
    UniqueConstraint("series", "number"),
    UniqueConstraint("token"),
)
"""A night of a series: pending (an intention), published or held. Numbers count from 1.

``policies``, as JSON: those under which the rows of its drop came, for the night that publishes
them. ``signature``: of the catalogue's key, over these, the input and the night's place in its
series. Both are NULL in nights of versions that kept none. ``boundaries``, as JSON, if they were
fitted in this night: they are those of the nights after it, too. ``loss`` is the GCP of its
release; that of a sample is cut with the boundaries of the series, and without any; ``drift`` is
the largest of its columns. ``persons`` are those of the release, where the series follows them, and
``least_common`` the least number of sensitive values left for one.
"""

waiting = Table(
    "waiting",
    metadata,
    Column("id", sa.Integer, primary_key=True),
    Column("series", sa.Integer, ForeignKey("series.id"), nullable=False),
    Column("origin", sa.Integer, nullable=False),
    Column("night", sa.Integer, ForeignKey("night.id"), nullable=False),
    Column("file", sa.Text, nullable=False),
    Column("rows", sa.BigInteger, nullable=False),
    Index("ix_waiting_series", "series"),
)
"""Rows that wait: they first came in night number ``origin``; ``night`` wrote ``file``."""

person = Table(
    "person",
    metadata,
    Column("series", sa.Integer, ForeignKey("series.id"), primary_key=True),
    Column("hash", sa.BigInteger, primary_key=True, autoincrement=False),
    Column("common", sa.LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)
"""A person of a series (``protect: intersection``), by a keyed hash, who is in an earlier release.

``common``: the sensitive values that all classes of the person had, as bits, eight bytes of them at
least. For who is in the last release, the row of that night in ``night_persons`` counts instead.
"""

sensitive_value = Table(
    "sensitive_value",
    metadata,
    Column("series", sa.Integer, ForeignKey("series.id"), primary_key=True),
    Column("code", sa.Integer, primary_key=True, autoincrement=False),
    Column("hash", sa.BigInteger, nullable=False),
)
"""The place of each sensitive value of a series in ``person.common``, by a keyed hash."""

night_persons = Table(
    "night_persons",
    metadata,
    Column("night", sa.Integer, ForeignKey("night.id"), primary_key=True),
    Column("first", sa.Integer, primary_key=True, autoincrement=False),
    Column("content", sa.LargeBinary, nullable=False),
)
"""The persons of a night as Arrow streams, from the ``first`` person of each on.

A pending night, and the last one that has a release, have for each person, by a keyed hash: a hash
of the class (``published``), one of the quasi-identifiers (``place``), and the ``common`` values,
as in ``person``. The nights before have ``hash`` and ``published`` only. All are sorted by both.
"""
