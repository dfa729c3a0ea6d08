"""What real servers refuse, and which error is raised for it."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from opensearchpy import OpenSearch

from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.index.protocols import Amend, Delete, Written
from indexing.opensearch.client import OpenSearchSettings, connect, request_timeout
from indexing.opensearch.errors import translate_errors
from indexing.opensearch.mapping import VectorSettings
from indexing.opensearch.naming import index_name
from indexing.opensearch.open_index import open_writer
from indexing.opensearch.writer import OpenSearchIndexWriter
from indexing.runtime.deadline import Deadline, DeadlineExceededError
from indexing.text.analysis import BY_LANGUAGE
from tests.support.chunks import IDENTITY, document, vectors


@pytest.fixture
def writer(client: OpenSearch, prefix: str) -> OpenSearchIndexWriter:
    return open_writer(client, prefix, IDENTITY)


@pytest.fixture
def index(prefix: str) -> str:
    """The name of the index that the writer created."""
    return index_name(prefix, IDENTITY)


def test_an_index_that_was_removed_is_not_brought_back_by_a_write(
    client: OpenSearch, writer: OpenSearchIndexWriter, index: str
) -> None:
    client.indices.delete(index=index)
    with pytest.raises(ActionRequiredError, match="does not exist"):
        writer.write([document("a", "one")])
    with pytest.raises(ActionRequiredError, match="does not exist"):
        list(writer.scan())
    assert not client.indices.exists(index=index)


def test_an_index_that_is_removed_during_a_write_is_not_brought_back(
    client: OpenSearch, writer: OpenSearchIndexWriter, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = client.bulk

    def bulk(**request: object) -> object:
        client.indices.delete(index=index, params={"ignore_unavailable": "true"})
        return send(**request)

    monkeypatch.setattr(client, "bulk", bulk)
    with pytest.raises(ActionRequiredError, match="does not exist"):
        writer.write([document("a", "one")])
    assert not client.indices.exists(index=index)


def test_an_error_names_the_document_that_the_index_refuses(
    client: OpenSearch, writer: OpenSearchIndexWriter, index: str
) -> None:
    narrow = OpenSearchIndexWriter(client, index, 7, VectorSettings(), BY_LANGUAGE)
    short = document("short", "three", vectors_of=vectors(["three"], 7))
    writer.write([document("good", "one")])
    with pytest.raises(ActionRequiredError, match=r"^short: .*dimension"):
        narrow.write([short])
    assert [known.id for known in writer.scan()] == ["good"]
    assert writer.write([document("short", "three")]) == Written(replaced=1, chunks=1)


@contextmanager
def block(client: OpenSearch, index: str, name: str) -> Iterator[None]:
    client.indices.put_settings(index=index, body={f"index.blocks.{name}": True})
    yield
    client.indices.put_settings(index=index, body={f"index.blocks.{name}": None})


def test_a_full_disk_has_a_readable_error(
    client: OpenSearch, writer: OpenSearchIndexWriter, index: str
) -> None:
    """The block is the one that the cluster sets at the flood stage; it permits only deletions."""
    writer.write([document("a", "one")])
    with block(client, index, "read_only_allow_delete"):
        for change in (
            document("a", "two"),
            document("b", "two"),
            Amend(document_id="a", boost=2.0),
        ):
            with pytest.raises(ActionRequiredError, match="disk of the cluster is nearly full"):
                writer.write([change])
    assert writer.write([document("a", "two"), Delete("b")]) == Written(
        replaced=1, chunks=1, missing=("b",)
    )


def test_a_write_block_has_a_readable_error(
    client: OpenSearch, writer: OpenSearchIndexWriter, index: str
) -> None:
    with (
        block(client, index, "write"),
        pytest.raises(ActionRequiredError, match="refuses to write"),
    ):
        writer.write([document("a", "one")])
    assert writer.write([document("a", "one")]) == Written(replaced=1, chunks=1)


# Servers that are not OpenSearch or do not answer


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a listener that accepts connections and sends nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def test_a_timeout_after_the_deadline_is_a_deadline_error(silent: str) -> None:
    client = connect(OpenSearchSettings(urls=(silent,)))
    deadline = Deadline.after(0.3)
    with pytest.raises(DeadlineExceededError), translate_errors(deadline):
        client.info(params=request_timeout(deadline))
    client.close()


def test_a_server_that_does_not_answer_may_later(silent: str) -> None:
    client = connect(OpenSearchSettings(urls=(silent,), timeout=0.3))
    with (
        pytest.raises(TemporarilyUnavailableError, match="did not answer in time"),
        translate_errors(),
    ):
        client.info()
    client.close()


class _Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<h1>Welcome to our intranet</h1>")

    def log_message(self, *_: object) -> None:
        pass


def test_a_web_page_is_no_cluster() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Page)
    thread = Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    client = connect(OpenSearchSettings(urls=(f"http://127.0.0.1:{server.server_port}",)))
    with pytest.raises(ActionRequiredError, match="Check the address"), translate_errors():
        client.info()
    client.close()
    server.shutdown()
    server.server_close()
    thread.join()
