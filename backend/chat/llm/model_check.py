"""Try a language model with three tiny requests: whether it answers, streams, calls tools, and accepts a temperature."""

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

from backend.chat.llm.client import LanguageModel, ModelError, ToolsUnsupportedError
from backend.chat.llm.messages import ModelEvent, TextDelta, ToolCall, ToolSpec
from backend.chat.llm.model_settings import ModelSettings
from backend.search.llm_protocol import ChatMessage
from indexing.runtime.deadline import Deadline

CHECK_SECONDS = 20.0
_LONGEST_ANSWER = 200
_TEMPERATURE = 0.5
"""Which models that reason refuse: they accept 1 alone."""
_COUNT = ChatMessage("user", "Count from one to five, in words, and write nothing else.")
_CALL = ChatMessage("user", "Call the tool note with the text ready.")
_TOOL = ToolSpec(
    "note",
    "Note a text.",
    {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCheck:
    """What a try has shown."""

    answers: bool
    answer: str = ""
    """The beginning of what it wrote."""
    seconds: float = 0.0
    """Until its first token."""
    streams: bool = False
    """Its text came in several pieces."""
    calls_tools: bool | None = None
    """None where it did not come so far."""
    takes_temperature: bool | None = None
    """Whether the temperature of an assistant counts; None where it did not come so far."""
    trouble: str = ""
    """What is wrong; empty if nothing is."""
    advice: str = ""
    """What to do about it."""


def check_model(model: LanguageModel, deadline: Deadline) -> ModelCheck:
    """Ask a model for a text, for a call, and at a temperature. The trouble may quote its server: it is for admins."""
    began = time.monotonic()
    pieces, first = list[str](), 0.0
    try:
        for event in model.stream([_COUNT], deadline):
            if isinstance(event, TextDelta):
                first = first or time.monotonic() - began
                pieces.append(event.text)
    except ModelError as error:
        advice = str(error).removeprefix(error.summary).strip()
        return ModelCheck(answers=False, trouble=error.summary, advice=advice)
    if not pieces:
        return ModelCheck(
            answers=False,
            trouble="The language model gave an empty answer.",
            advice="Check that its id is that of a model for chats.",
        )
    calls = _try_tool(model, deadline)
    trouble, advice = _compare(model.settings, calls=calls)
    return ModelCheck(
        answers=True,
        answer=" ".join(model.settings.hide_key("".join(pieces)).split())[:_LONGEST_ANSWER],
        seconds=round(first, 2),
        streams=len(pieces) > 1,
        calls_tools=calls,
        takes_temperature=_try_temperature(model, deadline),
        trouble=trouble,
        advice=advice,
    )


def _try_tool(model: LanguageModel, deadline: Deadline) -> bool | None:
    try:
        return _holds_call(list(model.stream([_CALL], deadline, [_TOOL])))
    except ToolsUnsupportedError:
        return False
    except ModelError:
        return None


def _try_temperature(model: LanguageModel, deadline: Deadline) -> bool | None:
    warmed = model.with_temperature(_TEMPERATURE)
    try:
        with closing(warmed.stream([_COUNT], deadline)) as stream:
            next(stream, None)
    except ModelError:
        return None
    return not warmed.refuses_temperature


def _holds_call(events: Sequence[ModelEvent]) -> bool:
    return any(isinstance(event, ToolCall) and event.name == _TOOL.name for event in events)


def _compare(settings: ModelSettings, *, calls: bool | None) -> tuple[str, str]:
    """Return what is wrong with what the admin says of the model, and what to do about it."""
    if calls is False and settings.calls_tools:
        return (
            "It calls no tools, but is set to call them.",
            "Set it to call no tools: then each question is searched as it is asked, without a failed first call.",
        )
    if calls and not settings.calls_tools:
        return (
            "It calls tools, but is set not to.",
            "Set it to call tools: then it decides itself what to search for.",
        )
    return "", ""
