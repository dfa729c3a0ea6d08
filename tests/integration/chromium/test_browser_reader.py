"""Pages in a real Chromium: what must come out of each, and that a server inside the network sees nothing of it."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import pytest
from bs4 import BeautifulSoup

from backend.web_search.browser.browser_process import PageNotRenderedError
from backend.web_search.browser.browser_reader import BrowserLimits, BrowserReader, RenderedPage
from backend.web_search.browser.chromium import USER_ID, runs_as_root
from backend.web_search.browser.page_traffic import TrafficLimits
from backend.web_search.browser.process_tree import Process, describe_processes, list_descendants
from backend.web_search.domains import ANY_DOMAIN
from connectors.errors import NotConfiguredError
from connectors.http_client.address_guard import AddressNotAllowedError
from indexing.runtime.deadline import CancelToken, Deadline, DeadlineExceededError
from tests.support.browser import CHROMIUM
from tests.support.fake_internet import (
    PUBLIC,
    Answer,
    FakeInternet,
    InternalServer,
    fake_internet,
    internal_server,
)

Render: TypeAlias = Callable[[str], RenderedPage]
SECRET = "only-quarry-may-know-this"
SECONDS = 60.0

DONE = "<script>const say = text => document.body.append(' ' + text);</script>"

SCRIPTED = """<title>Shell</title><body><div id=app></div><script>
  setTimeout(() => fetch('/text').then(r => r.text()).then(text => { app.textContent = text; }), 300);
</script>"""

REACHES_INSIDE = """
  const targets = ['127.0.0.1:PORT', 'localhost:PORT', '[::1]:PORT', '0.0.0.0:PORT', '2130706433:PORT',
    'loop.test:PORT', '127.0.0.1', 'localhost', 'loop.test', 'intranet.test', '169.254.169.254', 'metadata.test'];
  const tries = targets.map(each => fetch('http://' + each + '/secret', {mode: 'no-cors'}));
  Promise.allSettled(tries).then(all =>
    say('reached ' + all.filter(each => each.status === 'fulfilled' && each.value.type !== 'opaque').length));
"""
REBINDS = """
  const ask = () => fetch('http://rebind.test/text', {mode: 'no-cors', cache: 'no-store'}).catch(() => undefined);
  ask().then(ask).then(ask).then(() => say('asked'));
"""
WEBSOCKET = """
  for (const each of ['ws://127.0.0.1:PORT/', 'ws://localhost:PORT/', 'wss://127.0.0.1:PORT/', 'ws://loop.test/']) {
    const socket = new WebSocket(each);
    socket.onopen = () => say('opened');
    socket.onerror = () => say('closed');
  }
"""
WEBRTC = """
  const peer = new RTCPeerConnection({iceServers: [
    {urls: 'stun:127.0.0.1:PORT'}, {urls: 'stun:localhost:PORT'},
    {urls: ['turn:127.0.0.1:PORT?transport=udp', 'turn:127.0.0.1:PORT?transport=tcp'], username: 'a', credential: 'b'}]});
  peer.onicecandidate = event => event.candidate && say('candidate ' + event.candidate.candidate);
  peer.createDataChannel('a');
  peer.createOffer().then(offer => peer.setLocalDescription(offer)).then(() => say('offered'));
"""
WEBTRANSPORT = """
  const transport = new WebTransport('https://127.0.0.1:PORT/');
  transport.ready.then(() => say('opened'), () => say('closed'));
"""
ELEMENTS = """
  const tags = {link: ['href', 'stylesheet'], img: ['src'], script: ['src'], iframe: ['src'], embed: ['src'],
    object: ['data'], video: ['src'], audio: ['src']};
  for (const [tag, [attribute]] of Object.entries(tags)) {
    const element = document.createElement(tag);
    if (tag === 'link') element.rel = 'stylesheet';
    element[attribute] = 'http://127.0.0.1:PORT/' + tag;
    document.body.append(element);
  }
  for (const rel of ['preconnect', 'dns-prefetch', 'prefetch', 'preload', 'prerender', 'modulepreload', 'icon', 'manifest']) {
    const link = document.createElement('link');
    link.rel = rel; link.as = 'script'; link.href = 'http://localhost:PORT/' + rel;
    document.head.append(link);
  }
  navigator.sendBeacon('http://127.0.0.1:PORT/beacon', 'data');
  new EventSource('http://127.0.0.1:PORT/events');
  new Worker(URL.createObjectURL(new Blob(["fetch('http://127.0.0.1:PORT/worker')"])));
  const rules = document.createElement('script');
  rules.type = 'speculationrules';
  rules.textContent = JSON.stringify({prefetch: [{source: 'list', urls: ['http://127.0.0.1:PORT/rules']}]});
  document.head.append(rules);
  say('asked');
"""
SCHEMES = """
  const addresses = ['file:///etc/passwd', 'view-source:http://127.0.0.1:PORT/', 'chrome://version', 'ftp://127.0.0.1:PORT/',
    "data:text/html,<script>fetch('http://127.0.0.1:PORT/data')</scr" + "ipt>", 'about:blank', 'mailto:a@example.com'];
  for (const each of addresses) {
    const frame = document.createElement('iframe');
    frame.src = each;
    document.body.append(frame);
    try { open(each); } catch { /* not allowed */ }
  }
  setTimeout(() => {
    const seen = [...document.querySelectorAll('iframe')].map(frame => {
      try { return frame.contentDocument ? frame.contentDocument.body.textContent : ''; } catch { return ''; }
    });
    say('frames say: ' + seen.join('').trim());
  }, 500);
"""
INTRUSIVE = """
  alert('a'); confirm('b'); prompt('c');
  addEventListener('beforeunload', event => { event.preventDefault(); event.returnValue = 'stay'; });
  for (let i = 0; i < 5; i++) open('http://news.test/popup' + i, '_blank', 'popup');
  say('secure ' + isSecureContext);
  navigator.geolocation.getCurrentPosition(() => say('located'), () => say('no place'));
  navigator.serviceWorker.register('/worker.js').then(() => say('registered'), () => say('not registered'));
  Notification.requestPermission().then(answer => say('notifications ' + answer));
  navigator.clipboard.readText().then(() => say('clipboard'));
"""
MOVES = """<body>moving<script>setTimeout(() => location.href = 'http://news.test/text', 200)</script>"""
ENDLESS_SCRIPT = "<body>begun<script>setTimeout(() => { for (;;); }, 1)</script>"
MEMORY_HOG = """<body>begun<script>
  const kept = [];
  setInterval(() => { for (let i = 0; i < 8; i++) kept.push(new Uint8Array(16 << 20).fill(i + 1)); }, 1);
</script>"""
GROWS_FOREVER = "<body>begun<script>setInterval(() => document.body.append(' more'), 20)</script>"

_PAGES = {
    "/scripted": SCRIPTED,
    "/moves": MOVES,
    "/endless-script": ENDLESS_SCRIPT,
    "/memory": MEMORY_HOG,
    "/grows": GROWS_FOREVER,
    "/waits": "<body>begun<script src=/hangs.js></script><p>never reached",
    "/cookie": "<body><script>document.body.append('cookies: ' + document.cookie + localStorage.a);"
    "document.cookie = 'a=1'; localStorage.a = 'kept'</script>",
    "/refresh": '<meta http-equiv=refresh content="0; url=http://127.0.0.1:PORT/refresh"><body>waits',
    "/location": "<body>waits<script>location.href = 'http://loop.test/'</script>",
    "/to-file": "<body>stays<script>location.href = 'file:///etc/passwd'</script>",
    "/form": "<body><form method=post action='http://127.0.0.1:PORT/form'><input name=a></form>"
    "<script>document.forms[0].submit()</script>",
}
_TRICKS = {
    "/fetch": REACHES_INSIDE,
    "/rebinds": REBINDS,
    "/websocket": WEBSOCKET,
    "/webrtc": WEBRTC,
    "/webtransport": WEBTRANSPORT,
    "/elements": ELEMENTS,
    "/schemes": SCHEMES,
    "/intrusive": INTRUSIVE,
}


@pytest.fixture(scope="module")
def inside() -> Iterator[InternalServer]:
    with internal_server() as server:
        yield server


@pytest.fixture(scope="module")
def internet(inside: InternalServer) -> Iterator[FakeInternet]:
    def site(path: str) -> Answer | None:
        match path:
            case "/text":
                return Answer(b"The harbour opens at six.", "text/plain")
            case "/file":
                disposition = {"Content-Disposition": "attachment; filename=a.zip"}
                return Answer(b"PK", "application/zip", headers=disposition)
            case "/redirect":
                return Answer(
                    b"", status=302, headers={"Location": f"http://127.0.0.1:{inside.port}/"}
                )
            case "/gone":
                return Answer(b"<body>It is gone.", status=410)
            case "/drips":
                return Answer(b"<body>begun", more=lambda: _repeat(b" and on", 0.05))
            case "/floods":
                return Answer(b"<body>begun", more=lambda: _repeat(b" and on" * 10_000, 0.0))
            case "/hangs.js":
                return Answer(b"", "text/javascript", more=lambda: _repeat(b"", 0.1))
            case "/worker.js":
                return Answer(b"", "text/javascript")
            case _:
                page = (_PAGES.get(path) or _trick(path)).replace("PORT", str(inside.port))
                return Answer(page.encode()) if page else None

    with fake_internet(site) as internet:
        yield internet


def _write_program(path: Path, line: str) -> Path:
    path.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def _trick(path: str) -> str:
    script = _TRICKS.get(path)
    return f"<!doctype html><body>The page.{DONE}<script>{script}</script>" if script else ""


@pytest.fixture(scope="module")
def program_folder() -> Iterator[Path]:
    """A folder whose programs the user of the browser may run."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.fixture(scope="module")
def reader(internet: FakeInternet, program_folder: Path) -> Iterator[BrowserReader]:
    """A reader to which pages of news.test are like those with a certificate: they may do more."""
    secure = "--unsafely-treat-insecure-origin-as-secure=http://news.test"
    path = _write_program(program_folder / "secure", f'exec {CHROMIUM} "$@" {secure}')
    os.environ["QUARRY_LLM_KEY"] = SECRET
    try:
        with BrowserReader(path, BrowserLimits(), internet.resolve, internet.dial) as reader:
            yield reader
    finally:
        del os.environ["QUARRY_LLM_KEY"]


def _repeat(piece: bytes, seconds: float) -> Iterator[bytes]:
    """Go on for longer than a page may take."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        yield piece
        time.sleep(seconds)


@pytest.fixture
def nothing_inside(inside: InternalServer, internet: FakeInternet) -> Iterator[FakeInternet]:
    """The internet, if nothing but it is reached by the end of the test."""
    inside.log.clear()
    internet.dialled.clear()
    yield internet
    assert inside.log == []
    assert {address for address, _ in internet.dialled} <= {PUBLIC}


@pytest.fixture
def render(reader: BrowserReader, nothing_inside: FakeInternet) -> Render:
    assert nothing_inside.dialled == []
    return lambda path: reader.render(
        f"http://news.test{path}", Deadline.after(SECONDS), ANY_DOMAIN
    )


def test_what_scripts_write_is_read(render: Render) -> None:
    page = render("/scripted")
    assert "The harbour opens at six." in page.html
    assert (page.url, page.status) == ("http://news.test/scripted", 200)


def test_a_page_that_leads_elsewhere_is_read_there(render: Render) -> None:
    page = render("/moves")
    assert (page.url, page.status) == ("http://news.test/text", 200)
    assert "The harbour opens at six." in page.html


def test_the_status_is_the_one_of_the_page(render: Render) -> None:
    page = render("/gone")
    assert (page.status, "It is gone." in page.html) == (410, True)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/fetch", "The page. reached 0"),
        ("/rebinds", "The page. asked"),
        ("/websocket", "The page. closed closed closed closed"),
        ("/webrtc", "The page. offered"),
        ("/webtransport", "The page. closed"),
        ("/elements", "The page. asked"),
        ("/schemes", "The page."),
    ],
)
def test_no_trick_of_a_page_reaches_inside(render: Render, path: str, says: str) -> None:
    text = _visible(render(path).html)
    assert says in text
    assert "root:" not in text
    assert "opened" not in text
    assert "candidate" not in text


def _visible(html: str) -> str:
    """The text of a page, without its scripts."""
    soup = BeautifulSoup(html, "lxml")
    for script in soup("script"):
        script.decompose()
    return " ".join(soup.get_text(" ").split())


@pytest.mark.parametrize("path", ["/redirect", "/refresh", "/location", "/form"])
def test_a_page_that_leads_inside_is_not_read(render: Render, path: str) -> None:
    with pytest.raises(PageNotRenderedError, match=r"which is not opened: "):
        render(path)


def test_a_page_cannot_lead_to_a_file(render: Render) -> None:
    page = render("/to-file")
    assert page.url == "http://news.test/to-file"
    assert "root:" not in page.html


def test_a_download_is_no_page(render: Render) -> None:
    with pytest.raises(PageNotRenderedError, match="is a file to download, not a page"):
        render("/file")


def test_dialogs_pop_ups_service_workers_and_permissions_come_to_nothing(
    render: Render, internet: FakeInternet
) -> None:
    internet.requests.clear()
    text = _visible(render("/intrusive").html)
    assert "secure true" in text
    assert "no place" in text
    for says in ("located", "granted", "clipboard"):
        assert says not in text
    # Registering the service worker seems to succeed, and asks for nothing.
    assert internet.requests == ["news.test/intrusive"]


def test_each_page_has_a_fresh_context(render: Render) -> None:
    for _ in range(2):
        assert "cookies: undefined" in render("/cookie").html


def test_a_page_whose_text_never_stops_growing_is_read_as_it_is(render: Render) -> None:
    assert "begun more more" in _visible(render("/grows").html)


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "view-source:http://news.test/", "data:text/html,a", "chrome://version"],
)
def test_other_schemes_are_not_opened(reader: BrowserReader, url: str) -> None:
    with pytest.raises(AddressNotAllowedError):
        reader.render(url, Deadline.after(SECONDS), ANY_DOMAIN)


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1/", "http://loop.test/", "https://intranet.test/", "http://news.test:22222/"],
)
@pytest.mark.usefixtures("nothing_inside")
def test_addresses_inside_are_not_opened(reader: BrowserReader, url: str) -> None:
    with pytest.raises(PageNotRenderedError, match="which is not opened: "):
        reader.render(url, Deadline.after(SECONDS), ANY_DOMAIN)


@pytest.mark.usefixtures("nothing_inside")
def test_a_site_without_a_valid_certificate_is_not_opened(
    reader: BrowserReader, internet: FakeInternet
) -> None:
    with pytest.raises(PageNotRenderedError, match="cannot be opened in the browser"):
        reader.render("https://news.test/", Deadline.after(SECONDS), ANY_DOMAIN)
    assert (PUBLIC, 443) in internet.dialled


def _number_of_browser(reader: BrowserReader) -> int:
    return reader._free[0].number


def test_the_browser_knows_no_secret_and_has_few_rights(
    reader: BrowserReader, render: Render
) -> None:
    render("/scripted")
    numbers = list_descendants(_number_of_browser(reader))
    environments = [_read_environment(number) for number in [*numbers, _number_of_browser(reader)]]
    assert any(environments)
    assert [text for text in environments if SECRET in text or "QUARRY" in text] == []
    processes = [each for each in describe_processes(numbers) if "chromium" in each.status["Name:"]]
    assert {each.status["Uid:"].split()[1] for each in processes} == {
        str(USER_ID if runs_as_root() else os.geteuid())
    }
    renderers = [each for each in processes if "--type=renderer" in each.arguments]
    assert {each.status["Seccomp:"] for each in renderers} == {"2"}


def _read_environment(number: int) -> str:
    try:
        return Path(f"/proc/{number}/environ").read_text(encoding="utf-8", errors="replace")
    except OSError:
        # Only root may look at those in the sandbox.
        return ""


@pytest.fixture
def folder_of_browsers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where browsers have their profiles from now on."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        monkeypatch.setattr(tempfile, "tempdir", name)
        yield Path(name)


def _list_processes_of(folder: Path) -> list[Process]:
    everything = describe_processes(list_descendants(1))
    return [each for each in everything if str(folder) in " ".join(each.arguments)]


@pytest.fixture
def strict(nothing_inside: FakeInternet, folder_of_browsers: Path) -> Iterator[BrowserReader]:
    """A reader that gives pages little."""
    assert list(folder_of_browsers.iterdir()) == []
    limits = BrowserLimits(
        memory_bytes=700 << 20,
        page_seconds=12.0,
        pages_each=1,
        traffic=TrafficLimits(bytes=500_000),
    )
    with BrowserReader(CHROMIUM, limits, nothing_inside.resolve, nothing_inside.dial) as reader:
        yield reader


@pytest.mark.parametrize(
    ("path", "says"),
    [("/endless-script", "takes too long in the browser"), ("/memory", "memory|crash")],
)
def test_a_page_that_takes_too_much_is_killed_and_the_next_one_read(
    strict: BrowserReader, folder_of_browsers: Path, path: str, says: str
) -> None:
    with pytest.raises(PageNotRenderedError, match=says):
        strict.render(f"http://news.test{path}", Deadline.after(SECONDS), ANY_DOMAIN)
    assert _list_processes_of(folder_of_browsers) == []
    assert list(folder_of_browsers.iterdir()) == []
    assert (
        "harbour"
        in strict.render("http://news.test/text", Deadline.after(SECONDS), ANY_DOMAIN).html
    )
    assert _list_processes_of(folder_of_browsers) == []


@pytest.mark.parametrize(
    ("path", "says"), [("/drips", "begun and on and on"), ("/waits", "begun"), ("/floods", "begun")]
)
def test_a_page_that_is_loaded_for_ever_is_read_as_far_as_it_came(
    strict: BrowserReader, path: str, says: str
) -> None:
    page = strict.render(f"http://news.test{path}", Deadline.after(SECONDS), ANY_DOMAIN)
    assert _visible(page.html).startswith(says)


def test_a_page_ends_with_its_deadline_and_when_it_is_cancelled(strict: BrowserReader) -> None:
    with pytest.raises(DeadlineExceededError):
        strict.render("http://news.test/endless-script", Deadline.after(2.0), ANY_DOMAIN)
    token = CancelToken()
    token.cancel()
    with pytest.raises(DeadlineExceededError):
        strict.render("http://news.test/text", Deadline.after(SECONDS, token), ANY_DOMAIN)


@pytest.mark.parametrize(
    ("program", "says"),
    [
        (f'exec {CHROMIUM} "$@" --no-sandbox', "sandbox does not work"),
        ('echo "FATAL: No usable sandbox!" >&2; exit 1', "sandbox does not work"),
        ('echo "it is broken" >&2; exit 1', "does not start"),
    ],
)
def test_a_browser_that_does_not_start_with_its_sandbox_is_not_used(
    internet: FakeInternet,
    program_folder: Path,
    folder_of_browsers: Path,
    program: str,
    says: str,
) -> None:
    path = _write_program(program_folder / "chromium", program)
    with (
        BrowserReader(path, BrowserLimits(), internet.resolve, internet.dial) as reader,
        pytest.raises(NotConfiguredError, match=says),
    ):
        reader.render("http://news.test/text", Deadline.after(SECONDS), ANY_DOMAIN)
    assert _list_processes_of(folder_of_browsers) == []
    assert list(folder_of_browsers.iterdir()) == []


def test_nothing_is_left_of_a_reader_that_was_closed(
    internet: FakeInternet, folder_of_browsers: Path
) -> None:
    with BrowserReader(CHROMIUM, BrowserLimits(), internet.resolve, internet.dial) as reader:
        reader.render("http://news.test/text", Deadline.after(SECONDS), ANY_DOMAIN)
        assert _list_processes_of(folder_of_browsers) != []
    assert _list_processes_of(folder_of_browsers) == []
    assert list(folder_of_browsers.iterdir()) == []


def test_nothing_is_left_of_a_browser_whose_quarry_was_killed(internet: FakeInternet) -> None:
    program = (
        "import time, sys; from pathlib import Path\n"
        "from backend.web_search.browser.browser_process import BrowserProcess\n"
        "from indexing.runtime.deadline import Deadline\n"
        "from backend.web_search.browser.process_tree import list_descendants\n"
        f"browser = BrowserProcess(Path({str(CHROMIUM)!r}), {internet.port}, 1 << 30, Deadline.after(30))\n"
        "print(browser._folder, browser.number, *list_descendants(browser.number), flush=True)\n"
        "time.sleep(60)"
    )
    started = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert started.stdout is not None
    with started:
        folder, *words = started.stdout.readline().decode().split()
        numbers = [int(word) for word in words]
        assert len(numbers) > 3
        started.kill()
    _wait_until_ended(numbers)
    assert not Path(folder).exists()


def _wait_until_ended(numbers: list[int]) -> None:
    until = time.monotonic() + 20
    while left := [
        each for each in describe_processes(numbers) if "Z" not in each.status["State:"]
    ]:
        assert time.monotonic() < until, left
        time.sleep(0.05)


def test_a_browser_that_ended_meanwhile_is_replaced(strict: BrowserReader) -> None:
    limits = replace(strict._limits, pages_each=50)
    with BrowserReader(CHROMIUM, limits, strict._resolver, strict._dial) as reader:
        reader.render("http://news.test/text", Deadline.after(SECONDS), ANY_DOMAIN)
        first = _number_of_browser(reader)
        numbers = list_descendants(first)
        os.kill(first, signal.SIGKILL)
        _wait_until_ended(numbers)
        assert (
            "harbour"
            in reader.render("http://news.test/text", Deadline.after(SECONDS), ANY_DOMAIN).html
        )
        assert _number_of_browser(reader) != first


def test_two_pages_are_read_at_the_same_time_and_a_third_waits(reader: BrowserReader) -> None:
    def read(path: str) -> RenderedPage:
        return reader.render(f"http://news.test{path}", Deadline.after(SECONDS), ANY_DOMAIN)

    with ThreadPoolExecutor(3) as threads:
        pages = list(threads.map(read, ["/text", "/scripted", "/moves"]))
    assert [page.html.count("harbour") for page in pages] == [1, 1, 1]
    assert len(reader._free) <= 2


# In a user namespace of its own, whose users are mapped meanwhile, it forbids further ones, as kernels and containers do
# on which the sandbox cannot work.
CONFINED = """
import ctypes, os, sys
from pathlib import Path
from backend.web_search.browser.browser_reader import BrowserLimits, BrowserReader
from backend.web_search.domains import ANY_DOMAIN
from connectors.errors import NotConfiguredError
from indexing.runtime.deadline import Deadline
assert ctypes.CDLL(None).unshare(0x10000000) == 0
print('unshared', flush=True)
sys.stdin.readline()
Path('/proc/sys/user/max_user_namespaces').write_text('0')
try:
    BrowserReader(Path(sys.argv[1]), BrowserLimits()).render('http://news.test/', Deadline.after(60), ANY_DOMAIN)
except NotConfiguredError as error:
    print(error)
"""


def _render_confined(users: str, groups: str) -> str:
    """Return how Quarry says that it does not read a page where only these users and groups exist."""
    with subprocess.Popen(
        [sys.executable, "-c", CONFINED, str(CHROMIUM)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "unshared\n"
        folder = Path("/proc") / str(process.pid)
        # Without it, only root may map groups.
        (folder / "setgroups").write_text("allow" if runs_as_root() else "deny")
        (folder / "uid_map").write_text(users)
        (folder / "gid_map").write_text(groups)
        answer, _ = process.communicate("go on\n", timeout=90)
    return answer


def test_where_the_kernel_allows_no_sandbox_no_page_is_read() -> None:
    user, group = os.geteuid(), os.getegid()
    everybody = "0 0 65536"
    answer = (
        _render_confined(everybody, everybody)
        if runs_as_root()
        else _render_confined(f"{user} {user} 1", f"{group} {group} 1")
    )
    assert answer.startswith("Chromium's sandbox does not work on this machine")


def test_root_that_cannot_become_anybody_else_reads_no_page() -> None:
    answer = _render_confined(f"0 {os.geteuid()} 1", f"0 {os.getegid()} 1")
    assert answer.startswith("Quarry runs as root, and the browser must not")
