"""Messages of the broker: what they hold, how many there are, and what they do."""

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest
from redis import Redis

from backend.settings import Settings
from backend.sync.run_lease import StoppedError
from backend.sync.wakeup_messages import WakeupMessage
from backend.worker.broker import Broker, IndexWakeup
from backend.worker.celery_worker import log_errors
from backend.worker.process import LogOnChange
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from deploy.opensearch.node import find_free_ports

NUMBER = 12


@pytest.fixture
def redis(redis_url: str) -> Iterator[Redis]:
    with closing(Redis.from_url(f"{redis_url.rpartition('/')[0]}/{NUMBER}")) as client:
        client.flushdb()
        yield client
        client.flushdb()


@pytest.fixture
def broker(redis: Redis, redis_url: str) -> Broker:
    assert redis.ping()
    return of(f"{redis_url.rpartition('/')[0]}/{NUMBER}")


def of(url: str) -> Broker:
    return Broker(Settings.model_validate({"broker_url": url}))


def messages(redis: Redis, queue: str) -> list[dict[str, object]]:
    found = redis.lrange(f"quarry:{queue}", 0, -1)
    assert isinstance(found, list)
    return [json.loads(one) for one in found]


def test_a_message_holds_the_number_of_a_source_and_nothing_else(
    redis: Redis, broker: Broker
) -> None:
    broker.call([WakeupMessage("fetch", 7)])
    (message,) = messages(redis, "fetch")
    assert message["content-type"] == "application/json"
    headers = message["headers"]
    assert isinstance(headers, dict)
    assert (headers["task"], headers["argsrepr"], headers["kwargsrepr"]) == (
        "quarry.fetch",
        "[7]",
        "{}",
    )
    assert headers["expires"] is not None


def test_a_queue_with_unread_messages_gets_no_more(redis: Redis, broker: Broker) -> None:
    for _ in range(3):
        broker.call(
            [WakeupMessage("fetch", 1), WakeupMessage("fetch", 2), WakeupMessage("index", 1)]
        )
    assert (len(messages(redis, "fetch")), len(messages(redis, "index"))) == (2, 1)
    broker.call([WakeupMessage("light", 1)])
    assert len(messages(redis, "light")) == 1


def test_document_sets_are_told_by_the_light_workers(redis: Redis, broker: Broker) -> None:
    broker.call([WakeupMessage("sets")])
    (message,) = messages(redis, "light")
    headers = message["headers"]
    assert isinstance(headers, dict)
    assert headers["task"] == "quarry.sets"


def test_what_the_database_decides_needs_neither_results_nor_control(broker: Broker) -> None:
    conf = broker.app.conf
    assert (conf.task_acks_late, conf.task_reject_on_worker_lost) == (True, True)
    assert conf.worker_prefetch_multiplier == 1
    assert (conf.task_ignore_result, conf.result_backend) == (True, None)
    assert conf.accept_content == ["json"]
    assert not conf.worker_enable_remote_control
    assert not conf.worker_cancel_long_running_tasks_on_connection_loss


def test_a_broker_that_is_away_is_reported_without_its_password(redis_url: str) -> None:
    (port,) = find_free_ports(1)
    with pytest.raises(TemporarilyUnavailableError, match="The broker does not answer") as raised:
        of(f"redis://:secret@127.0.0.1:{port}/0").check()
    assert "secret" not in str(raised.value)
    wrong = redis_url.replace("@", "x@")
    with pytest.raises(TemporarilyUnavailableError, match="QUARRY_BROKER_URL"):
        of(wrong).check()


@pytest.mark.parametrize(
    ("url", "words"), [("", "No broker is set"), ("amqp://127.0.0.1", "must begin with redis")]
)
def test_an_address_that_cannot_work_is_refused(url: str, words: str) -> None:
    with pytest.raises(ActionRequiredError, match=words):
        Broker(Settings.model_validate({"broker_url": url or None}))


def test_trouble_is_logged_once_and_so_is_its_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    actual, away = LogOnChange(), ActionRequiredError("It is away.")
    for error in (None, away, away, None, None):
        actual.note(error)
    assert [record.getMessage() for record in caplog.records] == ["It is away.", "Work continues."]
    assert actual.trouble is None


def test_a_bell_that_is_rung_often_sends_a_message_and_never_fails(
    redis: Redis, broker: Broker
) -> None:
    wakeup = IndexWakeup(broker)
    for _ in range(100):
        wakeup.ring()
    rung = threading.Event()
    for _ in range(200):
        if messages(redis, "index") or rung.wait(0.05):
            break
    assert len(messages(redis, "index")) == 1
    (port,) = find_free_ports(1)
    IndexWakeup(of(f"redis://127.0.0.1:{port}/0")).ring()


@pytest.mark.parametrize(
    "error",
    [StoppedError(), ActionRequiredError("Mend it."), KeyError("tags")],
    ids=lambda error: type(error).__name__,
)
def test_whatever_ends_a_task_is_reported_and_ends_no_worker(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with log_errors():
        raise error
    assert len(caplog.records) == 1
