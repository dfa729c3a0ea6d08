"""A fake Confluence Cloud: REST v2, paged by cursor."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

from tests.support.services.confluence import (
    BLOCK,
    EMAIL,
    LONG_AGO,
    TOKEN,
    Attachment,
    Comment,
    ConfluenceService,
    Item,
    Json,
    ListSlice,
    Page,
    Space,
    basic,
    denied,
    flatten_comments,
    not_found,
    query,
)
from tests.support.services.serving import ReceivedRequest, Reply, reply_json

_KINDS = {"pages": "page", "blogposts": "blogpost"}


class CloudService(ConfluenceService):
    """Folders are pages of the kind `folder`."""

    is_cloud = True

    def get_base_path(self) -> str:
        return "/wiki"

    def routes(self) -> Iterator[tuple[str, Callable[..., Reply]]]:
        v2 = "/api/v2"
        yield f"{v2}/spaces", self._list_spaces
        yield rf"{v2}/spaces/(\d+)", self._space
        yield rf"{v2}/spaces/(\d+)/permissions", self._permissions
        yield rf"{v2}/spaces/(\d+)/(pages|blogposts)", self._list_contents
        yield rf"{v2}/(pages|blogposts)/(\d+)", self._get_content
        yield rf"{v2}/pages/(\d+)/ancestors", self._get_ancestors
        yield rf"{v2}/(?:pages|blogposts)/(\d+)/(footer|inline)-comments", self._list_comments
        yield rf"{v2}/(?:footer|inline)-comments/(\d+)/children", self._list_replies
        yield rf"{v2}/(?:pages|blogposts)/(\d+)/attachments", self._list_attachments
        yield rf"{v2}/attachments/att(\d+)", self._get_attachment
        yield r"/rest/api/group/([^/]+)/membersByGroupId", self._list_members
        yield r"/rest/api/group", self._list_groups
        yield from super().routes()

    def is_authorized(self, request: ReceivedRequest) -> bool:
        return request.headers.get("authorization") == basic(EMAIL, TOKEN)

    def person(self, user_name: str) -> Json:
        one = self.people[user_name]
        raw = {"type": "known", "accountId": account(user_name), "accountType": "atlassian"}
        return raw | {"email": one.email, "publicName": one.name, "displayName": one.name}

    def group(self, name: str) -> Json:
        return {"type": "group", "name": name, "id": f"g-{name}"}

    def get_user_name(self, request: ReceivedRequest) -> str:
        return request.param("accountId").removeprefix("557058:")

    def time(self, moment: datetime) -> str:
        return f"{moment:%Y-%m-%dT%H:%M:%S}.000Z"

    def get_next_link(self, request: ReceivedRequest, found: ListSlice) -> Json:
        if found.next is None:
            return {}
        path = request.path.removeprefix(self.get_base_path())
        return {"next": f"{path}?{query(request, cursor=found.next)}"}

    def slice_list(
        self,
        request: ReceivedRequest,
        items: Sequence[Any],
        limit: int,
        *,
        repeats: bool = False,
        gaps: bool = False,
    ) -> ListSlice:
        """Page by cursors that have the last id and the number of pages so far."""
        limit = min(int(request.param("limit", "25")), limit)
        turn, _, last = request.param("cursor", "0/").partition("/")
        after = _find_index(items, int(last)) if last else -1
        if gaps:
            limit = min(limit, BLOCK)
            if int(turn) % 2 == 0:
                return ListSlice([], f"{int(turn) + 1}/{last}")
        shown = items[after + 1 : after + 1 + limit]
        end = f"{int(turn) + 1}/{_key(shown[-1])}" if after + 1 + limit < len(items) else None
        again = items[max(0, after - 4) : after + 1] if repeats else items[:0]
        return ListSlice([*again, *shown], end)

    def _reply_list(self, request: ReceivedRequest, items: Sequence[Item]) -> Reply:
        return self._reply_slice(request, self.slice_list(request, sorted(items, key=_key), 250))

    def _reply_slice(self, request: ReceivedRequest, slice_list: ListSlice) -> Reply:
        link: Json = {}
        headers: dict[str, str] = {}
        if slice_list.next is not None:
            link["next"] = f"{request.path}?{query(request, cursor=slice_list.next)}"
            headers["Link"] = f'<{link["next"]}>; rel="next"'
        results = [make() for _, make in slice_list.items]
        raw = {"results": results, "_links": {"base": self.url(request), **link}}
        return reply_json(raw, headers=headers)

    def _find_space(self, number: str) -> Space | None:
        return next((one for one in self.spaces if one.id == int(number)), None)

    def _list_spaces(self, request: ReceivedRequest) -> Reply:
        assert request.param("status") == "current"
        return self._reply_list(request, [(one.id, _format_space(one)) for one in self.spaces])

    def _space(self, request: ReceivedRequest, number: str) -> Reply:
        del request
        space = self._find_space(number)
        return reply_json(_format_space(space)()) if space else not_found()

    def _permissions(self, request: ReceivedRequest, number: str) -> Reply:
        space = self._find_space(number)
        if space is None:
            return not_found()
        if not space.permissions_visible:
            return denied()
        principals = [("user", account(one)) for one in space.people]
        principals += [("group", f"g-{one}") for one in space.groups]
        raw = [_permission(kind, one, "read", "space") for kind, one in principals]
        raw += [_permission("user", account(one), "create", "page") for one in self.people]
        return self._reply_list(request, [(n, lambda one=one: one) for n, one in enumerate(raw)])  # type: ignore[misc]

    def _list_contents(self, request: ReceivedRequest, number: str, kinds: str) -> Reply:
        space = self._find_space(number)
        if space is None:
            return not_found()
        assert request.param("status") == "current"
        slice_list = self.contents(request, space, _KINDS[kinds], 100)
        items = [(one, self._maker(request, space, one)) for one in slice_list.items]
        return self._reply_slice(request, ListSlice(items, slice_list.next))

    def _maker(self, request: ReceivedRequest, space: Space, number: int) -> Callable[[], Json]:
        page = space.find_page(number)
        assert page
        return lambda: self._format_page(request, space, page)

    def _get_content(self, request: ReceivedRequest, kinds: str, number: str) -> Reply:
        space, page = self.find(int(number))
        if space is None or page is None or page.kind != _KINDS[kinds]:
            return not_found()
        return reply_json(
            self._format_page(request, space, page)
            | {"_links": _get_links(request, self, space, page)}
        )

    def _get_ancestors(self, request: ReceivedRequest, number: str) -> Reply:
        _, page = self.find(int(number))
        if page is None:
            return not_found()
        found = [{"id": str(one.id), "type": one.kind} for one in self.list_ancestors(page)]
        items = [(n, lambda one=one: one) for n, one in enumerate(found)]
        return self._reply_list(request, items)

    def _format_page(self, request: ReceivedRequest, space: Space, page: Page) -> Json:
        _, parent = self.find(page.parent)
        raw: Json = {
            "id": str(page.id),
            "status": page.status,
            "title": page.title,
            "spaceId": str(space.id),
            "parentId": str(page.parent) if page.parent else None,
            "parentType": parent.kind if parent else None,
            "authorId": account(page.by),
            "createdAt": self.time(LONG_AGO),
            "version": self._version(page),
            "_links": {"webui": f"/spaces/{space.key}/pages/{page.id}"},
        }
        if request.param("body-format") == "storage":
            raw["body"] = {"storage": {"value": page.body, "representation": "storage"}}
        return raw

    def _version(self, of: Page | Comment | Attachment) -> Json:
        at, by = self.time(of.at), account(of.by)
        return {"number": of.number, "createdAt": at, "authorId": by}

    def _list_comments(self, request: ReceivedRequest, number: str, kind: str) -> Reply:
        _, page = self.find(int(number))
        if page is None:
            return not_found()
        if page.comments_status != 200:
            return reply_json({"message": "It went wrong"}, status=page.comments_status)
        found = [one for one in page.comments if bool(one.quoted) == (kind == "inline")]
        return self._reply_list(request, [(one.id, self._format_comment(one)) for one in found])

    def _list_replies(self, request: ReceivedRequest, number: str) -> Reply:
        for space in self.spaces:
            for page in space.pages.values():
                for comments in flatten_comments(page.comments):
                    if comments.id == int(number):
                        raw = [(one.id, self._format_comment(one)) for one in comments.replies]
                        return self._reply_list(request, raw)
        return not_found()

    def _format_comment(self, comments: Comment) -> Callable[[], Json]:
        return lambda: {
            "id": str(comments.id),
            "status": "current",
            "version": self._version(comments),
            "body": {"storage": {"value": comments.body, "representation": "storage"}},
            "properties": {"inlineOriginalSelection": comments.quoted} if comments.quoted else {},
            "_links": {"webui": f"/comments/{comments.id}"},
        }

    def _list_attachments(self, request: ReceivedRequest, number: str) -> Reply:
        _, page = self.find(int(number))
        if page is None:
            return not_found()
        if page.files_status != 200:
            return reply_json({"message": "It went wrong"}, status=page.files_status)
        return self._reply_list(
            request, [(one.id, self._format_attachment(page, one)) for one in page.files]
        )

    def _get_attachment(self, request: ReceivedRequest, number: str) -> Reply:
        found = self.find_attachment(int(number))
        if found is None:
            return not_found()
        base = {"_links": {"base": self.url(request)}}
        return reply_json(self._format_attachment(*found)() | base)

    def _format_attachment(self, page: Page, file: Attachment) -> Callable[[], Json]:
        return lambda: {
            "id": f"att{file.id}",
            "status": "current",
            "title": file.title,
            "createdAt": self.time(LONG_AGO),
            f"{'page' if page.kind == 'page' else 'blogPost'}Id": str(page.id),
            "fileSize": len(file.data),
            "webuiLink": f"/pages/viewpageattachments.action?pageId={page.id}",
            "downloadLink": f"/download/attachments/{page.id}/{file.id}?version={file.number}",
            "version": self._version(file),
        }

    def _list_members(self, request: ReceivedRequest, group: str) -> Reply:
        name = group.removeprefix("g-")
        if name in self.hidden_groups:
            return denied()
        if name not in self.groups:
            return not_found()
        return _reply_from_start(request, [self.person(one) for one in self.groups[name]])

    def _list_groups(self, request: ReceivedRequest) -> Reply:
        return _reply_from_start(request, list(map(self.group, self.groups)))


def _reply_from_start(request: ReceivedRequest, listed: Sequence[Json]) -> Reply:
    start, limit = int(request.param("start", "0")), min(int(request.param("limit", "25")), 50)
    more = start + limit < len(listed)
    link: Json = {"next": f"{request.path}?start={start + limit}"} if more else {}
    return reply_json({"results": listed[start : start + limit], "_links": link})


def account(user_name: str) -> str:
    return f"557058:{user_name}"


def _find_index(items: Sequence[Any], last: int) -> int:
    """Return the index of the item with that id, or of the one before its position."""
    if isinstance(items, range):
        return last - items.start
    keys = list(map(_key, items))
    return keys.index(last) if last in keys else sum(one <= last for one in keys) - 1


def _key(item: Any) -> int:
    return item if isinstance(item, int) else int(item[0])


def _format_space(space: Space) -> Callable[[], Json]:
    return lambda: {
        "id": str(space.id),
        "key": space.key,
        "name": f"Space {space.key}",
        "status": "current",
    }


def _permission(kind: str, principals: str, key: str, target: str) -> Json:
    return {
        "id": f"{kind}-{principals}-{key}",
        "principal": {"type": kind, "id": principals},
        "operation": {"key": key, "targetType": target},
    }


def _get_links(request: ReceivedRequest, site: ConfluenceService, space: Space, page: Page) -> Json:
    return {"base": site.url(request), "webui": f"/spaces/{space.key}/pages/{page.id}"}
