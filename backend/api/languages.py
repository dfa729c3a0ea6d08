"""The languages of the pages, and which of them a request is answered in."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

from fastapi import Request

from backend.api.authorization import find_asker

Language: TypeAlias = Literal["en", "zh"]

LANGUAGES: Mapping[Language, str] = MappingProxyType({"en": "English", "zh": "简体中文"})
"""Each by its own name."""
TAGS: Mapping[Language, str] = MappingProxyType({"en": "en", "zh": "zh-Hans"})
"""What the pages call it in HTML and HTTP."""
LANGUAGE_COOKIE = "quarry-language"

_LONGEST_HEADER = 1_000
_RANGE = re.compile(
    r"\s*(?P<tag>\*|[a-z]{1,8})(?:-[a-z0-9]{1,8})*\s*(?:;\s*q=(?P<weight>[01](?:\.\d{0,3})?)\s*)?",
    re.IGNORECASE,
)


def find_language(request: Request) -> Language:
    """Return what the account chooses, else what this browser has chosen, else what it prefers."""
    asker = find_asker(request.scope)
    of_account = asker.person.language if asker and asker.person else None
    chosen = parse_language(of_account) or parse_language(request.cookies.get(LANGUAGE_COOKIE))
    return chosen or negotiate_language(",".join(request.headers.getlist("accept-language")))


def parse_language(name: str | None) -> Language | None:
    """Return the language of a name that people or their browser have given; None for any other name."""
    return next((language for language in LANGUAGES if language == name), None)


def negotiate_language(accepted: str) -> Language:
    """Return the language that a header Accept-Language likes best; English if it names none of ours.

    Whoever reads a Chinese of another region or script is better served by ours than by English.
    """
    liked: dict[Language, float] = {}
    for one in accepted[:_LONGEST_HEADER].split(","):
        found = _RANGE.fullmatch(one)
        language = _match_tag(found["tag"].lower()) if found else None
        if found and language and language not in liked:
            liked[language] = float(found["weight"] or 1)
    accepted_ones: list[Language] = [each for each, weight in liked.items() if weight]
    return max(accepted_ones, key=liked.__getitem__) if accepted_ones else "en"


def _match_tag(tag: str) -> Language | None:
    return "en" if tag == "*" else parse_language(tag)
