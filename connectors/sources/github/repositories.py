"""The repositories that a source reads: listed by name, or all of an owner."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

from connectors.http_client.api_client import get_field
from connectors.http_client.response import MalformedResponse
from connectors.sources.github.client import GitHubClient


class Visibility(StrEnum):
    PUBLIC = "public"
    INTERNAL = "internal"
    PRIVATE = "private"


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    id: int
    """Stays the same when the repository is renamed or moved to another owner."""
    name: str
    """The current `owner/name`."""
    link: str
    visibility: Visibility
    has_discussions: bool = True
    has_wiki: bool = True
    """Whether a wiki is enabled; it exists from its first page on."""

    @classmethod
    def parse(cls, raw: dict[str, Any]) -> Self:
        """Parse a repository of the API; raise MalformedResponse if a required field is missing."""
        return cls(
            id=get_field(raw, "id", int),
            name=get_field(raw, "full_name", str),
            link=get_field(raw, "html_url", str),
            visibility=_parse_visibility(raw),
            has_discussions=raw.get("has_discussions") is not False,
            has_wiki=raw.get("has_wiki") is not False,
        )

    @property
    def owner(self) -> str:
        return self.name.partition("/")[0]

    @property
    def graphql_variables(self) -> dict[str, str]:
        owner, _, name = self.name.partition("/")
        return {"owner": owner, "name": name}

    @property
    def parents(self) -> tuple[str, ...]:
        return tuple(self.name.split("/"))

    @property
    def path(self) -> str:
        return f"/repos/{self.name}"


@dataclass(frozen=True, slots=True)
class RepositorySelection:
    repositories: Sequence[Repository]
    """Ordered by id."""
    missing: Sequence[str]
    """Names in the settings that do not exist or that the token may not see."""


def find_repositories(client: GitHubClient, names: Sequence[str]) -> RepositorySelection:
    """Find repositories by `owner/name`, or by `owner` all of an organization or a person.

    Raises:
        SourceAuthError, TemporarilyUnavailableError, ResponseError: see `ApiClient`.
    """
    found: dict[int, Repository] = {}
    missing = []
    for name in names:
        matches = list(_find_by_name(client, name))
        found |= {one.id: one for one in matches}
        if not matches and "/" in name:
            missing.append(name)
    return RepositorySelection([found[one] for one in sorted(found)], missing)


def _find_by_name(client: GitHubClient, name: str) -> Iterator[Repository]:
    if "/" not in name:
        yield from _list_owned(client, name)
    elif (raw := client.get_object(f"/repos/{name}")) is not None:
        yield Repository.parse(raw)


def _list_owned(client: GitHubClient, owner: str) -> Iterator[Repository]:
    # The list is paged by number. If there are several pages they are read twice, so that a
    # repository is found that moved to an earlier page meanwhile.
    path, params = _choose_list(client, owner)
    for _ in range(2):
        count = 0
        for page in client.iterate_pages(path, {**params, "sort": "created", "direction": "asc"}):
            count += 1
            if not page.response.not_found:
                yield from map(Repository.parse, page.response.json_list())
        if count < 2:
            return


def _choose_list(client: GitHubClient, owner: str) -> tuple[str, dict[str, str]]:
    """Return path and parameters of the list of an owner's repositories.

    Private repositories of a person are listed only for that person's own token.
    """
    account = client.get_object(f"/users/{owner}")
    if account is None or account.get("type") == "Organization":
        return f"/orgs/{owner}/repos", {"type": "all"}
    login = client.get("/user").json_object().get("login", "")
    if str(login).lower() == owner.lower():
        return "/user/repos", {"affiliation": "owner"}
    return f"/users/{owner}/repos", {"type": "owner"}


def _parse_visibility(raw: dict[str, Any]) -> Visibility:
    # Older servers say only whether it is private.
    match raw:
        case {"visibility": "internal"}:
            return Visibility.INTERNAL
        case {"private": True}:
            return Visibility.PRIVATE
        case {"private": False}:
            return Visibility.PUBLIC
        case _:
            raise MalformedResponse("GitHub does not say whether a repository is private")
