"""What a research agent decides to do next, read from the JSON of a model."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

from backend.chat.agent.tool_calls import MAX_ADDRESS_CHARACTERS, MAX_QUERY_CHARACTERS
from backend.research.events import ActionKind
from backend.research.model_calls import read_texts
from backend.research.record.plan import LONGEST_QUESTION
from backend.web_search.results import Freshness

MAX_QUERIES = 3
MAX_PAGES = 4
MAX_QUESTIONS = 3
LONGEST_ANSWER = 20_000
LONGEST_PROGRAM = 20_000


class Place(StrEnum):
    """Where an agent searches."""

    DOCUMENTS = "documents"
    WEB = "web"


@dataclass(frozen=True, slots=True)
class Search:
    queries: tuple[str, ...]
    places: frozenset[Place]
    freshness: Freshness | None = None
    """How old results of the web may be; None for any age."""


@dataclass(frozen=True, slots=True)
class Visit:
    pages: tuple[str, ...]
    """Numbers of results and of links, or addresses."""


@dataclass(frozen=True, slots=True)
class Reflect:
    questions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    text: str
    """With markers."""


@dataclass(frozen=True, slots=True)
class Code:
    problem: str
    program: str


Action: TypeAlias = Search | Visit | Reflect | Answer | Code


def read_action(
    value: object, allowed: Collection[ActionKind], places: frozenset[Place]
) -> Action | None:
    """Return the action that a JSON object means; None where it is none, or one that is off."""
    match value:
        case {"action": str(name), **others} if name.strip().lower() in allowed:
            fields = {str(key): each for key, each in others.items()}
            return _read_fields(ActionKind(name.strip().lower()), fields, places)
        case _:
            return None


def _read_fields(
    kind: ActionKind, fields: Mapping[str, Any], places: frozenset[Place]
) -> Action | None:
    match kind:
        case ActionKind.SEARCH:
            listed = _find(fields, "queries", "query")
            queries = tuple(read_texts(listed, MAX_QUERIES, MAX_QUERY_CHARACTERS))
            search = Search(queries, _read_places(fields, places), _read_freshness(fields))
            return search if queries else None
        case ActionKind.VISIT:
            pages = _read_pages(_find(fields, "pages", "page", "urls", "url"))
            return Visit(pages) if pages else None
        case ActionKind.REFLECT:
            asked = _find(fields, "questions", "question")
            questions = read_texts(asked, MAX_QUESTIONS, LONGEST_QUESTION)
            return Reflect(tuple(questions))
        case ActionKind.ANSWER:
            answer = _read_text(_find(fields, "answer", "text"))
            return Answer(answer[:LONGEST_ANSWER]) if answer else None
        case ActionKind.CODE:
            program = _read_text(_find(fields, "program", "code"))[:LONGEST_PROGRAM]
            problem = _read_text(fields.get("problem"))[:LONGEST_QUESTION]
            return Code(problem, program) if program and problem else None


def _find(fields: Mapping[str, Any], *names: str) -> object:
    return next((fields[name] for name in names if name in fields), None)


def _read_places(fields: Mapping[str, Any], places: frozenset[Place]) -> frozenset[Place]:
    """Return where is searched: everywhere, unless the model names one place that there is."""
    named = _read_text(fields.get("where")).lower()
    chosen = frozenset(one for one in places if one.value == named)
    return chosen or places


def _read_freshness(fields: Mapping[str, Any]) -> Freshness | None:
    named = _read_text(fields.get("freshness")).lower()
    return next((one for one in Freshness if one.value == named), None)


def _read_text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _read_pages(value: object) -> tuple[str, ...]:
    listed = value if isinstance(value, list) else [value]
    written = [str(one).strip(" []") for one in listed if isinstance(one, str | int | float)]
    pages = dict.fromkeys(one[:MAX_ADDRESS_CHARACTERS] for one in written if one)
    return tuple(pages)[:MAX_PAGES]
