"""An embedding model behind any OpenAI-compatible `/v1/embeddings`."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.embedding.embedder import EmbedderIdentity, Vectors
from indexing.embedding.model_tokenizer import (
    EstimatedTokens,
    ModelTokenizer,
    Tokenization,
    well_formed,
)
from indexing.runtime.deadline import Deadline

_FIRST_PAUSE = 0.5
_LAST_PAUSE = 4.0
"""Seconds before the second and before the last of five tries, doubling between."""
_LONGEST_WAIT = 30.0
"""An endpoint that asks for more is asked again by the caller, later."""
_BUSY = frozenset({408, 409, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteModelSettings:
    url: str
    """Up to and including `/v1`."""
    model: str
    key: str | None = None
    dimension: int | None = None
    """What the vectors must have; asked of the endpoint where it is not given."""
    max_tokens: int = 512
    tokenizer: Path | None = None
    """A tokenizer.json of the model; without one tokens are estimated, rather too many."""
    query_prompt: str = ""
    passage_prompt: str = ""
    batch: int = 32
    """Texts in one request."""
    seconds: float = 60.0
    """For one request."""


class RemoteModel:
    """An Embedder. Thread-safe.

    What is longer than `max_tokens` is cut off here, since endpoints refuse it or cut in silence.
    A request that fails in passing is tried five times, at the pace the endpoint asks for.
    """

    def __init__(self, settings: RemoteModelSettings) -> None:
        """Raises ActionRequiredError, and TemporarilyUnavailableError where the dimension must be asked for in vain."""
        if not settings.url.startswith(("http://", "https://")):
            raise ActionRequiredError(
                f"Not the address of an embedding endpoint: {settings.url!r}."
            )
        self._settings = settings
        self._tokens = _tokenization(settings.tokenizer)
        headers = {"Authorization": f"Bearer {settings.key}"} if settings.key else {}
        self._client = httpx.Client(headers=headers, timeout=settings.seconds)
        self._dimension = settings.dimension or self._asked_dimension()

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
        return self._tokens.counts([self._settings.passage_prompt + text for text in texts])

    def token_ends(self, text: str) -> list[int]:
        return self._tokens.ends(text)

    def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> Vectors:
        return self._embed([self._settings.query_prompt + text for text in texts], deadline)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        patience = Deadline.after(math.inf)
        return self._embed([self._settings.passage_prompt + text for text in texts], patience)

    def close(self) -> None:
        self._client.close()

    def _embed(self, texts: Sequence[str], deadline: Deadline) -> Vectors:
        deadline.check()
        vectors = np.empty((len(texts), self._dimension), dtype=np.float32)
        for start in range(0, len(texts), self._settings.batch):
            batch = [self._cut(text) for text in texts[start : start + self._settings.batch]]
            vectors[start : start + len(batch)] = self._checked(self._asked(batch, deadline))
        return vectors

    def _cut(self, text: str) -> str:
        """Tokens over the limit go, as many as were counted too many, and then any the cut adds."""
        text = well_formed(text)
        while (over := self._tokens.counts([text])[0] - self._settings.max_tokens) > 0:
            ends = self._tokens.ends(text)
            if over >= len(ends):
                break
            text = text[: ends[-over - 1]]
        return text

    def _asked_dimension(self) -> int:
        return len(self._asked(["dimension"], Deadline.after(self._settings.seconds))[0])

    def _asked(self, texts: list[str], deadline: Deadline) -> list[list[float]]:
        """One batch: its vectors in the order of the texts, as the endpoint gives them."""
        answer = self._answered(texts, deadline)
        try:
            rows = sorted(answer.json()["data"], key=lambda row: int(row["index"]))
            vectors = [[float(value) for value in row["embedding"]] for row in rows]
        except (KeyError, TypeError, ValueError) as error:
            raise self._refused("its answer is not that of an embeddings endpoint") from error
        if len(vectors) != len(texts):
            raise self._refused(f"{len(vectors)} vectors came for {len(texts)} texts")
        return vectors

    def _answered(self, texts: list[str], deadline: Deadline) -> httpx.Response:
        body: dict[str, Any] = {
            "model": self._settings.model,
            "input": texts,
            "encoding_format": "float",
        }
        pause = _FIRST_PAUSE
        while True:
            deadline.check()
            outcome = self._sent(body, deadline)
            if isinstance(outcome, httpx.Response):
                return outcome
            deadline.check()
            wait = max(pause, outcome.retry_after.total_seconds())
            if pause > _LAST_PAUSE or wait > min(deadline.remaining(), _LONGEST_WAIT):
                outcome.retry_after = max(outcome.retry_after, timedelta(seconds=_LONGEST_WAIT))
                raise outcome
            time.sleep(wait)
            pause *= 2

    def _sent(
        self, body: dict[str, Any], deadline: Deadline
    ) -> httpx.Response | TemporarilyUnavailableError:
        url = f"{self._settings.url.rstrip('/')}/embeddings"
        try:
            timeout = max(0.001, min(self._settings.seconds, deadline.remaining()))
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
            raise self._refused(f"status {response.status_code}: {response.text[:200]}")
        return response

    def _checked(self, vectors: list[list[float]]) -> Vectors:
        for vector in vectors:
            if len(vector) != self._dimension:
                raise self._refused(
                    f"a vector of {len(vector)} numbers came, and {self._dimension} are expected"
                )
        unit = np.asarray(vectors, dtype=np.float32)
        lengths = np.linalg.norm(unit, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or not lengths.all():
            raise self._refused("a vector without a length came")
        scaled: Vectors = unit / lengths
        return scaled

    def _refused(self, reason: str) -> ActionRequiredError:
        return ActionRequiredError(
            f"The embedding endpoint {self._settings.url} does not serve the model"
            f" {self._settings.model!r} as expected: {reason}. Check its address, key, model name"
            " and dimension in the settings."
        )


_NOW = timedelta(0)


def _retry_after(response: httpx.Response) -> timedelta:
    """What the endpoint asks for in seconds; a date, which few send, is not read."""
    stated = response.headers.get("Retry-After", "")
    return timedelta(seconds=float(stated)) if stated.replace(".", "", 1).isdecimal() else _NOW


def _tokenization(file: Path | None) -> Tokenization:
    return EstimatedTokens() if file is None else ModelTokenizer.from_file(file)
