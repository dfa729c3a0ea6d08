"""The filters of a search, and how many documents each choice leaves."""

from calendar import monthrange
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date

from backend.search import media_type_labels
from backend.web.sanitizing import shorten
from backend.web.search_url import Address, toggled
from connectors.text_cleaning import replace_controls
from indexing.index.person_keys import PersonCount, person_key
from indexing.index.protocols import Facets

UPDATED = "Updated"
FEW = 8
MOST_PEOPLE = 30
LONGEST_NAME = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    name: str
    count: int
    href: str
    """The search with this choice taken, or taken back if it is chosen."""
    chosen: bool
    under: tuple["Choice", ...] = ()
    """The months of a year."""

    @property
    def open(self) -> bool:
        return self.chosen or any(choice.chosen for choice in self.under)


@dataclass(frozen=True, slots=True)
class Group:
    name: str
    choices: tuple[Choice, ...]

    @property
    def first(self) -> tuple[tuple[int, Choice], ...]:
        """The choices that are shown at once, and those chosen, each with its number."""
        return tuple(each for each in enumerate(self.choices, 1) if self._is_seen(*each))

    @property
    def further(self) -> tuple[tuple[int, Choice], ...]:
        """The choices behind "more"."""
        return tuple(each for each in enumerate(self.choices, 1) if not self._is_seen(*each))

    def _is_seen(self, number: int, choice: Choice) -> bool:
        return number <= FEW or len(self.choices) <= FEW + 2 or choice.open


def groups(counts: Facets, address: Address) -> tuple[Group, ...]:
    """Return each group, counted under the choices of all the others, so that its own can be changed."""
    shown = (
        Group("Source", _sources(counts.sources, address)),
        Group("Set", _sets(counts.sets, address)),
        Group("Type", _types(counts.media_types, address)),
        Group("Person", _people(counts.people, address)),
        Group(UPDATED, _years(counts.months, address)),
    )
    return tuple(group for group in shown if group.choices)


def chosen(shown: tuple[Group, ...], address: Address) -> list[tuple[str, Choice]]:
    """Return all chosen filters, with the names of their groups."""
    found = [
        (group.name, choice)
        for group in shown
        for top in group.choices
        for choice in (top, *top.under)
        if choice.chosen
    ]
    is_dated = any(name == UPDATED for name, _ in found)
    if (address.since or address.until) and not is_dated:
        found.append((UPDATED, _chosen_dates(address)))
    return found


def _chosen_dates(address: Address) -> Choice:
    """Return the chosen dates if they are not one of the months or years that are counted."""
    name = f"{address.since or 'any time'} to {address.until or 'today'}"
    href = _first_page(address, since=None, until=None)
    return Choice(name=name, count=0, href=href, chosen=True)


def _sources(counts: Mapping[str, int], address: Address) -> tuple[Choice, ...]:
    return tuple(
        Choice(
            name=replace_controls(name),
            count=count,
            href=_first_page(address, sources=toggled(address.sources, name)),
            chosen=name in address.sources,
        )
        for name, count in _by_count(counts, address.sources)
    )


def _sets(counts: Mapping[str, int], address: Address) -> tuple[Choice, ...]:
    return tuple(
        Choice(
            name=replace_controls(name),
            count=count,
            href=_first_page(address, sets=toggled(address.sets, name)),
            chosen=name in address.sets,
        )
        for name, count in _by_count(counts, address.sets)
    )


def _types(counts: Mapping[str, int], address: Address) -> tuple[Choice, ...]:
    return tuple(
        Choice(
            name=replace_controls(media_type_labels.display_name(media_type)),
            count=count,
            href=_first_page(address, media_types=toggled(address.media_types, media_type)),
            chosen=media_type in address.media_types,
        )
        for media_type, count in _by_count(counts, address.media_types)
    )


def _people(counts: Mapping[str, PersonCount], address: Address) -> tuple[Choice, ...]:
    shown = {
        own: one
        for rank, (own, one) in enumerate(counts.items())
        if rank < MOST_PEOPLE or own in address.people
    }
    shown |= {own: PersonCount(own, 0) for own in address.people if own not in counts}
    namesakes = Counter(one.name for one in shown.values())
    return tuple(
        Choice(
            name=shorten(_person_label(own, one.name, namesakes[one.name]), LONGEST_NAME),
            count=one.documents,
            href=_first_page(address, people=toggled(address.people, own)),
            chosen=own in address.people,
        )
        for own, one in shown.items()
    )


def _person_label(own: str, name: str, namesakes: int) -> str:
    """Return the name; with the address, if there is one and others have the same name."""
    return name if namesakes == 1 or person_key(name) == own else f"{name} ({own})"


def _years(months: Mapping[str, int], address: Address) -> tuple[Choice, ...]:
    """Return the years, newest first, each with its months."""
    years: dict[str, dict[str, int]] = {}
    for month in sorted(months, reverse=True):
        years.setdefault(month[:4], {})[month] = months[month]
    return tuple(
        _period(address, year, date(int(year), 1, 1), date(int(year), 12, 31), of_year)
        for year, of_year in years.items()
    )


def _period(
    address: Address, name: str, first: date, last: date, months: Mapping[str, int]
) -> Choice:
    """Return a year with its months, or a month alone."""
    is_chosen = (address.since, address.until) == (first, last)
    since, until = (None, None) if is_chosen else (first, last)
    return Choice(
        name=name,
        count=sum(months.values()),
        href=_first_page(address, since=since, until=until),
        chosen=is_chosen,
        under=tuple(_month(address, month, count) for month, count in months.items())
        if len(name) == len("2026")
        else (),
    )


def _month(address: Address, month: str, count: int) -> Choice:
    first = date.fromisoformat(f"{month}-01")
    last = first.replace(day=monthrange(first.year, first.month)[1])
    return _period(address, f"{first:%B %Y}", first, last, {month: count})


def _by_count(counts: Mapping[str, int], chosen: tuple[str, ...]) -> list[tuple[str, int]]:
    """Sort choices, most first; what is chosen stays, even where nothing is left of it."""
    known = dict.fromkeys(chosen, 0) | dict(counts)
    return sorted(known.items(), key=lambda item: (-item[1], item[0]))


def _first_page(address: Address, **changes: object) -> str:
    return replace(address, limit=Address().limit, **changes).url  # type: ignore[arg-type]
