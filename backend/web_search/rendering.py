"""What a browser makes of a page whose text only its scripts write."""

from typing import Protocol

from backend.web_search.domains import DomainRules
from indexing.runtime.deadline import Deadline


class RenderedPage(Protocol):
    """A page after its scripts have run."""

    @property
    def url(self) -> str:
        """The address that it is shown at, after redirects."""
        ...

    @property
    def html(self) -> str: ...


class PageRenderer(Protocol):
    """Opens pages in a browser that reaches nothing but the public web."""

    def __call__(self, url: str, deadline: Deadline, domains: DomainRules) -> RenderedPage:
        """Open a page and return what it has become; nothing is requested of blocked domains.

        Raises:
            QuarryError: the page or the browser cannot be opened.
            DeadlineExceededError: it took too long.
        """
        ...
