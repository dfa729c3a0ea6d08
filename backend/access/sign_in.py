"""Signing in with a password."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from backend.access.passwords import Passwords
from backend.access.people import audit_name, check_unchanged, normalize_email
from backend.access.random_secrets import digest, make_random_secret
from backend.access.sessions import Visitor, begin_session
from backend.access.sign_in_limits import (
    PERIOD,
    TooManyFailuresError,
    count_failure,
    forget_failure,
    limits_of_device,
    limits_of_stranger,
)
from backend.store import audit
from backend.store.accounts import devices, people
from backend.store.accounts.people import Person
from backend.store.audit import Actor
from backend.store.database import Database
from connectors.errors import InvalidInputError

DEVICE_LIFETIME = timedelta(days=365)
_STRANGER = "user:unknown"
"""What the audit calls somebody whose account does not exist: what they typed may have been a password."""


@dataclass(frozen=True, slots=True)
class SignedIn:
    person: Person
    session: str
    """The value of the session's cookie."""
    device: str
    """The value of the cookie by which the device is known from now on."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The same for a wrong password, an unknown account and a disabled one."""


@dataclass(frozen=True, slots=True)
class Limited:
    """Too many sign-ins have failed, so that this one was not tried."""

    retry_after: timedelta


SignInResult: TypeAlias = SignedIn | Refused | Limited


@dataclass(frozen=True, slots=True)
class SignInService:
    database: Database
    passwords: Passwords

    def sign_in_with_password(
        self, email: str, password: str, visitor: Visitor, now: datetime | None = None
    ) -> SignInResult:
        now = now or datetime.now(UTC)
        email = _normalize_any(email)
        person = people.find_by_email(self.database, email)
        device = self._find_device(person, visitor)
        limits = (
            limits_of_device(email, device)
            if device is not None
            else limits_of_stranger(email, visitor.address)
        )
        try:
            counted = count_failure(self.database, limits, now)
        except TooManyFailuresError:
            return Limited(retry_after=PERIOD)
        is_correct = self.passwords.is_correct(person.password_hash if person else None, password)
        if person is None or person.disabled_at is not None or not is_correct:
            self._record_refusal(person, visitor)
            return Refused()
        forget_failure(self.database, counted)
        signed_in = self.begin(person, visitor, device, now)
        self._update_hash(person, password)
        return signed_in

    def begin(
        self,
        person: Person,
        visitor: Visitor,
        device: str | None = None,
        now: datetime | None = None,
        issuer: str | None = None,
    ) -> SignedIn:
        """Begin a session of somebody who has proved who they are.

        Args:
            issuer: of the identity provider to which they have proved it.
            device: the value of the cookie, if somebody has signed in to this account with it before. A value
                that was set by anybody else is replaced.

        Raises:
            ConflictError: the account was disabled or got another password meanwhile.
        """
        now = now or datetime.now(UTC)
        device = device or make_random_secret()
        with self.database.transaction() as database:
            check_unchanged(database, person)
            session = begin_session(database, person, visitor, now)
            devices.remove_unseen(database, now - DEVICE_LIFETIME)
            devices.record(database, person.id, digest(device), now)
            name = audit_name(person.email)
            details = {"issuer": issuer} if issuer else {}
            audit.record(database, "sign_in", name, details, Actor(name, visitor.address))
        return SignedIn(person, session, device)

    def _find_device(self, person: Person | None, visitor: Visitor) -> str | None:
        """Return the device of the visitor if somebody has signed in to the account with it before."""
        given = digest(visitor.device or "")
        is_known = devices.is_known(self.database, person.id if person else 0, given)
        return visitor.device if is_known else None

    def _update_hash(self, person: Person, password: str) -> None:
        """Hash the password anew where the parameters have changed, now that it is known."""
        if person.password_hash is not None and self.passwords.is_outdated(person.password_hash):
            anew = self.passwords.hash(password)
            people.replace_password_hash(self.database, person.id, person.password_hash, anew)

    def _record_refusal(self, person: Person | None, visitor: Visitor) -> None:
        name = audit_name(person.email) if person else _STRANGER
        reason = "disabled" if person and person.disabled_at else "wrong password"
        actor = Actor(_STRANGER, visitor.address)
        audit.record_refusal(self.database, "sign_in", name, reason, actor)


def _normalize_any(email: str) -> str:
    """Return an address as accounts have it; what is no address is no account's."""
    try:
        return normalize_email(email)
    except InvalidInputError:
        return email
