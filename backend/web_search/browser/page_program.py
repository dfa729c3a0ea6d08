"""The process that drives Chromium: it reads orders, one a line, and answers each with a line.

It is a process of its own because Playwright belongs to one thread, and so that it can be killed with all that it started.
"""

import ctypes
import json
import os
import queue
import shutil
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NoReturn, TypeAlias
from urllib.parse import urlsplit

from playwright.sync_api import (
    Browser,
    BrowserContext,
    Error,
    Page,
    Request,
    Response,
    Route,
    sync_playwright,
)
from playwright.sync_api import (
    TimeoutError as PageTimeoutError,
)

from backend.web_search.browser.chromium import UNWANTED_DEFAULTS
from backend.web_search.browser.process_tree import kill_descendants

IDLE_SECONDS = 120.0
"""Without an order, after which it ends."""
MAX_HTML = 5_000_000
"""Characters of a page."""

_LOADING_SHARE = 0.6
"""Of the time of a page, until which it is loaded."""
_NETWORK_IDLE_MS = 2_000
_SETTLE_SECONDS = 6.0
_STILL_SAMPLES = 3
_SAMPLE_MS = 200
_LEFT_OUT = frozenset({"image", "media", "font", "texttrack"})
_PR_SET_CHILD_SUBREAPER = 36
Answer: TypeAlias = dict[str, Any]
_TEXT_LENGTH = "document.body ? document.body.innerText.length : 0"


def serve_orders(launcher: str, flags: str) -> None:
    """Open Chromium, and pages in it, until no more orders come.

    Args:
        launcher: path of the program that becomes Chromium.
        flags: options of Chromium, as a JSON array.
    """
    _adopt_orphans()
    answers = _take_standard_output()
    orders: queue.SimpleQueue[str] = queue.SimpleQueue()
    folder = Path(launcher).parent
    threading.Thread(target=_read_orders, args=(orders, folder), daemon=True).start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=launcher,
            chromium_sandbox=True,
            args=json.loads(flags),
            ignore_default_args=UNWANTED_DEFAULTS,
            env={"PYTHONPATH": os.pathsep.join(sys.path)},
        )
        # Its first page starts a process of the kind whose sandbox is looked at.
        browser.new_context().new_page()
        _answer(answers, {"ready": True})
        with suppress(queue.Empty):
            while True:
                _answer(answers, _render(browser, json.loads(orders.get(timeout=IDLE_SECONDS))))
        _end(folder)


def _adopt_orphans() -> None:
    """Become the parent of what one's children leave behind, so that all of it can be found below this process."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _end(folder: Path) -> NoReturn:
    kill_descendants(os.getpid())
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def _take_standard_output() -> IO[bytes]:
    """Keep standard output to the answers: what libraries print goes to standard error."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


def _answer(answers: IO[bytes], answer: Answer) -> None:
    answers.write(json.dumps(answer).encode("ascii") + b"\n")
    answers.flush()


def _read_orders(orders: "queue.SimpleQueue[str]", folder: Path) -> None:
    for line in sys.stdin:
        orders.put(line)
    # Whoever gave orders has closed the browser, or is gone: at once, whatever a page does meanwhile.
    _end(folder)


def _render(browser: Browser, order: dict[str, Any]) -> Answer:
    """Open a page in a context of its own, and return what it has become, or why it did not."""
    context = browser.new_context(
        proxy={
            "server": order["proxy"],
            "bypass": "<-loopback>",
            "username": order["name"],
            "password": order["password"],
        },
        accept_downloads=False,
        service_workers="block",
        permissions=[],
        reduced_motion="reduce",
    )
    with context:
        context.set_default_timeout(order["seconds"] * 1000)
        context.route("**/*", _filter_request)
        page = context.new_page()
        _keep_alone(context, page)
        navigation = _Navigation(page, order["url"])
        try:
            html = _open(page, order["url"], order["seconds"])
        except Error as error:
            return {"failure": error.message.splitlines()[0], "url": navigation.url}
        if not page.url.startswith(("http://", "https://")):
            return {"failure": page.url, "url": navigation.url}
        return {"html": html, "url": page.url, "status": navigation.status}


def _filter_request(route: Route, request: Request) -> None:
    """Let through what may change the text of a page."""
    is_web = urlsplit(request.url).scheme in {"http", "https"}
    # The page may be closed by now.
    with suppress(Error):
        if is_web and request.resource_type not in _LEFT_OUT:
            route.continue_()
        else:
            route.abort("blockedbyclient")


def _keep_alone(context: BrowserContext, page: Page) -> None:
    """Close what the page opens. Dialogs are dismissed by Playwright as long as nobody listens to them."""

    def close(opened: Page) -> None:
        if opened != page:
            with suppress(Error):
                opened.close()

    context.on("page", close)


class _Navigation:
    """Where a page has gone, by redirects and by scripts."""

    def __init__(self, page: Page, url: str) -> None:
        self.url = url
        self.status: int | None = None
        self._frame = page.main_frame
        page.on("request", self._note_request)
        page.on("response", self._note_response)

    def _note_request(self, request: Request) -> None:
        if self._is_of_page(request):
            self.url, self.status = request.url, None

    def _note_response(self, response: Response) -> None:
        if self._is_of_page(response.request):
            self.status = response.status

    def _is_of_page(self, request: Request) -> bool:
        return request.is_navigation_request() and request.frame == self._frame


def _open(page: Page, url: str, seconds: float) -> str:
    """Return the page as it is once its scripts seem to be done.

    Raises:
        Error: Chromium cannot open it.
    """
    until = time.monotonic() + seconds
    # Where time is up, it is still being loaded, and what is there by now may suffice.
    with suppress(PageTimeoutError):
        page.goto(url, wait_until="domcontentloaded", timeout=_LOADING_SHARE * seconds * 1000)
        page.wait_for_load_state("networkidle", timeout=_NETWORK_IDLE_MS)
    _wait_for_still_text(page, min(until, time.monotonic() + _SETTLE_SECONDS))
    return _read_html(page, until)


def _wait_for_still_text(page: Page, until: float) -> None:
    """Wait until there is text that has not grown for a while."""
    lengths: list[int] = []
    while time.monotonic() < until:
        # While the page leads elsewhere it has no text to ask for.
        with suppress(Error):
            lengths.append(page.evaluate(_TEXT_LENGTH))
        last = lengths[-_STILL_SAMPLES:]
        if len(last) == _STILL_SAMPLES and len(set(last)) == 1 and last[0]:
            return
        page.wait_for_timeout(_SAMPLE_MS)


def _read_html(page: Page, until: float) -> str:
    while True:
        try:
            return page.content()[:MAX_HTML]
        except Error:
            # It is on its way to another page.
            if time.monotonic() > until:
                raise
            page.wait_for_timeout(_SAMPLE_MS)
