"""Choose the links of a page that the model is shown, so that it can go on from there."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import urlsplit

from backend.web_search.results import PageLink
from indexing.text.tokenizer import extract_keywords, words

LISTED_LINKS = 5
ALPHABET = 8
"""So many links that differ in one short part are like letters."""
SHORT_PART = 12
"""Characters."""

_PART = re.compile(r"[^\W_]+")


def list_links(links: Iterable[PageLink], question: str) -> list[PageLink]:
    """Return the links that are nearest to a question, in the order of the page."""
    return _pick(tuple(links), question, fewest_words=0)


def list_related_links(links: Sequence[PageLink], question: str, asked_url: str) -> list[PageLink]:
    """Return those that may be followed after something internal was read: what was read must not be revealed by the choice.

    They stay on the site that the page was asked of, have a word of the question, and are not one of many that differ in a
    short part, from which a text could be spelled.
    """
    site = get_site(asked_url)
    own = [link for link in links if get_site(link.url) == site]
    alphabet = find_alphabet(link.url for link in own)
    return _pick([link for link in own if link.url not in alphabet], question, fewest_words=1)


def get_site(url: str) -> str:
    """Return host and port: another name of the same domain may be somebody else's, and a name can carry a text."""
    return urlsplit(url).netloc.lower().rpartition("@")[2].removeprefix("www.")


def find_alphabet(urls: Iterable[str]) -> frozenset[str]:
    """Return the addresses that belong to many that differ in one short part alone."""
    patterns = {url: frozenset(_leave_one_out(url)) for url in urls}
    counts = Counter(pattern for found in patterns.values() for pattern in found)
    common = {pattern for pattern, count in counts.items() if count >= ALPHABET}
    return frozenset(url for url, found in patterns.items() if found & common)


def _leave_one_out(url: str) -> Iterator[str]:
    for part in _PART.finditer(url):
        if len(part.group()) <= SHORT_PART:
            yield f"{url[: part.start()]}*{url[part.end() :]}"


def _pick(links: Sequence[PageLink], question: str, fewest_words: int) -> list[PageLink]:
    asked = frozenset(words(extract_keywords(question)))
    shared = [len(asked.intersection(words(f"{link.text} {link.url}"))) for link in links]
    fitting = [at for at in range(len(links)) if shared[at] >= fewest_words]
    best = sorted(fitting, key=lambda at: -shared[at])[:LISTED_LINKS]
    return [links[at] for at in sorted(best)]
