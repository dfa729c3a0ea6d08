"""The files of a git repository, at one branch, kept in step by its history.

Nothing in a repository's address says who may read it: the owner does, by a setting, or by an
`access.yaml` at the root of the branch, which then decides alone (see `connectors.files.access_rules`): who
may write to the branch decides who may read it here.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from connectors.connector import Change, Check, Checkpoint, Known, Listed, checks
from connectors.document import Access
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from connectors.files.access_rules import AccessRules, Rule, parse_access_rules
from connectors.files.glob_patterns import Glob
from connectors.files.paths import Parts
from connectors.git_repository.branch_sync import Branch
from connectors.git_repository.choosing import PlainFiles
from connectors.git_repository.connection import Way
from connectors.git_repository.credentials import GitCredential
from connectors.git_repository.file_documents import READING, AccessOf, Shelf
from connectors.git_repository.progress import Arrived, Stage, checkpoint, place
from connectors.git_repository.remote_url import OnTheWeb, remote_of, repository_name, spoken
from connectors.git_repository.repository import Copy
from connectors.http_client.address_guard import parse_allowed_networks
from connectors.http_client.setting_types import PrivateHosts
from connectors.setting_types import AbsolutePath, Globs, ReaderTokens
from connectors.source_kind import Kind
from connectors.sources.git.web_links import Hosting, file_link, hosting_of

ACCESS_FILE = "access.yaml"

_LARGEST_ACCESS_FILE = 1_000_000
_MISNAMED = ("access.yml", "Access.yaml", "Access.yml", "ACCESS.YAML")


class GitSettings(BaseModel):
    """Which files of which repository, and who may read them. Globs: see `connectors.files.glob_patterns`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str = Field(
        description="https://HOST/PATH, ssh://USER@HOST/PATH, USER@HOST:PATH, or the path of a"
        " repository on this machine."
    )
    readers: ReaderTokens = Field(
        description="Who may read the files: public, user:<email>, group:<id>. Where the branch has an"
        " access.yaml at its root, that decides instead."
    )
    branch: str = Field(
        default="",
        description="Its name. Empty: the default branch.",
        pattern=r"^[^-\x00-\x20~^:?*\[\\]*$",
    )
    include: Globs = Field(default=(), description="Globs of the files to read. Empty: all.")
    exclude: Globs = Field(default=(), description="Globs of the files to leave out.")
    largest_file: int = Field(
        default=100_000_000,
        gt=0,
        description="Bytes. A larger file is reported as unreadable.",
    )
    hosting: Hosting | None = Field(
        default=None,
        description="Which program shows the repository to people, for links to its pages. Empty: told"
        " by the name of the host.",
    )
    mirror: AbsolutePath | None = Field(
        default=None,
        description="A folder in which a copy stays, so that the next run fetches only what is new."
        " Empty: each run that finds something new makes a copy of its own and removes it.",
    )
    private_hosts: PrivateHosts = ()

    @field_validator("url")
    @classmethod
    def _address(cls, url: str) -> str:
        remote_of(url)
        return url.strip()

    @model_validator(mode="after")
    def _encrypted(self) -> Self:
        remote = remote_of(self.url)
        if isinstance(remote, OnTheWeb) and remote.scheme == "http" and not self.private_hosts:
            raise ValueError("http:// is not encrypted: write https://, or name the private host")
        return self


class GitConnector:
    """The plain files of one branch, without hidden ones, links and other repositories within."""

    def __init__(self, source: str, settings: GitSettings, credential: GitCredential) -> None:
        self._source = source
        self._settings = settings
        self._remote = remote_of(settings.url)
        self._repository = repository_name(self._remote)
        self._hosting = settings.hosting or hosting_of(self._remote)
        plain = PlainFiles.of(settings.include, settings.exclude)
        shelf = Shelf(
            source=source,
            prefix=f"{source}:",
            parents=(self._repository,),
            metadata={"repository": self._repository},
            takes=lambda parts: parts[0] != ACCESS_FILE and plain.takes(parts),
            link=self._link,
            largest_file=settings.largest_file,
        )
        way = Way(
            source=source,
            remote=self._remote,
            sign_in=credential.sign_in,
            reach=parse_allowed_networks(settings.private_hosts),
        )
        self._branch = Branch(
            way=way, name=settings.branch, kept=self._kept, shelf=shelf, rules=self._access
        )

    @property
    def source(self) -> str:
        return self._source

    def changes(self, since: Checkpoint | None, known: Known) -> Iterator[Change]:
        """Yield what differs from the commit that was read last, with a checkpoint every 200 files.

        A run that was broken off is first taken to the end of its own commit. Where the last commit
        is no longer to be had, all files are compared with what Quarry holds; what went with it is
        then found from `listing`.

        Raises:
            TemporarilyUnavailableError: the server, or this machine's disk, does not do it now.
            ActionRequiredError: the repository, its branch, the credential or the access file must be mended.
        """
        for change in self._branch.changes(place(since, self._chosen), known):
            match change:
                case Stage() | Arrived():
                    yield checkpoint(change, self._chosen)
                case _:
                    yield change

    def again(self, document_ids: Sequence[str]) -> Iterator[Change]:
        """See `Connector.again`."""
        return self._branch.again(document_ids)

    def listing(self) -> Iterator[Listed]:
        """Yield every file with those who may read it now; no content comes over the network.

        Raises:
            TemporarilyUnavailableError: the server, or this machine's disk, does not do it now.
            ActionRequiredError: the repository, its branch, the credential or the access file must be mended.
        """
        return self._branch.listing()

    def check(self) -> Iterator[Check]:
        """See `Connector.check`."""
        fault = self._fault()
        yield from checks(fault, fault)

    @property
    def _kept(self) -> Path | None:
        """One folder may serve several repositories."""
        digest = hashlib.sha256(self._settings.url.encode()).hexdigest()[:20]
        return self._settings.mirror and self._settings.mirror / f"{self._repository}-{digest}"

    @property
    def _chosen(self) -> str:
        """Changes when files come in that were left out."""
        settings = self._settings
        told = [READING, settings.include, settings.exclude, settings.largest_file]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:20]

    def _access(self, copy: Copy, commit: str) -> AccessOf:
        return self._rules(copy, commit).access

    def _rules(self, copy: Copy, commit: str) -> AccessRules:
        present = copy.files.named(commit, [ACCESS_FILE, *_MISNAMED])
        if not present:
            return AccessRules((Rule(Glob.of("**"), Access.to(self._settings.readers)),))
        name = f"{ACCESS_FILE} of {spoken(self._remote)}"
        if ACCESS_FILE not in present:
            # Rules under a name that is almost right must not leave the files to other readers.
            raise ActionRequiredError(f"{name}: rename {min(present)} to {ACCESS_FILE}")
        entry = next(copy.files.at(commit, [(ACCESS_FILE,)]), None)
        if entry is None:
            raise ActionRequiredError(f"{name} must be a file")
        copy.bring([entry.blob])
        if (copy.objects.size(entry.blob) or 0) > _LARGEST_ACCESS_FILE:
            raise ActionRequiredError(f"{name} is larger than {_LARGEST_ACCESS_FILE:,} bytes")
        return parse_access_rules(copy.objects.content(entry.blob), name)

    def _link(self, parts: Parts, branch: str) -> str:
        return file_link(self._remote, self._hosting, branch, parts)

    def _fault(self) -> str | None:
        try:
            self._branch.probe()
        except (ActionRequiredError, TemporarilyUnavailableError) as error:
            return str(error)
        return None


KIND = Kind(connector=GitConnector, settings=GitSettings, credential=GitCredential)
