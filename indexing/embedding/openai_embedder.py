"""Embeds with a model behind any OpenAI-compatible `/v1/embeddings`."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from connectors.errors import NotConfiguredError, TemporarilyUnavailableError
from indexing.embedding.embedder import EmbedderIdentity, Vectors
from indexing.embedding.token_counting import (
    EstimatedTokenCounter,
    ModelTokenizer,
    TokenCounter,
    replace_surrogates,
)
from indexing.runtime.deadline import Deadline

_FIRST_PAUSE = 0.5
_LAST_PAUSE = 4.0
"""Seconds before the second and before the last of five tries, doubling between."""
_LONGEST_WAIT = 30.0
"""Where an endpoint asks for more, the caller has to try again later."""
_BUSY = frozenset({408, 409, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAiEmbedderSettings:
    url: str
    """Up to and including `/v1`."""
    model: str
    key: str | None = None
    dimension: int | None = None
    """Of the vectors; requested from the endpoint where it is not given."""
    max_tokens: int = 512
    tokenizer: Path | None = None
    """A tokenizer.json of the model; without one tokens are estimated, rather too many."""
    query_prompt: str = ""
    passage_prompt: str = ""
    batch_size: int = 32
    """Texts in one request."""
    timeout: float = 60.0
    """Seconds for one request."""


class OpenAiEmbedder:
    """An Embedder by an HTTP endpoint. Thread-safe.

    Texts longer than `max_tokens` are cut off here, since endpoints refuse them or cut in silence.
    A request that fails for a moment is tried five times, at the rate the endpoint asks for.
    """

    def __init__(self, settings: OpenAiEmbedderSettings) -> None:
        """Ask the endpoint for the dimension, where the settings do not give it.

        Raises:
            NotConfiguredError: the address is not valid, or the endpoint refuses.
            TemporarilyUnavailableError: the endpoint does not answer.
        """
        if not settings.url.startswith(("http://", "https://")):
            raise NotConfiguredError(f"Not the address of an embedding endpoint: {settings.url!r}.")
        self._settings = settings
        self._tokens = _open_token_counter(settings.tokenizer)
        headers = {"Authorization": f"Bearer {settings.key}"} if settings.key else {}
        self._client = httpx.Client(headers=headers, timeout=settings.timeout)
        self._dimension = settings.dimension or self._request_dimension()

    @property
    def identity(self) -> EmbedderIdentity:
        settings = self._settings
        return EmbedderIdentity(
            model=settings.model,
            version=f"remote {settings.query_prompt!r} {settings.passage_prompt!r}",
            precision="remote",
            dimension=self._dimension,
        )

    @property
    def max_tokens(self) -> int:
        return self._settings.max_tokens

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return self._tokens.count_tokens([self._settings.passage_prompt + text for text in texts])

    def token_ends(self, text: str) -> Sequence[int]:
        return self._tokens.token_ends(text)

    def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> Vectors:
        return self._embed([self._settings.query_prompt + text for text in texts], deadline)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        unlimited = Deadline.after(math.inf)
        return self._embed([self._settings.passage_prompt + text for text in texts], unlimited)

    def close(self) -> None:
        self._client.close()

    def _embed(self, texts: Sequence[str], deadline: Deadline) -> Vectors:
        deadline.check()
        vectors = np.empty((len(texts), self._dimension), dtype=np.float32)
        for start in range(0, len(texts), self._settings.batch_size):
            batch = [self._cut(text) for text in texts[start : start + self._settings.batch_size]]
            vectors[start : start + len(batch)] = self._check_and_normalize(
                self._request_vectors(batch, deadline)
            )
        return vectors

    def _cut(self, text: str) -> str:
        """Cut off the tokens over the limit, and then those that the cut itself adds."""
        text = replace_surrogates(text)
        while (over := self._tokens.count_tokens([text])[0] - self._settings.max_tokens) > 0:
            ends = self._tokens.token_ends(text)
            if over >= len(ends):
                break
            text = text[: ends[-over - 1]]
        return text

    def _request_dimension(self) -> int:
        return len(self._request_vectors(["dimension"], Deadline.after(self._settings.timeout))[0])

    def _request_vectors(self, texts: list[str], deadline: Deadline) -> list[list[float]]:
        """Request the vectors of one batch, in the order of the texts, as the endpoint gives them."""
        response = self._request(texts, deadline)
        try:
            rows = sorted(response.json()["data"], key=lambda row: int(row["index"]))
            vectors = [[float(value) for value in row["embedding"]] for row in rows]
        except (KeyError, TypeError, ValueError) as error:
            raise self._error("its response is not that of an embeddings endpoint") from error
        if len(vectors) != len(texts):
            raise self._error(f"{len(vectors)} vectors came for {len(texts)} texts")
        return vectors

    def _request(self, texts: list[str], deadline: Deadline) -> httpx.Response:
        body: dict[str, Any] = {
            "model": self._settings.model,
            "input": texts,
            "encoding_format": "float",
        }
        pause = _FIRST_PAUSE
        while True:
            deadline.check()
            outcome = self._send(body, deadline)
            if isinstance(outcome, httpx.Response):
                return outcome
            deadline.check()
            wait = max(pause, outcome.retry_after.total_seconds())
            if pause > _LAST_PAUSE or wait > min(deadline.remaining(), _LONGEST_WAIT):
                outcome.retry_after = max(outcome.retry_after, timedelta(seconds=_LONGEST_WAIT))
                raise outcome
            time.sleep(wait)
            pause *= 2

    def _send(
        self, body: dict[str, Any], deadline: Deadline
    ) -> httpx.Response | TemporarilyUnavailableError:
        url = f"{self._settings.url.rstrip('/')}/embeddings"
        try:
            timeout = max(0.001, min(self._settings.timeout, deadline.remaining()))
            response = self._client.post(url, json=body, timeout=timeout)
        except httpx.HTTPError as error:
            return TemporarilyUnavailableError(
                f"The embedding endpoint {url} does not answer: {error}", _NOW
            )
        if response.status_code in _BUSY:
            return TemporarilyUnavailableError(
                f"The embedding endpoint {url} is busy (status {response.status_code}).",
                _retry_after(response),
            )
        if response.is_error:
            raise self._error(f"status {response.status_code}: {response.text[:200]}")
        return response

    def _check_and_normalize(self, vectors: list[list[float]]) -> Vectors:
        for vector in vectors:
            if len(vector) != self._dimension:
                raise self._error(
                    f"a vector of {len(vector)} numbers came, and {self._dimension} are expected"
                )
        unit = np.asarray(vectors, dtype=np.float32)
        lengths = np.linalg.norm(unit, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or not lengths.all():
            raise self._error("a vector without a length came")
        scaled: Vectors = unit / lengths
        return scaled

    def _error(self, reason: str) -> NotConfiguredError:
        return NotConfiguredError(
            f"The embedding endpoint {self._settings.url} does not serve the model"
            f" {self._settings.model!r} as expected: {reason}. Check its address, key, model name"
            " and dimension in the settings."
        )


_NOW = timedelta(0)


def _retry_after(response: httpx.Response) -> timedelta:
    """Read how many seconds the endpoint asks to wait; a date, which few send, is not read."""
    stated = response.headers.get("Retry-After", "")
    return timedelta(seconds=float(stated)) if stated.replace(".", "", 1).isdecimal() else _NOW


def _open_token_counter(file: Path | None) -> TokenCounter:
    return EstimatedTokenCounter() if file is None else ModelTokenizer.from_file(file)
