"""`quarry serve` as a person and a service manager meet it: real processes, real sockets."""

import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from tests.support.home import Home
from tests.support.scripted_model import (
    Call,
    Manner,
    Reply,
    Request,
    Say,
    ScriptedModel,
    Silent,
    ToolUse,
)
from tests.support.serving import Serving, events, serving

SOON = 15.0
"""Seconds, far from the three minutes that an answer may take."""
QUESTION = {"question": "What should a customer do when the scanner shows QX-4031?"}
MEGABYTE = 1 << 20
PAGES = 256
"""Four batches of a sync."""


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        yield running


@pytest.fixture(scope="module")
def server(home: Home, model: ScriptedModel) -> Iterator[Serving]:
    settings = {"QUARRY_LLM_URL": model.base_url, "QUARRY_LLM_MODEL": "scripted"}
    with serving(home, "--as", "group:finance", **settings) as running:
        yield running


def _answering(last: Reply) -> object:
    """A model that searches, and then gives `last`."""

    def script(request: Request) -> Reply:
        if request.has_sources:
            return last
        if request.tool_names:
            return Call(ToolUse("internal_search", {"queries": ["QX-4031"]}))
        return Say("QX-4031")

    return script


def _play(model: ScriptedModel, last: Reply) -> None:
    model.hung_up.clear()
    script = _answering(last)
    assert callable(script)
    model.play(script)


# The address, and who may reach it.


def test_it_says_where_it_is_and_what_to_do(home: Home) -> None:
    with serving(home) as running:
        assert running.url.startswith("http://127.0.0.1:")
        assert running.process.stdout
        assert "Ctrl-C" in running.process.stdout.readline()
        assert running.stop()[0] == 0


def test_only_the_secret_or_a_link_lets_one_in(home: Home) -> None:
    with serving(home) as running, httpx.Client(base_url=running.url, timeout=60) as stranger:
        for path in ("/", "/api/sources", "/api/documents", "/openapi.json", "/metrics"):
            assert stranger.get(path).status_code == 401
        added = {"kind": "folder", "settings": {"path": str(home.path)}}
        assert stranger.post("/api/admin/sources", json=added).status_code == 401
        opened = stranger.get(running.link)
        assert (opened.status_code, opened.headers["location"]) == (303, "/")
        assert stranger.get("/api/sources").status_code == 200
        printed = home.quarry("link", "--port", str(stranger.base_url.port)).out.strip()
        assert printed.startswith(f"{running.url}/link?code=")
        assert httpx.get(printed, timeout=60).status_code == 303
        session = dict(stranger.cookies)
        assert running.stop()[0] == 0
        log = "".join(running.log)
        secret = running.authorization["Authorization"].split()[1]
        code = running.link.partition("code=")[2]
        assert not any(text in log for text in (secret, code, *session.values()))


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("0.0.0.0", "0.0.0.0 can be reached from other machines"),
        ("::", ":: can be reached from other machines"),
        ("192.168.1.7", "192.168.1.7 can be reached from other machines"),
        ("example.com", "example.com is not an IP address of this machine"),
        ("", "is not an IP address of this machine"),
        ("127.0.0.1.nip.io", "127.0.0.1.nip.io is not an IP address of this machine"),
    ],
)
def test_others_cannot_reach_it_and_it_says_why(home: Home, host: str, reason: str) -> None:
    run = home.quarry("serve", "--host", host)
    assert run.code == 2
    assert reason in " ".join(run.err.replace("│", " ").split())


def test_a_port_that_is_taken_is_named(home: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        run = home.quarry("serve", "--port", str(port))
    assert run.code == 1
    assert f"Port {port}" in run.err
    assert "--port 0" in run.err


def test_a_wrong_reader_is_refused_before_anything_is_served(home: Home) -> None:
    assert home.quarry("serve", "--as", "finance").code == 2


def test_what_as_says_is_what_is_seen(server: Serving) -> None:
    salary = "/api/documents/handbook:finance/salary-bands-2026.xlsx"
    assert server.client.get(salary).status_code == 200


def test_an_id_in_any_script_is_found_through_a_real_address(server: Serving) -> None:
    listed = server.client.get("/api/documents", params={"limit": 500}).json()["documents"]
    (found,) = [one["id"] for one in listed if "差旅" in one["id"]]
    shown = server.client.get(f"/api/documents/{quote(found)}")
    assert shown.json()["id"] == found
    got = server.client.get(f"/api/documents/{quote(found)}/original")
    assert got.headers["content-type"] == "text/markdown"


def test_rebinding_is_refused_on_the_socket_too(server: Serving) -> None:
    got = server.client.get("/api/documents", headers={"host": "evil.example:8321"})
    assert got.status_code == 421


# Clients that go away, and clients that are slow.


@pytest.mark.parametrize(
    "last",
    [
        Say("Close the cover until it clicks.", manner=Manner(stall_after=3)),
        Silent(),  # not even a header
    ],
    ids=["in the middle of an answer", "before its first byte"],
)
def test_a_client_that_goes_away_ends_the_work_of_the_model(
    server: Serving, model: ScriptedModel, last: Reply
) -> None:
    _play(model, last)
    before = len(server.log)
    with server.client.stream("POST", "/api/ask", json=QUESTION) as response:
        stream = events(response.iter_lines())
        assert any(event.name == "selected" for event in stream)
        if isinstance(last, Say):
            assert any(event.name == "text" for event in stream)
        else:
            _wait_for(lambda: _was_told_results(model))
    assert model.hung_up.wait(SOON)
    _wait_for(lambda: any('"gone": true' in line for line in server.log[before:]))


def _was_told_results(model: ScriptedModel) -> bool:
    return model.requests[-1].has_sources


def _wait_for(happened: object) -> None:
    assert callable(happened)
    end = time.monotonic() + SOON
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_slow_reader_costs_no_memory(server: Serving, model: ScriptedModel) -> None:
    """An answer of 30 MB, of which the reader takes the beginning: the model has to wait as well."""
    piece = "word " * 200
    _play(model, Say([piece] * 30_000))
    before = server.resident
    sent = server.client.build_request("POST", "/api/ask", json=QUESTION)
    with socket.create_connection(("127.0.0.1", sent.url.port or 0), 60) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        connection.sendall(_raw(sent))
        time.sleep(4)
        assert server.resident - before < 40 * MEGABYTE
    assert model.hung_up.wait(SOON)


def _raw(request: httpx.Request) -> bytes:
    head = [f"POST {request.url.path} HTTP/1.1"]
    head += [f"{name}: {value}" for name, value in request.headers.items()]
    return "\r\n".join([*head, "", ""]).encode() + request.content


# Many at once.


def test_sixty_at_once_are_all_answered_alike(server: Serving, model: ScriptedModel) -> None:
    _play(model, Say("It is open [1]."))

    def search(number: int) -> list[str]:
        query = "QX-4031" if number % 2 else "parental leave"
        found = server.client.post("/api/search", json={"query": query, "limit": 5})
        return [one["document_id"] for one in found.json()["results"]]

    def ask(number: int) -> str:
        del number
        with server.client.stream("POST", "/api/ask", json=QUESTION) as response:
            return [event.name for event in events(response.iter_lines())][-1]

    with ThreadPoolExecutor(60) as pool:
        searching, asking = pool.map(search, range(50)), pool.map(ask, range(10))
        found, ended = list(searching), list(asking)
    assert ended == ["done"] * 10
    assert found == [search(number) for number in range(2)] * 25


# The end.


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_within_seconds_with_streams_open(
    home: Home, model: ScriptedModel, number: int
) -> None:
    _play(model, Say("Close the cover until it clicks.", manner=Manner(stall_after=3)))
    settings = {"QUARRY_LLM_URL": model.base_url, "QUARRY_LLM_MODEL": "scripted"}
    last: list[str] = []
    with serving(home, **settings) as running:
        streaming = threading.Event()

        def follow() -> None:
            with running.client.stream("POST", "/api/ask", json=QUESTION) as response:
                for event in events(response.iter_lines()):
                    last[:] = [event.name, str(event.data.get("detail"))]
                    if event.name == "text":
                        streaming.set()

        followers = [threading.Thread(target=follow) for _ in range(3)]
        for each in followers:
            each.start()
        assert streaming.wait(60)
        code, seconds = running.stop(number)
        for each in followers:
            each.join(SOON)
        assert (code, last) == (0, ["error", "The server is stopping."])
        assert seconds < SOON
        assert not any("Traceback" in line for line in running.log)
    assert model.hung_up.wait(SOON)


def test_a_sync_outlives_its_follower_and_is_stopped_with_the_server(tmp_path: Path) -> None:
    """The next sync goes on from where it was."""
    files = tmp_path / "files"
    files.mkdir()
    for number in range(PAGES):
        text = f"# Page {number}\n\n" + f"Paragraph {number} of many words. " * 30
        (files / f"{number:04}.md").write_text(text, encoding="utf-8")
    home = Home(tmp_path)
    assert home.quarry("add", "folder", str(files)).code == 0
    with serving(home) as running:
        with running.client.stream("POST", "/api/sources/files/sync") as response:
            assert any(event.data["done"] > 0 for event in events(response.iter_lines()))
        (source,) = running.client.get("/api/sources").json()
        assert source["state"] == "running"
        assert running.stop()[0] == 0
    (source,) = home.quarry("sources", "--json").json
    assert source["state"] == "interrupted"
    held = source["documents"]
    assert 0 < held < PAGES
    (report,) = home.quarry("sync", "--json").json
    assert report["documents"] == PAGES - held


def test_it_keeps_the_sources_in_step_by_itself(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    (files / "gate.md").write_text("# Gate\n\nThe gate code is 4711.\n", encoding="utf-8")
    home = Home(tmp_path)
    assert home.quarry("add", "folder", str(files)).code == 0
    with serving(home, QUARRY_WORKERS="true") as running:

        def is_done() -> bool:
            (source,) = running.client.get("/api/sources").json()
            return (source["state"], source["documents"]) == ("done", 1)

        _wait_for(is_done)
        found = running.client.post("/api/search", json={"query": "gate code"}).json()
        assert [one["document_id"] for one in found["results"]] == ["files:gate.md"]
        assert running.stop()[0] == 0
        assert not any("Traceback" in line for line in running.log)


# What it costs.


def test_idle_it_is_small(home: Home) -> None:
    with serving(home) as running:
        assert running.client.get("/").status_code == 200
        assert running.resident < 600 * MEGABYTE
