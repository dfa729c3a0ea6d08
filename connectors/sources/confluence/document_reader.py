"""Reads contents of one run: their documents, those of their attachments, and who may read them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from connectors.batched import batched
from connectors.connector import Change, Deletion, DocumentListing, KnownVersions, Unreadable
from connectors.document import Document
from connectors.extraction.result import ExtractionError
from connectors.http_client.api_client import AccessDeniedError, required
from connectors.http_client.response import MalformedResponse, ResponseError, ServerError
from connectors.sources.confluence.attachment_documents import (
    get_attachment_id,
    get_attachment_version,
    index_by_document_id,
    read_attachment,
)
from connectors.sources.confluence.models import Attachment, Content, ContentContext
from connectors.sources.confluence.page_documents import (
    ContentWithAccess,
    build_page,
    get_page_id,
    get_page_version,
)
from connectors.sources.confluence.permissions import PermissionReader
from connectors.sources.confluence.site import Site
from connectors.sources.confluence.users_and_groups import UserDirectory
from connectors.text_cleaning import to_one_line

_BATCH_SIZE = 200
"""Ids whose known versions are requested at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentReader:
    """Any method raises SourceAuthError and TemporarilyUnavailableError, see `ApiClient`."""

    source: str
    site: Site
    users: UserDirectory
    permissions: PermissionReader
    max_attachment_bytes: int

    def read_changed(self, contents: Sequence[Content], known: KnownVersions) -> Iterator[Change]:
        """Yield those pages and attachments whose known version differs."""
        ids = [get_page_id(self.source, one.id) for one in contents]
        versions = known(ids) if ids else {}
        for content, context in self._read_contexts(contents):
            page = self._with_access(content, context)
            yield from self._read_page(page, context, versions)
            if context.has_attachments:
                yield from self._read_attachments(page, known)

    def list_documents(
        self, contents: Sequence[Content]
    ) -> Iterator[tuple[Content, Sequence[DocumentListing]]]:
        """Yield each content with its documents: the page itself and its attachments."""
        for content, context in self._read_contexts(contents):
            access = self.permissions.get_access(content.space, context)
            ids = [get_page_id(self.source, content.id)]
            if context.has_attachments:
                with required(f"the attachments of {content.title!r}"):
                    ids += index_by_document_id(self._list_attachments(content), self.source)
            yield content, [DocumentListing(each, access) for each in ids]

    def refetch_page(self, content: Content) -> Iterator[Change]:
        """Read a page, changed or not, with its attachments."""
        return self.read_changed([content], _know_nothing)

    def refetch_attachment(self, attachment_id: str, content: Content) -> Iterator[Change]:
        """Read an attachment of a page, changed or not."""
        for each, context in self._read_contexts([content]):
            with required(f"the attachments of {content.title!r}"):
                found = self.site.find_attachment(attachment_id)
            if found is None:
                yield Deletion(f"{self.source}:{attachment_id}")
            else:
                page = self._with_access(each, context)
                yield self._read_attachment(page, found.attachment)

    def _list_attachments(self, content: Content) -> list[Attachment]:
        """Return the attachments; none if the page was deleted meanwhile.

        Raises:
            ResponseError: they cannot be read although the page exists.
        """
        try:
            return list(self.site.list_attachments(content))
        except MalformedResponse:
            space = content.space
            if self.site.find_content(content.id, content.kind, {space.id: space}) is None:
                return []
            raise

    def _read_contexts(
        self, contents: Sequence[Content]
    ) -> Iterator[tuple[Content, ContentContext]]:
        with required("the ancestors and restrictions of pages"):
            contexts = list(self.site.read_contexts(contents))
        yield from zip(contents, contexts, strict=True)

    def _with_access(self, content: Content, context: ContentContext) -> ContentWithAccess:
        titles = (to_one_line(one.title) for one in context.ancestors)
        return ContentWithAccess(
            content=content,
            ancestor_titles=tuple(filter(None, titles)),
            labels=context.labels,
            access=self.permissions.get_access(content.space, context),
        )

    def _read_page(
        self, page: ContentWithAccess, context: ContentContext, versions: Mapping[str, str]
    ) -> Iterator[Document | Unreadable]:
        content = page.content
        attempt = self._attempt(page)
        with attempt.collect_failures():
            comments = list(self.site.list_comments(content)) if context.has_comments else []
            if versions.get(attempt.document_id) != get_page_version(content, comments):
                yield build_page(self.source, page, comments, self.users)
        yield from attempt.failures

    def _read_attachments(
        self, page: ContentWithAccess, known: KnownVersions
    ) -> Iterator[Document | Unreadable]:
        """Read the attachments of a page; if they cannot be listed, the page counts as unreadable."""
        attempt = self._attempt(page)
        attachments: list[Attachment] = []
        with attempt.collect_failures():
            attachments = list(self.site.list_attachments(page.content))
        yield from attempt.failures
        by_id = index_by_document_id(attachments, self.source)
        for batch in batched(by_id.items(), _BATCH_SIZE):
            versions = known([document_id for document_id, _ in batch])
            for document_id, attachment in batch:
                if versions.get(document_id) != get_attachment_version(attachment):
                    yield self._read_attachment(page, attachment)

    def _read_attachment(
        self, page: ContentWithAccess, attachment: Attachment
    ) -> Document | Unreadable:
        document_id = get_attachment_id(self.source, attachment)
        title = to_one_line(attachment.title) or attachment.id
        version = get_attachment_version(attachment)
        attempt = ReadAttempt(document_id, title, attachment.link, version)
        client, max_bytes = self.site.client, self.max_attachment_bytes
        with attempt.collect_failures():
            return read_attachment(client, self.source, page, attachment, max_bytes, self.users)
        return attempt.failures[0]

    def _attempt(self, page: ContentWithAccess) -> "ReadAttempt":
        content = page.content
        item = f"{content.space.key}: {page.title}"
        return ReadAttempt(get_page_id(self.source, content.id), item, content.link)


@dataclass(frozen=True, slots=True)
class ReadAttempt:
    """An attempt to read one document; errors that concern only this document are collected."""

    document_id: str
    item: str
    link: str
    version: str | None = None
    """Reported with a failure that lies in the content, which no other try of this version can mend."""
    failures: list[Unreadable] = field(default_factory=list)

    @contextmanager
    def collect_failures(self) -> Iterator[None]:
        try:
            yield
        except (ResponseError, AccessDeniedError, ServerError, ExtractionError) as error:
            failure = Unreadable(
                document_id=self.document_id,
                item=self.item,
                reason=str(error),
                link=self.link or None,
                version=self.version if isinstance(error, ExtractionError) else None,
            )
            self.failures.append(failure)


def _know_nothing(ids: Sequence[str]) -> Mapping[str, str]:
    del ids
    return {}
