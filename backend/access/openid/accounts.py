"""From an identity at the provider to an account: whose it is, who may have a new one, and what it changes.

Whose an identity is, issuer and subject say alone. An address never does: a provider that states the address of
somebody else would be let into their account.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from backend.access.openid.claims import Identity
from backend.access.openid.errors import SignInRefusedError
from backend.access.openid.provider import is_of_domains
from backend.access.people import (
    FormerAddressError,
    PeopleService,
    audit_name,
    check_never_used,
    check_unchanged,
    clean_name,
    normalize_email,
)
from backend.access.roles import Role
from backend.store import audit
from backend.store.accounts import groups, identities, invitations, people
from backend.store.accounts.invitations import Invitation
from backend.store.accounts.people import Person
from backend.store.audit import Actor
from backend.store.database import Database
from connectors.errors import ConflictError, InvalidInputError

_STRANGER = "user:unknown"


class AccountExistsError(SignInRefusedError):
    """Somebody with the address of an account signs in by an identity that is not linked to it."""

    def __init__(self, email: str) -> None:
        super().__init__(
            f"There is an account of {email} already. Sign in to it here; then you are asked whether to link"
            " the two."
        )
        self.email = email


@dataclass(frozen=True, slots=True)
class ProviderAccounts:
    """Each action is one transaction that includes its audit entries."""

    database: Database
    domains: frozenset[str]
    """The provider vouches for the addresses of these."""
    address: str | None
    """From where the request comes."""

    def find(self, identity: Identity) -> Person | None:
        """Return whose identity it is, also if the account is disabled."""
        return identities.find_person(self.database, identity.issuer, identity.subject)

    def sign_in(self, identity: Identity, now: datetime | None = None) -> Person:
        """Return whose identity it is, or a new account, with the rights that the provider states now.

        Raises:
            SignInRefusedError: it is nobody's and may have no account, or the account is disabled.
        """
        now = now or datetime.now(UTC)
        with self._recording_refusals(), self.database.transaction() as database:
            person = identities.find_person(database, identity.issuer, identity.subject)
            if person is None:
                person = self._add(database, identity, now)
            if person.disabled_at is not None:
                raise SignInRefusedError("This account is disabled. Ask an admin of Quarry.")
            self._update(database, person, identity)
            identities.record_statement(database, identity.issuer, identity.subject, now)
        return person

    def accept_invitation(
        self, identity: Identity, code: str, now: datetime | None = None
    ) -> Person:
        """Make the account that an invitation is for. It is used up, unless an error is raised.

        Raises:
            InvalidInvitationError: it is not valid.
            SignInRefusedError: the identity has an account, or the provider does not vouch that the invited address
                is theirs.
        """
        now = now or datetime.now(UTC)
        with self._recording_refusals(), self.database.transaction() as database:
            invitation = PeopleService(database).find_invitation(code, now)
            email = self._check_invited(database, identity, invitation)
            invitations.take(database, invitation.digest, now)
            person = self._make_account(database, identity, email, invitation, now)
            self._update(database, person, identity)
            identities.record_statement(database, identity.issuer, identity.subject, now)
        return person

    def link(self, person: Person, issuer: str, subject: str, now: datetime | None = None) -> None:
        """Let a person who has signed in otherwise sign in by an identity, too.

        What the provider states of them counts from their next sign-in through it.

        Raises:
            ConflictError: the identity belongs to an account already, or the person's own was changed meanwhile.
        """
        with self.database.transaction() as database:
            check_unchanged(database, person)
            if identities.find_person(database, issuer, subject) is not None:
                raise ConflictError("This identity belongs to an account already.")
            self._link(database, person, issuer, subject, now or datetime.now(UTC))

    def _add(self, database: Database, identity: Identity, now: datetime) -> Person:
        if not people.has_people(database):
            raise SignInRefusedError(
                "There are no accounts yet. The first one is an admin's: open the set-up link that quarry serve"
                " has printed."
            )
        email = self._vouched_email(identity)
        if email is None:
            raise SignInRefusedError(
                "There is no account of yours, and the provider does not confirm an address of yours"
                " (email_verified, QUARRY_OIDC_DOMAINS). Ask an admin of Quarry for an invitation."
            )
        if people.find_by_email(database, email) is not None:
            raise AccountExistsError(email)
        invitation = invitations.take_of(database, email, now)
        if invitation is None:
            _check_never_used(database, email)
        return self._make_account(database, identity, email, invitation, now)

    def _check_invited(self, database: Database, identity: Identity, invitation: Invitation) -> str:
        """Return the address that was invited."""
        person = identities.find_person(database, identity.issuer, identity.subject)
        if person is not None:
            raise SignInRefusedError(
                f"You have an account already, of {person.email}: sign in to it. The invitation is for"
                f" {invitation.email}."
            )
        email = self._vouched_email(identity)
        if email is None or email != invitation.email:
            known = f"knows you as {email}" if email else "does not confirm that it is yours"
            raise SignInRefusedError(
                f"The invitation is for {invitation.email}, and the provider {known}. Choose a password here, or"
                " sign in at the provider as somebody else."
            )
        return email

    def _make_account(
        self,
        database: Database,
        identity: Identity,
        email: str,
        invitation: Invitation | None,
        now: datetime,
    ) -> Person:
        person = people.add(
            database,
            email=email,
            name=clean_name(identity.name) or email,
            role=invitation.role if invitation else Role.MEMBER,
            password_hash=None,
            verified=identity.issuer,
            created_at=now,
        )
        inviter = {"invited_by": invitation.invited_by} if invitation else {}
        details = {"role": person.role, "issuer": identity.issuer, **inviter}
        self._record(database, "join", person, details)
        self._link(database, person, identity.issuer, identity.subject, now)
        return person

    def _link(
        self, database: Database, person: Person, issuer: str, subject: str, now: datetime
    ) -> None:
        identities.add(database, issuer, subject, person.id, now)
        details = {"issuer": issuer, "subject": subject}
        self._record(database, "link_identity", person, details)

    def _update(self, database: Database, person: Person, identity: Identity) -> None:
        """Take over what the provider states now, and what it states no more."""
        verified = self._find_voucher(person, identity)
        if verified != person.verified:
            people.set_verified(database, person.id, verified)
            change = {"before": person.verified, "after": verified}
            self._record(database, "verify", person, change)
        before, after = groups.replace_of_person(
            database, person.id, identity.issuer, identity.groups
        )
        if before != after:
            details = {"issuer": identity.issuer, "before": before, "after": after}
            self._record(database, "set_groups", person, details)

    def _find_voucher(self, person: Person, identity: Identity) -> str | None:
        """Return who vouches for the address of the account: what an admin says is not for the provider to change."""
        vouches = self._vouched_email(identity) == person.email
        match person.verified:
            case None if vouches:
                return identity.issuer
            case identity.issuer if not vouches:
                return None
            case verified:
                return verified

    def _vouched_email(self, identity: Identity) -> str | None:
        """Return the address as accounts have it, if the provider is authoritative for its domain."""
        if not identity.email or not identity.email_verified:
            return None
        try:
            email = normalize_email(identity.email)
        except InvalidInputError:
            return None
        return email if is_of_domains(email, self.domains) else None

    @contextmanager
    def _recording_refusals(self) -> Iterator[None]:
        try:
            yield
        except SignInRefusedError as error:
            actor = Actor(_STRANGER, self.address)
            audit.record_refusal(self.database, "sign_in", _STRANGER, str(error), actor)
            raise

    def _record(
        self, database: Database, action: str, person: Person, details: Mapping[str, object]
    ) -> None:
        name = audit_name(person.email)
        audit.record(database, action, name, details, Actor(name, self.address))


def _check_never_used(database: Database, email: str) -> None:
    """Refuse an address that was somebody else's before: an admin gives it, by an invitation, which asks."""
    try:
        check_never_used(database, email)
    except FormerAddressError as error:
        raise SignInRefusedError(
            "Your address previously belonged to another account here. Ask an admin of Quarry for an invitation."
        ) from error
