"""The pages that a turn knows, by number and by address, and which of them may be opened.

Pages of the web are data, and a model may do what they say. So it opens no address that it writes: it names one that the
asker typed, that a search of this turn returned, or that an opened page links to, and the address is requested as it was
there, whatever the model adds to it. As long as the model has read nothing internal, that is all.

Once it has, each address that it chooses may say something of it, and only these are opened:

- what the asker typed in the conversation;
- what a search returned, at most five pages of a domain, unless the names of its host, its path or its query hold what only
  private documents say;
- at most five links, of those that Quarry lists by the asker's own words (`list_related_links`), on the site that their page
  was asked of.

What remains is the choice among a few pages that somebody else has named: a site can learn only which of them was chosen.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from backend.chat import prompts
from backend.chat.agent.link_choice import list_links, list_related_links
from backend.chat.agent.read_texts import ReadTexts
from backend.chat.intent.message_links import find_links
from backend.chat.web_lookup import identify_page
from backend.search.models import DocumentNumbers
from backend.web_search.addresses import get_domain
from backend.web_search.results import PageLink, WebPage

MAX_LINKS_FOLLOWED = 5
"""In a turn, once something internal was read."""
MAX_RESULTS_OF_SITE = 5
"""That are opened in a turn since then: whoever has many pages found could have one opened for each letter."""

_NUMBER = re.compile(r"\[?\s*(\d{1,6}(?:\.\d)?)\s*\]?")


@dataclass(frozen=True, slots=True)
class OpenablePage:
    url: str
    """As it was typed, returned or linked."""


@dataclass(frozen=True, slots=True)
class RefusedPage:
    reference: str
    """As the model wrote it."""
    advice: str
    """What the model is asked to do."""


CheckedPage: TypeAlias = OpenablePage | RefusedPage


@dataclass(frozen=True, slots=True)
class ListedLink:
    """A link as the model is shown it, with the number by which it is opened."""

    label: str
    link: PageLink


class KnownPages:
    """Belongs to the thread of its turn."""

    def __init__(self, texts: ReadTexts, numbers: DocumentNumbers) -> None:
        self._texts = texts
        self._numbers = numbers
        self._typed = {
            identify_page(link.url): link.url for text in texts.own for link in find_links(text)
        }
        self._found: dict[str, str] = {}
        self._links: dict[str, str] = {}
        """The addresses of links by the ids of their pages, as those of results."""
        self._related: set[str] = set()
        """The ids of links that may be followed after something internal was read."""
        self._followed: set[str] = set()
        self._opened: set[str] = set()
        """The addresses of results that were opened since then."""
        self._labels: dict[str, str] = {}
        """The addresses by the numbers that the model was shown."""
        self._numbered: set[str] = set()
        self._same: dict[str, str] = {}
        """Ids of pages that have no number of their own, because they are reached by another address that has one."""

    def add_result(self, url: str) -> int:
        """Note an address that a search has returned, and return the number of its page."""
        self._found.setdefault(identify_page(url), url)
        return self._assign_number(url)

    def add_page(self, asked_url: str, page: WebPage) -> int:
        """Note a page that was opened, and return its number: that by which it was found, where it was."""
        asked, reached = self.identify(asked_url), self.identify(page.url)
        kept = reached if reached in self._numbered and asked not in self._numbered else asked
        for one in {asked, reached} - self._numbered - {kept}:
            self._same[one] = kept
        return self._assign_number(asked_url)

    def list_links(self, asked_url: str, page: WebPage, question: str) -> list[ListedLink]:
        """Choose the links of a page that the model is shown; it may open them from now on."""
        number = self._assign_number(asked_url)
        related = list_related_links(page.links, question, asked_url)
        shown = related if self._texts.has_internal else list_links(page.links, question)
        self._related |= {identify_page(link.url) for link in related}
        self._links |= {identify_page(link.url): link.url for link in shown}
        listed = [ListedLink(f"{number}.{at}", link) for at, link in enumerate(shown, 1)]
        self._labels |= {one.label: one.link.url for one in listed}
        return listed

    def check(self, reference: str) -> CheckedPage:
        """Decide whether a page is opened that the model names by a number or an address."""
        number = _NUMBER.fullmatch(reference)
        address = self._labels.get(number[1]) if number else reference
        if address is None:
            return RefusedPage(reference, prompts.UNKNOWN_NUMBER)
        for page in self._list_ids(address):
            if page in self._typed:
                return OpenablePage(self._typed[page])
            if page in self._found:
                return self._check_result(reference, page)
            if page in self._links:
                return self._check_link(reference, page)
        return RefusedPage(reference, prompts.UNKNOWN_ADDRESS)

    def _check_result(self, reference: str, page: str) -> CheckedPage:
        url = self._found[page]
        if not self._texts.has_internal:
            return OpenablePage(url)
        if self._texts.is_private_address(url):
            return RefusedPage(reference, prompts.PRIVATE_ADDRESS)
        of_site = {one for one in self._opened if get_domain(one) == get_domain(url)}
        if len(of_site | {url}) > MAX_RESULTS_OF_SITE:
            return RefusedPage(reference, prompts.TOO_MANY_OF_SITE)
        self._opened.add(url)
        return OpenablePage(url)

    def _check_link(self, reference: str, page: str) -> CheckedPage:
        url = self._links[page]
        if not self._texts.has_internal:
            return OpenablePage(url)
        if page not in self._related:
            return RefusedPage(reference, prompts.LINK_LEADS_AWAY)
        if self._texts.is_private_address(url):
            return RefusedPage(reference, prompts.PRIVATE_ADDRESS)
        if len(self._followed | {page}) > MAX_LINKS_FOLLOWED:
            return RefusedPage(reference, prompts.TOO_MANY_LINKS)
        self._followed.add(page)
        return OpenablePage(url)

    def _list_ids(self, address: str) -> Iterator[str]:
        """Yield the ids that an address may stand for; one without a scheme is one of the web."""
        for one in (address, f"https://{address}"):
            yield identify_page(one)
            yield self.identify(one)

    def identify(self, url: str) -> str:
        """Return the id of a page as a source, whatever address of it this is."""
        page = identify_page(url)
        return self._same.get(page, page)

    def _assign_number(self, url: str) -> int:
        page = self.identify(url)
        self._numbered.add(page)
        number = self._numbers.assign(page)
        self._labels.setdefault(str(number), url)
        return number
