"""Another password for who has forgotten theirs: an admin makes a link, and whoever opens it chooses one."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from backend.access.api_tokens import OwnTokens, settle_tokens
from backend.access.passwords import Passwords, check_password
from backend.access.people import audit_name, normalize_email
from backend.access.random_secrets import digest, make_random_secret
from backend.store import audit
from backend.store.accounts import devices, password_resets, people, sessions
from backend.store.accounts.people import Person
from backend.store.audit import Actor
from backend.store.database import Database
from connectors.errors import ConflictError, NotFoundError

RESET_LIFETIME = timedelta(days=1)


class InvalidResetError(NotFoundError):
    """One answer for a code that never was one, has been used, or has expired."""

    def __init__(self) -> None:
        super().__init__("This link is invalid or no longer valid. Ask an admin for another one.")


@dataclass(frozen=True, slots=True)
class PasswordResetService:
    """Each action is one transaction that includes its audit entry."""

    database: Database
    actor: Actor = audit.OWNER

    def begin(self, email: str, now: datetime | None = None) -> str:
        """Return the code by which a person chooses a password, once; a former code ends.

        Until then the present password stays, and so do the sessions.

        Raises:
            NotFoundError: there is no account of this address.
            ConflictError: the account is disabled.
        """
        email, code = normalize_email(email), make_random_secret()
        end = (now or datetime.now(UTC)) + RESET_LIFETIME
        with self.database.transaction() as database:
            person = people.get_by_email(database, email)
            if person.disabled_at is not None:
                raise ConflictError("The account is disabled. Enable it first.")
            password_resets.put(database, person.id, digest(code), end)
            details = {"until": end.isoformat(timespec="seconds")}
            audit.record(database, "reset_password", audit_name(email), details, self.actor)
        return code

    def find_person(self, code: str, now: datetime | None = None) -> Person:
        """Return the person whose password a code lets change. Raises InvalidResetError."""
        return _find(self.database, code, now or datetime.now(UTC))

    def finish(
        self,
        code: str,
        password: str,
        passwords: Passwords,
        now: datetime | None = None,
        tokens: OwnTokens = OwnTokens.KEEP,
    ) -> str:
        """Set the password, and end all sessions. The code is used up, unless an error is raised.

        Returns:
            The value of the cookie by which the device is known from now on: a stranger who tries many passwords does
            not keep the person from signing in with the new one.

        Raises:
            InvalidResetError: it is not valid.
            InvalidInputError: the password is not accepted.
        """
        now = now or datetime.now(UTC)
        check_password(password, self.find_person(code, now).email)
        password_hash, device = passwords.hash(password), make_random_secret()
        with self.database.transaction() as database:
            person = _find(database, code, now)
            password_resets.remove_of_person(database, person.id)
            people.set_password_hash(database, person.id, password_hash)
            devices.record(database, person.id, digest(device), now)
            details = {"ended_sessions": sessions.remove_of_person(database, person.id)}
            details |= settle_tokens(database, person.id, tokens)
            name = audit_name(person.email)
            actor = Actor(name, self.actor.address)
            audit.record(database, "choose_password", name, details, actor)
        return device


def _find(database: Database, code: str, now: datetime) -> Person:
    person = password_resets.find_person(database, digest(code), now)
    if person is None:
        raise InvalidResetError
    return person
