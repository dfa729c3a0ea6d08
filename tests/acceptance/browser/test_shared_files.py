"""The files of a project in a browser: three that are read whole, thirty that become the scope of the search, which is said; two people."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, FilePayload, Page, ViewportSize, expect

from tests.support.accounts import PASSWORD
from tests.support.browser import Watched, check_looks
from tests.support.home import Home
from tests.support.scripted_model import Call, Reply, Request, Say, ScriptedModel, ToolUse
from tests.support.serving import Serving, serving

ANN, BOB = "ann@example.com", "bob@example.com"
QUESTION = "Where does the office move?"
WINDOW = "6000"
SLOW = 240_000
"""Milliseconds, also on a busy machine: each file is read by a process of its own."""


def script(request: Request) -> Reply:
    if any(one.get("type") == "file" for one in request.sources):
        return Say("The office moves to Nantmoor [1].")
    if request.tool_names and not request.has_sources:
        return Call(ToolUse("internal_search", {"queries": ["office move"]}))
    return Say("The files say that the office moves [1].")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """Ann is an admin; Bob is a member."""
    home, folder = (
        Home(tmp_path_factory.mktemp("held")),
        tmp_path_factory.mktemp("files") / "office",
    )
    folder.mkdir()
    (folder / "leave.md").write_text("# Leave\n\nThere are 26 weeks of leave.\n")
    assert home.quarry("add", "folder", str(folder)).code == 0
    assert home.quarry("sync").code == 0
    settings = {"QUARRY_LLM_MODEL": "scripted", "QUARRY_LLM_WINDOW": WINDOW}
    with (
        ScriptedModel(script) as model,
        serving(home, QUARRY_LLM_URL=model.base_url, **settings) as running,
    ):
        for email, name, *role in ((ANN, "Ann Lee", "--role", "admin"), (BOB, "Bob Day")):
            port = running.url.rpartition(":")[2]
            link = home.quarry("users", "invite", email, *role, "--port", port).out.strip()
            form = {"code": link.partition("=")[2], "name": name, "password": PASSWORD}
            assert running.client.post("/invitation", data=form).status_code == 303
        yield running


@contextmanager
def _signed_in(browser: Browser, server: Serving, email: str, locale: str = "en") -> Iterator[Page]:
    size: ViewportSize = {"width": 1280, "height": 860}
    with browser.new_context(viewport=size, locale=locale) as context:
        watched = Watched(context.new_page(), server.url)
        page = watched.open("/chat")
        page.locator("input[type=email]").fill(email)
        page.locator("input[type=password]").fill(PASSWORD)
        page.keyboard.press("Enter")
        expect(page.locator(".signed-in button")).to_be_visible()
        yield page
        assert [one for one in watched.wrong if "of 404" not in one] == []


def _file(number: int, paragraphs: int = 1) -> FilePayload:
    text = f"# Plan {number}\n\n" + "The office moves to Nantmoor in May. " * paragraphs
    return {"name": f"plan-{number}.md", "mimeType": "text/markdown", "buffer": text.encode()}


def _add(page: Page, *files: FilePayload) -> None:
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose files").click()
    chooser.value.set_files(list(files))


def _is_ready(page: Page, count: int) -> None:
    expect(page.locator("[data-files] li.ready")).to_have_count(count, timeout=SLOW)


def _drop(page: Page, name: str) -> None:
    page.evaluate(
        """(name) => {
          const data = new DataTransfer();
          data.items.add(new File(["# Plan\\n\\nThe office moves to Nantmoor in May."], name));
          for (const type of ["dragover", "drop"]) {
            const event = new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true });
            document.querySelector("[data-shared-files] h2").dispatchEvent(event);
          }
        }""",
        name,
    )


def _ask(page: Page, project: str) -> None:
    page.goto(project)
    page.get_by_role("link", name="Ask in this project").click()
    box = page.get_by_label("Your question", exact=True)
    box.fill(QUESTION)
    box.press("Enter")
    expect(page.get_by_role("status")).to_have_text(re.compile(r"The answer is complete\."))


def _read_card(page: Page) -> str:
    """What the card of the first citation says, its quote aside."""
    page.locator(".answer .cite").first.hover()
    expect(page.locator("#card")).to_be_visible()
    return " ".join(page.locator("#card").locator(".name, .dim").all_inner_texts())


def test_three_files_of_a_project_fit_and_thirty_become_the_scope(
    browser: Browser, server: Serving, pictures: Path
) -> None:
    with _signed_in(browser, server, ANN) as ann, _signed_in(browser, server, BOB) as bob:
        ann.goto(f"{server.url}/projects")
        ann.get_by_label("Name", exact=True).fill("New depot")
        ann.get_by_role("button", name="Make project").click()
        ann.get_by_label("Address of a colleague").fill(BOB)
        ann.get_by_role("button", name="Add", exact=True).click()
        project = ann.url
        expect(ann.get_by_text("There are no files yet.")).to_be_visible()
        _add(ann, _file(0), _file(1))
        _drop(ann, "plan-2.md")
        _is_ready(ann, 3)
        expect(ann.locator("[data-files] li").first).to_have_text("plan-0.md1 kB · YoursRemove")
        check_looks(ann, pictures, "shared-files")

        # Bob reads Ann's files whole, here; a search of his own finds none of them.
        _ask(bob, project)
        expect(bob.locator(".message .answer").last).to_contain_text("moves to Nantmoor")
        expect(bob.locator(".scope")).to_be_hidden()
        conversation = bob.url
        card = _read_card(bob)
        assert "Files of this project" in card
        bob.reload()
        assert _read_card(bob) == card
        bob.locator(".answer .cite").first.click()
        expect(bob.locator("#pane-title")).to_contain_text("plan-")
        bob.goto(f"{server.url}/?q=Nantmoor")
        expect(bob.get_by_role("main")).not_to_contain_text("plan-")

        bob.goto(project)
        _is_ready(bob, 3)
        expect(bob.locator("[data-files]")).to_contain_text("Ann Lee")
        expect(bob.get_by_role("button", name="Remove plan-0.md")).to_have_count(0)
        _add(bob, *(_file(number, 60) for number in range(3, 30)))
        _is_ready(bob, 30)
        check_looks(bob, pictures, "shared-files-thirty")
        _ask(bob, project)
        said = bob.locator(".scope")
        expect(said).to_contain_text(
            "Only the files of this project are searched: together they are too long to be read whole."
        )
        check_looks(bob, pictures, "shared-files-scope")
        said.locator("[data-everything]").click()
        expect(bob.locator(".scope").last).to_contain_text(
            "Everything is searched, with the files of this project"
        )

        # By the keyboard.
        ann.goto(project)
        _is_ready(ann, 30)
        ann.get_by_role("button", name="Remove plan-2.md").press("Enter")
        _is_ready(ann, 29)
        expect(ann.locator("[data-files] button").first).to_be_focused()
        # What is tried beside the instructions has the files that the project has.
        ann.get_by_label("Question", exact=True).fill(QUESTION)
        ann.get_by_role("button", name="Ask", exact=True).click()
        expect(ann.locator("#status")).to_have_text(re.compile(r"The answer is complete\."))
        expect(ann.locator("#turn .scope")).to_contain_text(
            "Only the files of this project are searched"
        )
        check_looks(ann, pictures, "shared-files-tried")
        # Who leaves takes along what they added, and reads no answer that rests on what others did.
        ann.get_by_role("button", name=f"Remove {BOB}").click()
        _is_ready(ann, 2)
        bob.goto(conversation)
        expect(bob.locator(".message.answering").first).to_contain_text(
            "This answer rests on sources that were deleted, or that you may not read."
        )


def test_an_assistant_has_files_of_its_own(
    browser: Browser, server: Serving, pictures: Path
) -> None:
    with _signed_in(browser, server, ANN) as ann:
        ann.goto(f"{server.url}/assistants/new")
        expect(ann.get_by_text("Once it is saved, you can give it files")).to_be_visible()
        made = server.url + "/assistants"
        ann.get_by_label("Name", exact=True).fill("Mover")
        ann.get_by_role("button", name="Save").click()
        ann.wait_for_url(re.compile(r"/assistants(\?|$)"))
        ann.get_by_role("link", name="Edit Mover").click()
        expect(
            ann.get_by_text("Everyone who may use this assistant can read these files.")
        ).to_be_visible()
        _add(ann, _file(40))
        _is_ready(ann, 1)
        check_looks(ann, pictures, "shared-files-assistant")
        # Taken out and put back by the keyboard, which is left at what is there still.
        ann.get_by_role("button", name="Remove plan-40.md").press("Enter")
        others = ann.locator("[data-others] summary")
        others.press("Enter")
        ann.get_by_role("button", name="Add plan-40.md").press("Enter")
        _is_ready(ann, 1)
        expect(others).to_be_focused()
        editor = ann.url
        ann.locator("#q").fill(QUESTION)
        ann.get_by_role("button", name="Ask", exact=True).click()
        expect(ann.locator("#turn")).to_contain_text("moves to Nantmoor")
        assert made in editor
    with _signed_in(browser, server, ANN, "zh-CN") as ann:
        ann.goto(editor)
        expect(ann.get_by_role("button", name="选择文件")).to_be_visible()
        expect(ann.get_by_role("checkbox", name="您的文件")).to_have_count(1)
        check_looks(ann, pictures, "shared-files-chinese")
