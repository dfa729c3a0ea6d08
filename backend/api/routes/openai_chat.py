"""`POST /v1/chat/completions`: an answer for programs that speak to OpenAI's API."""

from dataclasses import replace
from datetime import date
from functools import partial

from fastapi import APIRouter, Request
from starlette.responses import Response

from backend.api import openapi
from backend.api.answer_streams import AnswerStream
from backend.api.authorization import AskerDependency, Permission, requires
from backend.api.dependencies import (
    AppState,
    AppStateDependency,
    AssistantsDependency,
    ChatDependency,
    DatabaseDependency,
    ReadersDependency,
)
from backend.api.document_addresses import SourceAddresses
from backend.api.openai_answers import (
    BROKEN_STREAM,
    BROKEN_WHOLE,
    STOPPING_STREAM,
    CompletionForm,
    WholeAnswer,
    collect_answer,
    stream_chunks,
)
from backend.api.openai_messages import ReadMessages, read_messages, read_pictures
from backend.api.openai_refusals import refuse_parameter, unknown_model
from backend.api.openai_text import TextLimit
from backend.api.request_context import RequestContextDependency
from backend.api.server_sent_events import EventStream
from backend.chat.assistant_settings import AssistantSettings
from backend.chat.pictures import Picture
from backend.chat.turn import ChatTurn
from backend.composition.chat import ChatService
from backend.conversations.assistant_service import AssistantService
from backend.schemas.openai_completion import ChatCompletionResponse
from backend.schemas.openai_request import ChatCompletionBody
from backend.store.people import NOBODY
from connectors.errors import NotFoundError
from indexing.runtime.deadline import Deadline

router = APIRouter(responses=openapi.OPENAI_PROBLEMS)


@router.post(
    "/v1/chat/completions",
    response_model=ChatCompletionResponse,
    responses={200: openapi.COMPLETION_STREAM},
    summary="Answer a question, as OpenAI's chat completions",
)
@requires(Permission.ASK)
def complete_chat(
    body: ChatCompletionBody,
    request: Request,
    asker: AskerDependency,
    readers: ReadersDependency,
    chat: ChatDependency,
    database: DatabaseDependency,
    assistants: AssistantsDependency,
    state: AppStateDependency,
    context: RequestContextDependency,
) -> Response:
    """The model is the id of an assistant, of those that `GET /v1/models` lists. The last message is the question, and may hold
    pictures as data URLs where the language model sees; messages of the roles `system` and `developer` are instructions as those of
    an assistant. Sources stand in the text as `[n]`, and as annotations `url_citation` in the message, or in the last delta of a stream.
    `tools`, `functions`, `n` above 1, `logprobs`, other forms than text and whatever is unknown are refused with the name of the
    parameter. `temperature`, `stop`, `max_tokens` and `max_completion_tokens` are honoured; `seed`, `top_p`, `user`, `store`, `metadata`
    and the others have no effect. Nothing is kept. Closing the connection stops the answer, and the language model."""
    said = read_messages(body.messages)
    context.query = said.question
    assistant = _find_assistant(body, said, assistants)
    turn = ChatTurn(
        message=said.question,
        readers=readers,
        deadline=Deadline.after(chat.seconds, context.cancel_token),
        person_id=asker.person.id if asker.person else NOBODY,
        history=said.history,
        pictures=_read_seen_pictures(said, chat, assistant),
        today=date.today(),
        assistant=assistant,
    )
    answers = AnswerStream(request, state, chat, database)
    form = _make_form(body, assistant, chat, _find_addresses(request, state))
    pool, key = state.pools.answers, asker.turn_key
    if not body.stream:
        collect = partial(collect_answer, form=form)
        return WholeAnswer(answers.prepare(turn, asker, collect, BROKEN_WHOLE), pool, key)
    stream = partial(stream_chunks, form=form)
    begin = answers.prepare(turn, asker, stream, BROKEN_STREAM)
    return EventStream(begin, pool, key, STOPPING_STREAM)


def _find_assistant(
    body: ChatCompletionBody, said: ReadMessages, assistants: AssistantService
) -> AssistantSettings:
    """Return how the assistant answers, with what the client adds to it."""
    try:
        found = assistants.find_settings(body.model)
    except NotFoundError as error:
        raise unknown_model() from error
    instructions = "\n\n".join(filter(None, (found.instructions, said.instructions)))
    temperature = found.temperature if body.temperature is None else body.temperature
    return replace(found, instructions=instructions, temperature=temperature)


def _read_seen_pictures(
    said: ReadMessages, chat: ChatService, assistant: AssistantSettings
) -> tuple[Picture, ...]:
    if not said.images:
        return ()
    chosen = chat.choose_models(assistant).chosen
    if chosen is None or not chosen.answering.settings.sees_pictures:
        message = "image_url: the language model of this assistant does not see pictures."
        raise refuse_parameter("messages", message)
    return read_pictures(said.images)


def _make_form(
    body: ChatCompletionBody,
    assistant: AssistantSettings,
    chat: ChatService,
    addresses: SourceAddresses,
) -> CompletionForm:
    def make_limit() -> TextLimit:
        count_tokens = chat.choose_models(assistant).count_tokens
        return TextLimit(body.stops, body.most_tokens, count_tokens)

    return CompletionForm(
        model=body.model,
        addresses=addresses,
        make_limit=make_limit,
        wants_usage=body.wants_usage,
    )


def _find_addresses(request: Request, state: AppState) -> SourceAddresses:
    public = state.public_address
    return SourceAddresses(public.url if public else str(request.base_url).removesuffix("/"))
