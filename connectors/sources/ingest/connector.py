"""The connector of the ingest source. What it reads is stored here already; a sync indexes what waits."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pydantic import BaseModel, ConfigDict, Field

from connectors.connector import (
    Change,
    Check,
    Checkpoint,
    Deletion,
    DocumentListing,
    KnownVersions,
    ServerAccess,
    Unreadable,
    load_checkpoint,
    make_checks,
)
from connectors.document import Document
from connectors.extraction.isolated import extract_isolated
from connectors.extraction.result import ExtractionError
from connectors.registry import NoCredential, SourceKind, SyncIntervals, without_groups
from connectors.sources.ingest.pushed_documents import (
    NothingPushed,
    PushedDocument,
    PushedDocuments,
)

EXTRACTION_SECONDS = 120.0
MOST_CHARACTERS = 2_000_000
"""Of the text of one document."""
_LARGEST_PUSH = 2**31 - 1


class IngestSettings(BaseModel):
    """Index the documents that programs put in over HTTP. Each brings its own readers."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    description: str = Field(
        default="",
        max_length=1_000,
        description="What the documents are, and which program puts them in.",
    )

    def server_access(self) -> ServerAccess:
        return ServerAccess()


@dataclass(frozen=True, slots=True)
class IngestConnector:
    """Yields documents in the order in which they were put in."""

    source: str
    pushed: PushedDocuments

    def changes(self, since: Checkpoint | None, known: KnownVersions) -> Iterator[Change]:
        """See `Connector.changes`; a checkpoint is the number of the last request that was read."""
        del known
        reached = _parse_push(since)
        while page := self.pushed.list_changes(reached):
            yield from self.refetch([each.document_id for each in page])
            reached = page[-1].push
            yield Checkpoint(str(reached))
        yield Checkpoint(str(reached))

    def refetch(self, document_ids: Sequence[str]) -> Iterator[Change]:
        """See `Connector.refetch`."""
        for each in document_ids:
            found = self.pushed.find(each)
            yield Deletion(each) if found is None else self._read(found)

    def listing(self, since: Checkpoint | None) -> Iterator[DocumentListing]:
        """See `Connector.listing`."""
        del since
        after = ""
        while page := self.pushed.list_existing(after):
            yield from page
            after = page[-1].document_id

    def check(self) -> Iterator[Check]:
        """See `Connector.check`: there is nothing that could fail to answer."""
        yield from make_checks(None, None)

    def _read(self, found: PushedDocument) -> Document | Unreadable:
        if found.file is not None:
            found = _read_file(found, found.file)
            self.pushed.keep_read(found)
        document = found.document
        if found.problem is None:
            return document
        return Unreadable(
            document_id=document.id,
            item=document.title,
            reason=found.problem,
            link=document.link or None,
            version=document.version,
        )


def _read_file(found: PushedDocument, file: bytes) -> PushedDocument:
    """Read a file in a process of its own."""
    document = found.document
    try:
        result = extract_isolated(file, document.media_type, EXTRACTION_SECONDS)
        if sum(len(section.text) for section in result.sections) > MOST_CHARACTERS:
            raise ExtractionError(f"its text has more than {MOST_CHARACTERS:,} characters")
    except ExtractionError as error:
        return PushedDocument(document=document, problem=str(error))
    created_at = document.created_at or result.created_at
    read = replace(document, sections=result.sections, created_at=created_at)
    return PushedDocument(document=read)


def _parse_push(since: Checkpoint | None) -> int:
    """Return the number in a checkpoint; 0, from the beginning, where there is none."""
    number = load_checkpoint(since)
    return number if isinstance(number, int) and 0 <= number <= _LARGEST_PUSH else 0


def _connector(source: str, settings: IngestSettings, credential: NoCredential) -> IngestConnector:
    del settings, credential
    return IngestConnector(source, NothingPushed())


SOURCE_KIND = SourceKind(
    connector=without_groups(_connector),
    settings=IngestSettings,
    credential=NoCredential,
    server_access=IngestSettings.server_access,
    title="Documents put in by programs",
    intervals=SyncIntervals(),
)
