"""What an owner says of GitHub: which repositories are read, and with which token."""

import re
from typing import Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from connectors.document import reader_token
from connectors.setting_types import (
    PrivateHosts,
    ReaderTokens,
    WebAddress,
    check_encrypted,
)

Content: TypeAlias = Literal["issues", "pull requests"]

_NAME = re.compile(r"[A-Za-z0-9_-]+(/[A-Za-z0-9._-]+)?")
_ACCOUNT = re.compile(r"([A-Za-z0-9_-]+)=(\S+)")


class GitHubSettings(BaseModel):
    """Issues and pull requests of repositories on github.com or on a GitHub Enterprise Server.

    Their code comes by a source of kind git.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    repositories: tuple[str, ...] = Field(
        min_length=1,
        description="Each OWNER/NAME, or OWNER alone for all repositories of an organisation or a"
        " person that the token may see.",
    )
    exclude: tuple[str, ...] = Field(
        default=(), description="Repositories (OWNER/NAME) that are left out."
    )
    contents: tuple[Content, ...] = Field(
        default=("issues", "pull requests"),
        min_length=1,
        description="What is read of each repository.",
    )
    accounts: tuple[str, ...] = Field(
        default=(),
        description="LOGIN=E-MAIL of people whose GitHub profile does not show the address by which"
        " they sign in to Quarry: without it they find nothing of private repositories.",
    )
    public_readers: ReaderTokens = Field(
        default=("public",),
        description="Who may read what is public on GitHub. On a server of your own to which only"
        " some have an account: group:<id> of these.",
    )
    api_url: WebAddress = Field(
        default="https://api.github.com",
        description="Of a GitHub Enterprise Server: https://HOST/api/v3.",
    )
    private_hosts: PrivateHosts = Field(
        default=(),
        description="Hosts, addresses or networks (10.0.0.0/8) inside the own network that may be"
        " asked. An address with http:// is taken only where some are named.",
    )

    @field_validator("repositories", "exclude")
    @classmethod
    def _names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if not _NAME.fullmatch(name) or name.endswith(("/.", "/..")):
                raise ValueError(f"{name!r} is no repository: write OWNER/NAME, or OWNER alone")
        return names

    @field_validator("accounts")
    @classmethod
    def _accounts(cls, accounts: tuple[str, ...]) -> tuple[str, ...]:
        for one in accounts:
            if not (match := _ACCOUNT.fullmatch(one)):
                raise ValueError(f"{one!r}: write LOGIN=E-MAIL")
            reader_token(f"user:{match[2]}")
        return accounts

    @model_validator(mode="after")
    def _encrypted(self) -> Self:
        check_encrypted(self.api_url, self.private_hosts)
        return self


class GitHubCredential(BaseModel):
    """A personal access token: fine-grained with read access to Issues, Pull requests and Metadata, or
    classic with the scopes repo and read:org."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    token: SecretStr = Field(
        description="Made on GitHub under Settings, Developer settings, Personal access tokens. Who"
        " may read a private repository is told only to those who may push to it."
    )
