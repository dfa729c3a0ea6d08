"""How Alembic runs the migrations: in the transaction that `database.upgrade` has begun."""

from alembic import context

from backend.store.conversation_tables import conversations
from backend.store.language_model_tables import language_models
from backend.store.user_file_tables import user_files

# Each module adds its tables to the same metadata.
(metadata,) = {conversations.metadata, language_models.metadata, user_files.metadata}

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
    transactional_ddl=True,
)
context.run_migrations()
