"""Which sections are read, and how much around each."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from backend.search.budget import shown_chunks
from backend.search.llm_protocol import Complete, CompletionFailed
from backend.search.models import InferenceSection
from backend.search.prompts import selection_prompt, spoken
from backend.search.result_format import excerpt
from indexing.runtime.deadline import Deadline

MAX_SECTIONS = 10
FEW_SECTIONS = 3
"""With so few there is nothing to choose."""
MIN_EXACT_SECTIONS = 3
"""So many exact matches stay whatever the model says of them, and more where places are free."""
MAX_JSON_STARTS = 100
"""Places of an answer at which JSON is looked for; each that is none may cost a deep descent."""

_JSON_START = re.compile(r"[\[{]")


class Reading(Enum):
    """How much of a document around a section is read."""

    AS_IS = "as_is"
    ADJACENT = "adjacent"
    WIDE = "wide"

    @property
    def tokens(self) -> int:
        """About so many before it, and so many after it."""
        return {Reading.AS_IS: 0, Reading.ADJACENT: 1_000, Reading.WIDE: 2_500}[self]


@dataclass(frozen=True, slots=True)
class Selection:
    section: InferenceSection
    reading: Reading


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a model says of the section with this number; no reading means not relevant."""

    number: int
    reading: Reading | None


def select_best(sections: Sequence[InferenceSection], reading: Reading) -> tuple[Selection, ...]:
    """Without a model's choice: the best by score."""
    return tuple(Selection(section, reading) for section in sections[:MAX_SECTIONS])


def select_sections_for_expansion(
    queries: Sequence[str],
    sections: Sequence[InferenceSection],
    complete: Complete,
    deadline: Deadline,
) -> tuple[Selection, ...]:
    """Let the model choose, in one call, up to ten sections and how to read each.

    Sections that it calls not relevant or does not name are gone. Those that hold exactly what
    the asker wrote stay, at least as they are, and stand first.

    Args:
        queries: what was searched, the asker's own message first.

    Raises:
        CompletionFailed: it gave no answer, or one that names no section there is.
    """
    shown = [
        excerpt(section, number, shown_chunks(section)) for number, section in enumerate(sections)
    ]
    answer = complete(selection_prompt(queries, shown, MAX_SECTIONS), deadline)
    return _choose(sections, verdicts(answer, len(sections)))


def _choose(sections: Sequence[InferenceSection], said: Sequence[Verdict]) -> tuple[Selection, ...]:
    readings = {verdict.number: verdict.reading for verdict in said}
    chosen = [number for number, reading in readings.items() if reading][:MAX_SECTIONS]
    tier = _exact_tier(sections, chosen)
    order = tier + [number for number in chosen if number not in tier]
    return tuple(Selection(sections[n], readings.get(n) or Reading.AS_IS) for n in order)


def _exact_tier(sections: Sequence[InferenceSection], chosen: Sequence[int]) -> list[int]:
    """The exact matches that stay: those chosen, and of the others the best for the free places."""
    exact = [n for n, section in enumerate(sections) if section.best.evidence.exact]
    free = max(MIN_EXACT_SECTIONS, MAX_SECTIONS - len(chosen))
    kept = [n for n in exact if n not in chosen][:free]
    return sorted([*kept, *(n for n in exact if n in chosen)])


def verdicts(answer: str, sections: int) -> list[Verdict]:
    """What a model's answer says of `sections` sections, numbered from 0; the first word counts.

    Raises:
        CompletionFailed: no JSON of the wanted form, or none of its numbers exists.
    """
    entries = _entries(spoken(answer))
    known: dict[int, Verdict] = {}
    for verdict in map(_verdict, entries):
        if verdict and 0 <= verdict.number < sections:
            known.setdefault(verdict.number, verdict)
    if entries and not known:
        raise CompletionFailed("the language model chose sections that do not exist")
    return list(known.values())


def _verdict(entry: object) -> Verdict | None:
    match entry:
        case {"id": bool()}:
            return None
        case {"id": int(number), **rest}:
            return Verdict(number, _reading(rest.get("read")))
        case {"id": str(digits), **rest} if digits.isdecimal() and len(digits) < 6:
            return Verdict(int(digits), _reading(rest.get("read")))
        case _:
            return None


def _reading(word: object) -> Reading | None:
    match str(word).lower().replace(" ", "_").replace("-", "_"):
        case "not_relevant":
            return None
        case "adjacent":
            return Reading.ADJACENT
        case "wide":
            return Reading.WIDE
        case _:
            return Reading.AS_IS


def _entries(answer: str) -> list[object]:
    for value in _json_values(answer):
        match value:
            case {"sections": [*entries]}:
                return entries
            case [{"id": _}, *_] as entries:
                return list(entries)
            case _:
                pass
    raise CompletionFailed("the language model chose sections in a form that cannot be read")


def _json_values(text: str) -> Iterator[object]:
    """The JSON objects and lists that begin in `text`, whatever stands around them."""
    decoder, start = json.JSONDecoder(), 0
    for _ in range(MAX_JSON_STARTS):
        found = _JSON_START.search(text, start)
        if not found:
            return
        try:
            value, start = decoder.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            start = found.end()
        else:
            yield value
