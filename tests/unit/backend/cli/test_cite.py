"""`quarry cite`: files, pages and documents as sources of a text."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from backend.cli import app
from backend.composition.web import WebParts
from backend.web_search.page_fetcher import PageFetcher
from backend.web_search.page_reader import PageReader
from tests.support.local_web import LocalWeb, local_web
from tests.support.models import MODEL_CACHE

LEAVE = "Each parent is entitled to 26 weeks of paid parental leave, in two parts where the manager agrees."
OTHER = "Nobody has ever said this sentence about the weather in the mountains of the moon to anybody else."


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalWeb]:
    with local_web() as served:
        reader = PageReader(PageFetcher(served.allowed, served.resolve))
        monkeypatch.setattr(WebParts, "page_reader", reader)
        yield served


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "files"
    made.mkdir()
    (made / "leave.md").write_text(f"# Parental leave\n\n{LEAVE}\n")
    (made / "empty.txt").write_text("")
    return made


def run(folder: Path, *arguments: str, code: int = 0, given: str | None = None) -> Result:
    env = {"QUARRY_HOME": str(folder.parent / "home"), "QUARRY_MODELS": str(MODEL_CACHE)}
    done = CliRunner(env=env).invoke(app, arguments, input=given)
    assert done.exit_code == code, done.output
    return done


def cite(folder: Path, text: str, *arguments: str, code: int = 0) -> Result:
    return run(folder, "cite", "-", *arguments, code=code, given=text)


def test_a_text_is_printed_with_its_markers_and_their_list(folder: Path) -> None:
    leave = folder / "leave.md"
    shown = cite(folder, f"# Text\n\n{OTHER}\n\n- {LEAVE}\n", "--source", str(leave)).output
    assert shown == (
        f"# Text\n\n{OTHER}\n\n- {LEAVE}[1]\n\n"
        f"## Sources\n\n- [1] [Parental leave]({leave.as_uri()}): “{LEAVE}”\n"
    )


def test_footnotes_are_those_of_markdown(folder: Path) -> None:
    text = folder / "text.md"
    text.write_text(LEAVE)
    source = ("--source", str(folder / "leave.md"))
    shown = run(folder, "cite", str(text), *source, "--footnotes").output
    assert shown.startswith(f"{LEAVE}[^1]\n\n[^1]: [Parental leave](")


def test_a_picture_is_numbered_and_listed(folder: Path) -> None:
    shown = folder / "shown.md"
    shown.write_text(f"# Charts\n\n![{LEAVE}](leave.png)\n")
    address = (folder / "leave.png").as_uri()
    found = cite(folder, LEAVE, "--source", str(shown))
    assert found.stdout == (
        f"{LEAVE}[1]\n\n## Sources\n\n- [1] [Charts]({address}), a picture: “{LEAVE}”\n"
    )
    assert found.stderr == ""
    listed = json.loads(cite(folder, LEAVE, "--source", str(shown), "--json").output)
    (picture,) = listed["pictures"]
    assert (picture["number"], picture["url"], listed["references"]) == (1, address, [])


def test_as_json_each_reference_has_its_quote_and_places(folder: Path) -> None:
    source = folder / "leave.md"
    found = json.loads(cite(folder, LEAVE, "--source", str(source), "--json").output)
    assert found["text"] == f"{LEAVE}[1]"
    (reference,) = found["references"]
    assert (reference["number"], reference["url"]) == (1, source.as_uri())
    assert (reference["exact_quote"], reference["document_id"]) == (LEAVE, None)


def test_documents_are_named_by_id_or_title_and_only_by_their_readers(folder: Path) -> None:
    (folder / "access.yaml").write_text(
        'rules:\n  - match: "**"\n    readers: [user:ann@example.com]\n'
    )
    run(folder, "add", "folder", str(folder), "--name", "docs")
    run(folder, "sync", "docs", code=3)
    for name in ("docs:leave.md", "Parental leave"):
        shown = cite(folder, LEAVE, "--source", name, "--as", "user:ann@example.com", "--json")
        assert json.loads(shown.output)["references"][0]["document_id"] == "docs:leave.md"
        refused = cite(folder, LEAVE, "--source", name, "--as", "user:bob@example.com", code=1)
        assert refused.output.strip() == (
            f"There is no file {name!r}, and no such document that you may read."
        )


def test_pages_of_the_web_are_read(folder: Path, web: LocalWeb) -> None:
    leave = str(folder / "leave.md")
    page = web.url("/en/pool")
    shown = cite(folder, LEAVE, "--source", page, "--source", leave, "--json")
    assert json.loads(shown.output)["text"] == f"{LEAVE}[1]"
    blocked = cite(folder, LEAVE, "--source", web.url("/walls/login-zh"), code=1)
    assert "only to people who are signed in" in blocked.output


def test_without_a_reference_the_text_is_as_it_was_and_the_command_fails(folder: Path) -> None:
    """As `search` does where it finds nothing."""
    source = ("--source", str(folder / "leave.md"))
    done = cite(folder, f"{OTHER}\n", *source, code=1)
    assert done.stdout == f"{OTHER}\n"
    assert done.stderr == "No sentence of the text is enough like anything in the sources.\n"
    found = json.loads(cite(folder, OTHER, *source, "--json", code=1).stdout)
    assert (found["text"], found["references"], found["pictures"]) == (OTHER, [], [])


def test_a_picture_without_text_is_named_and_costs_nothing(folder: Path) -> None:
    shown = folder / "shown.md"
    shown.write_text(f"{LEAVE}\n\n![](leave.png)\n")
    done = cite(folder, LEAVE, "--source", str(shown), code=0)
    assert "[1]" in done.stdout
    assert done.stderr.startswith("1 picture of the sources has no text to compare with")


def test_without_a_source_the_use_is_wrong(folder: Path) -> None:
    assert "--source" in cite(folder, LEAVE, code=2).output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("missing.md", "--source", "leave.md"), "missing.md cannot be read: No such file"),
        (("-", "--source", "empty.txt"), "empty.txt cannot be read: the file is empty."),
        (("-", "--source", "nowhere"), "There is no file 'nowhere'"),
        (("-", "--source", "leave.md", "--source", "nowhere"), "There is no file 'nowhere'"),
        (("-", "--source", "x" * 300), f"There is no file '{'x' * 300}'"),
        ((".", "--source", "leave.md"), ". cannot be read: Is a directory."),
        (("-", "--source", "/proc/self/mem"), "/proc/self/mem cannot be read: Input/output error."),
    ],
)
def test_what_cannot_be_read_is_named(
    folder: Path, arguments: tuple[str, ...], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert says in run(folder, "cite", *arguments, code=1, given=LEAVE).output
    failed = run(folder, "cite", *arguments, "--json", code=1, given=LEAVE).output
    assert says in json.loads(failed)["error"]


def test_a_source_cannot_command_the_terminal(folder: Path) -> None:
    hostile = folder / "hostile.txt"
    hostile.write_text(f"\x1b[2J{LEAVE}\u202e")
    shown = cite(folder, f"\x1b[2J{LEAVE}", "--source", str(hostile)).output
    assert not set("\x1b\u202e") & set(shown)
