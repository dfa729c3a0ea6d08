"""The files of a branch as documents, kept in step by its history.

What a file is called, where it is read by people and who may read it differs from source to source:
that is told by a `Shelf`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

from connectors.batched import portions
from connectors.connector import Change, Deletion, Known, Unreadable
from connectors.document import Access, Document
from connectors.extraction.media_types import HEAD, media_type_of
from connectors.extraction.registry import can_read, extract, not_read_yet
from connectors.extraction.result import CannotRead, Extracted, shortened
from connectors.files.paths import Parts, own_id, parts_of, readable, titled
from connectors.git_repository.commit_history import Touch
from connectors.git_repository.progress import Arrived, Place, Stage
from connectors.git_repository.repository import Copy
from connectors.git_repository.tree import Entry, Gone

READING = 1
"""Goes up when files read again would say something else than before."""

_FILES_A_CHECKPOINT = 200
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_NO_TOUCH = Touch(None, ())

AccessOf: TypeAlias = Callable[[Parts], Access]
"""Who may read the file there."""


def named_by_itself(parts: Parts, extracted: Extracted) -> str:
    """The title of a file: as it states it, else by its name."""
    return extracted.title or titled(parts[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    source: str
    prefix: str
    """The ids of its documents begin with it; the path follows."""
    parents: tuple[str, ...]
    """Before the folders of the path."""
    metadata: Mapping[str, str]
    """Before the path, and what the file says of itself."""
    takes: Callable[[Parts], bool]
    """Whether the file there is read."""
    link: Callable[[Parts, str], str]
    """From the path and the name of the branch."""
    within: str = ""
    """Before the path, where people are told of a file that cannot be read."""
    title: Callable[[Parts, Extracted], str] = named_by_itself
    largest_file: int
    """Bytes."""

    def id_of(self, parts: Parts) -> str:
        return f"{self.prefix}{own_id(parts)}"


def followed(
    copy: Copy,
    shelf: Shelf,
    access_at: Callable[[str], AccessOf],
    began: Place | None,
    known: Known,
) -> Iterator[Change | Place]:
    """What changed since `began`, with the place that was come to every 200 files; the last one is where
    the branch ends.

    A run that was broken off is first taken to the end of its own commit. Where the last commit is no
    longer to be had, all files are compared with what Quarry holds.

    Args:
        access_at: the rules of a commit.
    """
    stages = _stages(copy, began)
    for stage in stages:
        yield from _along(_Reader(copy, shelf, access_at(stage.commit)), stage, known)
    if not stages:
        yield Arrived(copy.commit)


def again(
    copy: Copy, shelf: Shelf, access: AccessOf, document_ids: Sequence[str]
) -> Iterator[Change]:
    """These anew, changed or not; a Deletion for each that is not there."""
    reader = _Reader(copy, shelf, access)
    for ids in portions(document_ids, _FILES_A_CHECKPOINT):
        yield from reader.again(ids)


def listed(copy: Copy, shelf: Shelf) -> Iterator[Parts]:
    """All that is read, in a stable order; no content comes over the network."""
    return (one.parts for one in copy.files.of(copy.commit) if shelf.takes(one.parts))


def _along(reader: "_Reader", stage: Stage, known: Known) -> Iterator[Change | Place]:
    reader.copy.learn(stage.commit, stage.base)
    items = (one for one in _between(reader.copy, stage) if reader.shelf.takes(one.parts))
    done = stage.done
    for batch in portions(islice(items, done, None), _FILES_A_CHECKPOINT):
        yield from reader.batch(batch, known)
        done += len(batch)
        yield Stage(base=stage.base, commit=stage.commit, done=done)
    yield Arrived(stage.commit)


@dataclass(frozen=True, slots=True)
class _Reader:
    copy: Copy
    shelf: Shelf
    access: AccessOf

    def batch(self, batch: Sequence[Entry | Gone], known: Known) -> Iterator[Change]:
        held = known([self.shelf.id_of(item.parts) for item in batch])
        wanted = [
            item
            for item in batch
            if isinstance(item, Entry) and held.get(self.shelf.id_of(item.parts)) != _version(item)
        ]
        gone = (item for item in batch if isinstance(item, Gone))
        yield from (Deletion(self.shelf.id_of(item.parts)) for item in gone)
        yield from self._entries(wanted)

    def again(self, ids: Sequence[str]) -> Iterator[Change]:
        asked = (parts_of(one.removeprefix(self.shelf.prefix)) for one in ids)
        paths = [parts for parts in asked if parts is not None]
        entries = self.copy.files.at(self.copy.commit, paths)
        found = [one for one in entries if self.shelf.takes(one.parts)]
        there = {self.shelf.id_of(one.parts) for one in found}
        yield from (Deletion(one) for one in ids if one not in there)
        if found:
            self.copy.learn_of([one.parts for one in found])
            yield from self._entries(found)

    def _entries(self, entries: Sequence[Entry]) -> Iterator[Document | Unreadable]:
        self.copy.bring([entry.blob for entry in entries])
        touches = self.copy.history.of([entry.parts for entry in entries])
        for entry in entries:
            try:
                yield self._document(entry, touches.get(entry.parts, _NO_TOUCH))
            except CannotRead as error:
                yield self._unreadable(entry, str(error))

    def _document(self, entry: Entry, touch: Touch) -> Document:
        """Raises CannotRead."""
        shelf, data = self.shelf, self._content(entry)
        media_type = media_type_of(entry.parts[-1], data[:HEAD])
        if data and not can_read(media_type):
            raise not_read_yet(media_type)
        extracted = extract(data, media_type)
        path = {"path": readable(entry.parts)}
        return Document(
            id=shelf.id_of(entry.parts),
            source=shelf.source,
            title=shortened(shelf.title(entry.parts, extracted)),
            sections=extracted.sections,
            link=shelf.link(entry.parts, self.copy.branch),
            media_type=media_type,
            access=self.access(entry.parts),
            version=_version(entry),
            metadata={**shelf.metadata, **path, **extracted.metadata},
            owners=extracted.authors or touch.authors,
            created_at=extracted.created_at,
            updated_at=touch.at or extracted.updated_at,
            parents=(*shelf.parents, *(readable([part]) for part in entry.parts[:-1])),
        )

    def _content(self, entry: Entry) -> bytes:
        """Raises CannotRead."""
        size, largest = self.copy.objects.size(entry.blob), self.shelf.largest_file
        if size is None:
            raise CannotRead("the server does not give its content")
        if size > largest:
            raise CannotRead(f"{size:,} bytes; the limit is {largest:,}")
        data = self.copy.objects.content(entry.blob)
        if data.startswith(_LFS_POINTER):
            raise CannotRead("its content is kept in Git LFS, which Quarry does not read yet")
        return data

    def _unreadable(self, entry: Entry, reason: str) -> Unreadable:
        return Unreadable(
            document_id=self.shelf.id_of(entry.parts),
            item=f"{self.shelf.within}{readable(entry.parts)}",
            reason=reason,
            link=self.shelf.link(entry.parts, self.copy.branch),
        )


def _stages(copy: Copy, began: Place | None) -> list[Stage]:
    """From where a run began to where the branch ends now."""
    whole = [Stage(base=None, commit=copy.commit)]
    match began:
        case Stage() if all(map(copy.has, filter(None, (began.base, began.commit)))):
            return [began, *_stages(copy, Arrived(began.commit))]
        case Arrived(commit) if copy.has(commit):
            return [] if commit == copy.commit else [Stage(base=commit, commit=copy.commit)]
        case _:
            return whole


def _between(copy: Copy, stage: Stage) -> Iterator[Entry | Gone]:
    if stage.base is None:
        return copy.files.of(stage.commit)
    return copy.files.between(stage.base, stage.commit)


def _version(entry: Entry) -> str:
    return f"{READING}:{entry.blob}"
