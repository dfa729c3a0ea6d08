"""`/api/documents`: the indexed documents, as far as the asker may read them.

What the asker may not read and what does not exist take the same way: one query with the readers in
its condition, and the same answer.
"""

import os
import re
from collections.abc import Iterator
from io import BufferedReader
from pathlib import PurePosixPath
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Query
from starlette.responses import Response, StreamingResponse

from backend.access.document_readers import FindReaders
from backend.api import openapi
from backend.api.authorization import Permission, requires
from backend.api.dependencies import (
    ContainerDependency,
    FindReadersDependency,
    OpeningReadersDependency,
    ReadersDependency,
)
from backend.api.request_context import CancelTokenDependency
from backend.composition.sources import SourceParts
from backend.container import Container
from backend.schemas.document import DocumentListResponse, DocumentResponse, DocumentSummary
from backend.settings import Settings
from backend.store.database import Database
from backend.store.documents import documents as stored
from backend.store.documents.documents import StoredDocument
from backend.store.sync import sources
from connectors.access import Readers
from connectors.connector import ProvidesOriginal
from connectors.document import Document
from connectors.errors import InvalidInputError, NotFoundError
from connectors.extraction import registry
from connectors.extraction.pdf_rendering import IMAGE_TYPE, render_page
from connectors.extraction.result import ExtractionError
from indexing.chunking.chunk import ChunkRange
from indexing.runtime.deadline import CancelToken, Deadline

router = APIRouter()
MOST_DOCUMENTS = 500
_PIECE = 1 << 16
_ENDING = "/original"
_PAGE_NUMBER = re.compile("[1-9][0-9]{0,5}")
_SHOWN_IN_PLACE = {registry.TEXT, registry.PDF}
_POLICY = "default-src 'none'; frame-ancestors 'none'; sandbox"
"""Of a document's own file: whatever it is, it runs nothing and loads nothing."""


@router.get(
    "/api/documents",
    summary="List the documents that you may read, by id",
)
@requires(Permission.SEARCH)
def list_documents(
    readers: ReadersDependency,
    find_readers: FindReadersDependency,
    container: ContainerDependency,
    source: Annotated[str | None, Query(max_length=100)] = None,
    after: Annotated[str, Query(max_length=10_000, description="`next` of the last answer")] = "",
    limit: Annotated[int, Query(ge=1, le=MOST_DOCUMENTS)] = 100,
) -> DocumentListResponse:
    held = stored.list_readable(container.database, readers, after, limit, source)
    return DocumentListResponse(
        documents=tuple(
            DocumentSummary.from_held(one, find_readers.limit(one.access)) for one in held
        ),
        next=held[-1].id if len(held) == limit else None,
    )


# Before the route of a document: its path would match this one too.
@router.get(
    "/api/documents/{document_id:path}/original",
    response_class=StreamingResponse,
    responses={200: openapi.FILE},
    summary="Get the file that a document was read from",
)
@requires(Permission.SEARCH)
def document_original(
    document_id: str,
    readers: OpeningReadersDependency,
    container: ContainerDependency,
    find_readers: FindReadersDependency,
    cancel_token: CancelTokenDependency,
) -> Response:
    """The file is shown only as it was when it was last synced: the readers of a newer one are not known yet."""
    found = find(container.database, document_id, readers)
    if found is None:
        # A document may be named so. No source has both: a file is no folder.
        return _show_named(document_id + _ENDING, readers, container, find_readers, cancel_token)
    file = _file(container.sources, found.document)
    if file is None:
        raise _make_changed_error()
    return _download(file, found.document)


@router.get(
    "/api/documents/{document_id:path}/pages/{number}",
    response_class=Response,
    responses={200: openapi.IMAGE},
    summary="Get the image of a page of a PDF file",
)
@requires(Permission.SEARCH)
def page_image(
    document_id: str,
    number: str,
    readers: OpeningReadersDependency,
    container: ContainerDependency,
    find_readers: FindReadersDependency,
    cancel_token: CancelTokenDependency,
) -> Response:
    """Only of the file as it was when it was last synced."""
    name = f"{document_id}/pages/{number}"
    if find(container.database, name, readers) is not None:
        return _show_named(name, readers, container, find_readers, cancel_token)
    found = find(container.database, document_id, readers)
    if found is None or not _PAGE_NUMBER.fullmatch(number):
        raise _make_missing_error()
    if found.document.media_type != registry.PDF:
        raise NotFoundError("This document is not a PDF file.")
    image = _render_page(container.sources, found.document, int(number))
    return Response(image, media_type=IMAGE_TYPE)


@router.get(
    "/api/documents/{document_id:path}",
    summary="Show a document: its text, its location, and who may read it",
)
@requires(Permission.SEARCH)
def show_document(
    document_id: str,
    readers: OpeningReadersDependency,
    container: ContainerDependency,
    find_readers: FindReadersDependency,
    cancel_token: CancelTokenDependency,
) -> DocumentResponse:
    """404 for what does not exist, and for what you may not read."""
    found = find(container.database, document_id, readers)
    if found is None:
        raise _make_missing_error()
    chunk_range = ChunkRange(document_id, 0, found.chunks)
    deadline = _deadline(container.settings, cancel_token)
    (chunks,) = container.engine.index.chunks([chunk_range], readers, deadline)
    file = _file(container.sources, found.document)
    if file is not None:
        file.close()
    who = find_readers.find(found.document.access)
    return DocumentResponse.from_index(found, chunks, who, has_original=file is not None)


def _show_named(
    document_id: str,
    readers: Readers,
    container: Container,
    find_readers: FindReaders,
    cancel_token: CancelToken,
) -> Response:
    """Show a document whose name ends like the path of another route."""
    shown = show_document(document_id, readers, container, find_readers, cancel_token)
    return Response(shown.model_dump_json(), media_type="application/json")


def find(database: Database, document_id: str, readers: Readers) -> StoredDocument | None:
    """Return the document if it exists and the asker may read it. Every route finds documents by this function."""
    return stored.find(database, document_id, readers)


def _deadline(settings: Settings, cancel_token: CancelToken) -> Deadline:
    return Deadline.after(settings.search_seconds, cancel_token)


def _make_missing_error() -> NotFoundError:
    return NotFoundError("The document does not exist, or you may not read it.")


def _make_changed_error() -> NotFoundError:
    return NotFoundError(
        "The file of this document is not there any more as it was read.", "Sync its source."
    )


def _file(parts: SourceParts, document: Document) -> BufferedReader | None:
    """Return the file of a document; None where there is none, or its source may not read it any more."""
    try:
        connector = parts.connector(sources.find(parts.database, document.source))
    except (InvalidInputError, NotFoundError):
        # Files of people's own are of no source that is connected.
        return None
    if not isinstance(connector, ProvidesOriginal):
        return None
    return connector.original(document.id, document.version)


def _render_page(parts: SourceParts, document: Document, number: int) -> bytes:
    file = _file(parts, document)
    if file is None:
        raise _make_changed_error()
    with file:
        try:
            return render_page(file, number, parts.settings.search_seconds)
        except ExtractionError as error:
            raise NotFoundError(f"This page cannot be shown: {error}.") from error


def _download(file: BufferedReader, document: Document) -> StreamingResponse:
    media_type = document.media_type
    placed = "inline" if media_type in _SHOWN_IN_PLACE else "attachment"
    name = quote(PurePosixPath(document.id.partition(":")[2]).name, errors="replace")
    headers = {
        # Given whole, so that no character set is added: the bytes are as they were found.
        "Content-Type": media_type,
        "Content-Disposition": f"{placed}; filename*=UTF-8''{name}",
        "Content-Length": str(os.fstat(file.fileno()).st_size),
        "Content-Security-Policy": _POLICY,
    }
    return StreamingResponse(_pieces(file), headers=headers)


def _pieces(file: BufferedReader) -> Iterator[bytes]:
    with file:
        while piece := file.read(_PIECE):
            yield piece
