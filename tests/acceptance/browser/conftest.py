"""Chromium before a real `quarry serve`: whatever a page does that it must not do fails its test."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.support.browser import CHROMIUM, FLAGS, Opens, Watched
from tests.support.serving import link_to

# A machine that does much else at once is slow to check the citations of an answer.
expect.set_options(timeout=30_000)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not CHROMIUM.exists():
        pytest.fail(
            "These tests drive Chromium. Install it: make browser (or apt-get install chromium)"
        )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def opens(browser: Browser) -> Opens:
    """Opens a page in a context of its own; at the end it must have done nothing wrong."""

    @contextmanager
    def opened(address: str, **options: Any) -> Iterator[Watched]:
        options = {"viewport": {"width": 1280, "height": 860}, **options}
        context = browser.new_context(**options)
        context.set_default_timeout(15_000)
        context.request.get(link_to(address), max_redirects=0)
        watched = Watched(context.new_page(), address)
        yield watched
        context.close()
        assert watched.wrong == []

    return opened


@pytest.fixture(scope="session")
def pictures() -> Path:
    """The folder of the screenshots: of the variable QUARRY_SCREENSHOTS, or `.cache/screenshots`."""
    default = Path(__file__).parents[3] / ".cache" / "screenshots"
    folder = Path(os.environ.get("QUARRY_SCREENSHOTS", default))
    folder.mkdir(parents=True, exist_ok=True)
    return folder
