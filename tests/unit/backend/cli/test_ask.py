"""`quarry ask`: what is printed of an answer."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from backend.chat.events import PagesRead, WebSearched
from backend.cli.answer_output import print_general_knowledge, print_references, print_uncited
from backend.cli.ask import Asked, ask_in_terminal, print_step
from backend.schemas.answer import AnswerResponse, CitationResponse, SourceKindName, Verdict
from backend.store.chat import assistants, shared_files
from backend.store.chat.assistants import AssistantValues
from backend.store.chat.shared_files import FileHolder
from backend.store.files import user_files
from backend.store.files.user_files import NewFile
from backend.store.owner import ConversationOwner
from backend.web_search.results import BlockedPage, Obstacle, WebPage
from backend.web_search.web_session import WebFinding
from connectors.access import Readers
from connectors.errors import InvalidInputError, NotFoundError
from tests.support.conversations import START
from tests.support.document_sets import apply_all, define, single
from tests.unit.backend.api.conftest import connected, make_container


def _citation(
    number: int, quote: str, verdict: Verdict = "supported", kind: SourceKindName = "document"
) -> CitationResponse:
    return CitationResponse(
        number=number,
        document_id=f"s:{number}",
        title=f"Title {number}",
        link=f"file:///{number}",
        kind=kind,
        quote=quote,
        section=0,
        span=(0, 1),
        score=1.0,
        verdict=verdict,
    )


def _answer(*citations: CitationResponse, **fields: object) -> AnswerResponse:
    given = {"question": "?", "answer": "!", "model": "m", "seconds": 1.0, **fields}
    return AnswerResponse.model_validate({**given, "citations": citations})


def _console() -> tuple[Console, io.StringIO]:
    shown = io.StringIO()
    return Console(file=shown, color_system=None, width=200), shown


def test_a_cited_source_is_listed_once_with_all_its_quotes() -> None:
    console, shown = _console()
    answer = _answer(
        _citation(2, "two", "weak"),
        _citation(1, "one"),
        _citation(1, "three"),
        _citation(1, "one"),
        _citation(3, "", "unchecked", kind="url"),
        _citation(4, "four", "contradicted", kind="memory"),
    )
    print_references(console, answer)
    assert [line.strip() for line in shown.getvalue().splitlines()] == [
        "",
        "References",
        "",
        "[1] Title 1",
        "“one”",
        "“three”",
        "file:///1",
        "",
        "[2] Title 2",
        "“two” (supports this only in part)",
        "file:///2",
        "",
        "[3] Title 3 (web)",
        "not checked",
        "file:///3",
        "",
        "[4] Title 4 (what you asked to remember)",
        "“four” (contradicts this)",
        "file:///4",
    ]


def test_general_knowledge_is_said_and_nothing_is_listed() -> None:
    console, shown = _console()
    answer = _answer(uncited=("Water boils at 100 °C.",), general_knowledge=True)
    print_general_knowledge(console, answer)
    print_uncited(console, answer)
    print_references(console, answer)
    (line,) = shown.getvalue().splitlines()
    assert line.startswith("From general knowledge, not from a source.")


def test_what_was_sent_to_whom_is_printed() -> None:
    console, shown = _console()
    finding = WebFinding(query="leave law", results=(), receivers=("Brave Search (a.b)",))
    print_step(console, WebSearched(finding, withheld=("Alabaster",)))
    print_step(console, WebSearched(WebFinding(query="leave law", results=())))
    print_step(
        console, WebSearched(WebFinding(query="x", results=(), problem="It does not answer."))
    )
    pages = (
        WebPage("https://a.example/1", "One", "text", None, None),
        BlockedPage("https://b.example/2", Obstacle.CAPTCHA),
    )
    print_step(console, PagesRead(pages))
    assert shown.getvalue().splitlines() == [
        "on the web: leave law (sent to Brave Search (a.b))",
        "kept out of it: Alabaster",
        "on the web: leave law (searched before)",
        "on the web: x",
        "done without the web: It does not answer.",
        "read: https://a.example/1",
        "not read: https://b.example/2: b.example shows only a captcha.",
    ]


def test_a_question_is_asked_of_a_set_and_of_an_assistant_by_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "office"
    folder.mkdir()
    for name, weeks in (("leave", 26), ("abroad", 30)):
        (folder / f"{name}.md").write_text(f"# Leave\n\nThere are {weeks} weeks of leave.\n")
    container = make_container(tmp_path / "home")
    connected(container, folder)
    define(container.database, "Abroad", single("wiki:abroad.md"))
    apply_all(container.database, container.engine.writer)
    database, me = container.database, ConversationOwner(None)
    desk = assistants.add(database, me, AssistantValues(name="Desk", sets=("Abroad",)), START)

    def cited(asked: Asked, owner: ConversationOwner | None = me) -> list[str]:
        question = "How many weeks of leave are there?"
        done, _ = ask_in_terminal(
            container, question, Readers.of(), (), None, owner=owner, asked=asked
        )
        answer = AnswerResponse.from_answer(question, done, 1.0)
        return sorted(one.document_id for one in answer.passages)

    abroad, both = ["wiki:abroad.md"], ["wiki:abroad.md", "wiki:leave.md"]
    assert cited(Asked()) == both
    assert cited(Asked(sets=("Abroad",))) == abroad
    assert cited(Asked(sets=("None",))) == []
    assert cited(Asked(assistant="desk")) == abroad
    file = NewFile(
        id="plan",
        name="plan.md",
        media_type="text/markdown",
        size=3,
        sha256="plan",
        document_id="Your files:plan",
        data=b"abc",
    )
    user_files.add(database, me, file, 3)
    shared_files.add(database, me, FileHolder("assistant", desk), "plan", 9)
    with pytest.raises(InvalidInputError, match="files of its own"):
        cited(Asked(assistant="desk"))
    for wanted, owner in (("nobody", me), ("Desk", None)):
        with pytest.raises(NotFoundError, match="no assistant of this id or name"):
            cited(Asked(assistant=wanted), owner)
