"""Words read as filters in a search of the cluster: the same expectations as on the local index."""

import secrets
from collections.abc import Iterator

import pytest

from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.index.protocols import Index
from indexing.opensearch.client import OpenSearchSettings, connect
from indexing.opensearch.open_index import open_index, open_writer
from tests.support.inferred_filters import (
    CORPUS,
    FINANCE,
    READ_BY_ALL,
    READ_BY_FINANCE,
    ReadQuery,
    check_hidden,
    check_hidden_dates,
    check_preferred,
)
from tests.support.opensearch_server import SERVERS, url_of
from tests.support.search import one_chunk_documents


@pytest.fixture(scope="module", params=SERVERS)
def index(request: pytest.FixtureRequest) -> Iterator[Index]:
    client = connect(OpenSearchSettings(urls=(url_of(request.param),)))
    prefix, identity = f"t-{secrets.token_hex(6)}", HashingEmbedder().identity
    open_writer(client, prefix, identity).write(one_chunk_documents(CORPUS))
    with open_index(client, prefix, identity) as opened:
        yield opened
    client.indices.delete(index=f"{prefix}-*")
    client.close()


@pytest.mark.parametrize("one", READ_BY_ALL, ids=str)
def test_what_passes_the_filter_stands_first_and_nothing_is_lost(
    index: Index, one: ReadQuery
) -> None:
    check_preferred(index, one)


@pytest.mark.parametrize("one", READ_BY_FINANCE, ids=str)
def test_a_name_that_the_asker_may_not_see_is_no_name(index: Index, one: ReadQuery) -> None:
    check_hidden(index, one)
    check_preferred(index, one, FINANCE)


def test_a_date_prefers_only_what_the_asker_may_read(index: Index) -> None:
    check_hidden_dates(index)
