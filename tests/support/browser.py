"""A page of a browser that is watched for what no page of ours may do."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import ConsoleMessage, Page, Request, ViewportSize

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


DESK: ViewportSize = {"width": 1280, "height": 860}
PHONE: ViewportSize = {"width": 390, "height": 844}


def check_looks(page: Page, pictures: Path, name: str) -> None:
    """In the light, in the dark and on a phone: nothing that axe objects to, nothing wider than the window."""
    for look in ("light", "dark", "phone"):
        page.emulate_media(color_scheme="dark" if look == "dark" else "light")
        page.set_viewport_size(PHONE if look == "phone" else DESK)
        page.evaluate("scrollTo(0, 0)")
        page.screenshot(path=pictures / f"{name}-{look}.png", full_page=True)
        violations = Axe().run(page).response["violations"]
        faults = [f"{each['id']}: {node['html']}" for each in violations for node in each["nodes"]]
        assert (name, look, faults) == (name, look, [])
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (name, look)
    page.set_viewport_size(DESK)


@dataclass
class Watched:
    """A page, and all that it did which no page of ours may do."""

    page: Page
    address: str
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        self.page.on("dialog", self._dialog)
        self.page.on("request", self._request)

    def open(self, path: str) -> Page:
        self.page.goto(f"{self.address}{path}")
        return self.page

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.wrong.append(f"console: {message.text} {message.location.get('url', '')}")

    def _dialog(self, dialog: Any) -> None:
        self.wrong.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, request: Request) -> None:
        if not request.url.startswith((f"{self.address}/", "data:")):
            self.wrong.append(f"request: {request.url}")


Opens: TypeAlias = Callable[..., AbstractContextManager[Watched]]
"""Opens a page at an address; what it did wrong fails the test at the end of the block."""
