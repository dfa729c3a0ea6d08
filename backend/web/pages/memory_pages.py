"""The page of what Quarry remembers of a person: list, add, edit, delete."""

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from backend.api.authorization import Permission, requires
from backend.api.memory_dependencies import MemoriesDependency, MemoryId
from backend.api.problem_details import from_error
from backend.conversations.memory_service import LONGEST_MEMORY, MemoryService
from backend.web.forms import FormDependency
from backend.web.templates import page
from connectors.errors import ConflictError, InvalidInputError

MEMORIES = "/memories"

router = APIRouter(include_in_schema=False)


@router.get(MEMORIES)
@requires(Permission.ASK)
def memories_page(request: Request, memories: MemoriesDependency) -> Response:
    return _show(request, memories)


@router.post(MEMORIES)
@requires(Permission.ASK)
def add_memory(request: Request, memories: MemoriesDependency, form: FormDependency) -> Response:
    entered = form.get("text", "")
    try:
        memories.add(entered)
    except (InvalidInputError, ConflictError) as error:
        return _show(request, memories, entered, error)
    return RedirectResponse(MEMORIES, 303)


@router.post(f"{MEMORIES}/delete")
@requires(Permission.ASK)
def delete_memories(memories: MemoriesDependency) -> Response:
    memories.delete_all()
    return RedirectResponse(MEMORIES, 303)


@router.post(f"{MEMORIES}/{{memory_id}}")
@requires(Permission.ASK)
def edit_memory(
    memory_id: MemoryId, request: Request, memories: MemoriesDependency, form: FormDependency
) -> Response:
    try:
        memories.edit(memory_id, form.get("text", ""))
    except InvalidInputError as error:
        return _show(request, memories, error=error)
    return RedirectResponse(f"{MEMORIES}#memory-{memory_id}", 303)


@router.post(f"{MEMORIES}/{{memory_id}}/delete")
@requires(Permission.ASK)
def delete_memory(memory_id: MemoryId, memories: MemoriesDependency) -> Response:
    memories.delete(memory_id)
    return RedirectResponse(MEMORIES, 303)


def _show(
    request: Request,
    memories: MemoryService,
    entered: str = "",
    error: InvalidInputError | ConflictError | None = None,
) -> Response:
    values = {
        "memories": memories.list_all(),
        "entered": entered,
        "longest": LONGEST_MEMORY,
        "trouble": str(error or ""),
    }
    return page(
        request, "memories.html", "chat", values, from_error(error).status if error else 200
    )
