"""Show the passages that come closest where no language model is set."""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from backend.chat.chat_state import ChatStateContainer
from backend.chat.citations.citation_processor import CitationInfo
from backend.chat.citations.verification import Support, Verdict
from backend.chat.events import (
    SEARCH_ERRORS,
    AnswerDone,
    ChatEvent,
    Citation,
    TextPiece,
    TurnFailed,
)
from backend.chat.extractive.answer import (
    AnswerSentence,
    ExtractiveAnswer,
    extract_answer,
    keep_sentences_about,
    quote_passage,
    show_subject,
)
from backend.chat.intent.search_plan import Searches, Side, SwitchedOff, ask_message_itself
from backend.chat.message_lookup import KNOWLEDGE
from backend.chat.passages import (
    FOUND_ON_WEB,
    KEPT_REASON_TEXTS,
    REASON_TEXTS,
    PassagesReason,
    PassagesShown,
    QuotedPassage,
)
from backend.chat.references import map_references
from backend.chat.turn import ChatTurn
from backend.chat.turn_settings import NOTHING_SEARCHED, list_sides_without_model
from backend.chat.web_lookup import WebLookup, explain_missing_web, start_web_lookup
from backend.search.events import SearchEvent, StepFailed
from backend.search.follow_ups import FOLLOW_UP, FollowUp, resolve_follow_up
from backend.search.models import (
    Budgets,
    DocumentNumbers,
    ReadWords,
    SearchRequest,
    SearchResult,
    make_request,
)
from backend.search.search_tool import follow_search
from backend.web_search.web_session import WebSession
from indexing.embedding.embedder import Embedder
from indexing.embedding.language_support import LanguageSupport
from indexing.text.markdown_links import escape_markdown, safe_link

Search: TypeAlias = Callable[[SearchRequest], Iterator[SearchEvent]]
"""`SearchTool.run`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractiveDependencies:
    """What answers a turn without a language model."""

    search: Search | None
    """None where company knowledge is switched off."""
    prepare: ReadWords
    """Reads words of the message as filters, and corrects those that no readable document contains."""
    numbers: DocumentNumbers
    """Shared with the search; made for this turn."""
    embedder: Embedder
    understanding: LanguageSupport
    budgets: Budgets
    search_seconds: float = 30.0
    reason: PassagesReason = PassagesReason.NO_MODEL
    """Why no language model answers."""
    web: WebSession | None = None
    """None where the web is not asked."""


def answer_from_sentences(
    turn: ChatTurn, dependencies: ExtractiveDependencies, state: ChatStateContainer
) -> Generator[ChatEvent, None, None]:
    """Show the passages that come closest; the last event is AnswerDone or TurnFailed."""
    try:
        with turn.deadline.ended_with_block() as deadline:
            yield from _answer(replace(turn, deadline=deadline), dependencies, state)
    except SEARCH_ERRORS as error:
        yield state.fail(TurnFailed.from_search_error(error))
    finally:
        state.stop_if_running()


def _answer(
    turn: ChatTurn, dependencies: ExtractiveDependencies, state: ChatStateContainer
) -> Generator[ChatEvent, None, None]:
    if dependencies.web is None and Side.WEB in list_sides_without_model(turn.mode):
        yield explain_missing_web(turn.assistant)
        if dependencies.search is None:
            yield state.fail(NOTHING_SEARCHED)
            return
    history = turn.history
    follow_up = resolve_follow_up(turn.message, history) if history else FollowUp(turn.message)
    if follow_up.unclear:
        yield StepFailed(FOLLOW_UP, follow_up.unclear)
    lookup = _start_web_lookup(turn, dependencies, follow_up.question)
    searched = yield from _search_documents(turn, dependencies, follow_up, state)
    if lookup is not None:
        of_web = yield from lookup.follow(dependencies.numbers)
        state.add_documents(map_references(of_web.references))
    found = searched or ExtractiveAnswer((), ())
    answer = found.sentences
    empty = PassagesReason.NOTHING_ANSWERS if searched else PassagesReason.WEB_ALONE
    # A budget that is used up is always said: nothing else tells the asker.
    says_nothing = dependencies.reason is PassagesReason.NO_MODEL and not answer
    reason = empty if says_nothing else dependencies.reason
    passages = quote_closest(found, dependencies.numbers)
    yield PassagesShown(reason, passages)
    citations = [_citation(one, dependencies.numbers) for one in answer]
    text = []
    for piece in _pieces(answer, citations, _say_nothing_answers(empty, reason)):
        if isinstance(piece, TextPiece):
            text.append(piece.text)
            state.add_answer(piece.text)
        else:
            state.add_answer(piece)
        yield piece
    done = AnswerDone(
        text="".join(text),
        plain=" ".join(one.text for one in answer) or REASON_TEXTS[reason],
        citations=tuple(citations),
        model=None,
        answered=bool(answer),
        passages=passages,
        passages_reason=reason,
        documents=state.snapshot().shown_documents,
    )
    state.finish(done)
    yield done


def _start_web_lookup(
    turn: ChatTurn, dependencies: ExtractiveDependencies, question: str
) -> WebLookup | None:
    """Begin to search the web, where it is asked."""
    if dependencies.web is None:
        return None
    plan = Searches(web=ask_message_itself(question), knowledge=SwitchedOff())
    deadline = turn.deadline.limited_to(dependencies.search_seconds)
    return start_web_lookup(dependencies.web, plan, dependencies.budgets.answer, deadline)


def _search_documents(
    turn: ChatTurn,
    dependencies: ExtractiveDependencies,
    follow_up: FollowUp,
    state: ChatStateContainer,
) -> Generator[ChatEvent, None, ExtractiveAnswer | None]:
    """Return None where documents are not searched, or cannot be and the web is asked as well."""
    if dependencies.search is None:
        return None
    request = _make_request(turn, dependencies, follow_up)
    try:
        result = yield from follow_search(dependencies.search(request))
        state.add_results(result)
        return _find_sentences(turn, dependencies, result, request.message, follow_up)
    except SEARCH_ERRORS as error:
        if dependencies.web is None or not turn.deadline.remaining():
            raise
        yield StepFailed(KNOWLEDGE, str(error))
        return None


def _make_request(
    turn: ChatTurn, dependencies: ExtractiveDependencies, follow_up: FollowUp
) -> SearchRequest:
    is_resolved = follow_up.question != turn.message
    return make_request(
        follow_up.question,
        turn.readers,
        turn.deadline.limited_to(dependencies.search_seconds),
        dependencies.budgets,
        model_queries=(),
        history=() if is_resolved else turn.history,
        filters=turn.filters,
        read=dependencies.prepare,
    )


def _find_sentences(
    turn: ChatTurn,
    dependencies: ExtractiveDependencies,
    result: SearchResult,
    question: str,
    follow_up: FollowUp,
) -> ExtractiveAnswer:
    def extract(asked: str) -> ExtractiveAnswer:
        return extract_answer(
            asked,
            result.sections,
            dependencies.embedder,
            dependencies.understanding,
            turn.deadline,
        )

    found = extract(question)
    if not follow_up.subject:
        return found
    kept = keep_sentences_about(found, follow_up.subject)
    return kept if kept.sentences else show_subject(kept, extract(follow_up.subject))


def quote_closest(found: ExtractiveAnswer, numbers: DocumentNumbers) -> tuple[QuotedPassage, ...]:
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


def _say_nothing_answers(empty: PassagesReason, reason: PassagesReason) -> str:
    """Return the text where no passage answers. It is kept, and must not say that no model was set where a budget was used up."""
    is_of_budget = empty is PassagesReason.WEB_ALONE and reason is not empty
    return FOUND_ON_WEB if is_of_budget else KEPT_REASON_TEXTS[empty]


def _pieces(
    sentences: Sequence[AnswerSentence], citations: Sequence[Citation], empty: str
) -> Iterator[TextPiece | CitationInfo]:
    if not sentences:
        yield TextPiece(empty)
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
