"""Opens the index of one embedder on the cluster: creates it if needed, and refuses one that does not fit."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from opensearchpy import OpenSearch
from opensearchpy.exceptions import RequestError

from connectors.errors import DamagedDataError, NotConfiguredError
from indexing.embedding.embedder import EmbedderIdentity
from indexing.opensearch import errors
from indexing.opensearch.mapping import (
    ADDED_FIELDS,
    FORMAT,
    IndexLayout,
    VectorSettings,
    index_body,
)
from indexing.opensearch.naming import index_name
from indexing.opensearch.searcher import OpenSearchIndex
from indexing.opensearch.writer import OpenSearchIndexWriter
from indexing.text.analysis import Analysis, find_analysis

SHARD_START_SECONDS = 15
"""To wait for the shards of a new index."""


@dataclass(frozen=True, slots=True)
class OpenedIndex:
    """An index that exists and fits."""

    name: str
    vectors: VectorSettings
    """The configured settings, except those fixed when the index was created."""
    analysis: Analysis
    """The one that made its words."""


def open_index(
    client: OpenSearch, prefix: str, identity: EmbedderIdentity, layout: IndexLayout | None = None
) -> OpenSearchIndex:
    """Open the index of this embedder for searching.

    Raises:
        ActionRequiredError: it was created by another version, or the cluster refuses.
        TemporarilyUnavailableError: the cluster is unreachable or incomplete.
    """
    opened = ensure_index(client, index_name(prefix, identity), identity, layout or IndexLayout())
    return OpenSearchIndex(client, opened.name, identity.dimension, opened.vectors, opened.analysis)


def open_writer(
    client: OpenSearch, prefix: str, identity: EmbedderIdentity, layout: IndexLayout | None = None
) -> OpenSearchIndexWriter:
    """Open the index of this embedder for writing. Raises as `open_index`."""
    opened = ensure_index(client, index_name(prefix, identity), identity, layout or IndexLayout())
    add_new_fields(client, opened.name)
    return OpenSearchIndexWriter(
        client, opened.name, identity.dimension, opened.vectors, opened.analysis
    )


def ensure_index(
    client: OpenSearch, name: str, identity: EmbedderIdentity, layout: IndexLayout
) -> OpenedIndex:
    """Open the index of that name, or create it; several may do so at once. Raises as `open_index`."""
    with errors.translate_errors():
        if read_meta(client, name) is None:
            _create(client, name, identity, layout)
        _wait_for_shards(client, name)
        meta = read_meta(client, name)
    if meta is None:
        raise errors.refusal_to_error(404, "index_not_found_exception", name)
    return check_index(name, meta, identity, layout)


def check_index(
    name: str, meta: Mapping[str, Any], identity: EmbedderIdentity, layout: IndexLayout
) -> OpenedIndex:
    """Check the metadata of an index. Raises ActionRequiredError if it does not fit."""
    _check_meta(name, meta, identity)
    vectors = replace(layout.vectors, **meta["vectors"])
    return OpenedIndex(name, vectors, find_analysis(meta["analysis"]))


def read_meta(client: OpenSearch, name: str) -> dict[str, Any] | None:
    """Return the metadata of an index; `None` if it does not exist."""
    found = client.indices.get_mapping(index=name, params={"ignore": 404})
    if "error" in found:
        return None
    (index,) = found.values()
    meta: dict[str, Any] = index["mappings"].get("_meta", {})
    return meta


def add_new_fields(client: OpenSearch, name: str) -> None:
    """Add the fields that an index of an earlier version lacks, and would refuse in records."""
    with errors.translate_errors():
        (index,) = client.indices.get_mapping(index=name).values()
        known = index["mappings"]["properties"]
        if missing := {each: body for each, body in ADDED_FIELDS.items() if each not in known}:
            client.indices.put_mapping(index=name, body={"properties": missing})


def save_model_name(client: OpenSearch, name: str, called: str) -> dict[str, Any]:
    """Save the name of the model as the owner configured it, and return the index's metadata."""
    with errors.translate_errors():
        meta = (read_meta(client, name) or {}) | {"called": called}
        client.indices.put_mapping(index=name, body={"_meta": meta})
    return meta


def _create(client: OpenSearch, name: str, identity: EmbedderIdentity, layout: IndexLayout) -> None:
    try:
        client.indices.create(index=name, body=index_body(name, identity, layout))
    except RequestError as error:
        if error.error != "resource_already_exists_exception":
            raise


def _wait_for_shards(client: OpenSearch, name: str) -> None:
    """Wait for the shards of a new index: it exists before they do, with the status yellow.

    An index that still lacks a shard is opened all the same: the rest of it can be searched.
    """
    (found,) = client.indices.get_settings(index=name).values()
    client.cluster.health(
        index=name,
        params={
            "wait_for_active_shards": found["settings"]["index"]["number_of_shards"],
            "timeout": f"{SHARD_START_SECONDS}s",
            "request_timeout": 2 * SHARD_START_SECONDS,
            "ignore": 408,
        },
    )


def _check_meta(name: str, meta: Mapping[str, Any], identity: EmbedderIdentity) -> None:
    if meta.get("format") != FORMAT:
        raise DamagedDataError(
            f"The index {name} has format {meta.get('format')}; this version of Quarry reads format"
            f" {FORMAT}. Rebuild it: quarry reindex --rebuild. Or delete it and sync again."
        )
    if EmbedderIdentity(**meta["embedder"]) != identity:
        raise NotConfiguredError(
            f"The index {name} was built with the model {meta['embedder']['model']}; the configured model is"
            f" {identity.model}. Their vectors are not comparable. Configure the former model again, or"
            " delete the index and sync again."
        )
