"""The settings of a Confluence source: the site, the spaces to read, and the token."""

import re
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from connectors.access import parse_reader_token
from connectors.connector import ServerAccess
from connectors.http_client.setting_types import PrivateHosts, WebAddress, check_encrypted
from connectors.setting_types import GlobPatterns, PublicReaders

_ACCOUNT = re.compile(r"([^\s=]+)=(\S+)")
_DOMAIN = re.compile(r"([A-Za-z0-9-]+\.)+[A-Za-z0-9-]+")


class Cloud(BaseModel):
    """A site of Confluence Cloud."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["cloud"] = "cloud"
    email: str = Field(description="E-mail address of the account that created the API token.")

    @field_validator("email")
    @classmethod
    def _normalize_email(cls, email: str) -> str:
        return parse_reader_token(f"user:{email.strip()}").removeprefix("user:")


class DataCenter(BaseModel):
    """Your own Confluence Data Center or Server."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["data center"] = "data center"
    mail_domain: str = Field(
        default="",
        description="For a server whose user names are the first part of the e-mail addresses: with"
        " acme.com, the user ann has the address ann@acme.com. Empty: the address in each user's"
        " profile.",
    )

    @field_validator("mail_domain")
    @classmethod
    def _check_domain(cls, domain: str) -> str:
        if domain and not _DOMAIN.fullmatch(domain):
            raise ValueError(f"{domain!r} is not a domain: write acme.com")
        return domain.lower()


SiteSettings: TypeAlias = Annotated[Cloud | DataCenter, Field(discriminator="kind")]


class ConfluenceSettings(BaseModel):
    """Index the pages, blog posts, comments and attachments of a Confluence site."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: WebAddress = Field(
        description="The URL of Confluence: https://acme.atlassian.net, or for your own server with"
        " its path, https://wiki.acme.com/confluence."
    )
    site: SiteSettings = Field(description="Confluence Cloud, or your own server.")
    spaces: GlobPatterns = Field(
        default=(),
        description="Keys of spaces, or globs of keys. Empty: all that the account may view.",
    )
    exclude: GlobPatterns = Field(
        default=(),
        description="Keys, or globs of keys, of spaces to exclude: ~* matches personal spaces.",
    )
    largest_attachment: int = Field(
        default=50_000_000,
        ge=0,
        description="Bytes. Of a larger attachment only the name is indexed. 0: only names.",
    )
    accounts: tuple[str, ...] = Field(
        default=(),
        description="ACCOUNT=E-MAIL (an account ID in the cloud, a user name on a server) of people"
        " whose e-mail address Confluence does not show: without it they find only public content.",
    )
    public_readers: PublicReaders = Field(
        default=("public",),
        description="Who may read spaces that anonymous visitors may view. If only some people can"
        " reach the site: group:<id> of these people.",
    )
    private_hosts: PrivateHosts = ()

    @field_validator("accounts")
    @classmethod
    def _check_accounts(cls, accounts: tuple[str, ...]) -> tuple[str, ...]:
        for one in accounts:
            if not (match := _ACCOUNT.fullmatch(one)):
                raise ValueError(f"{one!r}: write ACCOUNT=E-MAIL")
            parse_reader_token(f"user:{match[2]}")
        return accounts

    @model_validator(mode="after")
    def _check_encrypted(self) -> "ConfluenceSettings":
        check_encrypted(self.url, self.private_hosts)
        return self

    def server_access(self) -> ServerAccess:
        return ServerAccess(private_hosts=self.private_hosts)

    @property
    def api_url(self) -> str:
        """The URL below which the REST APIs are."""
        match self.site:
            case Cloud():
                return f"{self.url.removesuffix('/wiki')}/wiki"
            case DataCenter():
                return self.url


class ConfluenceCredential(BaseModel):
    """An API token of Confluence Cloud, or a personal access token of your own server."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    token: SecretStr = Field(
        description="Created in the cloud at id.atlassian.com, Security, API tokens; on a server in"
        " the profile, Settings, Personal access tokens. Its account must be able to view the spaces"
        " and, to read their permissions, to administer them."
    )
