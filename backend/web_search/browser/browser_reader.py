"""Pages as a browser shows them: opened in a fresh context, in one of a few browsers that are kept for the next pages."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from backend.web_search.browser.browser_process import (
    BrowserEndedError,
    BrowserProcess,
    Order,
    PageNotRenderedError,
)
from backend.web_search.browser.chromium import find_chromium
from backend.web_search.browser.filtering_proxy import (
    DEFAULT_LIMITS,
    Dialer,
    FilteringProxy,
    dial_address,
)
from backend.web_search.browser.page_traffic import PageTraffic, TrafficLimits
from backend.web_search.browser.proxy_requests import name_target
from backend.web_search.domains import DomainRules
from connectors.closing import Closing
from connectors.http_client.address_guard import Resolver, validate_url
from connectors.http_client.transport import resolve_host
from indexing.runtime.deadline import Deadline, DeadlineExceededError

_STATUSES_OF_PROXY = {403, 502, 503}
"""With which the proxy answers in place of a page without TLS; the page may have them, too."""
_ANSWER_SHARE = 0.75
"""Of the time of a page, after which what is there by then is the page."""
_WAIT_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """A page after its scripts have run.

    Attributes:
        url: Where it was after redirects, those of scripts too.
        html: The document as it was then, at most five million characters.
        status: The status of HTTP; `None` where no response had one.
    """

    url: str
    html: str
    status: int | None


@dataclass(frozen=True, slots=True)
class BrowserLimits:
    """What browsers may take.

    Attributes:
        memory_bytes: Of one browser, that is of one page at a time.
        page_seconds: For one page, once a browser is free.
        pages_at_once: Each in a browser of its own.
        pages_each: After which a browser is replaced by a new one.
    """

    memory_bytes: int = 1 << 30
    page_seconds: float = 20.0
    pages_at_once: int = 2
    pages_each: int = 50
    traffic: TrafficLimits = DEFAULT_LIMITS


class BrowserReader(Closing):
    """Reads pages in Chromium, which is started when it is first needed. Thread-safe; to be closed."""

    def __init__(
        self,
        chromium: Path | None,
        limits: BrowserLimits,
        resolver: Resolver = resolve_host,
        dial: Dialer = dial_address,
    ) -> None:
        """Prepare to open pages; Chromium starts with the first of them.

        Args:
            chromium: the browser to start; `None` for one on the PATH.
            resolver: looks up the names of hosts, of which the public ones alone are connected to.
            dial: connects to an address that was checked.
        """
        self._configured = chromium
        self._limits = limits
        self._resolver = resolver
        self._dial = dial
        self._slots = threading.BoundedSemaphore(limits.pages_at_once)
        self._lock = threading.Lock()
        self._proxy: FilteringProxy | None = None
        self._free: list[BrowserProcess] = []
        self._closed = False

    def render(self, url: str, deadline: Deadline, domains: DomainRules) -> RenderedPage:
        """Open a page and return what it has become; of the domains that are blocked nothing is requested.

        Raises:
            AddressNotAllowedError: it is not an address of the web.
            NotConfiguredError: there is no browser, or none whose sandbox works.
            PageNotRenderedError: the page cannot be read in the browser.
            TemporarilyUnavailableError: the browser does not start in time.
            DeadlineExceededError: the deadline has passed.
        """
        address = str(validate_url(url))
        with self._slot(deadline), self._open_proxy().open_page(domains) as traffic:
            answer = self._render_in_time(address, traffic, deadline)
            return _read_answer(answer, address, traffic)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            free, self._free = self._free, []
            proxy, self._proxy = self._proxy, None
        for browser in free:
            browser.close()
        if proxy is not None:
            proxy.close()

    @contextmanager
    def _slot(self, deadline: Deadline) -> Iterator[None]:
        while not self._slots.acquire(timeout=_WAIT_SECONDS):
            deadline.check()
        try:
            deadline.check()
            yield
        finally:
            self._slots.release()

    def _open_proxy(self) -> FilteringProxy:
        with self._lock:
            if self._proxy is None:
                self._proxy = FilteringProxy(self._resolver, self._dial, self._limits.traffic)
            return self._proxy

    def _render_in_time(self, url: str, traffic: PageTraffic, deadline: Deadline) -> dict[str, Any]:
        try:
            return self._render_in_kept(url, traffic, deadline)
        except BrowserEndedError:
            raise PageNotRenderedError(f"{url} crashes in the browser.") from None
        except DeadlineExceededError:
            deadline.check()
            raise PageNotRenderedError(f"{url} takes too long in the browser.") from None

    def _render_in_kept(self, url: str, traffic: PageTraffic, deadline: Deadline) -> dict[str, Any]:
        """Ask a browser that is kept; one that has ended meanwhile, such as for want of pages, is replaced."""
        while (kept := self._take_kept()) is not None:
            try:
                return self._ask(kept, url, traffic, deadline)
            except BrowserEndedError:
                continue
        return self._ask(self._start(deadline), url, traffic, deadline)

    def _take_kept(self) -> BrowserProcess | None:
        with self._lock:
            return self._free.pop() if self._free else None

    def _start(self, deadline: Deadline) -> BrowserProcess:
        chromium = find_chromium(self._configured)
        return BrowserProcess(
            chromium, self._open_proxy().port, self._limits.memory_bytes, deadline
        )

    def _ask(
        self, browser: BrowserProcess, url: str, traffic: PageTraffic, deadline: Deadline
    ) -> dict[str, Any]:
        """Ask a browser for the page; one that fails to answer is killed."""
        limited = deadline.limited_to(self._limits.page_seconds)
        order = Order(
            url=url,
            proxy=f"http://127.0.0.1:{self._open_proxy().port}",
            name=traffic.name,
            password=traffic.password,
            seconds=limited.remaining() * _ANSWER_SHARE,
        )
        with ExitStack() as stack:
            stack.callback(browser.close)
            answer = browser.render(order, limited)
            stack.pop_all()
        self._give_back(browser)
        return answer

    def _give_back(self, browser: BrowserProcess) -> None:
        with self._lock:
            if not self._closed and browser.pages < self._limits.pages_each:
                self._free.append(browser)
                return
        browser.close()


def _read_answer(answer: dict[str, Any], url: str, traffic: PageTraffic) -> RenderedPage:
    reached: str = answer["url"]
    may_be_refused = "failure" in answer or answer["status"] in _STATUSES_OF_PROXY
    if may_be_refused and (refusal := _find_refusal(reached, traffic)):
        raise PageNotRenderedError(f"{url} {refusal}")
    if "failure" in answer:
        raise PageNotRenderedError(f"{url} {_explain_failure(answer['failure'])}")
    return RenderedPage(url=reached, html=answer["html"], status=answer["status"])


def _find_refusal(reached: str, traffic: PageTraffic) -> str | None:
    """Return what the proxy says of an address that was not reached, as a predicate; None if it was reached."""
    parts = urlsplit(reached)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    refusal = traffic.find_refusal(name_target(host, port))
    return refusal and f"leads to {host}, which is not opened: {refusal}."


def _explain_failure(failure: str) -> str:
    """Return what happened, as a predicate."""
    if "Download is starting" in failure:
        return "is a file to download, not a page."
    if "crash" in failure.lower():
        return "crashes in the browser."
    if code := failure.partition("net::")[2].split():
        return f"cannot be opened in the browser ({code[0]})."
    return "leads to something that is not a page of the web."
