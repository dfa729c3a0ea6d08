"""Files of a question in a browser: three that are read whole; thirty that become the scope of the search, which is said, and the way back."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import FilePayload, Locator, Page, Route, expect

from backend.files.file_types import LARGEST_FILE
from tests.support.browser import Opens, check_looks
from tests.support.home import Home
from tests.support.scripted_model import Call, Reply, Request, Say, ScriptedModel, ToolUse
from tests.support.serving import Serving, serving

WINDOW = 6_000
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
QUESTION = "Where does the office move?"


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        yield running


@pytest.fixture(scope="module")
def server(
    home: Home, model: ScriptedModel, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Serving]:
    """Of a copy of the home: other tests count its documents."""
    own = Home(tmp_path_factory.mktemp("files"))
    shutil.copytree(home.path / "state", own.path / "state")
    settings = {"QUARRY_LLM_MODEL": "scripted", "QUARRY_LLM_WINDOW": str(WINDOW)}
    with serving(own, QUARRY_LLM_URL=model.base_url, **settings) as running:
        yield running


@pytest.fixture
def address(server: Serving, model: ScriptedModel) -> str:
    """Of a server that holds no file."""
    for one in server.client.get("/api/files").json()["files"]:
        server.client.delete(f"/api/files/{one['id']}")
    model.play(_answer)
    return server.url


def _answer(request: Request) -> Reply:
    if any(one.get("type") == "file" for one in request.sources):
        return Say("The office moves to Nantmoor [1].")
    if request.tool_names and not request.has_sources:
        return Call(ToolUse("internal_search", {"queries": ["office move"]}))
    return Say("The documents say that the office moves [1].")


def _file(number: int, paragraphs: int = 1) -> FilePayload:
    text = f"# Plan {number}\n\n" + "The office moves to Nantmoor in May. " * paragraphs
    return {"name": f"plan-{number}.md", "mimeType": "text/markdown", "buffer": text.encode()}


def _chips(page: Page) -> Locator:
    return page.get_by_role("list", name="Files of your question").get_by_role("listitem")


def _add(page: Page, *files: FilePayload) -> None:
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Add files").click()
    chooser.value.set_files(list(files))
    expect(page.locator("#files li.ready")).to_have_count(
        len(files), timeout=60_000 + 5_000 * len(files)
    )


def _ask(page: Page) -> None:
    box = page.get_by_label("Your question", exact=True)
    box.fill(QUESTION)
    box.press("Enter")


def _is_complete(page: Page) -> None:
    expect(page.get_by_role("status")).to_have_text(re.compile(r"The answer is complete\."))


def _axe(page: Page) -> None:
    found = Axe().run(page).response["violations"]
    assert not found, found


def test_three_files_are_read_whole_and_cited(
    opens: Opens, server: Serving, address: str, pictures: Path
) -> None:
    with opens(address) as watched:
        page = watched.open("/chat")
        _add(page, *map(_file, range(3)))
        page.screenshot(path=pictures / "files-box-light.png")
        _axe(page)
        _chips(page).first.get_by_role("button", name="Remove plan-0.md").press("Enter")
        expect(_chips(page)).to_have_count(2)
        expect(page.get_by_role("button", name="Remove plan-1.md")).to_be_focused()
        _add_dropped(page)
        expect(page.locator("#files li.ready")).to_have_count(3)
        _ask(page)
        _is_complete(page)
        expect(_chips(page)).to_have_count(0)
        asked = page.locator(".message.asked").get_by_role("list", name="Files")
        expect(asked.get_by_role("listitem")).to_have_count(3)
        expect(page.locator(".scope")).to_be_hidden()
        page.screenshot(path=pictures / "files-whole-light.png")
        _axe(page)
        page.reload()
        expect(asked.get_by_role("listitem")).to_have_count(3)
        conversation = page.url.removeprefix(address)
        page.locator(".answer .cite").first.click()
        page.get_by_role("link", name="Open on its own page").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("plan-1.md")
        expect(page.get_by_text("the person who added it, and those in a project")).to_be_visible()
        page.screenshot(path=pictures / "files-document-light.png")
        for one in server.client.get("/api/files").json()["files"][1:]:
            server.client.delete(f"/api/files/{one['id']}")
        watched.open(conversation)
        expect(asked.get_by_role("listitem")).to_have_count(2)
        expect(asked).to_contain_text("2 files were deleted")
        page.screenshot(path=pictures / "files-deleted-light.png")
        _axe(page)


def test_the_card_says_whose_a_file_is_that_no_search_found(opens: Opens, address: str) -> None:
    with opens(address) as watched:
        page = watched.open("/chat")
        page.get_by_role("switch", name="Company knowledge").click()
        _add(page, _file(0))
        _ask(page)
        _is_complete(page)
        for _ in range(2):
            page.locator(".answer .cite").first.hover()
            expect(page.locator("#card .dim")).to_contain_text("Your files")
            page.reload()


def test_files_that_are_not_sent_survive_a_reload_and_have_a_page(
    opens: Opens, address: str, pictures: Path
) -> None:
    with opens(address) as watched:
        page = watched.open("/chat")
        _add(page, *map(_file, range(2)))
        page.reload()
        expect(page.locator("#files li.ready")).to_have_count(2)
        _chips(page).first.get_by_role("button", name="Remove plan-0.md").click()
        page.reload()
        expect(page.locator("#files li.ready")).to_have_count(1)
        _ask(page)
        _is_complete(page)
        page.reload()
        expect(page.locator(".message.asked")).to_have_count(1)
        expect(_chips(page)).to_have_count(0)
        _add(page, _file(7))
        page.get_by_role("link", name="Your files").click()
        rows = page.get_by_role("table").get_by_role("row")
        expect(rows).to_have_count(3)
        expect(rows.filter(has_text="plan-1.md")).to_contain_text("1 conversation")
        expect(rows.filter(has_text="plan-7.md")).to_contain_text("not used yet")
        check_looks(page, pictures, "own-files")
        with page.expect_download() as download:
            page.get_by_role("link", name="Download plan-7.md").click()
        assert "The office moves to Nantmoor" in Path(download.value.path()).read_text()
        page.get_by_role("button", name="Delete plan-1.md").click()
        asking = page.get_by_role("dialog")
        expect(asking).to_contain_text("It is used by:")
        expect(asking.get_by_role("listitem")).to_have_text([f"The conversation {QUESTION}"])
        check_looks(page, pictures, "own-files-deleting")
        asking.get_by_role("button", name="Keep it").click()
        page.get_by_role("button", name="Delete plan-7.md").click()
        expect(asking).not_to_contain_text("It is used by:", use_inner_text=True)
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        expect(rows).to_have_count(2)


def _add_dropped(page: Page) -> None:
    page.evaluate(
        """() => {
          const data = new DataTransfer();
          data.items.add(new File(["# Dropped\\n\\nIt moves to Nantmoor."], "dropped.md"));
          document.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true }));
        }"""
    )


def test_thirty_files_become_the_scope(opens: Opens, address: str, pictures: Path) -> None:
    with opens(address) as watched:
        page = watched.open("/chat")
        _add(page, *(_file(number, 40) for number in range(30)))
        page.screenshot(path=pictures / "files-thirty-light.png")
        _ask(page)
        _is_complete(page)
        scope = page.locator(".scope")
        expect(scope).to_contain_text("Only these 30 files are searched: together they are too")
        page.screenshot(path=pictures / "files-scope-light.png")
        _axe(page)
        scope.get_by_role("button", name="Search everything").press("Enter")
        expect(scope).to_contain_text("Everything is searched, with these 30 files")
        _is_complete(page)
        expect(scope.get_by_role("button", name="Search only these files")).to_be_visible()
        page.reload()
        expect(scope).to_contain_text("Everything is searched, with these 30 files")


def test_a_file_that_is_too_large_is_not_sent(
    opens: Opens, address: str, pictures: Path, tmp_path: Path
) -> None:
    with (tmp_path / "large.txt").open("wb") as large:
        large.truncate(LARGEST_FILE + 1)
    sent = list[str]()
    with opens(address) as watched:
        page = watched.open("/chat")
        page.on("request", lambda one: sent.append(one.url) if one.method == "POST" else None)
        with page.expect_file_chooser() as chooser:
            page.get_by_role("button", name="Add files").click()
        chooser.value.set_files(tmp_path / "large.txt")
        said = page.get_by_text("large.txt has 20,000,001 bytes; a file may have 20,000,000.")
        expect(said).to_have_count(1)
        expect(page.get_by_role("alert")).to_contain_text(
            "Split it, or leave out what the question"
        )
        expect(page.get_by_role("status")).to_have_text(
            "A file could not be read. Remove it, then ask."
        )
        page.screenshot(path=pictures / "files-too-large.png")
        # One as large as a file may be is sent.
        with (tmp_path / "large.txt").open("wb") as large:
            large.truncate(LARGEST_FILE)
        page.get_by_role("button", name="Remove large.txt").click()
        assert sent == []
        with page.expect_file_chooser() as chooser:
            page.get_by_role("button", name="Add files").click()
        with page.expect_request("**/api/files"):
            chooser.value.set_files(tmp_path / "large.txt")
        page.get_by_role("button", name="Remove large.txt").click()


def test_the_next_file_does_not_wait_for_one_that_is_removed_during_its_upload(
    opens: Opens, address: str
) -> None:
    with opens(address) as watched:
        page = watched.open("/chat")
        held = list[Route]()
        page.route("**/api/files", lambda one: one.fallback() if held else held.append(one))
        with page.expect_file_chooser() as chooser:
            page.get_by_role("button", name="Add files").click()
        with page.expect_request("**/api/files"):
            chooser.value.set_files([_file(91), _file(92)])
        page.get_by_role("button", name="Remove plan-91.md").click()
        expect(page.locator("#files li.ready")).to_have_count(1, timeout=60_000)
        expect(_chips(page)).to_contain_text("plan-92.md")
        page.get_by_role("button", name="Remove plan-92.md").click()


def test_what_cannot_be_read_is_said_on_a_phone_in_the_dark(
    opens: Opens, address: str, pictures: Path
) -> None:
    with opens(address, color_scheme="dark", **PHONE) as watched:
        page = watched.open("/chat")
        with page.expect_file_chooser() as chooser:
            page.get_by_role("button", name="Add files").click()
        tool: FilePayload = {
            "name": "tool.exe",
            "mimeType": "x/y",
            "buffer": b"\x7fELF\x02\x01\x01\0\xff\xfe\x80",
        }
        chooser.value.set_files([tool, _file(1)])
        expect(_chips(page).first).to_contain_text("tool.exe is of a kind that cannot be read.")
        expect(page.locator("#files li.ready")).to_have_count(1)
        _ask(page)
        expect(page.get_by_role("status")).to_have_text(
            "A file could not be read. Remove it, then ask."
        )
        page.screenshot(path=pictures / "files-phone-dark.png")
        _axe(page)
        page.get_by_role("button", name="Remove tool.exe").tap()
        page.get_by_label("Your question", exact=True).press("Enter")
        _is_complete(page)
        page.screenshot(path=pictures / "files-phone-asked-dark.png")
        # The browser notes by itself what the server refused.
        (noted,) = watched.wrong
        assert "422" in noted
        watched.wrong.clear()
