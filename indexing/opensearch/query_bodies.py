"""Builds the bodies of search requests.

A user's text is passed as words and as values of terms, never as anything that the cluster would parse:
neither `query_string` nor any other query syntax is used. Conditions apply to chunks and to records of
documents alike.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from connectors.access import Readers
from connectors.batched import batched
from indexing.index.protocols import DateRange, Filters
from indexing.opensearch.mapping import Body
from indexing.opensearch.naming import document_key
from indexing.opensearch.record_mapping import to_microseconds
from indexing.text.normalization import is_storable

MAX_HITS = 10_000
"""Hits of one search: `index.max_result_window`."""
MAX_TERMS = 65_536
"""Values of one `terms` condition: `index.max_terms_count`."""
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
    *("id", "chunks", "source", "media_type", "sets", "tags", "boost", "created", "updated"),
    *("said.title", "said.owners", "said.access", "said.hidden"),
]
"""Fields of chunks and of document records that are needed to check and to show a chunk."""


# Conditions


def filter_conditions(readers: Readers, filters: Filters) -> list[Body]:
    """Accept what `readers` may see and `filters` accept."""
    return [any_of("readers", readers.tokens), *_filters(filters)]


def _filters(filters: Filters) -> list[Body]:
    named = {
        "source": filters.sources,
        "media_type": filters.media_types,
        "sets": filters.sets,
        "tags": filters.tags,
        "people": filters.people,
        "key": None if filters.document_ids is None else _keys(filters.document_ids),
    }
    ranges = [_date_range("created", filters.created), _date_range("updated", filters.updated)]
    return [any_of(field, values) for field, values in named.items() if values is not None] + [
        dates for dates in ranges if dates
    ]


def _keys(ids: Iterable[str]) -> list[str]:
    return [document_key(each) for each in ids if is_storable(each)]


def any_of(field: str, values: Iterable[str]) -> Body:
    """Accept what contains one of `values`; without values, nothing. Values that cannot be stored match nothing."""
    wanted = sorted(filter(is_storable, values))
    if len(wanted) <= MAX_TERMS:
        return {"terms": {field: wanted}}
    return _any([{"terms": {field: some}} for some in batched(wanted, MAX_TERMS)])


def none_of(field: str, values: Iterable[str]) -> Body:
    return {"bool": {"must_not": [any_of(field, values)]}}


def _date_range(field: str, dates: DateRange) -> Body:
    """Return a range condition, or an empty body without bounds."""
    bounds = {"gte": to_microseconds(dates.since), "lt": to_microseconds(dates.until)}
    bounded = {name: moment for name, moment in bounds.items() if moment is not None}
    return {"range": {field: bounded}} if bounded else {}


def _any(parts: Sequence[Body]) -> Body:
    return {"bool": {"should": parts, "minimum_should_match": 1}}


# Candidates


def keyword_query(words: Sequence[str], conditions: Sequence[Body], size: int) -> Body:
    """Find the best by BM25."""
    return _CANDIDATE_FIELDS | {
        "size": size,
        "query": {"bool": {"must": [any_word(words)], "filter": conditions}},
    }


def any_word(words: Sequence[str]) -> Body:
    """Accept what contains one of the words; a repeated word counts as often as it is repeated.

    Of more distinct words than the cluster accepts, only the first are used.
    """
    times = Counter(words)
    return _any([_word(word, times[word]) for word in islice(times, MAX_WORDS)])


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
    phrases: Sequence[Sequence[str]], words: Sequence[str], conditions: Sequence[Body], size: int
) -> Body:
    """Find chunks with their texts: those with most phrases first, then those with most of the words."""
    matches = [
        {"constant_score": {"filter": phrase(each), "boost": PHRASE_BOOST}} for each in phrases
    ]
    query: Body = {"must": [_any(matches)], "filter": conditions}
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


def term_count_query(words: Sequence[str], plain: Sequence[str]) -> Body:
    """Count all chunks with these words and with the plain ones in a row, whoever may see them."""
    return _count_query(
        [phrase(plain), *[{"term": {"words": word}} for word in dict.fromkeys(words)]]
    )


def chunk_count_query() -> Body:
    return _count_query([{"term": {"kind": "chunk"}}])


def _count_query(conditions: Sequence[Body]) -> Body:
    return {"size": 0, "track_total_hits": True, "query": {"bool": {"filter": conditions}}}


# Visible chunks


def chunks_and_records_query(ids: Sequence[str], keys: Sequence[str], readers: Readers) -> Body:
    """Find chunks by their ids, and the records of those documents `keys` that `readers` may see."""
    chunks: Body = {"ids": {"values": ids}}
    return _sources(_any([chunks, _records(keys, readers)]), len(ids) + len(keys))


def records_query(keys: Sequence[str], readers: Readers) -> Body:
    """Find the records of those documents that `readers` may see."""
    return _sources(_records(keys, readers), len(keys))


def positions_query(wanted: Mapping[str, Sequence[Interval]], readers: Readers, size: int) -> Body:
    """Find chunks by key and position, and the records of those documents that `readers` may see.

    Returns an arbitrary selection of `size` hits if there are more.
    """
    positions = [_interval(key, each) for key, intervals in wanted.items() for each in intervals]
    return _sources(_any([*positions, _records(list(wanted), readers)]), size)


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


def _records(keys: Sequence[str], readers: Readers) -> Body:
    return {
        "bool": {
            "filter": [
                {"ids": {"values": keys}},
                {"term": {"kind": "document"}},
                any_of("readers", readers.tokens),
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


# Facets


def facets_query(readers: Readers, filters: Filters, fields: Mapping[str, int]) -> Body:
    """Count the documents with each value of `fields`, for at most so many values of each field."""
    documents = [{"term": {"kind": "document"}}, {"range": {"chunks": {"gt": 0}}}]
    return {
        "size": 0,
        "track_total_hits": False,
        "query": {"bool": {"filter": [*documents, *filter_conditions(readers, filters)]}},
        "aggs": {
            field: {"terms": {"field": field, "size": size}} for field, size in fields.items()
        },
    }
