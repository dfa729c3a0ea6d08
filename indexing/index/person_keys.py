"""Who stands behind a document: one key a person, in whatever way the name is written."""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from connectors.document import Person

LONGEST = 200
"""Characters of a key, and of a name as it is shown."""
MOST = 500
"""People whom a facet tells of, those of most documents: a company's mail names tens of thousands."""

_APART = re.compile("[\\s\\0\ud800-\udfff]+")
"""Blanks, and what no index can store."""


@dataclass(frozen=True, slots=True)
class PersonCount:
    name: str
    """As most of the counted documents have it."""
    documents: int


def key(text: str) -> str:
    """Of a person by e-mail address or name: without regard to case and blanks, composed (NFC).

    The key of a key is the key itself.
    """
    # Folding is defined on decomposed text; what it yields may be composed again.
    folded = unicodedata.normalize("NFD", _joined(text)).casefold()
    return unicodedata.normalize("NFC", folded)[:LONGEST].rstrip()


def called(person: Person) -> str:
    """The name on one line, or else the address; empty where neither is known."""
    return (_joined(person.name) or _joined(person.email or ""))[:LONGEST].rstrip()


def by_key(people: Iterable[Person]) -> dict[str, str]:
    """What each is called; whoever stands there twice counts once, by the first name."""
    found: dict[str, str] = {}
    for person in people:
        own = key(person.email or "") or key(person.name)
        if own:
            found.setdefault(own, called(person))
    return found


def counted(
    documents: Mapping[str, int], names: Iterable[tuple[str, str, int]]
) -> dict[str, PersonCount]:
    """By key, from the number of documents of each, and how many of them call whom by which name.

    Of names used alike the first by alphabet is told; whose names are not told is called by the key.
    """
    usual: dict[str, tuple[int, str]] = {}
    for own, name, count in names:
        usual[own] = min(usual.get(own, (0, "")), (-count, name))
    return {
        own: PersonCount(usual[own][1] if own in usual else own, count)
        for own, count in documents.items()
    }


def _joined(text: str) -> str:
    return _APART.sub(" ", text).strip()
