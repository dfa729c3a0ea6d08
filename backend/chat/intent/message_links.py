"""The addresses of pages in a message; a model's addresses count only where they are among them."""

import html
from collections.abc import Iterable, Iterator
from itertools import islice

import regex

from backend.chat.intent.search_plan import LinkState, LinkToRead

MAX_LINKS = 8
MAX_ADDRESS_CHARACTERS = 2_000
MAX_TITLE_CHARACTERS = 300

# Letters beyond ASCII belong to an address behind /wiki/ alone: in Chinese and Japanese, text follows without a blank.
_LINK = regex.compile(
    r"<url\b(?P<attributes>[^<>]{0,3000})>\s*+(?P<tagged>[^<>\s]{1,3000})\s*+</url\s*+>"
    r"|(?P<bare>(?<![A-Za-z0-9_@.])(?:https?://|www\.(?=[a-z0-9-]++\.))"
    r"(?:(?<=/wiki/)[^\s<>\"'`“”„«»「」『』《》（），。、；：！？\[\]{}|\\^]++|[!-;=?-Z_a-z~%&&[^\"'`]])++)",
    regex.IGNORECASE | regex.V1,
)
_HOST = regex.compile(r"(?:https?://)?+[\w-]", regex.IGNORECASE)
_ENDINGS = ".,;:!?*_~'"
_ATTRIBUTE = regex.compile(
    r"(?P<name>status|title)\s{0,3}=\s{0,3}(?:\"(?P<value>[^\"]{0,600})\"|'(?P<value>[^']{0,600})')",
    regex.IGNORECASE,
)
_LONG_REFERENCE = regex.compile(r"&#[xX]?[0-9a-fA-F]{8,}+;?+")


def decode_entities(text: str) -> str:
    """Decode character references; those of no character, however long, are left out."""
    return html.unescape(_LONG_REFERENCE.sub("", text))


def find_links(text: str) -> tuple[LinkToRead, ...]:
    """Return the links of a text in order, each once, up to a maximum.

    They stand in it as they are, or as `<url status="parsed|failed" title="…">https://…</url>`.
    """
    return tuple(islice(_each_once(_read_links(text)), MAX_LINKS))


def keep_given(written: Iterable[str], given: Iterable[LinkToRead]) -> tuple[LinkToRead, ...]:
    """Return the links among `given` that a model has named; addresses that it made up are dropped."""
    by_key = {address_key(link.url): link for link in reversed(tuple(given))}
    named = (by_key.get(address_key(each)) for each in written)
    return tuple(islice(_each_once(link for link in named if link), MAX_LINKS))


def address_key(address: str) -> str:
    """Return a key that is equal for spellings of one address: letters of the host, entities, a slash or a full stop at the end."""
    bare = decode_entities(address).strip().rstrip(_ENDINGS)
    scheme, _, rest = (bare if _has_scheme(bare) else f"https://{bare}").partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme.lower()}://{host.lower()}{slash}{path}".rstrip("/")


def _read_links(text: str) -> Iterator[LinkToRead]:
    for found in _LINK.finditer(text):
        link = _read_address(found["bare"] or decode_entities(found["tagged"]))
        if link is not None:
            yield describe_link(link, found["attributes"] or "")


def _read_address(written: str) -> LinkToRead | None:
    address = _trim(written) if len(written) <= MAX_ADDRESS_CHARACTERS else ""
    if not _HOST.match(address):
        return None
    return LinkToRead(address if _has_scheme(address) else f"https://{address}")


def _has_scheme(address: str) -> bool:
    return address.lower().startswith(("http://", "https://"))


def describe_link(link: LinkToRead, attributes: str) -> LinkToRead:
    """Return a link with what the attributes of its tag say of it."""
    values = {
        one["name"].lower(): decode_entities(one["value"])
        for one in _ATTRIBUTE.finditer(attributes)
    }
    states = {state.value: state for state in (LinkState.PARSED, LinkState.FAILED)}
    title = " ".join(values.get("title", "").split())[:MAX_TITLE_CHARACTERS]
    state = states.get(values.get("status", "").strip().lower(), LinkState.UNREAD)
    return LinkToRead(link.url, title, state)


def _trim(address: str) -> str:
    """Leave out what ends the sentence, and a bracket that was opened before the address."""
    bare = address.rstrip(_ENDINGS)
    while bare.endswith(")") and bare.count(")") > bare.count("("):
        bare = bare[:-1].rstrip(_ENDINGS)
    return bare


def _each_once(links: Iterable[LinkToRead]) -> Iterator[LinkToRead]:
    seen: set[str] = set()
    for link in links:
        key = address_key(link.url)
        if key not in seen:
            seen.add(key)
            yield link
