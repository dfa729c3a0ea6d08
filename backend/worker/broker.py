"""The messages to workers over Redis. A lost, doubled or late message does no harm: the database decides."""

import logging
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from celery import Celery
from kombu.exceptions import OperationalError

from backend.settings import Settings, variable
from backend.sync.wakeup_messages import QUEUES, WakeupMessage
from backend.worker.process import LogOnChange
from connectors.errors import ActionRequiredError, NotConfiguredError, TemporarilyUnavailableError

BEAT_SECONDS = 15.0
"""Seconds between two looks at what is due."""
POLL_SECONDS = 0.25
"""Seconds between two looks at the database, of those who wait for a worker of another process."""
_EXPIRY = 300
"""Seconds after which a message says nothing that has not been said anew. Clocks may differ by minutes."""
_VISIBILITY = 3600
"""Seconds after which Redis hands a message out again that nobody has acknowledged. A run may take longer: its
message then comes twice, and finds the run going on. A shorter time would only bring more of these; a lost
message need not be waited for, since what it told is told again within a quarter of a minute."""
_TIMEOUT = 5.0
"""Seconds for the broker to answer, before whoever tells it something goes on with other work."""

LOG = logging.getLogger("quarry.worker")


class Broker:
    """Messages over Redis.

    Raises NotConfiguredError: no broker is set, or its address or driver cannot work.
    """

    def __init__(self, settings: Settings) -> None:
        if settings.broker_url is None:
            raise NotConfiguredError(
                f"No broker is set. Set {variable('broker_url')} to the address of a Redis, such as"
                " redis://:PASSWORD@127.0.0.1:6379/0. Without one, quarry serve syncs the"
                " sources itself."
            )
        url = settings.broker_url.get_secret_value()
        if not url.startswith(("redis://", "rediss://")):
            raise NotConfiguredError(
                f"{variable('broker_url')} must begin with redis:// or rediss://."
            )
        self.app = Celery("quarry", broker=url, set_as_current=False)
        self.app.conf.update(_CONFIGURATION)

    def call(self, calls: Iterable[WakeupMessage]) -> None:
        """Send these, but none to a queue with unread messages, which say the same.

        Raises:
            TemporarilyUnavailableError: the broker does not answer.
        """
        with self._answering() as connection:
            channel = connection.default_channel
            unread = {each: channel.queue_declare(each).message_count for each in QUEUES}
            for each in calls:
                if not unread[each.queue]:
                    self.app.send_task(
                        f"quarry.{each.queue}",
                        args=[each.source],
                        queue=each.queue,
                        expires=_EXPIRY,
                        connection=connection,
                        retry=False,
                    )

    def check(self) -> None:
        """Raises TemporarilyUnavailableError: the broker does not answer."""
        with self._answering():
            pass

    @contextmanager
    def _answering(self) -> Iterator[Any]:
        connection = self.app.connection_for_write()
        try:
            with connection:
                connection.ensure_connection(max_retries=1, interval_start=0.1, timeout=_TIMEOUT)
                yield connection
        except ImportError as error:
            raise NotConfiguredError(
                "Redis needs a driver that is not installed: pip install 'quarry-search[redis]'."
            ) from error
        except (OperationalError, *connection.connection_errors) as error:
            words = " ".join(str(error).split()).rstrip(".")
            raise TemporarilyUnavailableError(
                f"The broker does not answer: {words}. If this persists, check that Redis runs at the"
                f" address in {variable('broker_url')}.",
                retry_after=timedelta(seconds=BEAT_SECONDS),
            ) from error


_CONFIGURATION: Mapping[str, object] = {
    "broker_transport_options": {
        "global_keyprefix": "quarry:",
        "visibility_timeout": _VISIBILITY,
        "socket_connect_timeout": _TIMEOUT,
        "socket_keepalive": True,
    },
    "broker_connection_retry": True,
    "broker_connection_retry_on_startup": True,
    "broker_connection_max_retries": None,
    "task_serializer": "json",
    "accept_content": ["json"],
    "task_ignore_result": True,
    "task_acks_late": True,
    "task_reject_on_worker_lost": True,
    "task_create_missing_queues": True,
    "task_default_queue": "light",
    "worker_prefetch_multiplier": 1,
    # What goes on needs no broker; and a thread could not be ended anyway.
    "worker_cancel_long_running_tasks_on_connection_loss": False,
    "worker_enable_prefetch_count_reduction": False,
    "worker_enable_remote_control": False,
    "worker_send_task_events": False,
    "worker_hijack_root_logger": False,
    "worker_redirect_stdouts": False,
}


class IndexWakeup:
    """Wakes the workers that index, from a thread of its own: whoever rings neither waits nor fails."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._rung = threading.Event()
        self._told = LogOnChange()
        threading.Thread(target=self._work, name="bell", daemon=True).start()

    def ring(self) -> None:
        self._rung.set()

    def _work(self) -> None:
        while self._rung.wait():
            self._rung.clear()
            try:
                self._broker.call([WakeupMessage("index", 0)])
                self._told.note(None)
            except (TemporarilyUnavailableError, ActionRequiredError) as error:
                # The beat makes up for it.
                self._told.note(error)
            except Exception:
                LOG.exception("A message could not be sent.")
            time.sleep(POLL_SECONDS)
