"""The page that asks: who answers, its filters, and the questions that it greets with."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

from backend.chat.passages import KEPT_REASON_TEXTS
from backend.composition.chat import ChatService
from backend.schemas.search import FiltersBody
from backend.search import media_type_labels
from backend.store.database import Database
from backend.store.documents import documents
from backend.web.pages.start_page import HANDBOOK_QUESTIONS, has_handbook
from backend.web.sanitizing import shorten
from backend.web.search_url import Address
from connectors.access import Readers
from connectors.text_cleaning import replace_controls

EXAMPLES = 4
_LONGEST_TITLE = 80


@dataclass(frozen=True, slots=True)
class FilterChip:
    name: str
    value: str
    href: str
    """The same question without this filter."""


def name_model(chat: ChatService) -> str | None:
    """Return by what name people know the model that answers; None where none does."""
    model = chat.model
    return None if model is None else model.settings.shown_name


def list_chips(address: Address) -> tuple[FilterChip, ...]:
    return tuple(_chips(address))


def _chips(address: Address) -> Iterator[FilterChip]:
    for source in address.sources:
        left = tuple(one for one in address.sources if one != source)
        yield FilterChip("Source", source, replace(address, sources=left).question_url)
    for name in address.sets:
        left = tuple(one for one in address.sets if one != name)
        yield FilterChip("Set", name, replace(address, sets=left).question_url)
    for media_type in address.media_types:
        left = tuple(one for one in address.media_types if one != media_type)
        label = media_type_labels.display_name(media_type)
        yield FilterChip("Type", label, replace(address, media_types=left).question_url)
    for person in address.people:
        left = tuple(one for one in address.people if one != person)
        yield FilterChip("Person", person, replace(address, people=left).question_url)
    if address.since:
        yield FilterChip("From", f"{address.since}", replace(address, since=None).question_url)
    if address.until:
        yield FilterChip("To", f"{address.until}", replace(address, until=None).question_url)


def reasons_json() -> str:
    """Return the sentences that say why passages are shown, by reason, for the scripts that show answers that were kept."""
    return json.dumps({reason.value: text for reason, text in KEPT_REASON_TEXTS.items()})


def filters_json(address: Address) -> str:
    """Return the filters of an address as the API takes them."""
    chosen = {
        "sources": address.sources,
        "sets": address.sets,
        "media_types": address.media_types,
        "people": address.people,
        "since": address.since and address.since.isoformat(),
        "until": address.until and address.until.isoformat(),
    }
    filters = FiltersBody.model_validate({name: value for name, value in chosen.items() if value})
    return filters.model_dump_json(exclude_none=True)


def list_examples(database: Database, readers: Readers) -> tuple[str, ...]:
    """Return questions that documents of the asker answer."""
    if has_handbook(database):
        return HANDBOOK_QUESTIONS[:EXAMPLES]
    titles = [one.title for one in documents.list_readable(database, readers, "", EXAMPLES)]
    shown = dict.fromkeys(shorten(replace_controls(title), _LONGEST_TITLE) for title in titles)
    return tuple(f"What does “{title}” say?" for title in shown if title)
