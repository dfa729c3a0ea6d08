"""The pages and their fragments: each route reads the address, calls one function, and renders."""

from dataclasses import replace
from functools import cache
from typing import Annotated, Literal
from urllib.parse import quote

from fastapi import APIRouter, Depends, FastAPI, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from backend.access.roles import Role
from backend.api.authorization import AskerDependency, Permission, requires
from backend.api.dependencies import (
    ChatDependency,
    DatabaseDependency,
    FindReadersDependency,
    OpeningReadersDependency,
    ReadersDependency,
    SearchDependency,
    SourcesDependency,
    WebSessionsDependency,
)
from backend.api.languages import find_language
from backend.api.request_context import CancelTokenDependency, get_request_context
from backend.api.router import make_protected_router
from backend.schemas.system import ProblemDetails
from backend.search.facets import count_facets, count_found
from backend.search.search_service import SearchService
from backend.store.chat import shared_files
from backend.store.database import Database
from backend.store.documents import documents
from backend.store.files.file_source import FILES_SOURCE
from backend.store.sync import schedule
from backend.web import facet_groups, search_url, urls
from backend.web.document_view import Passage, build_view
from backend.web.machine_link import link_command
from backend.web.pages import (
    assistant_pages,
    chat_page,
    file_pages,
    group_pages,
    knowledge_pages,
    memory_pages,
    model_pages,
    oauth_pages,
    people_pages,
    project_pages,
    research_pages,
    set_pages,
    sharing_pages,
    source_account_pages,
    token_pages,
    web_search_pages,
)
from backend.web.pages.ask_page import filters_json, list_chips, list_examples, name_model
from backend.web.pages.audit_page import audit_page
from backend.web.pages.document_existence_page import document_existence_page
from backend.web.pages.explain_page import explain_page
from backend.web.pages.sign_in import lead_to_sign_in
from backend.web.pages.start_page import overview
from backend.web.search_results import search
from backend.web.search_url import Address
from backend.web.source_forms import build_form, list_kinds
from backend.web.source_status import list_status_views, read_details
from backend.web.templates import page, part, static_files
from connectors.access import Readers
from connectors.document import Span
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from connectors.registry import SOURCE_KINDS
from indexing.runtime.deadline import CancelToken, DeadlineExceededError

FOLDER = "folder"
MISSING_PAGE = 200
_A_YEAR = 31_536_000


def mount(app: FastAPI) -> None:
    """Add all pages to the app of the HTTP API."""
    app.router.routes.extend(_make_pages().routes)


@cache
def _make_pages() -> APIRouter:
    """Put the pages together once: it takes long, and they are the same for each app."""
    router = make_protected_router()
    for path, endpoint in (
        ("/", search_page),
        ("/results", results),
        ("/ask", ask_page),
        ("/document/{document_id:path}", document_page),
        ("/sources", sources_page),
        ("/sources/table", sources_table),
        ("/source/{name}", source_page),
        ("/audit", audit_page),
        ("/explain", explain_page),
        ("/source/{name}/state", source_state),
        ("/source/{name}/decision", decision_page),
        ("/static/{version}/{name}", static_file),
        ("/favicon.ico", icon),
    ):
        router.get(path, include_in_schema=False)(endpoint)
    for pages in (
        chat_page,
        assistant_pages,
        project_pages,
        research_pages,
        file_pages,
        knowledge_pages,
        memory_pages,
        sharing_pages,
        people_pages,
        group_pages,
        source_account_pages,
        token_pages,
        oauth_pages,
        model_pages,
        web_search_pages,
        set_pages,
    ):
        router.include_router(pages.router)
    router.post("/look", include_in_schema=False)(document_existence_page)
    return router


def error_page(request: Request, problem: ProblemDetails) -> Response:
    """Render a problem as a page."""
    has_accounts = get_request_context(request.scope).has_accounts
    if problem.status == 401 and has_accounts:
        return lead_to_sign_in(request)
    if problem.status == 401:
        values = {"problem": problem, "link_command": link_command(request)}
        return page(request, "not_signed_in.html", "", values, problem.status)
    return page(request, "error.html", "", {"problem": problem}, problem.status)


def parse_address(request: Request) -> Address:
    return search_url.read(request.query_params)


AddressDependency = Annotated[Address, Depends(parse_address)]


@requires(Permission.SEARCH)
def search_page(
    request: Request,
    address: AddressDependency,
    asker: AskerDependency,
    readers: ReadersDependency,
    service: SearchDependency,
    database: DatabaseDependency,
    cancel_token: CancelTokenDependency,
) -> HTMLResponse:
    values = search_values(service, database, address, asker.role, readers, cancel_token)
    return page(request, "search.html", "search", values)


@requires(Permission.SEARCH)
def results(
    request: Request,
    address: AddressDependency,
    asker: AskerDependency,
    readers: ReadersDependency,
    service: SearchDependency,
    database: DatabaseDependency,
    cancel_token: CancelTokenDependency,
) -> HTMLResponse:
    """Render the part of the search page that depends on the address."""
    values = search_values(service, database, address, asker.role, readers, cancel_token)
    return part(find_language(request), "results.html", values)


def search_values(
    service: SearchService,
    database: Database,
    address: Address,
    role: Role,
    readers: Readers,
    cancel_token: CancelToken,
) -> dict[str, object]:
    """Return the values of the search page; a failure of the search is one of them."""
    values: dict[str, object] = {
        "address": address,
        "found": None,
        "overview": None,
        "unread": (),
        "trouble": None,
        "is_admin": role is Role.ADMIN,
    }
    deadline = service.deadline(cancel_token)
    groups: tuple[facet_groups.Group, ...] = ()
    try:
        if address.text:
            found = values["found"] = search(service, address, readers, deadline)
            counts = count_found(found.tool, found.request, found.ranking, address.limit)
            if not found.results and role is Role.ADMIN:
                values["unread"] = schedule.list_unread_sources(database)
        else:
            counts = count_facets(service.index, address.filters(), readers, deadline)
            values["overview"] = overview(database, counts)
        groups = facet_groups.groups(counts, address)
    except (ActionRequiredError, TemporarilyUnavailableError, DeadlineExceededError) as error:
        values["trouble"] = str(error)
    return values | {"groups": groups, "chosen": facet_groups.chosen(groups, address)}


@requires(Permission.SEARCH)
def ask_page(
    request: Request,
    chat: ChatDependency,
    asker: AskerDependency,
    readers: ReadersDependency,
    database: DatabaseDependency,
    web_sessions: WebSessionsDependency,
    address: AddressDependency,
) -> HTMLResponse:
    """Render the page; its script sends the question to the API."""
    values = {
        "question": address.text,
        "model": name_model(chat),
        "owner": asker.turn_key,
        "web_is_on": web_sessions.is_on,
        "is_admin": asker.role is Role.ADMIN,
        "chips": list_chips(address),
        "filters": filters_json(address),
        "examples": list_examples(database, readers),
    }
    return page(request, "ask.html", "chat", values)


_Number = Annotated[int | None, Query(ge=0, le=10**9)]


def parse_passage(
    section: _Number = None, start: _Number = None, end: _Number = None
) -> Passage | None:
    """Return the passage that the address names, if any."""
    if section is None or start is None or end is None or start >= end:
        return None
    return Passage(section, Span(start, end))


PassageDependency = Annotated[Passage | None, Depends(parse_passage)]


@requires(Permission.SEARCH)
def document_page(
    document_id: str,
    request: Request,
    asker: AskerDependency,
    readers: OpeningReadersDependency,
    find_readers: FindReadersDependency,
    database: DatabaseDependency,
    passage: PassageDependency,
    begin: Annotated[int, Query(alias="from", ge=0, le=10**9)] = 0,
    q: Annotated[str, Query(max_length=search_url.LONGEST_QUERY)] = "",
    form: Literal["page", "pane"] = "page",
) -> HTMLResponse:
    """Render a document at a passage; a missing one and one the asker may not read look alike.

    Args:
        form: `pane`: the text alone, for another page to show.
    """
    stored = documents.find(database, document_id, readers)
    values: dict[str, object] = {"query": q, "is_admin": asker.role is Role.ADMIN}
    if stored is None:
        return page(request, "missing.html", "search", {**values, "name": document_id}, 404)
    who = find_readers.find(stored.document.access)
    view = build_view(stored, who.describe() or ["nobody"], passage, begin)
    if stored.document.source == FILES_SOURCE:
        view = replace(view, source=shared_files.name_source(database, asker.owner, document_id))
    shown = {"document": view, "form": form, "address": urls.document(document_id)}
    return page(request, "document.html", "search", {**values, **shown})


@requires(Permission.SOURCES)
def sources_page(request: Request, sources: SourcesDependency, add: str = FOLDER) -> HTMLResponse:
    """Render all sources, and the form for a new one of the kind `add`."""
    values = {
        "statuses": list_status_views(sources),
        "kinds": list_kinds(),
        "form": build_form(add if add in SOURCE_KINDS else FOLDER),
    }
    return page(request, "sources.html", "sources", values)


@requires(Permission.SOURCES)
def sources_table(request: Request, sources: SourcesDependency) -> HTMLResponse:
    """Render the part of the page of all sources that changes during syncs."""
    values = {"statuses": list_status_views(sources)}
    return part(find_language(request), "sources_table.html", values)


@requires(Permission.SOURCES)
def source_page(name: str, request: Request, sources: SourcesDependency) -> HTMLResponse:
    """Render one source: its status, runs, failures and settings."""
    source = sources.get(name)
    form = build_form(source.kind, source.settings) if source.kind in SOURCE_KINDS else None
    return page(
        request, "source.html", "sources", {"details": read_details(sources, name), "form": form}
    )


@requires(Permission.SOURCES)
def source_state(name: str, request: Request, sources: SourcesDependency) -> HTMLResponse:
    """Render the part of the page of a source that changes during syncs."""
    values = {"details": read_details(sources, name)}
    return part(find_language(request), "source_state.html", values)


@requires(Permission.SOURCES)
def decision_page(
    name: str,
    request: Request,
    sources: SourcesDependency,
    after: Annotated[str, Query(max_length=10_000)] = "",
) -> Response:
    """Render what is to be decided of a source; where nothing is, lead to the source."""
    if sources.status(name).decision is None:
        return RedirectResponse(f"/source/{quote(name)}", 303)
    decision = sources.decision(name, after, MISSING_PAGE)
    return page(request, "deletion_decision.html", "sources", {"decision": decision})


@requires(Permission.ANYONE)
def static_file(version: str, name: str) -> Response:
    assets = static_files()
    file = assets.files.get(name)
    if file is None:
        return Response(status_code=404)
    # Of another version, as an older page may ask for: right, but not for keeping.
    age = f"public, max-age={_A_YEAR}, immutable" if version == assets.version else "no-cache"
    return Response(file.content, media_type=file.media_type, headers={"Cache-Control": age})


@requires(Permission.ANYONE)
def icon() -> Response:
    return RedirectResponse(static_files().url("quarry.svg"))
