"""What the cluster is asked: from values to bodies of searches; pure.

A person's text comes in as words and as values of terms, never as anything that the cluster would parse:
neither `query_string` nor any other syntax is used. Conditions hold alike for chunks and for records of
documents.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from connectors.batched import portions
from connectors.document import Readers
from indexing.index.protocols import DateRange, Filters
from indexing.opensearch.mapping import Body
from indexing.opensearch.naming import document_key
from indexing.opensearch.record_mapping import to_microseconds
from indexing.text.normalization import is_storable

LARGEST = 10_000
"""Hits of one search: `index.max_result_window`."""
MOST_TERMS = 65_536
"""Values of one `terms` condition: `index.max_terms_count`."""
MOST_WORDS = 960
"""Distinct words of one search: the cluster takes 1,024 clauses, and conditions and phrases need some."""
MOST_SPANS = 300
"""Ranges of positions of one search, of three clauses each: one range is two to the cluster."""
LAST = 2**31 - 1
"""Above every position."""
PHRASE = 10_000.0
"""Above any sum of BM25, so that what holds more of the phrases comes first."""
Interval = tuple[int, int]
"""Positions `[start, end)`."""

_COLUMNS: Body = {
    # A stored field costs ten times as much to read as a column, and the id is one.
    "_source": False,
    "stored_fields": "_none_",
    "docvalue_fields": ["chunk", "boost"],
    "track_total_hits": False,
}

_SHOWN = [
    *("key", "kind", "version"),
    *("position", "place", "words"),
    *("id", "chunks", "source", "media_type", "sets", "tags", "boost", "created", "updated"),
    *("said.title", "said.owners", "said.access", "said.hidden"),
]
"""Of records of chunks and of documents: what the door and a chunk that is shown need."""


# --- conditions


def conditions(readers: Readers, filters: Filters) -> list[Body]:
    """For whatever `readers` may see through `filters`."""
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
    ranges = [_between("created", filters.created), _between("updated", filters.updated)]
    return [any_of(field, values) for field, values in named.items() if values is not None] + [
        dates for dates in ranges if dates
    ]


def _keys(ids: Iterable[str]) -> list[str]:
    return [document_key(each) for each in ids if is_storable(each)]


def any_of(field: str, values: Iterable[str]) -> Body:
    """What holds one of `values`; no value lets nothing pass. What cannot be stored is held by nothing."""
    wanted = sorted(filter(is_storable, values))
    if len(wanted) <= MOST_TERMS:
        return {"terms": {field: wanted}}
    return _either([{"terms": {field: some}} for some in portions(wanted, MOST_TERMS)])


def none_of(field: str, values: Iterable[str]) -> Body:
    return {"bool": {"must_not": [any_of(field, values)]}}


def _between(field: str, dates: DateRange) -> Body:
    """Empty where neither side is bounded."""
    bounds = {"gte": to_microseconds(dates.since), "lt": to_microseconds(dates.until)}
    bounded = {name: moment for name, moment in bounds.items() if moment is not None}
    return {"range": {field: bounded}} if bounded else {}


def _either(parts: Sequence[Body]) -> Body:
    return {"bool": {"should": parts, "minimum_should_match": 1}}


# --- legs


def keyword(words: Sequence[str], scope: Sequence[Body], size: int) -> Body:
    """The best by BM25."""
    return _COLUMNS | {
        "size": size,
        "query": {"bool": {"must": [any_word(words)], "filter": scope}},
    }


def any_word(words: Sequence[str]) -> Body:
    """What holds one of the words; a word that is asked for twice counts twice.

    Of a text with more distinct words than the cluster takes, the first are asked for.
    """
    times = Counter(words)
    return _either([_word(word, times[word]) for word in islice(times, MOST_WORDS)])


def _word(word: str, times: int) -> Body:
    return {"term": {"words": {"value": word, "boost": float(times)} if times > 1 else word}}


def nearest(vector: Sequence[float], scope: Sequence[Body], size: int) -> Body:
    """The best by the graph of each segment; the scope is a condition inside the search of it."""
    asked = {"vector": vector, "k": size, "filter": {"bool": {"filter": scope}}}
    return _COLUMNS | {"size": size, "query": {"knn": {"vector": asked}}}


def nearest_of_all(vector: Sequence[float], scope: Sequence[Body], size: int) -> Body:
    """The best by comparing with every vector of the scope."""
    chunks = [{"term": {"kind": "chunk"}}, *scope]
    return _COLUMNS | {"size": size, "query": _by_vector(vector, chunks)}


def cosines(ids: Sequence[str], vector: Sequence[float]) -> Body:
    """The inner products of these chunks, as scores."""
    return _COLUMNS | {
        "size": len(ids),
        "docvalue_fields": ["chunk"],
        "query": _by_vector(vector, [{"ids": {"values": ids}}]),
    }


def _by_vector(vector: Sequence[float], among: Sequence[Body]) -> Body:
    parameters = {"field": "vector", "query_value": vector, "space_type": "innerproduct"}
    return {
        "script_score": {
            "query": {"bool": {"filter": among}},
            "script": {"lang": "knn", "source": "knn_score", "params": parameters},
        }
    }


def exact(
    phrases: Sequence[Sequence[str]], words: Sequence[str], scope: Sequence[Body], size: int
) -> Body:
    """What holds more of the phrases comes first, then what has more of the words; with its text."""
    held = [{"constant_score": {"filter": phrase(each), "boost": PHRASE}} for each in phrases]
    query: Body = {"must": [_either(held)], "filter": scope}
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
    """Plain words that stand one after the other."""
    if len(words) == 1:
        return {"term": {"plain": words[0]}}
    return {"match_phrase": {"plain": " ".join(words)}}


def holders(words: Sequence[str], plain: Sequence[str]) -> Body:
    """How many chunks hold all these words, and the plain ones one after the other, whoever may see them."""
    return _count([phrase(plain), *[{"term": {"words": word}} for word in dict.fromkeys(words)]])


def chunk_count() -> Body:
    return _count([{"term": {"kind": "chunk"}}])


def _count(held: Sequence[Body]) -> Body:
    return {"size": 0, "track_total_hits": True, "query": {"bool": {"filter": held}}}


# --- the door


def to_show(ids: Sequence[str], keys: Sequence[str], readers: Readers) -> Body:
    """Chunks by their ids, and the records of those of the documents `keys` that `readers` may see."""
    return _sources(_either([{"ids": {"values": ids}}, _seen(keys, readers)]), len(ids) + len(keys))


def records(keys: Sequence[str], readers: Readers) -> Body:
    """The records of those of these documents that `readers` may see."""
    return _sources(_seen(keys, readers), len(keys))


def parts(spans: Mapping[str, Sequence[Interval]], readers: Readers, size: int) -> Body:
    """Chunks by key and position, and the records of those of their documents that `readers` may see.

    At most `size`; which are left out where there are more is not told.
    """
    places = [_place(key, interval) for key, intervals in spans.items() for interval in intervals]
    return _sources(_either([*places, _seen(list(spans), readers)]), size)


def of_versions(body: Body, versions: Iterable[str]) -> Body:
    """The same search, of these versions of documents only."""
    both = [body["query"], any_of("version", versions)]
    return body | {"query": {"bool": {"filter": both}}}


def _place(key: str, interval: Interval) -> Body:
    start, end = (min(position, LAST) for position in interval)
    return {
        "bool": {
            "filter": [
                {"term": {"key": key}},
                # Of chunks only: records of documents have no position.
                {"range": {"position": {"gte": start, "lt": end}}},
            ]
        }
    }


def _seen(keys: Sequence[str], readers: Readers) -> Body:
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
        "_source": _SHOWN,
        "track_total_hits": False,
    }


# --- facets


def facets(readers: Readers, filters: Filters, fields: Mapping[str, int]) -> Body:
    """How many documents hold each value of `fields`; of each field so many values at most."""
    documents = [{"term": {"kind": "document"}}, {"range": {"chunks": {"gt": 0}}}]
    return {
        "size": 0,
        "track_total_hits": False,
        "query": {"bool": {"filter": [*documents, *conditions(readers, filters)]}},
        "aggs": {
            field: {"terms": {"field": field, "size": size}} for field, size in fields.items()
        },
    }
