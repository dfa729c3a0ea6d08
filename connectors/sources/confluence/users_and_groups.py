"""The users and groups of a site, and the e-mail addresses with which they sign in to Quarry."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from connectors.access import parse_reader_token
from connectors.document import Person
from connectors.http_client.api_client import AccessDeniedError, required
from connectors.http_client.response import ClientError, ServerError
from connectors.sources.confluence.models import Group, Principals, User
from connectors.sources.confluence.site import Site


class UserDirectory:
    """Finds users and members of groups; each is requested once a run."""

    def __init__(self, site: Site, emails: Mapping[str, str]) -> None:
        """Prepare to look users and members of groups up at the site, each once.

        Args:
            emails: by account ID or user name in lower case; they take precedence over the site's.
        """
        self._site = site
        self._emails = emails
        self._users: dict[tuple[str, str], User] = {}
        self._members: dict[str, frozenset[str]] = {}
        self.error: str | None = None
        """Why the members of a group are not known."""

    def get_tokens(self, principals: Principals) -> frozenset[str]:
        """Return the reader tokens of users and members of groups whose e-mail address is known.

        Raises:
            SourceAuthError, TemporarilyUnavailableError: see `ApiClient`.
        """
        found = self.get_user_tokens(principals.users)
        return found.union(*map(self._get_member_tokens, principals.groups))

    def get_user_tokens(self, users: Iterable[User]) -> frozenset[str]:
        """Return the reader tokens of users whose e-mail address is known. Raises as `get_tokens`."""
        return frozenset(filter(None, map(self._get_token, users)))

    def list_members(self, group: Group) -> Sequence[User]:
        """Return the members of a group; none if the token may not see them. Raises as `get_tokens`."""
        label = f"the members of the group {group.name or group.id}"
        try:
            with required(label):
                return list(self._site.list_members(group))
        except AccessDeniedError as error:
            self.error = f"{label} are not known: {error}"
            return ()

    def get_person(self, user: User) -> Person | None:
        """Return the person; None if the name is not known."""
        completed = self._complete(user)
        name = completed.name or completed.username
        return Person(name, self._get_email(completed)) if name else None

    def get_display_name(self, user: User) -> str:
        """Return the name of a user, else the user name or the key."""
        completed = self._complete(user)
        return completed.name or completed.username or completed.key

    def get_name(self, key: str) -> str:
        """Return the name for an account ID or a user key; empty if it is not known."""
        user = self._complete(User(key=key))
        return user.name or user.username

    def _get_token(self, user: User) -> str | None:
        email = self._get_email(user) or self._get_email(self._complete(user))
        return f"user:{email}" if email else None

    def _get_email(self, user: User) -> str | None:
        configured = self._emails.get(user.key.lower()) or self._emails.get(user.username.lower())
        try:
            return parse_reader_token(f"user:{configured or user.email}").removeprefix("user:")
        except ValueError:
            return None

    def _complete(self, user: User) -> User:
        """Return the user with name and e-mail address as far as the site shows them."""
        # By both: a user name may be equal to the key of another person.
        key = (user.key, user.username)
        if not any(key) or (user.name and user.email):
            return user
        if key not in self._users:
            self._users[key] = self._read_user(user)
        return self._users[key]

    def _read_user(self, user: User) -> User:
        # An error about one user must not end the run: a page may mention what is not an account.
        with required("a user"):
            try:
                found = self._site.read_user(user)
            except (AccessDeniedError, ClientError, ServerError):
                return user
        return replace(found, name=found.name or user.name, email=found.email or user.email)

    def _get_member_tokens(self, group: Group) -> frozenset[str]:
        if group.id not in self._members:
            self._members[group.id] = self.get_user_tokens(self.list_members(group))
        return self._members[group.id]
