"""Confluence Data Center, as far as it differs: REST v1 alone, pages by counting, other permissions."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from tests.support.services.confluence import (
    BLOCK,
    TOKEN,
    Cut,
    File,
    Json,
    Paper,
    Room,
    Said,
    Site,
    all_said,
    not_found,
    query,
    refused,
)
from tests.support.services.serving import Asked, Reply, reply_json

_ZONE = timezone(timedelta(hours=1))


class DataCenterSite(Site):
    def __init__(self, *rooms: Room) -> None:
        super().__init__(*rooms)
        self.is_old = False
        """Before 9.1: permissions of spaces are told by the remote API only."""
        self.is_remote_on = True
        self.shows_addresses = True
        self.pages_at_most = 100

    def begins(self) -> str:
        return "/confluence"

    def routes(self) -> Iterator[tuple[str, Callable[..., Reply]]]:
        yield r"/rest/api/space", self._spaces
        yield r"/rest/api/space/([^/]+)", self._space
        yield r"/rest/api/space/([^/]+)/permissions", self._permissions
        yield r"/rpc/json-rpc/confluenceservice-v2", self._remote
        yield r"/rest/api/content", self._contents
        yield r"/rest/api/content/(\d+)", self._content
        yield r"/rest/api/content/att(\d+)", self._file
        yield r"/rest/api/content/(\d+)/child/comment", self._said
        yield r"/rest/api/content/(\d+)/child/attachment", self._files
        yield r"/rest/api/group/([^/]+)/member", self._members
        yield r"/rest/mobile/1.0/profile/([^/]+)", self._profile
        yield from super().routes()

    def authorised(self, asked: Asked) -> bool:
        return asked.headers.get("authorization") == f"Bearer {TOKEN}"

    def person(self, short: str) -> Json:
        told = {"type": "known", "username": short, "userKey": f"8a7f-{short}"}
        return told | {"displayName": self.people[short].name}

    def group(self, name: str) -> Json:
        return {"type": "group", "name": name}

    def short_of(self, asked: Asked) -> str:
        return asked.param("username") or asked.param("key").removeprefix("8a7f-")

    def time(self, moment: datetime) -> str:
        return moment.astimezone(_ZONE).isoformat(timespec="milliseconds")

    def next_of(self, asked: Asked, found: Cut) -> Json:
        if found.next is None:
            return {}
        path = asked.path.removeprefix(self.begins())
        return {"next": f"{path}?{query(asked, start=found.next)}"}

    def cut(
        self,
        asked: Asked,
        items: Sequence[Any],
        limit: int,
        *,
        repeats: bool = False,
        gaps: bool = False,
    ) -> Cut:
        """What the account may not see counts all the same."""
        start = int(asked.param("start", "0"))
        limit = min(int(asked.param("limit", "25")), limit, self.pages_at_most)
        if gaps:
            limit = min(limit, BLOCK)
            items = _with_gaps(items)
        first = max(0, start - 5) if repeats else start
        shown = [one for one in items[first : start + limit] if one is not None]
        return Cut(shown, str(start + limit) if start + limit < len(items) else None)

    def _listed(self, asked: Asked, listed: Sequence[Json]) -> Reply:
        cut = self.cut(asked, listed, 200)
        links = {"base": self.url(asked), "context": self.begins(), **self.next_of(asked, cut)}
        return reply_json({"results": list(cut.items), "size": len(cut.items), "_links": links})

    def _room(self, key: str) -> Room | None:
        return next((one for one in self.rooms if one.key == key), None)

    def _spaces(self, asked: Asked) -> Reply:
        assert asked.param("status") == "current"
        return self._listed(asked, [self.space(one) for one in self.rooms])

    def _space(self, asked: Asked, key: str) -> Reply:
        del asked
        room = self._room(key)
        return reply_json(self.space(room)) if room else not_found()

    def _permissions(self, asked: Asked, key: str) -> Reply:
        del asked
        room = self._room(key)
        if room is None or self.is_old:
            return not_found()
        if not room.is_told:
            return refused()
        whom: list[Json] = [{"type": "user", "userKey": f"8a7f-{one}"} for one in room.people]
        whom += [{"type": "group", "name": one} for one in room.groups]
        whom += [{"type": "anonymous"}] if room.is_open else []
        told = [_permission(one, "read", "space") for one in whom]
        told += [_permission({"type": "group", "name": "makers"}, "create", "page")]
        return reply_json(told)

    def _remote(self, asked: Asked) -> Reply:
        question = asked.json()
        room = self._room(question["params"][0])
        if not self.is_remote_on or room is None:
            return not_found()
        if not room.is_told:
            return reply_json({"jsonrpc": "2.0", "error": {"message": "NotPermitted"}, "id": 1})
        whom = [{"userName": one, "groupName": None} for one in room.people]
        whom += [{"userName": None, "groupName": one} for one in room.groups]
        whom += [{"userName": None, "groupName": None}] if room.is_open else []
        makers = [{"userName": None, "groupName": "makers"}]
        sets = [
            {"type": "VIEWSPACE", "spacePermissions": whom},
            {"type": "EDITSPACE", "spacePermissions": makers},
        ]
        return reply_json({"jsonrpc": "2.0", "result": sets, "id": question["id"]})

    def _contents(self, asked: Asked) -> Reply:
        room = self._room(asked.param("spaceKey"))
        if room is None:
            return not_found()
        assert asked.param("status") == "current"
        cut = self.contents(asked, room, asked.param("type"), 100)
        told = []
        for number in cut.items:
            paper = room.paper(number)
            assert paper
            told.append(self.content(asked, room, paper))
        links = {"base": self.url(asked), **self.next_of(asked, cut)}
        return reply_json({"results": told, "size": len(told), "_links": links})

    def _content(self, asked: Asked, number: str) -> Reply:
        room, paper = self.find(int(number))
        if room is None or paper is None:
            return not_found()
        told = self.content(asked, room, paper)
        return reply_json(told | {"_links": {**told["_links"], "base": self.url(asked)}})

    def _said(self, asked: Asked, number: str) -> Reply:
        _, paper = self.find(int(number))
        if paper is None:
            return not_found()
        if paper.answer != 200:
            return reply_json({"message": "It went wrong"}, status=paper.answer)
        assert asked.param("depth") == "all"
        return self._listed(asked, [self._comment(one) for one in all_said(paper.said)])

    def _comment(self, said: Said) -> Json:
        told: Json = {
            "id": str(said.id),
            "type": "comment",
            "version": self.version(said),
            "history": {"createdDate": self.time(said.at), "createdBy": self.person(said.by)},
            "body": {"storage": {"value": said.body, "representation": "storage"}},
            "_links": {"webui": f"/comments/{said.id}"},
        }
        if said.quoted:
            told["extensions"] = {"inlineProperties": {"originalSelection": said.quoted}}
        return told

    def _files(self, asked: Asked, number: str) -> Reply:
        _, paper = self.find(int(number))
        if paper is None:
            return not_found()
        if paper.files_answer != 200:
            return reply_json({"message": "It went wrong"}, status=paper.files_answer)
        return self._listed(asked, [self._attached(paper, one) for one in paper.files])

    def _file(self, asked: Asked, number: str) -> Reply:
        found = self.hung(int(number))
        if found is None:
            return not_found()
        paper, _ = found
        told = self._attached(*found)
        links = {**told["_links"], "base": self.url(asked)}
        held = {"id": str(paper.id), "type": paper.kind, "title": paper.title}
        return reply_json(told | {"_links": links, "container": held})

    def _attached(self, paper: Paper, file: File) -> Json:
        return {
            "id": f"att{file.id}",
            "type": "attachment",
            "status": "current",
            "title": file.title,
            "version": self.version(file),
            "extensions": {"fileSize": len(file.data)},
            "_links": {
                "webui": f"/pages/viewpageattachments.action?pageId={paper.id}",
                "download": f"/download/attachments/{paper.id}/{file.id}?version={file.number}",
            },
        }

    def _members(self, asked: Asked, group: str) -> Reply:
        if group in self.untold_groups:
            return refused()
        if group not in self.groups:
            return not_found()
        return self._listed(asked, [self.person(one) for one in self.groups[group]])

    def _profile(self, asked: Asked, short: str) -> Reply:
        del asked
        if short not in self.people or not self.shows_addresses:
            return not_found()
        one = self.people[short]
        return reply_json({"userName": short, "fullName": one.name, "email": one.email})


def _with_gaps(items: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for begin in range(0, len(items), BLOCK):
        found += [*[None] * BLOCK, *items[begin : begin + BLOCK]]
    return found


def _permission(subject: Json, key: str, target: str) -> Json:
    return {"subject": subject, "operation": {"operationKey": key, "targetType": target}}
