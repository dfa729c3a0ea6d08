"""What documents, chunks and indexes are called on the cluster."""

import hashlib
import re
from base64 import urlsafe_b64encode
from dataclasses import astuple

from indexing.embedding.embedder import EmbedderIdentity

_UNFIT = re.compile(r"[^a-z0-9]+")
_SLUG = 40


def document_key(document_id: str) -> str:
    """43 characters for an id of any script and length: its SHA-256 in base64url.

    Two ids with one key would be a collision of SHA-256. It names the document's record, and routes
    that record and all chunks of the document to one shard.
    """
    digest = hashlib.sha256(document_id.encode()).digest()
    return urlsafe_b64encode(digest).rstrip(b"=").decode()


def chunk_id(key: str, version: str, position: int) -> str:
    """At most 80 characters; no part holds a dot, so that no two chunks share an id."""
    return f"{key}.{version}.{position}"


def key_of(chunk: str) -> str:
    """Of the document that the chunk of this id belongs to."""
    return chunk.partition(".")[0]


def version_of(chunk: str) -> str:
    return chunk.split(".")[1]


def edition_name(prefix: str, identity: EmbedderIdentity) -> str:
    """The index that holds the vectors of one embedder."""
    slug = _UNFIT.sub("-", identity.model.lower()).strip("-")[-_SLUG:].strip("-")
    told = "\0".join(map(str, astuple(identity)))
    return f"{prefix}-{slug or 'model'}-{hashlib.sha256(told.encode()).hexdigest()[:8]}"


def written_alias(index: str) -> str:
    """Stands before one index for as long as it is there. Writes name it: by the index's own name they
    would bring an index back that was removed meanwhile, without its mapping."""
    return f"{index}-written"


def active_alias(prefix: str) -> str:
    """Stands before the index version that is searched."""
    return f"{prefix}-active"


def building_alias(prefix: str) -> str:
    """Stands before the index version that is being built, where there is one."""
    return f"{prefix}-building"
