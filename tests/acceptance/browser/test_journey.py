"""From an empty database to a right that is withdrawn: an admin and two members, each in a browser of their own.

The server is the one that others reach, over TLS and by its name, which the browser leads to this machine.
"""

import re
import ssl
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlencode

import httpx
import pytest
import trustme
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.support.accounts import PASSWORD
from tests.support.browser import CHROMIUM, DESK, FLAGS, Watched, check_looks
from tests.support.home import Home
from tests.support.scripted_model import Call, Manner, Reply, Request, Say, ScriptedModel, ToolUse
from tests.support.services.slack import SlackService, build_export, person
from tests.support.serving import (
    PUBLIC_NAME,
    PUBLIC_URL,
    PublicServing,
    issue_certificate,
    serving_publicly,
)

ANN, BEN, CLEO = "ann@example.com", "ben@example.com", "cleo@example.com"
FORMER = "cleo@former.example"
"""To which Cleo is invited; the sources know her by the other one."""
RULES = """
rules:
  - match: "finance/**"
    readers: ["user:ben@example.com"]
  - match: "lab/**"
    readers: ["user:cleo@example.com"]
  - match: "**"
    readers: ["public"]
"""
FILES = {
    "access.yaml": RULES,
    "canteen.md": "# Canteen\n\nThe canteen serves lunch from eleven until two.\n",
    "finance/bands.md": "# Salary bands\n\nA senior engineer is in band five, code chrysoberyl.\n",
    "lab/centrifuge.md": "# Centrifuge\n\nThe centrifuge is calibrated in May, code tourmaline.\n",
}
SECRET = "Takeover of Larkspur\nThe takeover of Larkspur closes in March, code heliotrope."
QUESTION = "When does the takeover of Larkspur close?"


@dataclass
class Export:
    """The export of a Slack workspace: a channel for all, one of Ben's and one of Cleo's."""

    path: Path
    service: SlackService = field(default_factory=SlackService)

    def __post_init__(self) -> None:
        self.service.users = [
            person("U1", "Ann Lee", ANN),
            person("U2", "Ben Ode", BEN),
            person("U3", "Cleo Ray", CLEO),
            person("U4", "Ursula Vane", "ursula@example.com"),
        ]
        for own, name, members in (
            ("C1", "general", ["U1", "U2", "U3"]),
            ("G2", "deal-room", ["U2", "U4"]),
            ("G3", "hiring", ["U3"]),
        ):
            self.service.add_channel(own, name, members)
        self.service.post("C1", "Welcome\nThe office opens at eight, code jasper.", user="U1")
        self.service.post("G2", SECRET, user="U4")
        self.service.post("G3", "Candidates\nThe candidate starts in June.", user="U3")
        self.write()

    def remove_from_deal_room(self) -> None:
        self.service.conversations["G2"].members.remove("U2")
        self.write()

    def write(self) -> None:
        """Replace the file at once: a worker may read it at any time."""
        made = self.path.with_suffix(".new")
        with zipfile.ZipFile(made, "w") as archive:
            for name, content in build_export(self.service).items():
                archive.writestr(name, content)
        made.replace(self.path)


@dataclass(frozen=True)
class Place:
    server: PublicServing
    home: Home
    folder: Path
    export: Export
    browser: Browser
    authority: trustme.CA

    @contextmanager
    def person(self) -> Iterator[Watched]:
        """A browser of somebody, which no other one shares anything with."""
        context = self.browser.new_context(viewport=DESK, ignore_https_errors=True)
        watched = Watched(context.new_page(), PUBLIC_URL)
        yield watched
        context.close()

    def search(self, token: str) -> httpx.Response:
        """Search as a program of somebody does."""
        trusted = ssl.create_default_context()
        self.authority.configure_trust(trusted)
        headers = {"host": PUBLIC_NAME, "authorization": f"Bearer {token}"}
        url = f"https://127.0.0.1:{self.server.port}"
        with httpx.Client(base_url=url, verify=trusted, headers=headers, timeout=60) as client:
            return client.post("/api/search", json={"query": "calibrated centrifuge"})


def _answer(request: Request) -> Reply:
    """Search, cite what was found, and then go on writing for minutes."""
    if request.has_sources:
        number = next(one["number"] for one in request.sources if "Larkspur" in one["title"])
        said = [f"It closes in March [{number}]. ", *["And so on. "] * 3_000]
        return Say(said, manner=Manner(delay=0.05))
    if request.tool_names:
        return Call(ToolUse("internal_search", {"queries": ["takeover of Larkspur"]}))
    return Say("takeover of Larkspur")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    home, folder = Home(tmp_path_factory.mktemp("journey")), tmp_path_factory.mktemp("files")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    authority = trustme.CA()
    settings = {**issue_certificate(authority, home.path), "QUARRY_WORKERS": "true"}
    with ExitStack() as stack:
        model = stack.enter_context(ScriptedModel(_answer))
        settings |= {"QUARRY_LLM_URL": model.base_url, "QUARRY_LLM_MODEL": "scripted"}
        server = stack.enter_context(serving_publicly(home, **settings))
        led = f"--host-resolver-rules=MAP {PUBLIC_NAME}:443 127.0.0.1:{server.port}"
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, led])
        stack.callback(browser.close)
        export = Export(home.path / "export.zip")
        yield Place(server, home, folder, export, browser, authority)


def test_a_journey(place: Place, pictures: Path) -> None:
    with place.person() as ann, place.person() as ben, place.person() as cleo:
        _set_up(place, ann, pictures)
        _connect_folder(place, ann.page, pictures)
        _connect_slack(place, ann.page, pictures)
        _join(ben, _invite(ann.page, BEN, pictures), "Ben Ode", pictures)
        _join(cleo, _invite(ann.page, FORMER, pictures), "Cleo Ray", pictures)
        _correct_address(ann, pictures)
        secret = _find_what_is_bens(ben.page, pictures)
        _find_what_is_cleos(cleo.page, pictures)
        token = _create_token(cleo.page, pictures)
        assert "tourmaline" in place.search(token).text
        cleo.open("/")
        _ask(ben.page)
        other = ben.page.context.new_page()
        place.export.remove_from_deal_room()
        _sync_permissions(ann.page, "chat")
        _find_it_gone(other, secret)
        _see_answer_removed(ben.page, _read_end(place.home), pictures)
        (place.folder / "access.yaml").write_text(RULES.replace(BEN, ANN), encoding="utf-8")
        _sync_permissions(ann.page, "house")
        _find_bands_gone(other)
        check_looks(ann.page, pictures, "journey-source")
        _see_why(ann.page, pictures)
        _disable(ann.page)
        assert place.search(token).status_code == 401
        _be_shut_out(cleo.page, pictures)
        assert [_unexpected(watched) for watched in (ann, ben, cleo)] == [[], [], []]


def _set_up(place: Place, ann: Watched, pictures: Path) -> None:
    page = ann.page
    page.goto(place.server.set_up)
    check_looks(page, pictures, "journey-set-up")
    expect(page.get_by_label("E-mail address")).to_be_focused()
    page.keyboard.type(ANN)
    page.get_by_label("Your name").fill("Ann Lee")
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Add a folder")).to_be_visible()
    check_looks(page, pictures, "journey-empty")


def _connect_folder(place: Place, page: Page, pictures: Path) -> None:
    page.get_by_role("link", name="Add a folder").click()
    page.get_by_label("Folder on this machine").fill(str(place.folder))
    page.get_by_label("Name", exact=True).fill("house")
    check_looks(page, pictures, "journey-add-folder")
    page.get_by_role("button", name="Add and sync").click()
    _wait_until_synced(page, "house", "3 documents")


def _connect_slack(place: Place, page: Page, pictures: Path) -> None:
    page.get_by_role("link", name="Slack", exact=True).click()
    check_looks(page, pictures, "journey-add-slack")
    page.get_by_text("More settings").click()
    page.get_by_label("Read", exact=True).select_option("Export")
    page.get_by_label("Path").fill(str(place.export.path))
    page.get_by_label("Workspace URL").fill("https://acme.slack.com")
    page.get_by_label("Name", exact=True).fill("chat")
    check_looks(page, pictures, "journey-add-export")
    page.get_by_role("button", name="Add and sync").click()
    _wait_until_synced(page, "chat", "3 documents")
    expect(page.get_by_label("Path")).to_be_hidden()
    check_looks(page, pictures, "journey-sources")


def _wait_until_synced(page: Page, name: str, documents: str) -> None:
    source = page.locator(f'[data-source="{name}"]')
    expect(source.locator(".state")).to_have_text("up to date", timeout=90_000)
    expect(source).to_contain_text(documents)


def _invite(page: Page, email: str, pictures: Path) -> str:
    page.goto(f"{PUBLIC_URL}/people")
    page.get_by_label("E-mail address").fill(email)
    page.get_by_role("button", name="Make a link").click()
    link = page.get_by_role("status").locator("code").inner_text()
    check_looks(page, pictures, "journey-people")
    return link


def _join(member: Watched, link: str, name: str, pictures: Path) -> None:
    page = member.page
    page.goto(link)
    check_looks(page, pictures, "journey-invitation")
    page.get_by_label("Your name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()


def _correct_address(ann: Watched, pictures: Path) -> None:
    """The address counts once the admin says that it is hers."""
    page = ann.open("/people")
    page.get_by_role("link", name="Cleo Ray", exact=True).click()
    page.get_by_label("Another address").fill(CLEO)
    page.get_by_role("button", name="Change address").click()
    expect(page.get_by_role("main")).to_contain_text("is not verified, so they cannot read")
    check_looks(page, pictures, "journey-person")
    page.get_by_role("button", name="Mark as verified").click()
    expect(page.get_by_role("main")).to_contain_text("Address verified by an admin")


def _search(page: Page, query: str) -> None:
    page.goto(f"{PUBLIC_URL}/?{urlencode({'q': query})}")


def _found(page: Page) -> str:
    return page.locator(".found").inner_text()


def _facets(page: Page) -> str:
    """All filters of what the person may read."""
    page.goto(PUBLIC_URL)
    return page.locator(".facets").inner_text()


def _find_what_is_bens(page: Page, pictures: Path) -> str:
    """Return the address of the document of the private channel."""
    facets = _facets(page)
    check_looks(page, pictures, "journey-search")
    assert "Ursula Vane" in facets
    _search(page, "takeover of Larkspur")
    document = page.get_by_role("link", name="Takeover of Larkspur").first
    secret = document.get_attribute("href")
    assert secret
    check_looks(page, pictures, "journey-results")
    _search(page, "heliotrpoe")
    assert "Showing results for heliotrope" in _found(page)
    _search(page, "engineer chrysoberyl")
    assert "Salary bands" in _found(page)
    _search(page, "calibrated centrifuge tourmaline candidate")
    assert not [word for word in ("Centrifuge", "Candidates") if word in _found(page)]
    assert _status(page, "/document/house:lab/centrifuge.md") == 404
    assert _status(page, secret) == 200
    return secret


def _status(page: Page, path: str) -> int:
    answer = page.goto(f"{PUBLIC_URL}{path}")
    assert answer
    return answer.status


def _find_what_is_cleos(page: Page, pictures: Path) -> None:
    assert "Ursula Vane" not in _facets(page)
    _search(page, "calibrated centrifuge")
    assert "tourmaline" in _found(page)
    _search(page, "when does the candidate start")
    assert "Candidates" in _found(page)
    _search(page, "takeover of Larkspur heliotrope")
    assert "Larkspur closes" not in _found(page)
    _search(page, "heliotrpoe")
    assert "Showing results for" not in _found(page)
    page.goto(f"{PUBLIC_URL}/document/house:lab/centrifuge.md")
    expect(page.get_by_role("heading", level=1)).to_have_text("Centrifuge")
    check_looks(page, pictures, "journey-document")


def _create_token(page: Page, pictures: Path) -> str:
    page.get_by_role("link", name="Account", exact=True).click()
    page.get_by_label("Name of a new token").fill("reports")
    page.get_by_role("checkbox", name="search").check()
    page.get_by_role("button", name="Create token").click()
    token = page.get_by_role("status").locator("code").inner_text()
    check_looks(page, pictures, "journey-account")
    return token


def _ask(page: Page) -> None:
    """Leave an answer open that cites the document, and has no end."""
    page.goto(f"{PUBLIC_URL}/ask?{urlencode({'q': QUESTION})}")
    expect(page.locator("#answer .cite").first).to_be_visible(timeout=60_000)
    expect(page.locator("#answer")).to_contain_text("And so on.")
    page.evaluate(
        """() => {
          const trouble = document.getElementById("trouble");
          const note = () => trouble.hidden || (window.removedAt ??= Date.now());
          new MutationObserver(note).observe(trouble, { attributes: true });
        }"""
    )


def _sync_permissions(page: Page, source: str) -> None:
    """Return as soon as the page says that it has ended."""
    page.goto(f"{PUBLIC_URL}/source/{source}")
    runs = page.locator("table.runs tbody tr").filter(has_text="Permission sync")
    before = runs.count()
    page.get_by_role("button", name="Sync permissions").click()
    expect(runs).to_have_count(before + 1)
    expect(runs.first.locator(".state")).to_have_text("done")


def _read_end(home: Home) -> datetime:
    """When the permission sync of the workspace ended."""
    (run, *_) = home.quarry("sources", "runs", "chat", "--json").json
    assert (run["kind"], run["state"]) == ("permissions", "done")
    return datetime.fromisoformat(run["finished_at"])


def _find_it_gone(page: Page, secret: str) -> None:
    """At once: nothing is waited for."""
    _search(page, "takeover of Larkspur")
    assert "Larkspur closes" not in _found(page)
    assert _status(page, secret) == 404
    assert "Ursula Vane" not in _facets(page)
    _search(page, "heliotrpoe")
    assert "Showing results for" not in _found(page)
    _search(page, "when does the office open")
    assert "jasper" in _found(page), "the channel of all is still theirs"


def _find_bands_gone(page: Page) -> None:
    assert _status(page, "/document/house:finance/bands.md") == 404
    _search(page, "engineer chrysoberyl")
    assert "Salary bands" not in _found(page)
    _search(page, "when does the canteen serve lunch")
    assert "Canteen" in _found(page)


def _see_answer_removed(page: Page, ended: datetime, pictures: Path) -> None:
    """Of an answer that was open nothing stays, within seconds: it is checked once a second."""
    expect(page.locator("#trouble")).to_contain_text("This answer was removed")
    removed = datetime.fromtimestamp(page.evaluate("window.removedAt") / 1000, UTC)
    assert (removed - ended).total_seconds() < 10
    assert "Larkspur" not in page.locator("#turn").inner_text().replace(QUESTION, "")
    check_looks(page, pictures, "journey-answer-removed")


def _see_why(page: Page, pictures: Path) -> None:
    """The admin, who may not read it either, finds out why Ben does not find what he may read."""
    page.goto(f"{PUBLIC_URL}/people")
    page.get_by_role("link", name="Explain why Ben Ode does not find a document").click()
    expect(page.get_by_label("Who does not find it")).to_have_value(BEN)
    page.get_by_label("Document", exact=True).fill("when does the office open")
    page.get_by_role("button", name="Explain").click()
    check_looks(page, pictures, "journey-choose-document")
    page.get_by_role("link", name="Welcome").click()
    expect(page.get_by_role("main")).to_contain_text("They may read the document.")
    expect(page.get_by_role("main")).to_contain_text("since")
    check_looks(page, pictures, "journey-explain")


def _disable(page: Page) -> None:
    page.goto(f"{PUBLIC_URL}/people")
    page.get_by_role("link", name="Cleo Ray", exact=True).click()
    page.get_by_role("button", name="Disable").click()
    expect(page.get_by_role("main")).to_contain_text("Disabled since")


def _be_shut_out(page: Page, pictures: Path) -> None:
    """The page that was open is dead, and so is the password."""
    page.get_by_role("searchbox").fill("calibrated centrifuge")
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    page.get_by_label("E-mail address").fill(CLEO)
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_have_text("The address or the password is not right.")
    check_looks(page, pictures, "journey-shut-out")


def _unexpected(watched: Watched) -> list[str]:
    """What a page did wrong, but for the answers that are part of the story."""
    return [line for line in watched.wrong if not re.search(r"status of 40[149]", line)]
