"""Turns whose process has died: each is ended, with what was written of it, when somebody next looks at conversations."""

from datetime import UTC, datetime

from backend.conversations.turn_events import (
    CITATION,
    INTERRUPTED,
    LOST,
    SELECTED,
    decode_portions,
    encode_ending,
    encode_portion,
    join_text,
)
from backend.conversations.unfinished_answer import make_unfinished_answer
from backend.store.chat import turns
from backend.store.chat.turns import Ending, OpenTurn, Portion
from backend.store.database import Database
from backend.sync.run_lease import is_dead


def end_interrupted(database: Database) -> None:
    """End the turns that nobody writes any more."""
    now = datetime.now(UTC)
    for turn in turns.list_open(database):
        if turn.lease_until < now or is_dead(turn.holder):
            _interrupt(database, turn, now)


def _interrupt(database: Database, turn: OpenTurn, now: datetime) -> None:
    def end(last: int, payloads: tuple[str, ...]) -> tuple[Portion, Ending]:
        events = list(decode_portions(payloads))
        text, losses = join_text(events), tuple(one.data for one in events if one.name == LOST)
        citations = [one.data for one in events if one.name == CITATION]
        selections = [one.data for one in events if one.name == SELECTED]
        number, message = last + 1, turn.message_id
        payload = encode_portion(number, [encode_ending("interrupted", INTERRUPTED)])
        portion = Portion(message, number, number, payload, None)
        ending = Ending(
            message_id=message,
            status="interrupted",
            text=text,
            answer=make_unfinished_answer(text, citations, selections),
            losses=losses,
        )
        return portion, ending

    turns.take_over(database, turn, end, now)
