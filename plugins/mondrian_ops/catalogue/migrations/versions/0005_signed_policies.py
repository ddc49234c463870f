"""The signature of the policies under which the rows of a night came."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; who could change the policies of the nights that are there cannot be told."""

    op.add_column("night", sa.Column("signature", sa.String(length=64), nullable=True))
