"""What an owner says of a Confluence site: where it is, which spaces are read, and with which token."""

import re
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from connectors.document import reader_token
from connectors.http_client.setting_types import PrivateHosts, WebAddress, check_encrypted
from connectors.setting_types import Globs, ReaderTokens

_ACCOUNT = re.compile(r"([^\s=]+)=(\S+)")
_DOMAIN = re.compile(r"([A-Za-z0-9-]+\.)+[A-Za-z0-9-]+")


class Cloud(BaseModel):
    """A site of Confluence Cloud."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["cloud"] = "cloud"
    email: str = Field(description="E-mail address of the account that the API token was made by.")

    @field_validator("email")
    @classmethod
    def _address(cls, email: str) -> str:
        return reader_token(f"user:{email.strip()}").removeprefix("user:")


class DataCenter(BaseModel):
    """A Confluence Data Center or Server of your own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["data center"] = "data center"
    mail_domain: str = Field(
        default="",
        description="Of a server whose user names are the first part of people's e-mail addresses:"
        " acme.com makes ann read what ann@acme.com may. Empty: the address of each person's profile"
        " is asked for.",
    )

    @field_validator("mail_domain")
    @classmethod
    def _domain(cls, domain: str) -> str:
        if domain and not _DOMAIN.fullmatch(domain):
            raise ValueError(f"{domain!r} is no domain: write acme.com")
        return domain.lower()


Site: TypeAlias = Annotated[Cloud | DataCenter, Field(discriminator="kind")]


class ConfluenceSettings(BaseModel):
    """Pages, blog posts, their comments and attachments of a Confluence site."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: WebAddress = Field(
        description="Where Confluence is: https://acme.atlassian.net, or of a server of your own with"
        " its path, https://wiki.acme.com/confluence."
    )
    site: Site = Field(description="In the cloud of Atlassian, or on a server of your own.")
    spaces: Globs = Field(
        default=(),
        description="Keys of spaces, or globs of keys. Empty: all that the account may see.",
    )
    exclude: Globs = Field(
        default=(),
        description="Keys, or globs of keys, of spaces that are left out: ~* are those of persons.",
    )
    largest_attachment: int = Field(
        default=50_000_000,
        ge=0,
        description="Bytes. Of a larger one only the name is found. 0: of all only the names.",
    )
    accounts: tuple[str, ...] = Field(
        default=(),
        description="ACCOUNT=E-MAIL (an account ID in the cloud, a user name on a server) of people"
        " whose e-mail address Confluence does not show: without it they find nothing that is not"
        " open to all.",
    )
    public_readers: ReaderTokens = Field(
        default=("public",),
        description="Who may read spaces that are open to anonymous visitors. Where only some can"
        " reach the site: group:<id> of these.",
    )
    private_hosts: PrivateHosts = ()

    @field_validator("accounts")
    @classmethod
    def _accounts(cls, accounts: tuple[str, ...]) -> tuple[str, ...]:
        for one in accounts:
            if not (match := _ACCOUNT.fullmatch(one)):
                raise ValueError(f"{one!r}: write ACCOUNT=E-MAIL")
            reader_token(f"user:{match[2]}")
        return accounts

    @model_validator(mode="after")
    def _encrypted(self) -> "ConfluenceSettings":
        check_encrypted(self.url, self.private_hosts)
        return self

    @property
    def base(self) -> str:
        """Where the paths of its REST APIs begin."""
        match self.site:
            case Cloud():
                return f"{self.url.removesuffix('/wiki')}/wiki"
            case DataCenter():
                return self.url


class ConfluenceCredential(BaseModel):
    """An API token of Confluence Cloud, or a personal access token of a server of your own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    token: SecretStr = Field(
        description="In the cloud made under id.atlassian.com, Security, API tokens; on a server in"
        " the profile, under Settings, Personal access tokens. Its account must be able to view the"
        " spaces and, for who may read them, administer them."
    )
