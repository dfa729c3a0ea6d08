"""`POST /v1/chat/completions`: an answer for programs that speak to OpenAI's API."""

from fastapi import APIRouter
from starlette.responses import Response

from backend.api import openapi
from backend.api.authorization import Permission, requires
from backend.api.openai.answers import AnswerRequest, OpenAiAnswersDependency
from backend.api.openai.completions import CompletionForm
from backend.api.openai.messages import SaidMessage, read_messages
from backend.schemas.openai_completion import ChatCompletionResponse
from backend.schemas.openai_request import (
    ChatCompletionBody,
    CompletionMessage,
    ImagePart,
    TextPart,
)

router = APIRouter(responses=openapi.OPENAI_PROBLEMS)


@router.post(
    "/v1/chat/completions",
    response_model=ChatCompletionResponse,
    responses={200: openapi.COMPLETION_STREAM},
    summary="Answer a question, as OpenAI's chat completions",
)
@requires(Permission.ASK)
def complete_chat(body: ChatCompletionBody, answers: OpenAiAnswersDependency) -> Response:
    """The model is the id of an assistant, of those that `GET /v1/models` lists. The last message is the question, and may hold
    pictures as data URLs where the language model sees; messages of the roles `system` and `developer` are instructions as those of
    an assistant. Sources stand in the text as `[n]`, and as annotations `url_citation` in the message, or in the last delta of a stream.
    `tools`, `functions`, `n` above 1, `logprobs`, other forms than text and whatever is unknown are refused with the name of the
    parameter. `temperature`, `stop`, `max_tokens` and `max_completion_tokens` are honored; `seed`, `top_p`, `user`, `store`, `metadata`
    and the others have no effect. Nothing is kept. Closing the connection stops the answer, and the language model."""
    form = CompletionForm(model=body.model, wants_usage=body.wants_usage)
    wanted = AnswerRequest(
        model=body.model,
        said=read_messages(list(map(_read_message, body.messages)), "messages"),
        temperature=body.temperature,
        stops=body.stops,
        most_tokens=body.most_tokens,
    )
    return answers.stream(wanted, form) if body.stream else answers.send_whole(wanted, form)


def _read_message(message: CompletionMessage) -> SaidMessage:
    texts = [part.text for part in message.parts if isinstance(part, TextPart)]
    images = [part.image_url.url for part in message.parts if isinstance(part, ImagePart)]
    return SaidMessage(message.role, "\n\n".join(texts), tuple(images))
