"""Authentication: who sends a request. Every route that returns anything of a document takes its asker from here."""

from dataclasses import dataclass
from typing import Annotated, Literal, Protocol, TypeAlias

from fastapi import Depends, Request

from backend.api.request_context import get_request_context
from connectors.access import Readers

AskerKind: TypeAlias = Literal["local"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    kind: AskerKind
    readers: Readers
    is_owner: bool
    """Whether the asker may see and change what is connected."""


class Authenticator(Protocol):
    """Identifies the asker of a request."""

    async def authenticate(self, request: Request) -> Asker: ...


@dataclass(frozen=True, slots=True)
class LocalAuthenticator:
    """Takes every request for one of the person at this machine.

    Right only where nobody else can reach the server: see `request_guard` and `backend.cli.serve`.
    """

    readers: Readers

    async def authenticate(self, request: Request) -> Asker:
        del request
        return Asker(kind="local", readers=self.readers, is_owner=True)


async def get_asker(request: Request) -> Asker:
    authenticator: Authenticator = request.app.state.authenticator
    asker = await authenticator.authenticate(request)
    get_request_context(request.scope).asker = asker.kind
    return asker


AskerDependency = Annotated[Asker, Depends(get_asker)]
