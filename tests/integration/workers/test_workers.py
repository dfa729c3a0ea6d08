"""`quarry worker` and `quarry beat` over a real Redis: whatever becomes of processes and messages, the work is done."""

import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from redis import Redis as Client

from backend.settings import Settings
from backend.store.sync import workers
from backend.sync.wakeup_messages import QUEUES, WakeupMessage
from backend.worker.broker import Broker
from deploy.opensearch.node import find_free_ports
from tests.support.databases import Databases, Redis, Server, sqlite_in
from tests.support.embedding_server import EmbeddingServer, embedding_server
from tests.support.scaled import SOURCE, Scaled, lives, scaled
from tests.support.soak import scaled as deepened
from tests.support.store import source_service

NUMBER = 11
"""Of the database within Redis that these tests keep to."""
FILES = deepened(60, 200, "faults")


@pytest.fixture
def embeddings() -> Iterator[EmbeddingServer]:
    with embedding_server() as server:
        yield server


@pytest.fixture
def redis(redis_url: str) -> Iterator[str]:
    url = f"{redis_url.rpartition('/')[0]}/{NUMBER}"
    with closing(Client.from_url(url)) as client:
        client.flushdb()
        yield url
        client.flushdb()


@pytest.fixture
def sqlite_site(tmp_path: Path, redis: str, embeddings: EmbeddingServer) -> Iterator[Scaled]:
    url = sqlite_in(tmp_path)
    with scaled(tmp_path, url, redis, embeddings.url) as site:
        yield site


@pytest.fixture
def site(
    tmp_path: Path, postgresql: Databases, redis: str, embeddings: EmbeddingServer
) -> Iterator[Scaled]:
    """A home on PostgreSQL."""
    with (
        postgresql.new() as url,
        scaled(tmp_path, url, redis, embeddings.url) as site,
    ):
        yield site


def broker(site: Scaled) -> Broker:
    return Broker(Settings.model_validate({"broker_url": site.redis_url}))


@pytest.mark.deep("faults")
def test_a_folder_is_indexed_and_pruned_whatever_other_messages_arrive(site: Scaled) -> None:
    _index_and_prune_a_folder(site)


@pytest.mark.soak("faults")
def test_on_sqlite_a_folder_is_indexed_and_pruned_whatever_other_messages_arrive(
    sqlite_site: Scaled,
) -> None:
    _index_and_prune_a_folder(sqlite_site)


def _index_and_prune_a_folder(site: Scaled) -> None:
    site.write(FILES)
    port = _three_ports()
    worker, beat = site.worker("--metrics-port", str(port)), site.beat()
    site.until(lambda: site.held() > 0)
    # Messages that come twice, too late, of nothing that is there, or that nobody could mean.
    for queue in QUEUES:
        for number in (1, 1, 999):
            broker(site).app.send_task(f"quarry.{queue}", args=[number], queue=queue)
    broker(site).app.send_task("quarry.fetch", args=["one"], queue="fetch")
    site.until(lambda: site.is_done(FILES))
    with closing(Client.from_url(site.redis_url)) as client:
        client.flushdb()
    for number in range(20):
        (site.files / f"{number:05}.md").unlink()
    source_service(site.database).prune(SOURCE)
    site.until(lambda: site.is_done(FILES - 20))
    site.check(FILES - 20)
    site.until(lambda: all(site.serving(queue) for queue in (*QUEUES, "beat")))
    read, indexed = (_figures(port + number) for number in (0, 1))
    assert read["quarry_stage_seconds_total", "fetch"] > 0
    assert indexed["quarry_indexed_total", "documents"] == FILES
    assert all(indexed["quarry_stage_seconds_total", stage] > 0 for stage in ("embed", "write"))
    doctor = site.quarry_command("doctor", "--json")
    (check,) = (one for one in doctor.json if one["name"] == "workers")
    assert (check["state"], check["advice"]) == ("ok", None)
    began = time.monotonic()
    for process in (worker, beat):
        process.send_signal(signal.SIGTERM)
    assert (worker.wait(30), beat.wait(30)) == (0, 0)
    assert time.monotonic() - began < 20
    assert not any(site.serving(queue) for queue in (*QUEUES, "beat"))


@pytest.mark.soak("faults")
def test_two_workers_share_the_work_and_one_that_is_killed_is_not_missed(
    site: Scaled,
) -> None:
    site.write(600)
    first = site.worker()
    site.worker()
    site.until(lambda: all(len(site.serving(queue)) == 2 for queue in QUEUES))
    children = [int(number) for number in _children(first.pid)]
    site.beat()
    site.until(lambda: site.held() > 0)
    with closing(Client.from_url(site.redis_url)) as client:
        client.flushdb()
    for number in (first.pid, *children):
        os.kill(number, signal.SIGKILL)
    site.until(lambda: site.is_done(600))
    site.check(600)


def test_a_process_that_dies_is_started_again_and_none_outlives_its_parent(
    site: Scaled,
) -> None:
    worker = site.worker("--queue", "light", "--queue", "fetch")
    site.until(lambda: site.serving("fetch") and site.serving("light"))
    (before,) = site.serving("fetch")
    os.kill(before, signal.SIGKILL)
    site.until(lambda: set(site.serving("fetch")) - {before})
    assert not site.serving("index")
    others = {number for queue in QUEUES for number in site.serving(queue)} - {before}
    worker.kill()
    worker.wait()
    site.until(lambda: not any(map(lives, others)))


@pytest.mark.soak("faults")
def test_what_was_begun_is_given_back_and_gone_on_with(site: Scaled) -> None:
    site.write(600)
    worker = site.worker()
    site.beat()
    site.until(lambda: site.held() > 0)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(30) == 0
    latest = site.latest()
    assert latest is not None
    assert latest.state in {"interrupted", "done"} or "Work did not stop in time" in site.log()
    site.worker()
    site.until(lambda: site.is_done(600))
    site.check(600)


@pytest.mark.soak("faults")
def test_while_redis_is_away_what_goes_on_goes_on(
    tmp_path: Path, postgresql: Databases, embeddings: EmbeddingServer
) -> None:
    with (
        postgresql.new() as url,
        Server(Redis) as server,
        scaled(tmp_path, url, server.url, embeddings.url) as site,
    ):
        site.write(800)
        site.worker()
        site.beat()
        site.until(lambda: site.held() > 0)
        server.kill()
        site.until(lambda: site.is_done(800))
        site.write(10, begin=800)
        source_service(site.database).sync(SOURCE)
        site.until(lambda: "The broker does not answer" in site.log())
        site.until(lambda: _troubles(site))
        assert "The broker does not answer" in _troubles(site)
        assert source_service(site.database).status(SOURCE).documents == 800
        doctor = site.quarry_command("doctor", "--json")
        (check,) = (one for one in doctor.json if one["name"] == "workers")
        assert check["state"] == "failed"
        assert "The broker does not answer" in check["detail"]
        server.start()
        site.until(lambda: site.is_done(810))
        site.check(810)


@pytest.mark.soak("faults")
def test_what_stands_still_is_given_up_with_its_process_and_tried_again(
    site: Scaled, embeddings: EmbeddingServer
) -> None:
    """The embedder takes an hour; six seconds are allowed."""
    site.still_minutes = 0.1
    site.write(1)
    site.worker()
    site.beat()
    site.until(lambda: site.is_done(1))
    before = site.until(lambda: site.serving("index"))
    embeddings.seconds = 3600.0
    site.write(2, begin=1)
    source_service(site.database).sync(SOURCE)
    site.until(lambda: "Nothing moved for 6 seconds" in (_waiting_for(site) or ""))
    embeddings.seconds = 0.0
    site.until(lambda: set(site.serving("index")) - set(before))
    site.until(lambda: site.is_done(3))
    site.check(3)


def _waiting_for(site: Scaled) -> str | None:
    latest = site.latest()
    return None if latest is None else latest.waiting_for


def test_a_server_leaves_the_work_to_the_broker_and_says_so(site: Scaled) -> None:
    site.write(1)
    site.start("serve", "--port", "0", QUARRY_WORKERS="true")
    site.until(lambda: "quarry worker and quarry beat sync the sources" in site.log())
    assert site.latest() is None
    assert site.serving("serve") == []


@pytest.mark.smoke
def test_messages_do_not_pile_up_while_no_worker_lives(site: Scaled) -> None:
    calls = [WakeupMessage("fetch", 1), WakeupMessage("fetch", 2), WakeupMessage("light", 3)]
    for _ in range(5):
        broker(site).call(calls)
    with closing(Client.from_url(site.redis_url)) as client:
        lengths = {queue: client.llen(f"quarry:{queue}") for queue in QUEUES}
    assert lengths == {"fetch": 2, "index": 0, "light": 1}


def _three_ports() -> int:
    """The first of three free ones that follow each other."""
    while True:
        (port,) = find_free_ports(1)
        with ExitStack() as stack, suppress(OSError):
            for number in range(3):
                stack.enter_context(socket.create_server(("127.0.0.1", port + number)))
            return port


def _figures(port: int) -> dict[tuple[str, ...], float]:
    text = httpx.get(f"http://127.0.0.1:{port}/metrics").text
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def _troubles(site: Scaled) -> str:
    return " ".join(one.trouble or "" for one in workers.list_live(site.database))


def _children(number: int) -> list[str]:
    return Path(f"/proc/{number}/task/{number}/children").read_text(encoding="ascii").split()
