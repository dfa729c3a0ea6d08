"""What people and models are shown about a page: its date, and why it was not read."""

from collections.abc import Mapping
from types import MappingProxyType

from backend.web_search.page_fetcher import get_host
from backend.web_search.results import BlockedPage, Obstacle, PageDate, UnreadablePage

_OBSTACLES: Mapping[Obstacle, str] = MappingProxyType(
    {
        Obstacle.CAPTCHA: "shows only a captcha",
        Obstacle.CONSENT: "asks for consent to cookies, and shows nothing else",
        Obstacle.LOGIN: "shows this page only to people who are signed in",
        Obstacle.SCRIPTS: "shows this page only in a browser that runs scripts",
        Obstacle.EMPTY: "sent a page without any text",
        Obstacle.NOT_FOUND: "says that there is no such page",
    }
)


def describe_failure(outcome: BlockedPage | UnreadablePage) -> str:
    """Return a sentence that says why there is no page."""
    match outcome:
        case BlockedPage(url, obstacle):
            return f"{get_host(url)} {_OBSTACLES[obstacle]}."
        case UnreadablePage(_, reason):
            return reason


def describe_date(date: PageDate) -> str:
    """Return the day, marked where it is a guess."""
    return f"{date.at:%Y-%m-%d}{' (guessed)' if date.is_guess else ''}"
