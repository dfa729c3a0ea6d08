"""Check that passages speak of what a question names: by a name, a name with a number ("PEP 8"), or a role.

Likeness cannot see these: a passage about Graz is as near to a question as one about Berlin, and the chief
financial officer as near as the chief operating officer.
"""

from calendar import day_name, month_abbr, month_name
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import PurePosixPath

import regex

from backend.chat.extractive.candidate_sentences import Candidate, distinct_texts, heading_context
from backend.chat.extractive.relevance import MAX_WORDS, subject_words
from backend.search.document_versions import years_in
from indexing.text.normalization import LETTER, fold
from indexing.text.stop_words import ENGLISH, FUNCTION_WORDS
from indexing.text.tokenizer import plain_words, words

SHORT_QUESTION = 4
"""Words of its subject up to which each name of a question counts."""
SAME_STEM = 4
"""Letters that a country and its people, or a role and its office ("finance", "financial"), have in common."""

_NAME = rf"(?V1)\p{{Lu}}{LETTER}++(?:['’.-]{LETTER}++)*+"
_NAMES = regex.compile(
    rf"(?<=[^\s.?!:]\s+[\"'(]?)(?!I\b){_NAME}(?:\s(?:of|and|or|&)\s(?:the\s)?{_NAME})*+"
)
_NUMBERED_NAME = regex.compile(
    rf"(?V1)(?<![\w.])(?P<name>(?<=[^\s.?!:]\s)\p{{Lu}}{LETTER}++|\p{{Lu}}{{2,}})\s(?P<number>\d{{1,6}})(?![\w%]|[.,:/]\d)"
)
"""At the beginning of a sentence, where any word has a capital, an abbreviation alone."""
_NUMBERED = regex.compile(r"(\p{L}+)[\s:#._-]{0,3}0*(\d+)(?!\d)")
_DATE_NAMES = frozenset(name.casefold() for name in (*month_name, *month_abbr, *day_name) if name)
_INITIALS = regex.compile(r"\p{Lu}{2,5}")
_ROLE_LIST = """
head chief director manager officer president chair chairman chairwoman chairperson lead leader boss supervisor secretary
minister
"""
_ROLES = frozenset(_ROLE_LIST.split())
_RANK_LIST = "executive deputy vice first last final only current former new old next present"
_GENERIC = _ROLES | frozenset(_RANK_LIST.split())
_ROLE = rf"(?:{'|'.join(sorted(_ROLES, key=len, reverse=True))})"
_HOLDER_ASKED = regex.compile(
    rf"\bwho(?:'s| is| was) (?:the|our|your) (?P<role>(?:[\w&-]+ ){{0,3}}{_ROLE}(?: (?:of|for) (?:the )?[\w&-]+)?|c[a-z]o)\b"
)
_FUNCTION_WORDS = ENGLISH | FUNCTION_WORDS["English"]


def names_unknown_names(question: str, found: Sequence[Candidate]) -> bool:
    """Whether a short question, and no list of keywords, has a name that no passage holds which was found."""
    names = list(islice(_NAMES.findall(question), MAX_WORDS))
    subject = subject_words(question)
    is_list_of_keywords = len(subject) == len(question.split())
    if not names or is_list_of_keywords or len(subject) > SHORT_QUESTION:
        return False
    texts = distinct_texts(found)
    held = frozenset(word for text in texts for word in words(text))
    return not all(_is_held(name, held) or _is_spelled_out(name, texts) for name in names)


def _is_held(name: str, held: frozenset[str]) -> bool:
    """Whether some word of a name ("Bendigo and Geelong") is held, or a word that begins alike ("Indian", "India")."""
    parts = frozenset(words(name)) - _FUNCTION_WORDS
    return not parts or any(_has_stem(part, held) for part in parts)


def _has_stem(word: str, held: Iterable[str]) -> bool:
    begins = word[: max(SAME_STEM, len(word) - 1)]
    return word in held or (
        len(word) > SAME_STEM and any(other.startswith(begins) for other in held)
    )


def _is_spelled_out(name: str, texts: Iterable[str]) -> bool:
    """Whether words one after the other begin with the letters of an abbreviation."""
    return _INITIALS.fullmatch(name) is not None and any(
        fold(name) in "".join(_initials(text)) for text in texts
    )


def _initials(text: str) -> Iterator[str]:
    return (word[0] for word in plain_words(text) if word not in _FUNCTION_WORDS)


def holds_every_numbered_name(question: str, candidate: Candidate) -> bool:
    """Whether a passage has all names with a number that the question has, such as "PEP 8" and "Apollo 11".

    Each may stand in the passage, its headings or its file name. A year is not the number of a name:
    `fits_years` judges it.
    """
    wanted = {
        (fold(found["name"]), found["number"].lstrip("0"))
        for found in _NUMBERED_NAME.finditer(question)
        if fold(found["name"]) not in _DATE_NAMES | _FUNCTION_WORDS
    }
    wanted = {(name, number) for name, number in wanted if not years_in(number)}
    if not wanted:
        return True
    chunk = candidate.chunk
    file = PurePosixPath(chunk.document_id).name
    text = f"{file}\n{heading_context(chunk)}\n{chunk.embedded_text}"
    return wanted <= set(_NUMBERED.findall(fold(text)))


def holds_role(question: str, candidate: Candidate) -> bool:
    """Whether a sentence or its headings have what tells the role asked for from others, if one is asked for.

    "Head" and "chief" tell nothing; of a chief operating officer "operating" does. Of a table only the row
    counts, of a text the whole passage.
    """
    asked = _HOLDER_ASKED.search(fold(question))
    if asked is None:
        return True
    chunk = candidate.chunk
    is_row = candidate.text.startswith("|")
    text = f"{heading_context(chunk)}\n{candidate.text if is_row else chunk.embedded_text}"
    if regex.fullmatch(r"c[a-z]o", asked["role"]):
        # "Chief executive" is a CEO, too.
        return asked["role"] in plain_words(text) or asked["role"][:2] in "".join(_initials(text))
    wanted = [word for word in plain_words(asked["role"]) if word not in _GENERIC | _FUNCTION_WORDS]
    held = frozenset(plain_words(text))
    return all(_has_stem(word, held) for word in wanted)
