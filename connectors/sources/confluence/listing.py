"""The listing of a site, which resumes after any content that was listed."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

from connectors.connector import Checkpoint, ListingItem, load_checkpoint
from connectors.sources.confluence.models import Content, ContentKind, Space
from connectors.sources.confluence.sync import SyncRun

_KINDS = tuple(ContentKind)


@dataclass(frozen=True, slots=True)
class ListingPosition:
    """How far a listing has come. Spaces are listed in the order of their ids, each kind by kind."""

    space: str = ""
    kind: ContentKind = _KINDS[0]
    cursor: str = ""
    """From where the page is requested that is being listed; empty for the first."""
    listed: str = ""
    """The id of the last content of that page that was listed; empty if none."""

    @classmethod
    def parse(cls, since: Checkpoint | None) -> Self:
        """Parse a checkpoint; one that is not valid starts from the beginning."""
        match load_checkpoint(since):
            case {"confluence listing": [str(space), str(kind), str(cursor), str(listed)]} if (
                kind in _KINDS
            ):
                return cls(space, ContentKind(kind), cursor, listed)
            case _:
                return cls()

    def to_checkpoint(self) -> Checkpoint:
        position = [self.space, str(self.kind), self.cursor, self.listed]
        return Checkpoint(json.dumps({"confluence listing": position}))


def list_documents(run: SyncRun, since: Checkpoint | None) -> Iterator[ListingItem]:
    """Yield the documents of all spaces, with a checkpoint after those of each content.

    The attachments of a content take a request each time: a page of contents could exceed what a site allows at once.
    """
    start = ListingPosition.parse(since)
    for space in run.spaces:
        if _order(space.id) < _order(start.space):
            continue
        for kind in _KINDS:
            if space.id != start.space or _KINDS.index(kind) > _KINDS.index(start.kind):
                yield from _list_kind(run, space, ListingPosition(space.id, kind))
            elif kind is start.kind:
                yield from _list_kind(run, space, start)


def _list_kind(run: SyncRun, space: Space, start: ListingPosition) -> Iterator[ListingItem]:
    position = start
    for contents, following in run.list_contents(space, start.kind, start.cursor):
        remaining = _skip_listed(contents, position.listed)
        for content, documents in run.reader.list_documents(remaining):
            yield from documents
            position = replace(position, listed=content.id)
            yield position.to_checkpoint()
        if following is not None:
            position = replace(position, cursor=following, listed="")
            yield position.to_checkpoint()


def _skip_listed(contents: Sequence[Content], listed: str) -> Sequence[Content]:
    """Return what comes after a content; everything if it is not on the page any more."""
    ids = [content.id for content in contents]
    return contents[ids.index(listed) + 1 :] if listed in ids else contents


def _order(space_id: str) -> tuple[int, str]:
    """Order ids as `SyncRun.spaces` does."""
    return (len(space_id), space_id)
