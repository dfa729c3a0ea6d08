"""A server of each version, and an index prefix that is deleted after the test."""

import secrets
from collections.abc import Iterator

import pytest
from opensearchpy import OpenSearch

from indexing.opensearch.client import OpenSearchSettings, connect
from tests.support.opensearch_server import SERVERS, url_of


@pytest.fixture(params=SERVERS)
def url(request: pytest.FixtureRequest) -> str:
    """The address of the shared server."""
    return url_of(request.param)


@pytest.fixture
def client(url: str) -> Iterator[OpenSearch]:
    client = connect(OpenSearchSettings(urls=(url,)))
    yield client
    client.close()


@pytest.fixture
def prefix(client: OpenSearch) -> Iterator[str]:
    """A prefix of indexes that are deleted afterwards."""
    name = f"t-{secrets.token_hex(6)}"
    yield name
    client.indices.delete(index=f"{name}-*")
