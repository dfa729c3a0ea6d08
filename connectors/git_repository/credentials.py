"""How one signs in to a repository."""

import re
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class Anonymous(BaseModel):
    """Nobody needs to sign in."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["none"] = "none"


class Token(BaseModel):
    """A token or a password, for http(s) addresses."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["token"] = "token"
    token: SecretStr = Field(description="An access token that may read the repository.")
    user: str = Field(
        default="x-access-token",
        description="The user name that belongs to it: any for GitHub and GitLab, x-token-auth for"
        " a repository token of Bitbucket.",
    )

    @field_validator("user")
    @classmethod
    def _one_name(cls, user: str) -> str:
        if not user or ":" in user or _CONTROL.search(user):
            raise ValueError("a user name has no colon and no line break")
        return user

    @field_validator("token")
    @classmethod
    def _one_line(cls, token: SecretStr) -> SecretStr:
        if not token.get_secret_value() or _CONTROL.search(token.get_secret_value()):
            raise ValueError("a token is one line")
        return token


class SshKey(BaseModel):
    """A key, for ssh addresses."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["ssh_key"] = "ssh_key"
    private_key: SecretStr = Field(
        description="A private key without a passphrase, as in the file that ssh-keygen makes."
    )
    known_hosts: str = Field(
        description="The server's public keys, as `ssh-keyscan HOST` prints them, compared with what"
        " the server's owner publishes."
    )


SignIn: TypeAlias = Anonymous | Token | SshKey


class GitCredential(BaseModel):
    """How Quarry signs in to the server of a repository."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sign_in: Annotated[SignIn, Field(discriminator="kind")] = Field(
        default=Anonymous(), description="With nothing, a token, or a key."
    )
