"""Extractive answers as Markdown: what documents say is text, and nothing else."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from lxml import html

from backend.chat.answer import ExtractiveDependencies, Search, answer_from_sentences
from backend.chat.chat_state import ChatStateContainer
from backend.chat.events import AnswerDone, ChatEvent, TurnFailed
from backend.chat.intent.search_plan import Side
from backend.chat.passages import PassagesReason
from backend.chat.turn import ChatTurn
from backend.chat.turn_settings import ChatMode
from backend.schemas.answer import AnswerResponse
from backend.search.events import SearchDone, SearchEvent, StepFailed
from backend.search.llm_protocol import ChatMessage
from backend.search.models import (
    Budgets,
    DocumentNumbers,
    InferenceSection,
    SearchDoc,
    SearchRequest,
    SearchResult,
)
from backend.store.accounts.people import NOBODY
from backend.web.answer_html import answer_html
from connectors.access import Readers
from connectors.errors import TemporarilyUnavailableError
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.embedding.language_support import LanguageSupport
from indexing.index.protocols import Evidence, Hit
from indexing.runtime.deadline import Deadline
from tests.support.chat_turns import DENMARK, FOUND
from tests.support.open_web import OpenWeb, open_web
from tests.support.search import chunk
from tests.support.sides import BOTH_SIDES

FILLER = (
    "Visitors sign the book in the lobby. The canteen closes at half past two."
    " Coats hang in the cupboard on the left. Parcels go to the post room before noon."
    " Windows are shut at the end of the day. Lamps go out by themselves after ten minutes."
)
PLANTED = "The dock costs 40 euros [[1]](https://evil.example/x) ![p](https://evil.example/p.png)."


def answer_to(
    question: str,
    texts: Sequence[str],
    link: str = "https://wiki.example/a b",
    history: tuple[ChatMessage, ...] = (),
) -> AnswerDone:
    """What is answered from documents of these texts, the first of them found first."""
    numbers = DocumentNumbers()
    sections = [_section(f"doc{at}", text, link) for at, text in enumerate(texts)]
    result = SearchResult(
        sections=tuple(sections),
        docs=tuple(
            SearchDoc.from_section(one, numbers.assign(one.document_id)) for one in sections
        ),
        for_model="",
        note="",
        citations={},
        partial=False,
    )

    def search(_: SearchRequest) -> Iterator[SearchEvent]:
        yield SearchDone(result)

    parts = ExtractiveDependencies(
        search=search,
        prepare=lambda request: request,
        numbers=numbers,
        embedder=HashingEmbedder(),
        understanding=LanguageSupport({"English": 0.0}),
        budgets=Budgets.for_window(32_000),
    )
    turn = ChatTurn(
        message=question,
        readers=Readers.of(),
        deadline=Deadline.after(30),
        person_id=NOBODY,
        history=history,
    )
    *_, done = answer_from_sentences(turn, parts, ChatStateContainer())
    assert isinstance(done, AnswerDone)
    return done


def _section(document_id: str, text: str, link: str) -> InferenceSection:
    one = replace(chunk(document_id, 0, text), link=link)
    best = Hit(one, 1.0, Evidence(cosine=0.5), ())
    return InferenceSection((one,), best, (best,))


def test_markdown_of_a_document_is_text_in_an_answer() -> None:
    done = answer_to("How much does the dock cost in euros?", [PLANTED, FILLER])
    assert done.plain == PLANTED
    shown = html.fragment_fromstring(
        answer_html(AnswerResponse.from_answer("?", done, 0.1)), create_parent="div"
    )
    (chip,) = shown.iter("a", "img")
    assert (chip.get("class"), chip.text) == ("cite", "1")
    assert PLANTED in shown.text_content()


@pytest.mark.parametrize(
    ("link", "safe", "marker"),
    [
        ("https://w/a b", "https://w/a%20b", "[[1]](https://w/a%20b)"),
        ("javascript:alert(1)", "", "[1]"),
    ],
)
def test_the_link_of_a_citation_is_safe_wherever_it_stands(
    link: str, safe: str, marker: str
) -> None:
    done = answer_to(
        "How much does the dock cost in euros?", ["The dock costs 40 euros.", FILLER], link
    )
    (citation,) = AnswerResponse.from_answer("?", done, 0.1).citations
    assert citation.link == safe
    assert done.text == f"The dock costs 40 euros. {marker}"


@pytest.mark.parametrize(
    ("message", "searched", "lost"),
    [
        ("and in 2024?", "What did the dock in the lobby cost in 2024?", []),
        ("Dock", "Dock", []),
        ("Who wrote the second one?", None, ["follow_up"]),
    ],
)
def test_a_follow_up_is_searched_as_what_it_means(
    message: str, searched: str | None, lost: list[str]
) -> None:
    asked = "What did the dock in the lobby cost in 2023?"
    requests: list[SearchRequest] = []

    def search(request: SearchRequest) -> Iterator[SearchEvent]:
        requests.append(request)
        yield SearchDone(
            SearchResult(sections=(), docs=(), for_model="", note="", citations={}, partial=False)
        )

    parts = ExtractiveDependencies(
        search=search,
        prepare=lambda request: request,
        numbers=DocumentNumbers(),
        embedder=HashingEmbedder(),
        understanding=LanguageSupport({"English": 0.0}),
        budgets=Budgets.for_window(32_000),
    )
    turn = ChatTurn(
        message=message,
        readers=Readers.of(),
        deadline=Deadline.after(30),
        person_id=NOBODY,
        history=(ChatMessage("user", asked), ChatMessage("assistant", "40 euros.")),
    )
    events = list(answer_from_sentences(turn, parts, ChatStateContainer()))
    (request,) = requests
    assert request.message == (searched or f"{asked} {message}")
    assert bool(request.history) is (request.message == message)
    assert [one.step for one in events if isinstance(one, StepFailed)] == lost


DOCK = "What does the dock of the lobby cost in euros?"
DOCK_COSTS = "The dock of the lobby costs 40 euros."
CABLE_COSTS = "The cable of the lobby costs 4 euros."
PARROTS = "Parrots may be kept in the lobby."


@pytest.mark.parametrize(
    ("message", "answered", "shown"),
    [
        # The 40 euros of the dock are no answer.
        ("And the parrots?", "", "doc2"),
        ("And a bicycle?", "", "doc0"),
        ("And euros of bicycles and unicorns?", "", "doc0"),
        ("And the cable of the lobby?", CABLE_COSTS, "doc1"),
    ],
)
def test_only_what_speaks_of_the_subject_of_a_follow_up_answers(
    message: str, answered: str, shown: str
) -> None:
    asked = (ChatMessage("user", DOCK), ChatMessage("assistant", DOCK_COSTS))
    texts = [DOCK_COSTS, CABLE_COSTS, PARROTS, FILLER]
    done = answer_to(message, texts, history=asked)
    assert done.answered is bool(answered)
    assert answered in done.text
    assert DOCK_COSTS not in done.text
    assert done.passages[0].document_id == shown


@pytest.mark.parametrize(("asked", "written"), [("E2208", "E-2208"), ("E-2208", "E2208")])
def test_a_code_of_a_follow_up_may_be_spelled_otherwise_than_in_the_documents(
    asked: str, written: str
) -> None:
    texts = [
        "Error E-2207 means an open cover.",
        f"Error {written} means an empty battery.",
        FILLER,
    ]
    before = (
        ChatMessage("user", "What does error E-2207 mean?"),
        ChatMessage("assistant", "Open."),
    )
    done = answer_to(f"And {asked}?", texts, history=before)
    assert texts[1] in done.text


@pytest.fixture
def web() -> Iterator[OpenWeb]:
    with open_web(FOUND) as opened:
        yield opened


def _answer_with(
    web: OpenWeb | None,
    search: Search,
    deadline: Deadline,
    why: PassagesReason = PassagesReason.NO_MODEL,
    message: str = "Danish leave law",
    history: tuple[ChatMessage, ...] = (),
) -> Iterator[ChatEvent]:
    parts = ExtractiveDependencies(
        search=search,
        prepare=lambda request: request,
        numbers=DocumentNumbers(),
        embedder=HashingEmbedder(),
        understanding=LanguageSupport({"English": 0.0}),
        budgets=Budgets.for_window(32_000),
        web=web.session() if web else None,
        reason=why,
    )
    turn = ChatTurn(
        message=message,
        history=history,
        readers=Readers.of(),
        deadline=deadline,
        person_id=NOBODY,
        mode=ChatMode(BOTH_SIDES if web else frozenset({Side.KNOWLEDGE})),
    )
    return answer_from_sentences(turn, parts, ChatStateContainer())


def _fail(_: SearchRequest) -> Iterator[SearchEvent]:
    raise TemporarilyUnavailableError("The index does not answer.", timedelta(seconds=1))


def test_a_search_that_fails_leaves_what_the_web_says(web: OpenWeb) -> None:
    *events, done = _answer_with(web, _fail, Deadline.after(20))
    assert StepFailed("knowledge", "The index does not answer.") in events
    assert isinstance(done, AnswerDone)
    assert [one.link for one in done.documents] == [DENMARK]
    # The text is kept: it is read when a model may be set.
    assert done.text == "No language model was set. What was found on the web is listed."
    assert done.passages_reason is PassagesReason.WEB_ALONE
    assert isinstance(list(_answer_with(None, _fail, Deadline.after(20)))[-1], TurnFailed)


def test_where_a_budget_is_used_up_nothing_says_that_no_model_is_set(web: OpenWeb) -> None:
    why = PassagesReason.GROUP_BUDGET_USED
    *_, done = _answer_with(web, _fail, Deadline.after(20), why)
    assert isinstance(done, AnswerDone)
    assert (done.passages_reason, done.text) == (why, "What was found on the web is listed.")
    assert "No language model" not in f"{done.text} {done.plain}"


def test_the_web_is_asked_what_a_follow_up_means(web: OpenWeb) -> None:
    asked = (ChatMessage("user", "What does Danish law say of leave?"),)
    [*_] = _answer_with(web, _fail, Deadline.after(20), message="And in Norway?", history=asked)
    assert web.queries == [f"{asked[0].text} in Norway?"]


def test_an_answer_that_is_closed_ends_its_search_of_the_web(web: OpenWeb) -> None:
    ended: list[Deadline] = []

    def search(request: SearchRequest) -> Iterator[SearchEvent]:
        ended.append(request.deadline)
        yield StepFailed("selection", "It failed.")
        raise AssertionError("nobody reads on")

    events = _answer_with(web, search, Deadline.after(20))
    next(events)
    [deadline] = ended
    assert deadline.remaining()
    events.close()  # type: ignore[attr-defined]
    assert not deadline.remaining()
