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
"""Seconds between two messages of what is due."""
POLL_SECONDS = 0.25
"""Seconds between two queries of who waits for a worker of another process."""
_EXPIRY = 300
"""Seconds after which a message is obsolete, because it was sent again. Clocks may differ by minutes."""
_VISIBILITY = 3600
"""Seconds after which Redis delivers an unacknowledged message again. A run may take longer; its second message
finds it running and does nothing. A shorter time is not needed for lost messages, because the beat sends what is
due every 15 seconds."""
_TIMEOUT = 5.0
"""Seconds for the broker to answer a sender."""

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
                        f"quarry.{each.task}",
                        args=[each.source],
                        queue=each.queue,
                        expires=_EXPIRY,
                        connection=connection,
                        retry=False,
                    )

    def check(self) -> None:
        """Raise TemporarilyUnavailableError if the broker does not answer."""
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
    # Running tasks need no broker, and a thread could not be ended anyway.
    "worker_cancel_long_running_tasks_on_connection_loss": False,
    "worker_enable_prefetch_count_reduction": False,
    "worker_enable_remote_control": False,
    "worker_send_task_events": False,
    "worker_hijack_root_logger": False,
    "worker_redirect_stdouts": False,
}


class IndexWakeup:
    """Wakes the index workers from a thread of its own, so that the caller neither waits nor fails."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._requested = threading.Event()
        self._trouble = LogOnChange()
        threading.Thread(target=self._work, name="index wakeup", daemon=True).start()

    def ring(self) -> None:
        self._requested.set()

    def _work(self) -> None:
        while self._requested.wait():
            self._requested.clear()
            try:
                self._broker.call([WakeupMessage("index")])
                self._trouble.note(None)
            except (TemporarilyUnavailableError, ActionRequiredError) as error:
                # The beat sends the message later.
                self._trouble.note(error)
            except Exception:
                LOG.exception("Sending a message failed with an internal error.")
            time.sleep(POLL_SECONDS)
