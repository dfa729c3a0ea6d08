"""The browser for pages of the web that need one."""

from backend.settings import Settings
from backend.web_search.browser.browser_reader import BrowserLimits, BrowserReader


def make_browser_reader(settings: Settings) -> BrowserReader:
    """Return a reader of pages, to be closed; it starts nothing before the first page."""
    limits = BrowserLimits(memory_bytes=settings.browser_megabytes << 20)
    return BrowserReader(settings.browser_path, limits)
