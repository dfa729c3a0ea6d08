"""From a question to the sections that the asker may read, told as it happens."""

import itertools
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from backend.search.budget import fit_answer_budget, trim_sections_by_tokens
from backend.search.events import (
    FirstResults,
    FusedResults,
    Narrowed,
    Queries,
    SearchDone,
    SearchEvent,
    Selected,
    VariantLost,
    VariantQuery,
)
from backend.search.expansion import expand_section_with_context
from backend.search.fusion import VariantRanking, weighted_reciprocal_rank_fusion
from backend.search.futures import Pending, in_background
from backend.search.llm_protocol import Complete, CompletionFailed
from backend.search.merging import merge_individual_chunks, merge_overlapping_sections
from backend.search.models import InferenceSection, RankedChunk, SearchResult
from backend.search.prompts import INCOMPLETE, NOTHING_FOUND, NOTHING_RELEVANT
from backend.search.request import SearchRequest
from backend.search.result_format import DocumentNumbers, search_doc
from backend.search.retrieval import HITS_PER_VARIANT, Retrieved, Retriever, Scope
from backend.search.selection import (
    FEW_SECTIONS,
    Reading,
    Selection,
    select_best,
    select_sections_for_expansion,
)
from backend.search.variants import (
    deduplicate_queries,
    exact_terms_of,
    keyword_query_expansion,
    own_variants,
    query_key,
    semantic_query_rephrase,
    variants_without_model,
)
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.embedding.embedder import Embedder
from indexing.embedding.language_support import Understanding
from indexing.embedding.token_counting import CountTokens
from indexing.index.protocols import Filters, Index
from indexing.runtime.deadline import Deadline, DeadlineExceededError

VARIANT_SECONDS = 4.0
VARIANT_SHARE = 0.3
SELECTION_SECONDS = 15.0
SELECTION_SHARE = 0.5
"""The model is waited for so many seconds, or this share of the time left, whichever is less."""

_Variants: TypeAlias = tuple[VariantQuery, ...]


@dataclass(frozen=True, slots=True)
class Ranking:
    """What was found, before anything is left out."""

    chunks: list[RankedChunk]
    """Best first."""
    sections: list[InferenceSection]
    """The same, consecutive chunks together."""
    variants: _Variants
    """What was searched, the user's own message first."""
    partial: bool

    @classmethod
    def of(cls, found: Retrieved, variants: _Variants) -> "Ranking":
        chunks = weighted_reciprocal_rank_fusion(found.rankings)
        return cls(chunks, merge_individual_chunks(chunks), variants, found.partial)


class SearchTool:
    """The path of a search; one for all searches of a turn.

    The model is asked for variants of the user's message in the first search of the turn alone:
    in later ones the chat model has read what was found and says itself what to look for.
    """

    def __init__(
        self,
        *,
        index: Index,
        embedder: Embedder,
        understanding: Understanding,
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

        A model that fails or is late costs what it would have added, told as VariantLost.

        Raises:
            DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError: the index did not answer; there is no result.
        """
        ranking = yield from self._rank(request, HITS_PER_VARIANT)
        yield FusedResults(tuple(ranking.sections))
        selections = yield from self._select(ranking, request)
        yield Selected(tuple(selection.section for selection in selections))
        expanded = yield from self._expand(selections, request)
        yield SearchDone(self._result(merge_overlapping_sections(expanded), ranking, request))

    def rank(self, request: SearchRequest, hits: int = HITS_PER_VARIANT) -> list[RankedChunk]:
        """The fused ranking of `hits` for each variant, as `run` has it before it leaves things out.

        Raises:
            DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError: the index did not answer.
        """
        return _outcome(self._rank(request, hits)).chunks

    def _rank(self, request: SearchRequest, hits: int) -> Generator[SearchEvent, None, Ranking]:
        steps = self._ask_for_variants(request)
        variants = own_variants(request) if self._complete else variants_without_model(request)
        scope = Scope(
            readers=request.readers,
            filters=request.filters,
            exact=exact_terms_of(request),
            deadline=request.deadline,
            hits=hits,
        )
        yield Queries(variants)
        if request.filters != Filters():
            yield Narrowed(request.filters)
        found = self._retriever.retrieve(variants, scope)
        yield from found.lost
        first = Ranking.of(found, variants)
        yield FirstResults(tuple(first.sections))
        late = yield from _late_variants(steps)
        if not late:
            return first
        variants = deduplicate_queries([*variants, *late])
        yield Queries(variants)
        found = yield from self._retrieve_late(variants, found, scope)
        return Ranking.of(found, variants)

    def _ask_for_variants(self, request: SearchRequest) -> dict[str, Pending[_Variants]]:
        """Both calls to the model, under way, by the names of their steps."""
        complete = self._complete
        if complete is None or next(self._searches) > 0 or not request.message.strip():
            return {}
        deadline = _part_of(request.deadline, VARIANT_SECONDS, VARIANT_SHARE)
        return {
            "semantic_query_rephrase": in_background(
                lambda: semantic_query_rephrase(request, complete, deadline), deadline
            ),
            "keyword_query_expansion": in_background(
                lambda: keyword_query_expansion(request, complete, deadline), deadline
            ),
        }

    def _retrieve_late(
        self, variants: _Variants, first: Retrieved, scope: Scope
    ) -> Generator[SearchEvent, None, Retrieved]:
        """The rankings of all variants; only those not searched before are searched now."""
        hits = {query_key(ranking.variant): ranking.hits for ranking in first.rankings}
        new = [variant for variant in variants if query_key(variant) not in hits]
        second = Retrieved()
        try:
            second = self._retriever.retrieve(new, scope)
        except (DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError) as failure:
            yield VariantLost(
                "late_retrieval", f"the model's variants were not searched: {failure}"
            )
        yield from second.lost
        hits |= {query_key(ranking.variant): ranking.hits for ranking in second.rankings}
        rankings = [
            VariantRanking(variant, hits[query_key(variant)])
            for variant in variants
            if query_key(variant) in hits
        ]
        return Retrieved(tuple(rankings), first.partial or second.partial)

    def _select(
        self, ranking: Ranking, request: SearchRequest
    ) -> Generator[SearchEvent, None, tuple[Selection, ...]]:
        complete, sections = self._complete, ranking.sections
        if complete is None:
            return select_best(sections, Reading.ADJACENT)
        shown = trim_sections_by_tokens(sections, request.budgets.selection, self._count_tokens)
        if len(shown) <= FEW_SECTIONS:
            return select_best(shown or sections, Reading.ADJACENT)
        deadline = _part_of(request.deadline, SELECTION_SECONDS, SELECTION_SHARE)
        queries = [variant.text for variant in ranking.variants]
        try:
            return in_background(
                lambda: select_sections_for_expansion(queries, shown, complete, deadline), deadline
            ).result()
        except CompletionFailed as failure:
            yield VariantLost("selection", str(failure))
            return select_best(shown, Reading.AS_IS)

    def _expand(
        self, selections: Sequence[Selection], request: SearchRequest
    ) -> Generator[SearchEvent, None, list[InferenceSection]]:
        try:
            return expand_section_with_context(
                selections, self._index, request.readers, request.deadline, self._chunk_tokens
            )
        except (DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError) as failure:
            yield VariantLost("expansion", f"sections are shown as they were found: {failure}")
            return [selection.section for selection in selections]

    def _result(
        self, sections: Sequence[InferenceSection], ranking: Ranking, request: SearchRequest
    ) -> SearchResult:
        fitted = fit_answer_budget(
            sections,
            request.budgets.answer,
            self._count_tokens,
            self._numbers,
            _note(sections, ranking),
        )
        docs = [
            search_doc(section, self._numbers.number(section.document_id))
            for section in fitted.sections
        ]
        return SearchResult(
            sections=fitted.sections,
            docs=tuple(docs),
            for_model=fitted.text,
            citations={doc.number: doc.document_id for doc in docs},
            partial=ranking.partial,
        )


def _late_variants(
    steps: dict[str, Pending[_Variants]],
) -> Generator[SearchEvent, None, list[VariantQuery]]:
    """What the model has added by its deadline."""
    late: list[VariantQuery] = []
    for step, pending in steps.items():
        try:
            late.extend(pending.result())
        except CompletionFailed as failure:
            yield VariantLost(step, str(failure))
    return late


def _part_of(deadline: Deadline, seconds: float, share: float) -> Deadline:
    """At most `seconds` from now, and at most that share of what is left."""
    return deadline.limited_to(min(seconds, deadline.remaining() * share))


def _note(sections: Sequence[InferenceSection], ranking: Ranking) -> str:
    """What the model must know beside the results."""
    notes = [INCOMPLETE] if ranking.partial else []
    if not sections:
        notes.insert(0, NOTHING_RELEVANT if ranking.chunks else NOTHING_FOUND)
    return " ".join(notes)


def _outcome(steps: Generator[SearchEvent, None, Ranking]) -> Ranking:
    """What the steps come to, when nobody follows them."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            ranking: Ranking = end.value
            return ranking
