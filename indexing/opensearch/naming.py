"""Names of documents, chunks and indexes on the cluster."""

import hashlib
import re
from base64 import urlsafe_b64encode

from indexing.embedding.embedder import EmbedderIdentity

_NOT_ALLOWED = re.compile(r"[^a-z0-9]+")
_SLUG_LENGTH = 40


def document_key(document_id: str) -> str:
    """Return 43 characters for an id of any script and length: its SHA-256 in base64url.

    The key is the id of the document's record, and routes the record and all chunks of the document to one
    shard.
    """
    digest = hashlib.sha256(document_id.encode()).digest()
    return urlsafe_b64encode(digest).rstrip(b"=").decode()


def chunk_id(key: str, version: str, position: int) -> str:
    """Return at most 80 characters; no part contains a dot, so that no two chunks share an id."""
    return f"{key}.{version}.{position}"


def key_of(chunk: str) -> str:
    """Return the document key of a chunk id."""
    return chunk.partition(".")[0]


def version_of(chunk: str) -> str:
    return chunk.split(".")[1]


def index_name(prefix: str, identity: EmbedderIdentity) -> str:
    """Return the name of the index for the vectors of one embedder."""
    slug = _NOT_ALLOWED.sub("-", identity.model.lower()).strip("-")[-_SLUG_LENGTH:].strip("-")
    identifying = f"{identity.model}\0{identity.version}\0{identity.dimension}"
    return f"{prefix}-{slug or 'model'}-{hashlib.sha256(identifying.encode()).hexdigest()[:8]}"


def write_alias(index: str) -> str:
    """Return the alias of one index that writes use.

    A write to the index's own name would create the index again, without its mapping, after it was removed.
    """
    return f"{index}-written"


def active_alias(prefix: str) -> str:
    """Return the alias of the index version that is searched."""
    return f"{prefix}-active"


def building_alias(prefix: str) -> str:
    """Return the alias of the index version that is being built, if there is one."""
    return f"{prefix}-building"
