"""Slack: each thread one document, for those who are in its channel. By the Web API, or from an export.

Both give the same documents under the same ids, so that an export may bring the past and the API what
comes after it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from connectors.connector import Change, Check, Checkpoint, Known, Listed, checks
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from connectors.files.glob_patterns import Glob, any_matches
from connectors.http_client.address_guard import reach_of
from connectors.http_client.response import BadAnswer
from connectors.setting_types import Globs
from connectors.source_kind import Kind
from connectors.sources.slack import sync
from connectors.sources.slack.api_workspace import OnlineWorkspace, Scope
from connectors.sources.slack.client import Calls, SlackAccount
from connectors.sources.slack.export_workspace import Archive, ExportWorkspace
from connectors.sources.slack.permissions import Rights
from connectors.sources.slack.settings import Api, Export
from connectors.sources.slack.thread_document import Threads
from connectors.sources.slack.users_and_channels import Channel, ChannelKind, PublicReaders
from connectors.sources.slack.workspace import Workspace

_SENSELESS = timedelta(minutes=5)
"""When to ask again a service whose answers make no sense."""

Kinds: TypeAlias = tuple[Literal["public", "private", "group", "direct"], ...]


class SlackSettings(BaseModel):
    """Which channels of which workspace. Globs: see `connectors.files.glob_patterns`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    read: Annotated[Api | Export, Field(discriminator="kind")] = Field(
        default=Api(), description="By the API, or from an export."
    )
    conversations: Kinds = Field(
        default=("public", "private"),
        min_length=1,
        description="Public and private channels; group: conversations of several people; direct: of"
        " two. What is said in private is read by those who are there.",
    )
    include: Globs = Field(
        default=(), description="Channels to read, as globs of names or ids. Empty: all."
    )
    exclude: Globs = Field(
        default=(), description="Channels not to read, as globs of names or ids."
    )
    public_channels: Literal["workspace", "members", "everybody"] = Field(
        default="workspace",
        description="Who reads public channels: workspace (its members, and guests where they are in"
        " the channel); members (only who is in the channel); everybody (all who use Quarry).",
    )

    def kinds(self) -> tuple[ChannelKind, ...]:
        return tuple(kind for kind in ChannelKind if kind in self.conversations)

    def chosen(self, channel: Channel) -> bool:
        if channel.kind not in self.conversations:
            return False
        names = [(channel.id,), (channel.name,)] if channel.name else [(channel.id,)]
        include, exclude = map(_globs, (self.include, self.exclude))
        is_in = not include or any(any_matches(include, name) for name in names)
        return is_in and not any(any_matches(exclude, name) for name in names)


class SlackCredential(BaseModel):
    """Of the app that reads; an export needs none."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    token: SecretStr | None = Field(
        default=None,
        description="The token of the app (xoxb-…), or of a person for whom it reads (xoxp-…). Scopes:"
        " users:read, users:read.email, files:read, and for each kind of conversation read and"
        " history (channels:read, channels:history, groups:…, mpim:…, im:…).",
    )


class SlackConnector:
    """The threads of a workspace."""

    def __init__(self, source: str, settings: SlackSettings, credential: SlackCredential) -> None:
        """Raises ValueError: the API is to be asked without a token."""
        self._source = source
        self._settings = settings
        self._token = credential.token.get_secret_value() if credential.token else ""
        if isinstance(settings.read, Api) and not self._token:
            raise ValueError("Slack's API is asked with a token: give one, or read an export")

    @property
    def source(self) -> str:
        return self._source

    def changes(self, since: Checkpoint | None, known: Known) -> Iterator[Change]:
        """Yield what changed, channel by channel, the newest first, with a checkpoint after every 200
        messages.

        Slack tells of no edit, so the messages of the last days are compared, and now and then all.

        Raises:
            TemporarilyUnavailableError: Slack does not answer, or asks to wait.
            ActionRequiredError: the token has ended or lacks a scope, or the export cannot be read.
        """
        with self._threads() as threads:
            yield from sync.changes(threads, since, known)

    def again(self, document_ids: Sequence[str]) -> Iterator[Change]:
        """See `Connector.again`."""
        with self._threads() as threads:
            yield from sync.again(threads, document_ids)

    def listing(self) -> Iterator[Listed]:
        """See `Connector.listing`."""
        with self._threads() as threads:
            yield from sync.listing(threads)

    def check(self) -> Iterator[Check]:
        """See `Connector.check`."""
        yield from checks(*self._faults())

    def _faults(self) -> tuple[str | None, str | None]:
        match self._settings.read:
            case Api() as api:
                with Calls(self._account(api)) as calls:
                    rights = Rights(self._source, calls, self._scope(api))
                    return rights.content(), rights.access()
            case Export() as export:
                fault = self._fault_of(export)
                return fault, fault

    def _fault_of(self, export: Export) -> str | None:
        try:
            with ExportWorkspace(self._archive(export)) as workspace:
                if workspace.channels():
                    return None
        except (ActionRequiredError, BadAnswer) as error:
            return str(error)
        return "no channel of the export is chosen: see conversations, include and exclude"

    @contextmanager
    def _threads(self) -> Iterator[Threads]:
        try:
            with self._workspace() as workspace:
                yield Threads(self._source, workspace)
        except BadAnswer as error:
            raise TemporarilyUnavailableError(
                f"Slack's answers make no sense now: {error}", _SENSELESS
            ) from error

    @contextmanager
    def _workspace(self) -> Iterator[Workspace]:
        match self._settings.read:
            case Api() as api:
                with Calls(self._account(api)) as calls:
                    yield OnlineWorkspace(calls, self._scope(api))
            case Export() as export:
                with ExportWorkspace(self._archive(export)) as archived, _whole(export):
                    yield archived

    def _account(self, api: Api) -> SlackAccount:
        return SlackAccount(
            source=self._source,
            api_url=api.api_url,
            token=self._token,
            reach=reach_of(api.private_hosts),
        )

    def _scope(self, api: Api) -> Scope:
        return Scope(
            kinds=self._settings.kinds(),
            chosen=self._settings.chosen,
            public=PublicReaders(self._settings.public_channels),
            look_back=timedelta(days=api.look_back_days),
            settles=timedelta(days=api.edited_answers_days),
            compare=timedelta(days=api.compare_days),
            largest_file=api.largest_file,
        )

    def _archive(self, export: Export) -> Archive:
        return Archive(
            path=export.path,
            url=export.workspace_url,
            chosen=self._settings.chosen,
            public=PublicReaders(self._settings.public_channels),
        )


@contextmanager
def _whole(export: Export) -> Iterator[None]:
    """An export does not mend itself."""
    try:
        yield
    except BadAnswer as error:
        raise ActionRequiredError(
            f"{export.path} cannot be read ({error}): export the workspace again"
        ) from error


def _globs(patterns: Sequence[str]) -> list[Glob]:
    return [Glob.of(pattern) for pattern in patterns]


KIND = Kind(connector=SlackConnector, settings=SlackSettings, credential=SlackCredential)
