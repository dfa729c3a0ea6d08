"""From one message to one ranking: the variants that it is searched as, the search of them all, and the fusion of what they find.

Each variant has its weight in the fusion. All are searched with one call to the embedder and one to the index. Of the
chunks of the one ranking, those that follow each other become sections.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import NamedTuple, TypeAlias

import regex

from backend.search.events import StepFailed
from backend.search.llm_protocol import Complete, CompletionError
from backend.search.models import Inference, InferenceSection, SearchRequest, VariantQuery
from backend.search.prompts import keyword_prompt, rephrase_prompt, strip_reasoning
from connectors.access import Readers
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.embedding.embedder import Embedder, Vector
from indexing.embedding.language_support import LanguageSupport
from indexing.index.protocols import (
    Evidence,
    Filters,
    Hit,
    Index,
    IndexQuery,
    RankReason,
    TextConditions,
)
from indexing.runtime.deadline import Deadline, DeadlineExceededError
from indexing.text.normalization import SPACELESS
from indexing.text.stop_words import FUNCTION_WORDS
from indexing.text.tokenizer import extract_keywords, find_exact_terms, plain_words, words

ORIGINAL_QUERY_WEIGHT = 2.0
LLM_SEMANTIC_QUERY_WEIGHT = 1.75
LLM_NON_CUSTOM_QUERY_WEIGHT = 1.5
LLM_KEYWORD_QUERY_WEIGHT = 1.25

MAX_KEYWORD_QUERIES = 3
MAX_MODEL_QUERIES = 8
MAX_QUERY_CHARACTERS = 4_000
FEW_CONTENT_WORDS = 2.5
"""A message of at most this length is not searched by itself."""
EARLIER_TURNS = 6
"""How far back to look for the question that such a message belongs to."""

_LIST_MARK = re.compile(r"^(?:[-*•]|\d{1,2}[.)])\s+")
_QUOTES = "\"'`“”「」"
_WRAPPED = re.compile(rf"[{_QUOTES}]+([^{_QUOTES}]*)[{_QUOTES}]+")
_HIRAGANA = regex.compile(r"\p{Hiragana}+")
_SPACELESS = regex.compile(rf"[{SPACELESS}]")

HYBRID_ALPHA = 0.5
KEYWORD_ALPHA = 0.2
HITS_PER_VARIANT = 50
EMBEDDING_SHARE = 0.5
"""The share of the remaining time that embedding may take; the rest is for the search by words."""
RRF_K = 50


def variants_of_request(request: SearchRequest) -> tuple[VariantQuery, ...]:
    """Return the variants that need no further call to a model."""
    original = VariantQuery("original", normalize_query(request.message), ORIGINAL_QUERY_WEIGHT)
    return deduplicate_queries([original, *model_variants(request.model_queries)])


def model_variants(queries: Sequence[str]) -> list[VariantQuery]:
    """Return the queries that the chat model wrote, up to a maximum, as variants."""
    return [
        VariantQuery("llm", normalize_query(query), LLM_NON_CUSTOM_QUERY_WEIGHT)
        for query in queries[:MAX_MODEL_QUERIES]
    ]


def variants_without_model(request: SearchRequest) -> tuple[VariantQuery, ...]:
    """Make a keyword variant of the text itself, in place of the model's variants.

    It is searched with the vector of the whole text: the few words left of it mean no more than that, and embedding is the
    largest part of a search. A follow-up of few words ("and in Japan?") is also searched together with the question
    before it.
    """
    message, own = normalize_query(request.message), variants_of_request(request)
    terms = extract_keywords(message)
    earlier = ""
    if request.history and needs_history(request.message):
        earlier = normalize_query(_previous_question(request))
    if not earlier:
        keyword = VariantQuery("keyword", terms, LLM_KEYWORD_QUERY_WEIGHT, message)
        return deduplicate_queries([*own, keyword])
    joined = normalize_query(f"{earlier} {request.message}")
    terms = normalize_query(f"{extract_keywords(earlier)} {terms}")
    return deduplicate_queries(
        [
            *own,
            VariantQuery("semantic", joined, LLM_SEMANTIC_QUERY_WEIGHT),
            VariantQuery("keyword", terms, LLM_KEYWORD_QUERY_WEIGHT, joined),
        ]
    )


def narrow_variants(
    variants: Iterable[VariantQuery], inference: Inference
) -> tuple[VariantQuery, ...]:
    """Return the same variants where only what inferred filters accept is searched; none without such filters."""
    if not inference.inferred:
        return ()
    return tuple(replace(variant, narrowing=inference) for variant in variants)


def semantic_query_rephrase(
    request: SearchRequest, complete: Complete, deadline: Deadline
) -> tuple[VariantQuery, ...]:
    """Rephrase the message as a question that needs no history. Raises CompletionError."""
    lines = _parse_lines(complete(rephrase_prompt(request.message, request.history), deadline))
    return (VariantQuery("semantic", lines[0], LLM_SEMANTIC_QUERY_WEIGHT),)


def keyword_query_expansion(
    request: SearchRequest, complete: Complete, deadline: Deadline
) -> tuple[VariantQuery, ...]:
    """Write up to three keyword queries for the message. Raises CompletionError."""
    lines = _parse_lines(complete(keyword_prompt(request.message, request.history), deadline))
    return tuple(
        VariantQuery("keyword", text, LLM_KEYWORD_QUERY_WEIGHT)
        for text in lines[:MAX_KEYWORD_QUERIES]
    )


def deduplicate_queries(variants: Iterable[VariantQuery]) -> tuple[VariantQuery, ...]:
    """Merge equal texts within the hybrid and within the keyword group, and add their weights.

    The first of them gives name, spelling and position. Empty texts are left out.
    """
    merged: dict[tuple[str, str, bool], VariantQuery] = {}
    for variant in variants:
        if not variant.text:
            continue
        first = merged.get(query_key(variant))
        merged[query_key(variant)] = (
            replace(first, weight=first.weight + variant.weight) if first else variant
        )
    return tuple(merged.values())


def query_key(variant: VariantQuery) -> tuple[str, str, bool]:
    """Return a key that is equal for variants that are searched alike."""
    group = "keyword" if variant.name == "keyword" else "hybrid"
    return group, variant.text.casefold(), variant.narrowing is None


def normalize_query(text: str) -> str:
    """Put `text` on one line; of a very long one keep the beginning and the end, where questions are."""
    line = " ".join(text.split())
    if len(line) <= MAX_QUERY_CHARACTERS:
        return line
    half = MAX_QUERY_CHARACTERS // 2
    return f"{line[:half]} {line[-half:]}"


def needs_history(message: str) -> bool:
    """Return whether a message has too few content words to be searched by itself."""
    if find_exact_terms(message):
        return False
    content = extract_keywords(normalize_query(message))
    if not says_something(content):
        return True
    return sum(map(_content_weight, set(words(content)))) <= FEW_CONTENT_WORDS


def says_something(text: str) -> bool:
    """Return whether a text has other words than the function and question words of one language."""
    found = plain_words(text)
    return not any(dropped.issuperset(found) for dropped in FUNCTION_WORDS.values())


def _content_weight(word: str) -> float:
    # Scripts without spaces give every character and every pair of neighbors: a pair counts as
    # half a word, and a character is in its pairs already. Hiragana alone is mostly grammar.
    if not _SPACELESS.search(word):
        return 1.0
    return 0.5 if len(word) > 1 and not _HIRAGANA.fullmatch(word) else 0.0


def _previous_question(request: SearchRequest) -> str:
    """Return the user's last message that can be searched by itself."""
    messages = [turn.text for turn in request.history if turn.role == "user"]
    recent = reversed(messages[-EARLIER_TURNS:])
    return next((text for text in recent if not needs_history(text)), "")


def _parse_lines(answer: str) -> Sequence[str]:
    """Return the lines of a model's answer without list marks and quotes."""
    lines = [normalize_query(_unwrap(line)) for line in strip_reasoning(answer).splitlines()]
    queries = [line for line in lines if line.strip("`")]
    if not queries:
        raise CompletionError("the language model gave an empty answer")
    return queries


def _unwrap(line: str) -> str:
    bare = _LIST_MARK.sub("", line.strip())
    wrapped = _WRAPPED.fullmatch(bare)
    return wrapped.group(1) if wrapped else bare


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalOptions:
    """What all variants of a search have in common."""

    readers: Readers
    filters: Filters
    conditions: TextConditions
    exact: tuple[str, ...]
    deadline: Deadline
    hits: int = HITS_PER_VARIANT
    """For each variant."""


@dataclass(frozen=True, slots=True)
class VariantRanking:
    variant: VariantQuery
    hits: tuple[Hit, ...]
    """Best first."""


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    rankings: tuple[VariantRanking, ...] = ()
    """One for each variant, in the same order."""
    partial: bool = False
    failures: tuple[StepFailed, ...] = ()


@dataclass(frozen=True, slots=True)
class Retriever:
    """Retrieves for one turn."""

    index: Index
    embedder: Embedder
    understanding: LanguageSupport
    vectors: dict[str, Vector] = field(default_factory=dict)
    """Of the texts embedded so far: a turn searches the same text under other filters, or for more."""

    def retrieve(
        self, variants: Sequence[VariantQuery], options: RetrievalOptions
    ) -> RetrievalResult:
        """Search all variants in one `Index.find`, with vectors from one call to the embedder.

        If the embedder fails, the keyword legs are searched alone.

        Raises:
            DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError: the index did not answer.
        """
        if not variants:
            return RetrievalResult()
        texts = dict.fromkeys(variant.embedded_text for variant in variants)
        shares = {text: self.understanding.vector_weight(text) for text in texts}
        vectors, failures = self._embed(shares, options.deadline)
        queries = [
            self._build_query(
                variant,
                shares[variant.embedded_text],
                vectors.get(variant.embedded_text),
                options,
            )
            for variant in variants
        ]
        found = self.index.find(queries, options.readers, options.deadline)
        pairs = zip(variants, found.rankings, strict=True)
        rankings = tuple(
            VariantRanking(variant, _drop_unrelated_to(variant, hits, self.understanding.floor))
            for variant, hits in pairs
        )
        return RetrievalResult(rankings, found.partial, failures)

    def _embed(
        self, shares: Mapping[str, float], deadline: Deadline
    ) -> tuple[dict[str, Vector], tuple[StepFailed, ...]]:
        """Embed each text of which the embedder understands a share."""
        texts = [text for text, share in shares.items() if share > 0]
        new = [text for text in texts if text not in self.vectors]
        if new:
            try:
                vectors = self.embedder.embed_queries(
                    new, deadline.limited_to(deadline.remaining() * EMBEDDING_SHARE)
                )
            except (
                TemporarilyUnavailableError,
                ActionRequiredError,
                DeadlineExceededError,
            ) as error:
                return {}, (StepFailed("embedding", f"searched by words alone: {error}"),)
            self.vectors.update(zip(new, vectors, strict=True))
        return {text: self.vectors[text] for text in texts}, ()

    def _build_query(
        self,
        variant: VariantQuery,
        share: float,
        vector: Vector | None,
        options: RetrievalOptions,
    ) -> IndexQuery:
        filters, narrowing = options.filters, variant.narrowing
        return IndexQuery(
            text=variant.text,
            vector=vector,
            alpha=_choose_alpha(variant) * share if vector is not None else 0.0,
            scale=self.understanding.cosine_scale,
            exact=options.exact,
            size=options.hits,
            filters=filters.narrowed_by(narrowing.filters) if narrowing else filters,
            conditions=options.conditions,
        )


def _choose_alpha(variant: VariantQuery) -> float:
    """Choose the share of the vector: of keywords alone a vector says little.

    Keywords that are searched with the vector of their message have its share.
    """
    own_vector = variant.name == "keyword" and variant.message is None
    return KEYWORD_ALPHA if own_vector else HYBRID_ALPHA


def _drop_unrelated_to(variant: VariantQuery, hits: Sequence[Hit], floor: float) -> tuple[Hit, ...]:
    """Drop what is unrelated to a variant; where it says nothing but filters, all that these accept is meant."""
    if variant.narrowing is not None and not variant.narrowing.topic:
        return tuple(hits)
    return drop_unrelated(hits, floor)


def drop_unrelated(hits: Sequence[Hit], floor: float) -> tuple[Hit, ...]:
    """Drop hits that contain no word of the query and whose cosine is one that unrelated texts have.

    Every index of vectors has a nearest one, whatever is looked for; it need not be a result.
    """
    return tuple(hit for hit in hits if _is_related(hit.evidence, floor))


def _is_related(evidence: Evidence, floor: float) -> bool:
    if evidence.exact or evidence.word_share > 0.0:
        return True
    return evidence.cosine is not None and evidence.cosine >= floor


class _Placement(NamedTuple):
    """Where one variant ranks a chunk."""

    rank: int
    """Counted from 1."""
    order: int
    """Of the variant among the variants."""
    variant: VariantQuery
    hit: Hit


_SortKey: TypeAlias = tuple[int, float, int, int]
_HitAt: TypeAlias = tuple[int, Hit]
"""A hit and its place in the ranking."""


def weighted_reciprocal_rank_fusion(
    rankings: Sequence[VariantRanking], k: int = RRF_K
) -> list[Hit]:
    """Rank each chunk by the sum of weight / (k + rank) over the rankings that contain it.

    Chunks with more of the exact terms rank above those with fewer, whatever they score. Ties go
    to the better best rank, then to the earlier variant.

    Cormack, Clarke, Büttcher: Reciprocal Rank Fusion outperforms Condorcet and individual Rank
    Learning Methods, SIGIR 2009; here with a weight for each ranking.
    """
    placements: dict[tuple[str, int], list[_Placement]] = {}
    for order, ranking in enumerate(rankings):
        for rank, hit in enumerate(ranking.hits, start=1):
            placement = _Placement(rank, order, ranking.variant, hit)
            placements.setdefault(hit.chunk.key, []).append(placement)
    fused = [_fuse_placements(of_chunk, k) for of_chunk in placements.values()]
    # No two keys are equal: only one chunk has a certain rank in a certain variant.
    return [hit for _, hit in sorted(fused)]


def _fuse_placements(placements: list[_Placement], k: int) -> tuple[_SortKey, Hit]:
    # fsum is exact: the score must not depend on the order in which variants arrived, else equal
    # chunks would be ordered by rounding errors instead of by rank.
    score = math.fsum(each.variant.weight / (k + each.rank) for each in placements)
    evidence = combine_evidence(each.hit.evidence for each in placements)
    why = tuple(reason for each in placements for reason in _explain(each))
    hit = Hit(placements[0].hit.chunk, score, evidence, why)
    first = min(placements)
    # The exact tier comes before the score: a rewritten query knows nothing of the code or phrase
    # that the user wrote, and must not outvote a chunk that contains it.
    return (-evidence.exact, -score, first.rank, first.order), hit


def _explain(placement: _Placement) -> Iterator[RankReason]:
    variant, evidence = placement.variant, placement.hit.evidence
    if evidence.exact_rank is not None:
        yield RankReason(variant.name, variant.text, "exact", evidence.exact_rank)
    if evidence.vector_rank is not None:
        yield RankReason(variant.name, variant.text, "vector", evidence.vector_rank)
    if evidence.keyword_rank is not None:
        yield RankReason(variant.name, variant.text, "keyword", evidence.keyword_rank)


def combine_evidence(evidences: Iterable[Evidence]) -> Evidence:
    """Take the best of each figure.

    Whether anything answers at all is decided on these raw figures: a fused score only
    compares chunks of one search.
    """
    return reduce(_combine_two, evidences)


def _combine_two(one: Evidence, other: Evidence) -> Evidence:
    return Evidence(
        cosine=_max_known(one.cosine, other.cosine),
        bm25=_max_known(one.bm25, other.bm25),
        word_share=max(one.word_share, other.word_share),
        exact=max(one.exact, other.exact),
        vector_rank=_min_known(one.vector_rank, other.vector_rank),
        keyword_rank=_min_known(one.keyword_rank, other.keyword_rank),
        exact_rank=_min_known(one.exact_rank, other.exact_rank),
    )


def _max_known(*figures: float | None) -> float | None:
    return max((figure for figure in figures if figure is not None), default=None)


def _min_known(*ranks: int | None) -> int | None:
    return min((rank for rank in ranks if rank is not None), default=None)


def merge_individual_chunks(hits: Iterable[Hit]) -> list[InferenceSection]:
    """Join consecutive chunks of a document into a section at its best chunk's place.

    `hits` are best first. Every chunk of them is in exactly one section.
    """
    places: dict[tuple[str, int], _HitAt] = {}
    for place, hit in enumerate(hits):
        places.setdefault(hit.chunk.key, (place, hit))
    in_reading_order = [places[key] for key in sorted(places)]
    sections = map(_join_run, _split_runs(in_reading_order))
    return [section for _, section in sorted(sections)]


def _split_runs(hits: Iterable[_HitAt]) -> Iterator[list[_HitAt]]:
    """Yield the longest runs of chunks of one document without gaps."""
    run: list[_HitAt] = []
    for place, hit in hits:
        document_id, position = hit.chunk.key
        if run and run[-1][1].chunk.key != (document_id, position - 1):
            yield run
            run = []
        run.append((place, hit))
    if run:
        yield run


def _join_run(run: list[_HitAt]) -> tuple[int, InferenceSection]:
    by_place = sorted(run)
    place, best = by_place[0]
    chunks = tuple(hit.chunk for _, hit in run)
    return place, InferenceSection(chunks, best, tuple(hit for _, hit in by_place))
