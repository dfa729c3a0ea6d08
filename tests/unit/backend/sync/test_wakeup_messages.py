"""What is due and does not begin says why."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backend.store.sync.runs import Process
from backend.store.sync.workers import LiveWorker
from backend.sync import wakeup_messages
from tests.support.document_sets import EMBEDDER, apply_all, define, tag
from tests.support.memory_index_writer import MemoryIndexWriter
from tests.support.store import store_with

NOW = datetime(2026, 3, 2, 12, 30, tzinfo=UTC)
SINCE = NOW - timedelta(minutes=5)
QUEUES = ("beat", "fetch", "index", "light")


def present(*queues: str, trouble: str | None = None) -> list[LiveWorker]:
    return [
        LiveWorker(
            process=Process("here", number, "1"),
            queue=queue,
            seen_at=NOW,
            trouble=trouble if queue == "beat" else None,
        )
        for number, queue in enumerate(queues)
    ]


@pytest.mark.parametrize(
    "starts",
    [
        {},
        {"prune": None},
        {"incremental": NOW - timedelta(seconds=50)},
        {"prune": NOW + timedelta(days=1)},
    ],
)
def test_what_has_not_been_due_for_long_says_nothing(starts: dict[str, datetime | None]) -> None:
    assert wakeup_messages.explain_overdue(starts, [], NOW) is None


@pytest.mark.parametrize(
    ("signed", "words"),
    [
        (present(), "No worker is running. Start `quarry serve`"),
        (present("serve"), "busy with other sources"),
        (present(*QUEUES), "busy with other sources"),
        (present("beat", "index", "light"), "Start quarry worker --queue fetch."),
        (present("index", "light", "fetch"), "Start quarry beat."),
        (present(*QUEUES, trouble="The broker does not answer."), "The broker does not answer."),
    ],
)
def test_what_is_overdue_says_since_when_and_what_to_do(
    signed: list[LiveWorker], words: str
) -> None:
    explanation = wakeup_messages.explain_overdue(
        {"incremental": SINCE, "prune": None}, signed, NOW
    )
    assert explanation is not None
    assert explanation.startswith(f"Due since {SINCE.astimezone():%Y-%m-%d %H:%M}. ")
    assert words in explanation


def test_a_set_that_changed_wakes_a_worker_until_its_documents_are_told(tmp_path: Path) -> None:
    store = store_with(tmp_path)
    assert wakeup_messages.list_due(store.database) == []
    define(store.database, "a", tag("k=v"))
    (message,) = wakeup_messages.list_due(store.database)
    assert (message.queue, message.task) == ("light", "sets")
    apply_all(store.database, MemoryIndexWriter(EMBEDDER.dimension))
    assert wakeup_messages.list_due(store.database) == []
    store.database.close()
