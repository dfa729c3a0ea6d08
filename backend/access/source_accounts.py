"""Which accounts of sources are whose: admins map them, people ask for them, and the person who looks after the source approves.

Nobody gains a right by asking. What a person asks for is answered alike, whether there is such a source or account,
and whoever has it. Each action is one transaction that includes its audit entry.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from backend.access.people import audit_name, normalize_email
from backend.store import audit
from backend.store.accounts import people
from backend.store.accounts.people import Person
from backend.store.audit import Actor
from backend.store.database import Database
from backend.store.sync import source_accounts, sources
from backend.store.sync.source_accounts import AccountState, ListedAccount, SourceAccount
from backend.store.sync.sources import EVERY_SOURCE, EverySource, SourceChoice, SourcesOf
from connectors.errors import ConflictError, InvalidInputError

LONGEST_ACCOUNT, LONGEST_SOURCE = 200, 100
MOST_ASKED = 20
"""Accounts that one person asks for at once."""
MOST_CANDIDATES = 20


@dataclass(frozen=True, slots=True)
class SourceAccountService:
    """For admins, and for source managers as far as their own sources go."""

    database: Database
    actor: Actor = audit.OWNER
    choice: SourceChoice = EVERY_SOURCE

    def list_accounts(
        self, state: AccountState | None = None, after: str = "", limit: int | None = None
    ) -> list[SourceAccount]:
        """Return the accounts that are mapped or asked for by their ids, from past `after`; each with the name that the source shows."""
        with self.database.snapshot() as database:
            found = source_accounts.list_chosen(database, self.choice, state, after, limit)
            return _name_asked(database, found)

    def list_candidates(self, source: str, begin: str = "") -> list[ListedAccount]:
        """Return the first accounts of a source that belong to nobody, whose id or name begins with this.

        Raises:
            NotFoundError: there is no such source for the asker.
        """
        begin = unicodedata.normalize("NFC", begin.strip())[:LONGEST_ACCOUNT]
        source_id = sources.find(self.database, source, self.choice).id
        return source_accounts.list_unmatched(self.database, source_id, begin, MOST_CANDIDATES)

    def map(self, email: str, source: str, account: str) -> SourceAccount:
        """Give an account of a source to a person, who holds its reader token from the next request on.

        Raises:
            NotFoundError: there is no account of this address, or no such source.
            InvalidInputError: something of it cannot be an address or an account.
            ConflictError: the source lists no such account, somebody else has it, or the person's account is disabled.
        """
        email, account = normalize_email(email), clean_account(account)
        with self.database.transaction() as database:
            person = people.get_by_email(database, email)
            found = sources.find(database, source, self.choice)
            now = datetime.now(UTC)
            new = source_accounts.make_new(person.id, email, found.name, account, now)
            return self._map(database, replace(new, source_id=found.id))

    def approve(self, account_id: str) -> SourceAccount:
        """Give a person the account that they ask for.

        Raises:
            NotFoundError: nobody asks for it.
            ConflictError: as `map`; or a source manager asks for it.
        """
        with self.database.transaction() as database:
            asked = source_accounts.find(database, account_id, self.choice)
            return asked if asked.token else self._map(database, asked)

    def withdraw(self, account_id: str) -> None:
        """Decline what a person asks for, or take away what is mapped to them: from the next request on.

        Raises:
            NotFoundError: there is none of this id for the asker.
        """
        with self.database.transaction() as database:
            found = source_accounts.find(database, account_id, self.choice)
            _withdraw(database, found, self.actor)

    def _map(self, database: Database, asked: SourceAccount) -> SourceAccount:
        self._check_not_own(asked)
        _check_active(database, asked)
        listed = _get_listed(database, asked)
        mapping = replace(
            asked,
            account=listed.account,
            token=listed.token,
            mapped_at=datetime.now(UTC),
            mapped_by=self.actor.name,
            name=listed.name or None,
        )
        mapped = source_accounts.find_by_token(database, listed.token)
        self._check_free(database, mapping, mapped)
        source_accounts.remove(database, _list_answered(database, asked, listed))
        if mapped is not None:
            return mapped
        source_accounts.add(database, mapping)
        _record(database, "map_source_account", mapping, None, mapping.describe(), self.actor)
        return mapping

    def _check_not_own(self, asked: SourceAccount) -> None:
        """Raise ConflictError if managers approve for themselves: they would gain what an admin's credential reads."""
        match self.choice:
            case SourcesOf(person_id) if person_id == asked.person_id:
                raise ConflictError("An admin has to approve what you ask for yourself.")
            case EverySource() | SourcesOf():
                pass

    def _check_free(
        self, database: Database, mapping: SourceAccount, mapped: SourceAccount | None
    ) -> None:
        """Raise ConflictError if the account is somebody else's, by a mapping or by the address in the source."""
        name = mapping.describe()
        if mapped is not None and mapped.person_id != mapping.person_id:
            raise self._conflict(
                f"The account {name} is mapped to {mapped.email}. An account of a source has one person.",
                f"The account {name} is mapped to somebody else. Ask an admin whose it is.",
            )
        for email in source_accounts.list_addresses(database, mapping.token or ""):
            other = people.find_by_email(database, email)
            if other and other.disabled_at is None and other.id != mapping.person_id:
                raise self._conflict(
                    f"By its address, the account {name} belongs to {email}. An account of a source has one person.",
                    f"By its address, the account {name} belongs to somebody else. Ask an admin whose it is.",
                )

    def _conflict(self, to_admins: str, to_managers: str) -> ConflictError:
        match self.choice:
            case EverySource():
                return ConflictError(to_admins)
            case SourcesOf():
                return ConflictError(to_managers)


@dataclass(frozen=True, slots=True)
class OwnSourceAccounts:
    """What a person does about their own accounts of sources."""

    database: Database
    person: Person
    actor: Actor

    def list_accounts(self) -> list[SourceAccount]:
        return source_accounts.list_of_person(self.database, self.person.id)

    def ask(self, source: str, account: str) -> SourceAccount:
        """Ask for an account, which gives no right; once for each.

        Raises:
            InvalidInputError: the name of the source or the account is empty, too long, or cannot be shown.
            ConflictError: the person asks for as many as allowed.
        """
        source, account = _clean_source(source), clean_account(account)
        with self.database.transaction() as database:
            own = source_accounts.list_of_person(database, self.person.id)
            for one in own:
                if (one.source, one.account) == (source, account):
                    return one
            if sum(one.token is None for one in own) >= MOST_ASKED:
                raise ConflictError(
                    f"You have {MOST_ASKED} open account requests. Withdraw one, or wait until they are decided."
                )
            now, person = datetime.now(UTC), self.person
            new = source_accounts.make_new(person.id, person.email, source, account, now)
            asked = replace(new, source_id=source_accounts.find_source_id(database, source))
            source_accounts.add(database, asked)
            _record(database, "ask_source_account", asked, None, asked.describe(), self.actor)
            return asked

    def withdraw(self, account_id: str) -> None:
        """Ask for an account no more, or give up one that is mapped.

        Raises:
            NotFoundError: the person neither has nor asks for one of this id.
        """
        with self.database.transaction() as database:
            found = source_accounts.find_of_person(database, account_id, self.person.id)
            _withdraw(database, found, self.actor)


def clean_account(text: str) -> str:
    """Return the id of an account as it is compared, as Unicode composes it.

    Raises:
        InvalidInputError: it is empty, too long, or cannot be shown.
    """
    cleaned = _clean(text, LONGEST_ACCOUNT)
    if cleaned is None:
        raise InvalidInputError(
            f"Name the account in 1 to {LONGEST_ACCOUNT} characters on one line."
        )
    return cleaned


def _clean_source(text: str) -> str:
    cleaned = _clean(text, LONGEST_SOURCE)
    if cleaned is None:
        raise InvalidInputError(f"Name the source in 1 to {LONGEST_SOURCE} characters on one line.")
    return cleaned


def _clean(text: str, longest: int) -> str | None:
    cleaned = unicodedata.normalize("NFC", text.strip()) if len(text) <= 10 * longest else ""
    return cleaned if 1 <= len(cleaned) <= longest and cleaned.isprintable() else None


def _check_active(database: Database, asked: SourceAccount) -> None:
    person = people.find(database, asked.person_id)
    if person is None or person.disabled_at is not None:
        raise ConflictError(f"The account of {asked.email} is disabled.")


def _get_listed(database: Database, asked: SourceAccount) -> ListedAccount:
    if asked.source_id is None:
        raise ConflictError(
            f"There was no source {asked.source} when {asked.email} asked. Decline it, and map the account yourself."
        )
    key = (asked.source_id, asked.account)
    listed = source_accounts.find_listed(database, [key]).get(key)
    if listed is None:
        raise ConflictError(
            f"{asked.source} lists no account {asked.account}. Check how it is written; permission syncs list the accounts."
        )
    return listed


def _list_answered(database: Database, asked: SourceAccount, listed: ListedAccount) -> list[str]:
    """Return the requests of a person that are answered by a mapping."""
    written = {asked.account, listed.account}
    return [
        one.id
        for one in source_accounts.list_of_person(database, asked.person_id)
        if one.token is None and one.source_id == asked.source_id and one.account in written
    ]


def _name_asked(database: Database, accounts: Sequence[SourceAccount]) -> list[SourceAccount]:
    """Add whose account is asked for: the person who approves it cannot recognize an id."""
    keys = {
        one.id: (one.source_id, one.account)
        for one in accounts
        if one.token is None and one.source_id is not None
    }
    listed = source_accounts.find_listed(database, set(keys.values()))
    names = {number: listed[key].name for number, key in keys.items() if key in listed}
    return [replace(one, name=names.get(one.id, one.name)) for one in accounts]


def _withdraw(database: Database, found: SourceAccount, actor: Actor) -> None:
    source_accounts.remove(database, [found.id])
    action = "withdraw_source_account" if found.token else "decline_source_account"
    _record(database, action, found, found.describe(), None, actor)


def _record(
    database: Database,
    action: str,
    account: SourceAccount,
    before: str | None,
    after: str | None,
    actor: Actor,
) -> None:
    details = {"before": before, "after": after}
    audit.record(database, action, audit_name(account.email), details, actor)
