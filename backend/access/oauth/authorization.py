"""Programs ask people for access: the code flow (OAuth 2.1, 4.1) with PKCE by SHA-256 alone (RFC 7636).

No browser is ever sent to a program before a person has decided: whoever registers one would else make of this server what
leads people anywhere (RFC 9700, 4.11).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from backend.access.api_tokens import TokenScope
from backend.access.oauth.clients import audit_name
from backend.access.oauth.errors import OAuthError, OAuthErrorCode
from backend.access.oauth.parameters import Fields, find_parameter, get_parameter, list_values
from backend.access.oauth.redirect_uris import add_parameters, find_redirect_uri
from backend.access.oauth.resources import (
    ProtectedResource,
    name_resource,
    read_resource,
    read_scopes,
)
from backend.access.random_secrets import digest, make_random_secret
from backend.store import audit
from backend.store.accounts import oauth_clients, oauth_grants, people
from backend.store.accounts.oauth_clients import OAuthClient
from backend.store.accounts.oauth_grants import NewGrant
from backend.store.accounts.people import Person
from backend.store.audit import Actor
from backend.store.database import Database
from connectors.errors import ConflictError

CODE_PREFIX = "qoac_"
CODE_LIFETIME = timedelta(seconds=60)
LONGEST_STATE = 1_500
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationRequest:
    """What a program asks a person for; all of it has been checked."""

    client: OAuthClient
    redirect_uri: str
    state: str | None
    challenge: str
    resource: ProtectedResource
    scopes: Sequence[TokenScope]


class RefusedRequestError(OAuthError):
    """The request is not valid, and the program may be informed at `return_address`."""

    def __init__(self, error: OAuthError, return_address: str) -> None:
        super().__init__(error.code, error.description)
        self.return_address = return_address


def read_authorization_request(
    database: Database, issuer: str, fields: Fields
) -> AuthorizationRequest:
    """Check what a program asks for.

    Args:
        issuer: the origin of this server.

    Raises:
        RefusedRequestError: the program may be informed of what is wrong.
        OAuthError: the program or its address is not known: nobody may be sent there.
    """
    client = _find_client(database, get_parameter(fields, "client_id"))
    given = find_parameter(fields, "redirect_uri")
    redirect_uri = find_redirect_uri(client.redirect_uris, given)
    try:
        return _read_rest(client, redirect_uri, issuer, fields)
    except OAuthError as error:
        states = list_values(fields, "state")
        state = states[0] if len(states) == 1 else None
        address = _respond(redirect_uri, issuer, state, error=error.code)
        raise RefusedRequestError(error, address) from error


def _find_client(database: Database, client_id: str) -> OAuthClient:
    client = oauth_clients.find(database, client_id)
    if client is None:
        raise OAuthError(OAuthErrorCode.INVALID_CLIENT, "The client_id is not registered.")
    return client


def _read_rest(
    client: OAuthClient, redirect_uri: str, issuer: str, fields: Fields
) -> AuthorizationRequest:
    if get_parameter(fields, "response_type") != "code":
        raise OAuthError(
            OAuthErrorCode.UNSUPPORTED_RESPONSE_TYPE, "The only response_type is code."
        )
    if find_parameter(fields, "response_mode") not in {None, "query"}:
        raise OAuthError(OAuthErrorCode.INVALID_REQUEST, "The only response_mode is query.")
    state = find_parameter(fields, "state")
    if state is not None and len(state) > LONGEST_STATE:
        raise OAuthError(OAuthErrorCode.INVALID_REQUEST, "The state is too long.")
    return AuthorizationRequest(
        client=client,
        redirect_uri=redirect_uri,
        state=state,
        challenge=_read_challenge(fields),
        resource=read_resource(issuer, list_values(fields, "resource")),
        scopes=read_scopes(find_parameter(fields, "scope"), client.scopes),
    )


def _read_challenge(fields: Fields) -> str:
    challenge = get_parameter(fields, "code_challenge")
    method = find_parameter(fields, "code_challenge_method")
    if method != "S256" or not _CHALLENGE.fullmatch(challenge):
        raise OAuthError(
            OAuthErrorCode.INVALID_REQUEST,
            "The code_challenge has to be one of the code_challenge_method S256.",
        )
    return challenge


def approve(
    database: Database,
    request: AuthorizationRequest,
    issuer: str,
    person: Person,
    actor: Actor,
    now: datetime | None = None,
) -> str:
    """Grant what the program asked for, and return the address that takes the person back to it, with a code.

    Raises:
        ConflictError: the account was disabled meanwhile, or the program deleted.
    """
    now = now or datetime.now(UTC)
    code = f"{CODE_PREFIX}{make_random_secret()}"
    resource = name_resource(issuer, request.resource)
    grant = NewGrant(
        client_id=request.client.id,
        person_id=person.id,
        resource=resource,
        scopes=request.scopes,
        redirect_uri=request.redirect_uri,
        code_digest=digest(code),
        code_challenge=request.challenge,
        created_at=now,
        ends_at=now + CODE_LIFETIME,
    )
    with database.transaction() as opened:
        _check_still_there(opened, request.client, person, now)
        oauth_grants.remove_ended(opened, now)
        oauth_grants.add(opened, grant)
        details = {"resource": resource, "scopes": list(request.scopes)}
        subject = audit_name(request.client.id)
        audit.record(opened, "connect_program", subject, details, actor)
    return _respond(request.redirect_uri, issuer, request.state, code=code)


def deny(request: AuthorizationRequest, issuer: str) -> str:
    """Return the address that takes the person back to the program, which learns that they refused."""
    error = OAuthErrorCode.ACCESS_DENIED
    return _respond(request.redirect_uri, issuer, request.state, error=error)


def _check_still_there(
    database: Database, client: OAuthClient, person: Person, now: datetime
) -> None:
    """Raise ConflictError if, since the request began, the account was disabled or the client deleted."""
    found = people.find(database, person.id)
    if found is None or found.disabled_at is not None:
        raise ConflictError("The account is disabled.")
    if not oauth_clients.record_connection(database, client.id, now):
        raise ConflictError("This program is not registered any more. Connect it again.")


def _respond(redirect_uri: str, issuer: str, state: str | None, **parameters: str) -> str:
    """Return the address of a response, which names its issuer, so that none is taken for another's (RFC 9207)."""
    also = {} if state is None else {"state": state}
    return add_parameters(redirect_uri, {**parameters, **also, "iss": issuer})
