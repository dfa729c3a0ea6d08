"""JSON of pages of the open web."""

from datetime import datetime
from typing import TYPE_CHECKING, Self

from backend.schemas.base import Schema, with_example

if TYPE_CHECKING:
    from backend.web_search.results import WebPage


class PageDateResponse(Schema):
    at: datetime
    is_guess: bool
    """Whether it was concluded from the text or the address instead of being declared."""


class PageLinkResponse(Schema):
    url: str
    text: str


class WebPageResponse(Schema):
    model_config = with_example(
        url="https://news.example.com/pool",
        title="A tidal pool",
        published={"at": "2024-06-08T05:30:00Z", "is_guess": False},
        language="en",
        text="The harbour town opened its new tidal swimming pool on Saturday.",
        links=[{"url": "https://news.example.com/tides", "text": "Tides"}],
    )

    url: str
    title: str
    published: PageDateResponse | None
    language: str | None
    text: str
    links: tuple[PageLinkResponse, ...]

    @classmethod
    def from_page(cls, page: "WebPage") -> Self:
        return cls.model_validate(page)
