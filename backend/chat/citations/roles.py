"""Detect evidence that says the same of others: swapped names, other speakers, other rows of a table."""

from collections.abc import Sequence
from itertools import combinations

from backend.chat.citations.evidence import Passage
from backend.chat.citations.fact_words import stem
from backend.chat.citations.facts import FactKind, Reading, read_text

GAIN = 2
"""Swapping two names must bring at least so many more words into the order of the evidence."""
LEAST_ORDERED = 0.6
"""And this share of the claim's words."""
_JOINTS = frozenset({"and", "or", "nor", "with", "as", "well", "both", "between"})
_PASSIVE = frozenset({"was", "were", "is", "are", "been", "be"})
_SPEECH_LIST = """
said says say wrote writes asked asks noted notes proposed proposes suggested suggests explained
explains confirmed confirms reported reports mentioned mentions replied replies agreed agrees
warned warns stated states added adds thinks thought believes recommends recommended wants
wanted announced promised argued argues claimed claims
"""
_SPEECH = frozenset(stem(word) for word in _SPEECH_LIST.split())
_SPEECH_DISTANCE = 2


def find_other_speaker(claim: Reading, passages: Sequence[Passage]) -> Passage | None:
    """Return the passage that another says than the one whom the claim names as its speaker."""
    named = 0
    while named < len(claim.tokens) and _is_name(claim, named):
        named += 1
    speech = range(named, min(named + _SPEECH_DISTANCE, len(claim.stems)))
    verb = next((at for at in speech if claim.stems[at] in _SPEECH), None)
    spoken = [passage for passage in passages if passage.speaker]
    if not named or verb is None or not spoken:
        return None
    said = {word for word in claim.stems[verb + 1 :] if word in claim.places}
    nearest = max(spoken, key=lambda passage: len(said & passage.reading.places.keys()))
    around = {*read_text(nearest.speaker).tokens} | nearest.reading.words
    return None if around & {*claim.tokens[:named]} else nearest


def _is_name(text: Reading, at: int) -> bool:
    kinds = {FactKind.NAME, FactKind.FIRST_WORD}
    return any(fact.at == at and fact.kind in kinds for fact in text.facts)


def is_of_another_row(wanted: frozenset[str], row: Passage, rows: Sequence[Passage]) -> bool:
    """Return whether another row of a table contains the words that this row lacks."""
    missing = wanted - row.words
    others = frozenset[str]().union(*(other.words for other in rows if other is not row))
    return bool(missing) and missing <= others


def has_swapped_names(claim: Reading, sentence: Reading) -> bool:
    """Return whether a sentence has two names of the claim in each other's place.

    Where one of the two says it in the passive, their order says nothing.
    """
    if _is_passive(claim) != _is_passive(sentence):
        return False
    own = [word for at, word in enumerate(claim.stems) if claim.content[at]]
    theirs = [word for at, word in enumerate(sentence.stems) if sentence.content[at]]
    common = _longest_common(own, theirs)
    for one, other in combinations(_name_runs(claim, sentence), 2):
        if not {*one, *other} <= {*sentence.stems} or not _is_between(claim, one, other):
            continue
        swapped = _longest_common(_swap(own, one, other), theirs)
        if swapped >= common + GAIN and swapped >= LEAST_ORDERED * len(own):
            return True
    return False


def _is_passive(text: Reading) -> bool:
    return "by" in text.stems and bool(_PASSIVE & {*text.stems})


def _name_runs(text: Reading, other: Reading) -> list[tuple[str, ...]]:
    """Return the names of the text, each as its words; its first word is one if it is in the other text."""
    known = {fact.value for fact in other.facts if fact.kind is FactKind.NAME}
    runs: list[tuple[str, ...]] = []
    last = -2
    for fact in text.facts:
        is_first = fact.kind is FactKind.FIRST_WORD and fact.value in known
        if fact.kind is FactKind.NAME or is_first:
            word = text.stems[fact.at]
            if fact.at == last + 1:
                runs[-1] = (*runs[-1], word)
            else:
                runs.append((word,))
            last = fact.at
    return list(dict.fromkeys(runs))


def _is_between(text: Reading, one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether two names are more than listed beside each other."""
    first, second = sorted((text.stems.index(one[0]), text.stems.index(other[0])))
    listed = {fact.at for fact in text.facts if fact.kind is FactKind.NAME}
    inner = [at for at in range(first + 1, second) if at not in listed]
    return any(text.stems[at] not in _JOINTS for at in inner if text.stems[at] not in one)


def _swap(words: Sequence[str], one: Sequence[str], other: Sequence[str]) -> list[str]:
    swapped: list[str] = []
    at = 0
    while at < len(words):
        for name, new in ((one, other), (other, one)):
            if tuple(words[at : at + len(name)]) == tuple(name):
                swapped += new
                at += len(name)
                break
        else:
            swapped.append(words[at])
            at += 1
    return swapped


def _longest_common(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the length of the longest common subsequence."""
    row = [0] * (len(other) + 1)
    for word in one:
        before = 0
        for at, theirs in enumerate(other, 1):
            before, row[at] = row[at], before + 1 if word == theirs else max(row[at], row[at - 1])
    return row[-1]
