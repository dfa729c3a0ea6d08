"""Words that are read as filters: under the rights of the asker, first in the ranking, and never in the way."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from backend.search.inferred_filters import FilterInference, NameLookup, infer_filters
from backend.search.models import EVERY_KIND, FilterKind, SearchRequest
from backend.search.query_syntax import parse_query
from backend.search.visible_names import KEPT_SECONDS, VisibleNames, VisibleNamesCache
from connectors.access import Readers
from connectors.errors import TemporarilyUnavailableError
from connectors.extraction.registry import MARKDOWN, PDF
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.index.protocols import DateRange, Facets, Filters
from indexing.local import LocalIndex, open_index
from indexing.runtime.deadline import Deadline
from tests.support.inferred_filters import (
    CORPUS,
    FINANCE,
    READ_BY_ALL,
    READ_BY_FINANCE,
    TODAY,
    ReadQuery,
    ask,
    check_hidden,
    check_hidden_dates,
    check_preferred,
    found,
    read,
)
from tests.support.search import MemoryIndex, write_local_index
from tests.support.search import request as request_of


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalIndex]:
    folder: Path = tmp_path_factory.mktemp("index")
    write_local_index(folder, CORPUS)
    with open_index(folder, HashingEmbedder().identity) as opened:
        yield opened


@pytest.mark.parametrize("one", READ_BY_ALL, ids=str)
def test_what_passes_the_filter_stands_first_and_nothing_is_lost(
    index: LocalIndex, one: ReadQuery
) -> None:
    check_preferred(index, one)


def test_several_filters_are_one_condition(index: LocalIndex) -> None:
    query = "travel policy PDF by Wilhelmina Okafor in January 2026"
    request, ranking = ask(index, query)
    assert [one.kind for one in request.inference.inferred] == ["type", "person", "date"]
    assert request.inference.topic == "travel policy"
    assert found(ranking)[0] == "scan"


def test_words_of_one_filter_end_where_those_of_another_begin(index: LocalIndex) -> None:
    found = read(index, "travel policy by Wilhelmina Okafor since 2025 in Slack")
    assert [words for _, words, _ in found] == ["by Wilhelmina Okafor", "since 2025", "in Slack"]


def test_where_nothing_close_passes_the_filter_it_is_dropped(index: LocalIndex) -> None:
    request, ranking = ask(index, "soup by Wilhelmina Okafor")
    assert request.inference.inferred
    assert ranking.inferred == ()
    assert found(ranking)[0] == "kitchen"
    # What was changed then holds half of the words that what was changed at another time holds.
    _, other = ask(index, "soup served in February 2026")
    assert other.inferred == ()


def test_what_names_the_time_counts_as_what_was_changed_then(index: LocalIndex) -> None:
    _, ranking = ask(index, "travel report in January 2026")
    assert found(ranking)[0] == "report"


@pytest.mark.parametrize(
    "query", ["mail from July 2024", "emails in July 2024", "e-mails July 2024"]
)
def test_mails_are_a_type_too(index: LocalIndex, query: str) -> None:
    _, ranking = ask(index, query)
    assert [one.kind for one in ranking.inferred] == [FilterKind.TYPE, FilterKind.DATE]
    assert found(ranking)[0] == "letter"


@pytest.mark.parametrize(
    "query", ["send mail to the yard", "mail merge", "how do I write an email"]
)
def test_a_task_with_mail_is_no_filter(index: LocalIndex, query: str) -> None:
    assert read(index, query) == []


def test_a_query_of_filters_alone_lists_what_passes_them(index: LocalIndex) -> None:
    request, ranking = ask(index, "documents by Wilhelmina Okafor")
    assert request.inference.topic == ""
    assert found(ranking)[0] == "scan"


@pytest.mark.parametrize("one", READ_BY_FINANCE, ids=str)
def test_a_name_that_the_asker_may_not_see_is_no_name(index: LocalIndex, one: ReadQuery) -> None:
    check_hidden(index, one)
    check_preferred(index, one, FINANCE)


def test_a_date_prefers_only_what_the_asker_may_read(index: LocalIndex) -> None:
    check_hidden_dates(index)


def test_of_several_sources_none_is_read(index: LocalIndex) -> None:
    assert read(index, "travel policy in wiki and in Slack") == []


@pytest.mark.parametrize(
    "query",
    [
        '"in Slack" travel',
        "travel source:team-chat in January",
        "how do I save a travel policy as PDF",
        "convert the travel policy to PDF",
        "what is a PDF",
        "travel policy on Slack channels",
        "travel by the board",
        "travel by Wilhelmina",
        "in Slack and in wiki",
    ],
)
def test_what_may_mean_something_else_is_not_interpreted(index: LocalIndex, query: str) -> None:
    kinds = {kind for kind, _, _ in read(index, query)}
    assert kinds <= {FilterKind.DATE}


def test_a_filter_that_was_chosen_wins_over_words(index: LocalIndex) -> None:
    chosen = Filters(
        sources=frozenset({"wiki"}), updated=DateRange(datetime(2020, 1, 15, tzinfo=UTC))
    )
    request, _ = ask(index, "travel policy in Slack in January 2026 PDF", filters=chosen)
    assert [one.kind for one in request.inference.inferred] == [FilterKind.TYPE]
    typed, _ = ask(index, "travel policy in Slack source:wiki after:2020")
    assert typed.inference.inferred == ()


def test_words_of_a_filter_are_not_corrected(index: LocalIndex) -> None:
    request, _ = ask(index, "travle policy by Wilhelmina Okafor")
    assert request.corrected == "travel policy by Wilhelmina Okafor"
    assert request.inference.topic == "travel policy"


def test_long_texts_hold_no_filters(index: LocalIndex) -> None:
    assert read(index, f"{'travel policy ' * 60}in Slack") == []


ONE_OF_EACH = Facets(sources={"a": 1, "b": 1}, media_types={}, people={}, months={})


@dataclass(frozen=True)
class CountedIndex(MemoryIndex):
    """Notes who asks for facets, and may fail to count them."""

    askers: list[Readers] = field(default_factory=list)
    error: Exception | None = None

    def facets(self, filters: Filters, readers: Readers, deadline: Deadline) -> Facets:
        deadline.check()
        assert filters == Filters()
        self.askers.append(readers)
        if self.error:
            raise self.error
        return ONE_OF_EACH


def test_names_are_kept_for_a_while_for_each_asker() -> None:
    index, now = CountedIndex(()), [0.0]
    names = VisibleNamesCache(index, clock=lambda: now[0])
    finance, soon = Readers.of("group:finance"), Deadline.after(30)
    for asker in (Readers.of(), Readers.of(), finance, finance):
        names.get(asker, soon)
    assert index.askers == [Readers.of(), finance]
    now[0] = KEPT_SECONDS - 1
    names.get(finance, soon)
    assert len(index.askers) == 2
    now[0] = KEPT_SECONDS
    names.get(finance, soon)
    assert index.askers == [Readers.of(), finance, finance]


def test_only_words_for_a_name_cause_a_look_up_and_one_that_fails_costs_the_filter() -> None:
    away = TemporarilyUnavailableError("The index is away.", timedelta(seconds=1))
    index = CountedIndex((), error=away)
    inference = FilterInference(
        names=VisibleNamesCache(index), source_kinds=dict, today=lambda: TODAY
    )

    def infer(message: str) -> SearchRequest:
        return inference.infer_from_message(request_of(message))

    assert infer("how much was paid last week").inference.inferred
    assert index.askers == []
    assert infer("soup in b").inference.inferred == ()
    assert len(index.askers) == 1


VISIBLE = VisibleNames(
    9, {"slack": 3, "wiki": 6}, {PDF: 2, MARKDOWN: 7}, {"ann lee": frozenset({"ann lee"})}
)


@example("IM source:0 2000")
@given(
    st.one_of(
        st.text(),
        st.lists(
            st.sampled_from(
                [
                    '"',
                    "in",
                    "Slack",
                    "by",
                    "Ann",
                    "Lee",
                    "PDF",
                    "last",
                    "week",
                    "since",
                    "2024",
                    "source:x",
                    "の",
                    "\xa0",
                ]
            )
        ).map(" ".join),
    )
)
def test_any_text_is_read_and_spans_stand_in_it_side_by_side(text: str) -> None:
    parsed = parse_query(text)
    lookup = NameLookup(lambda: VISIBLE, dict)
    inference = infer_filters(parsed, EVERY_KIND, lookup, TODAY)
    end = 0
    for one in inference.inferred:
        assert end <= one.span.start < one.span.end <= len(parsed.query)
        assert one.words == one.span.of(parsed.query)
        assert one.filters != Filters()
        end = one.span.end
