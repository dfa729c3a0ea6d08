"""Settings and strict mapping of an index on the cluster.

Two kinds of records share one index, so that a document and its chunks lie in one shard and are seen in
one state: *chunks*, which are found, and *documents*, which say which version of their chunks counts and
who may read it.

Text is made into words by `indexing/text/analysis.py` and sent as words separated by spaces; the analyser only
splits them, as the local index does. The cluster's own filters cannot do the same: its Snowball stemmer has
another version, and Unicode normalization needs a plugin that many clusters lack. `words` is searched by
BM25 and keeps frequencies; `plain` keeps the positions of words, for codes, part numbers, names and quoted
phrases.
"""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

from indexing.embedding.embedder import EmbedderIdentity
from indexing.opensearch.naming import write_alias
from indexing.text.analysis import BY_LANGUAGE

Body: TypeAlias = dict[str, Any]

MAX_TOKEN_LENGTH = 1_024
"""UTF-16 units of a word; ours are much shorter, so that none is split."""
FORMAT = 2
"""Version of this mapping; an index of another format is refused."""

Engine: TypeAlias = Literal["lucene", "faiss"]
Quantisation: TypeAlias = Literal["float", "scalar", "byte"]
Search: TypeAlias = Literal["graph", "exact"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorSettings:
    """How vectors are stored and searched."""

    engine: Engine = "lucene"
    quantisation: Quantisation = "float"
    """`float`: as they are; `scalar`: also as the engine's bytes or half floats; `byte`: only as bytes."""
    m: int = 16
    """Neighbors of a node of the HNSW graph (Malkov and Yashunin, 2016)."""
    ef_construction: int = 128
    ef_search: int = 256
    """Candidates of a graph search in faiss; lucene uses the number of hits."""
    search: Search = "graph"
    """`exact`: compare with every vector that the user may see, which is slow for many."""


FIXED_SETTINGS = ("engine", "quantisation", "m", "ef_construction")
"""Settings that are fixed when an index is created and stored in it. The others may change at any time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexLayout:
    shards: int = 1
    replicas: int = 0
    refresh_interval: str = "10s"
    """Writers refresh the index themselves; this is for what a killed writer left."""
    vectors: VectorSettings = field(default_factory=VectorSettings)


def index_body(name: str, identity: EmbedderIdentity, layout: IndexLayout) -> Body:
    """Return the body of the request that creates the index."""
    return {
        "settings": _settings(layout),
        "mappings": _mapping(identity, layout.vectors),
        "aliases": {write_alias(name): {}},
    }


def _settings(layout: IndexLayout) -> Body:
    return {
        "index": {
            "number_of_shards": layout.shards,
            "number_of_replicas": layout.replicas,
            "refresh_interval": layout.refresh_interval,
            "knn": True,
            "similarity": {"default": {"type": "BM25", "k1": 1.2, "b": 0.75}},
            "analysis": {
                "tokenizer": {
                    "spaces": {"type": "whitespace", "max_token_length": MAX_TOKEN_LENGTH},
                },
                "analyzer": {"ours": {"type": "custom", "tokenizer": "spaces"}},
            },
        }
    }


def _mapping(identity: EmbedderIdentity, vectors: VectorSettings) -> Body:
    return {
        "dynamic": "strict",
        "_meta": {
            "format": FORMAT,
            "embedder": asdict(identity),
            "analysis": BY_LANGUAGE.fingerprint,
            "vectors": {name: getattr(vectors, name) for name in FIXED_SETTINGS},
        },
        "_routing": {"required": True},
        "properties": _COMMON_FIELDS
        | _DOCUMENT_FIELDS
        | _CHUNK_FIELDS
        | _vector_field(identity.dimension, vectors),
    }


def _unsearched(kind: str) -> Body:
    """Return a field that is not searched, only read."""
    return {"type": kind, "index": False}


ADDED_FIELDS: Body = {
    "projects": {"type": "keyword"},
    "personas": {"type": "keyword"},
}
"""Fields that an index of this format lacks if it was created before there were any; see `open_index`."""

_COMMON_FIELDS: Body = ADDED_FIELDS | {
    "kind": {"type": "keyword"},
    "key": {"type": "keyword"},
    "version": {"type": "keyword"},
    "readers": {"type": "keyword"},
    "source": {"type": "keyword"},
    "media_type": {"type": "keyword"},
    "sets": {"type": "keyword"},
    "tags": {"type": "keyword"},
    "people": {"type": "keyword"},
    "created": {"type": "long"},
    "updated": {"type": "long"},
    "boost": _unsearched("double"),
}

_DOCUMENT_FIELDS: Body = {
    "id": {"type": "keyword"},
    "month": {"type": "keyword"},
    "person": {"type": "keyword"},
    "languages": {"type": "keyword"},
    "generation": _unsearched("long"),
    "chunks": _unsearched("integer"),
    "hash": {"type": "keyword", "index": False, "doc_values": False},
    "unfinished": {"type": "boolean"},
    "leaving": {"type": "object", "enabled": False},
    "said": {"type": "object", "enabled": False},
}

_CHUNK_FIELDS: Body = {
    "chunk": {"type": "keyword", "index": False},
    "position": {"type": "integer"},
    "words": {"type": "text", "analyzer": "ours", "index_options": "freqs"},
    "plain": {"type": "text", "analyzer": "ours", "norms": False},
    "place": {"type": "object", "enabled": False},
}


def _vector_field(dimension: int, vectors: VectorSettings) -> Body:
    """Return the vector field; the inner product of unit vectors is their cosine."""
    parameters: Body = {"m": vectors.m, "ef_construction": vectors.ef_construction}
    if vectors.quantisation == "scalar":
        parameters["encoder"] = {"name": "sq"}
    if vectors.engine == "faiss":
        parameters["ef_search"] = vectors.ef_search
    return {
        "vector": {
            "type": "knn_vector",
            "dimension": dimension,
            "data_type": "byte" if vectors.quantisation == "byte" else "float",
            "method": {
                "name": "hnsw",
                "engine": vectors.engine,
                "space_type": "innerproduct",
                "parameters": parameters,
            },
        }
    }
