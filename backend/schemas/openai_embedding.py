"""JSON of OpenAI's embeddings."""

from typing import Annotated, Literal, TypeAlias

from pydantic import ConfigDict, Field, JsonValue

from backend.schemas.base import RequestObject, Schema, with_example

MOST_TEXTS = 128
LONGEST_TEXT = 40_000
_LONGEST_MODEL = 200
_MODEL = "multilingual-e5-small"

Text: TypeAlias = Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT)]
InputType: TypeAlias = Literal["passage", "query"]


class EmbeddingsBody(RequestObject):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"model": "default", "input": ["Parents have 26 weeks of paid leave."]}]
        },
    )

    model: str = Field(
        max_length=_LONGEST_MODEL, description="`default`, or the name of the model of the index"
    )
    input: Text | Annotated[list[Text], Field(min_length=1, max_length=MOST_TEXTS)] = Field(
        description="No tokens: each model has its own"
    )
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Annotated[int, Field(strict=True, ge=1)] | None = Field(
        default=None, description="Those of the model, or left out"
    )
    input_type: InputType = Field(
        default="passage",
        description="What the texts are: many models embed what is searched for in another way",
    )
    user: str | None = Field(default=None, description="It has no effect")

    @property
    def texts(self) -> list[str]:
        return [self.input] if isinstance(self.input, str) else self.input


_EMBEDDING: dict[str, JsonValue] = {
    "object": "embedding",
    "index": 0,
    "embedding": [0.031, -0.052, 0.017],
}


class Embedding(Schema):
    object: Literal["embedding"] = "embedding"
    index: int
    """Of the text."""
    embedding: tuple[float, ...] | str
    """As `base64`: numbers of 32 bits, the lowest byte first."""


class EmbeddingsUsage(Schema):
    prompt_tokens: int
    total_tokens: int


class EmbeddingsResponse(Schema):
    model_config = with_example(
        object="list",
        data=[_EMBEDDING],
        model=_MODEL,
        usage={"prompt_tokens": 11, "total_tokens": 11},
    )

    object: Literal["list"] = "list"
    data: tuple[Embedding, ...]
    model: str
    usage: EmbeddingsUsage
