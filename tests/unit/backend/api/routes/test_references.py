"""References over HTTP: of texts that are given, and of documents that the asker may read as of now."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from backend.access.api_tokens import ApiTokenService, TokenScope
from backend.api.routes.references import LONGEST_SOURCES
from backend.composition.index import EmbeddingModel
from backend.container import Container
from backend.store.sync import sources
from backend.sync.foreground_run import sync
from indexing.embedding.embedder import Vectors
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.runtime.deadline import Deadline
from tests.unit.backend.api.conftest import client_of, make_container

LEAVE = "Each parent is entitled to 26 weeks of paid parental leave, in two parts where the manager agrees."
PAY = "A senior engineer is in band five of seven, which begins at ninety thousand crowns in every second year."
RULES = (
    "rules:\n"
    "  - match: finance/**\n    readers: [group:finance]\n"
    '  - match: "**"\n    readers: [public]\n'
)
OPEN, CLOSED = "wiki:leave.md", "wiki:finance/pay.md"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "files"
    (made / "finance").mkdir(parents=True)
    (made / "leave.md").write_text(f"# Parental leave\n\n{LEAVE}\n")
    (made / "finance/pay.md").write_text(f"# Pay\n\n{PAY}\n")
    (made / "access.yaml").write_text(RULES)
    return made


@pytest.fixture
def container(tmp_path: Path, folder: Path) -> Container:
    made = make_container(tmp_path)
    sources.add(made.database, "wiki", "folder", {"path": str(folder)})
    synced(made)
    return made


def synced(container: Container) -> None:
    source = sources.find(container.database, "wiki")
    steps = sync(
        container.database,
        source,
        container.sources.connector(source),
        container.sources.pipeline(source),
    )
    assert list(steps)


@pytest.fixture
def client(container: Container) -> Iterator[TestClient]:
    with client_of(container) as made:
        yield made


def post(client: TestClient, text: str, *given: object, **more: object) -> Any:
    body = {"text": text, "sources": given, **more}
    return client.post("/api/references", json=body, headers={"x-request-id": "one"})


def test_documents_and_texts_are_cited_together(client: TestClient) -> None:
    note = {"title": "A note", "url": "https://a.example/note", "text": f"So it is.\n\n{PAY}"}
    answered = post(client, f"{LEAVE} {PAY}", {"document_id": OPEN}, note).json()
    assert answered["text"] == f"{LEAVE}[1] {PAY}[2]"
    first, second = answered["references"]
    assert (first["document_id"], first["title"]) == (OPEN, "Parental leave")
    assert first["exact_quote"] == LEAVE
    assert first["url"].startswith("file:///")
    assert (second["document_id"], second["url"]) == (None, "https://a.example/note")
    assert second["exact_quote"] == PAY or PAY in second["exact_quote"]
    start, end = second["span"]
    assert note["text"][start:end] == second["exact_quote"]
    start, end = second["marker"]
    assert answered["text"][start:end] == "[2]"


def test_a_picture_is_numbered_with_the_passages(client: TestClient) -> None:
    shown = {"title": "Bands", "url": "https://a.example/x", "text": f"![{PAY}](pay.png)"}
    answered = post(client, f"{PAY} {LEAVE}", {"document_id": OPEN}, shown).json()
    assert answered["text"] == f"{PAY}[1] {LEAVE}[2]"
    assert [one["number"] for one in answered["references"]] == [2]
    (picture,) = answered["pictures"]
    assert (picture["number"], picture["url"]) == (1, "https://a.example/pay.png")
    start, end = picture["marker"]
    assert answered["text"][start:end] == "[1]"


def test_footnotes_are_asked_for_by_name(client: TestClient) -> None:
    answered = post(client, LEAVE, {"document_id": OPEN}, style="footnotes").json()
    assert answered["text"] == f"{LEAVE}[^1]"
    assert post(client, LEAVE, {"text": LEAVE}, style="endnotes").status_code == 422


def test_a_forbidden_document_and_a_missing_one_are_the_same_answer(
    client: TestClient, container: Container
) -> None:
    """Status, headers and body, byte for byte; also where another source may be read."""
    forbidden = post(client, PAY, {"document_id": OPEN}, {"document_id": CLOSED})
    missing = post(client, PAY, {"document_id": OPEN}, {"document_id": "wiki:finance/gone.md"})
    assert forbidden.status_code == missing.status_code == 404
    assert forbidden.content == missing.content
    assert forbidden.headers.raw == missing.headers.raw
    assert b"pay" not in forbidden.content
    with client_of(container, "group:finance") as finance:
        assert post(finance, PAY, {"document_id": CLOSED}).json()["text"] == f"{PAY}[1]"


@pytest.mark.parametrize(
    "given",
    [
        [],
        [{"text": LEAVE}] * 51,
        [{"text": "x" * (LONGEST_SOURCES // 2)}] * 2 + [{"text": "x"}],
        [{"text": LEAVE, "document_id": OPEN}],
        [{"title": "Nothing"}],
        [{"document_id": ""}],
    ],
)
def test_what_is_too_much_or_names_no_source_is_refused(
    client: TestClient, given: Sequence[object]
) -> None:
    assert post(client, LEAVE, *given).status_code == 422
    assert post(client, "x" * 100_001, {"text": LEAVE}).status_code == 422


def test_documents_count_for_the_limit_too(client: TestClient) -> None:
    full = {"text": "x" * LONGEST_SOURCES}
    assert post(client, "Short.", full).status_code == 200
    refused = post(client, "Short.", full, {"document_id": OPEN})
    assert refused.status_code == 422
    assert "400,000 characters" in refused.json()["detail"]
    # Those behind it are not read any more.
    further = [{"document_id": OPEN}, {"document_id": "there is none"}]
    assert post(client, "Short.", full, *further).status_code == 422


@dataclass(frozen=True)
class InterruptedEmbedder(HashingEmbedder):
    """Something happens while it embeds."""

    happen: Callable[[], object] = field(kw_only=True)

    def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> Vectors:
        self.happen()
        return super().embed_queries(texts, deadline)


def interrupt(
    container: Container, monkeypatch: pytest.MonkeyPatch, happen: Callable[[], object]
) -> None:
    understood = replace(
        container.embedding.with_languages, embedder=InterruptedEmbedder(happen=happen)
    )
    monkeypatch.setattr(EmbeddingModel, "with_languages", understood)


def test_a_document_that_is_withdrawn_meanwhile_is_not_quoted(
    client: TestClient, container: Container, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def withdraw() -> None:
        (folder / "access.yaml").write_text(RULES.replace("[public]", "[group:finance]"))
        synced(container)

    missing = post(client, LEAVE, {"document_id": "wiki:gone.md"})
    interrupt(container, monkeypatch, withdraw)
    withdrawn = post(client, LEAVE, {"document_id": OPEN})
    assert withdrawn.status_code == 404
    assert withdrawn.content == missing.content


def test_who_is_signed_in_no_more_is_told_nothing_of_documents(
    client: TestClient, container: Container, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = ApiTokenService(container.database)
    token = tokens.create("asker", [TokenScope.ASK], timedelta(days=1))
    client.headers["Authorization"] = f"Bearer {token}"
    assert post(client, LEAVE, {"document_id": OPEN}).status_code == 200
    interrupt(container, monkeypatch, lambda: tokens.revoke("asker"))
    refused = post(client, LEAVE, {"document_id": OPEN})
    assert refused.status_code == 401
    assert "26 weeks" not in refused.text
