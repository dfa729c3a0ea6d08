"""Searching, reading and looking after sources, as a person does it in a browser."""

import re
import shutil
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Page, Route, expect

from backend.sample import handbook
from tests.support.browser import Opens
from tests.support.home import Home
from tests.support.serving import serving


@pytest.fixture(scope="module")
def address(home: Home) -> Iterator[str]:
    """A server with the sample handbook and no language model."""
    with serving(home) as server:
        yield server.url


def _titles(page: Page) -> list[str]:
    return page.locator("[data-result]").all_inner_texts()


def test_from_nothing_to_a_document_read(opens: Opens, tmp_path: Path, pictures: Path) -> None:
    folder = tmp_path / "handbook"
    shutil.copytree(handbook(), folder)
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 and then nothing of the kind")
    with serving(Home(tmp_path)) as server, opens(server.url) as watched:
        page = watched.open("/")
        expect(page.get_by_text("Nothing is indexed yet.")).to_be_visible()
        page.screenshot(path=pictures / "empty.png")
        page.get_by_role("link", name="Add a folder").click()
        page.get_by_label("Folder on this machine").fill(str(folder))
        page.get_by_role("button", name="Add and sync").click()
        expect(page.get_by_role("progressbar")).to_be_visible()
        expect(page.locator(".doing")).to_contain_text("Indexing", timeout=60_000)
        page.screenshot(path=pictures / "syncing.png")
        expect(page.locator(".state")).to_have_text("up to date", timeout=60_000)
        expect(page.locator(".source")).to_contain_text("45 documents")
        page.screenshot(path=pictures / "sources.png")
        page.get_by_role("link", name="1 document could not be read").click()
        failures = page.locator(".failures li")
        expect(failures).to_have_count(1)
        expect(failures).to_contain_text("broken.pdf")
        page.get_by_role("link", name="Search", exact=True).click()
        page.locator("#q").fill("QX-4031")
        expect(page.locator("[data-result]").first).to_have_text(
            "Error codes of the Stonesight scanners"
        )


def test_a_folder_that_is_not_there_is_refused_in_words(opens: Opens, address: str) -> None:
    with opens(address) as watched:
        page = watched.open("/sources")
        page.get_by_label("Folder on this machine").fill("/nowhere/at/all")
        page.get_by_role("button", name="Add and sync").click()
        expect(page.locator(".fault:visible")).to_have_text(
            "There is no such folder on this machine."
        )
        watched.wrong[:] = [line for line in watched.wrong if "of 422" not in line]


def test_a_search_by_keyboard_alone(opens: Opens, address: str, pictures: Path) -> None:
    with opens(address) as watched:
        page = watched.open("/sources")
        page.get_by_role("link", name="Search", exact=True).focus()
        page.keyboard.press("Enter")
        expect(page.locator("#q")).to_be_focused()
        page.keyboard.type("bike at the Leeds office", delay=15)
        first = page.locator("[data-result]").first
        expect(first).to_have_text("Office guide Leeds")
        expect(page).to_have_url(re.compile(r"\?q=bike\+at\+the\+Leeds\+office$"))
        expect(page.get_by_role("status")).to_have_text(
            re.compile(r"\d+ documents found, \d+ passages")
        )
        page.screenshot(path=pictures / "search.png")
        page.keyboard.press("ArrowDown")
        expect(first).to_be_focused()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowUp")
        expect(first).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("Office guide Leeds")
        expect(page.locator("#cited")).to_be_in_viewport()
        expect(page.locator("#cited")).to_contain_text("Cycles are locked up in the cage")
        page.screenshot(path=pictures / "document.png")
        page.go_back()
        expect(page.locator("#q")).to_have_value("bike at the Leeds office")
        expect(first).to_have_text("Office guide Leeds")
        page.keyboard.press("Escape")
        page.locator("body").press("?")
        expect(page.get_by_role("dialog", name="Keyboard")).to_be_hidden()  # it is being typed


def test_the_list_of_keys(opens: Opens, address: str) -> None:
    with opens(address) as watched:
        page = watched.open("/sources")
        page.keyboard.press("?")
        expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog", name="Keyboard")).to_be_hidden()
        page.keyboard.press("/")
        expect(page).to_have_url(f"{address}/")


def test_a_slash_goes_to_the_box_and_is_no_text_of_it(opens: Opens, address: str) -> None:
    with opens(address) as watched:
        page = watched.open("/?q=warranty")
        expect(page.locator("#q")).to_be_focused()
        page.keyboard.press("/")
        expect(page.locator("#q")).to_have_value("warranty")
        page.keyboard.type("a/b")  # what was there is selected, and now it is typed
        expect(page.locator("#q")).to_have_value("a/b")


def test_times_are_those_of_the_reader(opens: Opens, address: str) -> None:
    with opens(address, timezone_id="Asia/Tokyo") as watched:
        page = watched.open("/source/handbook")
        time = page.locator("table.runs time").first
        began = datetime.fromisoformat(time.get_attribute("datetime") or "")
        expect(time).to_contain_text(f"{began.astimezone(ZoneInfo('Asia/Tokyo')):%H:%M}")
    with opens(address, java_script_enabled=False) as watched:
        page = watched.open("/source/handbook")
        expect(page.locator("table.runs time").first).to_contain_text(f"{began:%H:%M} UTC")


def test_filters_are_in_the_address_and_back_takes_them_away(
    opens: Opens, address: str, pictures: Path
) -> None:
    with opens(address) as watched:
        page = watched.open("/?q=error+codes")
        everything = _titles(page)
        page.get_by_role("link", name=re.compile(r"^PDF, \d documents")).click()
        expect(page).to_have_url(re.compile("type=pdf"))
        expect(page.get_by_role("link", name="Remove Type: PDF")).to_be_visible()
        expect(page.locator(".result .meta").first).to_contain_text("PDF")
        formats = page.locator(".result .meta > span:first-child").all_inner_texts()
        assert set(formats) == {"PDF"}
        page.screenshot(path=pictures / "filtered.png")
        page.go_back()
        expect(page).to_have_url(f"{address}/?q=error+codes")
        expect(page.get_by_role("link", name="Remove Type: PDF")).to_be_hidden()
        assert _titles(page) == everything
        page.go_forward()
        expect(page.get_by_role("link", name="Remove Type: PDF")).to_be_visible()
        page.reload()
        expect(page.get_by_role("link", name="Remove Type: PDF")).to_be_visible()


def test_a_person_is_chosen_and_taken_back(opens: Opens, address: str, pictures: Path) -> None:
    query = "travel+expenses+diamond+wires+scanners+leave+and+contracts+parking"
    with opens(address) as watched:
        page = watched.open(f"/?q={query}")
        everything = _titles(page)
        page.get_by_role("link", name=re.compile(r"^Ines Almqvist, \d documents")).click()
        expect(page).to_have_url(re.compile(r"person=ines\+almqvist"))
        expect(page.get_by_role("link", name="Remove Person: Ines Almqvist")).to_be_visible()
        expect(page.locator("[data-result]", has_text="Travel expenses").first).to_be_visible()
        assert len(set(_titles(page))) <= 6
        # Others can be chosen beside her, those further down too; the list stays unfolded.
        page.get_by_role("region", name="Person").get_by_text("more").click()
        mail = page.get_by_role(
            "link", name="Kwabena Ansah (kwabena.ansah@karsthal.example), 1 document"
        )
        mail.click()
        expect(mail).to_have_attribute("aria-current", "true")
        expect(mail).to_be_focused()
        folded = page.get_by_role("region", name="Person").locator("details")
        expect(folded.get_by_role("link").last).to_be_visible()
        page.screenshot(path=pictures / "person.png")
        page.get_by_role("link", name="Remove Person: Ines Almqvist").click()
        expect(page.locator("[data-result]")).to_have_text(
            ["Recall of diamond wires, batch W-6117"]
        )
        page.go_back()
        page.go_back()
        page.go_back()
        expect(page).to_have_url(f"{address}/?q={query}")
        expect(page.locator("[data-result]")).to_have_text(everything)


def test_words_that_are_read_as_a_filter_are_a_chip_that_can_be_taken_away(
    opens: Opens, address: str, pictures: Path
) -> None:
    with opens(address) as watched:
        page = watched.open("/?q=travel+expenses+by+Ines+Almqvist+since+2025")
        chips = page.locator(".chip")
        expect(chips).to_have_count(2)
        expect(chips.nth(0)).to_contain_text("“by Ines Almqvist” first: Ines Almqvist")
        expect(chips.nth(1)).to_contain_text("updated 2025-01-01 or later")
        superseded = page.locator(".result", has_text="Superseded by Travel expenses")
        expect(superseded).to_have_count(1)
        expect(superseded.locator("[data-result]")).to_have_text("Travel expenses (2023)")
        page.screenshot(path=pictures / "inferred.png", full_page=True)
        chips.nth(1).click()
        expect(chips).to_have_count(1)
        assert "literal=date" in page.url
        chips.first.click()
        expect(chips).to_have_count(0)
        superseded.get_by_role("link", name="Travel expenses", exact=True).click()
        expect(page.locator("h1")).to_have_text("Travel expenses")


def test_further_passages_of_a_document_unfold_by_keyboard_without_scripts(
    opens: Opens, address: str, pictures: Path
) -> None:
    with opens(address, java_script_enabled=False) as watched:
        page = watched.open("/?q=error+codes+of+the+scanner")
        titles = _titles(page)
        assert len(titles) == len(set(titles))
        folded = page.locator(".further").first
        further = folded.get_by_role("link", name="Passage 2")
        expect(further).to_be_hidden()
        folded.locator("summary").press("Enter")
        expect(further).to_be_visible()
        page.screenshot(path=pictures / "grouped.png")
        further.press("Enter")
        expect(page.locator("#cited")).to_be_visible()


def test_filters_count_what_the_query_finds(opens: Opens, address: str) -> None:
    with opens(address) as watched:
        page = watched.open("/?q=QX-4031")
        found = page.locator("[data-result]").count()
        expect(page.get_by_role("link", name=f"handbook, {found} documents")).to_be_visible()
        page.locator("#q").fill("zzzqqq xyzzy")
        expect(page.get_by_role("heading", name="Nothing that you may read")).to_be_visible()
        expect(page.locator(".choice")).to_have_count(0)


def test_a_document_leads_to_what_else_is_by_its_author(opens: Opens, address: str) -> None:
    with opens(address) as watched:
        page = watched.open("/document/handbook:policies/travel-expenses-2025.md?q=allowance")
        page.get_by_role("link", name="Search documents by Ines Almqvist").click()
        expect(page).to_have_url(f"{address}/?person=ines+almqvist&q=allowance")
        expect(page.get_by_role("link", name="Remove Person: Ines Almqvist")).to_be_visible()
        page.locator("#q").fill("")
        expect(page.get_by_text("6 documents to search")).to_be_visible()
        page.get_by_role("link", name="Remove Person: Ines Almqvist").click()
        expect(page.get_by_text("43 documents to search")).to_be_visible()


def test_back_goes_over_searches_and_not_over_letters(opens: Opens, address: str) -> None:
    with opens(address) as watched:
        page = watched.open("/")
        page.locator("#q").press_sequentially("warranty", delay=150)
        expect(page).to_have_url(re.compile("q=warranty$"))
        page.keyboard.press("Enter")
        page.locator("#q").fill("parental leave")
        expect(page).to_have_url(re.compile(r"q=parental\+leave$"))
        page.go_back()
        expect(page.locator("#q")).to_have_value("warranty")
        page.go_back()
        expect(page.locator("#q")).to_have_value("")
        expect(page.get_by_text("43 documents to search")).to_be_visible()


def test_a_late_answer_never_overwrites_a_newer_one(opens: Opens, address: str) -> None:
    with opens(address) as watched:
        page = watched.open("/")
        held: list[Route] = []
        # The abort of the page is taken away, so that the order of answers alone decides.
        page.evaluate("AbortController.prototype.abort = () => {}")
        page.route("**/results?q=warranty", lambda route: held.append(route))  # noqa: PLW0108 (it is given attributes)
        page.locator("#q").fill("warranty")
        page.wait_for_timeout(300)
        page.locator("#q").fill("QX-4031")
        expect(page.locator("[data-result]").first).to_have_text(
            "Error codes of the Stonesight scanners"
        )
        (late,) = held
        late.continue_()
        page.wait_for_timeout(600)
        expect(page.locator("[data-result]").first).to_have_text(
            "Error codes of the Stonesight scanners"
        )
        expect(page).to_have_url(re.compile("q=QX-4031$"))


def test_why_a_result_is_there(opens: Opens, address: str) -> None:
    with opens(address) as watched:
        page = watched.open("/?q=QX-4031")
        page.get_by_text("Why this result").first.click()
        reasons = page.locator(".why ul").first
        expect(reasons).to_contain_text("1st by an exact match")
        expect(reasons).to_contain_text("cosine")


def test_words_of_the_query_are_marked(opens: Opens, address: str) -> None:
    with opens(address) as watched:
        page = watched.open("/?q=scanner+interlocks")
        marked = {text.lower() for text in page.locator(".result mark").all_inner_texts()}
        assert {"scanners", "interlock"} <= marked  # by their stems


def test_nothing_found_says_what_to_do(opens: Opens, address: str, pictures: Path) -> None:
    with opens(address) as watched:
        page = watched.open("/?q=warranty&since=1999-01-01&until=1999-12-31")
        expect(
            page.get_by_role("heading", name="Nothing that you may read was found")
        ).to_be_visible()
        page.screenshot(path=pictures / "nothing.png")
        page.get_by_role("link", name="Search everything").click()
        expect(page.locator("[data-result]").first).to_be_visible()


def test_a_server_that_is_gone_is_reported_and_asked_again(opens: Opens, address: str) -> None:
    with opens(address) as watched:
        page = watched.open("/")
        page.route("**/results?*", lambda route: route.abort())
        page.locator("#q").fill("warranty")
        expect(page.get_by_role("alert")).to_contain_text("Quarry does not answer")
        page.unroute("**/results?*")
        page.get_by_role("button", name="Try again").click()
        expect(page.locator("[data-result]").first).to_be_visible()
        assert all("ERR_FAILED" in line for line in watched.wrong)
        watched.wrong.clear()


def test_without_scripts_a_search_works(opens: Opens, address: str) -> None:
    with opens(address, java_script_enabled=False) as watched:
        page = watched.open("/?q=warranty&type=word")
        assert "Warranty" in _titles(page)[0]
        page.locator("#q").fill("laser")
        page.get_by_role("button", name="Search").click()
        expect(page).to_have_url(f"{address}/?q=laser&type=word")
        page.locator("[data-result]").first.click()
        expect(page.get_by_role("heading", level=1)).to_be_visible()


def test_a_table_is_shown_as_one_with_its_rows_marked(opens: Opens, address: str) -> None:
    with opens(address) as watched:
        page = watched.open("/?q=PN-88-1420-B")
        page.locator("[data-result]").first.click()
        expect(page.get_by_role("columnheader", name="Part number").first).to_be_visible()
        expect(page.locator("td mark", has_text="PN-88-1420-B")).to_be_visible()
        expect(page.get_by_text("Sheet Saws")).to_be_visible()
        original = page.get_by_role("link", name="Open the original").get_attribute("href") or ""
        answer = page.request.get(f"{address}{original}")
        assert answer.ok
        assert answer.headers["content-disposition"].startswith("attachment")


def test_an_image_of_each_pdf_page_is_beside_its_text(opens: Opens, address: str) -> None:
    with opens(address) as watched:
        page = watched.open("/document/handbook:finance/annual-report-2025.pdf")
        link = page.get_by_role("link", name="Page 1 as an image")
        text = page.get_by_text("The year in figures")
        image = link.locator("img")
        image.scroll_into_view_if_needed()
        page.wait_for_function(
            "image => image.naturalWidth === 1000", arg=image.element_handle(), timeout=60_000
        )
        beside, read = link.bounding_box(), text.bounding_box()
        assert beside
        assert read
        assert beside["x"] >= read["x"] + read["width"]
    with opens(address, viewport={"width": 390, "height": 844}) as watched:
        page = watched.open("/document/handbook:finance/annual-report-2025.pdf")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_what_one_may_not_read_looks_as_if_it_were_not_there(opens: Opens, address: str) -> None:
    with opens(address) as watched:
        paths = ("finance/salary-bands-2026.xlsx", "finance/no-such-thing.xlsx")
        pages = [watched.page.request.get(f"{address}/document/handbook:{path}") for path in paths]
        assert [answer.status for answer in pages] == [404, 404]
        # What was asked for is in the form by which administrators look.
        shown = [page.text().replace(path, "") for page, path in zip(pages, paths, strict=True)]
        assert shown[0] == shown[1]
