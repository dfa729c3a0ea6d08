"""Show passages where no model is set; verify the citations of an answer by a model."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from backend.chat.chat_state import ChatStateContainer
from backend.chat.citations.citation_processor import CitationInfo
from backend.chat.citations.evidence import Passage, split_document, split_passages
from backend.chat.citations.verification import Support, Verdict, find_support
from backend.chat.events import AnswerDone, ChatEvent, Citation, TextPiece, TurnFailed
from backend.chat.extractive.answer import AnswerSentence, ExtractiveAnswer, extract_answer
from backend.chat.extractive.passage_quotes import quote_passage
from backend.chat.llm_loop import ChatTurn
from backend.chat.passages import PassagesReason, PassagesShown, QuotedPassage
from backend.search.events import SearchEvent
from backend.search.models import Budgets, DocumentNumbers, InferenceSection, SearchRequest
from backend.search.search_tool import follow_search
from connectors.document import Document
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.embedding.embedder import Embedder
from indexing.embedding.language_support import Understanding
from indexing.runtime.deadline import Deadline, DeadlineExceededError
from indexing.text.markdown_links import escape_markdown, safe_link

Search: TypeAlias = Callable[[SearchRequest], Iterator[SearchEvent]]
"""`SearchTool.run`."""
Sections: TypeAlias = Mapping[int, Sequence[InferenceSection]]
CHECKING_SECONDS = 10.0
"""Time to check citations, even if the answer has used all of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractiveDependencies:
    """What answers a turn without a language model."""

    search: Search
    correct: Callable[[SearchRequest], SearchRequest]
    """Replaces words that nothing readable holds by the nearest that something does."""
    numbers: DocumentNumbers
    """Shared with the search; made for this turn."""
    embedder: Embedder
    understanding: Understanding
    budgets: Budgets
    search_seconds: float = 30.0


def answer_from_sentences(
    turn: ChatTurn, dependencies: ExtractiveDependencies, state: ChatStateContainer
) -> Generator[ChatEvent, None, None]:
    """Show the passages that come closest; the last event is AnswerDone or TurnFailed."""
    try:
        yield from _answer(turn, dependencies, state)
    except (DeadlineExceededError, TemporarilyUnavailableError) as error:
        yield state.fail(TurnFailed(f"The search did not answer. {error}", "Ask again."))
    except ActionRequiredError as error:
        yield state.fail(TurnFailed("The search cannot answer.", str(error)))
    finally:
        state.stop_if_running()


def _answer(
    turn: ChatTurn, dependencies: ExtractiveDependencies, state: ChatStateContainer
) -> Generator[ChatEvent, None, None]:
    request = dependencies.correct(
        SearchRequest(
            message=turn.message,
            readers=turn.readers,
            deadline=turn.deadline.limited_to(dependencies.search_seconds),
            budgets=dependencies.budgets,
            history=turn.history,
            filters=turn.filters,
        )
    )
    result = yield from follow_search(dependencies.search(request))
    state.add_results(result)
    found = extract_answer(
        request.message,
        result.sections,
        dependencies.embedder,
        dependencies.understanding,
        turn.deadline,
    )
    answer = found.sentences
    reason = PassagesReason.NO_MODEL if answer else PassagesReason.NOTHING_ANSWERS
    passages = _quote_passages(found, dependencies.numbers)
    yield PassagesShown(reason, passages)
    citations = [_citation(one, dependencies.numbers) for one in answer]
    text = []
    for piece in _pieces(answer, citations):
        if isinstance(piece, TextPiece):
            text.append(piece.text)
            state.add_answer(piece.text)
        else:
            state.add_answer(piece)
        yield piece
    done = AnswerDone(
        text="".join(text),
        plain=" ".join(one.text for one in answer) or reason.sentence,
        citations=tuple(citations),
        model=None,
        answered=bool(answer),
        passages=passages,
    )
    state.finish(done)
    yield done


def _quote_passages(found: ExtractiveAnswer, numbers: DocumentNumbers) -> tuple[QuotedPassage, ...]:
    """Quote the closest passages; what answers in them is highlighted."""
    answering = [one.candidate for one in found.sentences]
    return tuple(
        quote_passage(
            one.candidate,
            one.score,
            [each.span for each in answering if each.chunk.key == one.candidate.chunk.key],
            numbers,
        )
        for one in found.closest
    )


def _citation(sentence: AnswerSentence, numbers: DocumentNumbers) -> Citation:
    candidate = sentence.candidate
    chunk = candidate.chunk
    return Citation(
        number=numbers.assign(chunk.document_id),
        document_id=chunk.document_id,
        title=chunk.title,
        link=safe_link(chunk.link),
        sentence=sentence.text,
        claim=sentence.text,
        support=Support(
            candidate.text, chunk.section, candidate.span, sentence.score, Verdict.VERBATIM
        ),
    )


def _pieces(
    sentences: Sequence[AnswerSentence], citations: Sequence[Citation]
) -> Iterator[TextPiece | CitationInfo]:
    if not sentences:
        yield TextPiece(PassagesReason.NOTHING_ANSWERS.sentence)
    seen: set[int] = set()
    for at, (one, citation) in enumerate(zip(sentences, citations, strict=True)):
        yield TextPiece(f"{' ' if at else ''}{escape_markdown(one.text)} ")
        if citation.number not in seen:
            seen.add(citation.number)
            yield CitationInfo(citation.number, citation.document_id, citation.title, citation.link)
        yield TextPiece(_marker(citation))


def _marker(citation: Citation) -> str:
    number = f"[{citation.number}]"
    return f"[{number}]({citation.link})" if citation.link else number


@dataclass(frozen=True, slots=True)
class CitationChecker:
    """Finds, for each cited sentence, what in its document supports it."""

    embedder: Embedder
    understanding: Understanding
    state: ChatStateContainer
    files: Mapping[str, Document] = field(default_factory=dict)
    """Files that the model read whole, by their ids."""

    def check_citations(self, events: Iterable[ChatEvent]) -> Iterator[ChatEvent]:
        """Pass on the events, and add to the citations of the answer their support.

        If the embedder fails, the citations stay unchecked.
        """
        for event in events:
            yield self._check(event) if isinstance(event, AnswerDone) else event

    def _check(self, answer: AnswerDone) -> AnswerDone:
        sections = self.state.snapshot().sections
        claims = [
            (citation.claim, self._passages(citation, sections)) for citation in answer.citations
        ]
        try:
            found = find_support(
                claims, self.embedder, self.understanding, Deadline.after(CHECKING_SECONDS)
            )
        except (TemporarilyUnavailableError, ActionRequiredError, DeadlineExceededError):
            return answer
        supported = [
            replace(citation, support=support)
            for citation, support in zip(answer.citations, found, strict=True)
        ]
        return replace(answer, citations=tuple(supported))

    def _passages(self, citation: Citation, sections: Sections) -> list[Passage]:
        found = [
            passage
            for section in sections.get(citation.number, ())
            for passage in split_passages(section.chunks)
        ]
        file = self.files.get(citation.document_id)
        return found or (split_document(file) if file else [])
