"""`POST /v1/responses`: an answer in plain text for programs that speak to OpenAI's newer API."""

from fastapi import APIRouter
from starlette.responses import Response

from backend.api import openapi
from backend.api.authorization import Permission, requires
from backend.api.openai.answers import AnswerRequest, OpenAiAnswersDependency
from backend.api.openai.messages import SaidMessage, read_messages
from backend.api.openai.responses import ResponseForm
from backend.schemas.openai_response import OpenAiResponse
from backend.schemas.openai_response_request import (
    InputImage,
    InputMessage,
    InputText,
    ResponseBody,
)

router = APIRouter(responses=openapi.OPENAI_PROBLEMS)


@router.post(
    "/v1/responses",
    response_model=OpenAiResponse,
    responses={200: openapi.RESPONSE_STREAM},
    summary="Answer a question, as OpenAI's responses",
)
@requires(Permission.ASK)
def create_response(body: ResponseBody, answers: OpenAiAnswersDependency) -> Response:
    """As `POST /v1/chat/completions`, in the other shape. Nothing is kept, so that `previous_response_id` and `conversation` are refused:
    send what was said before in `input`. `temperature` and `max_output_tokens` are honored; `tools`, `background`, `include`, `prompt`,
    `top_logprobs` and forms other than text are refused with the name of the parameter."""
    wanted = AnswerRequest(
        model=body.model,
        said=read_messages(
            [*_read_instructions(body), *map(_read_message, body.messages)], "input"
        ),
        temperature=body.temperature,
        most_tokens=body.max_output_tokens,
    )
    form = ResponseForm(model=body.model)
    return answers.stream(wanted, form) if body.stream else answers.send_whole(wanted, form)


def _read_instructions(body: ResponseBody) -> list[SaidMessage]:
    return [SaidMessage("system", body.instructions)] if body.instructions else []


def _read_message(message: InputMessage) -> SaidMessage:
    texts = [part.text for part in message.parts if isinstance(part, InputText)]
    images = [part.image_url for part in message.parts if isinstance(part, InputImage)]
    return SaidMessage(message.role, "\n\n".join(texts), tuple(images))
