"""What is returned of a message, and what is not where it is withheld."""

from dataclasses import replace

from backend.api.answer_events import plain_html
from backend.api.conversation_responses import make_message
from backend.conversations.service import ShownMessage
from tests.support.conversations import make_message as stored

LOSS = {"step": "history", "reason": "The model is away."}


def test_what_an_answer_was_written_without_is_said_but_not_where_it_is_withheld() -> None:
    message = replace(stored("assistant", "26 weeks."), status="stopped", losses=(LOSS,))
    shown = ShownMessage(
        message=message, question="?", siblings=(1,), withheld=False, summary=None, files=()
    )
    found = make_message(shown, plain_html)
    assert [one.model_dump() for one in found.losses] == [LOSS]
    assert make_message(replace(shown, withheld=True), plain_html).losses == ()
