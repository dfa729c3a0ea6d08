"""Answer what programs for OpenAI's API ask, whichever of its routes they come by."""

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from typing import Annotated, TypeAlias

from fastapi import Depends, Request
from starlette.responses import Response

from backend.api.answer_streams import AnswerStream, ChooseModels, RunTurn
from backend.api.authorization import Asker, AskerDependency
from backend.api.dependencies import (
    AppStateDependency,
    AssistantsDependency,
    ChatDependency,
    DatabaseDependency,
    ReadersDependency,
)
from backend.api.openai.messages import ReadMessages, read_pictures
from backend.api.openai.refusals import refuse_parameter, unknown_model
from backend.api.openai.text import AnswerText, TextLimit
from backend.api.openai.turn import (
    AnswerForm,
    TurnText,
    WholeAnswer,
    WholeResult,
    collect_answer,
)
from backend.api.problem_details import BROKEN, STOPPING
from backend.api.request_context import RequestContext, RequestContextDependency
from backend.api.server_sent_events import EventStream, LastEvents, SentEvent, SentEvents
from backend.chat.document_addresses import SourceAddresses
from backend.chat.pictures import Picture
from backend.chat.turn import ChatTurn
from backend.chat.turn_settings import AssistantSettings
from backend.conversations.assistant_service import AssistantService
from backend.store.accounts.people import NOBODY
from connectors.access import Readers
from connectors.errors import NotFoundError
from indexing.runtime.deadline import Deadline

EncodeText: TypeAlias = Callable[[TurnText], Generator[SentEvent, None, None]]
"""Runs a turn, and yields what is sent of its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRequest:
    model: str
    """The id of an assistant."""
    said: ReadMessages
    temperature: float | None
    stops: tuple[str, ...] = ()
    most_tokens: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAiAnswers:
    """Answers one request."""

    answers: AnswerStream
    asker: Asker
    readers: Readers
    assistants: AssistantService
    context: RequestContext

    def send_whole(self, wanted: AnswerRequest, form: AnswerForm) -> Response:
        """Answer in one piece, once the answer is written. Raises Problem: the request cannot be honored."""
        broken = WholeResult(BROKEN)
        begin = self._prepare(wanted, lambda text: collect_answer(text, form), broken)
        return WholeAnswer(begin, self.answers.state.pools.answers, self.asker.turn_key)

    def stream(self, wanted: AnswerRequest, form: AnswerForm) -> Response:
        """Answer as a stream of events, while the answer is written. Raises as `send_whole`."""
        last = LastEvents(form.encode_failure(STOPPING), form.encode_failure(BROKEN))
        begin = self._prepare(wanted, form.stream, last.broken)
        return EventStream(begin, self.answers.state.pools.answers, self.asker.turn_key, last)

    def _prepare(
        self, wanted: AnswerRequest, encode: EncodeText, broken: SentEvent
    ) -> Callable[[], SentEvents]:
        assistant = self._find_assistant(wanted)
        choose_models = cache(lambda: self.answers.chat.choose_models(assistant))
        turn = self._make_turn(wanted, assistant, choose_models)

        def encode_turn(run: RunTurn) -> Generator[SentEvent, None, None]:
            limit = TextLimit(wanted.stops, wanted.most_tokens, choose_models().count_tokens)
            return encode(TurnText(run, AnswerText(self._addresses), limit))

        return self.answers.prepare(turn, choose_models, self.asker, encode_turn, broken)

    def _find_assistant(self, wanted: AnswerRequest) -> AssistantSettings:
        """Return how the assistant answers, with what the client adds to it."""
        try:
            found = self.assistants.find_settings(wanted.model)
        except NotFoundError as error:
            raise unknown_model() from error
        instructions = "\n\n".join(filter(None, (found.instructions, wanted.said.instructions)))
        temperature = found.temperature if wanted.temperature is None else wanted.temperature
        return replace(found, instructions=instructions, temperature=temperature)

    def _make_turn(
        self, wanted: AnswerRequest, assistant: AssistantSettings, choose_models: ChooseModels
    ) -> ChatTurn:
        said, person = wanted.said, self.asker.person
        self.context.query = said.question
        return ChatTurn(
            message=said.question,
            readers=self.readers,
            deadline=Deadline.after(self.answers.chat.seconds, self.context.cancel_token),
            person_id=person.id if person else NOBODY,
            history=said.history,
            pictures=_read_seen_pictures(said, choose_models),
            today=date.today(),
            assistant=assistant,
        )

    @property
    def _addresses(self) -> SourceAddresses:
        return SourceAddresses(self.answers.state.find_server(self.answers.request))


def _read_seen_pictures(said: ReadMessages, choose_models: ChooseModels) -> tuple[Picture, ...]:
    if not said.images:
        return ()
    chosen = choose_models().chosen
    if chosen is None or not chosen.answering.settings.sees_pictures:
        message = "image_url: the language model of this assistant does not accept images."
        raise refuse_parameter(said.parameter, message)
    return read_pictures(said)


def get_openai_answers(
    request: Request,
    asker: AskerDependency,
    readers: ReadersDependency,
    chat: ChatDependency,
    database: DatabaseDependency,
    assistants: AssistantsDependency,
    state: AppStateDependency,
    context: RequestContextDependency,
) -> OpenAiAnswers:
    return OpenAiAnswers(
        answers=AnswerStream(request, state, chat, database),
        asker=asker,
        readers=readers,
        assistants=assistants,
        context=context,
    )


OpenAiAnswersDependency = Annotated[OpenAiAnswers, Depends(get_openai_answers)]
