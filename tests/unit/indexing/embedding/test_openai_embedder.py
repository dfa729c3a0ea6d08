"""The remote model, over real HTTP, with the failures that endpoints have."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.embedding.openai_embedder import OpenAiEmbedder, OpenAiEmbedderSettings
from indexing.runtime.deadline import Deadline, DeadlineExceededError
from tests.support.embedding_server import EmbeddingServer, Reply, embedding_server

TEXTS = ["holiday rules", "printers on the second floor", "年假", "travel costs"]


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with embedding_server(key="secret") as server:
        yield server


def model(server: EmbeddingServer, **changes: object) -> OpenAiEmbedder:
    settings = OpenAiEmbedderSettings(url=server.url, model="m", key="secret", dimension=64)
    return OpenAiEmbedder(replace(settings, **changes))  # type: ignore[arg-type]


def test_vectors_come_in_batches_in_order_and_of_length_one(server: EmbeddingServer) -> None:
    vectors = model(server, batch_size=3).embed_passages(TEXTS)
    expected = HashingEmbedder(dimension=64).embed_passages(TEXTS)
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
    assert vectors.dtype == np.float32
    assert [request["input"] for request in server.requests] == [TEXTS[:3], TEXTS[3:]]
    assert server.requests[0]["model"] == "m"


def test_prompts_go_before_the_text(server: EmbeddingServer) -> None:
    remote = model(server, query_prompt="query: ", passage_prompt="passage: ")
    remote.embed_queries(["a"], Deadline.after(5))
    remote.embed_passages(["b"])
    assert [request["input"] for request in server.requests] == [["query: a"], ["passage: b"]]
    # "pass-age", ":", "b" and two special tokens; the blank goes with the word.
    assert remote.count_tokens(["b"]) == [6]


def test_the_dimension_is_asked_for_where_it_is_not_given(server: EmbeddingServer) -> None:
    assert model(server, dimension=None).identity.dimension == 64
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_failure_in_passing_is_tried_again(server: EmbeddingServer, status: int) -> None:
    server.replies = [Reply(status)]
    started = time.monotonic()
    model(server).embed_passages(["a"])
    assert time.monotonic() - started >= 0.5
    assert len(server.requests) == 2


def test_retry_after_is_kept(server: EmbeddingServer) -> None:
    server.replies = [Reply(429, headers={"Retry-After": "0.9"})]
    started = time.monotonic()
    model(server).embed_passages(["a"])
    assert time.monotonic() - started >= 0.9


def test_an_endpoint_that_wants_to_be_left_alone_is_not_waited_for(server: EmbeddingServer) -> None:
    server.replies = [Reply(429, headers={"Retry-After": "3600"})]
    with pytest.raises(TemporarilyUnavailableError, match="busy") as raised:
        model(server).embed_passages(["a"])
    assert raised.value.retry_after.total_seconds() == 3600


def test_a_query_is_given_up_when_its_time_is_up(server: EmbeddingServer) -> None:
    server.replies = [Reply(seconds=10)]
    started = time.monotonic()
    with pytest.raises((DeadlineExceededError, TemporarilyUnavailableError)):
        model(server).embed_queries(["a"], Deadline.after(0.2))
    assert time.monotonic() - started < 5
    with pytest.raises(DeadlineExceededError):
        model(server).embed_queries(["a"], Deadline.after(0))


def test_nobody_there_is_worth_another_try() -> None:
    with embedding_server() as gone:
        pass
    with pytest.raises(TemporarilyUnavailableError, match="does not answer"):
        model(gone).embed_queries(["a"], Deadline.after(0.4))


def _answer(*vectors: list[float]) -> str:
    rows = [{"index": index, "embedding": vector} for index, vector in enumerate(vectors)]
    return json.dumps({"data": rows})


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(400, "no such model"), "status 400: no such model"),
        (Reply(200, "<html>"), "not that of an embeddings endpoint"),
        (Reply(200, '{"data": [{}]}'), "not that of an embeddings endpoint"),
        (Reply(200, "[]"), "not that of an embeddings endpoint"),
        (Reply(200, _answer()), "0 vectors came for 1 texts"),
        (Reply(200, _answer([1.0] * 64, [1.0] * 64)), "2 vectors came for 1 texts"),
        (Reply(200, _answer([1.0, 2.0])), "2 numbers came, and 64 are expected"),
        (Reply(200, _answer([0.0] * 64)), "without a length"),
        (Reply(200, _answer([float("nan")] * 64)), "without a length"),
        (Reply(301, "", {"Location": "/elsewhere"}), "not that of an embeddings endpoint"),
    ],
)
def test_what_cannot_be_right_is_said(server: EmbeddingServer, reply: Reply, reason: str) -> None:
    server.replies = [reply]
    with pytest.raises(ActionRequiredError, match=reason):
        model(server).embed_passages(["a"])
    assert len(server.requests) == 1


def test_a_wrong_key_is_for_the_owner(server: EmbeddingServer) -> None:
    with pytest.raises(ActionRequiredError, match=r"status 401.*wrong key.*settings"):
        model(server, key="other").embed_passages(["a"])


def test_a_wrong_address_is_for_the_owner(server: EmbeddingServer) -> None:
    with pytest.raises(ActionRequiredError, match="address"):
        model(server, url="localhost:1/v1")
    with pytest.raises(ActionRequiredError, match="status 404"):
        model(server, url=f"{server.url}/v2").embed_passages(["a"])


def test_a_missing_tokenizer_is_for_the_owner(server: EmbeddingServer, tmp_path: Path) -> None:
    with pytest.raises(ActionRequiredError, match=r"tokenizer\.json"):
        model(server, tokenizer=tmp_path / "none.json")


def test_what_is_too_long_is_cut_off(server: EmbeddingServer) -> None:
    remote = model(server, max_tokens=10)
    remote.embed_queries(["word " * 100], Deadline.after(5))
    (sent,) = server.requests[0]["input"]
    # Two special tokens leave eight words.
    assert sent.split() == ["word"] * 8


def test_many_threads_share_one_model(server: EmbeddingServer) -> None:
    remote = model(server)
    expected = remote.embed_passages(TEXTS)
    with ThreadPoolExecutor(8) as pool:
        for vectors in pool.map(lambda _: remote.embed_passages(TEXTS), range(32)):
            np.testing.assert_array_equal(vectors, expected)
