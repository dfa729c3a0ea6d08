"""Converts documents and chunks to records of the cluster, and back."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from connectors.access import NOBODY, Access, parse_access
from connectors.document import Person, Span
from indexing.chunking.chunk import Chunk
from indexing.index import person_keys
from indexing.index.validation import PreparedReplace
from indexing.opensearch.naming import chunk_id, document_key
from indexing.text.analysis import NO_LANGUAGES, Languages

Source: TypeAlias = dict[str, Any]
"""The JSON body of a record."""

DocumentState: TypeAlias = Literal["coming", "document", "gone"]
"""Not visible yet; visible; about to be deleted."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
BYTE_SCALE = 127.0
"""The byte value of 1.0 in a vector that is stored as bytes."""


def to_microseconds(moment: datetime | None) -> int | None:
    return None if moment is None else (moment - EPOCH) // MICROSECOND


def to_moment(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else EPOCH + microseconds * MICROSECOND


@dataclass(frozen=True, slots=True)
class Version:
    """The chunks that one attempt to write a document created."""

    name: str
    """Unique to the attempt; empty if there is none."""
    chunks: int


NO_VERSION = Version("", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentRecord:
    """Decides about a document: which version of its chunks counts, and who may read it."""

    id: str
    state: DocumentState
    generation: int
    content_hash: str
    version: Version
    leaving: tuple[Version, ...] = ()
    """Versions whose chunks do not count and are to be deleted."""
    unfinished: bool = False
    """Whether chunks may be left to delete, or may have other labels than this record."""
    stamp: str = ""
    """Unique to each write of a record, so that its writer can recognize it."""
    access: Access = NOBODY
    hidden: bool = False
    boost: float = 1.0
    sets: frozenset[str] = frozenset()
    projects: frozenset[str] = frozenset()
    personas: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    source: str = ""
    media_type: str = ""
    title: str = ""
    owners: tuple[Person, ...] = ()
    created_at: datetime | None = None
    updated_at: datetime | None = None
    languages: Languages = NO_LANGUAGES

    @property
    def key(self) -> str:
        return document_key(self.id)

    @property
    def shown_to(self) -> frozenset[str]:
        """The readers by which chunks are found: none for a hidden document."""
        return frozenset() if self.hidden else self.access.readers

    def finished(self) -> "DocumentRecord":
        """Return the same record with nothing left to do."""
        return replace(self, leaving=(), unfinished=False)


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A document's record with the sequence number and term that a conditional write names."""

    record: DocumentRecord
    sequence: int
    term: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkLabels:
    """The document properties that are copied to each chunk, for filters and boosts."""

    readers: frozenset[str]
    sets: frozenset[str] = frozenset()
    projects: frozenset[str] = frozenset()
    personas: frozenset[str] = frozenset()
    boost: float

    @classmethod
    def of(cls, record: DocumentRecord) -> "ChunkLabels":
        return cls(
            readers=record.shown_to,
            sets=record.sets,
            projects=record.projects,
            personas=record.personas,
            boost=record.boost,
        )

    def joined_with(self, other: "ChunkLabels") -> "ChunkLabels":
        """Return labels by which all find the chunks who find them by either, with the boost of `other`."""
        return ChunkLabels(
            readers=self.readers | other.readers,
            sets=self.sets | other.sets,
            projects=self.projects | other.projects,
            personas=self.personas | other.personas,
            boost=other.boost,
        )

    def to_source(self) -> Source:
        return {
            "readers": sorted(self.readers),
            "sets": sorted(self.sets),
            "projects": sorted(self.projects),
            "personas": sorted(self.personas),
            "boost": self.boost,
        }


def record_of(prepared: PreparedReplace, version: Version) -> DocumentRecord:
    """Return the record of a document once `version` counts."""
    change = prepared.change
    plain = DocumentRecord(
        id=change.document_id,
        state="document",
        generation=change.generation,
        content_hash=change.content_hash,
        version=version,
        languages=prepared.languages,
    )
    return _copy_chunk_fields(plain, change.chunks[0]) if change.chunks else plain


def _copy_chunk_fields(record: DocumentRecord, chunk: Chunk) -> DocumentRecord:
    return replace(
        record,
        access=chunk.access,
        hidden=chunk.hidden,
        boost=chunk.boost,
        sets=chunk.sets,
        projects=chunk.projects,
        personas=chunk.personas,
        tags=chunk.tags,
        source=chunk.source,
        media_type=chunk.media_type,
        title=chunk.title,
        owners=chunk.owners,
        created_at=chunk.created_at,
        updated_at=chunk.updated_at,
    )


def document_source(record: DocumentRecord) -> Source:
    shared = _shared_source(record)
    if record.languages:
        # An index that was created before languages were guessed lacks the field, and refuses it.
        shared["languages"] = sorted(record.languages)
    return shared | {
        "kind": record.state,
        "id": record.id,
        "month": None
        if record.updated_at is None
        else f"{record.updated_at.astimezone(UTC):%Y-%m}",
        "person": [person_value(*each) for each in person_keys.names_by_key(record.owners).items()],
        "generation": record.generation,
        "chunks": record.version.chunks,
        "hash": record.content_hash,
        "version": record.version.name,
        "leaving": [[version.name, version.chunks] for version in record.leaving],
        "unfinished": record.unfinished,
        "said": {
            "title": record.title,
            "owners": [[owner.name, owner.email] for owner in record.owners],
            "access": record.access.to_json(),
            "hidden": record.hidden,
            "stamp": record.stamp,
        },
    }


def _shared_source(record: DocumentRecord) -> Source:
    return ChunkLabels.of(record).to_source() | {
        "key": record.key,
        "source": record.source,
        "media_type": record.media_type,
        "tags": sorted(record.tags),
        "people": list(person_keys.names_by_key(record.owners)),
        "created": to_microseconds(record.created_at),
        "updated": to_microseconds(record.updated_at),
    }


def person_value(key: str, name: str) -> str:
    """Join key and name, so that the cluster counts them together; neither contains a line end."""
    return f"{key}\n{name}"


def person_of(value: str) -> tuple[str, str]:
    """Split a value into key and name."""
    key, _, name = value.partition("\n")
    return key, name


@lru_cache(maxsize=4_096)
def _cached_access(values: tuple[str | tuple[str, ...], ...]) -> Access:
    """Cache the validated access: many documents share one set of readers."""
    return parse_access(values)


def _read_access(said: Mapping[str, Any]) -> Access:
    values = (each if isinstance(each, str) else tuple(each) for each in said["access"])
    return _cached_access(tuple(values))


def document_record(source: Mapping[str, Any]) -> DocumentRecord:
    said = source["said"]
    return DocumentRecord(
        id=source["id"],
        state=source["kind"],
        generation=source["generation"],
        content_hash=source["hash"],
        version=Version(source["version"], source["chunks"]),
        leaving=tuple(Version(name, chunks) for name, chunks in source["leaving"]),
        unfinished=source["unfinished"],
        stamp=said.get("stamp", ""),
        access=_read_access(said),
        hidden=said["hidden"],
        boost=source["boost"],
        sets=frozenset(source["sets"]),
        projects=frozenset(source.get("projects", ())),
        personas=frozenset(source.get("personas", ())),
        tags=frozenset(source["tags"]),
        source=source["source"],
        media_type=source["media_type"],
        title=said["title"],
        owners=tuple(Person(name, email) for name, email in said["owners"]),
        created_at=to_moment(source["created"]),
        updated_at=to_moment(source["updated"]),
        languages=frozenset(source.get("languages", ())),
    )


def chunk_source(record: DocumentRecord, prepared: PreparedReplace, position: int) -> Source:
    """Return a chunk of the version that `record` names, without its vector."""
    return _shared_source(record) | {
        "kind": "chunk",
        "version": record.version.name,
        "chunk": chunk_id(record.key, record.version.name, position),
        "position": position,
        "words": prepared.words[position],
        "plain": prepared.plain[position],
        "place": _place_source(prepared.change.chunks[position]),
    }


def _place_source(chunk: Chunk) -> Source:
    """Return the fields that are not searched. A text within the embedded text is stored as a range."""
    start = chunk.embedded_text.find(chunk.text)
    text: str | list[int] = [start, start + len(chunk.text)] if start >= 0 else chunk.text
    return {
        "section": chunk.section,
        "span": [chunk.span.start, chunk.span.end],
        "page": chunk.page,
        "link": chunk.link,
        "headings": chunk.heading_path,
        "embedded": chunk.embedded_text,
        "text": text,
    }


def chunk_of(source: Mapping[str, Any], document: Mapping[str, Any]) -> Chunk:
    """Build a chunk from its record and its document's, which takes precedence."""
    place, said = source["place"], document["said"]
    embedded, text = place["embedded"], place["text"]
    return Chunk(
        document_id=document["id"],
        position=source["position"],
        text=text if isinstance(text, str) else embedded[text[0] : text[1]],
        embedded_text=embedded,
        section=place["section"],
        span=Span(*place["span"]),
        title=said["title"],
        link=place["link"],
        source=document["source"],
        media_type=document["media_type"],
        access=_read_access(said),
        page=place["page"],
        heading_path=tuple(place["headings"]),
        tags=frozenset(document["tags"]),
        sets=frozenset(document["sets"]),
        projects=frozenset(document.get("projects", ())),
        personas=frozenset(document.get("personas", ())),
        owners=tuple(Person(name, email) for name, email in said["owners"]),
        boost=document["boost"],
        hidden=said["hidden"],
        created_at=to_moment(document["created"]),
        updated_at=to_moment(document["updated"]),
    )
