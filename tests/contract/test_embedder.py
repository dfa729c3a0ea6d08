"""What holds for every embedder."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from indexing.embedding.embedder import Embedder, Vectors
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.embedding.openai_embedder import OpenAiEmbedder, OpenAiEmbedderSettings
from indexing.runtime.deadline import Deadline, DeadlineExceededError
from tests.support.embedding_server import embedding_server
from tests.support.models import minilm

TEXTS = [
    "Who approves travel abroad?",
    "The deposit is paid back within thirty days. " * 3,
    "E-1042",
    "有給休暇は年に二十日です。",
    "employees accrue holidays monthly",
]
SOON = 30.0


@contextmanager
def hashing() -> Iterator[Embedder]:
    yield HashingEmbedder()


@contextmanager
def openvino() -> Iterator[Embedder]:
    yield minilm()


@contextmanager
def remote() -> Iterator[Embedder]:
    with embedding_server() as server:
        model = OpenAiEmbedder(OpenAiEmbedderSettings(url=server.url, model="m", batch_size=2))
        yield model
        model.close()


@pytest.fixture(params=[hashing, openvino, remote], scope="module")
def embedder(request: pytest.FixtureRequest) -> Iterator[Embedder]:
    build: Callable[[], AbstractContextManager[Embedder]] = request.param
    with build() as embedder:
        yield embedder


def queries(embedder: Embedder, *texts: str) -> Vectors:
    return embedder.embed_queries(texts, Deadline.after(SOON))


def test_vectors_are_float32_rows_of_length_one(embedder: Embedder) -> None:
    for vectors in (embedder.embed_passages(TEXTS), queries(embedder, *TEXTS)):
        assert vectors.dtype == np.float32
        assert vectors.shape == (len(TEXTS), embedder.identity.dimension)
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


def test_no_texts_have_no_vectors(embedder: Embedder) -> None:
    assert embedder.embed_passages([]).shape == (0, embedder.identity.dimension)
    assert queries(embedder).shape == (0, embedder.identity.dimension)
    assert embedder.count_tokens([]) == []


def test_a_text_has_its_vector_in_any_company_and_order(embedder: Embedder) -> None:
    together = embedder.embed_passages(TEXTS)
    alone = np.concatenate([embedder.embed_passages([text]) for text in TEXTS])
    backwards = embedder.embed_passages(TEXTS[::-1])[::-1]
    assert (together * alone).sum(axis=1).min() >= 0.999
    assert (together * backwards).sum(axis=1).min() >= 0.999


def test_a_question_is_nearest_to_its_own_words(embedder: Embedder) -> None:
    likeness = queries(embedder, *TEXTS) @ embedder.embed_passages(TEXTS).T
    assert likeness.argmax(axis=1).tolist() == list(range(len(TEXTS)))


def test_vectors_are_the_callers_own(embedder: Embedder) -> None:
    first = embedder.embed_passages(TEXTS)
    kept = first.copy()
    embedder.embed_passages(TEXTS[::-1])
    np.testing.assert_array_equal(first, kept)
    first[:] = 0
    assert embedder.embed_passages(TEXTS).any(axis=1).all()


def test_the_identity_stays(embedder: Embedder) -> None:
    before = embedder.identity
    embedder.embed_passages(TEXTS)
    assert embedder.identity == before
    assert all((before.model, before.version, before.precision))


def test_a_long_query_is_cut_off_at_the_limit(embedder: Embedder) -> None:
    long = "approval of travel " * (embedder.max_tokens * 2)
    longer = long + "holidays accrue monthly " * 50
    first, second = queries(embedder, long, longer)
    assert float(first @ second) >= 0.999


def test_a_deadline_that_has_passed_is_reported(embedder: Embedder) -> None:
    with pytest.raises(DeadlineExceededError):
        embedder.embed_queries(TEXTS, Deadline.after(0))


def test_threads_do_not_disturb_each_other(embedder: Embedder) -> None:
    expected = embedder.embed_passages(TEXTS)

    def embedded(place: int) -> float:
        text = TEXTS[place % len(TEXTS)]
        return float(embedder.embed_passages([text])[0] @ expected[place % len(TEXTS)])

    with ThreadPoolExecutor(6) as pool:
        assert min(pool.map(embedded, range(60))) >= 0.999


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(text=st.text(st.characters(), max_size=200))
def test_tokens_are_counted_and_have_ends(embedder: Embedder, text: str) -> None:
    ends = list(embedder.token_ends(text))
    assert ends == sorted(ends)
    assert all(0 < end <= len(text) for end in ends)
    (count,) = embedder.count_tokens([text])
    assert count >= len(ends)
    assert count - len(ends) == embedder.count_tokens([""])[0]


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(text=st.text(st.characters(), min_size=1, max_size=200).filter(lambda text: text.strip()))
def test_every_text_has_a_vector(embedder: Embedder, text: str) -> None:
    (vector,) = queries(embedder, text)
    assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-4)
