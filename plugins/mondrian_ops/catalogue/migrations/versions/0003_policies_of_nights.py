"""The policies under which the rows of a night came."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; nobody knows the policies of the nights that are there."""

    op.add_column("night", sa.Column("policies", sa.Text(), nullable=True))
