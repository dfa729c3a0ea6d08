"""Conversations that are shared by a link, and their export: each answer only for those who may read all that it rests on."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel, ConfigDict
from starlette.responses import Response

from backend.api import openapi
from backend.api.authorization import AskerDependency, Permission, requires
from backend.api.conversation_dependencies import HIGHEST, ConversationId, GateDependency, ShareId
from backend.api.conversation_dependencies import OwnerDependency as PersonDependency
from backend.api.dependencies import AppStateDependency, DatabaseDependency
from backend.api.routes.conversations import MessageIdField
from backend.api.sharing_responses import make_shared
from backend.conversations.markdown_export import export_markdown
from backend.conversations.sharing import ReadConversation, SharingService
from backend.schemas.conversation import ConversationResponse
from backend.schemas.sharing import (
    SharedConversationResponse,
    ShareResponse,
    ShareStateResponse,
)

router = APIRouter()
_SHARE = "/api/conversations/{conversation_id}/share"
_SHARED = "/api/shared/{share_id}"
_MARKDOWN = "text/markdown"
_FILE = {"Content-Disposition": 'attachment; filename="conversation.md"'}
_DOCUMENT: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A Markdown document",
        "content": {
            _MARKDOWN: {
                "schema": {"type": "string"},
                "example": "# How long is parental leave?\n\n## Question\n\n> How long is parental leave?\n",
            }
        },
    }
}
_CONFLICT: dict[int | str, dict[str, Any]] = {
    409: openapi.describe_problem("The state of the answers does not allow it")
}


class MarkdownResponse(Response):
    media_type = _MARKDOWN


class ShareBody(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, json_schema_extra={"examples": [{"message_id": 2}]}
    )

    message_id: MessageIdField
    """The answer up to which it is shared."""


def get_sharing(
    database: DatabaseDependency,
    person: PersonDependency,
    gate: GateDependency,
    asker: AskerDependency,
) -> SharingService:
    return SharingService(database=database, owner=person, gate=gate, actor=asker.actor)


SharingDependency = Annotated[SharingService, Depends(get_sharing)]


@router.get(_SHARE, summary="Say whether a conversation is shared, and up to where")
@requires(Permission.ASK)
def show_share(conversation_id: ConversationId, sharing: SharingDependency) -> ShareStateResponse:
    found = sharing.find_share(conversation_id)
    return ShareStateResponse(share=None if found is None else ShareResponse.from_share(found))


@router.post(_SHARE, responses=_CONFLICT, summary="Share a conversation by a link")
@requires(Permission.ASK)
def share_conversation(
    conversation_id: ConversationId, body: ShareBody, sharing: SharingDependency
) -> ShareResponse:
    """Whoever may sign in here and has the link may read the path to this answer, each answer only if they may read all that
    it rests on. What is said later is not shared, until this is called again: the link stays the same."""
    return ShareResponse.from_share(sharing.share(conversation_id, body.message_id))


@router.delete(_SHARE, status_code=204, summary="Take a link back")
@requires(Permission.ASK)
def take_share_back(conversation_id: ConversationId, sharing: SharingDependency) -> None:
    """It leads nowhere from now on. A conversation that is shared anew gets another link."""
    sharing.take_back(conversation_id)


@router.get(_SHARED, summary="Return what is shared by a link")
@requires(Permission.ASK)
def open_shared(
    share_id: ShareId, sharing: SharingDependency, state: AppStateDependency
) -> SharedConversationResponse:
    """An answer that rests on a document that you may not read now is withheld."""
    return make_shared(sharing.open_shared(share_id), state.answer_html)


@router.post(
    f"{_SHARED}/copy",
    status_code=201,
    responses=_CONFLICT,
    summary="Copy what is shared by a link into a conversation of your own",
)
@requires(Permission.ASK)
def copy_shared(share_id: ShareId, sharing: SharingDependency) -> ConversationResponse:
    """Questions whose answers you may not read are left out with them."""
    return ConversationResponse.from_conversation(sharing.copy_shared(share_id))


@router.get(
    "/api/conversations/{conversation_id}/export",
    response_class=MarkdownResponse,
    responses=_DOCUMENT,
    summary="Export a conversation as Markdown with its sources",
)
@requires(Permission.ASK)
def export_conversation(
    request: Request,
    conversation_id: ConversationId,
    sharing: SharingDependency,
    state: AppStateDependency,
    leaf: Annotated[
        int | None, Query(ge=1, le=HIGHEST, description="A message: the path to it")
    ] = None,
) -> Response:
    """The path that is shown, or the one to a message. Each source is listed once at the end. Headings and notices are in the
    language that the account chooses, else in the one that the client prefers."""
    return _export(request, state, sharing.read_own(conversation_id, leaf))


@router.get(
    f"{_SHARED}/export",
    response_class=MarkdownResponse,
    responses=_DOCUMENT,
    summary="Export what is shared by a link as Markdown with its sources",
)
@requires(Permission.ASK)
def export_shared(
    request: Request, share_id: ShareId, sharing: SharingDependency, state: AppStateDependency
) -> Response:
    return _export(request, state, sharing.open_shared(share_id).read)


def _export(request: Request, state: AppStateDependency, read: ReadConversation) -> Response:
    server = state.find_server(request)
    translate = state.find_translation(request)
    return MarkdownResponse(export_markdown(read, server, translate), headers=_FILE)
