"""The address of the search page: the query and its filters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Protocol
from urllib.parse import urlencode

from backend.schemas.search import LONGEST_VALUE
from backend.search import media_type_labels
from backend.search.models import FilterKind, Spelling
from indexing.index.person_keys import person_key
from indexing.index.protocols import LABEL_SIGN, DateRange, Filters

LIMIT = 20
MOST = 200
LONGEST_QUERY = 2_000


class Parameters(Protocol):
    """Of a URL: each name may occur several times."""

    def getlist(self, key: str) -> Sequence[str]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Dates count from midnight to midnight, UTC, as the months of the index do."""

    text: str = ""
    sources: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    """By their names."""
    media_types: tuple[str, ...] = ()
    people: tuple[str, ...] = ()
    """By their keys."""
    since: date | None = None
    until: date | None = None
    """This day included."""
    limit: int = LIMIT
    spelling: Spelling = Spelling.CORRECT_UNKNOWN
    literal: frozenset[FilterKind] = frozenset()
    """Kinds of filters that words of the query are not read as."""

    @property
    def narrowed(self) -> bool:
        chosen = self.sources, self.sets, self.media_types, self.people
        return any(chosen) or bool(self.since or self.until)

    @property
    def url(self) -> str:
        parameters: Mapping[str, str | int | list[str]] = {
            "q": self.text,
            "source": list(self.sources),
            "set": list(self.sets),
            "type": list(self.type_names),
            "person": list(self.people),
            "since": self.since.isoformat() if self.since else "",
            "until": self.until.isoformat() if self.until else "",
            "limit": self.limit if self.limit != LIMIT else "",
            "spelling": self.spelling if self.spelling is Spelling.AS_WRITTEN else "",
            "literal": sorted(self.literal),
        }
        query_string = urlencode(
            {name: value for name, value in parameters.items() if value}, doseq=True
        )
        return f"/?{query_string}" if query_string else "/"

    @property
    def question_url(self) -> str:
        """The address that asks the query as a question, under the same filters."""
        return f"/ask{self.url.removeprefix('/')}"

    @property
    def type_names(self) -> tuple[str, ...]:
        """The media types as in the URL."""
        return tuple(map(media_type_labels.slug, self.media_types))

    def with_text(self, text: str) -> str:
        """Return the address of another query with the same filters."""
        return replace(self, text=text, limit=LIMIT).url

    @property
    def verbatim(self) -> str:
        """The address of the same search for the words as they were written."""
        return replace(self, spelling=Spelling.AS_WRITTEN, limit=LIMIT).url

    def without_inferred(self, kind: FilterKind) -> str:
        """Return the address of the same search in which words mean no filter of this kind."""
        return replace(self, literal=self.literal | {kind}, limit=LIMIT).url

    @property
    def unfiltered(self) -> str:
        """The address of the same search in everything."""
        return Address(text=self.text).url

    @property
    def more(self) -> str | None:
        """The address of the same search with more results; None where that is all there can be."""
        return replace(self, limit=min(MOST, 3 * self.limit)).url if self.limit < MOST else None

    def filters(self) -> Filters:
        since = _midnight(self.since) if self.since else None
        until = _midnight(self.until + timedelta(days=1)) if self.until else None
        return Filters(
            sources=frozenset(self.sources) or None,
            sets=frozenset(self.sets) or None,
            media_types=frozenset(self.media_types) or None,
            people=frozenset(self.people) or None,
            updated=DateRange(since, until),
        )


def read(parameters: Parameters) -> Address:
    """Parse an address; unknown and invalid parameters are ignored."""
    return Address(
        text=_one(parameters, "q")[:LONGEST_QUERY],
        sources=_all(parameters, "source"),
        sets=tuple(name for name in _all(parameters, "set") if not name.startswith(LABEL_SIGN)),
        media_types=tuple(map(media_type_labels.media_type, _all(parameters, "type"))),
        people=tuple(dict.fromkeys(filter(None, map(person_key, _all(parameters, "person"))))),
        since=_day(_one(parameters, "since")),
        until=_day(_one(parameters, "until")),
        limit=_number(_one(parameters, "limit"), LIMIT, MOST),
        spelling=Spelling.AS_WRITTEN
        if _one(parameters, "spelling") == Spelling.AS_WRITTEN
        else Spelling.CORRECT_UNKNOWN,
        literal=frozenset(kind for kind in FilterKind if kind in _all(parameters, "literal")),
    )


def of_filters(text: str, filters: Filters) -> Address:
    """Return the address of a search for `text` with such of the filters as an address has."""
    since, until = filters.updated.since, filters.updated.until
    return Address(
        text=text,
        sources=tuple(sorted(filters.sources or ())),
        sets=tuple(sorted(filters.sets or ())),
        media_types=tuple(sorted(filters.media_types or ())),
        people=tuple(sorted(filters.people or ())),
        since=since.date() if since else None,
        until=(until - timedelta(days=1)).date() if until else None,
    )


def toggled(values: tuple[str, ...], value: str) -> tuple[str, ...]:
    """Return the values without this one if it is there, else with it."""
    return tuple(v for v in values if v != value) if value in values else (*values, value)


def _one(parameters: Parameters, name: str) -> str:
    values = parameters.getlist(name)
    return values[-1].strip() if values else ""


def _all(parameters: Parameters, name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(_is_value, parameters.getlist(name))))[:50]


def _is_value(text: str) -> bool:
    """Return whether a filter may have this value."""
    return 0 < len(text) <= LONGEST_VALUE


def _day(text: str) -> date | None:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return day if date.min < day < date.max else None


def _number(text: str, default: int, most: int) -> int:
    return max(1, min(int(text), most)) if text.isdecimal() and len(text) < 6 else default


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
