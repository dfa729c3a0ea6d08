"""Say a true sentence in other words, by rules; one function a way, None where it does not apply."""

import re
from collections.abc import Callable, Sequence
from datetime import date
from random import Random
from typing import TypeAlias

from tests.benchmarks.claims.changes import MONTHS

Rewording: TypeAlias = Callable[[str, Random], str | None]

_SYNONYM_LIST = """
large/big began/started begin/start also/in_addition because/since although/even_though
many/numerous shows/demonstrates show/demonstrate showed/demonstrated important/significant
several/multiple about/approximately approximately/around however/nevertheless often/frequently
use/employ used/utilised uses/utilises using/by_means_of help/assist helps/assists purchase/buy
enough/sufficient famous/well-known built/constructed allow/permit allows/permits
allowed/permitted children/kids located/situated required/needed requires/needs require/need
must/has_to receive/get received/got receives/gets provide/offer provides/offers
provided/offered mainly/chiefly primarily/mostly create/make created/made creates/makes
called/named currently/at_present annually/every_year yearly/each_year entire/whole
choose/select chose/selected country/nation countries/nations job/position build/construct
happened/occurred happens/occurs whole/complete main/principal such_as/for_instance
due_to/owing_to in_order_to/so_as_to near/close_to within/inside while/whereas city/town
area/region areas/regions film/movie became/turned_into ended/finished end/conclusion
helped/assisted difficult/hard quickly/rapidly fast/quick rich/wealthy total/overall
additional/further obtain/acquire people/persons company/firm companies/firms workers/employees
employees/staff
"""
_PAIRS = (pair.partition("/") for pair in _SYNONYM_LIST.split())
_SAME = {old: new for old, _, new in _PAIRS}
_WORDS = {old.replace("_", " "): new.replace("_", " ") for old, new in _SAME.items()}
_KNOWN = re.compile(rf"\b(?:{'|'.join(sorted(_WORDS, key=len, reverse=True))})\b")
_FIGURE_LIST = """
zero one two three four five six seven eight nine ten eleven twelve
"""
_FIGURES = _FIGURE_LIST.split()
_SMALL = re.compile(r"(?<![\w.,-])(?:[2-9]|1[0-2])(?= [a-z])")
_SMALL_WORD = re.compile(rf"\b(?:{'|'.join(_FIGURES[2:])})\b(?= [a-z])")
_DATE = re.compile(
    rf"\b({'|'.join(MONTHS)}) (\d{{1,2}}), (\d{{4}})|\b(\d{{1,2}}) ({'|'.join(MONTHS)}) (\d{{4}})"
)
_LEADS = (
    "According to the document, {0}",
    "The page says that {0}",
    "It is stated that {0}",
    "As noted, {0}",
    "In short, {0}",
    "Note that {0}",
)
_FRONTED = re.compile(r"^((?:In|On|During|After|Before|Since|By|At|For|From) [^,]{4,60}), (.+)\.$")
_PASSIVE = re.compile(
    r"^((?:The |An? )?[\w' -]{3,40}?) (was|were|is|are) (\w+ed|built|made|given|held|won) by ((?:the |an? )?[\w' -]{3,60})\.$"
)
_ASIDE = re.compile(
    r", (?:which|who|where|including|such as) [^,]{8,80}(?=[,.])|, [a-z][^,]{10,60},(?= (?:is|was|are|were|has|had)\b)"
)
_EXPANDED = re.compile(
    r"\b(is|are|was|were|did|does|do|has|have|had|can|could|would|should) ?not\b"
)


def use_synonyms(text: str, chance: Random) -> str | None:
    del chance
    new, count = _KNOWN.subn(lambda found: _WORDS[found[0]], text)
    return new if count else None


def write_figures_otherwise(text: str, chance: Random) -> str | None:
    del chance
    if _SMALL.search(text):
        return _SMALL.sub(lambda found: _FIGURES[int(found[0])], text)
    if _SMALL_WORD.search(text):
        return _SMALL_WORD.sub(lambda found: str(_FIGURES.index(found[0])), text)
    return None


def write_date_otherwise(text: str, chance: Random) -> str | None:
    found = _DATE.search(text)
    if not found:
        return None
    month, day, year = (
        (found[1], found[2], found[3]) if found[1] else (found[5], found[4], found[6])
    )
    day_of = date(int(year), MONTHS.index(month) + 1, int(day))
    written = chance.choice(
        (f"{day_of:%Y-%m-%d}", f"{int(day)} {month} {year}", f"{day_of:%d.%m.%Y}")
    )
    return text[: found.start()] + written + text[found.end() :]


def add_lead(text: str, chance: Random) -> str | None:
    lower = (
        text if re.match(r"[A-Z][a-z]+ [A-Z]|[A-Z]{2}|I\b", text) else text[0].lower() + text[1:]
    )
    return chance.choice(_LEADS).format(lower)


def move_front_to_end(text: str, chance: Random) -> str | None:
    del chance
    found = _FRONTED.match(text)
    if not found:
        return None
    front, rest = found.groups()
    return f"{rest[0].upper() + rest[1:]} {front[0].lower() + front[1:]}."


def make_active(text: str, chance: Random) -> str | None:
    """What was done by somebody, somebody did; `did` keeps clear of irregular verbs."""
    del chance
    found = _PASSIVE.match(text)
    if not found or not found[3].endswith("ed"):
        return None
    patient = (
        found[1][0].lower() + found[1][1:] if re.match(r"(?:The|An?) ", found[1]) else found[1]
    )
    agent = found[4][0].upper() + found[4][1:]
    return f"{agent} {found[3]} {patient}."


def drop_aside(text: str, chance: Random) -> str | None:
    del chance
    new, count = _ASIDE.subn("", text, count=1)
    return new if count and len(new.split()) > 5 else None


def contract(text: str, chance: Random) -> str | None:
    del chance
    new, count = _EXPANDED.subn(lambda found: f"{found[1]}n't".replace("cann't", "can't"), text)
    return new if count else None


REWORDINGS: Sequence[Rewording] = (
    use_synonyms,
    write_figures_otherwise,
    write_date_otherwise,
    move_front_to_end,
    make_active,
    drop_aside,
    contract,
)


def reword(text: str, chance: Random) -> str | None:
    return reword_by(REWORDINGS, add_lead, text, chance)


def reword_by(
    rewordings: Sequence[Rewording], lead: Rewording, text: str, chance: Random
) -> str | None:
    """Apply all rewordings that do apply, in an order of chance, at most three; and sometimes a lead."""
    applied = 0
    for rewording in chance.sample(rewordings, len(rewordings)):
        new = rewording(text, chance)
        if new and new != text and applied < 3:
            text, applied = new, applied + 1
    if applied and chance.random() < 0.3:
        text = lead(text, chance) or text
    return text if applied else None
