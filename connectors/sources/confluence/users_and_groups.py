"""The people and groups of a site, and the addresses by which they sign in to Quarry."""

from collections.abc import Mapping
from dataclasses import replace

from connectors.document import Person, reader_token
from connectors.http_client.response import Failing, Rejected
from connectors.sources.confluence.client import Refused, needed
from connectors.sources.confluence.models import Group, Somebody, Subjects
from connectors.sources.confluence.site import Wiki


class People:
    """Of one run: what was asked about a person or a group is not asked again."""

    def __init__(self, wiki: Wiki, named: Mapping[str, str]) -> None:
        """`named` are e-mail addresses by account ID or user name, in lower case; they go before what the
        site tells."""
        self._wiki = wiki
        self._named = named
        self._described: dict[tuple[str, str], Somebody] = {}
        self._members: dict[str, frozenset[str]] = {}
        self.fault: str | None = None
        """Why members of a group are not known."""

    def tokens(self, subjects: Subjects) -> frozenset[str]:
        """Reader tokens of those whose address is known, members of the groups among them.

        Raises:
            ActionRequiredError, TemporarilyUnavailableError: see `connectors.sources.confluence.site.Wiki`.
        """
        found = {token for one in subjects.people if (token := self._token(one))}
        return frozenset(found.union(*map(self._of_group, subjects.groups)))

    def person(self, one: Somebody) -> Person | None:
        """Nobody where neither name nor address is known."""
        whole = self._whole(one)
        name = whole.name or whole.username
        return Person(name, self._address(whole)) if name else None

    def name(self, key: str) -> str:
        """How the person of an account ID or a user key is called; empty where that is not told."""
        whole = self._whole(Somebody(key=key))
        return whole.name or whole.username

    def _token(self, one: Somebody) -> str | None:
        address = self._address(one) or self._address(self._whole(one))
        return f"user:{address}" if address else None

    def _address(self, one: Somebody) -> str | None:
        told = self._named.get(one.key.lower()) or self._named.get(one.username.lower())
        try:
            return reader_token(f"user:{told or one.email}").removeprefix("user:")
        except ValueError:
            return None

    def _whole(self, one: Somebody) -> Somebody:
        # By both: a user name may be spelt as the key of another person.
        known = (one.key, one.username)
        if not any(known) or (one.name and one.email):
            return one
        if known not in self._described:
            self._described[known] = self._asked(one)
        return self._described[known]

    def _asked(self, one: Somebody) -> Somebody:
        """What stands in the way of one person alone makes nobody else wait. A page may name whom it likes:
        not all of it is an account."""
        with needed("a person"):
            try:
                found = self._wiki.described(one)
            except (Refused, Rejected, Failing):
                return one
        return replace(found, name=found.name or one.name, email=found.email or one.email)

    def _of_group(self, group: Group) -> frozenset[str]:
        if group.id not in self._members:
            try:
                with needed(f"the members of the group {group.name or group.id}"):
                    members = list(self._wiki.members(group))
            except Refused as error:
                self.fault = f"who is in the group {group.name or group.id} is not told: {error}"
                members = []
            found = (self._token(one) for one in members)
            self._members[group.id] = frozenset(filter(None, found))
        return self._members[group.id]
