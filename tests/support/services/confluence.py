"""Confluence's REST APIs as developer.atlassian.com describes them: of the cloud (v2 and v1) and of a server.

What both give alike is here; `CloudSite` and `DataCenterSite` are in the modules beside it.
"""

import base64
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias
from urllib.parse import unquote, urlencode

from tests.support.services.serving import Asked, Reply, reply_json
from tests.support.services.troubled import Troubled

EMAIL = "quarry@example.com"
TOKEN = "right-token"
LONG_AGO = datetime(2026, 1, 5, 8, tzinfo=UTC)
CROWDED = 1_000_000
"""The first id of a crowd."""
BLOCK = 60
"""Of a list with gaps: so many that are shown, then so many that are not."""

Json: TypeAlias = dict[str, Any]
Item: TypeAlias = tuple[int, Callable[[], Json]]
"""Its id, by which lists are ordered, and how it is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Human:
    name: str
    email: str = ""
    """As the site shows it; empty where it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    id: int
    by: str = "bob"
    body: str
    at: datetime = LONG_AGO
    number: int = 1
    quoted: str = ""
    """Of an inline comment: the words that it is about."""
    answers: tuple["Said", ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    id: int
    title: str
    data: bytes
    at: datetime = LONG_AGO
    number: int = 1
    by: str = "ann"


@dataclass(frozen=True, slots=True, kw_only=True)
class Only:
    """Those whom a restriction names; nobody where it is none."""

    people: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """A page or a blog post."""

    id: int
    title: str
    body: str = ""
    kind: str = "page"
    parent: int = 0
    number: int = 1
    at: datetime = LONG_AGO
    by: str = "ann"
    status: str = "current"
    only: Only = Only()
    said: tuple[Said, ...] = ()
    files: tuple[File, ...] = ()
    labels: tuple[str, ...] = ()
    answer: int = 200
    """With which what was said on it is answered."""
    files_answer: int = 200
    """With which its attachments are answered."""
    hidden: bool = False
    """From the account of the token."""


@dataclass(slots=True, kw_only=True)
class Room:
    """A space. What tests change while it is served: they do so between requests."""

    id: int
    key: str
    people: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    is_open: bool = False
    """To anonymous visitors."""
    is_told: bool = True
    """Its permissions may be seen by the token."""
    papers: dict[int, Paper] = field(default_factory=dict)
    crowd: int = 0
    """So many small pages, made as they are asked for."""

    @property
    def crowded(self) -> range:
        """The ids of these."""
        return range(CROWDED, CROWDED + self.crowd)

    def put(self, *papers: Paper) -> None:
        self.papers |= {one.id: one for one in papers}

    def change(self, number: int, /, **values: Any) -> None:
        self.papers[number] = replace(self.papers[number], **values)

    def paper(self, number: int) -> Paper | None:
        if number in self.crowded:
            return Paper(id=number, title="C", body="<p>C</p>")
        found = self.papers.get(number)
        return found if found and not found.hidden else None


class Site(Troubled):
    """A service with state: `running(CloudSite(...))`."""

    is_cloud = False

    def __init__(self, *rooms: Room) -> None:
        super().__init__()
        self.rooms = list(rooms)
        self.people: dict[str, Human] = {}
        """By a short name, of which account IDs, user keys and user names are made."""
        self.groups: dict[str, list[str]] = {}
        self.untold_groups: set[str] = set()
        """Whose members may not be seen by the token."""
        self.unindexed: set[int] = set()
        """Ids that the search does not know."""
        self.repeats = False
        """Every page of a list of contents begins with the last five of the one before."""
        self.gaps = False
        """Pages of contents are short, and every other is empty."""
        self.most_shown = 200
        """Restrictions that are told in a list of contents."""

    def routes(self) -> Iterator[tuple[str, Callable[..., Reply]]]:
        """Patterns of paths behind where the site begins, and what answers."""
        yield r"/rest/api/user/current", self._myself
        yield r"/rest/api/content/search", self._search
        yield r"/rest/api/content/(\d+)/restriction/byOperation/read", self._restriction
        yield r"/download/attachments/(\d+)/(\d+)", self._bytes
        yield r"/rest/api/user", self._user

    def begins(self) -> str:
        """The path at which the site begins."""
        raise NotImplementedError

    def authorised(self, asked: Asked) -> bool:
        raise NotImplementedError

    def person(self, short: str) -> Json:
        raise NotImplementedError

    def group(self, name: str) -> Json:
        raise NotImplementedError

    def short_of(self, asked: Asked) -> str:
        """Of the person that a question is about."""
        raise NotImplementedError

    def next_of(self, asked: Asked, found: "Cut") -> Json:
        """The link to the page after it, as v1 tells it."""
        raise NotImplementedError

    def time(self, moment: datetime) -> str:
        raise NotImplementedError

    def url(self, asked: Asked) -> str:
        return f"http://{asked.headers['host']}{self.begins()}"

    def _answer(self, asked: Asked) -> Reply:
        if "authorization" in asked.headers and not self.authorised(asked):
            return bad_token()
        path = asked.path.removeprefix(self.begins())
        for pattern, answer in self.routes():
            if match := re.fullmatch(pattern, path):
                if "authorization" not in asked.headers and not self._is_open(match):
                    return bad_token()
                return answer(asked, *map(unquote, match.groups()))
        return not_found()

    def _is_open(self, match: re.Match[str]) -> bool:
        """To a stranger: of all there is only spaces that are."""
        told = match[1] if match.re.groups == 1 and "/space" in match[0] else ""
        return any(one.is_open and told in (one.key, str(one.id)) for one in self.rooms)

    def _myself(self, asked: Asked) -> Reply:
        del asked
        return reply_json({"type": "known", "displayName": "Quarry"})

    def _user(self, asked: Asked) -> Reply:
        short = self.short_of(asked)
        if " " in short:
            return reply_json({"message": "That is no account"}, status=400)
        if short == "failing":
            return reply_json({"message": "It went wrong"}, status=500)
        return reply_json(self.person(short)) if short in self.people else not_found()

    def _bytes(self, asked: Asked, page: str, number: str) -> Reply:
        del asked
        _, paper = self.find(int(page))
        for one in paper.files if paper else ():
            if one.id == int(number):
                return Reply(body=one.data, headers={"Content-Type": "application/octet-stream"})
        return not_found()

    def _restriction(self, asked: Asked, number: str) -> Reply:
        _, paper = self.find(int(number))
        if paper is None:
            return not_found()
        start, limit = int(asked.param("start", "0")), int(asked.param("limit", "200"))
        return reply_json({"operation": "read", "restrictions": self._only(paper, start, limit)})

    def _search(self, asked: Asked) -> Reply:
        cql = asked.param("cql")
        if match := re.fullmatch(r"id in \(([\d,]*)\)", cql):
            ids = [int(one) for one in match[1].split(",") if int(one) not in self.unindexed]
            found = [pair for one in ids if (pair := self.find(one))[1]]
            items = [self._item(asked, room, paper) for room, paper in found if room and paper]
        else:
            items = self._changed(asked, cql)
        cut = self.cut(asked, items, 50)
        told = {"results": [make() for _, make in cut.items], "size": len(cut.items)}
        return reply_json(told | {"_links": {"base": self.url(asked), **self.next_of(asked, cut)}})

    def _item(self, asked: Asked, room: Room, paper: Paper) -> Item:
        return paper.id, lambda: self.content(asked, room, paper)

    def _changed(self, asked: Asked, cql: str) -> list[Item]:
        match = re.fullmatch(
            r"(?:space in \(([^)]*)\) and )?type in \(page,blogpost,comment,attachment\) and"
            r' lastmodified >= now\("-(\d+)m"\) order by lastmodified asc',
            cql,
        )
        assert match, cql
        keys = re.findall(r'"([^"]*)"', match[1]) if match[1] else None
        since = (self.now - timedelta(minutes=int(match[2]))).replace(second=0)
        found: list[tuple[datetime, int, Callable[[], Json]]] = []
        for room in self.rooms:
            if keys is None or room.key in keys:
                found += self._touched(asked, room)
        found = [one for one in found if one[0] >= since and one[1] not in self.unindexed]
        return [(number, make) for _, number, make in sorted(found, key=lambda one: one[:2])]

    def _touched(
        self, asked: Asked, room: Room
    ) -> Iterator[tuple[datetime, int, Callable[[], Json]]]:
        for paper in room.papers.values():
            if paper.status != "current" or paper.hidden:
                continue
            yield paper.at, *self._item(asked, room, paper)
            held = {"id": str(paper.id), "type": paper.kind, "title": paper.title}
            for said in all_said(paper.said):
                told = {"id": str(said.id), "type": "comment", "container": held}
                yield (
                    said.at,
                    said.id,
                    lambda told=told, said=said: {  # type: ignore[misc]
                        **told,
                        "version": {"number": said.number, "when": self.time(said.at)},
                    },
                )
            for file in paper.files:
                told = {"id": f"att{file.id}", "type": "attachment", "container": held}
                yield (
                    file.at,
                    file.id,
                    lambda told=told, file=file: {  # type: ignore[misc]
                        **told,
                        "version": {"number": file.number, "when": self.time(file.at)},
                    },
                )

    def find(self, number: int) -> tuple[Room | None, Paper | None]:
        for room in self.rooms:
            if (paper := room.paper(number)) and paper.status == "current":
                return room, paper
        return None, None

    def hung(self, number: int) -> tuple[Paper, File] | None:
        """The attachment of that id, with the page it hangs on, where both are there."""
        for room in self.rooms:
            for paper in room.papers.values():
                for file in paper.files:
                    if file.id == number and self.find(paper.id)[1]:
                        return paper, file
        return None

    def contents(self, asked: Asked, room: Room, kind: str, limit: int) -> "Cut":
        """One page of the contents of a space."""
        if room.crowd:
            listed: Sequence[int] = room.crowded if kind == "page" else ()
        else:
            listed = sorted(
                one.id
                for one in room.papers.values()
                if one.kind == kind and one.status == "current" and not one.hidden
            )
        cut = self.cut(asked, listed, limit, repeats=self.repeats, gaps=self.gaps)
        self._page_passed()
        return cut

    def cut(
        self,
        asked: Asked,
        items: Sequence[Any],
        limit: int,
        *,
        repeats: bool = False,
        gaps: bool = False,
    ) -> "Cut":
        """One page of a list, in the site's own way of paging."""
        raise NotImplementedError

    def content(self, asked: Asked, room: Room, paper: Paper) -> Json:
        """As v1 tells it, with the parts that are asked for."""
        expand = asked.param("expand").split(",")
        told: Json = {
            "id": str(paper.id),
            "type": paper.kind,
            "status": paper.status,
            "title": paper.title,
            "version": self.version(paper),
            "_links": {"webui": f"/display/{room.key}/{paper.id}"},
        }
        if "history" in expand:
            told["history"] = {
                "createdDate": self.time(LONG_AGO),
                "createdBy": self.person(paper.by),
            }
        if "body.storage" in expand:
            told["body"] = {"storage": {"value": paper.body, "representation": "storage"}}
        if "space" in expand:
            told["space"] = self.space(room)
        if "ancestors.restrictions.read.restrictions.user" in expand:
            told |= self._around(paper)
        return told

    def version(self, of: Paper | Said | File) -> Json:
        return {"number": of.number, "when": self.time(of.at), "by": self.person(of.by)}

    def space(self, room: Room) -> Json:
        return {"id": room.id, "key": room.key, "name": f"Space {room.key}", "status": "current"}

    def _around(self, paper: Paper) -> Json:
        above = [
            {"id": str(one.id), "title": one.title, "restrictions": self._read(one)}
            for one in self.above(paper)
            if one.kind == "page"
        ]
        labels = [{"prefix": "global", "name": one} for one in paper.labels]
        return {
            **({"ancestors": above} if paper.kind == "page" else {}),
            "restrictions": self._read(paper),
            "metadata": {"labels": {"results": labels, "size": len(labels)}},
            "children": {
                "comment": {"results": [{"id": str(one.id)} for one in paper.said]},
                "attachment": {"results": [{"id": f"att{one.id}"} for one in paper.files]},
            },
        }

    def above(self, paper: Paper) -> list[Paper]:
        """Ancestors, from the top of the space downwards."""
        found: list[Paper] = []
        while paper.parent:
            _, holder = self.find(paper.parent)
            assert holder, paper
            found.insert(0, holder)
            paper = holder
        return found

    def _read(self, paper: Paper) -> Json:
        told = self._only(paper, 0, self.most_shown)
        return {"read": {"operation": "read", "restrictions": told}}

    def _only(self, paper: Paper, start: int, limit: int) -> Json:
        people = [self.person(one) for one in paper.only.people][start : start + limit]
        groups = [self.group(one) for one in paper.only.groups][start : start + limit]
        return {
            name: {"results": told, "start": start, "limit": limit, "size": len(told)}
            for name, told in (("user", people), ("group", groups))
        }


@dataclass(frozen=True, slots=True)
class Cut:
    """One page of a list."""

    items: Sequence[Any]
    next: str | None
    """The cursor or the start of the one after it."""


def all_said(said: Sequence[Said]) -> Iterator[Said]:
    for one in said:
        yield one
        yield from all_said(one.answers)


def bad_token() -> Reply:
    return reply_json({"message": "Unauthorized", "statusCode": 401}, status=401)


def refused(message: str = "Not permitted") -> Reply:
    return reply_json({"message": message, "statusCode": 403}, status=403)


def not_found() -> Reply:
    return reply_json({"message": "No such thing", "statusCode": 404}, status=404)


def limited(seconds: int) -> Reply:
    text = {"message": "Rate limit exceeded", "statusCode": 429}
    return reply_json(text, status=429, headers={"Retry-After": str(seconds)})


def basic(email: str, token: str) -> str:
    return f"Basic {base64.b64encode(f'{email}:{token}'.encode()).decode()}"


def query(asked: Asked, **others: str) -> str:
    return urlencode({**asked.query, **{name: [one] for name, one in others.items()}}, doseq=True)
