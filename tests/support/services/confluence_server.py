"""A fake Confluence Data Center: REST v1, paged by offset, other permissions."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from tests.support.services.confluence import (
    BLOCK,
    TOKEN,
    Attachment,
    Comment,
    ConfluenceService,
    Json,
    ListSlice,
    Page,
    Space,
    denied,
    flatten_comments,
    not_found,
    query,
)
from tests.support.services.serving import ReceivedRequest, Reply, reply_json

_ZONE = timezone(timedelta(hours=1))


class DataCenterService(ConfluenceService):
    def __init__(self, *spaces: Space) -> None:
        super().__init__(*spaces)
        self.is_before_9_1 = False
        """Whether only the JSON-RPC API returns permissions of spaces."""
        self.is_rpc_enabled = True
        self.shows_emails = True
        self.max_page_size = 100

    def get_base_path(self) -> str:
        return "/confluence"

    def routes(self) -> Iterator[tuple[str, Callable[..., Reply]]]:
        yield r"/rest/api/space", self._list_spaces
        yield r"/rest/api/space/([^/]+)", self._space
        yield r"/rest/api/space/([^/]+)/permissions", self._permissions
        yield r"/rpc/json-rpc/confluenceservice-v2", self._call_rpc
        yield r"/rest/api/content", self._list_contents
        yield r"/rest/api/content/(\d+)", self._get_content
        yield r"/rest/api/content/att(\d+)", self._get_attachment
        yield r"/rest/api/content/(\d+)/child/comment", self._list_comments
        yield r"/rest/api/content/(\d+)/child/attachment", self._list_attachments
        yield r"/rest/api/group/([^/]+)/member", self._list_members
        yield r"/rest/api/group", self._list_groups
        yield r"/rest/mobile/1.0/profile/([^/]+)", self._profile
        yield from super().routes()

    def is_authorized(self, request: ReceivedRequest) -> bool:
        return request.headers.get("authorization") == f"Bearer {TOKEN}"

    def person(self, user_name: str) -> Json:
        raw = {"type": "known", "username": user_name, "userKey": f"8a7f-{user_name}"}
        return raw | {"displayName": self.people[user_name].name}

    def group(self, name: str) -> Json:
        return {"type": "group", "name": name}

    def get_user_name(self, request: ReceivedRequest) -> str:
        return request.param("username") or request.param("key").removeprefix("8a7f-")

    def time(self, moment: datetime) -> str:
        return moment.astimezone(_ZONE).isoformat(timespec="milliseconds")

    def get_next_link(self, request: ReceivedRequest, found: ListSlice) -> Json:
        if found.next is None:
            return {}
        path = request.path.removeprefix(self.get_base_path())
        return {"next": f"{path}?{query(request, start=found.next)}"}

    def slice_list(
        self,
        request: ReceivedRequest,
        items: Sequence[Any],
        limit: int,
        *,
        repeats: bool = False,
        gaps: bool = False,
    ) -> ListSlice:
        """Page by offset; items that the account may not view are counted."""
        start = int(request.param("start", "0"))
        limit = min(int(request.param("limit", "25")), limit, self.max_page_size)
        if gaps:
            limit = min(limit, BLOCK)
            items = _with_gaps(items)
        first = max(0, start - 5) if repeats else start
        shown = [one for one in items[first : start + limit] if one is not None]
        return ListSlice(shown, str(start + limit) if start + limit < len(items) else None)

    def _reply_list(self, request: ReceivedRequest, listed: Sequence[Json]) -> Reply:
        slice_list = self.slice_list(request, listed, 200)
        links = {
            "base": self.url(request),
            "context": self.get_base_path(),
            **self.get_next_link(request, slice_list),
        }
        return reply_json(
            {"results": list(slice_list.items), "size": len(slice_list.items), "_links": links}
        )

    def _find_space(self, key: str) -> Space | None:
        return next((one for one in self.spaces if one.key == key), None)

    def _list_spaces(self, request: ReceivedRequest) -> Reply:
        assert request.param("status") == "current"
        return self._reply_list(request, [self.space(one) for one in self.spaces])

    def _space(self, request: ReceivedRequest, key: str) -> Reply:
        del request
        space = self._find_space(key)
        return reply_json(self.space(space)) if space else not_found()

    def _permissions(self, request: ReceivedRequest, key: str) -> Reply:
        del request
        space = self._find_space(key)
        if space is None or self.is_before_9_1:
            return not_found()
        if not space.permissions_visible:
            return denied()
        principals: list[Json] = [
            {"type": "user", "userKey": f"8a7f-{one}"} for one in space.people
        ]
        principals += [{"type": "group", "name": one} for one in space.groups]
        principals += [{"type": "anonymous"}] if space.is_public else []
        raw = [_permission(one, "read", "space") for one in principals]
        raw += [_permission({"type": "group", "name": "makers"}, "create", "page")]
        return reply_json(raw)

    def _call_rpc(self, request: ReceivedRequest) -> Reply:
        call = request.json()
        space = self._find_space(call["params"][0])
        if not self.is_rpc_enabled or space is None:
            return not_found()
        if not space.permissions_visible:
            return reply_json({"jsonrpc": "2.0", "error": {"message": "NotPermitted"}, "id": 1})
        principals = [{"userName": one, "groupName": None} for one in space.people]
        principals += [{"userName": None, "groupName": one} for one in space.groups]
        principals += [{"userName": None, "groupName": None}] if space.is_public else []
        makers = [{"userName": None, "groupName": "makers"}]
        sets = [
            {"type": "VIEWSPACE", "spacePermissions": principals},
            {"type": "EDITSPACE", "spacePermissions": makers},
        ]
        return reply_json({"jsonrpc": "2.0", "result": sets, "id": call["id"]})

    def _list_contents(self, request: ReceivedRequest) -> Reply:
        space = self._find_space(request.param("spaceKey"))
        if space is None:
            return not_found()
        assert request.param("status") == "current"
        slice_list = self.contents(request, space, request.param("type"), 100)
        raw = []
        for number in slice_list.items:
            page = space.find_page(number)
            assert page
            raw.append(self.content(request, space, page))
        links = {"base": self.url(request), **self.get_next_link(request, slice_list)}
        return reply_json({"results": raw, "size": len(raw), "_links": links})

    def _get_content(self, request: ReceivedRequest, number: str) -> Reply:
        space, page = self.find(int(number))
        if space is None or page is None:
            return not_found()
        raw = self.content(request, space, page)
        return reply_json(raw | {"_links": {**raw["_links"], "base": self.url(request)}})

    def _list_comments(self, request: ReceivedRequest, number: str) -> Reply:
        _, page = self.find(int(number))
        if page is None:
            return not_found()
        if page.comments_status != 200:
            return reply_json({"message": "It went wrong"}, status=page.comments_status)
        assert request.param("depth") == "all"
        return self._reply_list(
            request, [self._format_comment(one) for one in flatten_comments(page.comments)]
        )

    def _format_comment(self, comments: Comment) -> Json:
        raw: Json = {
            "id": str(comments.id),
            "type": "comment",
            "version": self.version(comments),
            "history": {
                "createdDate": self.time(comments.at),
                "createdBy": self.person(comments.by),
            },
            "body": {"storage": {"value": comments.body, "representation": "storage"}},
            "_links": {"webui": f"/comments/{comments.id}"},
        }
        if comments.quoted:
            raw["extensions"] = {"inlineProperties": {"originalSelection": comments.quoted}}
        return raw

    def _list_attachments(self, request: ReceivedRequest, number: str) -> Reply:
        _, page = self.find(int(number))
        if page is None:
            return not_found()
        if page.files_status != 200:
            return reply_json({"message": "It went wrong"}, status=page.files_status)
        return self._reply_list(request, [self._format_attachment(page, one) for one in page.files])

    def _get_attachment(self, request: ReceivedRequest, number: str) -> Reply:
        found = self.find_attachment(int(number))
        if found is None:
            return not_found()
        page, _ = found
        raw = self._format_attachment(*found)
        links = {**raw["_links"], "base": self.url(request)}
        container = {"id": str(page.id), "type": page.kind, "title": page.title}
        return reply_json(raw | {"_links": links, "container": container})

    def _format_attachment(self, page: Page, file: Attachment) -> Json:
        return {
            "id": f"att{file.id}",
            "type": "attachment",
            "status": "current",
            "title": file.title,
            "version": self.version(file),
            "extensions": {"fileSize": len(file.data)},
            "_links": {
                "webui": f"/pages/viewpageattachments.action?pageId={page.id}",
                "download": f"/download/attachments/{page.id}/{file.id}?version={file.number}",
            },
        }

    def _list_members(self, request: ReceivedRequest, group: str) -> Reply:
        if group in self.hidden_groups:
            return denied()
        if group not in self.groups:
            return not_found()
        return self._reply_list(request, [self.person(one) for one in self.groups[group]])

    def _list_groups(self, request: ReceivedRequest) -> Reply:
        return self._reply_list(request, list(map(self.group, self.groups)))

    def _profile(self, request: ReceivedRequest, user_name: str) -> Reply:
        del request
        if user_name not in self.people or not self.shows_emails:
            return not_found()
        one = self.people[user_name]
        return reply_json({"userName": user_name, "fullName": one.name, "email": one.email})


def _with_gaps(items: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for begin in range(0, len(items), BLOCK):
        found += [*[None] * BLOCK, *items[begin : begin + BLOCK]]
    return found


def _permission(subject: Json, key: str, target: str) -> Json:
    return {"subject": subject, "operation": {"operationKey": key, "targetType": target}}
