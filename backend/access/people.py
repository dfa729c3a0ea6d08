"""All that can be done to people's accounts. Each action is one transaction that includes its audit entry."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from backend.access.passwords import Passwords, check_password
from backend.access.random_secrets import digest, make_random_secret
from backend.access.roles import Role
from backend.access.token_budgets import check_tokens
from backend.store import audit
from backend.store.accounts import (
    api_tokens,
    former_emails,
    invitations,
    oauth_grants,
    password_resets,
    people,
    sessions,
)
from backend.store.accounts.invitations import Invitation
from backend.store.accounts.people import Person
from backend.store.audit import Actor
from backend.store.database import Database
from backend.store.llm import person_budgets
from connectors.access import parse_reader_token
from connectors.errors import ConflictError, InvalidInputError, NotFoundError

INVITATION_LIFETIME = timedelta(days=7)
SET_UP_LIFETIME = timedelta(hours=1)
BY_ADMIN = "admin"
"""Who vouches for the address of a person whom an admin has invited or verified."""
_LONGEST_NAME = 100
_LONGEST_EMAIL = 254


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountDetails:
    """What a person says who accepts an invitation."""

    name: str
    password: str = field(repr=False)
    email: str = ""
    """Of the first account alone; any other is of the address that was invited."""


class InvalidInvitationError(NotFoundError):
    """One answer for a code that never was one, has been used, or has expired."""

    def __init__(self) -> None:
        super().__init__("This invitation is invalid or no longer valid.")


class FormerAddressError(ConflictError):
    """An address was somebody else's before, and documents may name it for them."""

    def __init__(self, email: str) -> None:
        super().__init__(
            f"{email} was the address of somebody else, and documents may name it for them: whoever has it next reads"
            f" these. To let it be given to somebody: quarry users release-address {email}"
        )
        self.email = email


@dataclass(frozen=True, slots=True)
class PeopleService:
    database: Database
    actor: Actor = audit.OWNER

    def list_people(self) -> list[Person]:
        return people.list_people(self.database)

    def list_invitations(self, now: datetime | None = None) -> list[Invitation]:
        """Return those that can still be accepted."""
        return invitations.list_open(self.database, now or datetime.now(UTC))

    def invite(self, email: str, role: Role, now: datetime | None = None) -> str:
        """Return the code of an invitation, which cannot be shown again; a former one for the address ends.

        Raises:
            InvalidInputError: it is not an address.
            ConflictError: there is an account of this address, or no admin yet to look after accounts.
            FormerAddressError: it was somebody else's.
        """
        now = now or datetime.now(UTC)
        email, code = normalize_email(email), make_random_secret()
        with self.database.transaction() as database:
            if people.find_by_email(database, email):
                raise ConflictError(f"There is an account of {email} already.")
            check_never_used(database, email)
            _check_first(database, role, now)
            self._put_invitation(database, code, email, role, now + INVITATION_LIFETIME)
            audit.record(database, "invite", audit_name(email), {"role": role}, self.actor)
        return code

    def withdraw_invitation(self, email: str) -> None:
        """Withdraw an invitation. Raises NotFoundError: there is none for this address."""
        email = normalize_email(email)
        with self.database.transaction() as database:
            role = invitations.remove_of(database, email)
            if role is None:
                raise NotFoundError(f"There is no invitation for {email}.")
            details = {"before": role}
            audit.record(database, "withdraw_invitation", audit_name(email), details, self.actor)

    def set_up(self, now: datetime | None = None) -> str:
        """Return the code by which the first account is made, an admin's; a former one ends.

        Raises:
            ConflictError: there is an account already.
        """
        end, code = (now or datetime.now(UTC)) + SET_UP_LIFETIME, make_random_secret()
        with self.database.transaction() as database:
            if people.has_people(database):
                raise ConflictError("There is an account already. To invite: quarry users invite")
            self._put_invitation(database, code, None, Role.ADMIN, end)
            audit.record(database, "set_up", audit_name("first"), {}, self.actor)
        return code

    def _put_invitation(
        self, database: Database, code: str, email: str | None, role: Role, end: datetime
    ) -> None:
        invitation = Invitation(
            digest=digest(code),
            email=email,
            role=role,
            created_at=datetime.now(UTC),
            expires_at=end,
            invited_by=self.actor.name,
        )
        invitations.put(database, invitation)

    def find_invitation(self, code: str, now: datetime | None = None) -> Invitation:
        """Return the invitation of a code. Raises InvalidInvitationError."""
        now = now or datetime.now(UTC)
        return _check_valid(invitations.find(self.database, digest(code), now))

    def accept_invitation(
        self, code: str, chosen: AccountDetails, passwords: Passwords, now: datetime | None = None
    ) -> Person:
        """Make the account that an invitation is for. It is used up, unless an error is raised.

        Raises:
            InvalidInvitationError: it is not valid.
            InvalidInputError: the name, the password or the address is not accepted.
            ConflictError: there is an account of this address, or no admin yet to look after accounts.
        """
        now = now or datetime.now(UTC)
        email = self.find_invitation(code, now).email or normalize_email(chosen.email)
        name = _check_name(chosen.name)
        check_password(chosen.password, email)
        password_hash = passwords.hash(chosen.password)
        with self.database.transaction() as database:
            invitation = _check_valid(invitations.take(database, digest(code), now))
            _check_first(database, Role(invitation.role), now)
            person = people.add(
                database,
                email=email,
                name=name,
                role=invitation.role,
                password_hash=password_hash,
                verified=BY_ADMIN,
                created_at=now,
            )
            details = {"role": person.role, "invited_by": invitation.invited_by}
            actor = Actor(audit_name(person.email), self.actor.address)
            audit.record(database, "accept_invitation", audit_name(person.email), details, actor)
        return person

    def set_role(self, email: str, role: Role) -> None:
        """Give a person another role. Raises NotFoundError; ConflictError: it is the last active admin."""
        with self._find(email) as (database, person):
            if role is not Role.ADMIN:
                _check_other_admin(database, person)
            people.set_role(database, person.id, role)
            self._record(database, "set_role", person, person.role, role)

    def disable(self, email: str, now: datetime | None = None) -> None:
        """End the sessions, tokens and grants of a person, who can no longer sign in. Raises as `set_role`."""
        with self._find(email) as (database, person):
            _check_other_admin(database, person)
            people.set_disabled(database, person.id, now or datetime.now(UTC))
            sessions.remove_of_person(database, person.id)
            api_tokens.remove_of_person(database, person.id)
            oauth_grants.remove_of_person(database, person.id)
            password_resets.remove_of_person(database, person.id)
            self._record(database, "disable", person, _state(person), "disabled")

    def enable(self, email: str) -> None:
        """Let a person whose account is disabled sign in again. Raises NotFoundError."""
        with self._find(email) as (database, person):
            people.set_disabled(database, person.id, None)
            self._record(database, "enable", person, _state(person), "active")

    def verify(self, email: str) -> None:
        """Mark a person's address as verified; they can then read what names it. Raises NotFoundError."""
        with self._find(email) as (database, person):
            people.set_verified(database, person.id, BY_ADMIN)
            self._record(database, "verify", person, person.verified, BY_ADMIN)

    def end_sessions(self, email: str) -> None:
        """End all sessions of a person, who has to sign in again. Raises NotFoundError."""
        with self._find(email) as (database, person):
            details = {"ended_sessions": sessions.remove_of_person(database, person.id)}
            audit.record(database, "end_sessions", audit_name(person.email), details, self.actor)

    def change_email(self, email: str, new: str) -> Person:
        """Give a person another address, for which nobody vouches until an admin or a provider does.

        Raises:
            NotFoundError: there is no account of this address.
            InvalidInputError: the new one is not an address.
            ConflictError: the new one is the address of an account.
            FormerAddressError: it was somebody else's.
        """
        new = normalize_email(new)
        with self._find(email) as (database, person):
            if people.find_by_email(database, new):
                raise ConflictError(f"There is an account of {new} already.")
            check_never_used(database, new, person)
            people.set_email(database, person.id, new)
            former_emails.record(database, person.email, person.id)
            invitations.remove_of(database, new)
            self._record(database, "change_email", person, person.email, new)
            return people.get_by_email(database, new)

    def release_email(self, email: str) -> None:
        """Let an address be given to somebody who did not have it before.

        Raises:
            NotFoundError: nobody had it who has another one now.
        """
        email = normalize_email(email)
        with self.database.transaction() as database:
            if not former_emails.remove(database, email):
                raise NotFoundError(f"Nobody had the address {email} before.")
            audit.record(database, "release_email", audit_name(email), {}, self.actor)

    def set_token_budget(self, email: str, tokens: int) -> Person:
        """Let a person use so many tokens of language models a day, instead of as many as anybody; 0: as anybody.

        Raises:
            NotFoundError: there is no account of this address.
            InvalidInputError: it is no number of tokens.
        """
        check_tokens(tokens)
        with self._find(email) as (database, person):
            before = person_budgets.read(database, person.id)
            if tokens != before:
                person_budgets.change(database, person.id, tokens)
                details = {"before": before or None, "after": tokens or None}
                audit.record(
                    database, "set_token_budget", audit_name(person.email), details, self.actor
                )
            return person

    @contextmanager
    def _find(self, email: str) -> Iterator[tuple[Database, Person]]:
        """Begin a transaction on one account."""
        email = normalize_email(email)
        with self.database.transaction() as database:
            yield database, people.get_by_email(database, email)

    def _record(
        self, database: Database, action: str, person: Person, before: str | None, after: str
    ) -> None:
        details = {"before": before, "after": after}
        audit.record(database, action, audit_name(person.email), details, self.actor)


def _state(person: Person) -> str:
    return "disabled" if person.disabled_at else "active"


def audit_name(email: str) -> str:
    """Return what the audit calls a person, as subject and as actor; it is their reader token."""
    return f"user:{email}"


def normalize_email(email: str) -> str:
    """Return an address as it is compared.

    Raises:
        InvalidInputError: it is not an e-mail address.
    """
    try:
        if len(email) > _LONGEST_EMAIL or not email.strip().isprintable():
            raise ValueError("it is too long, or holds what cannot be shown")
        return parse_reader_token(audit_name(email.strip())).removeprefix("user:")
    except ValueError as error:
        raise InvalidInputError("This is not an e-mail address.") from error


def clean_name(name: str) -> str:
    """Return a name on one line, of the characters that can be shown, and not too long."""
    shown = "".join(letter for letter in " ".join(name.split()) if letter.isprintable())
    return shown[:_LONGEST_NAME].strip()


def _check_name(name: str) -> str:
    cleaned = clean_name(name)
    if not cleaned or len(name.strip()) > _LONGEST_NAME:
        raise InvalidInputError(f"A name has 1 to {_LONGEST_NAME} characters.")
    return cleaned


def _check_valid(invitation: Invitation | None) -> Invitation:
    if invitation is None:
        raise InvalidInvitationError
    return invitation


def check_never_used(database: Database, email: str, person: Person | None = None) -> None:
    """Raise FormerAddressError if somebody else than this person had the address."""
    if former_emails.is_of_another(database, email, person.id if person else None):
        raise FormerAddressError(email)


def check_unchanged(database: Database, proved: Person) -> None:
    """Check in a transaction what somebody has proved before it, by a password or otherwise.

    Raises:
        ConflictError: the account was disabled or got another password meanwhile.
    """
    now = people.find(database, proved.id)
    if now is None or now.disabled_at or now.password_hash != proved.password_hash:
        raise ConflictError("The account was changed meanwhile. Sign in again.")


def _check_first(database: Database, role: Role, now: datetime) -> None:
    if role is Role.ADMIN or people.has_people(database):
        return
    if any(one.role == Role.ADMIN and one.email for one in invitations.list_open(database, now)):
        raise ConflictError(
            "The first account is an admin's, because it ends what the machine's secret may do."
            " An admin was invited; once they have accepted, invite others."
        )
    raise ConflictError(
        "The first account is an admin's, because it ends what the machine's secret may do."
        " Invite an admin first: quarry users invite --role admin"
    )


def _check_other_admin(database: Database, person: Person) -> None:
    is_active_admin = person.role == Role.ADMIN and person.disabled_at is None
    if people.count_active_admins(database) == 1 and is_active_admin:
        raise ConflictError(
            f"{person.email} is the only active admin. Make somebody else an admin first."
        )
