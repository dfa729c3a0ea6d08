"""The credentials of a repository."""

import re
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class Anonymous(BaseModel):
    """No credential is needed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["none"] = "none"


class Token(BaseModel):
    """A token or a password, for http(s) addresses."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["token"] = "token"
    token: SecretStr = Field(description="An access token that may read the repository.")
    user: str = Field(
        default="x-access-token",
        description="The user name that goes with the token. GitHub and GitLab accept any;"
        " Bitbucket repository tokens need x-token-auth.",
    )

    @field_validator("user")
    @classmethod
    def _validate_user(cls, user: str) -> str:
        if not user or ":" in user or _CONTROL.search(user):
            raise ValueError("a user name must not be empty or contain a colon or a line break")
        return user

    @field_validator("token")
    @classmethod
    def _validate_token(cls, token: SecretStr) -> SecretStr:
        if not token.get_secret_value() or _CONTROL.search(token.get_secret_value()):
            raise ValueError("a token must be one line")
        return token


class SshKey(BaseModel):
    """A key, for SSH addresses."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["ssh_key"] = "ssh_key"
    private_key: SecretStr = Field(
        description="A private key without a passphrase: the content of the file that ssh-keygen writes."
    )
    known_hosts: str = Field(
        description="The server's public keys, as `ssh-keyscan HOST` prints them. Compare them with"
        " those that the server's owner publishes."
    )


SignIn: TypeAlias = Anonymous | Token | SshKey


class GitCredential(BaseModel):
    """How Quarry signs in to the server of a repository."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sign_in: Annotated[SignIn, Field(discriminator="kind")] = Field(
        default=Anonymous(), description="No credential, a token, or an SSH key."
    )
