"""What a follower of an answer receives, by what it may read at that moment."""

import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime

import pytest

from backend.conversations.followed_turn import (
    AnswerPlace,
    FollowedAnswer,
    FollowPosition,
    TurnFollower,
    WithheldError,
)
from backend.conversations.turn_notifications import TurnNotifications
from backend.store.database import Database, open_database
from connectors.access import Readers
from indexing.runtime.deadline import CancelToken
from tests.support.conversations import OWNER, begin, own_no_memories, store, text_portion
from tests.unit.backend.conversations.test_turn_runner import Shelf


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with closing(open_database(database_url)) as opened:
        yield opened


def test_no_word_comes_of_a_document_that_the_answer_rests_on_since_the_last_look(
    database: Database,
) -> None:
    """What was read whole, or said before, is named by no event: the words that follow are the first sign of it."""
    answer = begin(database).answer
    place = AnswerPlace(OWNER, answer.conversation_id)
    follower = TurnFollower(
        database=database,
        answer=FollowedAnswer(answer.id, lambda: place, is_own=False),
        index=Shelf("handbook"),  # type: ignore[arg-type]
        readers_now=lambda: Readers.of("public"),
        own_memories=own_no_memories,
        seconds=30.0,
        news=TurnNotifications(),
        is_announced=lambda: True,
        cancel_token=CancelToken(),
    )
    now = datetime.now(UTC)
    first = text_portion(answer.id, 1, "Leave is ", documents=("handbook",))
    store(database, answer.id, first, None, now)
    # Its rights were read a moment ago, and are not due again.
    seen = follower.look(FollowPosition(0, time.monotonic() + 600))
    assert [one.data["text"] for one in seen.events] == ["Leave is "]
    private = text_portion(answer.id, 2, "as Ann's contract says.", documents=("handbook", "ann"))
    store(database, answer.id, private, None, now)
    with pytest.raises(WithheldError):
        follower.look(seen.position)
