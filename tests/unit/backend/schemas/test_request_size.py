"""What is wrong with a long request is said in a few faults: one for each key or element would keep the server busy."""

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from backend.schemas.new_document import DocumentsBody, NewDocument
from backend.schemas.openai_embedding import EmbeddingsBody
from backend.schemas.openai_request import ChatCompletionBody
from backend.schemas.openai_response_request import ResponseBody

QUESTION = {"role": "user", "content": "How long is parental leave?"}
CHAT: dict[str, Any] = {"model": "default", "messages": [QUESTION]}
RESPONSE: dict[str, Any] = {"model": "default", "input": "How long is parental leave?"}
MANY = {f"key{number}": 1 for number in range(101)}


def _count_faults(shape: type[BaseModel], given: object) -> int:
    with pytest.raises(ValidationError) as caught:
        shape.model_validate(given)
    return caught.value.error_count()


@pytest.mark.parametrize(
    ("shape", "given"),
    [
        (ChatCompletionBody, CHAT),
        (ResponseBody, RESPONSE),
        (EmbeddingsBody, {"model": "default", "input": "x"}),
        (DocumentsBody, {"source": "tickets", "documents": [{}]}),
        (NewDocument, {"id": "a", "title": "A", "text": "x", "readers": ["public"]}),
    ],
)
def test_many_unknown_keys_are_one_fault(shape: type[BaseModel], given: dict[str, Any]) -> None:
    shape.model_validate(given)
    assert _count_faults(shape, given | {"mystery": 1, "other": 2}) == 2, "few are named"
    assert _count_faults(shape, given | MANY) == 1


@pytest.mark.parametrize(
    ("shape", "given", "most"),
    [
        (ChatCompletionBody, CHAT | {"modalities": ["audio"] * 500}, 1),
        (ChatCompletionBody, CHAT | {"modalities": ["text"] * 11}, 1),
        (ChatCompletionBody, CHAT | {"metadata": MANY}, 1),
        (ChatCompletionBody, CHAT | {"messages": [{"role": "user", "content": [{}] * 100}] * 200}, 3),
        (ChatCompletionBody, CHAT | {"messages": [{}] * 200}, 1),
        (ResponseBody, RESPONSE | {"input": [{"role": "user", "content": [{}] * 100}] * 200}, 4),
        (ResponseBody, RESPONSE | {"reasoning": MANY}, 1),
        (ResponseBody, RESPONSE | {"text": MANY}, 1),
    ],
)  # fmt: skip
def test_a_long_list_or_object_has_few_faults(
    shape: type[BaseModel], given: dict[str, Any], most: int
) -> None:
    assert _count_faults(shape, given) <= most
