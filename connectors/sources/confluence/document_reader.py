"""One run's reading of contents: their documents, their attachments', and who may read them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from connectors.batched import portions
from connectors.connector import Change, Deletion, Known, Listed, Unreadable
from connectors.document import Document
from connectors.extraction.result import CannotRead, one_line
from connectors.http_client.response import BadAnswer, Failing, Malformed
from connectors.sources.confluence import attachment_documents, page_documents
from connectors.sources.confluence.attachment_documents import file_id
from connectors.sources.confluence.client import Refused, needed
from connectors.sources.confluence.models import Around, Attachment, Content
from connectors.sources.confluence.page_documents import Standing, page_id
from connectors.sources.confluence.permissions import Rights
from connectors.sources.confluence.site import Wiki
from connectors.sources.confluence.users_and_groups import People

_ASKED = 200
"""Ids that are asked for at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    source: str
    wiki: Wiki
    people: People
    rights: Rights
    largest: int
    """Bytes of an attachment."""

    def batch(self, contents: Sequence[Content], known: Known) -> Iterator[Change]:
        """What of these is not held as it is now, with what hangs on them.

        Raises:
            ActionRequiredError, TemporarilyUnavailableError: see `connectors.sources.confluence.site.Wiki`.
        """
        held = known([page_id(self.source, one.id) for one in contents]) if contents else {}
        for content, around in self._around(contents):
            standing = self._standing(content, around)
            yield from self._page(standing, around, held)
            if around.has_attachments:
                yield from self._attached(standing, known)

    def listed(self, contents: Sequence[Content]) -> Iterator[Listed]:
        """
        Raises:
            ActionRequiredError, TemporarilyUnavailableError: see `connectors.sources.confluence.site.Wiki`.
        """
        for content, around in self._around(contents):
            access = self.rights.access(content.space, around)
            yield Listed(page_id(self.source, content.id), access)
            if around.has_attachments:
                with needed(f"the attachments of {content.title!r}"):
                    for one in attachment_documents.names(self._hung_on(content), self.source):
                        yield Listed(one, access)

    def anew(self, content: Content) -> Iterator[Change]:
        """A page, changed or not, with what hangs on it."""
        return self.batch([content], _nothing_known)

    def attachment(self, attachment_id: str, content: Content) -> Iterator[Change]:
        """One that hangs on this, changed or not."""
        for each, around in self._around([content]):
            with needed(f"the attachments of {content.title!r}"):
                found = self.wiki.attachment(attachment_id)
            if found is None:
                yield Deletion(f"{self.source}:{attachment_id}")
            else:
                yield self._file(self._standing(each, around), found.attachment)

    def _hung_on(self, content: Content) -> list[Attachment]:
        """None of what was deleted meanwhile. Raises BadAnswer: they are not told of what is still there."""
        try:
            return list(self.wiki.attachments(content))
        except Malformed:
            space = content.space
            if self.wiki.content(content.id, content.kind, {space.id: space}) is None:
                return []
            raise

    def _around(self, contents: Sequence[Content]) -> Iterator[tuple[Content, Around]]:
        with needed("what stands above pages, and whom they are restricted to"):
            arounds = list(self.wiki.surroundings(contents))
        yield from zip(contents, arounds, strict=True)

    def _standing(self, content: Content, around: Around) -> Standing:
        return Standing(
            content=content,
            above=tuple(filter(None, (one_line(each.title) for each in around.ancestors))),
            labels=around.labels,
            access=self.rights.access(content.space, around),
        )

    def _page(
        self, standing: Standing, around: Around, held: Mapping[str, str]
    ) -> Iterator[Document | Unreadable]:
        content = standing.content
        attempt = self._attempt(standing)
        with attempt.made():
            comments = list(self.wiki.comments(content)) if around.has_comments else []
            if held.get(attempt.document_id) != page_documents.version(content, comments):
                yield page_documents.document(self.source, standing, comments, self.people)
        yield from attempt.faults

    def _attached(self, standing: Standing, known: Known) -> Iterator[Document | Unreadable]:
        """Where they are not told, the page is tried again with them."""
        attempt = self._attempt(standing)
        found: list[Attachment] = []
        with attempt.made():
            found = list(self.wiki.attachments(standing.content))
        yield from attempt.faults
        for some in portions(attachment_documents.names(found, self.source).items(), _ASKED):
            held = known([told for told, _ in some])
            for told, one in some:
                if held.get(told) != attachment_documents.version(one):
                    yield self._file(standing, one)

    def _attempt(self, standing: Standing) -> "Attempt":
        """To read the page, or what hangs on it."""
        content = standing.content
        item = f"{content.space.key}: {standing.title}"
        return Attempt(page_id(self.source, content.id), item, content.link)

    def _file(self, standing: Standing, one: Attachment) -> Document | Unreadable:
        own = file_id(self.source, one)
        attempt = Attempt(own, one_line(one.title) or one.id, one.link)
        with attempt.made():
            return attachment_documents.document(
                self.wiki.api, self.source, standing, one, self.largest, self.people
            )
        return attempt.faults[0]


@dataclass(frozen=True, slots=True)
class Attempt:
    """To read one document; what stands in the way of this one alone becomes its fault."""

    document_id: str
    item: str
    link: str
    faults: list[Unreadable] = field(default_factory=list)

    @contextmanager
    def made(self) -> Iterator[None]:
        try:
            yield
        except (BadAnswer, Refused, Failing, CannotRead) as error:
            fault = Unreadable(
                document_id=self.document_id,
                item=self.item,
                reason=str(error),
                link=self.link or None,
            )
            self.faults.append(fault)


def _nothing_known(ids: Sequence[str]) -> Mapping[str, str]:
    del ids
    return {}
