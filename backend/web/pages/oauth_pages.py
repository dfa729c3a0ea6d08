"""The page on which a person decides whether a program may act for them (OAuth 2.1, 4.1.1).

Whoever has not signed in does so first, and is led back. Nobody is sent to the program without a click.
"""

from urllib.parse import urlsplit

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from backend.access.oauth.authorization import (
    AuthorizationRequest,
    RefusedRequestError,
    approve,
    deny,
    read_authorization_request,
)
from backend.access.oauth.errors import OAuthError
from backend.access.oauth.parameters import Fields
from backend.access.oauth.redirect_uris import is_loopback
from backend.access.oauth.resources import name_resource
from backend.api.authorization import (
    AskerDependency,
    Permission,
    find_asker,
    get_person,
    requires,
)
from backend.api.dependencies import AccountDatabaseDependency
from backend.api.request_context import get_request_context
from backend.api.request_guard import POLICY
from backend.store.database import Database
from backend.web.forms import FormDependency
from backend.web.pages.sign_in import LONGEST_NEXT, lead_to_sign_in
from backend.web.templates import page

AUTHORIZE = "/oauth/authorize"
CONSENT = "/oauth/consent"
_TOO_LONG = "The address by which the program sent you is too long."

router = APIRouter(include_in_schema=False)


@router.get(AUTHORIZE)
@requires(Permission.ANYONE)
def authorize(request: Request, database: AccountDatabaseDependency) -> Response:
    """Ask the person what the program asks for; first who they are, if need be."""
    if not get_request_context(request.scope).has_accounts:
        return page(request, "oauth_without_accounts.html", "", {}, 404)
    if len(request.url.path) + len(request.url.query) + 1 > LONGEST_NEXT:
        return _refuse(request, _TOO_LONG)
    try:
        asked = _read(request, database, request.query_params.multi_items())
    except OAuthError as error:
        return _describe_refusal(request, error)
    asker = find_asker(request.scope)
    if asker is None or asker.person is None or asker.kind != "session":
        return lead_to_sign_in(request)
    return _ask(request, asked)


@router.post(CONSENT)
@requires(Permission.ACCOUNT)
def decide(
    request: Request,
    asker: AskerDependency,
    database: AccountDatabaseDependency,
    form: FormDependency,
) -> Response:
    """Send the person back to the program, with a code if they allowed it."""
    issuer = get_request_context(request.scope).origin
    try:
        asked = _read(request, database, list(form.items()))
    except OAuthError as error:
        return _describe_refusal(request, error)
    match form.get("decision"):
        case "allow":
            address = approve(database, asked, issuer, get_person(asker), asker.actor)
        case "deny":
            address = deny(asked, issuer)
        case _:
            return _ask(request, asked)
    # 303: the form is not sent to the program as well (RFC 9700, 4.12).
    return RedirectResponse(address, 303)


def _read(request: Request, database: Database, fields: Fields) -> AuthorizationRequest:
    issuer = get_request_context(request.scope).origin
    return read_authorization_request(database, issuer, fields)


def _ask(request: Request, asked: AuthorizationRequest) -> Response:
    values = {
        "name": asked.client.name,
        "redirect_uri": asked.redirect_uri,
        "is_on_this_machine": is_loopback(asked.redirect_uri),
        "resource": asked.resource.name,
        "scopes": asked.scopes,
        "fields": _list_fields(request, asked),
        "address": CONSENT,
    }
    answer = page(request, "oauth_consent.html", "", values)
    answer.headers["Content-Security-Policy"] = _allow_form_to(asked.redirect_uri)
    return answer


def _list_fields(request: Request, asked: AuthorizationRequest) -> dict[str, str]:
    """Return what the form sends again, to be checked again: what is shown is what is granted."""
    issuer = get_request_context(request.scope).origin
    fields = {
        "response_type": "code",
        "client_id": asked.client.id,
        "redirect_uri": asked.redirect_uri,
        "code_challenge": asked.challenge,
        "code_challenge_method": "S256",
        "resource": name_resource(issuer, asked.resource),
        "scope": " ".join(asked.scopes),
    }
    return fields if asked.state is None else fields | {"state": asked.state}


def _allow_form_to(redirect_uri: str) -> str:
    """Return the policy of the page: browsers follow the answer to a form only where it says so (CSP 3, 6.4.2).

    The policy cannot name an address of IPv6; http leads to this machine alone then, which was checked.
    """
    parts = urlsplit(redirect_uri)
    origin = f"{parts.scheme}:" if "[" in parts.netloc else f"{parts.scheme}://{parts.netloc}"
    return POLICY.replace("form-action 'self'", f"form-action 'self' {origin}")


def _describe_refusal(request: Request, error: OAuthError) -> Response:
    if isinstance(error, RefusedRequestError):
        return _refuse(request, error.description, error.return_address)
    return _refuse(request, error.description)


def _refuse(request: Request, trouble: str, return_address: str = "") -> Response:
    """Say what is wrong with the request of a program, and let the person go back to it, where it is known."""
    values = {"trouble": trouble, "return_address": return_address}
    return page(request, "oauth_refused.html", "", values, 400)
