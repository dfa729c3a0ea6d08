"""What Slack reports, read from its payloads: a question, a pressed button, or nothing that concerns the bot.

The payloads are those of the Events API and of interactive components, as Socket Mode delivers them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from backend.store.chat.slack_questions import NewSlackQuestion, SlackMessage

Payload: TypeAlias = Mapping[str, Any]
ButtonName: TypeAlias = Literal["good", "bad", "wrong_source", "answer_privately"]

_WRITTEN_BY_PEOPLE = {None, "file_share", "thread_broadcast"}
"""Subtypes of messages in which somebody says something; all others report changes."""


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    question: NewSlackQuestion
    text: str
    """As Slack has it, with the mention of the bot."""
    is_direct: bool
    """In the direct messages of one person with the bot, which nobody else reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PressedButton:
    name: ButtonName
    value: str
    """What the bot put into the button, or into the chosen option."""
    team_id: str
    channel_id: str
    user_id: str
    thread_ts: str


def read_question(payload: Payload) -> AskedQuestion | None:
    """Return the question that an event holds: a mention of the bot, or a direct message of a person to it."""
    event = payload.get("event", {})
    is_direct = event.get("channel_type") == "im"
    is_for_bot = event.get("type") == "app_mention" or (
        event.get("type") == "message" and is_direct
    )
    if not is_for_bot or not _is_of_person(event):
        return None
    message = SlackMessage(payload["team_id"], event["channel"], event["ts"])
    question = NewSlackQuestion(
        message=message,
        thread_ts=event.get("thread_ts") or event["ts"],
        user_id=event["user"],
    )
    return AskedQuestion(question, event.get("text") or "", is_direct)


def _is_of_person(event: Payload) -> bool:
    return (
        bool(event.get("user"))
        and not event.get("bot_id")
        and event.get("subtype") in _WRITTEN_BY_PEOPLE
    )


def read_pressed(payload: Payload) -> PressedButton | None:
    """Return the button of the bot that somebody pressed."""
    actions = payload.get("actions") or [{}]
    action, container = actions[0], payload.get("container", {})
    name = action.get("action_id")
    if payload.get("type") != "block_actions" or name not in get_args(ButtonName):
        return None
    chosen = action.get("selected_option") or action
    return PressedButton(
        name=name,
        value=str(chosen.get("value", "")),
        team_id=payload["team"]["id"],
        channel_id=container["channel_id"],
        user_id=payload["user"]["id"],
        thread_ts=container.get("thread_ts") or container["message_ts"],
    )
