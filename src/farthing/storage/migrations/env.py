"""Run by Alembic inside the transaction that `schema.prepare` has begun."""

from alembic import context

from farthing.storage.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,  # SQLite cannot alter most things in place
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
