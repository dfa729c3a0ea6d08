"""Change a true sentence so that its document no longer bears it out; one function a kind.

Each takes the sentence, a source of chance and the material of other documents, and returns None if the
sentence offers nothing to change.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Material:
    """What other documents offer to a change."""

    names: Sequence[str]
    clauses: Sequence[str]
    """Relative clauses, each with the comma before it."""
    sentences: Sequence[str]
    evidence: str
    """All text of the document itself."""


Change: TypeAlias = Callable[[str, Random, Material], str | None]

_MONTH_LIST = """
January February March April May June July August September October November December
"""
MONTHS = _MONTH_LIST.split()
_MONTH = re.compile(rf"\b(?:{'|'.join(MONTHS)})\b(?=,? \d)")
_YEAR = re.compile(r"\b(?:1[5-9]|20)\d\d\b")
_NUMBER = re.compile(r"(?<![\w.,/:-])\d{1,3}(?:,\d{3})*(?:\.\d+)?(?![\w/:-]|[.,]\d)")
_SPELLED_LIST = """
two three four five six seven eight nine ten eleven twelve
"""
_SPELLED = _SPELLED_LIST.split()
_SPELLED_NUMBER = re.compile(rf"\b(?:{'|'.join(_SPELLED)})\b")
NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}(?: (?:[A-Z][a-z]+|of [A-Z][a-z]+))*")
_FIRST_NAME = re.compile(
    r"^[A-Z][a-z]{2,}(?: [A-Z][a-z]+)+(?= (?:is|was|has|had|were|are|\w+ed)\b)"
)
_FULL_NAME = re.compile(
    r"(?<![\w-])(?!The |An? |In |This )[A-Z][a-z]{2,}(?: [A-Z][a-z]+)+(?![\w'’–-])"
)
_AUXILIARY = re.compile(
    r"\b(is|are|was|were|has|had|have|can|could|will|would|should|must|may|did)\b(?! not|n't)"
)
_NOT = re.compile(
    r"\b(is|are|was|were|has|had|have|can|will|would|should|must|may|did|does|do) not "
)


def change_number(text: str, chance: Random, material: Material) -> str | None:
    """Another number that the document does not have."""
    found = [m for m in _NUMBER.finditer(text) if not _YEAR.fullmatch(m[0])]
    if found:
        one = chance.choice(found)
        return _put(text, one, _other_number(one[0], chance, material))
    if spelled := _SPELLED_NUMBER.search(text):
        others = [n for n in _SPELLED if n not in material.evidence.lower()]
        return _put(text, spelled, chance.choice(others)) if others else None
    return None


def _other_number(number: str, chance: Random, material: Material) -> str:
    value, shift = float(number.replace(",", "")), 9
    while True:
        scaled, shift = (
            value * chance.choice((0.5, 1.5, 2, 3)) + chance.randint(1, shift),
            shift + 1,
        )
        written = f"{scaled:,.1f}" if "." in number else f"{int(scaled):,}"
        if written not in material.evidence and written != number:
            return written


def change_number_to_another(text: str, chance: Random, material: Material) -> str | None:
    """A number that the document has, but says of something else."""
    found = [m for m in _NUMBER.finditer(text) if not _YEAR.fullmatch(m[0])]
    others = {
        m[0]
        for m in _NUMBER.finditer(material.evidence)
        if not _YEAR.fullmatch(m[0]) and m[0] not in text
    }
    return (
        _put(text, chance.choice(found), chance.choice(sorted(others)))
        if found and others
        else None
    )


def change_date(text: str, chance: Random, material: Material) -> str | None:
    if months := list(_MONTH.finditer(text)):
        one = chance.choice(months)
        return _put(text, one, chance.choice([m for m in MONTHS if m not in material.evidence]))
    if years := list(_YEAR.finditer(text)):
        one = chance.choice(years)
        shifted = [int(one[0]) + by for by in (-30, -12, -7, -3, -2, -1, 1, 2, 4, 9, 21)]
        return _put(
            text, one, str(chance.choice([y for y in shifted if str(y) not in material.evidence]))
        )
    return None


def change_name(text: str, chance: Random, material: Material) -> str | None:
    found = [m for m in NAME.finditer(text) if m[0] not in MONTHS]
    return _put(text, chance.choice(found), _other_name(chance, material)) if found else None


def change_first_name(text: str, chance: Random, material: Material) -> str | None:
    """Another name at the beginning, where any word has a capital."""
    found = _FIRST_NAME.search(text)
    return _put(text, found, _other_name(chance, material)) if found else None


def _other_name(chance: Random, material: Material) -> str:
    while True:
        name = chance.choice(material.names)
        if not any(part in material.evidence for part in name.split()):
            return name


def swap_names(text: str, chance: Random, material: Material) -> str | None:
    """Two names of the sentence change their places; not where they are merely listed."""
    del material
    found = list(dict.fromkeys(m[0] for m in _FULL_NAME.finditer(text)))
    pairs = [
        (a, b)
        for i, a in enumerate(found)
        for b in found[i + 1 :]
        if a not in b
        and b not in a
        and not re.search(rf"{re.escape(a)}(?:,| and| or)[^.]{{0,30}}{re.escape(b)}", text)
    ]
    if not pairs:
        return None
    a, b = chance.choice(pairs)
    return text.replace(a, "\0").replace(b, a).replace("\0", b)


def negate(text: str, chance: Random, material: Material) -> str | None:
    del chance, material
    if denied := _NOT.search(text):
        return _put(text, denied, denied[1] + " ")
    found = _AUXILIARY.search(text)
    return _put(text, found, f"{found[1]} not") if found else None


def support_half(text: str, chance: Random, material: Material) -> str | None:
    """The sentence, and one of another document after it."""
    other = chance.choice(material.sentences)
    joint = chance.choice((" and ", ", and ", "; ", ", while ", ", but "))
    if len(other.split()) > 25:
        return None
    if chance.random() < 0.4:
        text, other = other, text
    lower = (
        other
        if re.match(r"[A-Z][a-z]+ [A-Z]|[A-Z]{2}|I\b", other)
        else other[0].lower() + other[1:]
    )
    return f"{text.rstrip('.')}{joint}{lower}"


_REASONS = (
    ", which was caused by {0}",
    ", mainly because of {0}",
    ", as {0} had demanded",
    ", after {0} had been ruled out",
    ", in spite of {0}",
    ", provided that there is {0}",
    ", which led to {0}",
    " in order to prevent {0}",
    ", unless {0} objects",
    " at the expense of {0}",
    " with the help of {0}",
    " under pressure from {0}",
    " thanks to {0}",
    " and then informed {0}",
    " during {0}",
    ", much to the surprise of {0}",
)
_CAUSES = (
    "a sabotage of a competitor",
    "the weather of that winter",
    "a mistake of the supplier",
    "the board of directors",
    "a strike of the drivers",
    "growing public protest",
    "a shortage of trained staff",
    "an unpaid invoice",
    "several lawsuits by former partners",
    "the recommendation of an outside auditor",
    "a new insurance contract",
    "a fire in the archive",
)


def append_clause(text: str, chance: Random, material: Material) -> str | None:
    """A clause after the sentence that nothing bears out, half of them from other documents."""
    if material.clauses and chance.random() < 0.5:
        return f"{text.rstrip('.')}{chance.choice(material.clauses)}."
    return f"{text.rstrip('.')}{chance.choice(_REASONS).format(chance.choice(_CAUSES))}."


_UNITS: Mapping[str, Sequence[str]] = {
    "seconds": ("minutes", "hours"),
    "minutes": ("hours", "seconds", "days"),
    "hours": ("minutes", "days"),
    "days": ("weeks", "months", "hours"),
    "weeks": ("months", "days"),
    "months": ("weeks", "years", "days"),
    "years": ("months", "weeks", "decades"),
    "million": ("billion", "thousand"),
    "billion": ("million", "trillion"),
    "percent": ("percentage points", "pounds"),
    "%": (" euros", " per mille"),
    "km": ("miles", "m"),
    "miles": ("kilometres", "yards"),
    "m": ("km", "feet"),
    "yards": ("miles", "feet"),
    "feet": ("metres", "miles"),
    "points": ("yards", "percent"),
    "yard": ("mile", "foot"),
    "ms": ("seconds", "minutes"),
    "GB": ("MB", "TB"),
    "MB": ("GB", "KB"),
    "dollars": ("euros", "yen"),
    "euros": ("dollars", "pounds"),
}
_UNIT = re.compile(
    r"(?<=\d)( ?-?)(" + "|".join(map(re.escape, sorted(_UNITS, key=len, reverse=True))) + r")(?!\w)"
    rf"|(?<= (?:two|ten|six))( )({'|'.join(u for u in _UNITS if u.isalpha())})(?!\w)"
)


def change_unit(text: str, chance: Random, material: Material) -> str | None:
    del material
    found = list(_UNIT.finditer(text))
    if not found:
        return None
    one = chance.choice(found)
    gap, unit = (one[1], one[2]) if one[2] else (one[3], one[4])
    return _put(text, one, gap + chance.choice(_UNITS[unit]))


_ORDINAL_LIST = """
first second third fourth fifth sixth seventh eighth ninth tenth last
"""
_ORDINALS = _ORDINAL_LIST.split()
_ORDINAL = re.compile(
    rf"\b(?:{'|'.join(_ORDINALS)})\b(?! of all)|\b\d{{1,2}}(?:st|nd|rd|th)\b", re.IGNORECASE
)


def change_ordinal(text: str, chance: Random, material: Material) -> str | None:
    del material
    found = list(_ORDINAL.finditer(text))
    if not found:
        return None
    one = chance.choice(found)
    if one[0][0].isdigit():
        return _put(text, one, f"{int(re.match(r'[0-9]+', one[0])[0]) % 20 + 4}th")  # type: ignore[index]
    other = chance.choice([o for o in _ORDINALS if o != one[0].lower()])
    return _put(text, one, other.capitalize() if one[0][0].isupper() else other)


_SHARES: Mapping[str, Sequence[str]] = {
    "half": ("all", "a quarter", "two thirds"),
    "full": ("half", "partial"),
    "fully": ("partly", "hardly"),
    "all": ("half of", "some of", "none of"),
    "every": ("hardly any", "every second"),
    "each": ("only one", "every third"),
    "most": ("few", "half the"),
    "majority": ("minority",),
    "many": ("few", "no"),
    "both": ("neither of",),
    "entire": ("half the",),
    "entirely": ("partly",),
    "double": ("half", "triple"),
    "twice": ("three times", "half"),
    "quarter": ("third", "half"),
    "third of": ("half of", "tenth of"),
    "thirds": ("fifths",),
    "always": ("sometimes", "rarely"),
    "usually": ("rarely",),
    "often": ("seldom",),
}
_SHARE = re.compile(rf"\b(?:{'|'.join(_SHARES)})\b")


def change_share(text: str, chance: Random, material: Material) -> str | None:
    del material
    found = list(_SHARE.finditer(text))
    if not found:
        return None
    one = chance.choice(found)
    return _put(text, one, chance.choice(_SHARES[one[0]]))


_OPPOSITE_LIST = """
increase/decrease increased/decreased increases/decreases increasing/decreasing rise/fall
rose/fell rising/falling risen/fallen higher/lower highest/lowest high/low more/less
larger/smaller largest/smallest large/small greater/smaller greatest/smallest better/worse
best/worst before/after above/below maximum/minimum upper/lower early/late earlier/later
earliest/latest long/short longer/shorter allowed/forbidden permitted/prohibited
required/optional win/lose won/lost winning/losing strong/weak stronger/weaker internal/external
public/private north/south northern/southern east/west eastern/western left/right top/bottom
inside/outside old/new older/newer first/last begin/end began/ended start/stop started/stopped
open/closed opened/closed enable/disable enabled/disabled accept/reject accepted/rejected
include/exclude includes/excludes included/excluded including/excluding positive/negative
success/failure successful/unsuccessful possible/impossible common/rare easy/difficult fast/slow
faster/slower buy/sell bought/sold gain/loss import/export imports/exports join/leave
joined/left arrive/depart arrived/departed expand/shrink expanded/shrank add/remove
added/removed adding/removing create/destroy created/destroyed support/oppose supported/opposed
promote/hinder promotes/inhibits activation/inhibition improve/worsen improved/worsened
improves/worsens with/without rich/poor wide/narrow heavy/light full/empty important/unimportant
safe/dangerous male/female dry/wet cold/hot warm/cool modern/ancient urban/rural
majority/minority permanent/temporary reduce/raise reduced/raised reduces/raises
reducing/raising hire/dismiss hired/dismissed approve/refuse approved/refused employer/employee
teacher/student minimum/maximum
"""
OPPOSITES = tuple(tuple(pair.split("/")) for pair in _OPPOSITE_LIST.split())
_OPPOSITE = {a: b for one, other in OPPOSITES for a, b in ((one, other), (other, one))}
_OPPOSED = re.compile(rf"\b(?:{'|'.join(sorted(_OPPOSITE, key=len, reverse=True))})\b")


def change_to_the_opposite(text: str, chance: Random, material: Material) -> str | None:
    del material
    found = list(_OPPOSED.finditer(text))
    if not found:
        return None
    one = chance.choice(found)
    return _put(text, one, _OPPOSITE[one[0]])


def _put(text: str, found: re.Match[str], new: str) -> str:
    return text[: found.start()] + new + text[found.end() :]
