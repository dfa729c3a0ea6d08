"""Who may read a repository."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from connectors.access import NOBODY, Access, parse_reader_token
from connectors.http_client.api_client import AccessDeniedError, get_field
from connectors.sources.github.client import GitHubClient
from connectors.sources.github.repositories import Repository, Visibility


@dataclass(frozen=True, slots=True)
class RepositoryAccess:
    access: Access
    emails: Mapping[str, str]
    """Known e-mail addresses of the readers, by login in lower case."""
    error: str | None = None
    """Why the readers are not known."""


class PermissionReader:
    """Reads who may read repositories; each profile is requested once a run."""

    def __init__(
        self, client: GitHubClient, source: str, public: Access, emails: Mapping[str, str]
    ) -> None:
        """
        Args:
            public: who may read public repositories.
            emails: addresses by login in lower case; they take precedence over profiles.
        """
        self._client = client
        self._source = source
        self._public = public
        self._known_emails = emails
        self._emails: dict[str, str | None] = dict(emails)

    def read_access(self, repository: Repository) -> RepositoryAccess:
        """Return those who have access directly, by a team or by the organisation.

        It is nobody if the token may not list them.

        Raises:
            SourceAuthError, TemporarilyUnavailableError, ResponseError: see `ApiClient`.
        """
        if repository.visibility is Visibility.PUBLIC:
            return RepositoryAccess(self._public, self._known_emails)
        try:
            logins = sorted({one.lower() for one in self._list_logins(repository)})
        except AccessDeniedError as error:
            return RepositoryAccess(NOBODY, self._known_emails, str(error))
        found = {login: email for login in logins if (email := self._find_email(login))}
        tokens = [f"external:{self._source}:{login}" for login in logins]
        tokens += [f"user:{email}" for email in found.values()]
        return RepositoryAccess(Access.to(tokens), {**self._known_emails, **found})

    def _list_logins(self, repository: Repository) -> Iterator[str]:
        # An internal repository is readable by all members of its organisation. Those of the
        # enterprise's other organisations may read it too, but this API does not list them.
        yield from _get_logins(self._client.list_objects(f"{repository.path}/collaborators"))
        if repository.visibility is Visibility.INTERNAL:
            yield from _get_logins(self._client.list_objects(f"/orgs/{repository.owner}/members"))

    def _find_email(self, login: str) -> str | None:
        """Return the public address of the profile; GitHub has verified that the person owns it."""
        if login not in self._emails:
            profile = self._client.get_object(f"/users/{login}")
            self._emails[login] = None if profile is None else _parse_email(profile)
        return self._emails[login]


def _get_logins(listed: Iterable[dict[str, Any]]) -> Iterator[str]:
    for one in listed:
        match one:
            case {"permissions": {"pull": False}}:
                pass
            case _:
                yield get_field(one, "login", str)


def _parse_email(profile: dict[str, Any]) -> str | None:
    """Return the address of a profile; raise MalformedResponse if it is not a profile."""
    get_field(profile, "login", str)
    email = profile.get("email")
    try:
        return parse_reader_token(f"user:{email}").removeprefix("user:") if email else None
    except ValueError:
        return None
