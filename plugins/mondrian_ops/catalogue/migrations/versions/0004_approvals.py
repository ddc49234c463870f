"""What was asked about releases that wait for an approval, and decided."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""

    op.create_table(
        "approval",
        sa.Column("release", sa.String(length=32), nullable=False),
        sa.Column("time", sa.String(length=32), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("signature", sa.String(length=64), nullable=False),
        sa.Column("verifier", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("release", name=op.f("pk_approval")),
    )
