"""How a source signs in to a server with HTTP: nothing, a user name and a password, or a request header."""

import re
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from connectors.http_client.request import Authorization

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_RESERVED_HEADERS = {"host", "content-length", "connection", "transfer-encoding", "accept-encoding"}
_HEADER_VALUE = re.compile(r"[!-~]+( [!-~]+)*")


class Anonymous(BaseModel):
    """No credential is needed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["none"] = "none"


class Basic(BaseModel):
    """A user name and a password (HTTP basic authentication)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["basic"] = "basic"
    user: str = Field(description="The user name.", pattern=r"^[^:\x00-\x1f\x7f]+$")
    password: SecretStr = Field(description="The password.")


class Header(BaseModel):
    """A request header with a token or a cookie."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["header"] = "header"
    name: str = Field(default="Authorization", description="The name of the header.")
    value: SecretStr = Field(description="The value of the header: Bearer …, Token …, or a cookie.")

    @field_validator("name")
    @classmethod
    def _validate_name(cls, name: str) -> str:
        if not _HEADER_NAME.fullmatch(name) or name.lower() in _RESERVED_HEADERS:
            raise ValueError(f"{name!r} is not a header that can be set")
        return name

    @field_validator("value")
    @classmethod
    def _validate_value(cls, value: SecretStr) -> SecretStr:
        if not _HEADER_VALUE.fullmatch(value.get_secret_value()):
            raise ValueError("must be one line of ASCII characters without surrounding blanks")
        return value


SignIn: TypeAlias = Anonymous | Basic | Header


def make_authorization(
    url: str, sign_in: SignIn, private_hosts: tuple[str, ...]
) -> Authorization | None:
    """Return what is sent to the host of `url`, or None if nothing is needed.

    Raises:
        ValueError: the credential would be sent to a public host without encryption.
    """
    if not isinstance(sign_in, Anonymous) and not url.startswith("https:") and not private_hosts:
        raise ValueError(
            "a credential is sent over https only: write the URL with https://, or add the host to"
            " private_hosts if it is in your own network"
        )
    match sign_in:
        case Anonymous():
            return None
        case Basic(user=user, password=password):
            return Authorization.basic(url, user, password.get_secret_value())
        case Header(name=name, value=value):
            return Authorization(url, {name: value.get_secret_value()})
