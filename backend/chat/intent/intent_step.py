"""Ask the model what a message has to be searched as; the message is searched as it stands where that fails."""

from dataclasses import dataclass
from datetime import date

from backend.chat.intent.intent_prompt import intent_prompt
from backend.chat.intent.plan_reader import plan_by_message, read_plan
from backend.chat.intent.search_plan import IntentRequest, SearchPlan, needs_no_search
from backend.search.futures import PendingCompletion, run_in_background
from backend.search.llm_protocol import Complete, CompletionError
from indexing.runtime.deadline import Deadline

INTENT_SECONDS = 8.0
INTENT_SHARE = 0.3
"""The model is waited for so many seconds, or this share of the time left, whichever is less."""


@dataclass(frozen=True, slots=True)
class IntentDone:
    plan: SearchPlan
    failure: str | None = None
    """Why the model's plan is not used, where it was asked for one."""


@dataclass(frozen=True, slots=True)
class PendingIntent:
    """An intent step that runs beside the search of the message."""

    request: IntentRequest
    answer: PendingCompletion[str] | None
    """None where no model is asked."""

    @property
    def known_plan(self) -> SearchPlan | None:
        """The plan by the message alone; None where a model writes it."""
        return plan_by_message(self.request) if self.answer is None else None

    def result(self) -> IntentDone:
        """Wait for the plan, until the deadline of the step at most."""
        if self.answer is None:
            return IntentDone(plan_by_message(self.request))
        try:
            return IntentDone(read_plan(self.answer.result(), self.request))
        except CompletionError as error:
            return IntentDone(plan_by_message(self.request), str(error))


def start_intent_step(
    request: IntentRequest,
    complete: Complete | None,
    today: date,
    deadline: Deadline,
) -> PendingIntent:
    """Begin to ask the model for a plan.

    Args:
        complete: asks the fast model; None where rewriting is off, so that the message itself is the query.
    """
    if complete is None or not request.sides or needs_no_search(request.message):
        return PendingIntent(request, None)
    limit = deadline.limited_to(min(INTENT_SECONDS, deadline.remaining() * INTENT_SHARE))
    prompt = intent_prompt(request, today)
    return PendingIntent(request, run_in_background(lambda: complete(prompt, limit), limit))
