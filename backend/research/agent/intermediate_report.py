"""The intermediate report of an agent: what its sources say of the question of its task."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from backend.research import prompts
from backend.research.knowledge.builders import measure_relevance
from backend.research.knowledge_items import KnowledgeItem, KnowledgeType
from backend.research.model_calls import ModelCalls, cut_to_tokens
from backend.research.record.sources import NumberedSource
from backend.research.references.cited_text import (
    CitedText,
    describe_source,
    keep_markers,
    split_source,
)
from backend.search.llm_protocol import CompletionError
from backend.search.prompts import strip_reasoning
from backend.search.sections import to_json
from indexing.runtime.deadline import Deadline
from indexing.text.markdown_links import escape_markdown

MAX_QUOTES = 6
LONGEST_QUOTE = 400
SOURCE_TOKENS = 3_000
"""Of one source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOrder:
    """What a report is written of."""

    question: str
    answer: str = ""
    """That counts, with its markers."""
    knowledge: Sequence[KnowledgeItem] = ()
    sources: Mapping[int, NumberedSource]
    today: date | None = None
    instructions: str = ""
    """Of the assistant."""


def generate_intermediate_report(
    order: ReportOrder, calls: ModelCalls, deadline: Deadline
) -> CitedText:
    """Let the model write what the sources say; markers are kept, and those of no source are text.

    Raises:
        CompletionError: the model does not answer, or says nothing that rests on a source.
    """
    described = _describe(order, calls)
    messages = prompts.quote(prompts.TASK_REPORT, described, order.today, order.instructions)
    text = strip_reasoning(calls.write(messages, deadline))
    mapping = {number: one.cited_document for number, one in order.sources.items()}
    cited = keep_markers(text, mapping)
    if not cited.seen:
        raise CompletionError("The language model wrote a report that names no source.")
    return cited


def _describe(order: ReportOrder, calls: ModelCalls) -> dict[str, object]:
    answered = [one for one in order.knowledge if one.type is KnowledgeType.QA]
    calculated = [one for one in order.knowledge if one.type is KnowledgeType.CODING]
    described: dict[str, object] = {
        "question": order.question,
        "answer": order.answer,
        "answered_on_the_way": [_describe_item(one) for one in answered],
        "calculated": [_describe_item(one) for one in calculated],
    }
    shown = {name: value for name, value in described.items() if value}
    count = calls.dependencies.count_tokens
    room = calls.room - count(to_json(shown)) - count(order.instructions)
    return {**shown, "sources": _fit_sources(order, room, calls)}


def _describe_item(item: KnowledgeItem) -> dict[str, str]:
    return {"question": item.question, "answer": item.answer}


def _fit_sources(order: ReportOrder, room: int, calls: ModelCalls) -> list[dict[str, object]]:
    """Describe as many sources as fit, those nearest to the question first; they are listed by number."""
    count, fitting = calls.dependencies.count_tokens, dict[int, dict[str, object]]()
    for source in _rank(order):
        content = "\n".join(text.text for text in source.texts)
        content = cut_to_tokens(content, SOURCE_TOKENS, count)
        described = {**describe_source(source), "content": content}
        cost = count(to_json(described))
        if cost <= room:
            room -= cost
            fitting[source.number] = described
    return [fitting[number] for number in sorted(fitting)]


def _rank(order: ReportOrder) -> list[NumberedSource]:
    answer = order.answer
    with_texts = [one for one in order.sources.values() if one.texts]

    def rank(source: NumberedSource) -> tuple[bool, float]:
        said = " ".join(text.text for text in source.texts)
        return f"[{source.number}]" in answer, measure_relevance(order.question, said)

    return sorted(with_texts, key=rank, reverse=True)


def quote_sources(question: str, sources: Mapping[int, NumberedSource]) -> CitedText:
    """Return a report without a model: of each source the sentence that is nearest to the question."""
    quotes = sorted(_find_quotes(question, sources.values()), key=lambda one: -one[0])
    lines = [
        f"- “{escape_markdown(_shorten(text))}” [{number}]"
        for score, number, text in quotes[:MAX_QUOTES]
        if score > 0
    ]
    mapping = {number: one.cited_document for number, one in sources.items()}
    return keep_markers("\n".join(lines), mapping)


def _find_quotes(
    question: str, sources: Iterable[NumberedSource]
) -> Iterator[tuple[float, int, str]]:
    for source in sources:
        singles = (one for one in split_source(source) if one.sentences == 1)
        scored = [(measure_relevance(question, one.text_in_context), one.text) for one in singles]
        if scored:
            score, text = max(scored, key=lambda pair: pair[0])
            yield score, source.number, " ".join(text.split())


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE].rstrip()}…"
