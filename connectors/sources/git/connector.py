"""The files of one branch of a git repository.

A repository's address does not say who may read it. The settings do, or an `access.yaml` at the root of
the branch, which then replaces them (see `connectors.files.access_rules`): whoever may write to the branch
decides who may read it here.
"""

import hashlib
import json
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from connectors.access import Access
from connectors.connector import (
    Change,
    Check,
    Checkpoint,
    DocumentListing,
    GroupItem,
    KnownVersions,
    ServerAccess,
    find_fault,
    make_checks,
)
from connectors.errors import SourceError
from connectors.files.access_rules import (
    ACCESS_FILE,
    MISSPELLED_NAMES,
    AccessRules,
    Rule,
    parse_access_rules,
)
from connectors.files.paths import GlobPattern, PathParts
from connectors.files.rule_scopes import RulePlace, RuleScopes
from connectors.git_repository.branch_sync import Branch, FileFilter
from connectors.git_repository.connection import Connection
from connectors.git_repository.credentials import GitCredential
from connectors.git_repository.file_documents import FORMAT_VERSION, DocumentOptions, FileAccess
from connectors.git_repository.progress import Completed, InProgress, from_checkpoint, to_checkpoint
from connectors.git_repository.remote_url import (
    HttpRemote,
    LocalRemote,
    display_url,
    parse_remote,
    repository_name,
)
from connectors.git_repository.repository import Repository
from connectors.git_repository.repository_links import find_repository_links
from connectors.http_client.address_guard import parse_allowed_networks
from connectors.http_client.setting_types import PrivateHosts
from connectors.registry import REMOTE_INTERVALS, SourceKind
from connectors.setting_types import AbsolutePath, GlobPatterns, ReaderTokens
from connectors.sources.git.web_links import Hosting, detect_hosting, file_link

_MAX_ACCESS_FILE_BYTES = 1_000_000


class GitSettings(BaseModel):
    """Index the files of a git branch. In globs, * and ? match within a name, ** matches any folders."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str = Field(
        description="https://HOST/PATH, ssh://USER@HOST/PATH, USER@HOST:PATH, or the path of a"
        " repository on this machine."
    )
    readers: ReaderTokens = Field(
        description="Who may read the files: public, user:<email>, group:<id>. An access.yaml at the"
        " root of the branch replaces this."
    )
    branch: str = Field(
        default="",
        description="The branch to read. Empty: the default branch.",
        pattern=r"^[^-\x00-\x20~^:?*\[\\]*$",
    )
    include: GlobPatterns = Field(default=(), description="Globs of the files to read. Empty: all.")
    exclude: GlobPatterns = Field(default=(), description="Globs of the files to leave out.")
    largest_file: int = Field(
        default=100_000_000,
        gt=0,
        description="Bytes. A larger file is reported as unreadable.",
    )
    hosting: Hosting | None = Field(
        default=None,
        description="The software that hosts the repository, for links to its pages. Empty: inferred"
        " from the host name.",
    )
    mirror: AbsolutePath | None = Field(
        default=None,
        description="A folder in which to keep a copy of the repository, so that the next run fetches"
        " only what is new. Empty: each run that finds changes makes a temporary copy.",
    )
    private_hosts: PrivateHosts = ()

    @field_validator("url")
    @classmethod
    def _validate_url(cls, url: str) -> str:
        parse_remote(url)
        return url.strip()

    @model_validator(mode="after")
    def _require_encryption(self) -> Self:
        remote = parse_remote(self.url)
        if isinstance(remote, HttpRemote) and remote.scheme == "http" and not self.private_hosts:
            raise ValueError(
                "http:// is not encrypted: write https://, or add the host to private_hosts"
            )
        return self

    def server_access(self) -> ServerAccess:
        remote, mirrors = parse_remote(self.url), (self.mirror,) if self.mirror else ()
        if isinstance(remote, LocalRemote):
            find_links = partial(find_repository_links, remote.path)
            return ServerAccess(paths=(remote.path, *mirrors), find_links=find_links)
        return ServerAccess(paths=mirrors, private_hosts=self.private_hosts)


class GitConnector:
    """Reads the regular files of a branch; hidden files, symbolic links and submodules are left out."""

    def __init__(
        self, source: str, source_id: int, settings: GitSettings, credential: GitCredential
    ) -> None:
        self._source = source
        self._source_id = source_id
        self._settings = settings
        self._remote = parse_remote(settings.url)
        self._repository = repository_name(self._remote)
        self._hosting = settings.hosting or detect_hosting(self._remote)
        selected = FileFilter.of(settings.include, settings.exclude)
        options = DocumentOptions(
            source=source,
            id_prefix=f"{source}:",
            parents=(self._repository,),
            metadata={"repository": self._repository},
            accepts=lambda parts: parts[0] != ACCESS_FILE and selected.accepts(parts),
            link=self._link,
            largest_file=settings.largest_file,
        )
        connection = Connection(
            source=source,
            remote=self._remote,
            sign_in=credential.sign_in,
            allowed_networks=parse_allowed_networks(settings.private_hosts),
        )
        self._branch = Branch(
            connection=connection,
            name=settings.branch,
            mirror_folder=self._mirror_folder,
            options=options,
            load_access=self._load_access,
        )

    @property
    def source(self) -> str:
        return self._source

    def changes(self, since: Checkpoint | None, known: KnownVersions) -> Iterator[Change]:
        """Yield what differs from the commit that was read last, with a checkpoint every 200 files.

        An interrupted run is first completed up to its own commit. Where the last commit cannot be
        fetched any more, all files are compared with the known versions; deleted files are then found
        by `listing`.

        Raises:
            TemporarilyUnavailableError: the server, or the local disk, is not available now.
            ActionRequiredError: the settings, the credential or access.yaml must be corrected.
        """
        for change in self._branch.changes(from_checkpoint(since, self._selection), known):
            match change:
                case InProgress() | Completed():
                    yield to_checkpoint(change, self._selection)
                case _:
                    yield change

    def refetch(self, document_ids: Sequence[str]) -> Iterator[Change]:
        """See `Connector.refetch`."""
        return self._branch.refetch(document_ids)

    def listing(self, since: Checkpoint | None) -> Iterator[DocumentListing]:
        """Yield every file and who may read it now; no file contents are fetched. See `Connector.listing`."""
        del since
        return self._branch.listing()

    def groups(self, since: Checkpoint | None) -> Iterator[GroupItem]:
        """Yield the readers of each rule of the last commit; no file contents but the rules are fetched."""
        del since
        yield from self._branch.load_latest(self._load_scopes).list_groups()

    def check(self) -> Iterator[Check]:
        """See `Connector.check`."""
        fault = find_fault(self._branch.probe)
        yield from make_checks(fault, fault)

    @property
    def _mirror_folder(self) -> Path | None:
        """Several sources may share the folder of the setting `mirror`."""
        digest = hashlib.sha256(self._settings.url.encode()).hexdigest()[:20]
        return self._settings.mirror and self._settings.mirror / f"{self._repository}-{digest}"

    @property
    def _selection(self) -> str:
        """A hash of the settings with which files that were left out may be read."""
        settings = self._settings
        values = [FORMAT_VERSION, settings.include, settings.exclude, settings.largest_file]
        return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:20]

    def _load_access(self, repository: Repository, commit: str) -> FileAccess:
        return self._load_scopes(repository, commit).find_access

    def _load_scopes(self, repository: Repository, commit: str) -> RuleScopes:
        address = [self._settings.url, self._settings.branch]
        present = repository.trees.find_root_names(commit, [ACCESS_FILE, *MISSPELLED_NAMES])
        if not present:
            rule = Rule(GlobPattern.parse("**"), Access.to(self._settings.readers))
            place = RulePlace(self._source_id, address, "readers in the settings")
            return RuleScopes.of(AccessRules((rule,)), place)
        rules = self._load_rules(repository, commit, present)
        return RuleScopes.of(rules, RulePlace(self._source_id, address))

    def _load_rules(
        self, repository: Repository, commit: str, present: Collection[str]
    ) -> AccessRules:
        name = f"{ACCESS_FILE} of {display_url(self._remote)}"
        if ACCESS_FILE not in present:
            # If a misspelled file were ignored, the readers of the settings would see all files.
            raise SourceError(f"{name}: rename {min(present)} to {ACCESS_FILE}")
        entry = next(repository.trees.find_files(commit, [(ACCESS_FILE,)]), None)
        if entry is None:
            raise SourceError(f"{name} must be a file")
        repository.fetch_blobs([entry.blob])
        if (repository.objects.size(entry.blob) or 0) > _MAX_ACCESS_FILE_BYTES:
            raise SourceError(f"{name} is larger than {_MAX_ACCESS_FILE_BYTES:,} bytes")
        return parse_access_rules(repository.objects.read(entry.blob), name)

    def _link(self, parts: PathParts, branch: str) -> str:
        return file_link(self._remote, self._hosting, branch, parts)


SOURCE_KIND = SourceKind(
    connector=GitConnector,
    settings=GitSettings,
    credential=GitCredential,
    server_access=GitSettings.server_access,
    intervals=REMOTE_INTERVALS,
)
