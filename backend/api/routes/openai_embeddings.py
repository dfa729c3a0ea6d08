"""`POST /v1/embeddings`: vectors of the model of the index, for programs that speak to OpenAI's API."""

import base64
from collections.abc import Iterator, Sequence

import numpy as np
from fastapi import APIRouter

from backend.api import openapi
from backend.api.authorization import Permission, requires
from backend.api.dependencies import ChatDependency, waits_among_answers
from backend.api.openai.refusals import refuse_parameter
from backend.api.request_context import RequestContextDependency
from backend.schemas.openai_embedding import (
    Embedding,
    EmbeddingsBody,
    EmbeddingsResponse,
    EmbeddingsUsage,
    InputType,
)
from backend.store.chat.assistants import DEFAULT_ID
from indexing.embedding.embedder import Embedder, EmbedderIdentity, Vectors
from indexing.runtime.deadline import Deadline

router = APIRouter(responses=openapi.OPENAI_PROBLEMS)
_AT_ONCE = 16
"""Texts after which is seen whether there is time for more."""


@router.post("/v1/embeddings", summary="Embed texts with the model of the index")
@requires(Permission.SEARCH)
@waits_among_answers
def embed_texts(
    body: EmbeddingsBody, chat: ChatDependency, context: RequestContextDependency
) -> EmbeddingsResponse:
    """A text that is longer than the model reads is refused, not cut. Each vector has the length 1."""
    embedder = chat.engine.embedding.embedder
    _check_model(body, embedder.identity)
    tokens = _count_tokens(body.texts, embedder)
    deadline = Deadline.after(chat.settings.answer_seconds, context.cancel_token)
    vectors = [
        vector
        for texts in _split(body.texts)
        for vector in _embed(texts, body.input_type, embedder, deadline)
    ]
    return EmbeddingsResponse(
        data=tuple(
            Embedding(index=index, embedding=_encode(vector, body))
            for index, vector in enumerate(vectors)
        ),
        model=embedder.identity.model,
        usage=EmbeddingsUsage(prompt_tokens=tokens, total_tokens=tokens),
    )


def _check_model(body: EmbeddingsBody, identity: EmbedderIdentity) -> None:
    if body.model not in {DEFAULT_ID, identity.model}:
        message = f"There is no such model for embeddings. Use {DEFAULT_ID} or {identity.model}."
        raise refuse_parameter("model", message, 404)
    if body.dimensions not in {None, identity.dimension}:
        message = f"The vectors of this model have {identity.dimension} dimensions."
        raise refuse_parameter("dimensions", message)


def _count_tokens(texts: Sequence[str], embedder: Embedder) -> int:
    counts = embedder.count_tokens(texts)
    for index, tokens in enumerate(counts):
        if tokens > embedder.max_tokens:
            message = f"The text has {tokens:,} tokens; the model reads {embedder.max_tokens:,}. Split it."
            raise refuse_parameter(f"input.{index}", message)
    return sum(counts)


def _split(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(texts), _AT_ONCE):
        yield texts[start : start + _AT_ONCE]


def _embed(
    texts: Sequence[str], kind: InputType, embedder: Embedder, deadline: Deadline
) -> Vectors:
    deadline.check()
    match kind:
        case "query":
            return embedder.embed_queries(texts, deadline)
        case "passage":
            return embedder.embed_passages(texts)


def _encode(vector: np.ndarray, body: EmbeddingsBody) -> tuple[float, ...] | str:
    if body.encoding_format == "base64":
        return base64.b64encode(vector.astype("<f4").tobytes()).decode()
    return tuple(map(float, vector))
