"""`POST /api/references`: which sentence of a text rests on which passage of which source."""

from collections.abc import Sequence
from typing import Annotated, Self, TypeAlias

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, ConfigDict, Field, model_validator

from backend.api.authentication import CHALLENGE
from backend.api.authorization import Permission, requires
from backend.api.dependencies import (
    AppStateDependency,
    ContainerDependency,
    DatabaseDependency,
    OpeningReadersDependency,
    waits_among_answers,
)
from backend.api.problem_details import Problem, problem
from backend.api.readers_now import make_readers_now
from backend.api.request_context import RequestContextDependency
from backend.chat.rights_watch import ReadersNow
from backend.conversations.answer_gate import AnswerGate
from backend.research.references.citable_source import (
    CitableSource,
    make_document_source,
    make_text_source,
)
from backend.research.references.reference_builder import build_references
from backend.research.references.reference_markers import MarkerStyle
from backend.schemas.references import ReferencesResponse
from backend.store.database import Database
from backend.store.documents import documents
from connectors.access import Readers
from connectors.errors import InvalidInputError, NotFoundError
from indexing.index.protocols import Index
from indexing.runtime.deadline import Deadline

router = APIRouter()
LONGEST_TEXT = 100_000
LONGEST_SOURCES = 400_000
"""Characters of all sources together."""
MOST_SOURCES = 50
LONGEST_BUILDING = 60.0
"""Seconds."""
_ASKER_GONE = problem(401, "You are not signed in any more.", "Sign in, then ask again.")


class TextSourceBody(BaseModel):
    """A source that is given."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str = Field(default="", max_length=1_000)
    url: str = Field(default="", max_length=2_000, description="Where a person reads it")
    text: str = Field(max_length=LONGEST_SOURCES, description="Plain text or Markdown")


class DocumentSourceBody(BaseModel):
    """A document of the index that you may read."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    document_id: str = Field(min_length=1, max_length=10_000)


SourceBody: TypeAlias = TextSourceBody | DocumentSourceBody


class ReferencesBody(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "text": "Parents have 26 weeks of paid leave, which they may take in two parts if the manager agrees.",
                    "sources": [
                        {
                            "title": "Leave, in short",
                            "text": "Each parent is entitled to 26 weeks of paid leave, in two parts where the manager agrees.",
                        }
                    ],
                }
            ]
        },
    )

    text: str = Field(max_length=LONGEST_TEXT, description="Plain text or Markdown")
    sources: tuple[SourceBody, ...] = Field(min_length=1, max_length=MOST_SOURCES)
    style: MarkerStyle = Field(
        default=MarkerStyle.BRACKETS, description="`[1]`, or `[^1]` for the footnotes of Markdown"
    )

    @model_validator(mode="after")
    def _check_length(self) -> Self:
        given = (one.text for one in self.sources if isinstance(one, TextSourceBody))
        if sum(map(len, given)) > LONGEST_SOURCES:
            raise ValueError(_describe_limit())
        return self

    @property
    def document_ids(self) -> frozenset[str]:
        return frozenset(
            one.document_id for one in self.sources if isinstance(one, DocumentSourceBody)
        )


async def get_readers_now(
    request: Request, state: AppStateDependency, database: DatabaseDependency
) -> ReadersNow:
    return make_readers_now(request, state.authenticator, database)


@router.post(
    "/api/references",
    summary="Build the references of a text: which of its sentences each source supports",
)
@requires(Permission.ASK)
@waits_among_answers
def build_text_references(
    body: ReferencesBody,
    container: ContainerDependency,
    readers: OpeningReadersDependency,
    readers_now: Annotated[ReadersNow, Depends(get_readers_now)],
    context: RequestContextDependency,
) -> ReferencesResponse:
    """At most ten passages and ten pictures, the best ones; nothing of the text changes but for their markers. 404 where a
    document of the sources does not exist, or you may not read it now. All sources together have at most 400,000 characters."""
    seconds = min(LONGEST_BUILDING, container.settings.answer_seconds)
    deadline = Deadline.after(seconds, context.cancel_token)
    sources = _read_sources(body.sources, container.database, readers)
    built = build_references(
        body.text, sources, container.embedding.with_languages, body.style, deadline
    )
    if body.document_ids:
        gate = _open_gate(container.engine.index, readers_now(), deadline)
        if not gate.allows(body.document_ids):
            raise _make_missing_error()
    return ReferencesResponse.from_built(built)


def _open_gate(index: Index, readers: Readers | None, deadline: Deadline) -> AnswerGate:
    if readers is None:
        raise Problem(_ASKER_GONE, CHALLENGE)
    # Memories are no sources here: the ids are those of documents alone.
    return AnswerGate(
        index=index,
        readers=readers,
        own_memories=lambda _: frozenset(),
        deadline=deadline,
    )


def _read_sources(
    given: Sequence[SourceBody], database: Database, readers: Readers
) -> list[CitableSource]:
    sources, length = list[CitableSource](), 0
    for one in given:
        source = _read_source(one, database, readers)
        length += sum(map(len, source.texts))
        # At once: all fifty may be the longest documents that there are.
        if length > LONGEST_SOURCES:
            raise InvalidInputError(_describe_limit())
        sources.append(source)
    return sources


def _read_source(one: SourceBody, database: Database, readers: Readers) -> CitableSource:
    match one:
        case TextSourceBody(title=title, url=url, text=text):
            return make_text_source(title, url, text)
        case DocumentSourceBody(document_id=document_id):
            found = documents.find(database, document_id, readers)
            if found is None:
                raise _make_missing_error()
            return make_document_source(found.document)


def _make_missing_error() -> NotFoundError:
    return NotFoundError("A document of the sources does not exist, or you may not read it.")


def _describe_limit() -> str:
    return f"all sources together may have {LONGEST_SOURCES:,} characters"
