"""Parse YAML front matter of Markdown files."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import yaml

from connectors.document import Metadata, Person
from connectors.extraction.result import parse_people
from connectors.text_cleaning import parse_time, to_one_line

_FENCED = re.compile(r"\s*---[ \t]*\n(.*?\n)?(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_LARGEST = 65_536
_CREATED = ("created", "created_at", "date", "published")
_UPDATED = ("updated", "updated_at", "last_updated", "lastmod", "modified", "last_modified")
_AUTHORS = ("author", "authors", "owner", "owners")
_KNOWN_FIELDS = {"title", *_CREATED, *_UPDATED, *_AUTHORS}


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontMatter:
    title: str | None = None
    metadata: Metadata = field(default_factory=dict)
    authors: tuple[Person, ...] = ()
    created_at: datetime | None = None
    updated_at: datetime | None = None


def split_front_matter(text: str) -> tuple[FrontMatter, int]:
    """Parse the front matter, and return it with the start of the text after it.

    What only looks like front matter (not YAML, or without keys) stays in the text.
    """
    match = _FENCED.match(text[:_LARGEST])
    fields = _load_fields(match[1] or "") if match else None
    if match is None or fields is None:
        return FrontMatter(), 0
    return _make_front_matter(fields), match.end()


def _load_fields(yaml_text: str) -> Mapping[str, object] | None:
    try:
        loaded = yaml.load(yaml_text, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError):
        return None
    if not isinstance(loaded, dict):
        return None
    return {
        to_one_line(key).lower(): value for key, value in loaded.items() if isinstance(key, str)
    }


def _make_front_matter(fields: Mapping[str, object]) -> FrontMatter:
    return FrontMatter(
        title=next(_iterate_texts(fields.get("title")), None),
        metadata=_make_metadata(fields),
        authors=parse_people(name for key in _AUTHORS for name in _iterate_texts(fields.get(key))),
        created_at=_find_time(fields, _CREATED),
        updated_at=_find_time(fields, _UPDATED),
    )


def _make_metadata(fields: Mapping[str, object]) -> Metadata:
    found = {
        key: tuple(_iterate_texts(value))
        for key, value in fields.items()
        if key not in _KNOWN_FIELDS
    }
    return {key: texts[0] if len(texts) == 1 else texts for key, texts in found.items() if texts}


def _iterate_texts(value: object) -> Iterator[str]:
    """Yield a text or the texts of a list; other values are ignored."""
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, str) and (text := to_one_line(item)):
            yield text


def _find_time(fields: Mapping[str, object], names: tuple[str, ...]) -> datetime | None:
    texts = (text for name in names for text in _iterate_texts(fields.get(name)))
    return next(filter(None, map(parse_time, texts)), None)
