"""Why a source that is due is not at work yet: nothing is ever just scheduled."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from backend.store.workers import Present
from backend.sync.wakeup_messages import QUEUES
from backend.sync.worker_heartbeat import SERVE

_PATIENCE = timedelta(minutes=1)
"""In which what is due begins, as a rule."""
COMMANDS: Mapping[str, str] = {"beat": "quarry beat"} | {
    queue: f"quarry worker --queue {queue}" for queue in QUEUES
}
"""What starts the processes of each queue."""


def told(
    starts: Mapping[str, datetime | None], present: Sequence[Present], now: datetime
) -> str | None:
    """Since when a run has been due, and what keeps it from beginning; `None` where none has been for long."""
    since = min((start for start in starts.values() if start), default=now)
    if now - since < _PATIENCE:
        return None
    return f"Due since {since.astimezone():%Y-%m-%d %H:%M}. {_reason(present)}"


def missing(queues: set[str]) -> list[str]:
    """The commands to start, where these are served."""
    return [command for queue, command in COMMANDS.items() if queue not in queues]


def _reason(present: Sequence[Present]) -> str:
    queues = {one.queue for one in present}
    if trouble := next((one.trouble for one in present if one.trouble), None):
        return trouble
    if not queues:
        return (
            "Nobody works: start quarry serve (with a broker: quarry worker and quarry beat), or"
            " read it now with quarry sync."
        )
    if SERVE not in queues and (commands := missing(queues)):
        return f"Start {' and '.join(commands)}."
    return "The workers are busy with other sources, or not ready yet."
