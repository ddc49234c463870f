"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""

    op.create_table(
        "publication",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("work", sa.Text(), nullable=False),
        sa.Column("output", sa.Text(), nullable=False),
        sa.Column("time", sa.String(length=32), nullable=False),
        sa.Column("published", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_publication")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_publication_scope", "publication", ["scope", "published"])
    op.create_index("ix_publication_token", "publication", ["token"])
    op.create_table(
        "sketch",
        sa.Column("publication", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("population", sa.Text(), nullable=False),
        sa.Column("people_by", sa.Text(), nullable=False),
        sa.Column("dataset", sa.Text(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("total", sa.String(length=16), nullable=False),
        sa.Column("least", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["publication"],
            ["publication.id"],
            name=op.f("fk_sketch_publication"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("publication", name=op.f("pk_sketch")),
    )
    op.create_table(
        "release",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("time", sa.String(length=32), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("series", sa.Text(), nullable=False),
        sa.Column("dataset", sa.Text(), nullable=False),
        sa.Column("searched", sa.Text(), nullable=False),
        sa.Column("input", sa.Text(), nullable=False),
        sa.Column("input_series", sa.Text(), nullable=False),
        sa.Column("dag_id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("map_index", sa.Integer(), nullable=False),
        sa.Column("algorithm", sa.Text(), nullable=False),
        sa.Column("engine", sa.Text(), nullable=False),
        sa.Column("k", sa.Double(), nullable=True),
        sa.Column("l", sa.Double(), nullable=True),
        sa.Column("t", sa.Double(), nullable=True),
        sa.Column("achieved_k", sa.Double(), nullable=True),
        sa.Column("achieved_l", sa.Double(), nullable=True),
        sa.Column("achieved_t", sa.Double(), nullable=True),
        sa.Column("rows_input", sa.Double(), nullable=True),
        sa.Column("rows_published", sa.Double(), nullable=True),
        sa.Column("rows_suppressed", sa.Double(), nullable=True),
        sa.Column("equivalence_classes", sa.Double(), nullable=True),
        sa.Column("NCP", sa.Double(), nullable=True),
        sa.Column("GCP", sa.Double(), nullable=True),
        sa.Column("LM", sa.Double(), nullable=True),
        sa.Column("DP", sa.Double(), nullable=True),
        sa.Column("risk", sa.Double(), nullable=True),
        sa.Column("risk_avg", sa.Double(), nullable=True),
        sa.Column("duration_s", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_release")),
    )
    op.create_index("ix_release_dag_id", "release", ["dag_id", "state", "time", "id"], unique=False)
    op.create_index("ix_release_run_id", "release", ["run_id", "dag_id"], unique=False)
    op.create_index(
        "ix_release_input_series", "release", ["input_series", "state", "time"], unique=False
    )
    op.create_index(
        "ix_release_series", "release", ["series", "state", "dag_id", "time", "id"], unique=False
    )
    op.create_index("ix_release_time", "release", ["time", "id"], unique=False)
    op.create_table(
        "secret_key",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("fingerprint", sa.String(length=16), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_secret_key")),
    )
    op.create_table(
        "series",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("terms", sa.Text(), nullable=False),
        sa.Column("refit", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_series")),
        sa.UniqueConstraint("name", name=op.f("uq_series_name")),
    )
    op.create_table(
        "document",
        sa.Column("release", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["release"], ["release.id"], name=op.f("fk_document_release"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("release", "name", name=op.f("pk_document")),
    )
    op.create_table(
        "night",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("series", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("input", sa.Text(), nullable=False),
        sa.Column("output", sa.Text(), nullable=False),
        sa.Column("work", sa.Text(), nullable=False),
        sa.Column("time", sa.String(length=32), nullable=False),
        sa.Column("rows_in", sa.BigInteger(), nullable=False),
        sa.Column("rows_published", sa.BigInteger(), nullable=False),
        sa.Column("rows_suppressed", sa.BigInteger(), nullable=False),
        sa.Column("rows_waiting", sa.BigInteger(), nullable=False),
        sa.Column("boundaries", sa.Text(), nullable=True),
        sa.Column("loss", sa.Double(), nullable=True),
        sa.Column("sample_loss", sa.Double(), nullable=True),
        sa.Column("sample_loss_nightly", sa.Double(), nullable=True),
        sa.Column("drift", sa.Double(), nullable=True),
        sa.Column("persons", sa.BigInteger(), nullable=True),
        sa.Column("least_common", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["series"], ["series.id"], name=op.f("fk_night_series")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_night")),
        sa.UniqueConstraint("series", "number", name=op.f("uq_night_series")),
        sa.UniqueConstraint("token", name=op.f("uq_night_token")),
    )
    op.create_table(
        "person",
        sa.Column("series", sa.Integer(), nullable=False),
        sa.Column("hash", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("common", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["series"], ["series.id"], name=op.f("fk_person_series")),
        sa.PrimaryKeyConstraint("series", "hash", name=op.f("pk_person")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "sensitive_value",
        sa.Column("series", sa.Integer(), nullable=False),
        sa.Column("code", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("hash", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["series"], ["series.id"], name=op.f("fk_sensitive_value_series")),
        sa.PrimaryKeyConstraint("series", "code", name=op.f("pk_sensitive_value")),
    )
    op.create_table(
        "night_persons",
        sa.Column("night", sa.Integer(), nullable=False),
        sa.Column("first", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["night"], ["night.id"], name=op.f("fk_night_persons_night")),
        sa.PrimaryKeyConstraint("night", "first", name=op.f("pk_night_persons")),
    )
    op.create_table(
        "waiting",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("series", sa.Integer(), nullable=False),
        sa.Column("origin", sa.Integer(), nullable=False),
        sa.Column("night", sa.Integer(), nullable=False),
        sa.Column("file", sa.Text(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["night"], ["night.id"], name=op.f("fk_waiting_night")),
        sa.ForeignKeyConstraint(["series"], ["series.id"], name=op.f("fk_waiting_series")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_waiting")),
    )
    op.create_index("ix_waiting_series", "waiting", ["series"], unique=False)
