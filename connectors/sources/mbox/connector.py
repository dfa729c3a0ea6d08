"""Mail in mbox files: an archive, an export, the folders of a mail program."""

from collections.abc import Iterator, Sequence
from functools import partial
from operator import eq

from pydantic import BaseModel, ConfigDict, Field

from connectors.connector import Change, Check, Checkpoint, Known, Listed, checks
from connectors.document import Access
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from connectors.files.glob_patterns import Choice
from connectors.files.paths import Parts
from connectors.mail import sync
from connectors.mail.conversation_document import Conversations
from connectors.setting_types import AbsolutePath, Globs, MailboxOwner, ReaderTokens, mailbox_access
from connectors.source_kind import Kind, NoCredential
from connectors.sources.mbox.mailbox import MboxFiles


class MboxSettings(BaseModel):
    """Which files. Globs are matched from the folder; see `connectors.files.glob_patterns`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: AbsolutePath = Field(
        description="An mbox file, or a folder: all files in it that begin as mbox files do are read."
    )
    owner: MailboxOwner = Field(
        default="", description="The e-mail address of the one who may read the mail here."
    )
    readers: ReaderTokens = Field(
        default=(),
        description="In place of one owner: all who may read it (user:ann@example.com, group:sales,"
        " public).",
    )
    include: Globs = Field(default=(), description="Files to read, as globs. None: all.")
    exclude: Globs = Field(default=(), description="Files not to read, as globs.")
    largest_message: int = Field(
        default=50_000_000,
        gt=0,
        description="Bytes. A larger message is named in its conversation and not read.",
    )

    def access(self) -> Access:
        return mailbox_access(self.owner, self.readers)


class MboxConnector:
    """The conversations of mbox files."""

    def __init__(self, source: str, settings: MboxSettings) -> None:
        self._source = source
        self._settings = settings
        self._chosen = Choice.of(settings.include, settings.exclude)

    @property
    def source(self) -> str:
        return self._source

    def changes(self, since: Checkpoint | None, known: Known) -> Iterator[Change]:
        """Yield what changed, with a checkpoint every 200 conversations, the newest first. While all
        files are of the size and time that they had, nothing is read.

        Raises:
            TemporarilyUnavailableError: a file is being written, or the disk does not answer.
            ActionRequiredError: the path is not there or may not be read.
        """
        files = self._files()
        yield from sync.changes(files, self._conversations(files), since, known)

    def again(self, document_ids: Sequence[str]) -> Iterator[Change]:
        """See `Connector.again`."""
        files = self._files()
        yield from sync.again(files, self._conversations(files), document_ids)

    def listing(self) -> Iterator[Listed]:
        """See `Connector.listing`."""
        files = self._files()
        yield from sync.listing(files, self._conversations(files))

    def check(self) -> Iterator[Check]:
        """See `Connector.check`."""
        fault = self._fault()
        yield from checks(fault, fault or self._fault_of_access())

    def _files(self) -> MboxFiles:
        path = self._settings.path
        try:
            path = path.resolve(strict=True)
            is_file = path.is_file()
        except (OSError, RuntimeError) as error:
            raise ActionRequiredError(
                f"{self._settings.path} is not there: connect its disk, or correct the path"
            ) from error
        largest = self._settings.largest_message
        if not is_file:
            return MboxFiles(path, _is_visible, self._chosen.takes, largest)
        only = partial(eq, (path.name,))
        return MboxFiles(path.parent, only, only, largest)

    def _fault(self) -> str | None:
        try:
            self._files().state()
        except (ActionRequiredError, TemporarilyUnavailableError) as error:
            return str(error)
        return None

    def _fault_of_access(self) -> str | None:
        if self._settings.access().readers:
            return None
        return (
            "nobody may read the mail: set owner, or readers, by quarry sources edit"
            f" {self._source}"
        )

    def _conversations(self, files: MboxFiles) -> Conversations:
        return Conversations(
            source=self._source,
            access=self._settings.access(),
            largest_message=self._settings.largest_message,
            link=files.link,
            path=files.path,
        )


def _is_visible(parts: Parts) -> bool:
    return not parts[-1].startswith(".")


def _connector(source: str, settings: MboxSettings, credential: NoCredential) -> MboxConnector:
    del credential
    return MboxConnector(source, settings)


KIND = Kind(
    connector=_connector, settings=MboxSettings, credential=NoCredential, title="Mail (mbox files)"
)
