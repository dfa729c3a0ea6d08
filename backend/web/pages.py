"""The pages and their parts: each route reads what is asked, calls one function, and renders."""

from typing import Annotated

from fastapi import Depends, FastAPI, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from backend import wire
from backend.api.asker import AskerIs
from backend.api.parts import QuarryIs
from backend.api.rules import Rule, ruled
from backend.api.search import facets as counted
from backend.api.visit import StopIs
from backend.assembly import Quarry
from backend.store import documents
from backend.web import address, facets
from backend.web.address import Address
from backend.web.document import Passage, shown
from backend.web.overview import overview, source_states
from backend.web.rendering import page, part, static_files
from backend.web.searching import search
from connectors.document import Readers, Span
from connectors.errors import AskTheOwner, RetryLater
from indexing.deadline import Deadline, DeadlineExceeded, Stop

_A_YEAR = 31_536_000


def mount(app: FastAPI) -> None:
    """Add all pages to the app of the HTTP API."""
    for path, endpoint in (
        ("/", search_page),
        ("/results", results),
        ("/ask", ask_page),
        ("/document/{document_id:path}", document_page),
        ("/sources", sources_page),
        ("/sources/table", sources_table),
        ("/static/{version}/{name}", static_file),
        ("/favicon.ico", icon),
    ):
        app.get(path, include_in_schema=False)(endpoint)


def error_page(request: Request, problem: wire.ProblemWire) -> Response:
    """What stopped a page, and what to do about it."""
    return page(request, "error.html", "", {"problem": problem}, problem.status)


def address_of(request: Request) -> Address:
    return address.read(request.query_params)


AddressIs = Annotated[Address, Depends(address_of)]


@ruled(Rule.READER)
def search_page(
    request: Request, asked: AddressIs, asker: AskerIs, quarry: QuarryIs, stop: StopIs
) -> HTMLResponse:
    return page(request, "search.html", "search", searched(quarry, asked, asker.readers, stop))


@ruled(Rule.READER)
def results(asked: AddressIs, asker: AskerIs, quarry: QuarryIs, stop: StopIs) -> HTMLResponse:
    """What changes on the search page when the address does."""
    return part("results.html", searched(quarry, asked, asker.readers, stop))


def searched(quarry: Quarry, asked: Address, readers: Readers, stop: Stop) -> dict[str, object]:
    """What the search page shows; what stopped the search is part of that."""
    values: dict[str, object] = {"asked": asked, "found": None, "overview": None, "trouble": None}
    deadline = Deadline.after(quarry.settings.search_seconds, stop)
    groups: tuple[facets.Group, ...] = ()
    try:
        if asked.text:
            values["found"] = search(quarry, asked, readers, deadline)
        counts = counted(quarry, asked.filters(), readers, deadline)
        groups = facets.groups(counts, asked)
        if not asked.text:
            values["overview"] = overview(quarry, counts)
    except (AskTheOwner, RetryLater, DeadlineExceeded) as error:
        values["trouble"] = str(error)
    return values | {"groups": groups, "chosen": facets.chosen(groups)}


@ruled(Rule.READER)
def ask_page(request: Request, quarry: QuarryIs, q: str = "") -> HTMLResponse:
    """The page alone; its script asks over the API."""
    question = q.strip()[: address.LONGEST_QUERY]
    values = {"question": question, "model": quarry.settings.llm_model}
    return page(request, "ask.html", "ask", values)


_Number = Annotated[int | None, Query(ge=0, le=10**9)]


def passage_of(
    section: _Number = None, start: _Number = None, end: _Number = None
) -> Passage | None:
    """The passage that an address names, if it names one."""
    if section is None or start is None or end is None or start >= end:
        return None
    return Passage(section, Span(start, end))


PassageIs = Annotated[Passage | None, Depends(passage_of)]


@ruled(Rule.READER)
def document_page(
    document_id: str,
    request: Request,
    asker: AskerIs,
    quarry: QuarryIs,
    passage: PassageIs,
    begin: Annotated[int, Query(alias="from", ge=0, le=10**9)] = 0,
    q: Annotated[str, Query(max_length=address.LONGEST_QUERY)] = "",
) -> HTMLResponse:
    """A document at a passage; one that is not there and one that is not the asker's look alike."""
    stored = documents.find(quarry.database, quarry.contents, document_id, asker.readers)
    if stored is None:
        return page(request, "missing.html", "search", {"query": q}, 404)
    told = shown(stored, passage, begin)
    return page(request, "document.html", "search", {"document": told, "query": q})


@ruled(Rule.OWNER)
def sources_page(request: Request, quarry: QuarryIs) -> HTMLResponse:
    return page(request, "sources.html", "sources", {"states": source_states(quarry)})


@ruled(Rule.OWNER)
def sources_table(quarry: QuarryIs) -> HTMLResponse:
    """What changes on the page of the sources when one is synced."""
    return part("sources_table.html", {"states": source_states(quarry)})


@ruled(Rule.ANYONE)
def static_file(version: str, name: str) -> Response:
    kept = static_files()
    file = kept.files.get(name)
    if file is None:
        return Response(status_code=404)
    # Of another version, as an older page may ask for: right, but not for keeping.
    age = f"public, max-age={_A_YEAR}, immutable" if version == kept.version else "no-cache"
    return Response(file.content, media_type=file.media_type, headers={"Cache-Control": age})


@ruled(Rule.ANYONE)
def icon() -> Response:
    return RedirectResponse(static_files().url("quarry.svg"))
