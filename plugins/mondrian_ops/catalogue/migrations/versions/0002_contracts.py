"""The contracts of datasets, and the changes of them that persons accept."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""

    op.create_table(
        "contract",
        sa.Column("publication", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("dataset", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("columns", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["publication"],
            ["publication.id"],
            name=op.f("fk_contract_publication"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("publication", name=op.f("pk_contract")),
    )
    op.create_index("ix_contract_dataset", "contract", ["dataset", "label"], unique=False)
    op.create_table(
        "contract_change",
        sa.Column("id", sa.String(length=8), nullable=False),
        sa.Column("dataset", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("changes", sa.Text(), nullable=False),
        sa.Column("output", sa.Text(), nullable=False),
        sa.Column("time", sa.String(length=32), nullable=False),
        sa.Column("accepted_by", sa.Text(), nullable=True),
        sa.Column("accepted_at", sa.String(length=32), nullable=True),
        sa.Column("publication", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(
            ["publication"],
            ["publication.id"],
            name=op.f("fk_contract_change_publication"),
            ondelete="SET NULL",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_contract_change")),
    )
    op.create_index("ix_contract_change_dataset", "contract_change", ["dataset"], unique=False)
