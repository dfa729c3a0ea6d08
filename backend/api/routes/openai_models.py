"""`GET /v1/models`: the assistants, as programs for OpenAI's API list models."""

from typing import Annotated

from fastapi import APIRouter, Path

from backend.api import openapi
from backend.api.authorization import Permission, requires
from backend.api.dependencies import AssistantsDependency
from backend.api.openai.refusals import unknown_model
from backend.schemas.openai_model import OpenAiModel, OpenAiModelsResponse
from connectors.errors import NotFoundError

router = APIRouter(responses=openapi.OPENAI_PROBLEMS)
_LONGEST_MODEL = 100


@router.get("/v1/models", summary="List the assistants that you may use, as models")
@requires(Permission.ASK)
def list_openai_models(assistants: AssistantsDependency) -> OpenAiModelsResponse:
    """The default one comes first."""
    return OpenAiModelsResponse(
        data=tuple(map(OpenAiModel.from_shown, assistants.list_usable())),
    )


@router.get("/v1/models/{model}", summary="Show an assistant, as a model")
@requires(Permission.ASK)
def show_openai_model(
    model: Annotated[str, Path(max_length=_LONGEST_MODEL)], assistants: AssistantsDependency
) -> OpenAiModel:
    try:
        return OpenAiModel.from_shown(assistants.get(model))
    except NotFoundError as error:
        raise unknown_model() from error
