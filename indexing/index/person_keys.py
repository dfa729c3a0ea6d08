"""One key for each person who owns documents, however the name is written."""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from connectors.document import Person

MAX_LENGTH = 200
"""Characters of a key, and of a display name."""
MAX_PEOPLE = 500
"""People in a facet, those with the most documents: the mail of a company names tens of thousands."""

_SEPARATORS = re.compile("[\\s\\0\ud800-\udfff]+")
"""White space, and what no index can store."""


@dataclass(frozen=True, slots=True)
class PersonCount:
    name: str
    """The name in most of the counted documents."""
    documents: int


def person_key(text: str) -> str:
    """Return the key of an e-mail address or a name: case and white space ignored, composed (NFC).

    The key of a key is the key itself.
    """
    # Case folding is defined on decomposed text; its result may have to be composed again.
    folded = unicodedata.normalize("NFD", _on_one_line(text)).casefold()
    return unicodedata.normalize("NFC", folded)[:MAX_LENGTH].rstrip()


def display_name(person: Person) -> str:
    """Return the name on one line, else the address; empty where neither is known."""
    return (_on_one_line(person.name) or _on_one_line(person.email or ""))[:MAX_LENGTH].rstrip()


def names_by_key(people: Iterable[Person]) -> dict[str, str]:
    """Map each person's key to the display name; of several entries for one key the first counts."""
    names: dict[str, str] = {}
    for person in people:
        key = person_key(person.email or "") or person_key(person.name)
        if key:
            names.setdefault(key, display_name(person))
    return names


def count_people(
    documents: Mapping[str, int], names: Iterable[tuple[str, str, int]]
) -> dict[str, PersonCount]:
    """Join document counts by key with display names, given as (key, name, number of documents).

    Of names used equally often the first by alphabet is taken; a key without a name is its own name.
    """
    usual: dict[str, tuple[int, str]] = {}
    for key, name, count in names:
        usual[key] = min(usual.get(key, (0, "")), (-count, name))
    return {
        key: PersonCount(usual[key][1] if key in usual else key, count)
        for key, count in documents.items()
    }


def _on_one_line(text: str) -> str:
    return _SEPARATORS.sub(" ", text).strip()
