"""The settings of a GitHub source: the repositories, the contents to read, and the token."""

import re
from typing import Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from connectors.access import parse_reader_token
from connectors.connector import ServerAccess
from connectors.http_client.setting_types import PrivateHosts, WebAddress, check_encrypted
from connectors.setting_types import AbsolutePath, GlobPatterns, PublicReaders

Content: TypeAlias = Literal["issues", "pull requests", "discussions", "wiki", "files"]

_NAME = re.compile(r"[A-Za-z0-9_-]+(/[A-Za-z0-9._-]+)?")
_ACCOUNT = re.compile(r"([A-Za-z0-9_-]+)=(\S+)")


class GitHubSettings(BaseModel):
    """Index the issues, pull requests, discussions, wikis and files of repositories on github.com or on
    a GitHub Enterprise Server."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    repositories: tuple[str, ...] = Field(
        min_length=1,
        description="Each OWNER/NAME, or OWNER alone for all repositories of an organization or a"
        " person that the token may read.",
    )
    exclude: tuple[str, ...] = Field(
        default=(), description="Repositories (OWNER/NAME) to exclude."
    )
    contents: tuple[Content, ...] = Field(
        default=("issues", "pull requests", "discussions", "wiki"),
        min_length=1,
        description="What to read of each repository. The files of its default branch, which may be"
        " very many, are read only if selected here.",
    )
    include_files: GlobPatterns = Field(
        default=(), description="Globs of the files to read, such as **/*.md. Empty: all."
    )
    exclude_files: GlobPatterns = Field(default=(), description="Globs of the files to exclude.")
    largest_file: int = Field(
        default=100_000_000,
        gt=0,
        description="Bytes. A larger file or wiki page is reported as unreadable.",
    )
    mirror: AbsolutePath | None = Field(
        default=None,
        description="A folder for copies of the files and the wikis, so that the next run fetches"
        " only what is new. Empty: each run that finds something new makes a temporary copy.",
    )
    accounts: tuple[str, ...] = Field(
        default=(),
        description="LOGIN=E-MAIL of people whose GitHub profile does not show the address with which"
        " they sign in to Quarry: without it they find nothing in private repositories.",
    )
    public_readers: PublicReaders = Field(
        default=("public",),
        description="Who may read public repositories. On your own server, on which only some people"
        " have an account: group:<id> of these people.",
    )
    api_url: WebAddress = Field(
        default="https://api.github.com",
        description="For a GitHub Enterprise Server: https://HOST/api/v3.",
    )
    private_hosts: PrivateHosts = ()

    @field_validator("repositories", "exclude")
    @classmethod
    def _check_names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if not _NAME.fullmatch(name) or name.endswith(("/.", "/..")):
                raise ValueError(f"{name!r} is not a repository: write OWNER/NAME, or OWNER alone")
        return names

    @field_validator("accounts")
    @classmethod
    def _check_accounts(cls, accounts: tuple[str, ...]) -> tuple[str, ...]:
        for one in accounts:
            if not (match := _ACCOUNT.fullmatch(one)):
                raise ValueError(f"{one!r}: write LOGIN=E-MAIL")
            parse_reader_token(f"user:{match[2]}")
        return accounts

    @model_validator(mode="after")
    def _check_encrypted(self) -> Self:
        check_encrypted(self.api_url, self.private_hosts)
        return self

    def server_access(self) -> ServerAccess:
        return ServerAccess(
            paths=(self.mirror,) if self.mirror else (), private_hosts=self.private_hosts
        )


class GitHubCredential(BaseModel):
    """A personal access token: fine-grained, with read access to Metadata and to the contents to read
    (Issues, Pull requests, Discussions, Contents for wikis and files), or classic, with the scopes repo and
    read:org."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    token: SecretStr = Field(
        description="Created on GitHub at Settings, Developer settings, Personal access tokens. The"
        " readers of a private repository are visible only to accounts that may push to it."
    )
