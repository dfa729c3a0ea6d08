"""A search over a real index: what ranks first, and what an asker never sees."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

from backend.search.events import SearchDone
from backend.search.models import DocumentNumbers, SearchRequest, SearchResult
from backend.search.search_tool import SearchTool
from connectors.access import Access, Readers
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.embedding.language_support import EVERYTHING
from indexing.embedding.token_counting import estimated_tokens
from indexing.index.protocols import Amend, Replace
from indexing.local import LocalIndex, open_index, open_writer
from tests.support.search import chunk, request

EMBEDDER = HashingEmbedder()
BOARD = Access.to(["group:board"])
CORPUS = (
    chunk("errors", 0, "The scanner stops at once when its lid is opened."),
    chunk("errors", 1, "Code E-2207 means that the lid of the scanner is open."),
    chunk("errors", 2, "Close the lid and press the green button twice."),
    chunk("manual", 0, "How to open the lid of the scanner, and what the error codes mean."),
    chunk("notice", 0, "The notice period is three months to the end of a quarter."),
    chunk("board", 0, "The board decided on a notice period of six months.", BOARD),
    chunk("休暇", 0, "有給休暇は年に二十日です。申請は上長に出します。"),
    *(chunk(f"news {n}", 0, f"News of week {n}: the canteen serves soup.") for n in range(30)),
)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[LocalIndex]:
    changes = [
        Replace(
            document_id=document_id,
            generation=1,
            content_hash=document_id,
            chunks=(chunks := tuple(of_document)),
            vectors=EMBEDDER.embed_passages([one.text for one in chunks]),
        )
        for document_id, of_document in groupby(CORPUS, key=lambda one: one.document_id)
    ]
    open_writer(tmp_path, EMBEDDER.identity).write(changes)
    with open_index(tmp_path, EMBEDDER.identity) as opened:
        yield opened


def search(index: LocalIndex, asked: SearchRequest) -> SearchResult:
    tool = SearchTool(
        index=index,
        embedder=EMBEDDER,
        understanding=EVERYTHING,
        count_tokens=estimated_tokens,
        complete=None,
        numbers=DocumentNumbers(),
    )
    *_, done = tool.run(asked)
    assert isinstance(done, SearchDone)
    return done.result


def test_a_code_is_found_first_and_read_with_its_neighbors(index: LocalIndex) -> None:
    first = search(index, request("What does E-2207 of the scanner mean?")).docs[0]
    assert first.document_id == "errors"
    assert first.content == "\n".join(one.text for one in CORPUS[:3])
    assert {"exact", "keyword", "vector"} == {why.leg for why in first.why}
    assert {"original", "keyword"} == {why.variant for why in first.why}


def test_a_question_in_japanese_finds_its_document(index: LocalIndex) -> None:
    assert search(index, request("有給休暇は何日ありますか")).docs[0].document_id == "休暇"


def test_the_evidence_stays_raw(index: LocalIndex) -> None:
    best = search(index, request("notice period quarter")).sections[0].best
    assert best.evidence.word_share == 1.0
    assert best.evidence.cosine is not None
    assert 0.3 < best.evidence.cosine < 1.0
    assert best.evidence.bm25 is not None
    assert best.evidence.bm25 > 1.0


def test_restricted_documents_are_there_for_their_readers_only(index: LocalIndex) -> None:
    question = "notice period of six months that the board decided"
    assert "six months" not in search(index, request(question)).for_model
    board = request(question, readers=Readers.of("group:board"))
    assert search(index, board).docs[0].document_id == "board"


def test_a_document_withdrawn_between_two_searches_is_gone(
    index: LocalIndex, tmp_path: Path
) -> None:
    asked = request("notice period")
    assert search(index, asked).docs[0].document_id == "notice"
    writer = open_writer(tmp_path, EMBEDDER.identity)
    writer.write([Amend(document_id="notice", access=BOARD)])
    assert "notice" not in [doc.document_id for doc in search(index, asked).docs]
