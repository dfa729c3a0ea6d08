"""The sample handbook holds what its questions ask for, and is what its sources make.

The documents are read here with the plain libraries, not with our own extraction, so that the
questions do not agree with a fault of it.
"""

import email
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from email.policy import default as modern_policy
from functools import cache
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import docx
import pytest
import yaml
from bs4 import BeautifulSoup
from openpyxl import load_workbook
from pypdf import PdfReader

from backend.sample import handbook
from connectors.access import Access, Readers
from tests.support.make_handbook import write_all
from tests.support.rights import may_read

QUESTIONS = Path(__file__).parents[2] / "acceptance" / "handbook_questions.jsonl"
RESTRICTED = {"finance/salary-bands-2026.xlsx", "people/project-alabaster-memo.md"}
KANA = re.compile("[\u3041-\u30ff]")
HAN = re.compile("[\u4e00-\u9fff]")


@dataclass(frozen=True, slots=True)
class Question:
    id: str
    kind: str
    question: str
    readers: Readers
    documents: tuple[str, ...]
    forbidden: tuple[str, ...]
    passage: str


def _question(line: str) -> Question:
    read = json.loads(line)
    return Question(
        id=read["id"],
        kind=read["kind"],
        question=read["question"],
        readers=Readers.of(*read["as"]),
        documents=tuple(read["documents"]),
        forbidden=tuple(read.get("forbidden", ())),
        passage=read["passage"],
    )


@cache
def questions() -> tuple[Question, ...]:
    return tuple(map(_question, QUESTIONS.read_text("utf-8").splitlines()))


@cache
def texts() -> Mapping[str, str]:
    """The text of every document by its path in the handbook, white space normalized."""
    root = handbook()
    paths = sorted(path for path in root.rglob("*") if path.is_file() and path.suffix != ".yaml")
    return {path.relative_to(root).as_posix(): normalized(text_of(path)) for path in paths}


def normalized(text: str) -> str:
    return " ".join(text.split())


def text_of(path: Path) -> str:
    match path.suffix:
        case ".md":
            return path.read_text("utf-8")
        case ".html":
            return BeautifulSoup(path.read_bytes(), "lxml").get_text(" ")
        case ".pdf":
            return "\n".join(page.extract_text() for page in PdfReader(path).pages)
        case ".docx":
            return "\n".join(paragraph.text for paragraph in docx.Document(str(path)).paragraphs)
        case ".xlsx":
            return xlsx_text(path)
        case ".eml":
            return eml_text(path)
        case _:
            raise ValueError(f"no reader for {path}")


def xlsx_text(path: Path) -> str:
    rows = (row for sheet in load_workbook(path) for row in sheet.iter_rows(values_only=True))
    return "\n".join(" | ".join("" if cell is None else str(cell) for cell in row) for row in rows)


def eml_text(path: Path) -> str:
    message = email.message_from_bytes(path.read_bytes(), policy=modern_policy)
    body = message.get_body(("plain",))
    assert body is not None
    return str(body.get_content())


def access_of(document: str) -> Access:
    """By the rules of the handbook, whose patterns are whole paths, and `**` for all others."""
    rules = yaml.safe_load((handbook() / "access.yaml").read_text("utf-8"))["rules"]
    return next(Access.to(rule["readers"]) for rule in rules if rule["match"] in (document, "**"))


def test_questions_are_sixty_with_the_agreed_share_of_each_kind() -> None:
    assert Counter(question.kind for question in questions()) == {
        "fact": 28,
        "code": 8,
        "contradiction": 4,
        "restricted": 4,
        "chinese": 3,
        "japanese": 3,
        "unanswerable": 10,
    }
    assert len({question.id for question in questions()}) == 60
    assert len({question.question for question in questions()}) == 60


def test_a_passage_stands_in_the_documents_of_its_question_and_nowhere_else() -> None:
    answered = [question for question in questions() if question.documents]
    # All but the ten that nothing answers and the two asked without rights.
    assert len(answered) == 48
    for question in answered:
        passage = normalized(question.passage)
        holders = {path for path, text in texts().items() if passage in text}
        assert passage, question.id
        assert holders == set(question.documents), question.id


def test_what_has_no_right_document_has_no_passage() -> None:
    declined = [question for question in questions() if not question.documents]
    assert Counter(question.kind for question in declined) == {"unanswerable": 10, "restricted": 2}
    assert not any(question.passage for question in declined)


def test_askers_may_read_what_answers_them_and_not_what_is_forbidden() -> None:
    for question in questions():
        for document in question.documents:
            assert may_read(question.readers, access_of(document)), question.id
        for document in question.forbidden:
            assert document in texts(), question.id
            assert not may_read(question.readers, access_of(document)), question.id


def test_restricted_questions_are_about_restricted_documents() -> None:
    restricted = [question for question in questions() if question.kind == "restricted"]
    assert {document for question in restricted for document in question.forbidden} == RESTRICTED
    assert {document for question in restricted for document in question.documents} == RESTRICTED


def test_chinese_and_japanese_questions_are_asked_in_their_language() -> None:
    for question in questions():
        match question.kind:
            case "chinese":
                assert HAN.search(question.question), question.id
                assert not KANA.search(question.question), question.id
            case "japanese":
                assert KANA.search(question.question), question.id
            case _:
                assert question.question.isascii(), question.id


def test_access_rules_restrict_two_documents_and_leave_none_out() -> None:
    everybody = Readers.of()
    assert {path for path in texts() if not may_read(everybody, access_of(path))} == RESTRICTED


def test_handbook_holds_every_format_and_language() -> None:
    assert Counter(Path(path).suffix for path in texts()) == {
        ".md": 22,
        ".html": 7,
        ".pdf": 5,
        ".docx": 4,
        ".xlsx": 3,
        ".eml": 4,
    }
    japanese = {path for path, text in texts().items() if KANA.search(text)}
    chinese = {path for path, text in texts().items() if HAN.search(text)} - japanese
    assert (len(chinese), len(japanese)) == (2, 2)


def test_handbook_stays_small() -> None:
    assert sum(path.stat().st_size for path in handbook().rglob("*") if path.is_file()) < 1_500_000


def test_pdfs_have_pages_and_answers_stand_beyond_the_first() -> None:
    pages = {
        path: [normalized(page.extract_text()) for page in PdfReader(handbook() / path).pages]
        for path in texts()
        if path.endswith(".pdf")
    }
    assert all(len(found) >= 2 for found in pages.values())
    beyond = [
        question.id
        for question in questions()
        for path in question.documents
        if path in pages and normalized(question.passage) not in pages[path][0]
    ]
    assert len(beyond) >= 4


def test_new_travel_policy_says_what_it_replaces() -> None:
    old, new = "policies/travel-expenses-2023.md", "policies/travel-expenses-2025.md"
    assert f"replaces: {old}" in texts()[new]
    assert "It replaces the travel expenses policy of 2023" in texts()[new]
    assert "2025" not in texts()[old]


def test_committed_files_are_what_their_sources_make(tmp_path: Path) -> None:
    written = [path.relative_to(tmp_path) for path in write_all(tmp_path)]
    assert len(written) == 12
    for path in written:
        made, committed = (tmp_path / path).read_bytes(), (handbook() / path).read_bytes()
        assert contents(made) == contents(committed), (
            f"{path} is out of date: run python -m tests.support.make_handbook"
        )


def contents(file: bytes) -> Mapping[str, bytes]:
    """The entries of a ZIP archive, which zlib may pack differently elsewhere; else the file."""
    if not file.startswith(b"PK"):
        return {"": file}
    with ZipFile(BytesIO(file)) as archive:
        return {entry.filename: archive.read(entry) for entry in archive.infolist()}


@pytest.mark.parametrize("suffix", [".docx", ".xlsx"])
def test_archives_bear_no_moment_of_their_making(suffix: str) -> None:
    for path in (path for path in texts() if path.endswith(suffix)):
        with ZipFile(handbook() / path) as archive:
            assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
            about = archive.read("docProps/core.xml").decode()
        moments = re.findall(r"<dcterms:(?:created|modified)[^>]*>([^<]*)", about)
        assert len(moments) == 2
        assert len(set(moments)) == 1
