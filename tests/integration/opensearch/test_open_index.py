"""The index of an embedder: created once, by whoever comes first, and refused where it does not fit."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from opensearchpy import OpenSearch

from backend.container import Container
from backend.settings import Settings
from connectors.errors import ActionRequiredError, DamagedDataError
from indexing.index.protocols import Filters, Written
from indexing.index.versions import IndexVersionReplacedError
from indexing.opensearch import mapping
from indexing.opensearch.mapping import IndexLayout, VectorSettings
from indexing.opensearch.naming import index_name
from indexing.opensearch.open_index import ensure_index, open_writer
from tests.support.chunks import IDENTITY, document
from tests.support.databases import sqlite_in
from tests.support.embedding_server import embedding_server
from tests.support.index_engines import PUBLIC, soon
from tests.support.store import document as stored_document
from tests.support.store import store_at


def test_any_number_may_open_what_is_not_there_yet(client: OpenSearch, prefix: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        writers = list(pool.map(lambda _: open_writer(client, prefix, IDENTITY), range(8)))
        written = list(
            pool.map(
                lambda numbered: numbered[1].write([document(f"{numbered[0]}", "text")]),
                enumerate(writers),
            )
        )
    assert written == [Written(replaced=1, chunks=1)] * 8
    assert [known.id for known in writers[0].scan()] == [f"{n}" for n in range(8)]


def test_an_index_that_was_lost_is_not_replaced_by_an_empty_one_for_search(
    client: OpenSearch, url: str, prefix: str, tmp_path: Path
) -> None:
    with embedding_server() as server:
        settings = Settings(
            home=tmp_path, embedding_url=server.url, opensearch_url=url, opensearch_prefix=prefix
        )
        _ = Container(settings).engine.index
        with store_at(sqlite_in(tmp_path), "desk") as store:
            store.hold(stored_document("desk:a"))
        index = Container(settings).engine.index
        client.indices.delete(index=f"{prefix}-*")
        with pytest.raises(IndexVersionReplacedError, match="removed"):
            index.facets(Filters(), PUBLIC, soon())
        with pytest.raises(DamagedDataError, match=r"1 in the database.*quarry reindex --rebuild"):
            _ = Container(settings).engine.index


def test_each_embedder_has_an_index_of_its_own(client: OpenSearch, prefix: str) -> None:
    other = replace(IDENTITY, version="2")
    open_writer(client, prefix, IDENTITY).write([document("a", "text")])
    assert list(open_writer(client, prefix, other).scan()) == []


def test_an_index_of_another_making_is_refused(
    client: OpenSearch, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = index_name(prefix, IDENTITY)
    ensure_index(client, name, IDENTITY, IndexLayout())
    with pytest.raises(
        ActionRequiredError, match="built with the model test; the configured model is other"
    ):
        ensure_index(client, name, replace(IDENTITY, model="other"), IndexLayout())
    client.indices.create(index=f"{prefix}-strange")
    with pytest.raises(ActionRequiredError, match="has format None"):
        ensure_index(client, f"{prefix}-strange", IDENTITY, IndexLayout())
    monkeypatch.setattr(mapping, "FORMAT", mapping.FORMAT + 1)
    with pytest.raises(
        ActionRequiredError, match="has format 3; this version of Quarry reads format 2"
    ):
        ensure_index(client, f"{prefix}-newer", IDENTITY, IndexLayout())


@pytest.mark.parametrize("quantisation", ["float", "scalar", "byte"])
def test_an_index_keeps_the_vectors_that_it_was_laid_out_for(
    client: OpenSearch, prefix: str, quantisation: mapping.Quantisation
) -> None:
    layout = IndexLayout(vectors=VectorSettings(quantisation=quantisation, m=8))
    open_writer(client, prefix, IDENTITY, layout)
    # The settings at the time of creation count, whatever is configured later.
    writer = open_writer(client, prefix, IDENTITY)
    written = document("a", *(f"text {n}" for n in range(20)))
    writer.write([written])
    (exported,) = writer.export()
    cosines = (exported.vectors * written.vectors).sum(axis=1)
    # A component of a byte vector is off by 1 / 254 at most, and by half of that on average.
    assert cosines.min() > (0.999 if quantisation == "byte" else 0.999_999)
    assert np.linalg.norm(exported.vectors, axis=1) == pytest.approx(1.0, abs=1e-6)
