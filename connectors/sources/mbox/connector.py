"""The connector of the mbox source: archives, exports, and the folders of mail programs."""

from collections.abc import Iterator, Sequence
from functools import partial
from operator import eq

from pydantic import BaseModel, ConfigDict, Field

from connectors.access import Access
from connectors.connector import (
    FIXED_READERS,
    Change,
    Check,
    Checkpoint,
    DocumentListing,
    KnownVersions,
    ServerAccess,
    find_fault,
    make_checks,
)
from connectors.errors import NotFoundError
from connectors.files.paths import PathFilter, PathParts
from connectors.mail import sync
from connectors.mail.conversation_document import ConversationDocuments
from connectors.registry import NoCredential, SourceKind, without_groups
from connectors.setting_types import (
    AbsolutePath,
    GlobPatterns,
    MailboxOwner,
    ReaderTokens,
    mailbox_access,
)
from connectors.sources.mbox.mailbox import MboxFiles


class MboxSettings(BaseModel):
    """Index mail from mbox files. In globs, * and ? match within a name, ** matches any folders."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: AbsolutePath = Field(
        description="An mbox file, or a folder of which all mbox files are read."
    )
    owner: MailboxOwner = Field(
        default="", description="The e-mail address of the person who may read this mail."
    )
    readers: ReaderTokens = Field(
        default=(),
        description="Who may read the mail instead of the owner (user:ann@example.com, group:sales,"
        " public).",
    )
    include: GlobPatterns = Field(default=(), description="Globs of the files to read. Empty: all.")
    exclude: GlobPatterns = Field(default=(), description="Globs of the files to leave out.")
    largest_message: int = Field(
        default=50_000_000,
        gt=0,
        description="Bytes. A larger message is not read, and is listed in the metadata of its"
        " conversation.",
    )

    def access(self) -> Access:
        return mailbox_access(self.owner, self.readers)

    def server_access(self) -> ServerAccess:
        return ServerAccess(paths=(self.path,))


class MboxConnector:
    """Yields the conversations of mbox files."""

    def __init__(self, source: str, settings: MboxSettings) -> None:
        self._source = source
        self._settings = settings
        self._choice = PathFilter.parse(settings.include, settings.exclude)

    @property
    def source(self) -> str:
        return self._source

    def changes(self, since: Checkpoint | None, known: KnownVersions) -> Iterator[Change]:
        """Yield what changed, newest conversations first, with a checkpoint after every 200.

        Nothing is read unless the size or the modification time of a file changed.

        Raises:
            TemporarilyUnavailableError: a file is being written, or cannot be read now.
            ActionRequiredError: the path does not exist, or Quarry may not read it.
        """
        files = self._files()
        yield from sync.changes(files, self._documents(files), since, known)

    def refetch(self, document_ids: Sequence[str]) -> Iterator[Change]:
        """See `Connector.refetch`."""
        files = self._files()
        yield from sync.refetch(files, self._documents(files), document_ids)

    def listing(self, since: Checkpoint | None) -> Iterator[DocumentListing]:
        """See `Connector.listing`."""
        del since
        files = self._files()
        yield from sync.listing(files, self._documents(files))

    def check(self) -> Iterator[Check]:
        """See `Connector.check`."""
        fault = find_fault(lambda: self._files().read_state())
        yield from make_checks(fault, fault or self._find_access_fault())

    def _files(self) -> MboxFiles:
        path = self._settings.path
        try:
            path = path.resolve(strict=True)
            is_file = path.is_file()
        except (OSError, RuntimeError) as error:
            raise NotFoundError(
                f"{self._settings.path} does not exist: connect its disk, or correct the path"
            ) from error
        largest = self._settings.largest_message
        if not is_file:
            return MboxFiles(path, _is_visible, self._choice.includes, largest)
        is_file_itself = partial(eq, (path.name,))
        return MboxFiles(path.parent, is_file_itself, is_file_itself, largest)

    def _find_access_fault(self) -> str | None:
        if self._settings.access().readers:
            return None
        return (
            f"nobody may read the mail: set owner or readers by quarry sources edit {self._source}"
        )

    def _documents(self, files: MboxFiles) -> ConversationDocuments:
        return ConversationDocuments(
            source=self._source,
            access=self._settings.access(),
            largest_message=self._settings.largest_message,
            link=files.link,
            path=files.path,
        )


def _is_visible(parts: PathParts) -> bool:
    return not parts[-1].startswith(".")


def _connector(source: str, settings: MboxSettings, credential: NoCredential) -> MboxConnector:
    del credential
    return MboxConnector(source, settings)


SOURCE_KIND = SourceKind(
    connector=without_groups(_connector),
    settings=MboxSettings,
    credential=NoCredential,
    server_access=MboxSettings.server_access,
    title="Mail (mbox files)",
    capabilities=FIXED_READERS,
    fixed_access=MboxSettings.access,
)
