"""Make knowledge of pages, of what search engines say, of calculations, and of the conversation before; no language model has a part in it."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from backend.research.calculations.sandbox import Calculation
from backend.research.knowledge_items import KnowledgeItem, KnowledgeType, Reference
from backend.research.record.request import PastMessage
from backend.search.models import InferenceSection
from backend.web_search.page_snippets import (
    Snippet,
    SnippetBudget,
    choose_snippets,
)
from backend.web_search.results import Freshness, WebPage, WebResult
from connectors.document import Span
from connectors.text_cleaning import remove_invisible
from indexing.embedding.language_support import EmbedderWithLanguages
from indexing.runtime.deadline import Deadline
from indexing.text.tokenizer import extract_keywords, words

_JOINT = "\n\n"


def learn_from_pages(
    question: str,
    pages: Iterable[WebPage],
    model: EmbedderWithLanguages,
    budget: SnippetBudget,
    deadline: Deadline,
) -> list[KnowledgeItem]:
    """Return an item of each page that says anything: the parts of it that are nearest to the question."""
    chosen = (
        (page, choose_snippets(page.text, question, model, budget, deadline)) for page in pages
    )
    return [_make_page_item(question, page, snippets) for page, snippets in chosen if snippets]


def _make_page_item(question: str, page: WebPage, snippets: Sequence[Snippet]) -> KnowledgeItem:
    published = page.published.at if page.published else None
    answer, places = join_quotes([snippet.text for snippet in snippets])
    references = (
        Reference(
            exact_quote=snippet.text,
            url=page.url,
            title=page.title,
            date_time=published,
            relevance_score=min(1.0, max(0.0, snippet.score)),
            answer_chunk=snippet.text,
            answer_chunk_position=place,
            span=snippet.span,
        )
        for snippet, place in zip(snippets, places, strict=True)
    )
    return KnowledgeItem(
        question=f"What do experts say about “{question}”?",
        answer=answer,
        type=KnowledgeType.URL,
        references=tuple(references),
        updated=published,
        updated_is_guess=page.published is not None and page.published.is_guess,
    )


def learn_from_sections(question: str, sections: Iterable[InferenceSection]) -> list[KnowledgeItem]:
    """Return an item of each section of a document that was found for a question: its passages."""
    return [_make_section_item(question, section) for section in sections if section.text.strip()]


def _make_section_item(question: str, section: InferenceSection) -> KnowledgeItem:
    about = section.best.chunk
    answer, places = join_quotes([chunk.text for chunk in section.chunks])
    references = (
        Reference(
            exact_quote=chunk.text,
            url=about.link,
            document_id=about.document_id,
            title=about.title,
            date_time=about.updated_at or about.created_at,
            relevance_score=measure_relevance(question, chunk.text),
            answer_chunk=chunk.text,
            answer_chunk_position=place,
            section=chunk.section,
            span=chunk.span,
        )
        for chunk, place in zip(section.chunks, places, strict=True)
    )
    return KnowledgeItem(
        question=f"What do the documents say about “{question}”?",
        answer=answer,
        type=KnowledgeType.URL,
        references=tuple(references),
        updated=about.updated_at or about.created_at,
    )


def learn_from_results(
    query: str, results: Iterable[WebResult], freshness: Freshness | None
) -> KnowledgeItem | None:
    """Return what the summaries of the results of one query say together; None where they say nothing.

    Args:
        freshness: the age of results that was asked for.
    """
    quoted = [(one, text) for one in results if (text := _to_line(one.summary))]
    if not quoted:
        return None
    answer, places = join_quotes([text for _, text in quoted])
    references = (
        Reference(
            exact_quote=text,
            url=result.url,
            title=result.title,
            date_time=result.published,
            relevance_score=measure_relevance(query, text),
            answer_chunk=text,
            answer_chunk_position=place,
            span=Span(0, len(text)),
        )
        for (result, text), place in zip(quoted, places, strict=True)
    )
    return KnowledgeItem(
        question=f"What does the internet say about “{query}”?",
        answer=answer,
        type=KnowledgeType.SIDE_INFO,
        references=tuple(references),
        updated=freshness,
    )


def learn_from_calculation(question: str, calculation: Calculation) -> KnowledgeItem:
    """Return what a calculation yielded, with the code that did, as of when it was run.

    Args:
        question: What was to be calculated.
    """
    return KnowledgeItem(
        question=f"What is the solution to the coding issue: {question.rstrip(' ?？.')}?",
        answer=calculation.output.strip() or "It wrote nothing.",
        type=KnowledgeType.CODING,
        updated=calculation.at,
        source_code=calculation.code,
    )


def learn_from_history(history: Sequence[PastMessage]) -> list[KnowledgeItem]:
    """Return an item of each question of the conversation that was answered right after it."""
    return [
        KnowledgeItem(
            question=asked.text,
            answer=answer.text,
            type=KnowledgeType.CHAT_HISTORY,
            references=answer.references,
        )
        for asked, answer in pairwise(history)
        if (asked.role, answer.role) == ("user", "assistant") and answer.text.strip()
    ]


def measure_relevance(question: str, text: str) -> float:
    """Return the share of the words of a question that a text holds."""
    wanted = frozenset(words(extract_keywords(question)))
    return len(wanted & frozenset(words(text))) / len(wanted) if wanted else 0.0


def _to_line(summary: str) -> str:
    return " ".join(remove_invisible(summary).split())


def join_quotes(texts: Sequence[str]) -> tuple[str, list[Span]]:
    """Return texts as paragraphs of one, and where each stands in it."""
    return _JOINT.join(texts), list(_place(texts))


def _place(texts: Iterable[str]) -> Iterator[Span]:
    """Yield where each text stands among those joined."""
    start = 0
    for text in texts:
        yield Span(start, start + len(text))
        start += len(text) + len(_JOINT)
