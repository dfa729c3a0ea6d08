"""Who may read a repository."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from connectors.document import NOBODY, Access, reader_token
from connectors.sources.github.client import Api, Refused, field_of
from connectors.sources.github.repositories import Repository, Visibility


@dataclass(frozen=True, slots=True)
class Rights:
    access: Access
    addresses: Mapping[str, str]
    """E-mail addresses of those who may read it, where known, by login in lower case."""
    fault: str | None = None
    """Why nobody is known to have access."""


class People:
    """Of one run: what was asked about a person is not asked again."""

    def __init__(self, api: Api, source: str, public: Access, named: Mapping[str, str]) -> None:
        """
        Args:
            public: who may read public repositories.
            named: e-mail addresses by login in lower case; they go before what profiles tell.
        """
        self._api = api
        self._source = source
        self._public = public
        self._addresses: dict[str, str | None] = dict(named)
        self._named = named

    def rights(self, repository: Repository) -> Rights:
        """Those whom GitHub lists for it, directly, by a team or by the organisation; nobody where the
        token may not see them.

        Raises:
            ActionRequiredError, TemporarilyUnavailableError, BadAnswer: see `Api.get`.
        """
        if repository.visibility is Visibility.PUBLIC:
            return Rights(self._public, self._named)
        try:
            logins = sorted({one.lower() for one in self._logins(repository)})
        except Refused as error:
            return Rights(NOBODY, self._named, str(error))
        found = {one: address for one in logins if (address := self._address(one))}
        tokens = [f"external:{self._source}:{one}" for one in logins]
        tokens += [f"user:{address}" for address in found.values()]
        return Rights(Access.to(tokens), {**self._named, **found})

    def _logins(self, repository: Repository) -> Iterator[str]:
        """Of an internal repository all members of its organisation; not those of the enterprise's other
        organisations, whom this part of the API does not list."""
        yield from _readers(self._api.all(f"{repository.path}/collaborators"))
        if repository.visibility is Visibility.INTERNAL:
            yield from _readers(self._api.all(f"/orgs/{repository.owner}/members"))

    def _address(self, login: str) -> str | None:
        """That of the profile, which a person chooses among those GitHub has verified."""
        if login not in self._addresses:
            answer = self._api.get(f"/users/{login}")
            self._addresses[login] = None if answer.gone else _told(answer.json_object())
        return self._addresses[login]


def _readers(listed: Iterable[dict[str, Any]]) -> Iterator[str]:
    for one in listed:
        match one:
            case {"permissions": {"pull": False}}:
                pass
            case _:
                yield field_of(one, "login", str)


def _told(profile: dict[str, Any]) -> str | None:
    """Raises Malformed: it is no profile."""
    field_of(profile, "login", str)
    address = profile.get("email")
    try:
        return reader_token(f"user:{address}").removeprefix("user:") if address else None
    except ValueError:
        return None
