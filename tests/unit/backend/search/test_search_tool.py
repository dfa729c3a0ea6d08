"""A search as a whole: its events, their order, and what failures cost."""

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from backend.search.events import (
    FiltersApplied,
    FirstResults,
    FusedResults,
    Queries,
    SearchDone,
    SearchEvent,
    SectionsSelected,
    StepFailed,
)
from backend.search.llm_protocol import ChatMessage, Complete
from backend.search.models import Budgets, DocumentNumbers, SearchRequest, SearchResult
from backend.search.prompts import INCOMPLETE, NOTHING_FOUND, NOTHING_RELEVANT
from backend.search.search_tool import SearchTool
from connectors.access import Access, Readers
from connectors.errors import TemporarilyUnavailableError
from indexing.chunking.chunk import Chunk, ChunkRange
from indexing.embedding.embedder import Embedder, EmbedderIdentity, Vectors
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.embedding.language_support import EVERYTHING, LanguageSupport
from indexing.embedding.token_counting import estimated_tokens
from indexing.index.protocols import Filters
from indexing.runtime.deadline import Deadline, DeadlineExceededError
from tests.support.search import (
    ENGLISH_ONLY,
    MemoryIndex,
    Reply,
    ScriptedModel,
    chunk,
    failing,
    hanging,
    request,
)

FINANCE = Access.to(["group:finance"])
CORPUS = (
    *(chunk("travel", n, f"Travel by bike pays {n} cents per kilometre.") for n in range(6)),
    chunk("laptops", 0, "A laptop is ordered by the service desk.", source="handbook"),
    chunk("laptops", 1, "A broken laptop shows error E-2207 at start.", source="handbook"),
    chunk("phones", 0, "A phone is ordered by the service desk as well."),
    chunk("badges", 0, "A badge is ordered by the service desk, not by phone."),
    chunk("keys", 0, "A key is in the order book of the desk."),
    chunk("desk", 0, "The service desk is open from eight to six."),
    chunk("trains", 0, "Much is paid for trains."),
    chunk("hotels", 0, "A hotel is paid per night."),
    chunk("meals", 0, "Meals are paid per day."),
    chunk("salaries", 0, "The travel budget of the board, per bike and kilometre.", FINANCE),
    chunk("salaries", 1, "The laptop budget of the board.", FINANCE),
    chunk("japan", 0, "自転車での出張は一キロ四十二円です。"),
)
TRAVEL = "How much is paid per kilometre by bike?"
DESK = "service desk laptop phone order"


@dataclass(frozen=True)
class NotingEmbedder:
    """Notes what it embeds; may fail first."""

    before: Callable[[], None] = lambda: None
    embedded: list[Sequence[str]] = field(default_factory=list)
    max_tokens: int = 256
    inner: HashingEmbedder = field(default_factory=HashingEmbedder)

    @property
    def identity(self) -> EmbedderIdentity:
        return self.inner.identity

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return self.inner.count_tokens(texts)

    def token_ends(self, text: str) -> Sequence[int]:
        return self.inner.token_ends(text)

    def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> Vectors:
        self.embedded.append(texts)
        self.before()
        return self.inner.embed_queries(texts, deadline)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        return self.inner.embed_passages(texts)


def tool(
    complete: Complete | None = None,
    index: MemoryIndex | None = None,
    embedder: Embedder | None = None,
    understanding: LanguageSupport = EVERYTHING,
    numbers: DocumentNumbers | None = None,
) -> SearchTool:
    return SearchTool(
        index=index or MemoryIndex(CORPUS),
        embedder=embedder or NotingEmbedder(),
        understanding=understanding,
        count_tokens=estimated_tokens,
        complete=complete,
        numbers=numbers or DocumentNumbers(),
    )


def result(events: Sequence[SearchEvent]) -> SearchResult:
    done = events[-1]
    assert isinstance(done, SearchDone)
    return done.result


def lost(events: Sequence[SearchEvent]) -> list[str]:
    return [event.step for event in events if isinstance(event, StepFailed)]


def documents(found: SearchResult) -> list[str]:
    return [doc.document_id for doc in found.docs]


def kinds(events: Sequence[SearchEvent]) -> list[type[SearchEvent]]:
    return [type(event) for event in events]


def naming(*entries: tuple[int, str]) -> str:
    return json.dumps({"sections": [{"id": number, "read": read} for number, read in entries]})


def test_without_a_model_all_is_one_embedding_and_one_find() -> None:
    index, embedder = MemoryIndex(CORPUS), NotingEmbedder()
    events = list(tool(index=index, embedder=embedder).run(request(TRAVEL)))
    assert kinds(events) == [Queries, FirstResults, FusedResults, SectionsSelected, SearchDone]
    assert embedder.embedded == [[TRAVEL]]
    ((queries, _),) = index.finds
    assert queries[0].vector is queries[1].vector
    assert [(query.text, query.alpha, query.size) for query in queries] == [
        (TRAVEL, 0.5, 50),
        ("much paid per kilometre bike", 0.5, 50),
    ]
    assert documents(result(events))[0] == "travel"


def test_the_result_is_one_numbering_for_model_and_people() -> None:
    found = result(list(tool().run(request(DESK))))
    shown = json.loads(found.for_model)["results"]
    assert [one["document"] for one in shown] == [doc.number for doc in found.docs]
    assert [found.citations[one["document"]] for one in shown] == documents(found)
    assert [section.document_id for section in found.sections] == documents(found)
    assert [one["content"] for one in shown] == [doc.content for doc in found.docs]


def test_first_results_are_reported_before_any_call_to_the_model_has_returned() -> None:
    released = threading.Event()
    returned: list[str] = []

    def patient(said: str) -> Reply:
        def reply(_messages: Sequence[ChatMessage], _deadline: Deadline) -> str:
            assert released.wait(30)
            returned.append(said)
            return said

        return reply

    model = ScriptedModel(rephrase=patient("kilometre pay"), keywords=patient("bike cents"))
    index = MemoryIndex(CORPUS)
    events: list[SearchEvent] = []
    for event in tool(model, index).run(request(TRAVEL)):
        events.append(event)
        if isinstance(event, FirstResults):
            assert returned == []
            assert len(index.finds) == 1
            released.set()
    assert kinds(events)[:4] == [Queries, FirstResults, Queries, FusedResults]
    assert sorted(returned) == ["bike cents", "kilometre pay"]


def test_both_calls_to_the_model_run_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=30)

    def meet(_messages: Sequence[ChatMessage], _deadline: Deadline) -> str:
        both.wait()
        return "bike"

    events = list(tool(ScriptedModel(rephrase=meet, keywords=meet)).run(request(TRAVEL)))
    assert lost(events) == []


def test_what_the_model_adds_is_searched_in_one_more_find() -> None:
    index, embedder = MemoryIndex(CORPUS), NotingEmbedder()
    model = ScriptedModel(rephrase="bike mileage", keywords="bike\ncents\nkilometre\nfourth")
    events = list(tool(model, index, embedder).run(request(TRAVEL, model_queries=["cents"])))
    assert [[query.text for query in queries] for queries, _ in index.finds] == [
        [TRAVEL, "cents"],
        ["bike mileage", "bike", "cents", "kilometre"],
    ]
    assert [query.alpha for query in index.finds[1][0]] == [0.5, 0.2, 0.2, 0.2]
    assert len(embedder.embedded) == 2
    reported = [event for event in events if isinstance(event, Queries)]
    assert [(one.name, one.weight) for one in reported[-1].variants] == [
        ("original", 2.0),
        ("llm", 1.5),
        ("semantic", 1.75),
        *[("keyword", 1.25)] * 3,
    ]


def test_a_rephrasing_that_repeats_the_message_adds_its_weight_and_no_search() -> None:
    index = MemoryIndex(CORPUS)
    model = ScriptedModel(rephrase=TRAVEL.upper(), keywords=failing())
    events = list(tool(model, index).run(request(TRAVEL)))
    queries = [event for event in events if isinstance(event, Queries)]
    assert [(one.text, one.weight) for one in queries[-1].variants] == [(TRAVEL, 3.75)]
    assert len(index.finds) == 1
    fused = next(event for event in events if isinstance(event, FusedResults))
    assert fused.sections[0].best.score == pytest.approx(3.75 / 51)


def test_late_variants_count_in_the_fused_results() -> None:
    model = ScriptedModel(rephrase=DESK, keywords=DESK)
    events = list(tool(model).run(request("xyzzy plugh")))
    fused = next(event for event in events if isinstance(event, FusedResults))
    reasons = {(why.variant, why.leg) for why in fused.sections[0].best.why}
    assert reasons >= {("semantic", "keyword"), ("keyword", "keyword")}


@pytest.mark.parametrize("silent", ["", "<think>hm</think>\n"])
def test_a_silent_model_costs_its_variants_only(silent: str) -> None:
    events = list(tool(ScriptedModel(silent, silent, failing())).run(request(TRAVEL)))
    assert lost(events) == ["semantic_query_rephrase", "keyword_query_expansion", "selection"]
    assert documents(result(events))[0] == "travel"


def test_a_failing_model_costs_its_variants_and_the_choice() -> None:
    events = list(tool(failing()).run(request(DESK)))
    assert lost(events) == ["semantic_query_rephrase", "keyword_query_expansion", "selection"]
    found = result(events)
    assert documents(found)[0] == "laptops"
    fused = next(event for event in events if isinstance(event, FusedResults))
    assert found.sections == fused.sections  # best by score, as they were found


@pytest.mark.parametrize(
    ("message", "unclear"),
    [("And at what price?", []), ("Who wrote the second one?", ["follow_up"])],
)
def test_where_no_model_rephrases_a_follow_up_a_rule_does(message: str, unclear: list[str]) -> None:
    asked = ChatMessage("user", TRAVEL)
    events = list(tool(failing()).run(request(message, history=[asked])))
    queries = [event for event in events if isinstance(event, Queries)]
    assert queries[-1].variants[1].text.startswith(f"{TRAVEL} ")
    calls = ["semantic_query_rephrase", *unclear, "keyword_query_expansion"]
    assert lost(events)[: len(calls)] == calls


def test_a_hanging_model_costs_a_share_of_the_time() -> None:
    released = threading.Event()
    began = time.monotonic()
    events = list(tool(hanging(released)).run(request(DESK, seconds=4)))
    assert time.monotonic() - began < 4
    assert lost(events) == ["semantic_query_rephrase", "keyword_query_expansion", "selection"]
    assert documents(result(events))[0] == "laptops"
    released.set()


def test_one_variant_of_two_may_fail() -> None:
    events = list(tool(ScriptedModel(rephrase=failing(), keywords="bike")).run(request(TRAVEL)))
    assert lost(events) == ["semantic_query_rephrase"]
    queries = [event for event in events if isinstance(event, Queries)]
    assert [one.name for one in queries[-1].variants] == ["original", "keyword"]


def test_the_model_is_given_seconds_not_the_whole_time() -> None:
    given: list[float] = []

    def note(_messages: Sequence[ChatMessage], deadline: Deadline) -> str:
        given.append(deadline.remaining())
        return "bike"

    list(tool(ScriptedModel(rephrase=note, keywords=note)).run(request(TRAVEL, seconds=600)))
    list(tool(ScriptedModel(rephrase=note, keywords=note)).run(request(TRAVEL, seconds=10)))
    assert all(2 < seconds <= 4 for seconds in given[:2])
    assert all(1 < seconds <= 3 for seconds in given[2:])  # three tenths of ten


@pytest.mark.parametrize(
    "said",
    ["", "the first", '{"sections": [{"id": 99}]}', '{"sections": [{"id": 0, "re', "[[[[", "null"],
)
def test_a_choice_that_cannot_be_read_leaves_the_best_as_they_are(said: str) -> None:
    events = list(tool(ScriptedModel(select=said)).run(request(DESK)))
    assert lost(events) == ["selection"]
    fused = next(event for event in events if isinstance(event, FusedResults))
    assert result(events).sections == fused.sections


def test_the_choice_of_the_model_is_read() -> None:
    model = ScriptedModel(rephrase=DESK, keywords=DESK, select=naming((2, "as_is"), (1, "wide")))
    events = list(tool(model).run(request(DESK)))
    fused = next(event for event in events if isinstance(event, FusedResults))
    chosen = [fused.sections[2].document_id, fused.sections[1].document_id]
    assert documents(result(events)) == chosen
    selected = next(event for event in events if isinstance(event, SectionsSelected))
    assert [section.document_id for section in selected.sections] == chosen


def test_not_relevant_means_gone_and_the_model_is_informed() -> None:
    found = result(list(tool(ScriptedModel(select=naming())).run(request(DESK))))
    assert found.sections == ()
    assert json.loads(found.for_model) == {"results": [], "note": NOTHING_RELEVANT}


def test_an_exact_match_stays_although_the_model_drops_it() -> None:
    asked = request("What is E-2207 at the service desk for a phone by bike?")
    found = result(list(tool(ScriptedModel(select=naming((3, "as_is")))).run(asked)))
    assert documents(found)[0] == "laptops"
    assert "E-2207" in found.docs[0].content
    assert len(found.docs) == 2


def test_with_three_sections_nothing_is_chosen() -> None:
    index = MemoryIndex(tuple(one for one in CORPUS if one.document_id in {"travel", "trains"}))
    model = ScriptedModel(rephrase="bike", keywords="bike")
    found = result(list(tool(model, index).run(request(TRAVEL))))
    assert "select" not in model.asked
    assert "travel" in documents(found)


def test_the_best_sections_are_read_with_their_neighbors() -> None:
    prose = ("rivers", "lakes", "mountains", "the mileage rate is 42 cents", "seas", "woods")
    index = MemoryIndex(tuple(chunk("tour", n, text) for n, text in enumerate(prose)))
    found = result(
        list(
            tool(index=index, embedder=NotingEmbedder(max_tokens=512)).run(
                request("mileage rate", seconds=30)
            )
        )
    )
    assert found.docs[0].content == "\n".join(prose[1:])  # two either way


def test_nothing_found_is_said() -> None:
    found = result(list(tool(index=MemoryIndex(())).run(request("xyzzy"))))
    assert found.docs == ()
    assert json.loads(found.for_model)["note"] == NOTHING_FOUND


def test_a_blank_message_finds_nothing() -> None:
    index = MemoryIndex(CORPUS)
    assert result(list(tool(ScriptedModel(), index).run(request("  ")))).docs == ()
    assert index.finds == []


def test_only_what_the_asker_may_read_is_ever_reported() -> None:
    index = MemoryIndex(CORPUS)
    asked = request("travel budget of the board per bike and kilometre laptop")
    events = list(tool(ScriptedModel(select=naming((0, "wide"))), index).run(asked))
    assert "salaries" not in repr(events)
    assert {readers for _, readers in index.finds + index.reads} == {asked.readers}
    finance = request(asked.message, readers=Readers.of("group:finance"))
    assert documents(result(list(tool().run(finance))))[0] == "salaries"


def test_access_that_ends_between_finding_and_reading_is_respected() -> None:
    index = MemoryIndex(CORPUS)
    closed = MemoryIndex(tuple(chunk(*one.key, one.text, FINANCE) for one in CORPUS))

    @dataclass(frozen=True)
    class Closing(MemoryIndex):
        def chunks(
            self, ranges: Sequence[ChunkRange], readers: Readers, deadline: Deadline
        ) -> list[list[Chunk]]:
            return closed.chunks(ranges, readers, deadline)

    found = result(list(tool(index=Closing(index.corpus)).run(request(TRAVEL))))
    assert found.docs == ()
    assert "travel" not in found.for_model.lower()


def test_a_second_search_of_the_turn_keeps_the_numbers() -> None:
    model = ScriptedModel(rephrase=failing(), keywords=failing(), select=failing())
    searching = tool(model)
    first = result(list(searching.run(request(DESK))))
    second = result(list(searching.run(request(DESK, model_queries=["bike", "kilometre"]))))
    for number, document_id in first.citations.items():
        assert second.citations.get(number, document_id) == document_id
    assert set(second.citations) > set(first.citations)
    assert len(set(second.citations.values())) == len(second.citations)


def test_the_model_is_asked_for_variants_once_a_turn() -> None:
    model = ScriptedModel()
    searching = tool(model)
    list(searching.run(request(TRAVEL)))
    model.asked.clear()
    events = list(searching.run(request(TRAVEL, model_queries=["bike"])))
    assert set(model.asked) == {"select"}
    queries = [event for event in events if isinstance(event, Queries)]
    assert [[one.name for one in event.variants] for event in queries] == [["original", "llm"]]


def failing_embedder(failure: Exception) -> NotingEmbedder:
    def fail() -> None:
        raise failure

    return NotingEmbedder(fail)


@pytest.mark.parametrize(
    "failure",
    [
        TemporarilyUnavailableError("the endpoint is away", timedelta(seconds=5)),
        DeadlineExceededError("late"),
    ],
)
def test_an_embedder_that_fails_leaves_the_words(failure: Exception) -> None:
    index = MemoryIndex(CORPUS)
    events = list(tool(index=index, embedder=failing_embedder(failure)).run(request(TRAVEL)))
    assert lost(events) == ["embedding"]
    assert {(query.alpha, query.vector) for query in index.finds[0][0]} == {(0.0, None)}
    assert documents(result(events))[0] == "travel"


def test_what_the_embedder_does_not_understand_gets_no_vote() -> None:
    index, embedder = MemoryIndex(CORPUS), NotingEmbedder()
    searching = tool(index=index, embedder=embedder, understanding=ENGLISH_ONLY)
    found = result(list(searching.run(request("自転車の出張", model_queries=["bike"]))))
    assert embedder.embedded == [["bike"]]
    alphas = {query.text: query.alpha for query in index.finds[0][0]}
    assert alphas["自転車の出張"] == 0.0
    assert alphas["bike"] == 0.5
    assert "japan" in documents(found)


def test_a_partial_answer_of_the_index_is_reported() -> None:
    found = result(list(tool(index=MemoryIndex(CORPUS, partial=True)).run(request(TRAVEL))))
    assert found.partial
    assert json.loads(found.for_model)["note"] == INCOMPLETE


def raising_at(call: int) -> Callable[[int], None]:
    def before(number: int) -> None:
        if number == call:
            raise TemporarilyUnavailableError("the index is away", timedelta(seconds=5))

    return before


def test_an_index_that_does_not_answer_ends_the_search() -> None:
    with pytest.raises(TemporarilyUnavailableError):
        list(tool(index=MemoryIndex(CORPUS, before_find=raising_at(0))).run(request(TRAVEL)))


def test_a_second_find_that_fails_costs_what_it_would_have_added() -> None:
    index = MemoryIndex(CORPUS, before_find=raising_at(1))
    model = ScriptedModel(rephrase="bike", keywords="cents", select=naming((0, "as_is")))
    events = list(tool(model, index).run(request(TRAVEL)))
    assert lost(events) == ["late_retrieval"]
    assert documents(result(events)) == ["travel"]


def test_neighbors_that_cannot_be_had_leave_sections_as_they_were_found() -> None:
    def away() -> None:
        raise DeadlineExceededError("late")

    events = list(tool(index=MemoryIndex(CORPUS, before_chunks=away)).run(request(DESK)))
    assert lost(events) == ["expansion"]
    assert documents(result(events))[0] == "laptops"


def test_a_time_that_is_up_is_said() -> None:
    with pytest.raises(DeadlineExceededError):
        list(tool().run(request(TRAVEL, seconds=-1)))


def test_exact_terms_of_the_message_go_with_every_query() -> None:
    index = MemoryIndex(CORPUS)
    model = ScriptedModel(rephrase="error X-1111 of a laptop", keywords="X-1111")
    asked = request("What does E-2207 mean?", model_queries=["code Z-9999"])
    events = list(tool(model, index).run(asked))
    assert [query.exact for queries, _ in index.finds for query in queries] == [("E-2207",)] * 4
    fused = next(event for event in events if isinstance(event, FusedResults))
    assert fused.sections[0].best.chunk.key == ("laptops", 1)


def test_filters_hold_for_every_query_and_are_reported() -> None:
    index = MemoryIndex(CORPUS)
    asked = request(DESK, filters=Filters(sources=frozenset({"handbook"})))
    events = list(tool(ScriptedModel(), index).run(asked))
    assert FiltersApplied(asked.filters) in events
    assert all(query.filters == asked.filters for queries, _ in index.finds for query in queries)
    assert {doc.source for doc in result(events).docs} <= {"handbook"}


@pytest.mark.parametrize("budget", [20, 60, 150, 400, 1_000])
def test_the_text_for_the_model_stays_within_its_budget(budget: int) -> None:
    asked: SearchRequest = request(DESK, budgets=Budgets(selection=2_000, answer=budget))
    found = result(list(tool().run(asked)))
    assert estimated_tokens(found.for_model) <= budget


def test_the_ranking_alone_is_the_one_that_a_search_goes_on_with() -> None:
    events = list(tool().run(request(DESK)))
    fused = next(event for event in events if isinstance(event, FusedResults))
    ranking = tool().rank(request(DESK)).hits
    assert {one.chunk.key for one in ranking} == {
        one.chunk.key for section in fused.sections for one in section.hits
    }
    bests = [section.best.chunk.key for section in fused.sections]
    assert [one.chunk.key for one in ranking if one.chunk.key in bests] == bests


def test_more_hits_a_variant_may_be_asked_for() -> None:
    index = MemoryIndex(CORPUS)
    tool(index=index).rank(request(DESK), hits=200)
    assert {query.size for query in index.finds[0][0]} == {200}


def test_exact_terms_are_of_the_users_words_only() -> None:
    index = MemoryIndex(CORPUS)
    message = 'Where does "grace period" apply to E-2207?'
    tool(index=index).rank(request(message, model_queries=["code X-999"]))
    assert {query.exact for query in index.finds[0][0]} == {("grace period", "E-2207")}
