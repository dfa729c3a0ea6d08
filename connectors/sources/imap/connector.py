"""Mail on an IMAP server: each conversation one document, for the owner of the mailbox."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from connectors.connector import Change, Check, Checkpoint, Known, Listed, checks
from connectors.document import Access
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from connectors.files.glob_patterns import Glob
from connectors.http_client.address_guard import parse_allowed_networks, validate_host
from connectors.http_client.setting_types import PrivateHosts
from connectors.mail import sync
from connectors.mail.conversation_document import Conversations
from connectors.mail.headers import Envelope
from connectors.setting_types import Globs, MailboxOwner, ReaderTokens, mailbox_access
from connectors.source_kind import Kind
from connectors.sources.imap.folders import Folder, chosen
from connectors.sources.imap.mailbox import ImapMailbox
from connectors.sources.imap.session import Account, Security, Server, Session

_PORTS = {"tls": 993, "starttls": 143, "plain": 143, "plain-anywhere": 143}
_MOST_NAMES = 30


class ImapSettings(BaseModel):
    """Which folders of which mailbox. Globs are matched against the names that people see, with / between
    the levels; see `connectors.files.glob_patterns`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str = Field(description="The name of the IMAP server, such as imap.example.com.")
    port: int | None = Field(
        default=None, gt=0, lt=65536, description="993 for tls, 143 for the others, if left out."
    )
    security: Security = Field(
        default="tls",
        description="tls; starttls (TLS is agreed on after connecting); plain (to this machine only);"
        " plain-anywhere (mail and password can be read on the way).",
    )
    user: str = Field(
        min_length=1, description="The name to sign in with; mostly the e-mail address."
    )
    owner: MailboxOwner = Field(
        default="",
        description="The e-mail address of the one who may read the mail here; the user's name, if"
        " left out and an address.",
    )
    readers: ReaderTokens = Field(
        default=(),
        description="Of a shared mailbox: all who may read it, in place of the owner"
        " (user:ann@example.com, group:sales).",
    )
    include: Globs = Field(
        default=(),
        description="Folders to read, as globs (INBOX, Projects/**). None: all but junk, trash and"
        " drafts.",
    )
    exclude: Globs = Field(default=(), description="Folders not to read, as globs.")
    largest_message: int = Field(
        default=50_000_000,
        gt=0,
        description="Bytes. A larger message is named in its conversation and not read.",
    )
    webmail: str = Field(
        default="",
        description="The address that opens a message in the browser, with {message_id} in it. None:"
        " that of Gmail there, else mid: links for mail programs.",
    )
    private_hosts: PrivateHosts = Field(
        default=(),
        description="Hosts, addresses or networks (10.0.0.0/8) inside your own network that may be"
        " asked.",
    )
    authority: Path | None = Field(
        default=None,
        description="A file (PEM) of the private authority that signed the server's certificate.",
    )

    @field_validator("host")
    @classmethod
    def _spelled(cls, host: str) -> str:
        try:
            return validate_host(host.strip())
        except ActionRequiredError as error:
            raise ValueError(str(error)) from error

    @field_validator("user")
    @classmethod
    def _printable(cls, user: str) -> str:
        if not user.isprintable():
            raise ValueError("a name without control characters")
        return user

    @field_validator("webmail")
    @classmethod
    def _a_template(cls, webmail: str) -> str:
        if webmail and not (webmail.startswith("https://") and "{message_id}" in webmail):
            raise ValueError("an address that begins with https:// and holds {message_id}")
        return webmail

    def server(self) -> Server:
        return Server(
            host=self.host,
            port=self.port or _PORTS[self.security],
            security=self.security,
            reach=parse_allowed_networks(self.private_hosts),
            authority=self.authority,
        )

    def access(self) -> Access:
        """Who owns the mailbox is never guessed: nobody, where neither setting says it."""
        return mailbox_access(self.owner or self.user, self.readers)


class Password(BaseModel):
    """The password of the user; an app password, where signing in takes a second step."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["password"] = "password"
    password: SecretStr = Field(min_length=1, description="Made for Quarry alone where one can.")

    def account(self, user: str, source: str) -> Account:
        return Account(
            user=user,
            how="password",
            secret=self.password.get_secret_value(),
            mend="set the right name and password by quarry sources edit"
            f" {source}; where signing in takes a second step, make an app password in the"
            " account's security settings",
        )


class AccessToken(BaseModel):
    """A token of OAuth 2.0, in place of a password (XOAUTH2)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["access_token"] = "access_token"
    access_token: SecretStr = Field(
        min_length=1, description="A bearer token whose scope allows IMAP."
    )

    def account(self, user: str, source: str) -> Account:
        return Account(
            user=user,
            how="bearer",
            secret=self.access_token.get_secret_value(),
            mend="the access token has ended or was withdrawn: fetch a new one and set it by"
            f" quarry sources edit {source}",
        )


class ImapCredential(BaseModel):
    """How Quarry signs in to the mail server."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sign_in: Annotated[Password | AccessToken, Field(discriminator="kind")] = Field(
        description="With a password or a token."
    )


class ImapConnector:
    """The conversations of a mailbox."""

    def __init__(self, source: str, settings: ImapSettings, credential: ImapCredential) -> None:
        self._source = source
        self._settings = settings
        self._account = credential.sign_in.account(settings.user, source)
        self._include = tuple(map(Glob.of, settings.include))
        self._exclude = tuple(map(Glob.of, settings.exclude))

    @property
    def source(self) -> str:
        return self._source

    def changes(self, since: Checkpoint | None, known: Known) -> Iterator[Change]:
        """Yield what changed, with a checkpoint every 200 conversations, the newest first.

        A message that is new anywhere in a conversation yields all of it anew; one that was removed
        yields it without.

        Raises:
            TemporarilyUnavailableError: the server does not answer, breaks off, or asks to wait.
            ActionRequiredError: it does not let the account in, or no folder is left by the settings.
        """
        with self._mailbox() as mailbox:
            yield from sync.changes(mailbox, self._conversations(mailbox), since, known)

    def again(self, document_ids: Sequence[str]) -> Iterator[Change]:
        """See `Connector.again`."""
        with self._mailbox() as mailbox:
            yield from sync.again(mailbox, self._conversations(mailbox), document_ids)

    def listing(self) -> Iterator[Listed]:
        """See `Connector.listing`."""
        with self._mailbox() as mailbox:
            yield from sync.listing(mailbox, self._conversations(mailbox))

    def check(self) -> Iterator[Check]:
        """See `Connector.check`."""
        fault = self._fault()
        yield from checks(fault, fault or self._fault_of_access())

    def _fault(self) -> str | None:
        try:
            with self._mailbox() as mailbox:
                mailbox.state()
        except (ActionRequiredError, TemporarilyUnavailableError) as error:
            return str(error)
        return None

    def _fault_of_access(self) -> str | None:
        if self._settings.access().readers:
            return None
        return (
            f"{self._settings.user} is no e-mail address, so nobody may read the mail: set owner, or"
            f" readers of a shared mailbox, by quarry sources edit {self._source}"
        )

    def _mailbox(self) -> ImapMailbox:
        connect = partial(Session, self._settings.server(), self._account)
        return ImapMailbox(connect, self._chosen, self._settings.largest_message)

    def _chosen(self, folders: Sequence[Folder]) -> Sequence[Folder]:
        found = chosen(folders, self._include, self._exclude)
        if not found:
            names = ", ".join("/".join(one.path) for one in folders[:_MOST_NAMES])
            raise ActionRequiredError(
                f"no folder is left to be read by include and exclude; there is: {names}"
            )
        return found

    def _conversations(self, mailbox: ImapMailbox) -> Conversations:
        return Conversations(
            source=self._source,
            access=self._settings.access(),
            largest_message=self._settings.largest_message,
            link=self._links(mailbox),
            path=mailbox.path,
        )

    def _links(self, mailbox: ImapMailbox) -> Callable[[Envelope], str]:
        template = self._settings.webmail
        if not template and mailbox.knows_threads:
            user = quote(self._settings.user, safe="@")
            template = f"https://mail.google.com/mail/u/{user}/#search/rfc822msgid%3A{{message_id}}"
        return partial(_link, template or "mid:{message_id}")


def _link(template: str, message: Envelope) -> str:
    """RFC 2392 says how an id is written in a mid: address."""
    return template.replace("{message_id}", quote(message.key, safe="@"))


KIND = Kind(
    connector=ImapConnector,
    settings=ImapSettings,
    credential=ImapCredential,
    title="Mail (IMAP)",
)
