"""The pages on which admins look after people: all of them, one of them, and who is invited."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Literal, TypeAlias

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import RedirectResponse, Response

from backend.access.password_reset import PasswordResetService
from backend.access.people import FormerAddressError, PeopleService
from backend.access.roles import Role
from backend.api.authorization import AskerDependency, Permission, requires
from backend.api.dependencies import AccountDatabaseDependency
from backend.store.accounts import group_members, last_seen, people, sessions
from backend.store.accounts.people import Person
from backend.store.database import Database
from backend.store.sync import source_accounts
from backend.web import urls
from backend.web.forms import NO_FORM, Form, FormDependency
from backend.web.templates import page
from connectors.errors import ConflictError, InvalidInputError, NotFoundError

PEOPLE = "/people"
PEOPLE_PAGE = 100
_MOST_ID = 2**31 - 1

router = APIRouter(include_in_schema=False)

PersonId: TypeAlias = Annotated[int, Path(ge=1, le=_MOST_ID)]
PersonAction: TypeAlias = Literal["role", "verify", "email", "sessions", "disable", "enable"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an action that did not lead elsewhere has to say."""

    trouble: str = ""
    former_address: str = ""
    """An address that was somebody else's: asks whether to assign it anyway."""
    link: str = ""
    """A link that is shown in this answer alone."""

    @classmethod
    def of_error(cls, error: InvalidInputError | ConflictError) -> "Outcome":
        former = error.email if isinstance(error, FormerAddressError) else ""
        return cls(trouble=str(error), former_address=former)


NOTHING = Outcome()


@router.get(PEOPLE)
@requires(Permission.ACCOUNTS)
def people_page(
    request: Request,
    database: AccountDatabaseDependency,
    text: Annotated[str, Query(alias="q", max_length=200)] = "",
    after: Annotated[str, Query(max_length=300)] = "",
) -> Response:
    """Show the people whose name or address holds a text, a page at a time, and who is invited."""
    return _show_people(request, database, NOTHING, text, after)


@router.post(f"{PEOPLE}/invite")
@requires(Permission.ACCOUNTS)
def invite(
    request: Request,
    asker: AskerDependency,
    database: AccountDatabaseDependency,
    form: FormDependency,
) -> Response:
    service = PeopleService(database, asker.actor)
    try:
        _release(service, form)
        code = service.invite(form.get("email", ""), _read_role(form))
    except (InvalidInputError, ConflictError) as error:
        return _show_people(request, database, Outcome.of_error(error), form=form)
    link = urls.make_link(str(request.base_url), "/invitation", code)
    return _show_people(request, database, Outcome(link=link), form={"email": form["email"]})


@router.post(f"{PEOPLE}/withdraw")
@requires(Permission.ACCOUNTS)
def withdraw_invitation(
    asker: AskerDependency, database: AccountDatabaseDependency, form: FormDependency
) -> Response:
    PeopleService(database, asker.actor).withdraw_invitation(form.get("email", ""))
    return RedirectResponse(PEOPLE, 303)


@router.get("/person/{person_id}")
@requires(Permission.ACCOUNTS)
def person_page(
    person_id: PersonId, request: Request, database: AccountDatabaseDependency
) -> Response:
    return _show_person(request, database, _get_person(database, person_id), NOTHING)


@router.post("/person/{person_id}/password")
@requires(Permission.ACCOUNTS)
def reset_password(
    person_id: PersonId,
    request: Request,
    asker: AskerDependency,
    database: AccountDatabaseDependency,
) -> Response:
    """Show a link by which the person chooses a password."""
    person = _get_person(database, person_id)
    try:
        code = PasswordResetService(database, asker.actor).begin(person.email)
    except ConflictError as error:
        return _show_person(request, database, person, Outcome.of_error(error))
    link = urls.make_link(str(request.base_url), "/password-reset", code)
    return _show_person(request, database, person, Outcome(link=link))


@router.post("/person/{person_id}/{action}")
@requires(Permission.ACCOUNTS)
def change_person(
    person_id: PersonId,
    action: PersonAction,
    request: Request,
    asker: AskerDependency,
    database: AccountDatabaseDependency,
    form: FormDependency,
) -> Response:
    person = _get_person(database, person_id)
    try:
        _ACTIONS[action](PeopleService(database, asker.actor), person.email, form)
    except (InvalidInputError, ConflictError) as error:
        return _show_person(request, database, person, Outcome.of_error(error), form)
    return RedirectResponse(f"/person/{person_id}", 303)


def _change_role(service: PeopleService, email: str, form: Form) -> None:
    service.set_role(email, _read_role(form))


def _change_email(service: PeopleService, email: str, form: Form) -> None:
    _release(service, form)
    service.change_email(email, form.get("email", ""))


_ACTIONS: Mapping[PersonAction, Callable[[PeopleService, str, Form], object]] = MappingProxyType(
    {
        "role": _change_role,
        "verify": lambda service, email, _: service.verify(email),
        "email": _change_email,
        "sessions": lambda service, email, _: service.end_sessions(email),
        "disable": lambda service, email, _: service.disable(email),
        "enable": lambda service, email, _: service.enable(email),
    }
)


def _release(service: PeopleService, form: Form) -> None:
    """Release the address that the admin was asked about, if they said so."""
    if form.get("released"):
        with suppress(NotFoundError):
            service.release_email(form["released"])


def _read_role(form: Form) -> Role:
    try:
        return Role(form.get("role", ""))
    except ValueError as error:
        raise InvalidInputError(f"A role is one of: {', '.join(Role)}.") from error


def _get_person(database: Database, person_id: int) -> Person:
    person = people.find(database, person_id)
    if person is None:
        raise NotFoundError("There is no such person.")
    return person


def _show_people(
    request: Request,
    database: Database,
    outcome: Outcome,
    text: str = "",
    after: str = "",
    form: Form = NO_FORM,
) -> Response:
    found = people.search(database, text, after, PEOPLE_PAGE + 1)
    shown = found[:PEOPLE_PAGE]
    values = {
        "people": shown,
        "has_more": len(found) > PEOPLE_PAGE,
        "last_seen": last_seen.find_last_seen(database, [person.id for person in shown]),
        "invitations": PeopleService(database).list_invitations(),
        "text": text,
        "roles": tuple(Role),
        "outcome": outcome,
        "email": form.get("email", ""),
        "role": form.get("role", ""),
    }
    return page(request, "people.html", "people", values, 422 if outcome.trouble else 200)


def _show_person(
    request: Request,
    database: Database,
    person: Person,
    outcome: Outcome,
    form: Form = NO_FORM,
) -> Response:
    values = {
        "one": person,
        "groups": group_members.list_of_person(database, person.id),
        "source_accounts": source_accounts.list_of_person(database, person.id),
        "last_seen": last_seen.find_last_seen(database, [person.id]).get(person.id),
        "sessions": len(sessions.list_of_person(database, person.id)),
        "roles": tuple(Role),
        "outcome": outcome,
        "email": form.get("email", ""),
    }
    return page(request, "person.html", "people", values, 422 if outcome.trouble else 200)
