"""What Slack reports, and what of it is a question."""

from typing import Any

import pytest

from backend.programs.slack.events import AskedQuestion, PressedButton, read_pressed, read_question
from backend.programs.slack.question_text import read_question_text
from backend.store.chat.slack_questions import NewSlackQuestion, SlackMessage

MENTION = {"type": "app_mention", "user": "U1", "channel": "C1", "ts": "1.1", "text": "<@B> hi"}
DIRECT = {**MENTION, "type": "message", "channel_type": "im", "channel": "D1"}


def payload(event: dict[str, Any]) -> dict[str, Any]:
    return {"team_id": "T1", "event": event}


def asked(channel: str, thread: str, *, is_direct: bool) -> AskedQuestion:
    message = SlackMessage("T1", channel, "1.1")
    question = NewSlackQuestion(message=message, thread_ts=thread, user_id="U1")
    return AskedQuestion(question, "<@B> hi", is_direct)


@pytest.mark.parametrize(
    ("event", "question"),
    [
        (MENTION, asked("C1", "1.1", is_direct=False)),
        ({**MENTION, "thread_ts": "0.9"}, asked("C1", "0.9", is_direct=False)),
        (DIRECT, asked("D1", "1.1", is_direct=True)),
        ({**DIRECT, "subtype": "file_share"}, asked("D1", "1.1", is_direct=True)),
        ({**MENTION, "bot_id": "B1"}, None),
        ({**DIRECT, "subtype": "message_changed"}, None),
        ({**DIRECT, "subtype": "message_deleted"}, None),
        ({**DIRECT, "channel_type": "channel"}, None),
        ({**DIRECT, "channel_type": "mpim"}, None),
        ({**MENTION, "user": None}, None),
        ({"type": "reaction_added"}, None),
        ({}, None),
    ],
)
def test_mentions_and_direct_messages_of_people_are_questions(
    event: dict[str, Any], question: AskedQuestion | None
) -> None:
    assert read_question(payload(event)) == question


def test_a_button_and_an_option_are_read_with_their_values() -> None:
    pressed = {
        "type": "block_actions",
        "team": {"id": "T1"},
        "user": {"id": "U1"},
        "container": {"channel_id": "C1", "message_ts": "2.2", "thread_ts": "1.1"},
        "actions": [{"action_id": "good", "value": "c:5"}],
    }
    assert read_pressed(pressed) == PressedButton(
        name="good",
        value="c:5",
        team_id="T1",
        channel_id="C1",
        user_id="U1",
        thread_ts="1.1",
    )
    chosen = {"action_id": "wrong_source", "selected_option": {"value": "c:5:2"}}
    found = read_pressed({**pressed, "actions": [chosen]})
    assert found is not None
    assert found.value == "c:5:2"
    assert read_pressed({**pressed, "actions": [{"action_id": "other"}]}) is None
    assert read_pressed({**pressed, "actions": []}) is None
    assert read_pressed({"type": "view_submission"}) is None


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("<@B> How long   is leave?", "How long is leave?"),
        ("hey <@B>, what of <@U2|ann> in <#C1|general>?", "hey , what of @ann in #general?"),
        ("<@B> <!here> <!subteam^S1|@team> <!date^1^x>", "@here @team @date"),
        (
            "<@B> see <https://a.example/x|the page> <https://b.example>",
            "see the page https://b.example",
        ),
        ("<@B> is a &lt; b &amp;&amp; c &gt; d?", "is a < b && c > d?"),
        ("<@B> what is &amp;lt;?", "what is &lt;?"),
        ("<@B>", ""),
    ],
)
def test_the_question_is_what_a_person_reads_in_the_message(text: str, question: str) -> None:
    assert read_question_text(text, "B") == question
