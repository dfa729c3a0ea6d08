"""Looking after sources in a browser: add one by its form, try it, try again what failed, decide, remove."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from fpdf import FPDF
from playwright.sync_api import Page, ViewportSize, expect

from tests.support.browser import Opens, Watched
from tests.support.home import Home
from tests.support.serving import serving

PHONE: dict[str, ViewportSize] = {"viewport": {"width": 360, "height": 740}}


NAMES = ("failing", "edited", "judged", "leaving")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with a folder for each test that needs one; one of them has a file that is no PDF."""
    home = Home(tmp_path_factory.mktemp("desk"))
    for name in NAMES:
        folder = home.path / name
        folder.mkdir()
        (folder / "leave.md").write_text("# Leave\n\n26 weeks.\n", encoding="utf-8")
        assert home.quarry("add", "folder", str(folder)).code == 0
    old = home.path / "judged" / "old"
    old.mkdir()
    for number in range(60):
        (old / f"note {number:02}.md").write_text(f"# Note {number}\n\nOld.\n", encoding="utf-8")
    (home.path / "failing" / "broken.pdf").write_bytes(b"%PDF-1.7 and then nothing of the kind")
    return home


@pytest.fixture(scope="module")
def address(desk: Home) -> Iterator[str]:
    """With workers: what is asked for is done by itself."""
    with serving(desk, QUARRY_WORKERS="true") as server:
        yield server.url


def _repository(folder: Path) -> Path:
    folder.mkdir()
    (folder / "guide.md").write_text("# Guide\n\nTurn the handle twice.\n", encoding="utf-8")
    who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.com")
    for words in (("init", "-q", "-b", "main"), ("add", "."), (*who, "commit", "-q", "-m", "One")):
        subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)
    return folder


def _write_pdf(path: Path) -> None:
    page = FPDF()
    page.add_page()
    page.set_font("Helvetica")
    page.cell(text="Mended at last.")
    page.output(str(path))


def _forgive(watched: Watched, *statuses: int) -> None:
    """Answers that are part of the story: 422 a form that is refused, 404 a source that has gone, 409 one that
    a worker began to read before the page asked for it."""
    expected = "|".join(f"status of {status}" for status in statuses)
    watched.wrong[:] = [each for each in watched.wrong if not re.search(expected, each)]


def _settled(page: Page, name: str) -> None:
    """Its first run has ended."""
    state = page.locator(f'[data-source="{name}"] .state')
    expect(state).to_have_text("up to date", timeout=60_000)


def test_a_repository_is_added_by_its_form_with_the_keyboard_alone(
    opens: Opens, address: str, tmp_path: Path, pictures: Path
) -> None:
    repository = _repository(tmp_path / "manual")
    with opens(address) as watched:
        page = watched.open("/sources")
        page.get_by_role("link", name="Git", exact=True).press("Enter")
        url = page.get_by_label("URL")
        expect(url).to_have_attribute(
            "aria-describedby", "field-settings-url-help field-settings-url-fault"
        )
        url.press("Enter")  # nothing is filled in: each fault stands beside its field
        expect(page.locator("#field-settings-url-fault")).to_have_text("Required.")
        expect(page.locator("#field-settings-readers-fault")).to_have_text("Required.")
        expect(url).to_be_focused()
        page.screenshot(path=pictures / "source-form-faults.png", full_page=True)
        page.keyboard.type(str(repository))
        page.keyboard.press("Tab")
        page.keyboard.type("public")
        url.press("Enter")
        added = page.locator('[data-source="manual"]')
        expect(added.locator(".state")).to_have_text("up to date", timeout=60_000)
        expect(added).to_contain_text("1 document")
        _forgive(watched, 422, 409)


def test_a_secret_is_asked_for_by_its_variant_and_never_filled_in_again(
    opens: Opens, address: str, pictures: Path
) -> None:
    with opens(address, color_scheme="dark") as watched:
        page = watched.open("/sources?add=git")
        token = page.get_by_label("Token", exact=False).and_(page.locator('[type="password"]'))
        expect(token).to_be_hidden()
        page.get_by_label("Sign in").select_option("Token")
        expect(token).to_be_visible()
        page.get_by_label("URL").fill("https://nowhere.invalid/team/wiki.git")
        page.get_by_label("Readers").fill("public\ngroup:dev")
        token.fill("t0p-secret")
        page.screenshot(path=pictures / "source-form-secret-dark.png", full_page=True)
        page.get_by_role("button", name="Add and sync").click()
        expect(page.locator('[data-source="wiki"]')).to_be_visible()
        page.goto(f"{address}/source/wiki")
        expect(page.get_by_label("Readers")).to_have_value("public\ngroup:dev")
        page.get_by_text("Replace the credential").click()
        expect(page.get_by_label("Sign in")).to_have_value("none")
        assert "t0p-secret" not in page.content()
        page.get_by_role("button", name="Test").click()
        tried = page.locator("#test-results li")
        expect(tried).to_have_count(3)
        expect(tried.first).to_contain_text("missing")
        expect(tried.first).to_contain_text("nowhere.invalid")
        _forgive(watched, 409)


def test_a_key_of_several_lines_is_pasted_whole(opens: Opens, address: str) -> None:
    with opens(address) as watched:
        page = watched.open("/sources?add=git")
        page.get_by_label("URL").fill("ssh://git@nowhere.invalid/team/keyed.git")
        page.get_by_label("Readers").fill("public")
        page.get_by_label("Sign in").select_option("SSH key")
        page.evaluate(
            """() => {
              const paste = (id, text) => {
                const data = new DataTransfer();
                data.setData("text/plain", text);
                document.getElementById(id).dispatchEvent(
                  new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
              };
              paste("field-credential-sign_in-private_key", "-----BEGIN\\nabc\\n-----END\\n");
              paste("field-credential-sign_in-known_hosts", "nowhere.invalid ssh-ed25519 AAAA\\nnowhere.invalid ssh-rsa BBBB\\n");
            }"""
        )
        with page.expect_request("**/api/admin/sources") as sent:
            page.get_by_role("button", name="Add and sync").click()
        assert sent.value.post_data
        sign_in = json.loads(sent.value.post_data)["credential"]["sign_in"]
        assert sign_in["private_key"] == "-----BEGIN\nabc\n-----END\n"
        assert sign_in["known_hosts"].count("\n") == 2
        # What was pasted for one source is not sent for the next one.
        expect(page.locator('[data-source="keyed"]')).to_be_visible()
        expect(page.get_by_label("Private key")).to_be_hidden()
        page.get_by_label("URL").fill("ssh://git@nowhere.invalid/team/keyless.git")
        page.get_by_label("Readers").fill("public")
        page.get_by_label("Sign in").select_option("SSH key")
        refused = page.expect_console_message(lambda said: "status of 422" in said.text)
        with page.expect_response("**/api/admin/sources") as again, refused:
            page.get_by_role("button", name="Add and sync").click()
        assert "BEGIN" not in (again.value.request.post_data or "")
        _forgive(watched, 422, 409)


def test_what_failed_is_reported_mended_and_tried_again(
    opens: Opens, address: str, desk: Home, pictures: Path
) -> None:
    with opens(address) as watched:
        page = watched.open("/sources")
        page.get_by_role("link", name="1 document could not be read").click(timeout=60_000)
        _settled(page, "failing")
        failure = page.locator(".failures li")
        expect(failure).to_contain_text("broken.pdf")
        expect(failure).to_contain_text("it is not a valid PDF")
        page.screenshot(path=pictures / "source.png", full_page=True)
        page.get_by_role("button", name="Try broken.pdf again").click()
        expect(page.get_by_role("status")).to_contain_text(
            "1 document of failing will be tried again"
        )
        expect(failure).to_contain_text("Tried 2 times", timeout=60_000)
        _write_pdf(desk.path / "failing" / "broken.pdf")
        page.get_by_role("button", name="Try all again").click()
        expect(failure).to_have_count(0, timeout=60_000)
        expect(page.locator(".meta")).to_contain_text("2 documents")
        _forgive(watched, 404)


def test_settings_are_edited_and_a_fault_stands_at_its_field(opens: Opens, address: str) -> None:
    with opens(address) as watched:
        page = watched.open("/source/edited")
        folder = page.get_by_label("Folder on this machine")
        right = folder.input_value()
        folder.fill("/nowhere/at/all")
        page.get_by_role("button", name="Save").click()
        expect(page.locator("#field-settings-path-fault")).to_have_text(
            "There is no such folder on this machine."
        )
        expect(folder).to_be_focused()
        folder.fill(right)
        page.get_by_text("More settings").click()
        page.get_by_label("Exclude").fill("*.pdf\n*.tmp")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("status")).to_contain_text("Saved. The connection works.")
        page.reload()
        expect(page.get_by_label("Exclude")).to_have_value("*.pdf\n*.tmp")
        _forgive(watched, 422, 409)


def test_how_often_it_is_read_is_chosen(opens: Opens, address: str) -> None:
    with opens(address) as watched:
        page = watched.open("/source/edited")
        choice = page.get_by_label("Deletion check")
        expect(choice).to_have_value("21600")
        choice.select_option("every day")
        page.get_by_role("button", name="Set schedule").click()
        expect(page.get_by_role("status")).to_contain_text("deletion check every day")
        page.reload()
        expect(page.get_by_label("Deletion check")).to_have_value("86400")


def test_what_is_missing_is_looked_at_kept_and_in_the_end_deleted(
    opens: Opens, address: str, desk: Home, pictures: Path
) -> None:
    with opens(address) as watched:
        page = watched.open("/source/judged")
        _settled(page, "judged")
        shutil.rmtree(desk.path / "judged" / "old")
        page.get_by_role("button", name="Sync now").click()
        expect(page.locator(".decision")).to_contain_text("60 documents of 61 are missing")
        page.get_by_role("link", name="Look at the missing documents of judged").click()
        expect(page.get_by_role("heading", level=1)).to_have_text(
            "60 documents are missing from judged"
        )
        expect(page.get_by_text("where nothing is left")).to_contain_text("/judged/old/")
        expect(page.locator(".missing li")).to_have_count(60)
        expect(page.locator("body")).not_to_contain_text("quarry sources")
        _picture(page, pictures, "decision")

        page.get_by_role("button", name="Keep and look again").click()
        expect(page).to_have_url(f"{address}/source/judged")
        expect(page.locator(".decision")).to_be_visible(timeout=60_000)
        expect(page.locator(".source-head + .from + .meta")).to_contain_text("61 documents")

        page.goto(f"{address}/source/judged/decision")
        delete = page.get_by_role("button", name="Delete 60 documents")
        delete.click()
        page.get_by_role("button", name="Keep them").click()
        delete.click()
        page.screenshot(path=pictures / "decision-confirm.png")
        page.get_by_role("dialog").get_by_role("button", name="Delete 60 documents").click()
        expect(page).to_have_url(f"{address}/source/judged")
        expect(page.locator(".meta").first).to_contain_text("1 document", timeout=60_000)
        _settled(page, "judged")
        page.goto(f"{address}/source/judged/decision")
        expect(page).to_have_url(f"{address}/source/judged")
        _forgive(watched, 409)


def _picture(page: Page, pictures: Path, name: str) -> None:
    """Take it light, dark and on a phone."""
    wide = page.viewport_size
    assert wide is not None
    page.screenshot(path=pictures / f"{name}.png", full_page=True)
    page.emulate_media(color_scheme="dark")
    page.screenshot(path=pictures / f"{name}-dark.png", full_page=True)
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(PHONE["viewport"])
    page.screenshot(path=pictures / f"{name}-phone.png", full_page=True)
    page.set_viewport_size(wide)


def test_a_source_is_paused_resumed_and_removed(opens: Opens, address: str) -> None:
    with opens(address) as watched:
        page = watched.open("/source/leaving")
        page.get_by_role("button", name="Pause").click()
        expect(page.locator(".source-head .state")).to_have_text("paused")
        expect(page.get_by_role("button", name="Sync now")).to_be_disabled()
        page.get_by_role("button", name="Resume").click()
        expect(page.get_by_role("button", name="Pause")).to_be_visible()
        page.get_by_role("button", name="Remove leaving").click()
        page.get_by_role("button", name="Keep it").click()
        page.get_by_role("button", name="Remove leaving").click()
        page.get_by_role("button", name="Remove", exact=True).click()
        expect(page).to_have_url(f"{address}/sources", timeout=60_000)
        expect(page.locator('[data-source="edited"]')).to_be_visible()
        expect(page.locator('[data-source="leaving"]')).to_have_count(0)
        page.get_by_role("link", name="Audit of all actions").click()
        page.get_by_label("Source").select_option("leaving")
        page.get_by_role("button", name="Show").press("Enter")
        rows = page.get_by_role("row").filter(has_text="leaving")
        expect(rows.nth(0)).to_contain_text("delete")
        expect(rows.filter(has_text="pause")).to_contain_text("done")
        expect(page.get_by_role("row").filter(has_text="edited")).to_have_count(0)
        _forgive(watched, 404)
