"""Compare the facts of a claim with those of its evidence, each in the words around it."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum

from backend.chat.citations.fact_words import ENTAILED_SHARES, EXACT_SHARES, OPPOSITES
from backend.chat.citations.facts import Fact, FactKind, Reading
from indexing.text.tokenizer import plain_words

SAME_CONTEXT = 0.4
"""From here on, two facts are said of the same thing."""
BETTER_CONTEXT = 0.2
"""So much better must the words around another value fit than those around the claim's own."""
REACH = {FactKind.SHARE: 1.5, FactKind.ORDINAL: 1.5, FactKind.OPPOSITE: 2.0, FactKind.CODE: 20.0}
"""In words: how soon the words around a fact cease to matter; 4 for the other kinds."""
BESIDE = 0.6
"""The weight of a word in the headings above a sentence; one in the sentence itself weighs 1."""
ABOUT = 0.06
COUNTS = frozenset({2, 3, 4, 5})
NAME_STEM = 4
"""Letters that a country and its people have in common, and most that they differ by."""
ALIKE = 0.6
"""Codes that are less alike are no two values of one thing."""
_FAR = 20
_NAMES = {FactKind.NAME, FactKind.FIRST_WORD, FactKind.MARKED_NAME}
_COMPARABLE = {
    FactKind.FIRST_WORD: {FactKind.NAME},
    FactKind.NUMBER: {FactKind.NUMBER, FactKind.ORDINAL},
}
"""Facts of the evidence by which one of the claim is judged, where these are not of its own kind alone."""


class Finding(StrEnum):
    MISSING = "missing"
    CONFLICT = "conflict"


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of the evidence, and the headings above it."""

    reading: Reading
    above: Reading


@dataclass(frozen=True, slots=True)
class FactFinding:
    fact: Fact
    finding: Finding
    sentence: int | None = None
    """Of a conflict, the number of the sentence that has the other value."""


def check_facts(claim: Reading, evidence: Sequence[Sentence]) -> list[FactFinding]:
    """Return the facts of the claim that the evidence lacks or contradicts."""
    found = [_check_fact(claim, fact, evidence) for fact in claim.facts]
    return [one for one in found if one is not None]


@dataclass(frozen=True, slots=True)
class _Match:
    context: float
    sentence: int | None = None


def _check_fact(claim: Reading, fact: Fact, evidence: Sequence[Sentence]) -> FactFinding | None:
    same, other = _Match(-1.0), _Match(-1.0)
    for number, sentence in enumerate(evidence):
        for candidate in _candidates(fact, sentence.reading):
            context = _context(claim, fact, sentence, candidate)
            if _is_same(fact, candidate):
                same = max(same, _Match(context, number), key=lambda match: match.context)
            elif _conflicts(claim, fact, candidate):
                other = max(other, _Match(context, number), key=lambda match: match.context)
    if same.sentence is None and _stands_elsewhere(fact, evidence):
        same = _Match(SAME_CONTEXT)
    if fact.kind in _NAMES and same.context >= 0:
        return None
    if other.context >= SAME_CONTEXT and other.context > same.context + BETTER_CONTEXT:
        return FactFinding(fact, Finding.CONFLICT, other.sentence)
    if same.context < 0 and _is_needed(claim, fact):
        return FactFinding(fact, Finding.MISSING)
    return None


def _candidates(fact: Fact, sentence: Reading) -> Iterable[Fact]:
    kinds = _COMPARABLE.get(fact.kind, {fact.kind})
    return (one for one in sentence.facts if one.kind in kinds)


def _context(claim: Reading, fact: Fact, sentence: Sentence, other: Fact) -> float:
    """Return the share of the words around one fact that also surround the other one; near words count more."""
    reach = REACH.get(fact.kind, 4.0)
    total = found = 0.0
    for at, word in enumerate(claim.stems):
        if at == fact.at or not claim.content[at]:
            continue
        weight = math.exp(-abs(at - fact.at) / reach)
        total += weight
        found += weight * _nearness(word, sentence, other)
    return found / total if total else SAME_CONTEXT


def _nearness(word: str, sentence: Sentence, other: Fact) -> float:
    places = sentence.reading.places.get(word)
    if places:
        return 1.0 - min(_FAR, *(abs(place - other.at) for place in places)) / (2 * _FAR)
    return BESIDE if word in sentence.above.places else 0.0


def _is_same(fact: Fact, other: Fact) -> bool:
    match fact.kind:
        case FactKind.NUMBER:
            return _is_same_number(fact, other)
        case FactKind.OPPOSITE:
            return fact.value == other.value or any(
                side in OPPOSITES[other.value] for side in OPPOSITES[fact.value]
            )
        case FactKind.NAME | FactKind.FIRST_WORD:
            return _is_same_name(fact.value, other.value)
        case FactKind.SHARE:
            return fact.value == other.value or other.value in ENTAILED_SHARES.get(fact.value, ())
        case FactKind.MARKED_NAME:
            return _is_same_marked_name(fact.value, other.value)
        case _:
            return fact.value == other.value


def _is_same_marked_name(name: str, other: str) -> bool:
    """Return whether names are the same, also if of one only the character beside the point is known: "李" and "李参"."""
    shorter, longer = sorted((name, other), key=len)
    return name == other or (len(shorter) == 1 and shorter in (longer[0], longer[-1]))


def _is_same_number(fact: Fact, other: Fact) -> bool:
    """Return whether two facts state the same number.

    So do a day and its date ("21 February", "the 21st"), and a term and its last day ("five days", "the fifth day").
    """
    if other.kind is FactKind.ORDINAL:
        counts_days = fact.measure == "time" or fact.measure.startswith("day of ")
        return counts_days and f"{fact.amount:.12g}" == other.value
    if "decade" in (fact.measure, other.measure):
        return fact.amount % 100 // 10 == other.amount % 100 // 10
    if fact.measure and other.measure and "year" not in (fact.measure, other.measure):
        if fact.measure != other.measure:
            return False
        return _is_close(fact.amount * fact.factor, other.amount * other.factor, fact)
    return _is_close(fact.amount, other.amount, fact)


def _is_close(amount: float, other: float, fact: Fact) -> bool:
    if math.isclose(amount, other, rel_tol=1e-9):
        return True
    if fact.about and math.isclose(amount, other, rel_tol=ABOUT):
        return True
    digits = len(fact.value.strip("0").replace(".", ""))
    return (
        digits > 1
        and fact.measure != "year"
        and bool(other)
        and math.isclose(float(f"{other:.{digits}g}"), amount, rel_tol=1e-9)
    )


def _is_same_name(name: str, other: str) -> bool:
    """Return whether names are the same, as are a singular and its plural, and a country and its people."""
    shorter, longer = sorted((name.removesuffix("s"), other.removesuffix("s")), key=len)
    if shorter == longer:
        return True
    common = shorter[: max(NAME_STEM, len(shorter) - 1)]
    return (
        len(shorter) >= NAME_STEM
        and longer.startswith(common)
        and len(longer) - len(shorter) < NAME_STEM
    )


def _conflicts(claim: Reading, fact: Fact, other: Fact) -> bool:
    """Return whether the other fact could take the place of this one."""
    match fact.kind:
        case FactKind.NUMBER:
            return other.kind is FactKind.NUMBER and _could_be(fact, other)
        case FactKind.OPPOSITE:
            # "fewer than 50 more" says both.
            return other.value not in claim.words and any(
                (pair, 1 - side) in OPPOSITES[other.value] for pair, side in OPPOSITES[fact.value]
            )
        case FactKind.NAME | FactKind.FIRST_WORD:
            return other.value not in claim.words
        case FactKind.CODE:
            return SequenceMatcher(None, fact.value, other.value).ratio() >= ALIKE
        case _:
            return True


def _could_be(fact: Fact, other: Fact) -> bool:
    """Return whether two numbers may measure the same thing."""
    if "year" in (fact.measure, other.measure):
        return fact.measure == other.measure
    if fact.measure and other.measure:
        return fact.measure == other.measure or fact.amount == other.amount
    return True


def _stands_elsewhere(fact: Fact, evidence: Sequence[Sentence]) -> bool:
    """Return whether the evidence or its headings contain the word of a fact without it being parsed as such a fact."""
    if any(_has(fact, sentence.above) for sentence in evidence):
        return True
    if fact.kind is FactKind.MARKED_NAME:
        readings = (each for one in evidence for each in (one.reading, one.above))
        return any(fact.value in reading.joined for reading in readings)
    if fact.kind not in {FactKind.CODE, FactKind.MONTH, FactKind.NAME, FactKind.FIRST_WORD}:
        return False
    wanted = plain_words(fact.value)
    return any(
        all(_has_word(word, sentence, fact.kind) for word in wanted) for sentence in evidence
    )


def _has_word(word: str, sentence: Sentence, kind: FactKind) -> bool:
    parts = sentence.reading.parts | sentence.above.parts
    is_name = kind in {FactKind.NAME, FactKind.FIRST_WORD}
    return word in parts or (is_name and any(_is_same_name(word, part) for part in parts))


def _has(fact: Fact, reading: Reading) -> bool:
    return any(_is_same(fact, other) for other in _candidates(fact, reading))


def _is_needed(claim: Reading, fact: Fact) -> bool:
    match fact.kind:
        case FactKind.NUMBER if not fact.measure:  # "two reasons" may merely count what follows
            return not (fact.amount in COUNTS and not claim.stems[fact.at].isdigit())
        case FactKind.OPPOSITE:
            return False
        case FactKind.SHARE:
            return fact.value in EXACT_SHARES
        case FactKind.ORDINAL:  # "first" and "last" are adverbs, too
            return fact.value not in {"1", "last"}
        case _:
            return True
