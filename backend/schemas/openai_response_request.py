"""JSON of the requests of OpenAI's responses, as far as Quarry takes them: plain text, and pictures of the question."""

from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from backend.schemas.base import RequestObject
from backend.schemas.openai_request import (
    LONGEST_URL,
    MOST_MESSAGES,
    MOST_PARTS,
    Count,
    Flag,
    Ignored,
    ModelId,
    Nothing,
    Number,
    Refused,
    Role,
    Temperature,
    Text,
    TextFormat,
)
from backend.store.chat.assistants import DEFAULT_ID


class InputText(BaseModel):
    model_config = ConfigDict(frozen=True)

    type: Literal["input_text", "output_text"]
    text: Text


class InputImage(BaseModel):
    model_config = ConfigDict(frozen=True)

    type: Literal["input_image"]
    image_url: str = Field(
        max_length=LONGEST_URL, description="A data URL; no address of the web is opened"
    )


InputPart: TypeAlias = Annotated[InputText | InputImage, Field(discriminator="type")]
InputContent: TypeAlias = (
    Annotated[list[InputPart], Field(fail_fast=True, max_length=MOST_PARTS)] | Text
)


class InputMessage(BaseModel):
    """What else a client sends with a message has no effect."""

    model_config = ConfigDict(frozen=True)

    type: Literal["message"] = "message"
    role: Role
    content: InputContent

    @property
    def parts(self) -> Sequence[InputPart]:
        if isinstance(self.content, str):
            return [InputText(type="input_text", text=self.content)]
        return self.content


class ResponseTextConfig(RequestObject):
    format: TextFormat | None = None
    verbosity: str | None = None


class ResponseBody(RequestObject):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model": DEFAULT_ID,
                    "instructions": "Answer in one sentence.",
                    "input": "How long is parental leave?",
                }
            ]
        },
    )

    model: ModelId
    input: (
        Annotated[list[InputMessage], Field(fail_fast=True, min_length=1, max_length=MOST_MESSAGES)]
        | Text
    )
    instructions: Text | None = None
    stream: Flag | None = None
    temperature: Temperature | None = None
    max_output_tokens: Count | None = Field(
        default=None, description="The answer ends after this number of tokens"
    )
    text: ResponseTextConfig | None = None
    tool_choice: Literal["none", "auto"] | None = None

    tools: Refused | Nothing = None
    include: Refused | Nothing = None
    background: Refused | Literal[False] = None
    conversation: Refused = None
    previous_response_id: Refused = None
    prompt: Refused = None
    top_logprobs: Refused = None

    top_p: Number | None = None
    user: str | None = None
    store: Flag | None = Field(default=None, description="Nothing is kept, whatever it says")
    metadata: Ignored | None = None
    max_tool_calls: Count | None = None
    parallel_tool_calls: Flag | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    reasoning: Ignored | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None
    stream_options: Ignored | None = None
    truncation: str | None = None

    @property
    def messages(self) -> Sequence[InputMessage]:
        if isinstance(self.input, str):
            return [InputMessage(role="user", content=self.input)]
        return self.input
