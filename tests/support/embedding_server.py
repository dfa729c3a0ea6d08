"""An OpenAI-compatible embeddings endpoint on this machine, with failures to order."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from indexing.embedding.hash_embedder import HashingEmbedder


@dataclass(frozen=True, slots=True)
class Reply:
    """What the endpoint says in place of vectors."""

    status: int = 200
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    """It waits so long before, unless it is shut down."""


@dataclass
class EmbeddingServer:
    """Serves vectors of `HashingEmbedder`, three times their length, in the wrong order."""

    url: str
    key: str | None = None
    replies: list[Reply] = field(default_factory=list)
    """Given one by one, before it begins to serve."""
    requests: list[dict[str, Any]] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)
    seconds: float = 0.0
    """Every answer takes so long, at least."""

    def reply(self, body: dict[str, Any], authorization: str | None) -> Reply:
        self.requests.append(body)
        if self.key is not None and authorization != f"Bearer {self.key}":
            return Reply(401, '{"error": {"message": "wrong key"}}')
        if self.replies:
            return self.replies.pop(0)
        return Reply(body=embeddings(body["input"]))


def embeddings(texts: list[str]) -> str:
    vectors = 3 * HashingEmbedder(dimension=64, max_tokens=10_000).embed_passages(texts)
    rows = [
        {"object": "embedding", "index": index, "embedding": vector.tolist()}
        for index, vector in enumerate(vectors)
    ]
    return json.dumps({"object": "list", "data": rows[::-1]})


@contextmanager
def embedding_server(key: str | None = None) -> Iterator[EmbeddingServer]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            said = Reply(404)
            if self.path == "/v1/embeddings":
                said = state.reply(body, self.headers["Authorization"])
            state.closing.wait(max(said.seconds, state.seconds))
            self.send_response(said.status)
            for name, value in said.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(said.body.encode())))
            self.end_headers()
            with suppress(BrokenPipeError, ConnectionResetError):  # who asked may be gone
                self.wfile.write(said.body.encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Tests speak for themselves."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state = EmbeddingServer(url=f"http://127.0.0.1:{server.server_port}/v1", key=key)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield state
    finally:
        state.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()
