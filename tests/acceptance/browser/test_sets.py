"""Document sets in a browser: made by the form, told by the workers, searched in, asked in, changed and removed."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Page, ViewportSize, expect

from tests.support.browser import Opens
from tests.support.home import Home
from tests.support.serving import serving

PHONE: dict[str, ViewportSize] = {"viewport": {"width": 390, "height": 844}}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = Home(tmp_path_factory.mktemp("desk"))
    for name, places in {"handbook": ("people", "travel"), "manuals": ("people",)}.items():
        for place in places:
            folder = home.path / name / place
            folder.mkdir(parents=True)
            for number in range(6):
                text = f"# Rule {number} of {place}\n\nHolidays of {name} in {place}: {number}.\n"
                (folder / f"rule-{number}.md").write_text(text, encoding="utf-8")
        assert home.quarry("add", "folder", str(home.path / name)).code == 0
    assert home.quarry("sync").code == 0
    return home


@pytest.fixture(scope="module")
def address(desk: Home) -> Iterator[str]:
    with serving(desk, QUARRY_WORKERS="true") as server:
        yield server.url


def _faults(page: Page) -> list[str]:
    found: list[dict[str, Any]] = Axe().run(page).response["violations"]
    return [f"{each['id']}: {node['html']}" for each in found for node in each["nodes"]]


def _fits(page: Page) -> bool:
    width, inner = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    return bool(width <= inner)


def test_a_set_is_made_searched_in_changed_and_removed(
    opens: Opens, address: str, pictures: Path
) -> None:
    with opens(address) as watched:
        page = watched.open("/sources")
        page.get_by_role("link", name="Document sets").press("Enter")
        expect(page.get_by_text("There are none yet")).to_be_visible()
        page.get_by_label("Name").focus()
        page.keyboard.type("Holidays & travel")
        page.keyboard.press("Tab")
        page.keyboard.type("What one may do")
        page.get_by_label("Folders").fill("handbook:travel/")
        page.get_by_label("Single documents").fill("manuals:people/rule-1.md")
        page.get_by_role("button", name="Count documents").press("Enter")
        expect(page.get_by_text("These rules select 7 documents.")).to_be_visible()
        expect(page.get_by_label("Folders")).to_have_value("handbook:travel/")
        page.screenshot(path=pictures / "sets-form.png", full_page=True)
        assert _faults(page) == []
        page.get_by_role("button", name="Add set").press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("Holidays & travel")
        expect(page.get_by_text("7 documents in this set.")).to_be_visible(timeout=60_000)
        page.screenshot(path=pictures / "set.png", full_page=True)
        assert _faults(page) == []

        page.get_by_role("link", name="Search in this set").click()
        expect(page.get_by_role("link", name="Remove Set: Holidays & travel")).to_be_visible()
        page.get_by_role("searchbox").fill("holidays rule")
        page.get_by_role("searchbox").press("Enter")
        expect(page).to_have_url(re.compile(r"set=Holidays\+%26\+travel"))
        expect(page.get_by_role("link", name="Rule 3 of travel")).to_be_visible()
        expect(page.get_by_role("link", name="Rule 3 of people")).to_have_count(0)
        page.screenshot(path=pictures / "search-in-set.png")
        page.get_by_role("link", name="Remove Set: Holidays & travel").click()
        expect(page.get_by_role("link", name="Rule 3 of people").first).to_be_visible()
        page.get_by_role("link", name="Holidays & travel, 7 documents").click()
        expect(page.get_by_role("link", name="Rule 3 of people")).to_have_count(0)

        page.goto(f"{address}/sets")
        page.get_by_role("link", name="Holidays & travel").press("Enter")
        page.get_by_label("Folders").fill("")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text("1 document in this set.")).to_be_visible(timeout=60_000)
        page.get_by_role("button", name="Remove set").click()
        dialog = page.get_by_role("dialog", name="Remove this set?")
        expect(dialog).to_contain_text("Holidays & travel")
        page.screenshot(path=pictures / "set-removing.png")
        dialog.get_by_role("button", name="Keep it").click()
        expect(page.get_by_text("1 document in this set.")).to_be_visible()
        page.get_by_role("button", name="Remove set").click()
        dialog.get_by_role("button", name="Remove", exact=True).click()
        expect(page.get_by_text("There are none yet")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_in_light_and_dark(
    opens: Opens, address: str, desk: Home, pictures: Path, scheme: str
) -> None:
    name = f"A name of a set that is rather long for a phone in {scheme}"
    given = ("--source", "manuals", "--folder", "handbook:people/", "--reader", "group:hr")
    rules = (*given, "--tag", "no=such")
    assert desk.quarry("sets", "add", name, *rules, "--description", "x " * 40).code == 0
    with opens(address, color_scheme=scheme, **PHONE) as watched:
        for path, picture in (("/sets", "sets"), (f"/set/{name.replace(' ', '%20')}", "set")):
            page = watched.open(path)
            expect(page.get_by_text("12 documents").first).to_be_visible()
            unmatched = page.get_by_text("No document matches these rules now:")
            expect(unmatched).to_have_count(1 if picture == "set" else 0)
            page.screenshot(path=pictures / f"{picture}-phone-{scheme}.png", full_page=True)
            assert (path, _faults(page)) == (path, [])
            assert _fits(page)
    assert desk.quarry("sets", "remove", name).code == 0


def test_what_is_wrong_is_said_beside_what_was_written(opens: Opens, address: str) -> None:
    with opens(address) as watched:
        page = watched.open("/sets")
        page.get_by_label("Name").fill("Nothing")
        page.get_by_label("Tags").fill("team")
        page.get_by_role("button", name="Add set").click()
        expect(page.get_by_role("alert")).to_contain_text("A tag is written as team=people")
        expect(page.get_by_label("Tags")).to_have_value("team")
        watched.wrong[:] = [each for each in watched.wrong if "of 422" not in each]


def test_the_terminal_shows_sets(desk: Home) -> None:
    assert desk.quarry("sets", "add", "Ours", "--source", "manuals", "--json").json["count"] == 6
    shown = desk.quarry("sets", "show", "Ours")
    assert "6 documents" in shown.out
    edited = desk.quarry("sets", "edit", "Ours", "--source", "handbook", "--tag", "a=b", "--json")
    assert (edited.json["sources"], edited.json["count"]) == (["handbook"], 12)
    listed = {one["name"]: one for one in desk.quarry("sets", "list", "--json").json}
    assert listed["Ours"]["tags"] == ["a=b"]
    found = desk.quarry("search", "holidays", "--set", "Ours", "--limit", "50", "--json").json
    assert {one["source"] for one in found["results"]} == {"handbook"}
    none = desk.quarry("search", "holidays set:Theirs")
    assert none.code == 1
    refused = desk.quarry("sets", "add", "Ours", "--source", "nothing")
    assert refused.code == 1
    assert "There is no source named 'nothing'" in refused.err
    assert desk.quarry("sets", "remove", "Ours").code == 0
    assert "Ours" not in desk.quarry("sets", "list").out
