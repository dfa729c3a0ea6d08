"""Where programs learn how to get a token: of the resources (RFC 9728) and of the authorization server (RFC 8414).

Without accounts there is none: programs send the secret of the machine, or an API token.
"""

from fastapi import APIRouter, Request

from backend.access.oauth.resources import SCOPES, ProtectedResource, name_resource
from backend.api.authorization import Permission, requires
from backend.api.protected_resources import METADATA
from backend.api.request_context import get_request_context
from backend.schemas.oauth import AuthorizationServerMetadata, ProtectedResourceMetadata
from connectors.errors import NotFoundError

OF_SERVER = "/.well-known/oauth-authorization-server"
NO_ACCOUNTS = (
    "This Quarry has no accounts, so that no program can be connected by OAuth. Send an API token (quarry tokens"
    " create), or make accounts: quarry users invite."
)

router = APIRouter()


async def get_issuer(request: Request) -> str:
    """Return the issuer, which is the origin of this server as the client addresses it.

    Raises:
        NotFoundError: there are no accounts, for which it would issue tokens.
    """
    context = get_request_context(request.scope)
    if not context.has_accounts:
        raise NotFoundError(NO_ACCOUNTS)
    return context.origin


@router.get(METADATA, openapi_extra={"security": []}, summary="Who issues tokens for the HTTP API")
@requires(Permission.ANYONE)
async def api_metadata(request: Request) -> ProtectedResourceMetadata:
    return await _describe(request, ProtectedResource.API)


@router.get(
    f"{METADATA}{ProtectedResource.MCP}",
    openapi_extra={"security": []},
    summary="Who issues tokens for MCP",
)
@requires(Permission.ANYONE)
async def mcp_metadata(request: Request) -> ProtectedResourceMetadata:
    return await _describe(request, ProtectedResource.MCP)


async def _describe(request: Request, resource: ProtectedResource) -> ProtectedResourceMetadata:
    issuer = await get_issuer(request)
    return ProtectedResourceMetadata(
        resource=name_resource(issuer, resource),
        authorization_servers=(issuer,),
        scopes_supported=SCOPES,
    )


@router.get(
    OF_SERVER,
    openapi_extra={"security": []},
    summary="Where programs register, ask people for access, and get tokens",
)
@requires(Permission.ANYONE)
async def server_metadata(request: Request) -> AuthorizationServerMetadata:
    issuer = await get_issuer(request)
    return AuthorizationServerMetadata(
        issuer=issuer,
        authorization_endpoint=f"{issuer}/oauth/authorize",
        token_endpoint=f"{issuer}/oauth/token",
        registration_endpoint=f"{issuer}/oauth/register",
        revocation_endpoint=f"{issuer}/oauth/revoke",
        scopes_supported=SCOPES,
    )


@router.get(f"{OF_SERVER}{ProtectedResource.MCP}", include_in_schema=False)
@requires(Permission.ANYONE)
async def server_metadata_for_mcp(request: Request) -> AuthorizationServerMetadata:
    """Clients of early versions of MCP look here: they take the path of the resource for that of the issuer."""
    return await server_metadata(request)
