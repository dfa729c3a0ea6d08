"""JSON of the requests of OpenAI's chat completions, as far as Quarry takes them.

Parameters that would change what an answer is, and that Quarry does not honor, are refused by their names; those
that only tune how a model writes are taken and have no effect.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue
from pydantic_core import PydanticCustomError

from backend.schemas.base import MOST_KEYS, RequestObject
from backend.store.chat.assistants import DEFAULT_ID

LONGEST_TEXT = 40_000
MOST_MESSAGES = 200
MOST_PARTS = 100
LONGEST_URL = 8_000_000
_LONGEST_MODEL = 100
_LONGEST_STOP = 200
_MOST_STOPS = 4
_MOST_MODALITIES = 10

Role: TypeAlias = Literal["system", "developer", "user", "assistant"]
Text: TypeAlias = Annotated[str, Field(max_length=LONGEST_TEXT)]
Flag: TypeAlias = Annotated[bool, Field(strict=True)]
Count: TypeAlias = Annotated[int, Field(strict=True, ge=1)]
Stop: TypeAlias = Annotated[str, Field(min_length=1, max_length=_LONGEST_STOP)]
Number: TypeAlias = Annotated[float, Field(strict=True)]
Temperature: TypeAlias = Annotated[Number, Field(ge=0, le=2)]
ModelId: TypeAlias = Annotated[
    str, Field(max_length=_LONGEST_MODEL, description="The id of an assistant")
]


def _refuse(value: object) -> None:
    if value is not None:
        raise PydanticCustomError(
            "unsupported_parameter", "Quarry does not honor this parameter; leave it out."
        )


Refused: TypeAlias = Annotated[
    None, BeforeValidator(_refuse), Field(description="Refused: Quarry does not honor it")
]

Nothing: TypeAlias = Annotated[list[JsonValue], Field(max_length=0)]
Ignored: TypeAlias = Annotated[
    Mapping[str, JsonValue], Field(max_length=MOST_KEYS, description="It has no effect")
]


class TextPart(BaseModel):
    model_config = ConfigDict(frozen=True)

    type: Literal["text"]
    text: Text


class ImageUrl(BaseModel):
    model_config = ConfigDict(frozen=True)

    url: str = Field(
        max_length=LONGEST_URL, description="A data URL; no address of the web is opened"
    )


class ImagePart(BaseModel):
    model_config = ConfigDict(frozen=True)

    type: Literal["image_url"]
    image_url: ImageUrl


Part: TypeAlias = Annotated[TextPart | ImagePart, Field(discriminator="type")]
Content: TypeAlias = Annotated[list[Part], Field(fail_fast=True, max_length=MOST_PARTS)] | Text


class CompletionMessage(BaseModel):
    """What else a client sends with a message, such as the name of its author, has no effect."""

    model_config = ConfigDict(frozen=True)

    role: Role
    content: Content | None = None

    @property
    def parts(self) -> Sequence[Part]:
        if isinstance(self.content, str):
            return [TextPart(type="text", text=self.content)]
        return self.content or []


class StreamOptions(BaseModel):
    model_config = ConfigDict(frozen=True)

    include_usage: Flag | None = None


class TextFormat(BaseModel):
    model_config = ConfigDict(frozen=True)

    type: Literal["text"]


class ChatCompletionBody(RequestObject):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model": DEFAULT_ID,
                    "messages": [
                        {"role": "system", "content": "Answer in one sentence."},
                        {"role": "user", "content": "How long is parental leave?"},
                    ],
                }
            ]
        },
    )

    model: ModelId
    messages: Annotated[
        list[CompletionMessage], Field(fail_fast=True, min_length=1, max_length=MOST_MESSAGES)
    ]
    stream: Flag | None = None
    stream_options: StreamOptions | None = None
    temperature: Temperature | None = None
    max_tokens: Count | None = Field(
        default=None, description="The older name of `max_completion_tokens`"
    )
    max_completion_tokens: Count | None = Field(
        default=None, description="The answer ends after this number of tokens"
    )
    stop: Stop | Annotated[list[Stop], Field(fail_fast=True, max_length=_MOST_STOPS)] | None = (
        Field(default=None, description="The answer ends before any of these texts")
    )
    response_format: TextFormat | None = None
    modalities: (
        Annotated[list[Literal["text"]], Field(fail_fast=True, max_length=_MOST_MODALITIES)] | None
    ) = None
    n: Annotated[int, Field(strict=True, ge=1, le=1)] | None = None
    tool_choice: Literal["none", "auto"] | None = None

    tools: Refused | Nothing = None
    functions: Refused | Nothing = None
    function_call: Refused = None
    logprobs: Refused | Literal[False] = None
    top_logprobs: Refused = None
    logit_bias: Refused = None
    audio: Refused = None
    web_search_options: Refused = None

    top_p: Number | None = None
    frequency_penalty: Number | None = None
    presence_penalty: Number | None = None
    seed: Annotated[int, Field(strict=True)] | None = None
    user: str | None = None
    store: Flag | None = None
    metadata: Ignored | None = None
    parallel_tool_calls: Flag | None = None
    prediction: Ignored | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    reasoning_effort: str | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None
    verbosity: str | None = None

    @property
    def most_tokens(self) -> int | None:
        return self.max_completion_tokens or self.max_tokens

    @property
    def stops(self) -> tuple[str, ...]:
        match self.stop:
            case None:
                return ()
            case str(one):
                return (one,)
            case several:
                return tuple(several)

    @property
    def wants_usage(self) -> bool:
        """Whether a stream ends with what it has used."""
        return bool(self.stream_options and self.stream_options.include_usage)
