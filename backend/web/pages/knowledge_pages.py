"""The pages of what research has found out: list, search, read, correct, delete, import; nothing of what the reader may not read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response

from backend.api.authorization import Permission, requires
from backend.api.dependencies import ChatDependency
from backend.api.knowledge_dependencies import LONGEST_QUERY, ItemId, KnowledgeDependency
from backend.api.list_positions import LONGEST_POSITION, format_position, read_position
from backend.api.problem_details import from_error
from backend.research.knowledge.kept_knowledge import KeptItem
from backend.research.knowledge.service import (
    KnowledgePage,
    KnowledgeRefusedError,
    KnowledgeService,
)
from backend.research.knowledge_items import Reference
from backend.schemas.knowledge import import_knowledge
from backend.store.research.knowledge_records import LONGEST_TEXT, OWN, ItemPosition
from backend.web import urls
from backend.web.forms import FormDependency
from backend.web.templates import page
from connectors.errors import ConflictError, InvalidInputError

KNOWLEDGE = urls.KNOWLEDGE
_LISTED = 30
_HIGHEST = 1_000_000
_FIRST_PAGE: Mapping[str, object] = MappingProxyType({"query": "", "added": None, "dropped": 0})

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class ShownSource:
    title: str
    quote: str
    href: str | None
    """None where nothing can be opened."""
    is_of_web: bool


@dataclass(frozen=True, slots=True)
class ShownItem:
    item: KeptItem
    sources: Sequence[ShownSource]
    may_change: bool


@router.get(KNOWLEDGE)
@requires(Permission.ASK)
def knowledge_page(
    request: Request,
    knowledge: KnowledgeDependency,
    chat: ChatDependency,
    q: Annotated[str, Query(max_length=LONGEST_QUERY)] = "",
    before: Annotated[str | None, Query(max_length=LONGEST_POSITION)] = None,
    added: Annotated[int | None, Query(ge=0, le=_HIGHEST)] = None,
    dropped: Annotated[int, Query(ge=0, le=_HIGHEST)] = 0,
) -> Response:
    if q.strip():
        found = KnowledgePage(
            knowledge.search(q, None, chat.engine.embedding.sentence_model, _LISTED), None
        )
    else:
        position = None if before is None else ItemPosition(*read_position(before))
        found = knowledge.list_page(None, position, _LISTED)
    values = {"query": q, "added": added, "dropped": dropped}
    return _show_list(request, knowledge, found, values)


@router.post(f"{KNOWLEDGE}/import")
@requires(Permission.ASK)
def import_file(request: Request, knowledge: KnowledgeDependency, form: FormDependency) -> Response:
    try:
        report = knowledge.import_items(OWN, import_knowledge(form.get("file", "")))
    except (InvalidInputError, ConflictError) as error:
        first = knowledge.list_page(None, None, _LISTED)
        return _show_list(request, knowledge, first, {}, error)
    counts = f"added={len(report.ids)}&dropped={report.dropped_references}"
    return RedirectResponse(f"{KNOWLEDGE}?{counts}", 303)


@router.get(f"{KNOWLEDGE}/{{item_id}}")
@requires(Permission.ASK)
def item_page(item_id: ItemId, request: Request, knowledge: KnowledgeDependency) -> Response:
    return _show_item(request, knowledge, knowledge.get(item_id))


@router.post(f"{KNOWLEDGE}/{{item_id}}")
@requires(Permission.ASK)
def correct_item(
    item_id: ItemId, request: Request, knowledge: KnowledgeDependency, form: FormDependency
) -> Response:
    try:
        knowledge.correct(item_id, form.get("question", ""), form.get("answer", ""))
    except (InvalidInputError, ConflictError, KnowledgeRefusedError) as error:
        return _show_item(request, knowledge, knowledge.get(item_id), error)
    return RedirectResponse(f"{KNOWLEDGE}/{item_id}", 303)


@router.post(f"{KNOWLEDGE}/{{item_id}}/delete")
@requires(Permission.ASK)
def delete_item(item_id: ItemId, request: Request, knowledge: KnowledgeDependency) -> Response:
    try:
        knowledge.delete(item_id)
    except KnowledgeRefusedError as error:
        return _show_item(request, knowledge, knowledge.get(item_id), error)
    return RedirectResponse(KNOWLEDGE, 303)


def _show_list(
    request: Request,
    knowledge: KnowledgeService,
    found: KnowledgePage,
    values: Mapping[str, object],
    error: InvalidInputError | ConflictError | None = None,
) -> Response:
    end = found.next
    shown = {
        "items": [_make_shown(knowledge, one) for one in found.items],
        "next": None if end is None else format_position(end.made_at, end.id),
        "longest_query": LONGEST_QUERY,
        "trouble": str(error or ""),
        **_FIRST_PAGE,
        **values,
    }
    status = from_error(error).status if error else 200
    return page(request, "knowledge.html", "chat", shown, status)


def _show_item(
    request: Request,
    knowledge: KnowledgeService,
    item: KeptItem,
    error: InvalidInputError | ConflictError | KnowledgeRefusedError | None = None,
) -> Response:
    values = {
        "one": _make_shown(knowledge, item),
        "longest": LONGEST_TEXT,
        "trouble": str(error or ""),
    }
    status = from_error(error).status if error else 200
    return page(request, "knowledge_item.html", "chat", values, status)


def _make_shown(knowledge: KnowledgeService, item: KeptItem) -> ShownItem:
    return ShownItem(
        item=item,
        sources=list(map(_show_source, item.item.references)),
        may_change=knowledge.may_change(item),
    )


def _show_source(reference: Reference) -> ShownSource:
    document = reference.document_id
    if document is not None:
        href: str | None = urls.document(document, reference.section, reference.span)
    else:
        href = urls.elsewhere(reference.url)
    title = reference.title or reference.url or document or ""
    return ShownSource(title, reference.exact_quote, href, document is None)
