"""`quarry serve --processes 2`: several processes behind one address, which nobody can tell from one."""

import json
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.home import Home
from tests.support.scripted_model import Call, Manner, Reply, Request, Say, ScriptedModel, ToolUse
from tests.support.server_processes import (
    SERVERS,
    SOON,
    client_of,
    connect,
    find_accepting,
    find_processes,
    find_state,
    is_accepting,
    only,
    wait_for,
)
from tests.support.serving import Event, Serving, events, serving

PAGES = 256
"""Four batches of a sync."""
QUESTION = {"question": "What should a customer do when the scanner shows QX-4031?"}
QUERIES = ("parental leave", "QX-4031", "差旅 报销", "zzzqqq xyzzy")


@pytest.fixture(scope="module")
def server(home: Home) -> Iterator[Serving]:
    with serving(home, "--processes", "2") as running:
        wait_for(lambda: find_accepting(running) == set(SERVERS))
        yield running


def _search(client: httpx.Client, query: str) -> Any:
    answer = client.post("/api/search", json={"query": query, "explain": True})
    answer.raise_for_status()
    return answer.json() | {"seconds": None}


def test_each_process_answers_as_a_single_one_does(home: Home, server: Serving) -> None:
    with serving(home) as alone:
        expected = [_search(alone.client, query) for query in QUERIES]
    for name in SERVERS:
        with client_of(server, name) as client:
            assert [_search(client, query) for query in QUERIES] == expected


def test_the_log_says_which_process_answered(server: Serving) -> None:
    before = len(server.log)
    for name in SERVERS:
        with client_of(server, name) as client:
            client.get("/", headers={"x-request-id": f"asked-{name[-1]}"})

    def answered() -> set[tuple[str, str]]:
        lines = [json.loads(line) for line in server.log[before:]]
        return {(line["request"], line["process"]) for line in lines if "request" in line}

    wait_for(lambda: {("asked-1", "server 1"), ("asked-2", "server 2")} <= answered())


def test_the_metrics_of_all_processes_add_up(server: Serving) -> None:
    def read_metrics(client: httpx.Client) -> dict[tuple[str, ...], float]:
        text = client.get("/metrics").raise_for_status().text
        return {
            (sample.name, *sample.labels.values()): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    with client_of(server, "server 1") as first, client_of(server, "server 2") as second:
        before = read_metrics(first)
        for client in (first, second, second):
            _search(client, "parental leave")
        for client in (first, second):
            found = read_metrics(client)
            assert (
                found["quarry_search_seconds_count",] - before["quarry_search_seconds_count",] == 3
            )
            searched = ("quarry_requests_total", "POST", "/api/search", "200")
            assert found[searched] - before.get(searched, 0) == 3
            for process in SERVERS:
                assert found["process_resident_memory_bytes", process] > 0


def test_a_port_that_is_taken_is_one_clear_error(home: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        run = home.quarry("serve", "--processes", "2", "--port", str(port))
    assert run.code == 1
    assert run.err.count(f"Port {port}") == 1
    assert "Traceback" not in run.err


def _add_pages(folder: Path, pages: int) -> None:
    folder.mkdir()
    for number in range(pages):
        text = f"# Page {number}\n\n" + f"Paragraph {number} of many words. " * 30
        (folder / f"{number:04}.md").write_text(text, encoding="utf-8")


def test_a_sync_of_one_process_is_followed_and_seen_by_the_other(tmp_path: Path) -> None:
    _add_pages(tmp_path / "files", PAGES)
    (tmp_path / "files" / "broken.pdf").write_bytes(b"%PDF-1.4 is all there is of it")
    home = Home(tmp_path)
    with serving(home, "--processes", "2") as server:
        wait_for(lambda: find_accepting(server) == set(SERVERS))
        with client_of(server, "server 1") as first, client_of(server, "server 2") as second:
            body = {"kind": "folder", "settings": {"path": str(tmp_path / "files")}}
            assert first.post("/api/sources", json=body).status_code == 201
            assert [one["name"] for one in second.get("/api/sources").json()] == ["files"]
            with ExitStack() as streams, ExitStack() as holding:
                of_first = _begin_sync(first, streams)
                assert next(of_first).name == "progress"
                holding.enter_context(only(server, "server 2"))  # in the middle of the sync
                of_second = _begin_sync(second, streams)
                assert next(of_second).name == "progress"
                holding.close()
                (*_, last), (*_, last_of_second) = of_first, of_second
            report = {**last.data, "seconds": {}}
            assert (last.name, report["documents"], report["unreadable_count"]) == (
                "done",
                PAGES,
                1,
            )
            assert (last_of_second.name, last_of_second.data) == ("done", report)
            audit = first.get("/api/admin/audit").raise_for_status().json()
            assert [entry["action"] for entry in audit] == ["sync", "add"]
            found = second.post("/api/search", json={"query": "Paragraph 117"}).json()
            assert found["results"]


def _begin_sync(client: httpx.Client, streams: ExitStack) -> Iterator[Event]:
    response = streams.enter_context(client.stream("POST", "/api/sources/files/sync"))
    assert response.status_code == 200
    return events(response.iter_lines())


def test_one_process_keeps_the_sources_in_step_for_all(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    (files / "gate.md").write_text("# Gate\n\nThe gate code is 4711.\n", encoding="utf-8")
    home = Home(tmp_path)
    assert home.quarry("add", "folder", str(files)).code == 0
    with serving(home, "--processes", "2", QUARRY_WORKERS="true") as server:
        assert set(find_processes(server)) == {*SERVERS, "sync worker"}
        wait_for(lambda: find_accepting(server) == set(SERVERS))
        for name in SERVERS:
            with client_of(server, name) as client:
                wait_for(partial(_is_done, client))
                found = client.post("/api/search", json={"query": "gate code"}).json()
                assert [one["document_id"] for one in found["results"]] == ["files:gate.md"]
                runs = client.get("/api/admin/sources/files/runs").json()
                assert len([run for run in runs if run["kind"] == "first"]) == 1
        assert server.stop()[0] == 0
        assert not any("Traceback" in line for line in server.log)


def _is_done(client: httpx.Client) -> bool:
    (source,) = client.get("/api/sources").json()
    return (source["state"], source["documents"]) == ("done", 1)


def test_a_process_that_is_killed_comes_back_while_the_other_one_answers(home: Home) -> None:
    with serving(home, "--processes", "2") as server:
        wait_for(lambda: find_accepting(server) == set(SERVERS))
        killed = find_processes(server)["server 1"]
        os.kill(killed, signal.SIGKILL)
        # Those who were connected to it connect again; nobody else notices.
        wait_for(lambda: any("server 1 ended with code -9" in line for line in server.log))
        while find_processes(server)["server 1"] == killed:
            with connect(server) as client:
                assert _search(client, "parental leave")["results"]
        wait_for(lambda: is_accepting(server, "server 1"))
        with client_of(server, "server 1") as client:
            assert _search(client, "parental leave")["results"]
        assert server.stop()[0] == 0


def _is_alive(process: int) -> bool:
    return find_state(process) not in (None, "Z")


def _streaming(request: Request) -> Reply:
    """A model that searches, and then hangs in the middle of its answer."""
    if request.has_sources:
        return Say("Close the cover until it clicks.", manner=Manner(stall_after=3))
    if request.tool_names:
        return Call(ToolUse("internal_search", {"queries": ["QX-4031"]}))
    return Say("QX-4031")


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.soak("faults"))]
)
def test_all_end_together_and_streams_end_with_an_event(home: Home, number: int) -> None:
    with ScriptedModel() as model:
        model.play(_streaming)
        settings = {"QUARRY_LLM_URL": model.base_url, "QUARRY_LLM_MODEL": "scripted"}
        with serving(home, "--processes", "2", QUARRY_WORKERS="true", **settings) as server:
            wait_for(lambda: find_accepting(server) == set(SERVERS))
            processes = find_processes(server)
            with ExitStack() as clients:
                connected = [clients.enter_context(client_of(server, name)) for name in SERVERS]
                followers = [_Follower(client) for client in connected]
                for each in followers:
                    assert each.is_reading.wait(SOON)
                if number == signal.SIGINT:  # which a terminal sends to all of them
                    for process in processes.values():
                        os.kill(process, number)
                assert server.stop(number)[0] == 0
                for each in followers:
                    each.join(SOON)
                    assert each.last == ("error", "The server is stopping.")
            assert len(processes) == 3
            assert not any(map(_is_alive, processes.values()))
            assert [line for line in server.log if "Traceback" in line or "killed" in line] == []
            assert server.log.count("Stopping…\n") == 1


class _Follower(threading.Thread):
    """Reads an answer to its end."""

    def __init__(self, client: httpx.Client) -> None:
        super().__init__(daemon=True)
        self.is_reading = threading.Event()
        self.last = ("", "")
        self._client = client
        self.start()

    def run(self) -> None:
        with self._client.stream("POST", "/api/ask", json=QUESTION) as response:
            for event in events(response.iter_lines()):
                self.last = (event.name, str(event.data.get("detail")))
                if event.name == "text":
                    self.is_reading.set()


@pytest.mark.soak("faults")
def test_no_process_outlives_a_supervisor_that_is_killed(home: Home) -> None:
    with serving(home, "--processes", "2", QUARRY_WORKERS="true") as server:
        processes = find_processes(server)
        server.process.kill()
        wait_for(lambda: not any(map(_is_alive, processes.values())))
