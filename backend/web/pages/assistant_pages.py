"""The pages of assistants: a gallery, and an editor with a try-out beside it. Scripts save and ask through the API."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from backend.access.roles import Role
from backend.api.authorization import Asker, AskerDependency, Permission, requires
from backend.api.dependencies import AssistantId, AssistantsDependency
from backend.conversations.assistant_service import AssistantService
from backend.conversations.assistant_values import (
    HIGHEST_TEMPERATURE,
    LONGEST_DESCRIPTION,
    LONGEST_INSTRUCTIONS,
    LONGEST_NAME,
    LONGEST_STARTER,
    MOST_STARTERS,
)
from backend.schemas.assistant import AssistantResponse
from backend.schemas.question import LONGEST_QUESTION
from backend.store.accounts import group_members
from backend.store.llm import language_models
from backend.web.templates import page

router = APIRouter(include_in_schema=False)
_LIMITS = {
    "name": LONGEST_NAME,
    "description": LONGEST_DESCRIPTION,
    "instructions": LONGEST_INSTRUCTIONS,
    "starters": MOST_STARTERS,
    "starter": LONGEST_STARTER,
    "question": LONGEST_QUESTION,
    "temperature": HIGHEST_TEMPERATURE,
}


@router.get("/assistants")
@requires(Permission.ASK)
def assistants_page(request: Request, assistants: AssistantsDependency) -> HTMLResponse:
    shown = [AssistantResponse.from_shown(one) for one in assistants.list_usable()]
    return page(request, "assistants.html", "chat", {"assistants": shown})


@router.get("/assistants/new")
@requires(Permission.ASK)
def new_assistant_page(
    request: Request, asker: AskerDependency, assistants: AssistantsDependency
) -> HTMLResponse:
    return _show_editor(request, asker, assistants, None)


@router.get("/assistants/{assistant_id}")
@requires(Permission.ASK)
def assistant_page(
    assistant_id: AssistantId,
    request: Request,
    asker: AskerDependency,
    assistants: AssistantsDependency,
) -> HTMLResponse:
    """Render the editor, or for one who may not change the assistant what is set of it."""
    shown = AssistantResponse.from_shown(assistants.get(assistant_id))
    if not shown.may_change:
        return page(request, "assistant_details.html", "chat", {"assistant": shown})
    return _show_editor(request, asker, assistants, shown)


def _show_editor(
    request: Request,
    asker: Asker,
    assistants: AssistantService,
    shown: AssistantResponse | None,
) -> HTMLResponse:
    database, shares = assistants.database, asker.role is Role.ADMIN
    groups = group_members.list_groups(database) if shares else []
    values = {
        "assistant": shown,
        "sources": sorted(assistants.find_sources()),
        "sets": sorted(assistants.set_names.values()),
        "models": [one.name for one in language_models.list_models(database)],
        "groups": [one.name for one in groups],
        "shares": shares,
        "limits": _LIMITS,
    }
    return page(request, "assistant.html", "chat", values)
