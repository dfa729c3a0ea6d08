"""Reading the spaces of a site: new ones completely, in the others what a search says has changed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from connectors.connector import Change, Deletion, KnownVersions
from connectors.http_client.api_client import required
from connectors.sources.confluence.changed_content import iterate_changes
from connectors.sources.confluence.checkpoint import Position, SyncCheckpoint
from connectors.sources.confluence.document_reader import DocumentReader, ReadAttempt
from connectors.sources.confluence.models import Content, ContentKind, Space
from connectors.sources.confluence.page_documents import get_page_id
from connectors.sources.confluence.site import Site
from connectors.text_cleaning import parse_time


@dataclass(frozen=True, slots=True)
class SyncRun:
    source: str
    site: Site
    reader: DocumentReader
    spaces: Sequence[Space]
    """Those that the settings select, ordered by id."""

    @property
    def spaces_by_id(self) -> dict[str, Space]:
        return {one.id: one for one in self.spaces}

    def read_changes(
        self, checkpoint: SyncCheckpoint, known: KnownVersions
    ) -> Iterator[Change | SyncCheckpoint]:
        """Yield the changes, and the progress after each page of them."""
        old = [one for one in self.spaces if one.id in checkpoint.completed]
        if old and checkpoint.since:
            for change in self._read_searched(checkpoint, old, known):
                checkpoint = change if isinstance(change, SyncCheckpoint) else checkpoint
                yield change
        for space in self.spaces:
            if space.id not in checkpoint.completed | checkpoint.completed_now:
                for change in self._read_space(space, checkpoint, known):
                    checkpoint = change if isinstance(change, SyncCheckpoint) else checkpoint
                    yield change

    def _read_space(
        self, space: Space, checkpoint: SyncCheckpoint, known: KnownVersions
    ) -> Iterator[Change | SyncCheckpoint]:
        for kind in ContentKind:
            start = checkpoint.get_cursor(space.id, kind)
            if start is None:
                continue
            for contents, following in self.list_contents(space, kind, start):
                yield from self.reader.read_changed(contents, known)
                if following is not None:
                    checkpoint = checkpoint.advance(Position(space.id, kind, following))
                    yield checkpoint
        yield checkpoint.finish_space(space.id)

    def list_contents(
        self, space: Space, kind: ContentKind, start: str
    ) -> Iterator[tuple[Sequence[Content], str | None]]:
        """Yield pages of contents without those of the previous page, and the start of the next."""
        previous: set[str] = set()
        with required(f"the contents of the space {space.key}"):
            for page in self.site.list_contents(space, kind, start):
                yield [one for one in page.contents if one.id not in previous], page.next
                # An empty page does not count as the previous one.
                previous = {one.id for one in page.contents} or previous

    def _read_searched(
        self, checkpoint: SyncCheckpoint, spaces: Sequence[Space], known: KnownVersions
    ) -> Iterator[Change | SyncCheckpoint]:
        since = parse_time(checkpoint.since)
        if since is None:
            raise ValueError(f"not a time: {checkpoint.since}")
        by_id = {one.id: one for one in spaces}
        with required("the list of changes"):
            for changed in iterate_changes(self.site, since, [one.key for one in spaces]):
                contents: list[Content] = []
                for content_id, kind in changed.kinds.items():
                    document_id = get_page_id(self.source, content_id)
                    attempt = ReadAttempt(document_id, content_id, "")
                    with attempt.collect_failures():
                        content = self.site.find_content(content_id, kind, by_id)
                        contents += [content] if content else []
                    yield from attempt.failures
                yield from self.reader.read_changed(contents, known)
                yield checkpoint.catch_up(changed.resume_since)

    def refetch_page(self, document_id: str, content_id: str) -> Iterator[Change]:
        attempt = ReadAttempt(document_id, content_id, "")
        with attempt.collect_failures():
            content = self.site.find_content(content_id, None, self.spaces_by_id)
            yield from self.reader.refetch_page(content) if content else [Deletion(document_id)]
        yield from attempt.failures

    def refetch_attachment(self, document_id: str, attachment_id: str) -> Iterator[Change]:
        attempt = ReadAttempt(document_id, attachment_id, "")
        with attempt.collect_failures():
            found = self.site.find_attachment(attachment_id)
            content = found and self.site.find_content(
                found.content_id, found.kind, self.spaces_by_id
            )
            if content:
                yield from self.reader.refetch_attachment(attachment_id, content)
            else:
                yield Deletion(document_id)
        yield from attempt.failures
