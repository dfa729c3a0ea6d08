"""The connector of the IMAP source: each conversation is a document that the mailbox owner may read."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

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
from connectors.errors import ActionRequiredError, InvalidInputError
from connectors.files.paths import GlobPattern
from connectors.http_client.address_guard import parse_allowed_networks, validate_host
from connectors.http_client.setting_types import PrivateHosts
from connectors.mail import sync
from connectors.mail.conversation_document import ConversationDocuments
from connectors.mail.headers import Envelope
from connectors.registry import REMOTE_INTERVALS, SourceKind, without_groups
from connectors.setting_types import GlobPatterns, MailboxOwner, ReaderTokens, mailbox_access
from connectors.sources.imap.folders import Folder, select_folders
from connectors.sources.imap.mailbox import ImapMailbox
from connectors.sources.imap.session import Account, Session
from connectors.sources.imap.socket import Security, Server

_PORTS = {"tls": 993, "starttls": 143, "plain": 143, "plain-anywhere": 143}
_MAX_NAMES = 30


class ImapSettings(BaseModel):
    """Index mail from an IMAP mailbox. Globs match folder names as mail programs show them, with / between
    the levels: * and ? match within a name, ** matches any folders."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str = Field(description="The host name of the IMAP server, such as imap.example.com.")
    port: int | None = Field(
        default=None, gt=0, lt=65536, description="If omitted, 993 for tls, and 143 for the others."
    )
    security: Security = Field(
        default="tls",
        description="tls; starttls (the connection starts unencrypted, then changes to TLS); plain (only"
        " for a server on this machine); plain-anywhere (not encrypted: mail and password can be read on"
        " the network).",
    )
    user: str = Field(
        min_length=1, description="The user name to sign in with; usually the e-mail address."
    )
    owner: MailboxOwner = Field(
        default="",
        description="The e-mail address of the person who may read this mail. If omitted, the user name,"
        " if that is an e-mail address.",
    )
    readers: ReaderTokens = Field(
        default=(),
        description="For a shared mailbox: who may read it instead of the owner"
        " (user:ann@example.com, group:sales).",
    )
    include: GlobPatterns = Field(
        default=(),
        description="Globs of the folders to read (INBOX, Projects/**). Empty: all but junk, trash and"
        " drafts.",
    )
    exclude: GlobPatterns = Field(default=(), description="Globs of the folders to leave out.")
    largest_message: int = Field(
        default=50_000_000,
        gt=0,
        description="Bytes. A larger message is not read, and is listed in the metadata of its"
        " conversation.",
    )
    webmail: str = Field(
        default="",
        description="The web address of a message, containing {message_id}. Empty: Gmail's for a Gmail"
        " mailbox, else a mid: link, which mail programs open.",
    )
    private_hosts: PrivateHosts = Field(
        default=(),
        description="Hosts, addresses or networks (10.0.0.0/8) inside your own network that Quarry may"
        " connect to.",
    )
    authority: Path | None = Field(
        default=None,
        description="A PEM file with the certificate of the private authority that signed the server's"
        " certificate.",
    )

    @field_validator("host")
    @classmethod
    def _validate_host(cls, host: str) -> str:
        try:
            return validate_host(host.strip())
        except ActionRequiredError as error:
            raise ValueError(str(error)) from error

    @field_validator("user")
    @classmethod
    def _validate_user(cls, user: str) -> str:
        if not user.isprintable():
            raise ValueError("must not contain control characters")
        return user

    @field_validator("webmail")
    @classmethod
    def _validate_webmail(cls, webmail: str) -> str:
        if webmail and not (webmail.startswith("https://") and "{message_id}" in webmail):
            raise ValueError("must begin with https:// and contain {message_id}")
        return webmail

    def server(self) -> Server:
        return Server(
            host=self.host,
            port=self.port or _PORTS[self.security],
            security=self.security,
            allowed_networks=parse_allowed_networks(self.private_hosts),
            authority=self.authority,
        )

    def access(self) -> Access:
        """Return who may read the mail; nobody, if no setting says it: the owner is never guessed."""
        return mailbox_access(self.owner or self.user, self.readers)

    def server_access(self) -> ServerAccess:
        return ServerAccess(
            paths=(self.authority,) if self.authority else (), private_hosts=self.private_hosts
        )


class Password(BaseModel):
    """The password of the user; an app password if the account uses two-factor authentication."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["password"] = "password"
    password: SecretStr = Field(
        min_length=1, description="If possible, an app password made for Quarry alone."
    )

    def account(self, user: str, source: str) -> Account:
        return Account(
            user=user,
            mechanism="password",
            secret=self.password.get_secret_value(),
            hint="set the right name and password by quarry sources edit"
            f" {source}; if the account uses two-factor authentication, make an app password in its"
            " security settings",
        )


class AccessToken(BaseModel):
    """An OAuth 2.0 access token instead of a password (XOAUTH2)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["access_token"] = "access_token"
    access_token: SecretStr = Field(
        min_length=1, description="A bearer token whose scope allows IMAP."
    )

    def account(self, user: str, source: str) -> Account:
        return Account(
            user=user,
            mechanism="bearer",
            secret=self.access_token.get_secret_value(),
            hint="the access token has expired or was revoked: get a new one and set it by"
            f" quarry sources edit {source}",
        )


class ImapCredential(BaseModel):
    """How Quarry signs in to the mail server."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sign_in: Annotated[Password | AccessToken, Field(discriminator="kind")] = Field(
        description="With a password or an access token."
    )


class ImapConnector:
    """The conversations of a mailbox."""

    def __init__(self, source: str, settings: ImapSettings, credential: ImapCredential) -> None:
        self._source = source
        self._settings = settings
        self._account = credential.sign_in.account(settings.user, source)
        self._include = tuple(map(GlobPattern.parse, settings.include))
        self._exclude = tuple(map(GlobPattern.parse, settings.exclude))

    @property
    def source(self) -> str:
        return self._source

    def changes(self, since: Checkpoint | None, known: KnownVersions) -> Iterator[Change]:
        """Yield what changed, newest conversations first, with a checkpoint after every 200.

        A conversation with a new or a removed message is read again as a whole.

        Raises:
            TemporarilyUnavailableError: the server does not respond, or limits requests.
            ActionRequiredError: it does not accept the account, or the settings leave no folder.
        """
        with self._mailbox() as mailbox:
            yield from sync.changes(mailbox, self._documents(mailbox), since, known)

    def refetch(self, document_ids: Sequence[str]) -> Iterator[Change]:
        """See `Connector.refetch`."""
        with self._mailbox() as mailbox:
            yield from sync.refetch(mailbox, self._documents(mailbox), document_ids)

    def listing(self, since: Checkpoint | None) -> Iterator[DocumentListing]:
        """See `Connector.listing`. It yields no checkpoints: conversations are known once all headers are read, 500 with
        each request."""
        del since
        with self._mailbox() as mailbox:
            yield from sync.listing(mailbox, self._documents(mailbox))

    def check(self) -> Iterator[Check]:
        """See `Connector.check`."""
        fault = find_fault(self._probe)
        yield from make_checks(fault, fault or self._find_access_fault())

    def _probe(self) -> None:
        with self._mailbox() as mailbox:
            mailbox.read_state()

    def _find_access_fault(self) -> str | None:
        if self._settings.access().readers:
            return None
        return (
            f"{self._settings.user} is not an e-mail address, so nobody may read the mail: set owner, or"
            f" readers for a shared mailbox, by quarry sources edit {self._source}"
        )

    def _mailbox(self) -> ImapMailbox:
        connect = partial(Session, self._settings.server(), self._account)
        return ImapMailbox(connect, self._select_folders, self._settings.largest_message)

    def _select_folders(self, folders: Sequence[Folder]) -> Sequence[Folder]:
        found = select_folders(folders, self._include, self._exclude)
        if not found:
            names = ", ".join("/".join(one.path) for one in folders[:_MAX_NAMES])
            raise InvalidInputError(
                f"include and exclude leave no folder to read; the mailbox has: {names}"
            )
        return found

    def _documents(self, mailbox: ImapMailbox) -> ConversationDocuments:
        return ConversationDocuments(
            source=self._source,
            access=self._settings.access(),
            largest_message=self._settings.largest_message,
            link=self._message_link(mailbox),
            path=mailbox.path,
        )

    def _message_link(self, mailbox: ImapMailbox) -> Callable[[Envelope], str]:
        template = self._settings.webmail
        if not template and mailbox.has_thread_ids:
            user = quote(self._settings.user, safe="@")
            template = f"https://mail.google.com/mail/u/{user}/#search/rfc822msgid%3A{{message_id}}"
        return partial(_fill_link, template or "mid:{message_id}")


def _fill_link(template: str, message: Envelope) -> str:
    """Quote the id as RFC 2392 defines for mid: links."""
    return template.replace("{message_id}", quote(message.key, safe="@"))


SOURCE_KIND = SourceKind(
    connector=without_groups(ImapConnector),
    settings=ImapSettings,
    credential=ImapCredential,
    server_access=ImapSettings.server_access,
    title="Mail (IMAP)",
    capabilities=FIXED_READERS,
    fixed_access=ImapSettings.access,
    intervals=REMOTE_INTERVALS,
)
