"""What people do to their own account. Each action is one transaction that includes its audit entry."""

from dataclasses import dataclass
from datetime import UTC, datetime

from backend.access.api_tokens import OwnTokens, settle_tokens
from backend.access.passwords import Passwords, check_password
from backend.access.people import audit_name, check_unchanged
from backend.access.random_secrets import digest
from backend.access.sign_in_limits import (
    TooManyFailuresError,
    count_failure,
    forget_failure,
    limits_of_device,
)
from backend.store import audit
from backend.store.accounts import identities, password_resets, people, sessions
from backend.store.accounts.identities import LinkedIdentity
from backend.store.accounts.people import Person
from backend.store.accounts.sessions import Session
from backend.store.audit import Actor
from backend.store.database import Database
from connectors.errors import ConflictError, InvalidInputError

_CHANGE = "change of the account"
"""What wrong passwords are counted under here: somebody else may sit before a session that was left open."""


@dataclass(frozen=True, slots=True)
class OwnAccount:
    database: Database
    person: Person
    actor: Actor

    def list_sessions(self) -> list[Session]:
        return sessions.list_of_person(self.database, self.person.id)

    def end_session(self, session_id: int) -> None:
        """End a session of the person. Raises NotFoundError: they have no such session."""
        with self.database.transaction() as database:
            sessions.remove_by_id(database, self.person.id, session_id)
            self._record(database, "end_session", {"session": session_id})

    def choose_language(self, language: str | None) -> None:
        """Set the language of the pages; None leaves it to the browser."""
        with self.database.transaction() as database:
            before = people.find(database, self.person.id)
            people.set_language(database, self.person.id, language)
            details: dict[str, object] = {
                "before": None if before is None else before.language,
                "after": language,
            }
            self._record(database, "choose_language", details)

    def list_identities(self) -> list[LinkedIdentity]:
        return identities.list_of_person(self.database, self.person.id)

    def unlink_identity(self, issuer: str, subject: str) -> None:
        """Let the person sign in by an identity no longer, and forget what its provider says of them.

        Raises:
            NotFoundError: the person has no such identity.
            ConflictError: without it they could not sign in any more.
        """
        with self.database.transaction() as database:
            linked = identities.list_of_person(database, self.person.id)
            if len(linked) == 1 and self.person.password_hash is None:
                raise ConflictError("It is the only way by which you can sign in.")
            identities.remove(database, self.person.id, issuer, subject)
            self._record(database, "unlink_identity", {"issuer": issuer, "subject": subject})

    def change_password(
        self,
        current: str,
        new: str,
        session: str,
        passwords: Passwords,
        now: datetime | None = None,
        tokens: OwnTokens = OwnTokens.KEEP,
    ) -> None:
        """Set another password and end all other sessions.

        Raises:
            InvalidInputError: the current one is not right, or was tried too often, or the new one is not accepted.
            ConflictError: the password was changed meanwhile, or the session has ended: what was proved before is void.
        """
        self.verify_password(current, passwords, now)
        check_password(new, self.person.email)
        password_hash = passwords.hash(new)
        with self.database.transaction() as database:
            check_unchanged(database, self.person)
            _check_session(database, session)
            people.set_password_hash(database, self.person.id, password_hash)
            password_resets.remove_of_person(database, self.person.id)
            ended = sessions.remove_of_person(database, self.person.id, kept=digest(session))
            revoked = settle_tokens(database, self.person.id, tokens)
            self._record(database, "change_password", {"ended_sessions": ended, **revoked})

    def verify_password(
        self, password: str, passwords: Passwords, now: datetime | None = None
    ) -> None:
        """Check the current password. Raises InvalidInputError: it is not right, or a wrong one was given too often."""
        limits = limits_of_device(self.person.email, _CHANGE)
        try:
            counted = count_failure(self.database, limits, now or datetime.now(UTC))
        except TooManyFailuresError as error:
            raise InvalidInputError(
                "A wrong password was given too often. Try again in a quarter of an hour."
            ) from error
        if not passwords.is_correct(self.person.password_hash, password):
            raise InvalidInputError("The current password is not right.")
        forget_failure(self.database, counted)

    def _record(self, database: Database, action: str, details: dict[str, object]) -> None:
        audit.record(database, action, audit_name(self.person.email), details, self.actor)


def _check_session(database: Database, session: str) -> None:
    if sessions.find_with_person(database, digest(session)) is None:
        raise ConflictError("Your session has ended meanwhile. Sign in again.")
