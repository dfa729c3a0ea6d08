"""The groups that admins make. Each action is one transaction that includes its audit entry.

Who is in a group `hr` holds the reader token `group:hr`. A name belongs to one group: what a provider states of
people changes no group of Quarry's own, and admins change none of a provider.
"""

import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from backend.access.own_readers import make_group_token
from backend.access.people import audit_name, normalize_email
from backend.access.token_budgets import check_tokens
from backend.store import audit
from backend.store.accounts import group_members, people
from backend.store.accounts.group_members import Group
from backend.store.audit import Actor
from backend.store.database import Database
from backend.store.llm import group_budgets
from connectors.errors import ConflictError, InvalidInputError, NotFoundError

LONGEST_NAME = 100


@dataclass(frozen=True, slots=True)
class GroupService:
    database: Database
    actor: Actor = audit.OWNER

    def create(self, name: str) -> Group:
        """Create a group. Raises InvalidInputError: it is no name. ConflictError: there is a group of this name."""
        name = normalize_group_name(name)
        with self.database.transaction() as database:
            _check_free(database, name)
            group_members.add(database, name)
            self._record(database, "create_group", name, {})
            return get_group(database, name)

    def rename(self, name: str, new: str) -> Group:
        """Let its members hold the token of another name instead.

        Raises:
            NotFoundError: there is no such group.
            InvalidInputError: the new one is no name.
            ConflictError: there is a group of the new name, or the group is a provider's.
        """
        new = normalize_group_name(new)
        with self._find_own(name) as (database, group):
            _check_free(database, new)
            group_members.rename(database, group.id, new)
            self._record(database, "rename_group", group.name, {"before": group.name, "after": new})
            return get_group(database, new)

    def delete(self, name: str) -> None:
        """Delete a group; one of a provider once nobody is in it, so that its name is free.

        Raises:
            NotFoundError: there is no such group.
            ConflictError: a provider says who is in it.
        """
        with self.database.transaction() as database:
            group = get_group(database, name)
            if not group.is_own and group.members:
                raise _of_provider(group)
            members = [person.email for person in group_members.list_members(database, group.id)]
            group_members.remove(database, group.id)
            self._record(database, "delete_group", group.name, {"before": members})

    def add_member(self, name: str, email: str) -> None:
        """Add a person to a group.

        Raises:
            NotFoundError: there is no such group or account.
            ConflictError: the group is a provider's.
        """
        email = normalize_email(email)
        with self._find_own(name) as (database, group):
            person = people.get_by_email(database, email)
            if group_members.add_member(database, group.id, person.id):
                details = {"member": audit_name(email)}
                self._record(database, "add_to_group", group.name, details)

    def remove_member(self, name: str, email: str) -> None:
        """Remove a person from a group.

        Raises:
            NotFoundError: there is no such group or member.
            ConflictError: the group is a provider's.
        """
        email = normalize_email(email)
        with self._find_own(name) as (database, group):
            person = people.get_by_email(database, email)
            if not group_members.remove_member(database, group.id, person.id):
                raise NotFoundError(f"{email} is not in the group {group.name}.")
            details = {"member": audit_name(email)}
            self._record(database, "remove_from_group", group.name, details)

    def set_token_budget(self, name: str, tokens: int) -> Group:
        """Let its members use so many tokens of language models a day, all together; 0: no limit.

        Raises:
            NotFoundError: there is no such group.
            InvalidInputError: it is no number of tokens.
            ConflictError: the group is a provider's.
        """
        check_tokens(tokens)
        with self._find_own(name) as (database, group):
            before = group_budgets.read(database, group.id)
            if tokens != before:
                group_budgets.change(database, group.id, tokens)
                details = {"before": before or None, "after": tokens or None}
                self._record(database, "set_token_budget", group.name, details)
            return group

    @contextmanager
    def _find_own(self, name: str) -> Iterator[tuple[Database, Group]]:
        """Begin a transaction on a group that admins have made."""
        with self.database.transaction() as database:
            group = get_group(database, name)
            if not group.is_own:
                raise _of_provider(group)
            yield database, group

    def _record(
        self, database: Database, action: str, name: str, details: Mapping[str, object]
    ) -> None:
        audit.record(database, action, make_group_token(name), details, self.actor)


def get_group(database: Database, name: str) -> Group:
    """Return the group of a name. Raises NotFoundError."""
    group = group_members.find_by_name(database, normalize_group_name(name))
    if group is None:
        raise NotFoundError(f"There is no group {name}. To list them: quarry groups list")
    return group


def normalize_group_name(name: str) -> str:
    """Return a name on one line, as Unicode composes it; capital and small letters stay different, as in reader tokens.

    Raises:
        InvalidInputError: it is empty, too long, or holds what cannot be shown.
    """
    if len(name) > 10 * LONGEST_NAME:
        raise _invalid_name()
    cleaned = unicodedata.normalize("NFC", " ".join(name.split()))
    if not 1 <= len(cleaned) <= LONGEST_NAME or not cleaned.isprintable():
        raise _invalid_name()
    return cleaned


def _invalid_name() -> InvalidInputError:
    return InvalidInputError(f"The name of a group has 1 to {LONGEST_NAME} characters on one line.")


def _check_free(database: Database, name: str) -> None:
    taken = group_members.find_by_name(database, name)
    if taken is not None:
        whose = "" if taken.is_own else f", of the provider {taken.origin}"
        raise ConflictError(f"There is a group {name} already{whose}. Choose another name.")


def _of_provider(group: Group) -> ConflictError:
    return ConflictError(f"The provider {group.origin} says who is in the group {group.name}.")
