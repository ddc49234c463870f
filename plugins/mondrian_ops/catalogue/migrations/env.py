"""What alembic runs: the migrations, in the transaction that the catalogue began."""

from __future__ import annotations

from alembic import context

from mondrian_ops.catalogue.tables import VERSIONS, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSIONS,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
