"""Let a language model select the sections to read, and how much text around each."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from backend.search.llm_protocol import Complete, CompletionError
from backend.search.models import InferenceSection
from backend.search.prompts import selection_prompt, strip_reasoning
from backend.search.sections import (
    JSON_JOINT,
    MAX_SECTIONS,
    ContextSize,
    SelectedSection,
    describe_document,
    to_json,
)
from indexing.chunking.chunk import Chunk
from indexing.embedding.token_counting import CountTokens
from indexing.runtime.deadline import Deadline

FEW_SECTIONS = 3
"""With so few, all are read and the model is not asked."""
MIN_EXACT_SECTIONS = 3
"""So many exact matches are kept whatever the model chooses, and more where there is space."""
MAX_JSON_STARTS = 100
"""Positions of an answer at which JSON is tried; each that is not JSON may cost a deep recursion."""
RELEVANCE_CHUNKS = 3
LONG_TOKEN = 16
"""Characters; hardly any token is longer, so a text of so many for each token cannot fit."""

_JSON_START = re.compile(r"[\[{]")


@dataclass(frozen=True, slots=True)
class SectionChoice:
    """A model's choice for the section with this number; no context means not relevant."""

    number: int
    context: ContextSize | None


def trim_sections_by_tokens(
    sections: Iterable[InferenceSection], budget: int, count_tokens: CountTokens
) -> list[InferenceSection]:
    """Return the sections whose excerpts fit the budget together, in order.

    A section that does not fit is skipped; a shorter one after it may still fit.
    """
    fitting: list[InferenceSection] = []
    left = budget
    for section in sections:
        chunks = select_chunks_for_relevance(section)
        excerpt = to_json(excerpt_for_model(section, len(fitting), chunks))
        if len(excerpt) > left * LONG_TOKEN:
            continue
        cost = count_tokens(excerpt) + JSON_JOINT
        if cost <= left:
            fitting.append(section)
            left -= cost
    return fitting


def select_chunks_for_relevance(section: InferenceSection) -> tuple[Chunk, ...]:
    """Select the best chunk of a section and its neighbors, three at most."""
    best = section.best.chunk.position - section.start
    last_start = max(0, len(section.chunks) - RELEVANCE_CHUNKS)
    start = min(max(0, best - RELEVANCE_CHUNKS // 2), last_start)
    return section.chunks[start : start + RELEVANCE_CHUNKS]


def excerpt_for_model(
    section: InferenceSection, number: int, chunks: Sequence[Chunk]
) -> dict[str, object]:
    """Describe a section to the model that selects, by its number in the list."""
    return {
        "id": number,
        **describe_document(section),
        "content": "\n".join(chunk.text for chunk in chunks),
    }


def select_sections_for_expansion(
    queries: Sequence[str],
    sections: Sequence[InferenceSection],
    complete: Complete,
    deadline: Deadline,
) -> tuple[SelectedSection, ...]:
    """Let the model choose, in one call, up to ten sections and how much to read around each.

    Sections that it calls not relevant or does not name are left out. Those that hold exactly what
    the asker wrote stay, at least as they are, and come first.

    Args:
        queries: what was searched, the asker's own message first.

    Raises:
        CompletionError: the model gave no answer, or one that names no existing section.
    """
    excerpts = [
        excerpt_for_model(section, number, select_chunks_for_relevance(section))
        for number, section in enumerate(sections)
    ]
    answer = complete(selection_prompt(queries, excerpts, MAX_SECTIONS), deadline)
    return _apply_choices(sections, parse_choices(answer, len(sections)))


def _apply_choices(
    sections: Sequence[InferenceSection], choices: Sequence[SectionChoice]
) -> tuple[SelectedSection, ...]:
    contexts = {choice.number: choice.context for choice in choices}
    chosen = [number for number, context in contexts.items() if context][:MAX_SECTIONS]
    exact = _keep_exact_matches(sections, chosen)
    order = exact + [number for number in chosen if number not in exact]
    return tuple(SelectedSection(sections[n], contexts.get(n) or ContextSize.AS_IS) for n in order)


def _keep_exact_matches(sections: Sequence[InferenceSection], chosen: Sequence[int]) -> list[int]:
    """Return the exact matches that were chosen, and the best of the others where there is space."""
    exact = [n for n, section in enumerate(sections) if section.best.evidence.exact]
    free = max(MIN_EXACT_SECTIONS, MAX_SECTIONS - len(chosen))
    kept = [n for n in exact if n not in chosen][:free]
    return sorted([*kept, *(n for n in exact if n in chosen)])


def parse_choices(answer: str, sections: int) -> list[SectionChoice]:
    """Parse a model's choices among sections numbered from 0; the first choice for each counts.

    Raises:
        CompletionError: no JSON of the expected form, or none of its numbers exists.
    """
    entries = _find_entries(strip_reasoning(answer))
    known: dict[int, SectionChoice] = {}
    for choice in map(_parse_choice, entries):
        if choice and 0 <= choice.number < sections:
            known.setdefault(choice.number, choice)
    if entries and not known:
        raise CompletionError("the language model chose sections that do not exist")
    return list(known.values())


def _parse_choice(entry: object) -> SectionChoice | None:
    match entry:
        case {"id": bool()}:
            return None
        case {"id": int(number), **rest}:
            return SectionChoice(number, _parse_context(rest.get("read")))
        case {"id": str(digits), **rest} if digits.isdecimal() and len(digits) < 6:
            return SectionChoice(int(digits), _parse_context(rest.get("read")))
        case _:
            return None


def _parse_context(value: object) -> ContextSize | None:
    match str(value).lower().replace(" ", "_").replace("-", "_"):
        case "not_relevant":
            return None
        case "adjacent":
            return ContextSize.ADJACENT
        case "wide":
            return ContextSize.WIDE
        case _:
            return ContextSize.AS_IS


def _find_entries(answer: str) -> list[object]:
    for value in _json_values(answer):
        match value:
            case {"sections": [*entries]}:
                return entries
            case [{"id": _}, *_] as entries:
                return list(entries)
            case _:
                pass
    raise CompletionError("the language model chose sections in an unknown format")


def _json_values(text: str) -> Iterator[object]:
    """Yield the JSON objects and lists in `text`, whatever is written around them."""
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
