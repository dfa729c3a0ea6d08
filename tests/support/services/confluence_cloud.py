"""Confluence Cloud, as far as it differs: REST v2, pages by cursors."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

from tests.support.services.confluence import (
    BLOCK,
    EMAIL,
    LONG_AGO,
    TOKEN,
    Cut,
    File,
    Item,
    Json,
    Paper,
    Room,
    Said,
    Site,
    all_said,
    basic,
    not_found,
    query,
    refused,
)
from tests.support.services.serving import Asked, Reply, reply_json

_KINDS = {"pages": "page", "blogposts": "blogpost"}


class CloudSite(Site):
    """Folders are papers of the kind `folder`."""

    is_cloud = True

    def begins(self) -> str:
        return "/wiki"

    def routes(self) -> Iterator[tuple[str, Callable[..., Reply]]]:
        v2 = "/api/v2"
        yield f"{v2}/spaces", self._spaces
        yield rf"{v2}/spaces/(\d+)", self._space
        yield rf"{v2}/spaces/(\d+)/permissions", self._permissions
        yield rf"{v2}/spaces/(\d+)/(pages|blogposts)", self._contents
        yield rf"{v2}/(pages|blogposts)/(\d+)", self._content
        yield rf"{v2}/pages/(\d+)/ancestors", self._ancestors
        yield rf"{v2}/(?:pages|blogposts)/(\d+)/(footer|inline)-comments", self._said
        yield rf"{v2}/(?:footer|inline)-comments/(\d+)/children", self._answers
        yield rf"{v2}/(?:pages|blogposts)/(\d+)/attachments", self._files
        yield rf"{v2}/attachments/att(\d+)", self._file
        yield r"/rest/api/group/([^/]+)/membersByGroupId", self._members
        yield from super().routes()

    def authorised(self, asked: Asked) -> bool:
        return asked.headers.get("authorization") == basic(EMAIL, TOKEN)

    def person(self, short: str) -> Json:
        one = self.people[short]
        told = {"type": "known", "accountId": account(short), "accountType": "atlassian"}
        return told | {"email": one.email, "publicName": one.name, "displayName": one.name}

    def group(self, name: str) -> Json:
        return {"type": "group", "name": name, "id": f"g-{name}"}

    def short_of(self, asked: Asked) -> str:
        return asked.param("accountId").removeprefix("557058:")

    def time(self, moment: datetime) -> str:
        return f"{moment:%Y-%m-%dT%H:%M:%S}.000Z"

    def next_of(self, asked: Asked, found: Cut) -> Json:
        if found.next is None:
            return {}
        path = asked.path.removeprefix(self.begins())
        return {"next": f"{path}?{query(asked, cursor=found.next)}"}

    def cut(
        self,
        asked: Asked,
        items: Sequence[Any],
        limit: int,
        *,
        repeats: bool = False,
        gaps: bool = False,
    ) -> Cut:
        """Cursors name the last id that was shown, and how many pages there were."""
        limit = min(int(asked.param("limit", "25")), limit)
        turn, _, last = asked.param("cursor", "0/").partition("/")
        after = _place(items, int(last)) if last else -1
        if gaps:
            limit = min(limit, BLOCK)
            if int(turn) % 2 == 0:
                return Cut([], f"{int(turn) + 1}/{last}")
        shown = items[after + 1 : after + 1 + limit]
        end = f"{int(turn) + 1}/{_key(shown[-1])}" if after + 1 + limit < len(items) else None
        again = items[max(0, after - 4) : after + 1] if repeats else items[:0]
        return Cut([*again, *shown], end)

    def _listed(self, asked: Asked, items: Sequence[Item]) -> Reply:
        return self._shown(asked, self.cut(asked, sorted(items, key=_key), 250))

    def _shown(self, asked: Asked, cut: Cut) -> Reply:
        link: Json = {}
        headers: dict[str, str] = {}
        if cut.next is not None:
            link["next"] = f"{asked.path}?{query(asked, cursor=cut.next)}"
            headers["Link"] = f'<{link["next"]}>; rel="next"'
        results = [make() for _, make in cut.items]
        told = {"results": results, "_links": {"base": self.url(asked), **link}}
        return reply_json(told, headers=headers)

    def _room(self, number: str) -> Room | None:
        return next((one for one in self.rooms if one.id == int(number)), None)

    def _spaces(self, asked: Asked) -> Reply:
        assert asked.param("status") == "current"
        return self._listed(asked, [(one.id, _said_space(one)) for one in self.rooms])

    def _space(self, asked: Asked, number: str) -> Reply:
        del asked
        room = self._room(number)
        return reply_json(_said_space(room)()) if room else not_found()

    def _permissions(self, asked: Asked, number: str) -> Reply:
        room = self._room(number)
        if room is None:
            return not_found()
        if not room.is_told:
            return refused()
        whom = [("user", account(one)) for one in room.people]
        whom += [("group", f"g-{one}") for one in room.groups]
        told = [_permission(kind, one, "read", "space") for kind, one in whom]
        told += [_permission("user", account(one), "create", "page") for one in self.people]
        return self._listed(asked, [(n, lambda one=one: one) for n, one in enumerate(told)])  # type: ignore[misc]

    def _contents(self, asked: Asked, number: str, kinds: str) -> Reply:
        room = self._room(number)
        if room is None:
            return not_found()
        assert asked.param("status") == "current"
        cut = self.contents(asked, room, _KINDS[kinds], 100)
        items = [(one, self._maker(asked, room, one)) for one in cut.items]
        return self._shown(asked, Cut(items, cut.next))

    def _maker(self, asked: Asked, room: Room, number: int) -> Callable[[], Json]:
        paper = room.paper(number)
        assert paper
        return lambda: self._paper(asked, room, paper)

    def _content(self, asked: Asked, kinds: str, number: str) -> Reply:
        room, paper = self.find(int(number))
        if room is None or paper is None or paper.kind != _KINDS[kinds]:
            return not_found()
        return reply_json(
            self._paper(asked, room, paper) | {"_links": _web(asked, self, room, paper)}
        )

    def _ancestors(self, asked: Asked, number: str) -> Reply:
        _, paper = self.find(int(number))
        if paper is None:
            return not_found()
        above = [{"id": str(one.id), "type": one.kind} for one in self.above(paper)]
        return self._listed(asked, [(n, lambda one=one: one) for n, one in enumerate(above)])  # type: ignore[misc]

    def _paper(self, asked: Asked, room: Room, paper: Paper) -> Json:
        _, holder = self.find(paper.parent)
        told: Json = {
            "id": str(paper.id),
            "status": paper.status,
            "title": paper.title,
            "spaceId": str(room.id),
            "parentId": str(paper.parent) if paper.parent else None,
            "parentType": holder.kind if holder else None,
            "authorId": account(paper.by),
            "createdAt": self.time(LONG_AGO),
            "version": self._version(paper),
            "_links": {"webui": f"/spaces/{room.key}/pages/{paper.id}"},
        }
        if asked.param("body-format") == "storage":
            told["body"] = {"storage": {"value": paper.body, "representation": "storage"}}
        return told

    def _version(self, of: Paper | Said | File) -> Json:
        at, by = self.time(of.at), account(of.by)
        return {"number": of.number, "createdAt": at, "authorId": by}

    def _said(self, asked: Asked, number: str, kind: str) -> Reply:
        _, paper = self.find(int(number))
        if paper is None:
            return not_found()
        if paper.answer != 200:
            return reply_json({"message": "It went wrong"}, status=paper.answer)
        found = [one for one in paper.said if bool(one.quoted) == (kind == "inline")]
        return self._listed(asked, [(one.id, self._comment(one)) for one in found])

    def _answers(self, asked: Asked, number: str) -> Reply:
        for room in self.rooms:
            for paper in room.papers.values():
                for said in all_said(paper.said):
                    if said.id == int(number):
                        told = [(one.id, self._comment(one)) for one in said.answers]
                        return self._listed(asked, told)
        return not_found()

    def _comment(self, said: Said) -> Callable[[], Json]:
        return lambda: {
            "id": str(said.id),
            "status": "current",
            "version": self._version(said),
            "body": {"storage": {"value": said.body, "representation": "storage"}},
            "properties": {"inlineOriginalSelection": said.quoted} if said.quoted else {},
            "_links": {"webui": f"/comments/{said.id}"},
        }

    def _files(self, asked: Asked, number: str) -> Reply:
        _, paper = self.find(int(number))
        if paper is None:
            return not_found()
        if paper.files_answer != 200:
            return reply_json({"message": "It went wrong"}, status=paper.files_answer)
        return self._listed(asked, [(one.id, self._attached(paper, one)) for one in paper.files])

    def _file(self, asked: Asked, number: str) -> Reply:
        found = self.hung(int(number))
        if found is None:
            return not_found()
        base = {"_links": {"base": self.url(asked)}}
        return reply_json(self._attached(*found)() | base)

    def _attached(self, paper: Paper, file: File) -> Callable[[], Json]:
        return lambda: {
            "id": f"att{file.id}",
            "status": "current",
            "title": file.title,
            "createdAt": self.time(LONG_AGO),
            f"{'page' if paper.kind == 'page' else 'blogPost'}Id": str(paper.id),
            "fileSize": len(file.data),
            "webuiLink": f"/pages/viewpageattachments.action?pageId={paper.id}",
            "downloadLink": f"/download/attachments/{paper.id}/{file.id}?version={file.number}",
            "version": self._version(file),
        }

    def _members(self, asked: Asked, group: str) -> Reply:
        name = group.removeprefix("g-")
        if name in self.untold_groups:
            return refused()
        if name not in self.groups:
            return not_found()
        start, limit = int(asked.param("start", "0")), min(int(asked.param("limit", "25")), 50)
        listed = [self.person(one) for one in self.groups[name]]
        link: Json = {}
        if start + limit < len(listed):
            link["next"] = f"/rest/api/group/{group}/membersByGroupId?start={start + limit}"
        return reply_json({"results": listed[start : start + limit], "_links": link})


def account(short: str) -> str:
    return f"557058:{short}"


def _place(items: Sequence[Any], last: int) -> int:
    """Of the item of that id, or of what would come before it."""
    if isinstance(items, range):
        return last - items.start
    keys = list(map(_key, items))
    return keys.index(last) if last in keys else sum(one <= last for one in keys) - 1


def _key(item: Any) -> int:
    return item if isinstance(item, int) else int(item[0])


def _said_space(room: Room) -> Callable[[], Json]:
    return lambda: {
        "id": str(room.id),
        "key": room.key,
        "name": f"Space {room.key}",
        "status": "current",
    }


def _permission(kind: str, whom: str, key: str, target: str) -> Json:
    return {
        "id": f"{kind}-{whom}-{key}",
        "principal": {"type": kind, "id": whom},
        "operation": {"key": key, "targetType": target},
    }


def _web(asked: Asked, site: Site, room: Room, paper: Paper) -> Json:
    return {"base": site.url(asked), "webui": f"/spaces/{room.key}/pages/{paper.id}"}
