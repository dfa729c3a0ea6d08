"""Compare what a claim denies with what its evidence denies, clause by clause."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import regex

from backend.chat.citations.fact_words import stem
from backend.chat.citations.facts import FUNCTION
from indexing.text.tokenizer import plain_words

COUNTERPART = 0.5
"""A clause of the evidence with this share of a claim's words is about the same."""
TIE = 0.05

_NO_NEGATION = regex.compile(
    r"\b(?:no|not) (?:later|more|less|fewer|earlier|sooner) than\b|\bnot (?:only|just|merely)\b|\bor not\b"
    r"|\bnicht (?:nur|später als|mehr als|weniger als)\b",
    regex.IGNORECASE,
)
_NEGATION = regex.compile(
    r"\b(?:no|not|never|none|nobody|nothing|nowhere|neither|nor|without|cannot|forbidden|prohibited|banned"
    r"|lack(?:s|ed|ing)?|fail(?:s|ed)? to|unable to|absence of"
    r"|nicht|nichts|kein(?:e[mnrs]?)?|nie|niemals|niemand|ohne|weder|verboten|untersagt"
    r"|ne\s+\w+\s+(?:pas|jamais|plus)|jamais|sans|aucune?|interdite?s?|nunca|ningun[oa]?|prohibid[oa]s?)\b"
    r"|n['’]t\b|不(?!仅|但|只|过|同)|没有|沒有|未|勿|无法|禁止|無い|ない|ません|なし|ずに",
    regex.IGNORECASE,
)
_BREAK = regex.compile(
    r"[;:.!?。！？；，、\n]+\s*|,\s+|\s[–—-]\s|[()]"
    r"|\b(?:but|because|unless|although|though|while|whereas|which|who|that|if|when|and"
    r"|aber|sondern|weil|obwohl)\b",
    regex.IGNORECASE,
)
_ABSENCE = regex.compile(
    r"\bthere (?:is|are|was|were) (?:no|not any)\b|\bes gibt kein(?:e[mnrs]?)?\b|没有|沒有",
    regex.IGNORECASE,
)
_MIN_WORDS = 2


class Denial(StrEnum):
    MATCHES = "matches"
    MISSING = "missing"
    """The claim denies something that the evidence does not mention."""
    CONFLICT = "conflict"


@dataclass(frozen=True, slots=True)
class Clause:
    words: frozenset[str]
    is_negated: bool
    says_absent: bool = False
    """Whether it denies that there is such a thing at all: "There are no cash advances"."""


def is_negated(text: str) -> bool:
    """Return whether the text denies or forbids something."""
    return _NEGATION.search(_NO_NEGATION.sub(" ", text)) is not None


def read_clauses(text: str) -> Iterator[Clause]:
    """Split a text into the parts that may each be negated separately."""
    waiting = ""
    for part in _BREAK.split(_NO_NEGATION.sub(" ", text)):
        waiting = f"{waiting} {part}" if part else waiting
        if len(found := _content(waiting)) >= _MIN_WORDS:
            yield _read_clause(found, waiting)
            waiting = ""
    if found := _content(waiting):
        yield _read_clause(found, waiting)


def _read_clause(found: frozenset[str], text: str) -> Clause:
    return Clause(found, is_negated(text), _ABSENCE.search(text) is not None)


def _content(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in plain_words(text) if word not in FUNCTION)


def compare_denials(claim: Sequence[Clause], evidence: Sequence[Clause]) -> Denial:
    """Compare each clause of the claim with the clauses of the evidence that share most words with it."""
    found = {_compare(clause, evidence) for clause in claim}
    for worst in (Denial.CONFLICT, Denial.MISSING):
        if worst in found:
            return worst
    return Denial.MATCHES


def _compare(clause: Clause, evidence: Sequence[Clause]) -> Denial:
    absent = (other for other in evidence if other.says_absent and len(other.words) >= _MIN_WORDS)
    if not clause.is_negated and any(other.words <= clause.words for other in absent):
        return Denial.CONFLICT
    likeness = [_likeness(clause.words, other.words) for other in evidence]
    best = max(likeness, default=0.0)
    nearest = [
        other for other, alike in zip(evidence, likeness, strict=True) if alike >= best - TIE
    ]
    shared = max(
        (len(clause.words & other.words) / len(clause.words) for other in nearest), default=0
    )
    if shared < COUNTERPART:
        return Denial.MISSING if clause.is_negated else Denial.MATCHES
    agrees = any(other.is_negated == clause.is_negated for other in nearest)
    return Denial.MATCHES if agrees else Denial.CONFLICT


def _likeness(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of the one's words in the other, and of both in each other, 0 to 2."""
    common = len(one & other)
    return common / len(one) + 2 * common / (len(one) + len(other)) if common else 0.0
