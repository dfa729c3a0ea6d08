"""How Alembic runs the migrations: in the transaction that `database.upgrade` has begun."""

from alembic import context

from backend.store.assistant_tables import assistants
from backend.store.conversation_tables import conversations
from backend.store.language_model_tables import language_models
from backend.store.project_tables import projects

# Each module adds its tables to the same metadata.
(metadata,) = {each.metadata for each in (assistants, conversations, language_models, projects)}

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
    transactional_ddl=True,
)
context.run_migrations()
