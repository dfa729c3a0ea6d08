"""How Alembic runs the migrations: in the transaction that `database.upgrade` has begun."""

from alembic import context

from backend.store.schema.metadata import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
    transactional_ddl=True,
)
context.run_migrations()
