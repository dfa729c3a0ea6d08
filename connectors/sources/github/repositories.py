"""The repositories that a source reads: named one by one, or all of an owner."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from connectors.http_client.response import Malformed
from connectors.sources.github.client import Api, field_of


class Visibility(StrEnum):
    PUBLIC = "public"
    INTERNAL = "internal"
    PRIVATE = "private"


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    id: int
    """Stays when the repository is renamed or moved to another owner."""
    name: str
    """`owner/name`, as it is now."""
    link: str
    visibility: Visibility
    has_discussions: bool = True
    has_wiki: bool = True
    """Whether it may have one: it comes into being with its first page."""

    @classmethod
    def of(cls, raw: dict[str, Any]) -> Self:
        """Raises Malformed."""
        return cls(
            id=field_of(raw, "id", int),
            name=field_of(raw, "full_name", str),
            link=field_of(raw, "html_url", str),
            visibility=_visibility(raw),
            has_discussions=raw.get("has_discussions") is not False,
            has_wiki=raw.get("has_wiki") is not False,
        )

    @property
    def owner(self) -> str:
        return self.name.partition("/")[0]

    @property
    def named(self) -> dict[str, str]:
        """As the variables of a GraphQL query."""
        owner, _, name = self.name.partition("/")
        return {"owner": owner, "name": name}

    @property
    def parents(self) -> tuple[str, ...]:
        return tuple(self.name.split("/"))

    @property
    def path(self) -> str:
        return f"/repos/{self.name}"


@dataclass(frozen=True, slots=True)
class Found:
    repositories: Sequence[Repository]
    """In the order of their ids."""
    missing: Sequence[str] = field(default=())
    """Names of the settings that lead nowhere."""


def find(api: Api, names: Sequence[str]) -> Found:
    """Each name is `owner/name`, or `owner` for all of an organisation or a person.

    Raises:
        ActionRequiredError, TemporarilyUnavailableError, BadAnswer: see `Api.get`.
    """
    found: dict[int, Repository] = {}
    missing = []
    for name in names:
        several = [one for one in _named(api, name) if one is not None]
        found |= {one.id: one for one in several}
        if not several and "/" in name:
            missing.append(name)
    return Found([found[one] for one in sorted(found)], missing)


def _named(api: Api, name: str) -> Iterator[Repository | None]:
    if "/" not in name:
        yield from _owned(api, name)
        return
    answer = api.get(f"/repos/{name}")
    yield None if answer.gone else Repository.of(answer.json_object())


def _owned(api: Api, owner: str) -> Iterator[Repository]:
    """All of the owner's. The list counts its pages: where there are several they are read twice, so
    that one which moved to an earlier page meanwhile is there."""
    path, params = _list_of(api, owner)
    for _ in range(2):
        count = 0
        for page in api.pages(path, {**params, "sort": "created", "direction": "asc"}):
            count += 1
            if not page.answer.gone:
                yield from map(Repository.of, page.answer.json_list())
        if count < 2:
            return


def _list_of(api: Api, owner: str) -> tuple[str, dict[str, str]]:
    """Of a person the token gives all repositories only where it is that person's own."""
    account = api.get(f"/users/{owner}")
    if account.gone:
        return f"/orgs/{owner}/repos", {"type": "all"}
    if account.json_object().get("type") == "Organization":
        return f"/orgs/{owner}/repos", {"type": "all"}
    mine = api.get("/user").json_object().get("login", "")
    if str(mine).lower() == owner.lower():
        return "/user/repos", {"affiliation": "owner"}
    return f"/users/{owner}/repos", {"type": "owner"}


def _visibility(raw: dict[str, Any]) -> Visibility:
    """Older servers tell only whether it is private."""
    match raw:
        case {"visibility": "internal"}:
            return Visibility.INTERNAL
        case {"private": True}:
            return Visibility.PRIVATE
        case {"private": False, "visibility": "public"} | {"private": False}:
            return Visibility.PUBLIC
        case _:
            raise Malformed("GitHub does not tell whether a repository is private")
