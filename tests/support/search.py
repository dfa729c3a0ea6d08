"""What tests of search are made of: chunks and sections, an index in memory, a scripted model."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

import numpy as np

from backend.search.inferred_filters import FilterInference
from backend.search.llm_protocol import ChatMessage, Complete, CompletionError
from backend.search.models import Budgets, DocumentNumbers, InferenceSection, SearchRequest
from backend.search.prompts import keyword_prompt, rephrase_prompt, selection_prompt
from backend.search.search_service import SearchService
from backend.search.search_tool import SearchTool
from connectors.access import EVERYBODY, Access, Readers
from connectors.document import Person, Span
from indexing.chunking.chunk import Chunk, ChunkRange
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.embedding.language_support import EVERYTHING, LanguageSupport
from indexing.embedding.token_counting import estimated_tokens
from indexing.index.protocols import (
    Evidence,
    Facets,
    Filters,
    Found,
    Hit,
    Index,
    IndexQuery,
    Replace,
)
from indexing.index.spelling import Corrections, PassageLookup, SpellingQuery, suggest_corrections
from indexing.local import open_writer
from indexing.runtime.deadline import Deadline
from indexing.text.tokenizer import contains_term, plain_words, words
from tests.support.rights import may_read

ENGLISH_ONLY = LanguageSupport({"English": 1.0})
UPDATED = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


def chunk(
    document_id: str,
    position: int,
    text: str = "",
    access: Access = EVERYBODY,
    source: str = "wiki",
) -> Chunk:
    text = text or f"{document_id} piece {position}"
    return Chunk(
        document_id=document_id,
        position=position,
        text=text,
        embedded_text=text,
        section=0,
        span=Span(0, len(text)),
        title=f"About {document_id}",
        link=f"https://wiki.example/{document_id}",
        source=source,
        media_type="text/plain",
        access=access,
        owners=(Person("Ann Lee"),),
        tags=frozenset({"team=platform", "team=web", "state=final"}),
        updated_at=UPDATED,
    )


def ranked(one: Chunk, score: float = 1.0, exact: int = 0) -> Hit:
    return Hit(one, score, Evidence(exact=exact))


def section(
    document_id: str, start: int, end: int, best: int | None = None, exact: int = 0, text: str = ""
) -> InferenceSection:
    """Chunks `[start, end)` of a document, of which only the best was found."""
    chunks = tuple(chunk(document_id, place, text) for place in range(start, end))
    found = ranked(chunks[(start if best is None else best) - start], exact=exact)
    return InferenceSection(chunks, found, (found,))


def request(
    message: str,
    *,
    readers: Readers | None = None,
    history: Sequence[ChatMessage] = (),
    model_queries: Sequence[str] = (),
    filters: Filters | None = None,
    budgets: Budgets | None = None,
    seconds: float = 30.0,
) -> SearchRequest:
    return SearchRequest(
        message=message,
        readers=readers or Readers.of(),
        deadline=Deadline.after(seconds),
        budgets=budgets or Budgets.for_window(128_000),
        history=tuple(history),
        model_queries=tuple(model_queries),
        filters=filters or Filters(),
    )


def write_local_index(folder: Path, chunks: Iterable[Chunk]) -> None:
    """Write documents of one chunk each, embedded by `HashingEmbedder`."""
    open_writer(folder, HashingEmbedder().identity).write(one_chunk_documents(chunks))


def one_chunk_documents(chunks: Iterable[Chunk]) -> Iterator[Replace]:
    """Yield a document of each chunk, embedded by `HashingEmbedder`."""
    embedder = HashingEmbedder()
    for one in chunks:
        yield Replace(
            document_id=one.document_id,
            generation=1,
            content_hash=one.document_id,
            chunks=(one,),
            vectors=embedder.embed_passages([one.text]),
        )


def make_service(
    index: Index,
    inference: FilterInference | None = None,
    embedder: HashingEmbedder | None = None,
) -> SearchService:
    """Make a service that embeds by `HashingEmbedder`."""
    used = embedder or HashingEmbedder()

    def make_tool(complete: Complete | None, numbers: DocumentNumbers) -> SearchTool:
        return SearchTool(
            index=index,
            embedder=used,
            understanding=EVERYTHING,
            count_tokens=estimated_tokens,
            complete=complete,
            numbers=numbers,
        )

    return SearchService(
        index=index,
        tool=make_tool,
        budgets=Budgets.for_window(8_000),
        seconds=30.0,
        inference=inference,
    )


@dataclass(frozen=True)
class _PassageWords:
    texts: Sequence[str]

    def inflections(self, word: str) -> list[str]:
        return words(word)

    def find_known(self, asked: Sequence[str]) -> frozenset[str]:
        held = {word for text in self.texts for word in (*plain_words(text), *words(text))}
        return frozenset(word for word in asked if held & {word, *words(word)})

    def read_texts(self, lookups: Sequence[PassageLookup]) -> list[list[str]]:
        return [list(self.texts) for _ in lookups]


@dataclass(frozen=True)
class MemoryIndex:
    """An index of a few chunks that notes what it is asked and refuses what makes no sense.

    The score is alpha * cosine + (1 - alpha) * share of words; `before_find` is called with the
    number of the call, from 0, and may raise or set `partial`.
    """

    corpus: tuple[Chunk, ...]
    before_find: Callable[[int], None] = lambda _: None
    before_chunks: Callable[[], None] = lambda: None
    partial: bool = False
    embedder: HashingEmbedder = field(default_factory=HashingEmbedder)
    finds: list[tuple[Sequence[IndexQuery], Readers]] = field(default_factory=list)
    reads: list[tuple[Sequence[ChunkRange], Readers]] = field(default_factory=list)

    def find(self, queries: Sequence[IndexQuery], readers: Readers, deadline: Deadline) -> Found:
        deadline.check()
        if not queries or any(not query.text.strip() for query in queries):
            raise ValueError("an index is asked for nothing")
        self.finds.append((queries, readers))
        self.before_find(len(self.finds) - 1)
        return Found(tuple(self._ranking(query, readers) for query in queries), self.partial)

    def chunks(
        self, ranges: Sequence[ChunkRange], readers: Readers, deadline: Deadline
    ) -> list[list[Chunk]]:
        deadline.check()
        self.reads.append((ranges, readers))
        self.before_chunks()
        return [list(self._of_range(one, readers)) for one in ranges]

    def facets(self, filters: Filters, readers: Readers, deadline: Deadline) -> Facets:
        raise NotImplementedError("search asks for no facets")

    def suggest_corrections(
        self, query: SpellingQuery, readers: Readers, deadline: Deadline
    ) -> Corrections:
        deadline.check()
        readable = [one.embedded_text for one in self.corpus if may_read(readers, one.access)]
        return suggest_corrections(query, _PassageWords(readable))

    def _of_range(self, wanted: ChunkRange, readers: Readers) -> Iterable[Chunk]:
        if not 0 <= wanted.start < wanted.end:
            raise ValueError(f"not a range of chunks: {wanted}")
        for one in sorted(self.corpus, key=lambda one: one.key):
            inside = wanted.start <= one.position < wanted.end
            if one.document_id == wanted.document_id and inside and may_read(readers, one.access):
                yield one

    def _ranking(self, query: IndexQuery, readers: Readers) -> tuple[Hit, ...]:
        sources, ids = query.filters.sources, query.filters.document_ids
        seen = [
            one
            for one in self.corpus
            if may_read(readers, one.access)
            and (sources is None or one.source in sources)
            and (ids is None or one.document_id in ids)
        ]
        scored = [self._hit(query, one) for one in seen]
        scored = [hit for hit in scored if hit.score > 0 or hit.evidence.exact]
        scored.sort(key=lambda hit: (-hit.evidence.exact, -hit.score, hit.chunk.key))
        return tuple(
            replace(hit, evidence=replace(hit.evidence, keyword_rank=rank))
            for rank, hit in enumerate(scored[: query.size], start=1)
        )

    def _hit(self, query: IndexQuery, one: Chunk) -> Hit:
        asked = set(words(query.text))
        share = len(asked & set(words(one.embedded_text))) / max(1, len(asked))
        cosine = None
        if query.vector is not None:
            cosine = float(np.dot(query.vector, self.embedder.embed_passages([one.text])[0]))
        score = query.alpha * max(0.0, cosine or 0.0) + (1 - query.alpha) * share
        exact = sum(contains_term(one.embedded_text, term) for term in query.exact)
        return Hit(one, score, Evidence(cosine=cosine, word_share=share, exact=exact))


Reply: TypeAlias = str | Callable[[Sequence[ChatMessage], Deadline], str]

_STEPS = {
    rephrase_prompt("?", ())[0].text: "rephrase",
    keyword_prompt("?", ())[0].text: "keywords",
    selection_prompt(["?"], (), 10)[0].text: "select",
}


@dataclass(frozen=True)
class ScriptedModel:
    """Answers each step of a search as scripted, and records the requests."""

    rephrase: Reply = "the question, alone"
    keywords: Reply = "key words"
    select: Reply = '{"sections": []}'
    asked: dict[str, list[ChatMessage]] = field(default_factory=dict)

    def __call__(self, messages: Sequence[ChatMessage], deadline: Deadline) -> str:
        step = _STEPS[messages[0].text]
        self.asked[step] = list(messages)
        reply: Reply = {
            "rephrase": self.rephrase,
            "keywords": self.keywords,
            "select": self.select,
        }[step]
        return reply if isinstance(reply, str) else reply(messages, deadline)


def failing(reason: str = "the endpoint answered 500") -> Complete:
    def fail(_messages: Sequence[ChatMessage], _deadline: Deadline) -> str:
        raise CompletionError(reason)

    return fail


def hanging(released: threading.Event) -> Complete:
    """Answers only when released, whatever its deadline."""

    def hang(_messages: Sequence[ChatMessage], _deadline: Deadline) -> str:
        released.wait(60)
        return "too late"

    return hang
