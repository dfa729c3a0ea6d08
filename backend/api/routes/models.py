"""`/api/admin/models`: the language models, and a try of one.

A key is encrypted as it arrives, and no response contains it.
"""

from typing import Annotated, Any, TypeAlias
from urllib.parse import quote

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, SecretStr
from starlette.responses import Response

from backend.api import openapi
from backend.api.authorization import Permission, requires
from backend.api.dependencies import LanguageModelsDependency, ModelServiceDependency
from backend.api.request_context import CancelTokenDependency
from backend.chat.llm.model_check import CHECK_SECONDS, check_model
from backend.chat.llm.stored_models import (
    HIGHEST_PRICE,
    LARGEST_WINDOW,
    LONGEST_KEY,
    LONGEST_TEXT,
    SMALLEST_WINDOW,
    ModelChange,
)
from backend.schemas.language_model import ModelCheckResponse, ModelResponse, list_models
from backend.store.llm import language_models
from backend.store.llm.language_models import ModelRole, ModelValues
from indexing.runtime.deadline import Deadline

router = APIRouter()
_MODELS = "/api/admin/models"
_TAKEN: dict[int | str, dict[str, Any]] = {409: openapi.describe_problem("The name is taken")}
_MAY_BE_NULL = {"input_price", "output_price"}

Text: TypeAlias = Annotated[str, Field(max_length=LONGEST_TEXT)]
Window: TypeAlias = Annotated[int, Field(ge=SMALLEST_WINDOW, le=LARGEST_WINDOW)]
Price: TypeAlias = Annotated[float, Field(ge=0, le=HIGHEST_PRICE)]
Key: TypeAlias = Annotated[SecretStr, Field(max_length=LONGEST_KEY)]


class AddModelBody(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "name": "large",
                    "base_url": "https://llm.example.com/v1",
                    "model": "large-2026",
                    "key": "sk-example",
                    "context_window": 128_000,
                    "roles": ["default"],
                }
            ]
        },
    )

    name: Text
    base_url: Text = Field(description="An OpenAI-compatible endpoint; it usually ends in /v1")
    model: Text = Field(description="What the endpoint calls the model")
    key: Key | None = Field(default=None, description="Encrypted as it arrives; never returned")
    context_window: Window = 32_000
    sees_pictures: bool = False
    calls_tools: bool = True
    reasons: bool = False
    input_price: Price | None = Field(default=None, description="Of a million tokens")
    output_price: Price | None = Field(default=None, description="Of a million tokens")
    roles: frozenset[ModelRole] = Field(
        default=frozenset(), description="What it is used for; another model loses these roles"
    )


class ChangeModelBody(BaseModel):
    """What is left out stays as it is."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={"examples": [{"context_window": 200_000, "roles": ["default", "fast"]}]},
    )

    name: Text | None = None
    base_url: Text | None = Field(
        default=None, description="Of another server: only together with a key"
    )
    model: Text | None = None
    key: Key | None = Field(default=None, description="An empty one removes the key")
    context_window: Window | None = None
    sees_pictures: bool | None = None
    calls_tools: bool | None = None
    reasons: bool | None = None
    input_price: Price | None = None
    output_price: Price | None = None
    roles: frozenset[ModelRole] | None = Field(
        default=None, description="All that it is used for from now on"
    )

    def to_change(self) -> ModelChange:
        given = self.model_dump(exclude_unset=True, exclude={"key", "roles"})
        values = {
            name: value
            for name, value in given.items()
            if value is not None or name in _MAY_BE_NULL
        }
        key = None if self.key is None else self.key.get_secret_value()
        return ModelChange(values=values, key=key, roles=self.roles)


@router.get(_MODELS, summary="List the language models, and what each is used for")
@requires(Permission.ADMIN)
def list_language_models(models: LanguageModelsDependency) -> list[ModelResponse]:
    """Also the model of the settings, which writes the answers where none in the database is the default."""
    return list_models(models)


@router.post(_MODELS, status_code=201, responses=_TAKEN, summary="Add a language model")
@requires(Permission.ADMIN)
def add_language_model(
    body: AddModelBody, service: ModelServiceDependency, response: Response
) -> ModelResponse:
    values = ModelValues(**body.model_dump(exclude={"key", "roles"}))
    service.add(values, body.key.get_secret_value() if body.key else None, body.roles)
    response.headers["Location"] = f"{_MODELS}/{quote(values.name)}"
    return ModelResponse.from_stored(language_models.find(service.database, values.name))


@router.patch(f"{_MODELS}/{{name}}", responses=_TAKEN, summary="Change a language model")
@requires(Permission.ADMIN)
def change_language_model(
    name: str, body: ChangeModelBody, service: ModelServiceDependency
) -> ModelResponse:
    """The next question is answered with what is set then, by every process of the server."""
    return ModelResponse.from_stored(service.change(name, body.to_change()))


@router.delete(f"{_MODELS}/{{name}}", status_code=204, summary="Remove a language model")
@requires(Permission.ADMIN)
def remove_language_model(name: str, service: ModelServiceDependency) -> None:
    service.remove(name)


@router.post(f"{_MODELS}/{{name}}/test", summary="Ask a language model three tiny questions")
@requires(Permission.ADMIN)
def test_language_model(
    name: str, models: LanguageModelsDependency, cancel_token: CancelTokenDependency
) -> ModelCheckResponse:
    """Whether it answers, streams and calls tools; what is wrong, and what to do about it."""
    deadline = Deadline.after(CHECK_SECONDS, cancel_token)
    return ModelCheckResponse.model_validate(check_model(models.open_model(name), deadline))
