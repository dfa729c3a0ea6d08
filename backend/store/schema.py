"""The metadata of every table. Each module of tables adds its own to the same metadata, once it is imported."""

from backend.store.assistant_tables import assistants
from backend.store.conversation_tables import conversations
from backend.store.document_set_tables import document_sets
from backend.store.knowledge_tables import knowledge_items
from backend.store.language_model_tables import language_models
from backend.store.memory_tables import memories
from backend.store.oauth_tables import oauth_clients
from backend.store.project_tables import projects
from backend.store.push_tables import pushed_documents
from backend.store.research_tables import research_runs
from backend.store.sharing_tables import conversation_shares
from backend.store.slack_tables import slack_questions
from backend.store.source_account_tables import source_accounts
from backend.store.user_file_tables import user_files
from backend.store.web_cache_tables import web_cache_entries
from backend.store.web_search_tables import web_providers

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
