"""Builds the bodies of search requests.

A user's text is passed as words and as values of terms, never as anything that the cluster would parse:
neither `query_string` nor any other query syntax is used. Who may see what is decided in `access_filter`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice

from connectors.access import Readers
from indexing.index.protocols import Filters, TextConditions
from indexing.opensearch.access_filter import (
    any_of,
    filter_conditions,
    match_any,
    readable_records,
    shown_to,
)
from indexing.opensearch.mapping import Body
from indexing.text.analysis import QueryWord
from indexing.text.languages import LANGUAGES
from indexing.text.tokenizer import plain_words

MAX_HITS = 10_000
"""Hits of one search: `index.max_result_window`."""
MAX_WORDS = 960
"""Distinct words of one search: the cluster accepts 1,024 clauses, and conditions and phrases need some."""
MAX_INTERVALS = 300
"""Intervals of positions of one search. Each has three clauses: the cluster counts a range as two."""
MAX_POSITION = 2**31 - 1
"""Above every position."""
PHRASE_BOOST = 10_000.0
"""Greater than any BM25 score, so that chunks with more of the phrases come first."""
Interval = tuple[int, int]
"""Positions `[start, end)`."""

_CANDIDATE_FIELDS: Body = {
    # Reading a stored field, such as the id, takes ten times as long as reading a doc value.
    "_source": False,
    "stored_fields": "_none_",
    "docvalue_fields": ["chunk", "boost"],
    "track_total_hits": False,
}

_VISIBLE_FIELDS = [
    *("key", "kind", "version"),
    *("position", "place", "words"),
    *("id", "chunks", "source", "media_type", "sets", "projects", "personas", "tags"),
    *("boost", "created", "updated"),
    *("said.title", "said.owners", "said.access", "said.hidden"),
]
"""Fields of chunks and of document records that are needed to check and to show a chunk."""


# Candidates


def keyword_query(words: Sequence[QueryWord], conditions: Sequence[Body], size: int) -> Body:
    """Find the best by BM25."""
    return _CANDIDATE_FIELDS | {
        "size": size,
        "query": {"bool": {"must": [any_word(words)], "filter": conditions}},
    }


def any_word(words: Sequence[QueryWord]) -> Body:
    """Accept what contains one of the words in any form; a repeated word counts as often as it is repeated.

    Of more distinct forms than the cluster accepts, only the first are used.
    """
    times = Counter(chain.from_iterable(words))
    return match_any([_word(word, times[word]) for word in islice(times, MAX_WORDS)])


def _word(word: str, times: int) -> Body:
    return {"term": {"words": {"value": word, "boost": float(times)} if times > 1 else word}}


def graph_vector_query(vector: Sequence[float], conditions: Sequence[Body], size: int) -> Body:
    """Find the nearest vectors by the HNSW graphs; the conditions apply within the graph search."""
    parameters = {"vector": vector, "k": size, "filter": {"bool": {"filter": conditions}}}
    return _CANDIDATE_FIELDS | {"size": size, "query": {"knn": {"vector": parameters}}}


def full_vector_query(vector: Sequence[float], conditions: Sequence[Body], size: int) -> Body:
    """Find the nearest vectors by comparing with every vector that meets the conditions."""
    chunks = [{"term": {"kind": "chunk"}}, *conditions]
    return _CANDIDATE_FIELDS | {"size": size, "query": _vector_score(vector, chunks)}


def cosine_query(ids: Sequence[str], vector: Sequence[float]) -> Body:
    """Score these chunks by their inner product with the vector."""
    return _CANDIDATE_FIELDS | {
        "size": len(ids),
        "docvalue_fields": ["chunk"],
        "query": _vector_score(vector, [{"ids": {"values": ids}}]),
    }


def _vector_score(vector: Sequence[float], among: Sequence[Body]) -> Body:
    parameters = {"field": "vector", "query_value": vector, "space_type": "innerproduct"}
    return {
        "script_score": {
            "query": {"bool": {"filter": among}},
            "script": {"lang": "knn", "source": "knn_score", "params": parameters},
        }
    }


def exact_query(
    phrases: Sequence[Sequence[str]],
    words: Sequence[QueryWord],
    conditions: Sequence[Body],
    size: int,
) -> Body:
    """Find chunks with their texts: those with most phrases first, then those with most of the words."""
    matches = [
        {"constant_score": {"filter": phrase(each), "boost": PHRASE_BOOST}} for each in phrases
    ]
    query: Body = {"must": [match_any(matches)], "filter": conditions}
    if words:
        query["should"] = [any_word(words)]
    return {
        "size": size,
        "query": {"bool": query},
        "_source": ["place.embedded"],
        "docvalue_fields": ["boost"],
        "track_total_hits": False,
    }


def phrase(words: Sequence[str]) -> Body:
    """Accept what contains the words one after the other."""
    if len(words) == 1:
        return {"term": {"plain": words[0]}}
    return {"match_phrase": {"plain": " ".join(words)}}


def text_conditions(wanted: TextConditions) -> list[Body]:
    """Accept chunks that contain every phrase and nothing that is excluded."""
    excluded = _phrases(wanted.excluded)
    return [
        *_phrases(wanted.required_phrases),
        *([{"bool": {"must_not": excluded}}] if excluded else []),
    ]


def _phrases(texts: Iterable[str]) -> list[Body]:
    """Make the condition of each text; one without words asks for nothing."""
    return [phrase(words) for text in texts if (words := plain_words(text))]


def match_inflections(word: str, stems: Sequence[str]) -> Body:
    """Accept what contains a word as it is written, or one of its stems."""
    return match_any([{"term": {"plain": word}}, *({"term": {"words": stem}} for stem in stems)])


def near_word(word: str, distance: int) -> Body:
    """Accept what contains a plain word that differs in at most `distance` places; a transposition is one."""
    return {"fuzzy": {"plain": {"value": word, "fuzziness": distance, "transpositions": True}}}


def existence_query(condition: Body, conditions: Sequence[Body]) -> Body:
    """Count one chunk that meets the conditions, if any does; none is read."""
    return {
        "size": 0,
        "track_total_hits": 1,
        "terminate_after": 1,
        "query": {"bool": {"filter": [condition, *conditions]}},
    }


def positions_of_matches_query(condition: Body, conditions: Sequence[Body], size: int) -> Body:
    """Find chunks that meet the conditions; `read_places` reads their places."""
    return {
        "size": size,
        "_source": ["key", "position"],
        "track_total_hits": False,
        "query": {"bool": {"filter": [condition, *conditions]}},
    }


def read_places(hits: Iterable[Body]) -> list[tuple[str, int]]:
    """Return the key of the document and the position of each chunk."""
    return [(hit["_source"]["key"], hit["_source"]["position"]) for hit in hits]


def term_count_query(words: Sequence[QueryWord], plain: Sequence[str]) -> Body:
    """Count all chunks with these words and with the plain ones in a row, whoever may see them."""
    forms = dict.fromkeys(words)
    return _count_query([phrase(plain), *[{"terms": {"words": list(each)}} for each in forms]])


def chunk_count_query() -> Body:
    return _count_query([{"term": {"kind": "chunk"}}])


def _count_query(conditions: Sequence[Body]) -> Body:
    return {"size": 0, "track_total_hits": True, "query": {"bool": {"filter": conditions}}}


# Visible chunks


def chunks_and_records_query(ids: Sequence[str], keys: Sequence[str], readers: Readers) -> Body:
    """Find chunks by their ids, and the records of those documents `keys` that `readers` may see."""
    chunks: Body = {"ids": {"values": ids}}
    return _sources(match_any([chunks, readable_records(keys, readers)]), len(ids) + len(keys))


def records_query(keys: Sequence[str], readers: Readers) -> Body:
    """Find the records of those documents that `readers` may see."""
    return _sources(readable_records(keys, readers), len(keys))


def positions_query(wanted: Mapping[str, Sequence[Interval]], readers: Readers, size: int) -> Body:
    """Find chunks by key and position, and the records of those documents that `readers` may see.

    Returns an arbitrary selection of `size` hits if there are more.
    """
    positions = [_interval(key, each) for key, intervals in wanted.items() for each in intervals]
    return _sources(match_any([*positions, readable_records(list(wanted), readers)]), size)


def restrict_to_versions(body: Body, versions: Iterable[str]) -> Body:
    """Restrict a query to these versions of documents."""
    both = [body["query"], any_of("version", versions)]
    return body | {"query": {"bool": {"filter": both}}}


def _interval(key: str, interval: Interval) -> Body:
    start, end = (min(position, MAX_POSITION) for position in interval)
    return {
        "bool": {
            "filter": [
                {"term": {"key": key}},
                # Excludes records of documents, which have no position.
                {"range": {"position": {"gte": start, "lt": end}}},
            ]
        }
    }


def _sources(condition: Body, size: int) -> Body:
    return {
        "size": size,
        "query": {"bool": {"filter": [condition]}},
        "_source": _VISIBLE_FIELDS,
        "track_total_hits": False,
    }


# Facets and languages


def languages_query(readers: Readers) -> Body:
    """Count the documents in each language that is not the default one of its script."""
    tagged: list[Body] = [{"term": {"kind": "document"}}, {"exists": {"field": "languages"}}]
    return {
        "size": 0,
        "track_total_hits": False,
        "query": {"bool": {"filter": [*tagged, *shown_to(readers)]}},
        "aggs": {"languages": {"terms": {"field": "languages", "size": len(LANGUAGES)}}},
    }


def facets_query(readers: Readers, filters: Filters, fields: Mapping[str, int]) -> Body:
    """Count the documents with each value of `fields`, for a limited number of values of each field."""
    documents = [{"term": {"kind": "document"}}, {"range": {"chunks": {"gt": 0}}}]
    return {
        "size": 0,
        "track_total_hits": False,
        "query": {"bool": {"filter": [*documents, *filter_conditions(readers, filters)]}},
        "aggs": {
            field: {"terms": {"field": field, "size": size}} for field, size in fields.items()
        },
    }
