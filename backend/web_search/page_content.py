"""What a page or a file of the web says, in the form in which it is judged and cited."""

from dataclasses import dataclass

from backend.web_search.obstacles import PageSigns
from backend.web_search.results import PageDate, PageLink


@dataclass(frozen=True, slots=True)
class PageContent:
    """The content of a response.

    Attributes:
        signs: What an obstacle is recognized by; `None` for files, which are none.
        refresh: Where the page sends a browser by itself.
    """

    title: str
    text: str
    published: PageDate | None
    language: str | None
    links: tuple[PageLink, ...] = ()
    signs: PageSigns | None = None
    refresh: str | None = None
