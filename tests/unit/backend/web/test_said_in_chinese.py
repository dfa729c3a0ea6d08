"""What the layers below the pages say to people, as they write it, is said in Chinese."""

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import get_args

import pytest

from backend.access.document_readers import OF_FILES
from backend.api.answer_events import describe_failure
from backend.api.server_sent_events import BROKEN, STOPPING, Event
from backend.chat.file_use import FilesGiven, FileUse, GivenFile, Holder, UnreadFiles, UnreadStatus
from backend.chat.passages import (
    KEPT_REASON_TEXTS,
    REASON_TEXTS,
    TEXTS_INSTEAD,
    PassagesReason,
)
from backend.chat.rights_watch import AskerGoneError, DocumentWithdrawnError
from backend.conversations.answer_gate import WITHHELD
from backend.conversations.assistant_values import check_line, check_text, validate_values
from backend.conversations.failed_steps import NAMES, describe_failed_step
from backend.conversations.turn_events import FAILED, INTERRUPTED, STOPPED
from backend.files.file_keeper import DEADLY
from backend.files.file_types import LARGEST_FILE, LARGEST_PICTURE, UploadedFile, check_file
from backend.schemas.system import ProblemDetails
from backend.store.chat.assistants import AssistantValues
from backend.store.files.waiting_uploads import SHARE_IS_USED
from backend.store.sync.credential_vault import Vault, new_key
from backend.web.catalogs import load_messages
from backend.web_search.domains import parse_domain
from connectors.errors import InvalidInputError, NotConfiguredError, TemporarilyUnavailableError

HAN = re.compile(r"[\u4e00-\u9fff]")
ENGLISH = re.compile(r"\b(?:is|are|the|this|these|was|were|not|has|may|it|with)\b", re.IGNORECASE)
STATIC = Path(__file__).parents[4] / "backend" / "web" / "static"
FILES = tuple(GivenFile(f"files:{n}", f"{n}.md") for n in range(30))


def _said(text: str) -> str:
    said = load_messages("zh").translate(text)
    assert HAN.search(said), text
    assert not ENGLISH.search(said), said
    return said


@pytest.mark.parametrize("reason", PassagesReason)
def test_why_passages_are_shown(reason: PassagesReason) -> None:
    assert _said(REASON_TEXTS[reason]).endswith("。")
    assert _said(KEPT_REASON_TEXTS[reason]).endswith("。")


@pytest.mark.parametrize("text", sorted(TEXTS_INSTEAD))
def test_what_stands_in_the_place_of_an_answer(text: str) -> None:
    assert _said(text).endswith("。")


@pytest.mark.parametrize("notice", [WITHHELD, STOPPED, INTERRUPTED, FAILED])
def test_the_notice_of_an_answer(notice: str) -> None:
    assert _said(notice).endswith("。")


@pytest.mark.parametrize(
    "error",
    [AskerGoneError(), DocumentWithdrawnError(), TemporarilyUnavailableError("The language model is busy.", timedelta(seconds=3))],
)  # fmt: skip
def test_why_an_answer_ended(error: Exception) -> None:
    problem = describe_failure(error)
    for text in (problem.title, problem.detail, problem.advice or "Not Found"):
        _said(text)


@pytest.mark.parametrize("step", NAMES)
def test_what_an_answer_was_written_without(step: str) -> None:
    assert NAMES[step] not in _said(describe_failed_step(step, "The language model is busy."))


def test_the_script_names_what_was_lost_alike() -> None:
    script = (STATIC / "turn.js").read_text("utf-8")
    named = re.search(r"const HELP = \{(.*?)\};", script, re.DOTALL)
    assert named is not None
    assert dict(re.findall(r'(\w+): translate\("([^"]+)"\)', named[1])) == NAMES


@pytest.mark.parametrize("event", [BROKEN, STOPPING])
def test_how_a_stream_ended(event: Event) -> None:
    problem = event.data
    assert isinstance(problem, ProblemDetails)
    for text in (problem.detail, problem.advice):
        _said(text or "")


@pytest.mark.parametrize("use", ["scope", "everything"])
@pytest.mark.parametrize("count", [1, 30])
@pytest.mark.parametrize("unseen", [0, 1, 2])
@pytest.mark.parametrize("has_model", [True, False], ids=["model", "none"])
def test_what_became_of_files(*, use: FileUse, count: int, unseen: int, has_model: bool) -> None:
    pictures = tuple(GivenFile("files:p", f"plan-{n}.png") for n in range(unseen))
    given = FilesGiven(use=use, files=FILES[:count], has_model=has_model, unseen=pictures)
    said = _said(given.sentence)
    assert all(one.name in said for one in pictures)
    assert count == 1 or f" {count} 个文件" in said


@pytest.mark.parametrize("use", ["whole", "scope"])
@pytest.mark.parametrize("number", [1, 30])
@pytest.mark.parametrize("status", get_args(UnreadStatus))
def test_what_was_not_read(*, use: FileUse, number: int, status: UnreadStatus) -> None:
    unread = tuple(UnreadFiles(one, status, number) for one in get_args(Holder))
    given = FilesGiven(use=use, of_project=FILES, has_model=True, unread=unread)
    said = _said(given.sentence)
    assert all(f"{one}有 {number} 个文件" in said for one in ("此项目", "此助手"))


@pytest.mark.parametrize("number", [1, 30])
def test_what_was_deleted(number: int) -> None:
    given = FilesGiven(use="scope", of_project=FILES, has_model=True, deleted=number)
    assert f"文件中有 {number} 个已被删除" in _said(given.sentence)


@pytest.mark.parametrize("use", ["scope", "everything", "added"])
@pytest.mark.parametrize("count", [0, 1, 2])
@pytest.mark.parametrize(("of_project", "of_assistant"), [(FILES, ()), ((), FILES), (FILES, FILES)])
@pytest.mark.parametrize("has_model", [True, False], ids=["model", "none"])
def test_what_became_of_files_of_a_project_and_of_an_assistant(
    *,
    use: FileUse,
    count: int,
    of_project: tuple[GivenFile, ...],
    of_assistant: tuple[GivenFile, ...],
    has_model: bool,
) -> None:
    given = FilesGiven(
        use=use,
        files=FILES[:count],
        of_project=of_project,
        of_assistant=of_assistant,
        has_model=has_model,
    )
    said = _said(given.sentence)
    assert ("此项目的文件" in said, "此助手的文件" in said) == (
        bool(of_project),
        bool(of_assistant),
    )


@pytest.mark.parametrize(
    "sentence",
    [
        OF_FILES,
        "The limit of 100 files is reached. Remove some first.",
        "Only the owner of this assistant adds and removes its files.",
        "The default assistant has no files of its own.",
        "Too many files wait to be read. Add it again in a moment.",
        SHARE_IS_USED.format(megabytes=50),
        "plan.md could not be read. Choose another file.",
        "plan.md was not read, so nothing of it is kept.",
        DEADLY.format(name="plan.md"),
    ],
)
def test_what_is_said_of_files_that_others_read_and_that_wait(sentence: str) -> None:
    _said(sentence)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("", b"x"),
        ("a.md", b""),
        ("a.md", b" " * (LARGEST_FILE + 1)),
        ("a.png", b"\x89PNG\r\n\x1a\n" + b" " * LARGEST_PICTURE),
        ("tool.exe", b"\x7fELF\x02\x01\x01\0\xff\xfe\x80"),
    ],
    ids=["no-name", "empty", "long", "picture", "kind"],
)
def test_why_a_file_is_not_taken(name: str, data: bytes) -> None:
    with pytest.raises(InvalidInputError) as refused:
        check_file(UploadedFile(name, data))
    assert name in _said(str(refused.value))


def test_a_number_of_documents_and_a_name_stay_as_they_are() -> None:
    assert _said("31 documents of Search will be tried again now.") == (
        "现在将重试 Search 的 31 个文档。"
    )
    listing = "There is no account of search@example.com. To list them: quarry users list"
    assert _said(listing) == "search@example.com 没有账户。列出全部账户：quarry users list"


@pytest.mark.parametrize("keys", [(), ("invalid",), (new_key(),)], ids=["none", "invalid", "other"])
def test_why_a_credential_is_not_decrypted(keys: tuple[str, ...]) -> None:
    sealed = Vault([new_key()]).seal({"key": "x"})
    with pytest.raises(NotConfiguredError) as refused:
        Vault(keys).open(sealed)
    _said(str(refused.value))


def test_what_is_no_domain() -> None:
    with pytest.raises(InvalidInputError) as refused:
        parse_domain("http://bad url/")
    assert _said(str(refused.value)).startswith("'http://bad url/' 不是域名")


@pytest.mark.parametrize("starters", [tuple("abcdefghijkl"), ("a" * 300,)])
def test_what_is_wrong_with_starters(starters: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInputError) as refused:
        validate_values(AssistantValues(name="Desk", starters=starters))
    assert _said(str(refused.value)).startswith("起始问题最多")


@pytest.mark.parametrize("what", ["The name", "The description", "The instructions", "A starter"])
@pytest.mark.parametrize(
    "check",
    [
        lambda what: check_line("", what, 100),
        lambda what: check_text("a" * 1_201, what, 1_200),
        lambda what: check_text("\0", what, 1_200),
    ],
)
def test_what_is_wrong_with_a_field(what: str, check: Callable[[str], str]) -> None:
    with pytest.raises(InvalidInputError) as refused:
        check(what)
    assert not _said(str(refused.value)).startswith(what)
