"""Check that passages speak of what a question names: a name, a name with a number ("PEP 8"), a role or a year.

Likeness cannot see these: a passage about Graz is as near to a question as one about Berlin, and the chief
financial officer as near as the chief operating officer.

Of two documents that say different things on the same point, the one changed last is chosen; but if the question
names a year that only one of them mentions, that one, and if it asks about the past, the older one. A document
is valid from its date to that of its successor.
"""

from calendar import day_name, month_abbr, month_name
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import PurePosixPath

import numpy as np
import regex
from numpy.typing import NDArray

from backend.chat.extractive.candidate_sentences import Candidate, distinct_texts, heading_context
from backend.chat.extractive.relevance import MAX_WORDS, subject_words
from backend.search.document_versions import asks_about_the_past, without_version, years_in
from indexing.chunking.chunk import Chunk
from indexing.embedding.embedder import Vectors
from indexing.text.normalization import LETTER, fold
from indexing.text.stop_words import ENGLISH, FUNCTION_WORDS
from indexing.text.tokenizer import plain_words, words

SHORT_QUESTION = 4
"""Words of its subject up to which each name of a question counts."""
SAME_STEM = 4
"""Letters that a country and its people, or a role and its office ("finance", "financial"), have in common."""
TIE = 0.12
"""Between scores that differ by no more, the version decides."""
SAME_POINT_COSINE = 0.85
SAME_HEADING_COSINE = 0.6
SAME_POINT_OVERLAP = 0.6
SAME_HEADING_OVERLAP = 0.2

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


def drop_superseded(
    question: str,
    read: Sequence[Candidate],
    scores: NDArray[np.float64],
    vectors: Vectors | None,
) -> list[int]:
    """Return the numbers of the best candidates, best first, without those of superseded versions.

    Args:
        vectors: of the candidates, unit rows; without them similarity is measured by words.
    """
    order = [int(i) for i in np.argsort(-scores, kind="stable")]
    near = [i for i in order if scores[i] >= scores[order[0]] - TIE]
    return [
        i
        for i in near
        if not any(
            _supersedes(question, read[j], read[i]) and _make_same_point(read, vectors, i, j)
            for j in near
        )
    ]


def _supersedes(question: str, one: Candidate, other: Candidate) -> bool:
    """Whether `one` is preferred to `other` if both make the same point."""
    if one.chunk.document_id == other.chunk.document_id:
        return False
    years = years_in(question)
    named, other_named = (len(years & _years_in(each)) for each in (one, other))
    if named != other_named:
        return named > other_named
    changed, other_changed = one.chunk.updated_at, other.chunk.updated_at
    if changed is None or other_changed is None or changed == other_changed:
        return False
    return (changed < other_changed) == asks_about_the_past(question)


def _years_in(candidate: Candidate) -> frozenset[str]:
    return years_in(f"{heading_context(candidate.chunk)} {candidate.text}")


def _make_same_point(read: Sequence[Candidate], vectors: Vectors | None, i: int, j: int) -> bool:
    """Whether two sentences make the same point; under the same headings less similarity is enough."""
    one, other = read[i], read[j]
    same_heading = bool(one.chunk.heading_path) and _location(one) == _location(other)
    if vectors is not None:
        least = SAME_HEADING_COSINE if same_heading else SAME_POINT_COSINE
        return float(vectors[i] @ vectors[j]) >= least
    both, either = len(one.words & other.words), len(one.words | other.words)
    return both >= (SAME_HEADING_OVERLAP if same_heading else SAME_POINT_OVERLAP) * either


def _location(candidate: Candidate) -> tuple[str, ...]:
    """Return title and headings without what distinguishes versions."""
    chunk = candidate.chunk
    return tuple(without_version(each) for each in (chunk.title, *chunk.heading_path))


def fits_years(question: str, candidate: Candidate, found: Sequence[Candidate]) -> bool:
    """Whether each year of the question stands in the candidate's chunk or headings, or in the time it is valid."""
    chunk = candidate.chunk
    held = years_in(f"{heading_context(chunk)} {chunk.embedded_text}")
    unknown = years_in(question) - held
    return not unknown or all(_is_valid_in(int(year), chunk, found) for year in unknown)


def _is_valid_in(year: int, chunk: Chunk, found: Sequence[Candidate]) -> bool:
    began = chunk.updated_at
    if began is None:
        return False
    title = without_version(chunk.title)
    later = [
        other.updated_at.year
        for other in {each.chunk.document_id: each.chunk for each in found}.values()
        if other.updated_at and other.updated_at > began and without_version(other.title) == title
    ]
    return began.year <= year <= min(later, default=year)
