"""The Slack connector: each thread is a document, readable by those who may read its channel.

It reads with the Web API, or from an export. Both give the same documents with the same ids, so that an
export may provide the history and the API what follows.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from connectors.access import Access
from connectors.connector import (
    Change,
    Check,
    Checkpoint,
    GroupItem,
    KnownVersions,
    ListingItem,
    ServerAccess,
    make_checks,
)
from connectors.errors import ActionRequiredError, SourceError
from connectors.files.paths import GlobPattern, matches_any
from connectors.http_client.address_guard import parse_allowed_networks
from connectors.http_client.api_client import required
from connectors.http_client.response import ResponseError
from connectors.registry import REMOTE_INTERVALS, SourceKind
from connectors.setting_types import GlobPatterns
from connectors.sources.slack import sync
from connectors.sources.slack.api_workspace import ApiWorkspace, Scope
from connectors.sources.slack.channel_scopes import ChannelScopes, derive_channel_access
from connectors.sources.slack.client import SlackAccount, SlackClient
from connectors.sources.slack.export_workspace import ExportScope, ExportWorkspace
from connectors.sources.slack.permissions import PermissionCheck
from connectors.sources.slack.settings import ApiSettings, ExportSettings
from connectors.sources.slack.thread_document import ThreadConverter
from connectors.sources.slack.users_and_channels import Channel, ChannelKind, PublicReaders
from connectors.sources.slack.workspace import Workspace

Kinds: TypeAlias = tuple[Literal["public", "private", "group", "direct"], ...]


class SlackSettings(BaseModel):
    """Index the messages of a Slack workspace. For globs see `connectors.files.paths`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    read: Annotated[ApiSettings | ExportSettings, Field(discriminator="kind")] = Field(
        default=ApiSettings(), description="With the API, or from an export."
    )
    conversations: Kinds = Field(
        default=("public", "private"),
        min_length=1,
        description="Public and private channels; group: conversations of several people; direct: of"
        " two. Private conversations are readable by their members.",
    )
    include: GlobPatterns = Field(
        default=(), description="Channels to read, as globs of names or ids. Empty: all."
    )
    exclude: GlobPatterns = Field(
        default=(), description="Channels to exclude, as globs of names or ids."
    )
    public_channels: Literal["workspace", "members", "everybody"] = Field(
        default="workspace",
        description="Who may read public channels: workspace (its members, and guests in the channel);"
        " members (only members of the channel); everybody (all who use Quarry).",
    )

    def server_access(self) -> ServerAccess:
        match self.read:
            case ApiSettings(private_hosts=hosts):
                return ServerAccess(private_hosts=hosts)
            case ExportSettings(path=path):
                return ServerAccess(paths=(path,))

    def get_kinds(self) -> tuple[ChannelKind, ...]:
        return tuple(kind for kind in ChannelKind if kind in self.conversations)

    def is_selected(self, channel: Channel) -> bool:
        if channel.kind not in self.conversations:
            return False
        names = [(channel.id,), (channel.name,)] if channel.name else [(channel.id,)]
        include, exclude = map(_parse_globs, (self.include, self.exclude))
        is_included = not include or any(matches_any(include, name) for name in names)
        return is_included and not any(matches_any(exclude, name) for name in names)


class SlackCredential(BaseModel):
    """The token of the app; an export needs none."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    token: SecretStr | None = Field(
        default=None,
        description="The token of the app (xoxb-…), or of a person for whom it reads (xoxp-…). Scopes:"
        " users:read, users:read.email, files:read, and for each kind of conversation read and"
        " history (channels:read, channels:history, groups:…, mpim:…, im:…).",
    )


class SlackConnector:
    def __init__(
        self, source: str, source_id: int, settings: SlackSettings, credential: SlackCredential
    ) -> None:
        """Raise ValueError if the API is to be used without a token."""
        self._source = source
        self._source_id = source_id
        self._settings = settings
        self._token = credential.token.get_secret_value() if credential.token else ""
        if isinstance(settings.read, ApiSettings) and not self._token:
            raise ValueError("Slack's API needs a token: enter one, or read an export")

    @property
    def source(self) -> str:
        return self._source

    def changes(self, since: Checkpoint | None, known: KnownVersions) -> Iterator[Change]:
        """Yield what changed, channel by channel, newest first, with a checkpoint every 200 messages.

        Slack has no list of edits, so the messages of the last days are compared, and all of them from
        time to time.

        Raises:
            TemporarilyUnavailableError: Slack is not available, or asks to wait.
            ActionRequiredError: the token is not valid or lacks a scope, or the export cannot be read.
        """
        with self._open_threads() as threads:
            yield from sync.iterate_changes(threads, since, known)

    def refetch(self, document_ids: Sequence[str]) -> Iterator[Change]:
        with self._open_threads() as threads:
            yield from sync.refetch(threads, document_ids)

    def listing(self, since: Checkpoint | None) -> Iterator[ListingItem]:
        """Yield the threads channel by channel, with a checkpoint after each page. See `Connector.listing`."""
        with self._open_threads() as threads:
            yield from sync.list_threads(threads, since)

    def groups(self, since: Checkpoint | None) -> Iterator[GroupItem]:
        """Yield the members of the workspace, then the readers of channel after channel, with a checkpoint after each."""
        public = PublicReaders(self._settings.public_channels)
        with required("the members of Slack's channels"), self._open_workspace() as workspace:
            yield from ChannelScopes(self._source_id, workspace, public).list_groups(since)

    def derive_access(self, document_id: str) -> Access:
        channel, _, _ = document_id.removeprefix(f"{self._source}:").partition("/")
        return derive_channel_access(self._source_id, channel)

    def check(self) -> Iterator[Check]:
        yield from make_checks(*self._find_problems())

    def _find_problems(self) -> tuple[str | None, str | None]:
        """Return the problem of reading content and that of reading permissions."""
        match self._settings.read:
            case ApiSettings() as api:
                with SlackClient(self._create_account(api)) as client:
                    check = PermissionCheck(self._source, client, self._create_scope(api))
                    return check.find_content_problem(), check.find_access_problem()
            case ExportSettings() as export:
                problem = self._find_export_problem(export)
                return problem, problem

    def _find_export_problem(self, export: ExportSettings) -> str | None:
        try:
            with ExportWorkspace(self._create_export_scope(export)) as workspace:
                if workspace.list_channels():
                    return None
        except (ActionRequiredError, ResponseError) as error:
            return str(error)
        return "no channel of the export is selected: see conversations, include and exclude"

    @contextmanager
    def _open_threads(self) -> Iterator[ThreadConverter]:
        with required("the messages of Slack"), self._open_workspace() as workspace:
            yield ThreadConverter(self._source, self._source_id, workspace)

    @contextmanager
    def _open_workspace(self) -> Iterator[Workspace]:
        match self._settings.read:
            case ApiSettings() as api:
                with SlackClient(self._create_account(api)) as client:
                    yield ApiWorkspace(client, self._create_scope(api))
            case ExportSettings() as export:
                scope = self._create_export_scope(export)
                with ExportWorkspace(scope) as workspace, _require_readable(export):
                    yield workspace

    def _create_account(self, api: ApiSettings) -> SlackAccount:
        return SlackAccount(
            source=self._source,
            api_url=api.api_url,
            token=self._token,
            allowed_networks=parse_allowed_networks(api.private_hosts),
        )

    def _create_scope(self, api: ApiSettings) -> Scope:
        return Scope(
            kinds=self._settings.get_kinds(),
            is_selected=self._settings.is_selected,
            public=PublicReaders(self._settings.public_channels),
            look_back=timedelta(days=api.look_back_days),
            settles_after=timedelta(days=api.edited_answers_days),
            compare_interval=timedelta(days=api.compare_days),
            max_file_bytes=api.largest_file,
        )

    def _create_export_scope(self, export: ExportSettings) -> ExportScope:
        return ExportScope(
            path=export.path,
            url=export.workspace_url,
            is_selected=self._settings.is_selected,
        )


@contextmanager
def _require_readable(export: ExportSettings) -> Iterator[None]:
    """Turn a ResponseError into a SourceError: trying again does not help with a file."""
    try:
        yield
    except ResponseError as error:
        raise SourceError(
            f"{export.path} cannot be read ({error}): export the workspace again"
        ) from error


def _parse_globs(patterns: Sequence[str]) -> list[GlobPattern]:
    return [GlobPattern.parse(pattern) for pattern in patterns]


SOURCE_KIND = SourceKind(
    connector=SlackConnector,
    settings=SlackSettings,
    credential=SlackCredential,
    server_access=SlackSettings.server_access,
    intervals=REMOTE_INTERVALS,
)
