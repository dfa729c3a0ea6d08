"""Who may read repositories: a document names its repository, a repository the accounts that may read it."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from connectors.access import Access, make_account_token, make_external_token, parse_reader_token
from connectors.connector import ReaderGroup
from connectors.http_client.api_client import AccessDeniedError, get_field, required
from connectors.http_client.response import ResponseError, ServerError
from connectors.sources.github.client import GitHubClient
from connectors.sources.github.repositories import Repository, Visibility


def derive_repository_access(source_id: int, repository_id: int | str) -> Access:
    """Return the access of the documents of a repository."""
    return Access.to([_make_repository_token(source_id, repository_id)])


def _make_repository_token(source_id: int, repository_id: int | str) -> str:
    return make_external_token(source_id, f"repository/{repository_id}")


@dataclass(frozen=True, slots=True)
class RepositoryScope:
    group: ReaderGroup
    logins: Sequence[str] = ()
    """The accounts that may read the repository, in lower case and in order; none if everybody may."""
    error: str | None = None
    """Why they are not known."""


class PermissionReader:
    """Reads who may read repositories; each profile is requested once a run."""

    def __init__(
        self,
        client: GitHubClient,
        source_id: int,
        public: Collection[str],
        emails: Mapping[str, str],
    ) -> None:
        """Prepare to read who may read repositories.

        Args:
            public: tokens of those who may read public repositories.
            emails: addresses by login in lower case; they take precedence over profiles.
        """
        self._client = client
        self._source_id = source_id
        self._public = frozenset(public)
        self._known_emails = emails
        self._emails: dict[str, str | None] = dict(emails)

    def read_scope(self, repository: Repository) -> RepositoryScope:
        """Return those who have access directly, by a team or by the organization.

        It is nobody if the token may not list them.

        Raises:
            SourceAuthError, TemporarilyUnavailableError: see `ApiClient`.
        """
        if repository.visibility is Visibility.PUBLIC:
            return RepositoryScope(self._make_group(repository, self._public))
        try:
            with required(f"the readers of {repository.name}"):
                logins = sorted({one.lower() for one in self._list_logins(repository)})
        except AccessDeniedError as error:
            return RepositoryScope(self._make_group(repository, ()), error=str(error))
        members = map(self._make_account_token, logins)
        return RepositoryScope(self._make_group(repository, members), logins)

    def read_account(self, login: str) -> ReaderGroup:
        """Return an account as a group of the person whose e-mail address it shows; of nobody if it shows none.

        Raises:
            SourceAuthError, TemporarilyUnavailableError: see `ApiClient`.
        """
        try:
            with required(f"the profile of {login}"):
                email = self._find_email(login)
        except AccessDeniedError:
            email = None
        members = frozenset({f"user:{email}"} if email else ())
        return ReaderGroup(self._make_account_token(login), members, login)

    def find_author_email(self, repository: Repository, login: str) -> str | None:
        """Return the address of an author; in a public repository, whose authors are many, only a configured one."""
        if repository.visibility is Visibility.PUBLIC:
            return self._known_emails.get(login.lower())
        try:
            return self._find_email(login.lower())
        except (AccessDeniedError, ResponseError, ServerError):
            return None

    def _make_group(self, repository: Repository, members: Iterable[str]) -> ReaderGroup:
        token = _make_repository_token(self._source_id, repository.id)
        return ReaderGroup(token, frozenset(members), repository.name)

    def _make_account_token(self, login: str) -> str:
        return make_account_token(self._source_id, login)

    def _list_logins(self, repository: Repository) -> Iterator[str]:
        # An internal repository is readable by all members of its organization. Those of the
        # enterprise's other organizations may read it too, but this API does not list them.
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
