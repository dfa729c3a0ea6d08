"""The whole path of a search: from a message to the sections that the asker may read, as events."""

import itertools
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from backend.search.document_versions import (
    asks_about_the_past,
    find_successors,
    place_after_successors,
    years_in,
)
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
from backend.search.follow_ups import FOLLOW_UP, resolve_follow_up
from backend.search.futures import PendingCompletion, run_in_background
from backend.search.llm_protocol import Complete, CompletionError
from backend.search.models import (
    DocumentNumbers,
    InferenceSection,
    InferredFilter,
    SearchDoc,
    SearchRequest,
    SearchResult,
    Successor,
    VariantQuery,
)
from backend.search.preferred_hits import PreferredHits, place_matching_first
from backend.search.prompts import INCOMPLETE, NOTHING_FOUND, NOTHING_RELEVANT, superseded
from backend.search.retrieval import (
    HITS_PER_VARIANT,
    LLM_SEMANTIC_QUERY_WEIGHT,
    RetrievalOptions,
    RetrievalResult,
    Retriever,
    VariantRanking,
    deduplicate_queries,
    keyword_query_expansion,
    merge_individual_chunks,
    model_variants,
    narrow_variants,
    normalize_query,
    query_key,
    semantic_query_rephrase,
    variants_of_request,
    variants_without_model,
    weighted_reciprocal_rank_fusion,
)
from backend.search.sections import (
    ContextSize,
    SelectedSection,
    expand_section_with_context,
    fit_answer_budget,
    merge_overlapping_sections,
    select_best,
)
from backend.search.selection import (
    FEW_SECTIONS,
    select_sections_for_expansion,
    trim_sections_by_tokens,
)
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.embedding.embedder import Embedder
from indexing.embedding.language_support import LanguageSupport
from indexing.embedding.token_counting import CountTokens
from indexing.index.protocols import Filters, Hit, Index
from indexing.runtime.deadline import Deadline, DeadlineExceededError
from indexing.text.tokenizer import find_exact_terms

REPHRASE = "semantic_query_rephrase"
"""The step in which a model puts the message into words that need no history."""
VARIANT_SECONDS = 4.0
VARIANT_SHARE = 0.3
SELECTION_SECONDS = 15.0
SELECTION_SHARE = 0.5
"""The model is waited for so many seconds, or this share of the time left, whichever is less."""

_Variants: TypeAlias = tuple[VariantQuery, ...]
VariantCalls: TypeAlias = Mapping[str, PendingCompletion[_Variants]]
"""Calls to a model that write variants, by the names of their steps."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """What was found, before anything is left out."""

    hits: list[Hit]
    """Best first; what inferred filters accept before the rest."""
    sections: list[InferenceSection]
    """The same, consecutive chunks joined."""
    variants: _Variants
    """What was searched, the user's own message first."""
    partial: bool
    inferred: tuple[InferredFilter, ...] = ()
    """The filters that something found was preferred by."""
    unmatched: tuple[InferredFilter, ...] = ()
    """Filters that words were read as, where nothing close to the query passes them."""
    successors: Mapping[str, Successor] = field(default_factory=dict)
    """What replaces a document, by the id of the replaced one, where both were found."""

    @classmethod
    def fuse(cls, found: RetrievalResult, request: SearchRequest, variants: _Variants) -> "Ranking":
        """Fuse the variants; those that are narrowed to inferred filters say what stands first."""
        own = [one for one in found.rankings if one.variant.narrowing is None]
        narrowed = [one for one in found.rankings if one.variant.narrowing is not None]
        ranked = PreferredHits(weighted_reciprocal_rank_fusion(own))
        if narrowed:
            matching = weighted_reciprocal_rank_fusion(narrowed)
            ranked = place_matching_first(ranked.hits, matching, request.message, request.inference)
        sections = merge_individual_chunks(ranked.hits)
        successors = find_successors(sections) if len(sections) > 1 else {}
        if successors and not (asks_about_the_past(request.message) or years_in(request.message)):
            sections = place_after_successors(sections, successors)
        return cls(
            ranked.hits,
            sections,
            variants,
            found.partial,
            inferred=ranked.applied,
            unmatched=() if ranked.applied else request.inference.inferred,
            successors=successors,
        )

    @property
    def searched_variants(self) -> _Variants:
        """What was searched in everything."""
        return tuple(one for one in self.variants if one.narrowing is None)


@dataclass(frozen=True, slots=True)
class StartedSearch:
    """A search whose message was searched, while the model writes variants."""

    request: SearchRequest
    calls: VariantCalls
    options: RetrievalOptions
    found: RetrievalResult
    ranking: Ranking
    """Of what was found so far."""


class SearchTool:
    """All searches of a turn.

    The model is asked for variants of the user's message in the first search of the turn only: for
    later ones the chat model has read what was found and writes its own queries.
    """

    def __init__(
        self,
        *,
        index: Index,
        embedder: Embedder,
        understanding: LanguageSupport,
        count_tokens: CountTokens,
        complete: Complete | None,
        numbers: DocumentNumbers,
    ) -> None:
        self._index = index
        self._retriever = Retriever(index, embedder, understanding)
        self._chunk_tokens = embedder.max_tokens
        self._count_tokens = count_tokens
        self._complete = complete
        self._numbers = numbers
        self._searches = itertools.count()

    def run(self, request: SearchRequest) -> Iterator[SearchEvent]:
        """Search; the last event is SearchDone.

        A model that fails or is late costs only what it would have added, reported as StepFailed.

        Raises:
            DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError: the index did not answer; there is no result.
        """
        started = yield from self.start(request)
        yield from self.complete(started, request)

    def start(
        self,
        request: SearchRequest,
        hits: int = HITS_PER_VARIANT,
        calls: VariantCalls | None = None,
    ) -> Generator[SearchEvent, None, StartedSearch]:
        """Search what needs no call to the model, and start the calls that add variants.

        Args:
            calls: were started instead.

        Raises:
            DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError: the index did not answer.
        """
        if calls is None:
            calls = self._start_variant_calls(request)
        make = variants_of_request if self._complete else variants_without_model
        inference, own = request.inference, make(request)
        about = replace(request, message=inference.topic or request.message)
        variants = (*own, *(narrow_variants(make(about), inference) if inference.inferred else ()))
        options = RetrievalOptions(
            readers=request.readers,
            filters=request.filters,
            conditions=request.conditions,
            # Of the user's own words only: what a model writes need not be in any document.
            exact=find_exact_terms(request.message),
            deadline=request.deadline,
            hits=hits,
        )
        yield Queries(own)
        found = self._retriever.retrieve(variants, options)
        yield from found.failures
        ranking = Ranking.fuse(found, request, variants)
        if request.filters != Filters() or ranking.inferred:
            yield FiltersApplied(request.filters, ranking.inferred)
        yield FirstResults(tuple(ranking.sections))
        return StartedSearch(request, calls, options, found, ranking)

    def complete(
        self,
        started: StartedSearch,
        request: SearchRequest,
        planned: Sequence[VariantQuery] = (),
    ) -> Iterator[SearchEvent]:
        """Search what was added meanwhile, and select; the last event is SearchDone.

        Args:
            request: that of the start, to which queries of the chat model may have been added, with its own
                deadline and budgets.
            planned: variants that were written since the start.
        """
        ranking = yield from self._join_variants(started, request, planned)
        yield FusedResults(tuple(ranking.sections))
        selected = yield from self._select(ranking, request)
        yield SectionsSelected(tuple(one.section for one in selected))
        expanded = yield from self._expand(selected, request)
        yield SearchDone(self._result(merge_overlapping_sections(expanded), ranking, request))

    def rank(self, request: SearchRequest, hits: int = HITS_PER_VARIANT) -> Ranking:
        """Return the fused ranking of `hits` for each variant, as `run` has it before selection.

        Raises:
            DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError: the index did not answer.
        """
        return _run_to_end(self._rank(request, max(hits, HITS_PER_VARIANT)))

    def find_sections(self, request: SearchRequest, limit: int) -> list[SearchDoc]:
        """Return the best `limit` sections as they were found, for a person to read.

        Raises:
            DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError: the index did not answer.
        """
        ranking = self.rank(request, limit)
        return self._number(ranking.sections[:limit], ranking)

    def _rank(self, request: SearchRequest, hits: int) -> Generator[SearchEvent, None, Ranking]:
        started = yield from self.start(request, hits)
        return (yield from self._join_variants(started, request))

    def _join_variants(
        self,
        started: StartedSearch,
        request: SearchRequest,
        planned: Sequence[VariantQuery] = (),
    ) -> Generator[SearchEvent, None, Ranking]:
        joined = request.model_queries[len(started.request.model_queries) :]
        late = yield from _collect_variants(started)
        added = [*model_variants(joined), *planned, *late]
        if not added:
            return started.ranking
        narrowed = narrow_variants(added, started.request.inference)
        variants = deduplicate_queries([*started.ranking.variants, *added, *narrowed])
        yield Queries(tuple(one for one in variants if one.narrowing is None))
        options = replace(started.options, deadline=request.deadline)
        found = yield from self._retrieve_late(variants, started.found, options)
        return Ranking.fuse(found, started.request, variants)

    def _start_variant_calls(
        self, request: SearchRequest
    ) -> dict[str, PendingCompletion[_Variants]]:
        """Start both calls to the model; the keys are the names of the steps."""
        complete = self._complete
        if complete is None or next(self._searches) > 0 or not request.message.strip():
            return {}
        deadline = _limit(request.deadline, VARIANT_SECONDS, VARIANT_SHARE)
        return {
            REPHRASE: run_in_background(
                lambda: semantic_query_rephrase(request, complete, deadline), deadline
            ),
            **start_keyword_expansion(request, complete),
        }

    def _retrieve_late(
        self, variants: _Variants, first: RetrievalResult, options: RetrievalOptions
    ) -> Generator[SearchEvent, None, RetrievalResult]:
        """Return the rankings of all variants; only those not searched before are searched now."""
        hits = {query_key(ranking.variant): ranking.hits for ranking in first.rankings}
        new = [variant for variant in variants if query_key(variant) not in hits]
        second = RetrievalResult()
        try:
            second = self._retriever.retrieve(new, options)
        except (DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError) as error:
            yield StepFailed("late_retrieval", f"the model's variants were not searched: {error}")
        yield from second.failures
        hits |= {query_key(ranking.variant): ranking.hits for ranking in second.rankings}
        rankings = [
            VariantRanking(variant, hits[query_key(variant)])
            for variant in variants
            if query_key(variant) in hits
        ]
        return RetrievalResult(tuple(rankings), first.partial or second.partial)

    def _select(
        self, ranking: Ranking, request: SearchRequest
    ) -> Generator[SearchEvent, None, tuple[SelectedSection, ...]]:
        complete, sections = self._complete, ranking.sections
        if complete is None:
            return select_best(sections, ContextSize.ADJACENT)
        fitting = trim_sections_by_tokens(sections, request.budgets.selection, self._count_tokens)
        if len(fitting) <= FEW_SECTIONS:
            return select_best(fitting or sections, ContextSize.ADJACENT)
        deadline = _limit(request.deadline, SELECTION_SECONDS, SELECTION_SHARE)
        queries = [variant.text for variant in ranking.searched_variants]
        try:
            return run_in_background(
                lambda: select_sections_for_expansion(queries, fitting, complete, deadline),
                deadline,
            ).result()
        except CompletionError as error:
            yield StepFailed("selection", str(error))
            return select_best(fitting, ContextSize.AS_IS)

    def _expand(
        self, selected: Sequence[SelectedSection], request: SearchRequest
    ) -> Generator[SearchEvent, None, list[InferenceSection]]:
        try:
            return expand_section_with_context(
                selected, self._index, request.readers, request.deadline, self._chunk_tokens
            )
        except (DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError) as error:
            yield StepFailed("expansion", f"sections are shown as they were found: {error}")
            return [one.section for one in selected]

    def _result(
        self, sections: Sequence[InferenceSection], ranking: Ranking, request: SearchRequest
    ) -> SearchResult:
        note = _note_for_model(sections, ranking)
        fitted = fit_answer_budget(
            sections, request.budgets.answer, self._count_tokens, self._numbers, note
        )
        docs = self._number(fitted.sections, ranking)
        return SearchResult(
            sections=fitted.sections,
            docs=tuple(docs),
            for_model=fitted.text,
            note=note,
            citations={doc.number: doc.document_id for doc in docs},
            partial=ranking.partial,
        )

    def _number(self, sections: Sequence[InferenceSection], ranking: Ranking) -> list[SearchDoc]:
        return [
            SearchDoc.from_section(
                one, self._numbers.assign(one.document_id), ranking.successors.get(one.document_id)
            )
            for one in sections
        ]


def start_keyword_expansion(request: SearchRequest, complete: Complete | None) -> VariantCalls:
    """Let a model begin to write keyword variants; none where there is no model, or nothing to write them of."""
    if complete is None or not request.message.strip():
        return {}
    deadline = _limit(request.deadline, VARIANT_SECONDS, VARIANT_SHARE)
    pending = run_in_background(
        lambda: keyword_query_expansion(request, complete, deadline), deadline
    )
    return {"keyword_query_expansion": pending}


def _collect_variants(
    started: StartedSearch,
) -> Generator[SearchEvent, None, list[VariantQuery]]:
    """Return what the model has added by its deadline; where it has not rephrased a follow-up, a rule does."""
    late: list[VariantQuery] = []
    for step, pending in started.calls.items():
        try:
            late.extend(pending.result())
        except CompletionError as error:
            yield StepFailed(step, str(error))
            if step == REPHRASE:
                late += yield from _rephrase_by_rule(started.request)
    return late


def _rephrase_by_rule(
    request: SearchRequest,
) -> Generator[SearchEvent, None, list[VariantQuery]]:
    follow_up = resolve_follow_up(request.message, request.history)
    if follow_up.unclear:
        yield StepFailed(FOLLOW_UP, follow_up.unclear)
    if follow_up.question == request.message:
        return []
    question = normalize_query(follow_up.question)
    return [VariantQuery("semantic", question, LLM_SEMANTIC_QUERY_WEIGHT)]


def _limit(deadline: Deadline, seconds: float, share: float) -> Deadline:
    """Return a deadline in at most `seconds`, and at most that share of what is left."""
    return deadline.limited_to(min(seconds, deadline.remaining() * share))


def _note_for_model(sections: Sequence[InferenceSection], ranking: Ranking) -> str:
    notes = [INCOMPLETE] if ranking.partial else []
    if not sections:
        notes.insert(0, NOTHING_RELEVANT if ranking.hits else NOTHING_FOUND)
    titles = {one.document_id: one.best.chunk.title for one in sections}
    notes += [
        superseded(titles[old], new.title)
        for old, new in ranking.successors.items()
        if old in titles
    ]
    return " ".join(notes)


def follow_search(events: Iterator[SearchEvent]) -> Generator[SearchEvent, None, SearchResult]:
    """Pass on the events of a search and return its result."""
    for event in events:
        yield event
        if isinstance(event, SearchDone):
            return event.result
    raise ValueError("the search ended without SearchDone")


def _run_to_end(steps: Generator[SearchEvent, None, Ranking]) -> Ranking:
    """Run the steps without anyone reading their events."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            ranking: Ranking = end.value
            return ranking
