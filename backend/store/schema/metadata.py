"""The metadata of every table. Each module of tables adds its own to the same metadata, once it is imported."""

from backend.store.schema.assistant_tables import assistants
from backend.store.schema.conversation_tables import conversations
from backend.store.schema.document_set_tables import document_sets
from backend.store.schema.knowledge_tables import knowledge_items
from backend.store.schema.language_model_tables import language_models
from backend.store.schema.memory_tables import memories
from backend.store.schema.oauth_tables import oauth_clients
from backend.store.schema.project_tables import projects
from backend.store.schema.push_tables import pushed_documents
from backend.store.schema.research_tables import research_runs
from backend.store.schema.sharing_tables import conversation_shares
from backend.store.schema.slack_tables import slack_questions
from backend.store.schema.source_account_tables import source_accounts
from backend.store.schema.user_file_tables import user_files
from backend.store.schema.web_cache_tables import web_cache_entries
from backend.store.schema.web_search_tables import web_providers

(metadata,) = {
    each.metadata
    for each in (
        assistants,
        conversations,
        document_sets,
        knowledge_items,
        language_models,
        memories,
        oauth_clients,
        projects,
        conversation_shares,
        user_files,
        web_providers,
        web_cache_entries,
        pushed_documents,
        research_runs,
        slack_questions,
        source_accounts,
    )
}
