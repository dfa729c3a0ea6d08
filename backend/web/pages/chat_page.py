"""The page of conversations. Its script reads and changes them through the API; the page says who asks, and how."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from backend.access.roles import Role
from backend.api.authorization import AskerDependency, Permission, requires
from backend.api.conversation_dependencies import ConversationsDependency, ProjectsDependency
from backend.api.conversation_responses import make_page
from backend.api.dependencies import (
    AssistantsDependency,
    ChatDependency,
    DatabaseDependency,
    ReadersDependency,
    WebSessionsDependency,
)
from backend.schemas.question import LONGEST_QUESTION
from backend.store.chat.assistants import DEFAULT_ID
from backend.web.pages.ask_page import list_examples, name_model, reasons_json
from backend.web.templates import page

router = APIRouter(include_in_schema=False)
FIRST_CONVERSATIONS = 50
"""Of the list, that are there before the script asks for any."""


@router.get("/chat")
@router.get("/chat/{conversation_id}")
@requires(Permission.ASK)
def chat_page(
    request: Request,
    chat: ChatDependency,
    conversations: ConversationsDependency,
    assistants: AssistantsDependency,
    projects: ProjectsDependency,
    asker: AskerDependency,
    readers: ReadersDependency,
    database: DatabaseDependency,
    web_sessions: WebSessionsDependency,
    conversation_id: str = "",
) -> HTMLResponse:
    """Render the page, alike for every conversation: whether there is one, the API says."""
    first = make_page(conversations.list_page("active", "", None, FIRST_CONVERSATIONS))
    values = {
        "conversation_id": conversation_id,
        "conversations": first.model_dump_json(),
        "projects": projects.list_own(),
        "owner": asker.turn_key,
        "longest": LONGEST_QUESTION,
        "model": name_model(chat),
        "web_is_on": web_sessions.is_on,
        "is_admin": asker.role is Role.ADMIN,
        "reasons": reasons_json(),
        "examples": assistants.get(DEFAULT_ID).values.starters or list_examples(database, readers),
    }
    return page(request, "chat.html", "chat", values)
