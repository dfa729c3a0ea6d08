"""What is returned of a message, and what is not where it is withheld."""

from dataclasses import replace

from backend.api.answer_events import plain_html
from backend.api.conversation_responses import make_message
from backend.conversations.service import ShownMessage
from backend.conversations.unfinished_answer import make_unfinished_answer
from backend.web.answer_html import answer_html
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


def test_what_an_answer_that_was_stopped_cites_leads_to_its_document() -> None:
    text = "Parents have 26 weeks [[1]](file:///leave.md) and"
    cited = {"number": 1, "document_id": "a:x", "title": "Leave", "link": "file:///leave.md"}
    message = stored("assistant", text, make_unfinished_answer(text, [cited]))
    shown = ShownMessage(
        message=replace(message, status="stopped"),
        question="?",
        siblings=(1,),
        withheld=False,
        summary=None,
        files=(),
    )
    found = make_message(shown, answer_html)
    assert found.html is not None
    assert 'href="/document/a:x" data-at="0" data-verdict="unchecked"' in found.html
    assert found.answer is not None
    assert [one.title for one in found.answer.references] == ["Leave"]
    hidden = make_message(replace(shown, withheld=True), answer_html)
    assert (hidden.text, hidden.answer, hidden.html) == ("", None, None)
