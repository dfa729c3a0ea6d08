"""For `doctor`: whether the broker answers, and who works over it."""

from collections import Counter

from backend.container import Container
from backend.schemas.models import CheckWire
from backend.store import workers
from backend.sync import overdue
from backend.worker.celery_worker import Broker


def described(container: Container) -> CheckWire:
    """Raises TemporarilyUnavailableError, ActionRequiredError: the broker does not answer, or the database."""
    Broker(container.settings).check()
    present = Counter(one.queue for one in workers.present(container.database))
    living = ", ".join(f"{queue} {present[queue]}" for queue in overdue.COMMANDS)
    missing = overdue.missing({*present})
    return CheckWire(
        name="workers",
        state="warning" if missing else "ok",
        detail=f"the broker answers; processes that live: {living}",
        advice=f"start {' and '.join(missing)}" if missing else None,
    )
