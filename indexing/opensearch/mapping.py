"""How the index is laid out on the cluster: settings and a strict mapping; pure.

Two kinds of records share one index, so that a document and its chunks lie in one shard and are seen in
one state: *chunks*, which are found, and *documents*, which say which version of their chunks counts and
who may read it.

Words are made by `indexing/text/tokenizer.py` on our side and sent with a space between them; the analyser takes
them as they are, just as the local index does. A chain of the cluster's own filters cannot yield the same:
its Snowball stemmer is of another version, and Unicode normalisation needs a plugin that many clusters
lack. `words` is searched by BM25 and keeps frequencies; `plain` keeps every word at its place, for codes,
part numbers, names and quoted phrases.
"""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

from indexing.embedding.embedder import EmbedderIdentity
from indexing.opensearch.naming import written_alias
from indexing.text import tokenizer

Body: TypeAlias = dict[str, Any]

LONGEST_TOKEN = 1_024
"""UTF-16 units of a word; ours end well before, and none must be cut."""
FORMAT = 2
"""Of what this module lays out; an index of another format is refused."""

Engine: TypeAlias = Literal["lucene", "faiss"]
Quantisation: TypeAlias = Literal["float", "scalar", "byte"]
Search: TypeAlias = Literal["graph", "exact"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorSettings:
    """How vectors are kept and searched."""

    engine: Engine = "lucene"
    quantisation: Quantisation = "float"
    """`float`: as they are; `scalar`: the engine's own bytes or half floats beside them; `byte`: as bytes only."""
    m: int = 16
    """Neighbours of a node of the HNSW graph (Malkov and Yashunin, 2016)."""
    ef_construction: int = 128
    ef_search: int = 256
    """Candidates that the search of a graph keeps; read by faiss, lucene takes as many as it is asked for."""
    search: Search = "graph"
    """`exact`: a query is compared with every vector that its asker may see; right, and slow where they are many."""


LAID_OUT = ("engine", "quantisation", "m", "ef_construction")
"""What is fixed once an index is made; it tells so itself. The rest may be set anew at any time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexLayout:
    shards: int = 1
    replicas: int = 0
    refresh_interval: str = "10s"
    """Writes make themselves visible; this is only for what a killed writer left."""
    vectors: VectorSettings = field(default_factory=VectorSettings)


def index_body(name: str, identity: EmbedderIdentity, layout: IndexLayout) -> Body:
    """Of the request that creates an index version of that name."""
    return {
        "settings": _settings(layout),
        "mappings": _mapping(identity, layout.vectors),
        "aliases": {written_alias(name): {}},
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
                    "spaces": {"type": "whitespace", "max_token_length": LONGEST_TOKEN},
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
            "analysis": tokenizer.fingerprint(),
            "vectors": {name: getattr(vectors, name) for name in LAID_OUT},
        },
        "_routing": {"required": True},
        "properties": _SHARED | _OF_DOCUMENTS | _OF_CHUNKS | _vector(identity.dimension, vectors),
    }


def _told_only(kind: str) -> Body:
    """Not searched; read from columns or from the source."""
    return {"type": kind, "index": False}


_SHARED: Body = {
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
    "boost": _told_only("double"),
}

_OF_DOCUMENTS: Body = {
    "id": {"type": "keyword"},
    "month": {"type": "keyword"},
    "person": {"type": "keyword"},
    "generation": _told_only("long"),
    "chunks": _told_only("integer"),
    "hash": {"type": "keyword", "index": False, "doc_values": False},
    "unfinished": {"type": "boolean"},
    "leaving": {"type": "object", "enabled": False},
    "said": {"type": "object", "enabled": False},
}

_OF_CHUNKS: Body = {
    "chunk": {"type": "keyword", "index": False},
    "position": {"type": "integer"},
    "words": {"type": "text", "analyzer": "ours", "index_options": "freqs"},
    "plain": {"type": "text", "analyzer": "ours", "norms": False},
    "place": {"type": "object", "enabled": False},
}


def _vector(dimension: int, vectors: VectorSettings) -> Body:
    """Inner product of unit vectors, which is their cosine."""
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
