"""Who asks. Every route that tells anything of a document gets its asker from here."""

from dataclasses import dataclass
from typing import Annotated, Literal, Protocol, TypeAlias

from fastapi import Depends, Request

from backend.api.request_context import visit_in
from connectors.access import Readers

AskerKind: TypeAlias = Literal["local"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    kind: AskerKind
    readers: Readers
    is_owner: bool
    """Whether the asker may see and change what is connected."""


class Askers(Protocol):
    """Knows askers by their requests. Accounts will be another of these."""

    async def of(self, request: Request) -> Asker: ...


@dataclass(frozen=True, slots=True)
class LocalAsker:
    """The person at this machine, whoever the request seems to come from.

    Right only where nobody else can reach the server: see `guard` and `commands.serving`.
    """

    readers: Readers

    async def of(self, request: Request) -> Asker:
        del request
        return Asker(kind="local", readers=self.readers, is_owner=True)


async def asker_of(request: Request) -> Asker:
    askers: Askers = request.app.state.askers
    asker = await askers.of(request)
    visit_in(request.scope).asker = asker.kind
    return asker


AskerIs = Annotated[Asker, Depends(asker_of)]
