"""Recognition of what a site shows in place of a page.

Only pages with little text, or without an article, are suspected: an article about captchas is none. A suspected page of some
length is taken for an obstacle where its sentences speak of little else.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from backend.web_search.obstacle_phrases import LOADING, SENTENCES, TITLES, WORDS
from backend.web_search.results import Obstacle
from connectors.text_cleaning import to_one_line

SHORT = 300
"""Characters. A text of at most this length is suspected, whatever its markup."""
_LONGEST = 5_000
"""Characters. No wall says more."""
_SENTENCE_END = re.compile(r"[.!?。！？\n]+")
_OTHER_TEXT = {Obstacle.CONSENT: 100}
"""Characters of other things on a short page, by obstacle: a banner below a short text stands in nobody's way."""
_HEADERS = {"cf-mitigated": ("challenge",), "x-amzn-waf-action": ("captcha", "challenge")}


@dataclass(frozen=True, slots=True)
class PageSigns:
    """What a page is recognized by.

    Attributes:
        text: All that a person sees, with what may be left out of the text of the page.
        heading: The first heading.
        noscript: What browsers without scripts show.
        has_article: Whether the page has a main text.
        has_password_field: Whether it asks for a password.
        has_challenge: Whether it has a program that tells people from robots, and nothing else to fill in.
        has_scripts: Whether scripts may change it.
    """

    title: str
    text: str
    heading: str = ""
    noscript: str = ""
    has_article: bool = False
    has_password_field: bool = False
    has_challenge: bool = False
    has_scripts: bool = False

    @property
    def is_short(self) -> bool:
        return len(self.text) <= SHORT

    @property
    def is_suspected(self) -> bool:
        return self.is_short or not self.has_article


def find_obstacle(signs: PageSigns) -> Obstacle | None:
    """Return what stands in place of the page, or None for a page."""
    if not signs.is_suspected:
        return None
    if signs.has_challenge and signs.is_short:
        return Obstacle.CAPTCHA
    for obstacle in SENTENCES:
        if _is_titled(signs, obstacle) or _says(signs, obstacle):
            return obstacle
    return _find_emptiness(signs)


def find_refusal(headers: Mapping[str, str], signs: PageSigns) -> Obstacle | None:
    """Return what stands on a page that was sent with an error instead of what was asked for."""
    for name, values in _HEADERS.items():
        if headers.get(name, "").lower() in values:
            return Obstacle.CAPTCHA
    if signs.has_challenge:
        return Obstacle.CAPTCHA
    shown = (Obstacle.CAPTCHA, Obstacle.LOGIN, Obstacle.CONSENT)
    return next((one for one in shown if _is_titled(signs, one) or _says(signs, one)), None)


def _is_titled(signs: PageSigns, obstacle: Obstacle) -> bool:
    pattern = TITLES.get(obstacle)
    if pattern is None or (obstacle is Obstacle.LOGIN and not signs.has_password_field):
        return False
    return any(pattern.search(normalize_apostrophes(text)) for text in (signs.title, signs.heading))


def _says(signs: PageSigns, obstacle: Obstacle) -> bool:
    """Return whether the text says so, and little else."""
    text = normalize_apostrophes(signs.text)
    if len(text) > _LONGEST or SENTENCES[obstacle].search(to_one_line(text)) is None:
        return False
    if signs.is_short and obstacle not in _OTHER_TEXT:
        return True
    return _count_other_text(text, obstacle) <= _OTHER_TEXT.get(obstacle, SHORT)


def _count_other_text(text: str, obstacle: Obstacle) -> int:
    """Count the characters of sentences that do not speak of the obstacle."""
    known = (WORDS[obstacle], SENTENCES[obstacle])
    sentences = _SENTENCE_END.split(text)
    return sum(len(one) for one in sentences if not any(word.search(one) for word in known))


def _find_emptiness(signs: PageSigns) -> Obstacle | None:
    if LOADING.fullmatch(signs.text) is None:
        return None
    needs_scripts = signs.has_scripts or SENTENCES[Obstacle.SCRIPTS].search(
        signs.noscript[:_LONGEST]
    )
    return Obstacle.SCRIPTS if needs_scripts else Obstacle.EMPTY


def normalize_apostrophes(text: str) -> str:
    """Replace typographic apostrophes by the plain one of the patterns."""
    return text.replace("’", "'")
