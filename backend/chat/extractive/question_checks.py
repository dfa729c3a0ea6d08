"""Check what a question demands by its form: a subject, and years, codes, names and numbers that an answer must fit.

Likeness cannot see these: a passage about 2025 is as near to a question about 2019, and one about Graz to one
about Berlin.
"""

from collections.abc import Iterable, Sequence
from itertools import islice

import regex

from backend.chat.extractive.candidate_sentences import Candidate, heading_context
from backend.chat.extractive.relevance import MAX_WORDS, subject_words
from indexing.text.analysis import add_joined_codes, join_code
from indexing.text.normalization import LETTER, fold
from indexing.text.tokenizer import contains_term, find_identifiers, words

MAX_CODES = 16
SHORT_QUESTION = 4
"""Words of its subject up to which each name of a question counts."""

_NO_POINT = regex.compile(r"(?:and|but|so)?\s*(?:what|how) about\b|und was ist mit\b")
_SPACELESS_LETTER = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}]")
_CUT_OR_ASKED = regex.compile(r"(?:\?|？|\.\.\.|…)[\"'”’»)\]」』）]*$")
_NAME = regex.compile(
    rf"(?V1)(?<=[^\s.?!:]\s+[\"'(]?)(?!I\b)\p{{Lu}}{LETTER}++(?:['’.-]{LETTER}++)*+"
)
_NAMED_NUMBER = regex.compile(
    r"\b(annex|appendix|article|band|building|chapter|class|floor|form|gate|grade|lab|level|line|model|phase|"
    r"release|room|section|stage|step|tier|type|version)s? (\d+)\b"
)


def asks_nothing(question: str) -> bool:
    """Whether a message has no subject, or nothing that is asked of it: "hello", "Why?", "What about Denver?"."""
    if next(find_identifiers(question), None):
        return False
    if _NO_POINT.match(fold(question)):
        return True
    if _SPACELESS_LETTER.search(question):
        return False
    return len(question.split()) == 1 or not subject_words(question)


def respell_codes(question: str, found: Sequence[Candidate]) -> str:
    """Write codes of the question as the passages do that were found: `E2207` as `E-2207`."""
    texts = _distinct_texts(found)
    for code in _codes(question):
        if not any(contains_term(text, code) for text in texts):
            question = question.replace(code, _spelling_of(code, texts) or code)
    return question


def _spelling_of(code: str, texts: Iterable[str]) -> str | None:
    joined = join_code(fold(code))
    spellings = (
        span.of(text)
        for text in texts
        if joined in add_joined_codes(words(text))
        for span in find_identifiers(text)
    )
    return next((each for each in spellings if join_code(fold(each)) == joined), None)


def names_unknown_codes(question: str, found: Sequence[Candidate]) -> bool:
    """Whether the question names codes and no passage that was found has any of them."""
    codes, texts = _codes(question), _distinct_texts(found)
    return bool(codes) and not any(contains_term(text, code) for code in codes for text in texts)


def _codes(question: str) -> list[str]:
    return [span.of(question) for span in islice(find_identifiers(question), MAX_CODES)]


def names_unknown_names(question: str, found: Sequence[Candidate]) -> bool:
    """Whether a short question, and no list of keywords, has a name that no passage holds which was found."""
    names = [fold(name) for name in islice(_NAME.findall(question), MAX_WORDS)]
    subject = subject_words(question)
    is_list_of_keywords = len(subject) == len(question.split())
    if not names or is_list_of_keywords or len(subject) > SHORT_QUESTION:
        return False
    held = frozenset(word for text in _distinct_texts(found) for word in words(text))
    return any(not frozenset(words(name)) & held for name in names)


def _distinct_texts(found: Sequence[Candidate]) -> list[str]:
    """Return the texts of the chunks with their titles and headings."""
    chunks = {each.chunk.key: each.chunk for each in found}
    return [f"{heading_context(chunk)}\n{chunk.embedded_text}" for chunk in chunks.values()]


def is_whole_statement(candidate: Candidate) -> bool:
    """Whether a sentence is neither a question nor cut off."""
    return _CUT_OR_ASKED.search(candidate.text) is None


def fits_numbers(question: str, candidate: Candidate) -> bool:
    """Whether a sentence speaks of the same "section 4", "lab 2" and the like, or of none."""
    asked, said = (_named_numbers(text) for text in (question, candidate.display_text))
    return all(said[noun] & numbers for noun, numbers in asked.items() if noun in said)


def _named_numbers(text: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for noun, number in _NAMED_NUMBER.findall(fold(text)):
        found.setdefault(noun, set()).add(number)
    return found
