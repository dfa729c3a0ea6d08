"""The examples of the documentation for programs: what stands there is run, against a server of its own."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from backend.sample import handbook
from tests.support.home import CHECKOUT, Home
from tests.support.serving import Serving, serving

DOCS = CHECKOUT / "docs"
GENERATOR = CHECKOUT / ".cache" / "client-generator" / "bin"
_BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RAN = "ran to its end"
GENERATE = "openapi-python-client"
LEFT_OUT = 3
"""Routes that answer with files or with JSON lines, of which the generator warns."""
WITH_REQUESTS = ("files.md", "ingestion.md", "knowledge.md", "memories.md", "server.md")
"""Those with requests that curl sends."""
TRIED_ELSEWHERE = ("openai.md",)
"""With a language model: tests/unit/backend/api/openai/test_documentation.py."""


@dataclass(frozen=True)
class Client:
    """Where a program runs that asks a server."""

    server: Serving
    folder: Path
    variables: dict[str, str]

    def run(self, *command: str, text: str = "") -> subprocess.CompletedProcess[str]:
        path = f"{GENERATOR}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        return subprocess.run(
            command,
            input=text,
            cwd=self.folder,
            env={"PATH": path, "HOME": str(self.folder), **self.variables},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def run_script(self, script: str) -> str:
        """Return what a script wrote; each command of it must succeed."""
        done = self.run("bash", "-euo", "pipefail", "-s", text=f"{script}\necho '{RAN}'\n")
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.endswith(f"{RAN}\n"), done.stderr
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """With all that the examples name: a source of programs, a project, a file."""
    path = tmp_path_factory.mktemp("examples")
    home = Home(path)
    assert home.quarry("add", "folder", str(handbook() / "people"), "--name", "handbook").code == 0
    assert home.quarry("add", "ingest", "--name", "tickets").code == 0
    assert home.quarry("sync").code == 0
    folder = path / "program"
    folder.mkdir()
    (folder / "plan.md").write_text("# Plan\n\nThe new hall opens in May.\n", encoding="utf-8")
    with serving(home) as server:
        project = server.client.post("/api/projects", json={"name": "Hall"}).raise_for_status()
        token = server.authorization["Authorization"].removeprefix("Bearer ")
        names = {"QUARRY": server.url, "TOKEN": token, "SEARCH_TOKEN": token}
        of_home = {name: home.environment()[name] for name in ("PYTHONPATH", "QUARRY_HOME")}
        yield Client(server, folder, {**names, **of_home, "PROJECT": project.json()["id"]})


def read_blocks(name: str, language: str) -> list[str]:
    text = (DOCS / name).read_text(encoding="utf-8")
    return [block for found, block in _BLOCK.findall(text) if found == language]


@pytest.mark.parametrize("name", WITH_REQUESTS)
def test_requests_of_curl_are_answered(client: Client, name: str) -> None:
    blocks = [block for block in read_blocks(name, "sh") if "curl" in block]
    assert blocks
    for block in blocks:
        if GENERATE not in block:
            client.run_script(block)


def test_every_page_with_a_request_of_curl_is_tried() -> None:
    pages = (
        path for path in DOCS.glob("*.md") if re.search(r"^\s*curl ", path.read_text("utf-8"), re.M)
    )
    assert sorted(path.name for path in pages) == sorted(WITH_REQUESTS + TRIED_ELSEWHERE)


def test_a_generated_client_puts_a_document_in(client: Client) -> None:
    assert (GENERATOR / GENERATE).exists(), "It is installed by: make client-generator"
    (generated,) = (block for block in read_blocks("ingestion.md", "sh") if GENERATE in block)
    said = client.run_script(generated)
    assert said.count("WARNING") == LEFT_OUT, said
    (example,) = read_blocks("ingestion.md", "python")
    asked = (
        "from quarry_client.api.ingestion import list_pushed_documents\n"
        "for one in list_pushed_documents.sync(client=client, source='tickets').documents:\n"
        "    print(one.id)\n"
    )
    done = client.run(str(GENERATOR / "python"), "-", text=example + asked)
    assert done.returncode == 0, done.stderr
    accepted, *listed = done.stdout.split()
    assert accepted == "1"
    assert "4714" in listed
