"""Let another model do the small tasks of a turn where the fast one fails or is silent."""

import logging
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

from backend.chat.llm.client import (
    ChatModel,
    ModelError,
    ModelRequestError,
    ModelSetupError,
    ModelTimeoutError,
)
from backend.chat.llm.messages import ModelEvent, ModelMessage, ToolSpec
from backend.chat.llm.metering import MeteredModel, UsageMeter
from backend.chat.llm.model_settings import ModelSettings
from backend.chat.llm.resting_models import RestingModels
from backend.chat.llm_step import StepRequest, start_stream
from indexing.embedding.token_counting import CountTokens
from indexing.runtime.deadline import Deadline

LOG = logging.getLogger("quarry.language_model")
FIRST_EVENT_SECONDS = 5.0
FIRST_EVENT_SHARE = 0.5
"""The fast model is waited for so many seconds, or this share of the time left, whichever is less, so that the other one
has time as well; one that reasons is waited for that share."""
LEAST_PATIENCE = 3.0
"""Seconds. A model that does not begin to answer within fewer may only be slow."""


@dataclass(frozen=True, slots=True)
class SubstitutedModel:
    """A model for small tasks, whose answers are used whole, and the one that answers where it fails."""

    model: ChatModel
    substitute: ChatModel
    resting: RestingModels
    """What failed is left alone for a while, in all turns of the process."""

    @property
    def settings(self) -> ModelSettings:
        """Those of the one that is asked now."""
        model = self.model.settings
        return self.substitute.settings if model in self.resting else model

    def stream(
        self,
        messages: Sequence[ModelMessage],
        deadline: Deadline,
        tools: Sequence[ToolSpec] = (),
    ) -> Generator[ModelEvent, None, None]:
        """Stream as a model does, what the first one said once it is complete."""
        answer = self._ask_first(StepRequest(messages, deadline, tools))
        if answer is None:
            yield from self.substitute.stream(messages, deadline, tools)
        else:
            yield from answer

    def _ask_first(self, request: StepRequest) -> Sequence[ModelEvent] | None:
        """Return what the first one said; None where the other one is to be asked. Raises ModelError: there is no time left."""
        if self.model.settings in self.resting:
            return None
        patience = _find_patience(self.model, request.deadline)
        try:
            return list(start_stream(self.model, request, patience))
        except ModelError as error:
            # Who is only slow, or was asked in vain because the turn has ended, has not failed.
            if not request.deadline.remaining():
                raise
            if _is_broken(error, patience):
                self.resting.add(self.model.settings)
                names = (self.model.settings.shown_name, self.substitute.settings.shown_name)
                LOG.warning("%s is not asked for a while, but %s: %s", *names, error)
            return None


def meter_model(model: ChatModel, meter: UsageMeter, count_tokens: CountTokens) -> ChatModel:
    """Count the calls of a model: those that a substitute answers are counted as its own."""
    if not isinstance(model, SubstitutedModel):
        return MeteredModel(model, meter, count_tokens)
    return replace(
        model,
        model=MeteredModel(model.model, meter, count_tokens),
        substitute=MeteredModel(model.substitute, meter, count_tokens),
    )


def _find_patience(model: ChatModel, deadline: Deadline) -> float:
    share = deadline.remaining() * FIRST_EVENT_SHARE
    return share if model.settings.reasons else min(FIRST_EVENT_SECONDS, share)


def _is_broken(error: ModelError, patience: float) -> bool:
    """Return whether other requests would fail too: one request may be refused for what it says, and be given little time."""
    match error:
        case ModelSetupError():
            return True
        case ModelRequestError():
            return False
        case ModelTimeoutError():
            return patience >= LEAST_PATIENCE
        case _:
            return True
