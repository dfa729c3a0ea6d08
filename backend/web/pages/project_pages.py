"""The pages of projects: which there are, what is asked in one and by whom, and a conversation of somebody else."""

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from backend.api.authorization import Permission, requires
from backend.api.conversation_dependencies import (
    ConversationId,
    ConversationsDependency,
    ProjectId,
    ProjectsDependency,
)
from backend.api.conversation_responses import make_opened
from backend.api.dependencies import AppStateDependency
from backend.chat.passages import TEXTS_INSTEAD
from backend.conversations.assistant_values import LONGEST_INSTRUCTIONS, LONGEST_NAME
from backend.conversations.failed_steps import describe_failed_step
from backend.conversations.project_service import ProjectRefusedError, ProjectService
from backend.schemas.answer import AnswerResponse
from backend.schemas.question import LONGEST_QUESTION
from backend.web.forms import NO_FORM, Form, FormDependency
from backend.web.templates import page
from connectors.errors import InvalidInputError

PROJECTS = "/projects"
ProjectAction: TypeAlias = Literal["change", "add", "remove", "leave", "delete"]

router = APIRouter(include_in_schema=False)


@router.get(PROJECTS)
@requires(Permission.ASK)
def projects_page(request: Request, projects: ProjectsDependency) -> Response:
    return _show_projects(request, projects)


@router.post(PROJECTS)
@requires(Permission.ASK)
def create_project(
    request: Request, projects: ProjectsDependency, form: FormDependency
) -> Response:
    try:
        made = projects.create(form.get("name", ""), _instructions(form) or "")
    except InvalidInputError as error:
        return _show_projects(request, projects, form, str(error))
    return RedirectResponse(f"{PROJECTS}/{made.id}", 303)


@router.get(f"{PROJECTS}/{{project_id}}")
@requires(Permission.ASK)
def project_page(project_id: ProjectId, request: Request, projects: ProjectsDependency) -> Response:
    return _show_project(request, projects, project_id)


@router.get(f"{PROJECTS}/{{project_id}}/conversations/{{conversation_id}}")
@requires(Permission.ASK)
def project_conversation_page(
    project_id: ProjectId,
    conversation_id: ConversationId,
    request: Request,
    projects: ProjectsDependency,
    conversations: ConversationsDependency,
    state: AppStateDependency,
) -> Response:
    """Render somebody else's conversation, to be read; one's own is where it is asked on."""
    found = projects.get_conversation(project_id, conversation_id)
    if found.author == projects.owner:
        return RedirectResponse(f"/chat/{found.id}")
    opened = make_opened(conversations.read_of(found.author, found.id), state.answer_html)
    values = {
        "project": projects.get(project_id),
        "found": found,
        "opened": opened,
        "texts_instead": TEXTS_INSTEAD,
        "citations_json": _citations_json,
        "describe_failed_step": describe_failed_step,
    }
    return page(request, "project_conversation.html", "chat", values)


def _citations_json(answer: AnswerResponse) -> str:
    """Return what the cards of its citations say, for the script."""
    shown = answer.model_dump(mode="json", include={"citations", "documents"})
    known = {
        one["document_id"]: {"source": one["source"], "date": one["updated_at"]}
        for one in shown["documents"]
    }
    return json.dumps([one | known.get(one["document_id"], {}) for one in shown["citations"]])


@router.post(f"{PROJECTS}/{{project_id}}/{{action}}")
@requires(Permission.ASK)
def change_project(
    project_id: ProjectId,
    action: ProjectAction,
    request: Request,
    projects: ProjectsDependency,
    form: FormDependency,
) -> Response:
    try:
        _ACTIONS[action](projects, project_id, form)
    except (InvalidInputError, ProjectRefusedError) as error:
        return _show_project(request, projects, project_id, form, str(error))
    is_gone = action in {"leave", "delete"}
    return RedirectResponse(PROJECTS if is_gone else f"{PROJECTS}/{project_id}", 303)


def _instructions(form: Form) -> str | None:
    """Return the instructions as they were typed: a browser sends each line break as two characters."""
    given = form.get("instructions")
    return given if given is None else given.replace("\r\n", "\n")


def _remove_member(projects: ProjectService, project_id: str, form: Form) -> None:
    given = form.get("member", "")
    if given.isascii() and given.isdecimal() and len(given) < 10:
        projects.remove_member(project_id, int(given))


_Act: TypeAlias = Callable[[ProjectService, str, Form], object]
_ACTIONS: Mapping[ProjectAction, _Act] = MappingProxyType(
    {
        "change": lambda projects, project_id, form: projects.change(
            project_id, form.get("name"), _instructions(form)
        ),
        "add": lambda projects, project_id, form: projects.add_member(
            project_id, form.get("email", "")
        ),
        "remove": _remove_member,
        "leave": lambda projects, project_id, _form: projects.leave(project_id),
        "delete": lambda projects, project_id, _form: projects.delete(project_id),
    }
)


def _show_projects(
    request: Request, projects: ProjectService, form: Form = NO_FORM, trouble: str = ""
) -> Response:
    values = {
        "projects": projects.list_uses(),
        "own": projects.owner,
        "entered": form,
        "longest": LONGEST_NAME,
        "most": LONGEST_INSTRUCTIONS,
        "trouble": trouble,
    }
    return page(request, "projects.html", "chat", values, 422 if trouble else 200)


def _show_project(
    request: Request,
    projects: ProjectService,
    project_id: str,
    form: Form = NO_FORM,
    trouble: str = "",
) -> Response:
    project = projects.get(project_id)
    values = {
        "project": project,
        "is_own": projects.is_own(project),
        "own": projects.owner,
        "members": projects.list_members(project_id),
        "conversations": projects.list_conversations(project_id),
        "entered": form,
        "longest": LONGEST_NAME,
        "most": LONGEST_INSTRUCTIONS,
        "longest_question": LONGEST_QUESTION,
        "trouble": trouble,
    }
    return page(request, "project.html", "chat", values, 422 if trouble else 200)
