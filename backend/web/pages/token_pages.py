"""The page on which admins see all API tokens and connected programs, make service tokens, and revoke any."""

from datetime import UTC, datetime, timedelta

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from backend.access.api_tokens import LONGEST_LIFETIME, ApiTokenService, TokenScope
from backend.access.oauth.clients import ClientService
from backend.api.authorization import AskerDependency, Permission, requires
from backend.api.dependencies import AccountDatabaseDependency
from backend.store.accounts import people
from backend.store.accounts.people import Person
from backend.store.audit import OWNER
from backend.store.database import Database
from backend.web.forms import Form, FormDependency
from backend.web.templates import page
from connectors.errors import ConflictError, InvalidInputError, NotFoundError

TOKENS = "/tokens"

router = APIRouter(include_in_schema=False)


@router.get(TOKENS)
@requires(Permission.ACCOUNTS)
def tokens_page(request: Request, database: AccountDatabaseDependency) -> Response:
    return _show(request, database)


@router.post(TOKENS)
@requires(Permission.ACCOUNTS)
def create_token(
    request: Request,
    asker: AskerDependency,
    database: AccountDatabaseDependency,
    form: FormDependency,
) -> Response:
    """Make a service token, which is in this answer alone."""
    scopes = [scope for scope in TokenScope if scope in form]
    try:
        lifetime = _read_lifetime(form)
        service = ApiTokenService(database, asker.actor)
        token = service.create(form.get("name", ""), scopes, lifetime)
    except (InvalidInputError, ConflictError) as error:
        return _show(request, database, trouble=str(error))
    return _show(request, database, token=token)


@router.post(f"{TOKENS}/revoke")
@requires(Permission.ACCOUNTS)
def revoke_token(
    asker: AskerDependency, database: AccountDatabaseDependency, form: FormDependency
) -> Response:
    """Revoke a token of a person, or a service token where the form names nobody."""
    owner = _find_owner(database, form.get("person", ""))
    ApiTokenService(database, asker.actor, owner).revoke(form.get("name", ""))
    return RedirectResponse(TOKENS, 303)


@router.post(f"{TOKENS}/program")
@requires(Permission.ACCOUNTS)
def delete_program(
    asker: AskerDependency, database: AccountDatabaseDependency, form: FormDependency
) -> Response:
    """Delete a program, which disconnects it from all accounts."""
    ClientService(database, asker.actor).delete(form.get("client", ""))
    return RedirectResponse(TOKENS, 303)


def _read_lifetime(form: Form) -> timedelta:
    days = form.get("days", "")
    if not (days.isascii() and days.isdecimal() and len(days) < 5):
        raise InvalidInputError(f"A token is valid for 1 to {LONGEST_LIFETIME.days} days.")
    return timedelta(days=int(days))


def _find_owner(database: Database, email: str) -> Person | None:
    if not email:
        return None
    owner = people.find_by_email(database, email) if email.isprintable() else None
    if owner is None:
        raise NotFoundError("There is no such token.")
    return owner


def _show(request: Request, database: Database, trouble: str = "", token: str = "") -> Response:
    values = {
        "tokens": ApiTokenService(database).list_tokens(),
        "owners": {person.id: person for person in people.list_people(database)},
        "clients": ClientService(database, OWNER).list_clients(),
        "now": datetime.now(UTC),
        "scopes": tuple(TokenScope),
        "longest": LONGEST_LIFETIME.days,
        "trouble": trouble,
        "token": token,
    }
    return page(request, "tokens.html", "people", values, 422 if trouble else 200)
