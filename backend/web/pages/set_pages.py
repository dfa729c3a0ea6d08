"""The pages of document sets: all of them, and one of them, with the forms that add and change them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, TypeAlias
from urllib.parse import quote

from fastapi import APIRouter, Depends, Request
from fastapi.responses import RedirectResponse
from starlette.responses import Response

from backend.api.authorization import Permission, requires
from backend.api.dependencies import SetsDependency
from backend.api.languages import find_language
from backend.schemas.document_set import DocumentSetResponse, MatchingResponse
from backend.sources.document_sets import (
    LONGEST_DESCRIPTION,
    LONGEST_NAME,
    DocumentSetService,
    SetDraft,
)
from backend.store.sync import sources
from backend.web.forms import read_fields
from backend.web.templates import page, part
from connectors.access import PUBLIC
from connectors.errors import ConflictError, InvalidInputError, NotFoundError
from indexing.text.normalization import pluralize

SETS = "/sets"
_MOST_FIELDS = 5_000
"""A box for each source."""
_SOURCE = "source"
_LISTS = ("folders", "tags", "documents")

router = APIRouter(include_in_schema=False)

SetForm: TypeAlias = Mapping[str, Sequence[str]]


async def read_set_form(request: Request) -> SetForm:
    """Return all values of each field."""
    form: dict[str, list[str]] = {}
    for name, value in await read_fields(request, _MOST_FIELDS):
        form.setdefault(name, []).append(value)
    return form


SetFormDependency = Annotated[SetForm, Depends(read_set_form)]


@router.get(SETS)
@requires(Permission.SOURCES)
def sets_page(request: Request, sets: SetsDependency) -> Response:
    return _show_sets(request, sets, SetDraft(name=""))


@router.post(SETS)
@requires(Permission.SOURCES)
def add_set(request: Request, sets: SetsDependency, form: SetFormDependency) -> Response:
    draft = _read_draft(form)
    try:
        if "count" in form:
            return _show_sets(request, sets, draft, counted=sets.count_matching(draft))
        added = sets.add(draft)
    except (InvalidInputError, ConflictError, NotFoundError) as error:
        return _show_sets(request, sets, draft, trouble=str(error))
    return RedirectResponse(_address(added.name), 303)


@router.get("/sets/table")
@requires(Permission.SOURCES)
def sets_table(request: Request, sets: SetsDependency) -> Response:
    """Render the part of the page of all sets that changes while documents are updated."""
    return part(find_language(request), "sets_table.html", {"sets": sets.list_sets()})


@router.get("/set/{name}")
@requires(Permission.SOURCES)
def set_page(name: str, request: Request, sets: SetsDependency) -> Response:
    return _show_set(request, sets, name)


@router.post("/set/{name}")
@requires(Permission.SOURCES)
def change_set(
    name: str, request: Request, sets: SetsDependency, form: SetFormDependency
) -> Response:
    sets.find(name)
    draft = _read_draft(form)
    try:
        if "count" in form:
            return _show_set(request, sets, name, draft, counted=sets.count_matching(draft))
        changed = sets.change(name, draft)
    except (InvalidInputError, ConflictError, NotFoundError) as error:
        return _show_set(request, sets, name, draft, trouble=str(error))
    return RedirectResponse(_address(changed.name), 303)


@router.get("/set/{name}/state")
@requires(Permission.SOURCES)
def set_state(name: str, request: Request, sets: SetsDependency) -> Response:
    """Render how far the documents of a set are updated."""
    return part(find_language(request), "set_state.html", {"found": sets.get(name)})


@router.post("/set/{name}/remove")
@requires(Permission.SOURCES)
def remove_set(name: str, sets: SetsDependency) -> Response:
    sets.remove(name)
    return RedirectResponse(SETS, 303)


def _address(name: str) -> str:
    return f"/set/{quote(name, safe='')}"


def _show_sets(
    request: Request,
    sets: DocumentSetService,
    draft: SetDraft,
    *,
    trouble: str = "",
    counted: MatchingResponse | None = None,
) -> Response:
    values = {
        "sets": sets.list_sets(),
        **_form_values(sets, draft),
        "trouble": trouble,
        "notice": _describe_count(counted),
        "unmatched": counted.unmatched if counted else (),
    }
    return page(request, "sets.html", "sources", values, 422 if trouble else 200)


def _show_set(
    request: Request,
    sets: DocumentSetService,
    name: str,
    draft: SetDraft | None = None,
    *,
    trouble: str = "",
    counted: MatchingResponse | None = None,
) -> Response:
    """Render the page of a set, with its draft. Raises NotFoundError: there is no such set for the asker."""
    found = sets.get(name)
    values = {
        "found": found,
        **_form_values(sets, draft or _to_draft(found)),
        "trouble": trouble,
        "notice": _describe_count(counted),
        "unmatched": counted.unmatched if counted else sets.list_unmatched(name),
    }
    return page(request, "set.html", "sources", values, 422 if trouble else 200)


def _form_values(sets: DocumentSetService, draft: SetDraft) -> dict[str, object]:
    known = [one.name for one in sources.list_sources(sets.database, sets.choice)]
    return {
        "draft": draft,
        "known_sources": known,
        "longest_name": LONGEST_NAME,
        "longest_description": LONGEST_DESCRIPTION,
        "of_all": not draft.readers or PUBLIC in draft.readers,
        "lists": {name: "\n".join(getattr(draft, name)) for name in _LISTS},
    }


def _to_draft(found: DocumentSetResponse) -> SetDraft:
    return SetDraft(
        name=found.name,
        description=found.description,
        readers=found.readers,
        sources=found.sources,
        folders=found.folders,
        tags=found.tags,
        documents=found.documents,
    )


def _read_draft(form: SetForm) -> SetDraft:
    def first(name: str) -> str:
        return next(iter(form.get(name, ())), "")

    readers = () if first("shown") != "some" else tuple(_lines(first("readers")))
    return SetDraft(
        name=first("name"),
        description=first("description"),
        readers=readers,
        sources=tuple(form.get(_SOURCE, ())),
        folders=tuple(_lines(first("folders"))),
        tags=tuple(_lines(first("tags"))),
        documents=tuple(_lines(first("documents"))),
    )


def _lines(text: str) -> Iterator[str]:
    return filter(None, map(str.strip, text.splitlines()))


def _describe_count(counted: MatchingResponse | None) -> str:
    if counted is None:
        return ""
    found = pluralize(counted.documents, "document")
    return f"These rules select {found}. Nothing is saved yet."
