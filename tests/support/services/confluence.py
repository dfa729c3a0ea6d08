"""A fake Confluence after developer.atlassian.com: what the cloud and servers have in common.

`CloudService` and `DataCenterService` are in the modules beside it.
"""

import base64
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias
from urllib.parse import unquote, urlencode

from tests.support.services.faulty_service import FaultyService
from tests.support.services.serving import ReceivedRequest, Reply, reply_json

EMAIL = "quarry@example.com"
TOKEN = "right-token"
LONG_AGO = datetime(2026, 1, 5, 8, tzinfo=UTC)
CROWD_START = 1_000_000
"""The first id of generated pages."""
BLOCK = 60
"""The size of gaps in a list: that many items are returned, then that many are skipped."""

Json: TypeAlias = dict[str, Any]
Item: TypeAlias = tuple[int, Callable[[], Json]]
"""The id, by which lists are ordered, and a function that returns the JSON object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    name: str
    email: str = ""
    """Empty if the site does not show it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    id: int
    by: str = "bob"
    body: str
    at: datetime = LONG_AGO
    number: int = 1
    quoted: str = ""
    """The text to which an inline comment refers."""
    replies: tuple["Comment", ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    id: int
    title: str
    data: bytes
    at: datetime = LONG_AGO
    number: int = 1
    by: str = "ann"


@dataclass(frozen=True, slots=True, kw_only=True)
class Restriction:
    """Those to whom a page is restricted; empty if it is not restricted."""

    people: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
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
    restriction: Restriction = Restriction()
    comments: tuple[Comment, ...] = ()
    files: tuple[Attachment, ...] = ()
    labels: tuple[str, ...] = ()
    comments_status: int = 200
    """The status of replies about its comments."""
    files_status: int = 200
    """The status of replies about its attachments."""
    hidden: bool = False
    """Whether the account of the token may not view it."""


@dataclass(slots=True, kw_only=True)
class Space:
    """A space that tests change between requests."""

    id: int
    key: str
    people: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    is_public: bool = False
    """Whether anonymous visitors may view it."""
    permissions_visible: bool = True
    """Whether the token may read its permissions."""
    pages: dict[int, Page] = field(default_factory=dict)
    crowd: int = 0
    """The number of small pages generated on request."""

    @property
    def crowd_ids(self) -> range:
        """The ids of the generated pages."""
        return range(CROWD_START, CROWD_START + self.crowd)

    def put(self, *pages: Page) -> None:
        self.pages |= {one.id: one for one in pages}

    def change(self, number: int, /, **values: Any) -> None:
        self.pages[number] = replace(self.pages[number], **values)

    def find_page(self, number: int) -> Page | None:
        if number in self.crowd_ids:
            return Page(id=number, title="C", body="<p>C</p>")
        found = self.pages.get(number)
        return found if found and not found.hidden else None


class ConfluenceService(FaultyService):
    """A service with state: `serve(CloudService(...))`."""

    is_cloud = False

    def __init__(self, *spaces: Space) -> None:
        super().__init__()
        self.spaces = list(spaces)
        self.people: dict[str, Profile] = {}
        """By user name, from which account IDs and user keys are derived."""
        self.groups: dict[str, list[str]] = {}
        self.hidden_groups: set[str] = set()
        """Groups whose members the token may not list."""
        self.unindexed: set[int] = set()
        """Ids that the search does not find."""
        self.repeats = False
        """Whether each page of contents repeats the last five of the previous one."""
        self.gaps = False
        """Whether pages of contents are short, and every second one is empty."""
        self.max_restrictions = 200
        """The limit of restrictions in a list of contents."""

    def routes(self) -> Iterator[tuple[str, Callable[..., Reply]]]:
        """Yield patterns of paths below the base path, with their handlers."""
        yield r"/rest/api/user/current", self._get_current_user
        yield r"/rest/api/content/search", self._search
        yield r"/rest/api/content/(\d+)/restriction/byOperation/read", self._restriction
        yield r"/download/attachments/(\d+)/(\d+)", self._download
        yield r"/rest/api/user", self._user

    def get_base_path(self) -> str:
        """Return the path below which the site is."""
        raise NotImplementedError

    def is_authorized(self, request: ReceivedRequest) -> bool:
        raise NotImplementedError

    def person(self, user_name: str) -> Json:
        raise NotImplementedError

    def group(self, name: str) -> Json:
        raise NotImplementedError

    def get_user_name(self, request: ReceivedRequest) -> str:
        """Return the user that a request is about."""
        raise NotImplementedError

    def get_next_link(self, request: ReceivedRequest, found: "ListSlice") -> Json:
        """Return the link to the next page as v1 does."""
        raise NotImplementedError

    def time(self, moment: datetime) -> str:
        raise NotImplementedError

    def url(self, request: ReceivedRequest) -> str:
        return f"http://{request.headers['host']}{self.get_base_path()}"

    def _answer(self, request: ReceivedRequest) -> Reply:
        if "authorization" in request.headers and not self.is_authorized(request):
            return invalid_token()
        path = request.path.removeprefix(self.get_base_path())
        for pattern, answer in self.routes():
            if match := re.fullmatch(pattern, path):
                if "authorization" not in request.headers and not self._is_public_path(match):
                    return invalid_token()
                return answer(request, *map(unquote, match.groups()))
        return not_found()

    def _is_public_path(self, match: re.Match[str]) -> bool:
        """Return whether an anonymous visitor may request a path: only public spaces."""
        raw = match[1] if match.re.groups == 1 and "/space" in match[0] else ""
        return any(one.is_public and raw in (one.key, str(one.id)) for one in self.spaces)

    def _get_current_user(self, request: ReceivedRequest) -> Reply:
        del request
        return reply_json({"type": "known", "displayName": "Quarry"})

    def _user(self, request: ReceivedRequest) -> Reply:
        user_name = self.get_user_name(request)
        if " " in user_name:
            return reply_json({"message": "That is no account"}, status=400)
        if user_name == "failing":
            return reply_json({"message": "It went wrong"}, status=500)
        return reply_json(self.person(user_name)) if user_name in self.people else not_found()

    def _download(self, request: ReceivedRequest, page_id: str, number: str) -> Reply:
        del request
        _, page = self.find(int(page_id))
        for one in page.files if page else ():
            if one.id == int(number):
                return Reply(body=one.data, headers={"Content-Type": "application/octet-stream"})
        return not_found()

    def _restriction(self, request: ReceivedRequest, number: str) -> Reply:
        _, page = self.find(int(number))
        if page is None:
            return not_found()
        start, limit = int(request.param("start", "0")), int(request.param("limit", "200"))
        return reply_json(
            {"operation": "read", "restrictions": self._get_restrictions(page, start, limit)}
        )

    def _search(self, request: ReceivedRequest) -> Reply:
        cql = request.param("cql")
        if match := re.fullmatch(r"id in \(([\d,]*)\)", cql):
            ids = [int(one) for one in match[1].split(",") if int(one) not in self.unindexed]
            found = [pair for one in ids if (pair := self.find(one))[1]]
            items = [self._item(request, space, page) for space, page in found if space and page]
        else:
            items = self._search_changes(request, cql)
        slice_list = self.slice_list(request, items, 50)
        raw = {"results": [make() for _, make in slice_list.items], "size": len(slice_list.items)}
        return reply_json(
            raw | {"_links": {"base": self.url(request), **self.get_next_link(request, slice_list)}}
        )

    def _item(self, request: ReceivedRequest, space: Space, page: Page) -> Item:
        return page.id, lambda: self.content(request, space, page)

    def _search_changes(self, request: ReceivedRequest, cql: str) -> list[Item]:
        match = re.fullmatch(
            r"(?:space in \(([^)]*)\) and )?type in \(page,blogpost,comment,attachment\) and"
            r' lastmodified >= now\("-(\d+)m"\) order by lastmodified asc',
            cql,
        )
        assert match, cql
        keys = re.findall(r'"([^"]*)"', match[1]) if match[1] else None
        since = (self.now - timedelta(minutes=int(match[2]))).replace(second=0)
        found: list[tuple[datetime, int, Callable[[], Json]]] = []
        for space in self.spaces:
            if keys is None or space.key in keys:
                found += self._iterate_changes(request, space)
        found = [one for one in found if one[0] >= since and one[1] not in self.unindexed]
        return [(number, make) for _, number, make in sorted(found, key=lambda one: one[:2])]

    def _iterate_changes(
        self, request: ReceivedRequest, space: Space
    ) -> Iterator[tuple[datetime, int, Callable[[], Json]]]:
        for page in space.pages.values():
            if page.status != "current" or page.hidden:
                continue
            yield page.at, *self._item(request, space, page)
            container = {"id": str(page.id), "type": page.kind, "title": page.title}
            for comments in flatten_comments(page.comments):
                raw = {"id": str(comments.id), "type": "comment", "container": container}
                yield (
                    comments.at,
                    comments.id,
                    lambda raw=raw, comments=comments: {  # type: ignore[misc]
                        **raw,
                        "version": {"number": comments.number, "when": self.time(comments.at)},
                    },
                )
            for file in page.files:
                raw = {"id": f"att{file.id}", "type": "attachment", "container": container}
                yield (
                    file.at,
                    file.id,
                    lambda raw=raw, file=file: {  # type: ignore[misc]
                        **raw,
                        "version": {"number": file.number, "when": self.time(file.at)},
                    },
                )

    def find(self, number: int) -> tuple[Space | None, Page | None]:
        for space in self.spaces:
            if (page := space.find_page(number)) and page.status == "current":
                return space, page
        return None, None

    def find_attachment(self, number: int) -> tuple[Page, Attachment] | None:
        """Return the attachment with that id and its page, if both exist."""
        for space in self.spaces:
            for page in space.pages.values():
                for file in page.files:
                    if file.id == number and self.find(page.id)[1]:
                        return page, file
        return None

    def contents(
        self, request: ReceivedRequest, space: Space, kind: str, limit: int
    ) -> "ListSlice":
        """Return one page of the contents of a space."""
        if space.crowd:
            listed: Sequence[int] = space.crowd_ids if kind == "page" else ()
        else:
            listed = sorted(
                one.id
                for one in space.pages.values()
                if one.kind == kind and one.status == "current" and not one.hidden
            )
        slice_list = self.slice_list(request, listed, limit, repeats=self.repeats, gaps=self.gaps)
        self._page_passed()
        return slice_list

    def slice_list(
        self,
        request: ReceivedRequest,
        items: Sequence[Any],
        limit: int,
        *,
        repeats: bool = False,
        gaps: bool = False,
    ) -> "ListSlice":
        """Return one page of a list, in the paging of the site."""
        raise NotImplementedError

    def content(self, request: ReceivedRequest, space: Space, page: Page) -> Json:
        """Return a content as v1 does, with the requested parts."""
        expand = request.param("expand").split(",")
        raw: Json = {
            "id": str(page.id),
            "type": page.kind,
            "status": page.status,
            "title": page.title,
            "version": self.version(page),
            "_links": {"webui": f"/display/{space.key}/{page.id}"},
        }
        if "history" in expand:
            raw["history"] = {
                "createdDate": self.time(LONG_AGO),
                "createdBy": self.person(page.by),
            }
        if "body.storage" in expand:
            raw["body"] = {"storage": {"value": page.body, "representation": "storage"}}
        if "space" in expand:
            raw["space"] = self.space(space)
        if "ancestors.restrictions.read.restrictions.user" in expand:
            raw |= self._get_context(page)
        return raw

    def version(self, of: Page | Comment | Attachment) -> Json:
        return {"number": of.number, "when": self.time(of.at), "by": self.person(of.by)}

    def space(self, space: Space) -> Json:
        return {"id": space.id, "key": space.key, "name": f"Space {space.key}", "status": "current"}

    def _get_context(self, page: Page) -> Json:
        ancestors = [
            {"id": str(one.id), "title": one.title, "restrictions": self._get_read_restriction(one)}
            for one in self.list_ancestors(page)
            if one.kind == "page"
        ]
        labels = [{"prefix": "global", "name": one} for one in page.labels]
        return {
            **({"ancestors": ancestors} if page.kind == "page" else {}),
            "restrictions": self._get_read_restriction(page),
            "metadata": {"labels": {"results": labels, "size": len(labels)}},
            "children": {
                "comment": {"results": [{"id": str(one.id)} for one in page.comments]},
                "attachment": {"results": [{"id": f"att{one.id}"} for one in page.files]},
            },
        }

    def list_ancestors(self, page: Page) -> list[Page]:
        """Return the ancestors from the top of the space downwards."""
        found: list[Page] = []
        while page.parent:
            _, parent = self.find(page.parent)
            assert parent, page
            found.insert(0, parent)
            page = parent
        return found

    def _get_read_restriction(self, page: Page) -> Json:
        raw = self._get_restrictions(page, 0, self.max_restrictions)
        return {"read": {"operation": "read", "restrictions": raw}}

    def _get_restrictions(self, page: Page, start: int, limit: int) -> Json:
        people = [self.person(one) for one in page.restriction.people][start : start + limit]
        groups = [self.group(one) for one in page.restriction.groups][start : start + limit]
        return {
            name: {"results": raw, "start": start, "limit": limit, "size": len(raw)}
            for name, raw in (("user", people), ("group", groups))
        }


@dataclass(frozen=True, slots=True)
class ListSlice:
    """One page of a list."""

    items: Sequence[Any]
    next: str | None
    """The cursor or the start of the next page."""


def flatten_comments(comments: Sequence[Comment]) -> Iterator[Comment]:
    for one in comments:
        yield one
        yield from flatten_comments(one.replies)


def invalid_token() -> Reply:
    return reply_json({"message": "Unauthorized", "statusCode": 401}, status=401)


def denied(message: str = "Not permitted") -> Reply:
    return reply_json({"message": message, "statusCode": 403}, status=403)


def not_found() -> Reply:
    return reply_json({"message": "No such thing", "statusCode": 404}, status=404)


def limited(seconds: int) -> Reply:
    text = {"message": "Rate limit exceeded", "statusCode": 429}
    return reply_json(text, status=429, headers={"Retry-After": str(seconds)})


def basic(email: str, token: str) -> str:
    return f"Basic {base64.b64encode(f'{email}:{token}'.encode()).decode()}"


def query(request: ReceivedRequest, **others: str) -> str:
    return urlencode({**request.query, **{name: [one] for name, one in others.items()}}, doseq=True)
