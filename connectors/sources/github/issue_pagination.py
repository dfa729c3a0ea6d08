"""Issues and pull requests of a repository in the order in which they changed, none left out.

The list counts its pages, so what changes or goes away meanwhile moves all that comes after it. So no
second page is asked for: after each page the list is asked anew from where that page ended in time.
Only among items of one second the pages are followed.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self

from connectors.checkpoints import stamp
from connectors.extraction.result import parsed_time
from connectors.http_client.response import Answer, Malformed
from connectors.sources.github.client import Api, field_of, objects
from connectors.sources.github.repositories import Repository

_A_SECOND = timedelta(seconds=1)
_MOST = 1 << 31


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """An issue or a pull request as lists tell it."""

    number: int
    title: str
    body: str
    author: str
    """Their login; empty where the account is gone."""
    link: str
    is_pull: bool
    comments: int | None
    """None where the list does not tell."""
    created_at: datetime
    updated_at: datetime
    state: str
    labels: tuple[str, ...]

    @classmethod
    def of(cls, raw: dict[str, Any]) -> Self:
        """Raises Malformed."""
        number = field_of(raw, "number", int)
        if not 0 < number < _MOST:
            raise Malformed(f"GitHub answers an issue numbered {number}")
        return cls(
            number=number,
            title=field_of(raw, "title", str),
            body=str(raw.get("body") or ""),
            author=login_of(raw),
            link=field_of(raw, "html_url", str),
            is_pull="pull_request" in raw or "head" in raw,
            comments=_count(raw),
            created_at=time_of(raw, "created_at"),
            updated_at=time_of(raw, "updated_at"),
            state=str(raw.get("state") or ""),
            labels=tuple(_labels(raw.get("labels"))),
        )


@dataclass(frozen=True, slots=True)
class Leaf:
    """One page of a walk."""

    items: Sequence[Item]
    then: str
    """From where in time a walk goes on after it; empty where that is not known."""


class Gone(Exception):
    """There is no such repository any more."""


def walk(api: Api, repository: Repository, since: str) -> Iterator[Leaf]:
    """All that changed since then, the oldest change first; all there is where `since` is empty.

    An item that changes meanwhile comes again; one may come twice, unchanged, on two leaves that
    follow each other.

    Raises:
        Gone: the repository is not there.
        ActionRequiredError, TemporarilyUnavailableError, BadAnswer: see `Api.get`.
    """
    for page in _onwards(api, f"{repository.path}/issues", {"state": "all"}, since):
        if page.answer.gone:
            yield from _without_issues(api, repository, page.answer)
        else:
            yield Leaf(_items(page.answer), page.then)


def talked(api: Api, repository: Repository, list_of: str, since: str) -> Iterator[dict[int, str]]:
    """The items that have comments made or edited since then, page by page: number to the time of the
    latest. An edited comment is not sure to count as a change of its item.

    `list_of` is `issues` or, for comments on lines of a change, `pulls`.

    Raises:
        ActionRequiredError, TemporarilyUnavailableError, BadAnswer: see `Api.get`.
    """
    for page in _onwards(api, f"{repository.path}/{list_of}/comments", {}, since):
        latest: dict[int, str] = {}
        for raw in [] if page.answer.gone else objects(page.answer):
            about = str(raw.get("issue_url") or raw.get("pull_request_url") or "")
            number = about.rpartition("/")[2]
            if re.fullmatch("[0-9]{1,10}", number):
                latest[int(number)] = stamp(time_of(raw, "updated_at"))
        yield latest


@dataclass(frozen=True, slots=True)
class _Page:
    answer: Answer
    then: str


def _onwards(api: Api, path: str, params: dict[str, str], since: str) -> Iterator[_Page]:
    """The pages of a list that can be asked for by time. One that is gone is the last."""
    while True:
        for page in api.pages(path, _asked(params, since)):
            then = since
            if not page.answer.gone and (items := objects(page.answer)):
                then = max(since, stamp(time_of(items[-1], "updated_at") - _A_SECOND))
            yield _Page(page.answer, then)
            if page.next is None:
                return
            if then > since:
                since = then
                break


def _asked(params: dict[str, str], since: str) -> dict[str, str]:
    asked = {**params, "sort": "updated", "direction": "asc"}
    return {**asked, "since": since} if since else asked


def _without_issues(api: Api, repository: Repository, answer: Answer) -> Iterator[Leaf]:
    """Where issues are switched off (410) pull requests have a list of their own. It knows no `since`;
    but since nobody can delete a pull request, in the order of their making its pages do not move."""
    if answer.status != 410:
        raise Gone(repository.name)
    asked = {"state": "all", "sort": "created", "direction": "asc"}
    for page in api.pages(f"{repository.path}/pulls", asked):
        if page.answer.gone:
            raise Gone(repository.name)
        yield Leaf(_items(page.answer), "")


def _items(answer: Answer) -> list[Item]:
    return [Item.of(one) for one in objects(answer)]


def time_of(raw: dict[str, Any], name: str) -> datetime:
    """Raises Malformed."""
    moment = parsed_time(field_of(raw, name, str))
    if moment is None:
        raise Malformed(f"GitHub answers a {name} that is no time")
    return moment


def login_of(raw: dict[str, Any]) -> str:
    return login_in(raw.get("user"))


def login_in(person: object) -> str:
    """Empty where the account is gone."""
    match person:
        case {"login": str(login)}:
            return login
        case _:
            return ""


def _count(raw: dict[str, Any]) -> int | None:
    """A pull request asked for by itself tells it, a list of them does not: then neither counts, so that
    both give one version."""
    match raw:
        case {"head": _}:
            return None
        case {"comments": int(count)}:
            return count
        case _:
            return None


def _labels(raw: object) -> Iterator[str]:
    for one in raw if isinstance(raw, list) else ():
        match one:
            case {"name": str(name)} | str(name):
                yield name
            case _:
                pass
