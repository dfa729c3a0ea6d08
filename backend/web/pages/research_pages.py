"""The pages of research: the runs that there are, a form for a new one, and one run with its plan, its tasks and its report."""

from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import ValidationError

from backend.api.authorization import AskerDependency, Permission, requires
from backend.api.conversation_dependencies import ProjectsDependency
from backend.api.dependencies import AssistantsDependency, ChatDependency, WebSessionsDependency
from backend.api.languages import find_language
from backend.api.list_positions import LONGEST_POSITION
from backend.api.problem_details import from_error
from backend.api.research_dependencies import ResearchDependency, ResearchId
from backend.api.research_desk import ResearchBody, ResearchDeskDependency
from backend.api.research_responses import find_position, make_page
from backend.composition.research import NO_MODEL
from backend.research.record.budget import MOST_MINUTES
from backend.research.record.plan import LONGEST_QUESTION as LONGEST_TASK
from backend.research.record.plan import MAX_TASKS
from backend.research.runs.service import LONGEST_ANSWER, ResearchService
from backend.schemas.question import LONGEST_QUESTION
from backend.web.forms import NO_FORM, Form, FormDependency
from backend.web.research_view import build_research_view
from backend.web.templates import page, part
from connectors.errors import ConflictError, InvalidInputError, NotFoundError

RESEARCH = "/research"
_ONE = f"{RESEARCH}/{{research_id}}"
_RUNS_OF_A_PAGE = 30
_USUAL_MINUTES = 10
_NO_QUESTION = f"Write a question of at most {LONGEST_QUESTION:,} characters, and choose company knowledge, the web, or both."

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _RunsPage:
    """What the page of all runs is made of, besides the runs."""

    request: Request
    chat: ChatDependency
    web_sessions: WebSessionsDependency
    assistants: AssistantsDependency
    projects: ProjectsDependency
    before: str | None = None

    def show(
        self,
        research: ResearchService,
        entered: Form = NO_FORM,
        error: InvalidInputError | ConflictError | NotFoundError | None = None,
    ) -> Response:
        listed = research.list_page(None, find_position(self.before), _RUNS_OF_A_PAGE)
        found = make_page(listed, research)
        values = {
            "runs": found.runs,
            "next": found.next,
            "question": entered.get("question", ""),
            "knowledge": entered is NO_FORM or "knowledge" in entered,
            "web": "web" in entered,
            "assistants": [one for one in self.assistants.list_usable() if not one.is_default],
            "assistant": entered.get("assistant", ""),
            "projects": self.projects.list_own(),
            "project": entered.get("project", ""),
            "minutes": entered.get("minutes", str(_USUAL_MINUTES)),
            "most_minutes": MOST_MINUTES,
            "web_is_on": self.web_sessions.is_on,
            "missing": NO_MODEL if self.chat.model is None else "",
            "trouble": str(error or ""),
        }
        status = from_error(error).status if error else 200
        return page(self.request, "research.html", "chat", values, status)


def _get_runs_page(
    request: Request,
    chat: ChatDependency,
    web_sessions: WebSessionsDependency,
    assistants: AssistantsDependency,
    projects: ProjectsDependency,
) -> _RunsPage:
    return _RunsPage(
        request=request,
        chat=chat,
        web_sessions=web_sessions,
        assistants=assistants,
        projects=projects,
    )


_RunsPageDependency = Annotated[_RunsPage, Depends(_get_runs_page)]


@router.get(RESEARCH)
@requires(Permission.ASK)
def research_page(
    research: ResearchDependency,
    runs_page: _RunsPageDependency,
    before: Annotated[str | None, Query(max_length=LONGEST_POSITION)] = None,
) -> Response:
    return replace(runs_page, before=before).show(research)


@router.post(RESEARCH)
@requires(Permission.ASK)
def begin_research(
    desk: ResearchDeskDependency,
    runs_page: _RunsPageDependency,
    form: FormDependency,
) -> Response:
    try:
        begun = desk.begin(_read_body(form))
    except (InvalidInputError, ConflictError, NotFoundError) as error:
        return runs_page.show(desk.research, form, error)
    return _lead_to(begun.run.id)


def _read_body(form: Form) -> ResearchBody:
    """Read what is to be researched. Raises InvalidInputError."""
    values = {
        "question": form.get("question", ""),
        "knowledge": "knowledge" in form,
        "web": "web" in form,
        "minutes": form.get("minutes", ""),
        "assistant_id": form.get("assistant") or None,
        "project_id": form.get("project") or None,
    }
    try:
        return ResearchBody.model_validate(values)
    except ValidationError as error:
        raise InvalidInputError(_NO_QUESTION) from error


@router.get(_ONE)
@requires(Permission.ASK)
def research_run_page(
    research_id: ResearchId, request: Request, research: ResearchDependency
) -> Response:
    return _show(request, research, research_id)


@router.get(f"{_ONE}/state")
@requires(Permission.ASK)
def research_state(
    research_id: ResearchId,
    request: Request,
    research: ResearchDependency,
    asker: AskerDependency,
) -> HTMLResponse:
    """Render the part of the page that changes while a run goes on."""
    values = _list_values(research, research_id) | {"csrf_token": asker.csrf_token}
    return part(find_language(request), "research_state.html", values)


@router.post(f"{_ONE}/clarification")
@requires(Permission.ASK)
def answer_clarification(
    research_id: ResearchId, request: Request, research: ResearchDependency, form: FormDependency
) -> Response:
    """The button that passes over what is asked back sends no answer."""
    answer = None if "skip" in form else form.get("answer", "")
    try:
        research.clarify(research_id, answer)
    except (InvalidInputError, ConflictError) as error:
        return _show(request, research, research_id, error)
    return _lead_to(research_id)


@router.post(f"{_ONE}/plan")
@requires(Permission.ASK)
def change_plan(
    research_id: ResearchId, request: Request, research: ResearchDependency, form: FormDependency
) -> Response:
    """Save the tasks that are checked, and start them where the button says so."""
    try:
        research.change_plan(research_id, _list_checked(form))
        if "start" in form:
            research.start(research_id)
    except (InvalidInputError, ConflictError) as error:
        return _show(request, research, research_id, error)
    return _lead_to(research_id)


def _list_checked(form: Form) -> tuple[str, ...]:
    """Return the questions of a plan that are checked, in their order."""
    places = range(1, MAX_TASKS + 1)
    checked = (form.get(f"task-{at}", "") for at in places if f"keep-{at}" in form)
    return tuple(question[:LONGEST_TASK] for question in checked)


@router.post(f"{_ONE}/stop")
@requires(Permission.ASK)
def stop_research(research_id: ResearchId, research: ResearchDependency) -> Response:
    research.stop(research_id)
    return _lead_to(research_id)


@router.post(f"{_ONE}/delete")
@requires(Permission.ASK)
def delete_research(research_id: ResearchId, research: ResearchDependency) -> Response:
    research.delete(research_id)
    return RedirectResponse(RESEARCH, 303)


def _show(
    request: Request,
    research: ResearchService,
    research_id: str,
    error: InvalidInputError | ConflictError | None = None,
) -> Response:
    values = _list_values(research, research_id) | {"trouble": str(error or "")}
    status = from_error(error).status if error else 200
    return page(request, "research_run.html", "chat", values, status)


def _list_values(research: ResearchService, research_id: str) -> dict[str, object]:
    return {
        "view": build_research_view(research.open(research_id)),
        "longest_answer": LONGEST_ANSWER,
        "longest_task": LONGEST_TASK,
        "most_tasks": MAX_TASKS,
    }


def _lead_to(research_id: str) -> Response:
    return RedirectResponse(f"{RESEARCH}/{research_id}", 303)
