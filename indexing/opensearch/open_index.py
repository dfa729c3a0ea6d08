"""Open the index of one embedder on the cluster: made where there is none, refused where it does not fit."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from opensearchpy import OpenSearch
from opensearchpy.exceptions import RequestError

from connectors.errors import ActionRequiredError
from indexing.embedding.embedder import EmbedderIdentity
from indexing.opensearch import errors
from indexing.opensearch.mapping import FORMAT, IndexLayout, VectorSettings, index_body
from indexing.opensearch.naming import edition_name
from indexing.opensearch.searcher import OpenSearchIndex
from indexing.opensearch.writer import OpenSearchIndexWriter
from indexing.text import tokenizer

STARTING = 15
"""Seconds that are waited for the shards of a new index."""


@dataclass(frozen=True, slots=True)
class Laid:
    """An index that is there and fits."""

    name: str
    vectors: VectorSettings
    """As they are set now, but for what was fixed when the index was made."""


def open_index(
    client: OpenSearch, prefix: str, identity: EmbedderIdentity, layout: IndexLayout | None = None
) -> OpenSearchIndex:
    """The index of this embedder, for askers.

    Raises:
        ActionRequiredError: it was made by another version or is refused; the message says what to do.
        TemporarilyUnavailableError: the cluster cannot be reached or is not whole.
    """
    laid = lay(client, edition_name(prefix, identity), identity, layout or IndexLayout())
    return OpenSearchIndex(client, laid.name, identity.dimension, laid.vectors)


def open_writer(
    client: OpenSearch, prefix: str, identity: EmbedderIdentity, layout: IndexLayout | None = None
) -> OpenSearchIndexWriter:
    """The index of this embedder, for the pipeline.

    Raises:
        ActionRequiredError: it was made by another version or is refused; the message says what to do.
        TemporarilyUnavailableError: the cluster cannot be reached or is not whole.
    """
    laid = lay(client, edition_name(prefix, identity), identity, layout or IndexLayout())
    return OpenSearchIndexWriter(client, laid.name, identity.dimension, laid.vectors)


def lay(client: OpenSearch, name: str, identity: EmbedderIdentity, layout: IndexLayout) -> Laid:
    """The index of that name, made if there is none; several may do so at once. Raises as `open_writer`."""
    with errors.named_errors():
        if meta_of(client, name) is None:
            _make(client, name, identity, layout)
        _await_start(client, name)
        meta = meta_of(client, name)
    if meta is None:
        raise errors.of_refusal(404, "index_not_found_exception", name)
    return fitting(name, meta, identity, layout)


def fitting(
    name: str, meta: Mapping[str, Any], identity: EmbedderIdentity, layout: IndexLayout
) -> Laid:
    """The index that says `meta` of itself. Raises ActionRequiredError where it does not fit."""
    _check(name, meta, identity)
    return Laid(name, replace(layout.vectors, **meta["vectors"]))


def meta_of(client: OpenSearch, name: str) -> dict[str, Any] | None:
    """What the index says of itself; `None` where there is none."""
    found = client.indices.get_mapping(index=name, params={"ignore": 404})
    if "error" in found:
        return None
    (index,) = found.values()
    meta: dict[str, Any] = index["mappings"].get("_meta", {})
    return meta


def note_called(client: OpenSearch, name: str, called: str) -> dict[str, Any]:
    """Write down how its owner names the model of the index, and tell what it says of itself now."""
    with errors.named_errors():
        meta = (meta_of(client, name) or {}) | {"called": called}
        client.indices.put_mapping(index=name, body={"_meta": meta})
    return meta


def _make(client: OpenSearch, name: str, identity: EmbedderIdentity, layout: IndexLayout) -> None:
    try:
        client.indices.create(index=name, body=index_body(name, identity, layout))
    except RequestError as error:
        if error.error != "resource_already_exists_exception":
            raise


def _await_start(client: OpenSearch, name: str) -> None:
    """A new index is there before its shards are, and is called yellow even then.

    One that lacks a shard for longer is opened all the same: the rest of it can be searched.
    """
    (found,) = client.indices.get_settings(index=name).values()
    client.cluster.health(
        index=name,
        params={
            "wait_for_active_shards": found["settings"]["index"]["number_of_shards"],
            "timeout": f"{STARTING}s",
            "request_timeout": 2 * STARTING,
            "ignore": 408,
        },
    )


def _check(name: str, meta: Mapping[str, Any], identity: EmbedderIdentity) -> None:
    if meta.get("format") != FORMAT:
        raise ActionRequiredError(
            f"The index {name} is of format {meta.get('format')}; this version of Quarry reads format"
            f" {FORMAT}. Build it anew: quarry reindex --rebuild. Or remove it and sync again."
        )
    if meta["embedder"] != asdict(identity):
        raise ActionRequiredError(
            f"The index {name} was made with the model {meta['embedder']['model']}; set is"
            f" {identity.model}. Their vectors do not compare. Set the former model again, or remove the"
            " index and sync again."
        )
    if meta["analysis"] != tokenizer.fingerprint():
        raise ActionRequiredError(
            f"The index {name} holds words as another version of Quarry makes them; they would not be"
            " found. Build it anew: quarry reindex --rebuild."
        )
