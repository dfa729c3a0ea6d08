"""Confluence Cloud: REST v2, and v1 for what v2 does not tell (restrictions, groups, search)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from urllib.parse import quote

from connectors.sources.confluence.client import Api, field_of, id_of, text_of, time_of
from connectors.sources.confluence.models import (
    UNTOLD,
    Ancestor,
    Around,
    Attachment,
    Comment,
    Content,
    ContentKind,
    Group,
    Somebody,
    Space,
    Subjects,
)
from connectors.sources.confluence.pagination import (
    Json,
    Listing,
    base_of,
    by_count,
    by_cursor,
    present,
)
from connectors.sources.confluence.response_parsing import AROUND, around, somebody, viewers_of
from connectors.sources.confluence.site import Hung, Sheaf

_V2 = "/api/v2"
_PATHS: Mapping[ContentKind, str] = {ContentKind.PAGE: "pages", ContentKind.BLOG_POST: "blogposts"}
_MOST_ABOVE = 1000
"""Restrictions of what stands above pages that are kept in mind."""
_STORED = {"body-format": "storage"}


class CloudWiki:
    """Implements `connectors.sources.confluence.site.Wiki`."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._above: dict[str, Subjects] = {}

    @property
    def api(self) -> Api:
        return self._api

    @property
    def searching(self) -> Listing:
        return by_cursor

    def spaces(self) -> Iterator[Space]:
        for leaf in present(by_cursor(self._api, f"{_V2}/spaces", {"status": "current"}, "")):
            for raw in leaf.results:
                yield Space(id_of(raw), field_of(raw, "key", str), text_of(raw, "name"))

    def contents(self, space: Space, kind: ContentKind, start: str) -> Iterator[Sheaf]:
        path = f"{_V2}/spaces/{space.id}/{_PATHS[kind]}"
        asked = {"status": "current", **_STORED}
        for leaf in present(by_cursor(self._api, path, asked, start)):
            found = [_content(one, space, kind, leaf.base) for one in leaf.results]
            yield Sheaf(found, leaf.next)

    def content(
        self, content_id: str, kind: ContentKind | None, spaces: Mapping[str, Space]
    ) -> Content | None:
        for one in [kind] if kind else ContentKind:
            raw = self._api.found(f"{_V2}/{_PATHS[one]}/{content_id}", _STORED)
            if raw is not None:
                space = spaces.get(text_of(raw, "spaceId"))
                if space is None or raw.get("status") != "current":
                    return None
                return _content(raw, space, one, base_of(self._api, raw))
        return None

    def surroundings(self, contents: Sequence[Content]) -> Iterator[Around]:
        """Asked for all at once. Of one that the search does not know yet each part is asked for."""
        told: dict[str, Around] = {}
        ids = ",".join(one.id for one in contents)
        asked = {"cql": f"id in ({ids})", "expand": AROUND}
        if contents:
            for leaf in by_cursor(self._api, "/rest/api/content/search", asked, ""):
                told |= {id_of(raw): around(self._api, raw) for raw in leaf.results}
        for one in contents:
            found = told.get(one.id)
            if found is None or one.parent not in {"", *(each.id for each in found.ancestors)}:
                found = self._pieced(one, found)
            yield found

    def comments(self, content: Content) -> Iterator[Comment]:
        path = f"/{_PATHS[content.kind]}/{content.id}"
        for kind in ("footer-comments", "inline-comments"):
            yield from self._comments(kind, [f"{path}/{kind}"])

    def attachments(self, content: Content) -> Iterator[Attachment]:
        path = f"/{_PATHS[content.kind]}/{content.id}/attachments"
        for leaf in present(by_cursor(self._api, f"{_V2}{path}", {"status": "current"}, "")):
            yield from (_attachment(raw, leaf.base) for raw in leaf.results)

    def attachment(self, attachment_id: str) -> Hung | None:
        raw = self._api.found(f"{_V2}/attachments/{attachment_id}")
        if raw is None or raw.get("status") != "current":
            return None
        found = _attachment(raw, base_of(self._api, raw))
        for name, kind in (("pageId", ContentKind.PAGE), ("blogPostId", ContentKind.BLOG_POST)):
            if told := text_of(raw, name):
                return Hung(found, told, kind)
        return None

    def viewers(self, space: Space) -> Subjects:
        people, groups = [], []
        for raw, _ in self._all(f"/spaces/{space.id}/permissions", {}):
            match raw:
                case {"operation": {"key": "read", "targetType": "space"}, "principal": dict(whom)}:
                    kind, told = text_of(whom, "type").lower(), text_of(whom, "id")
                    people += [Somebody(key=told)] if kind == "user" else []
                    groups += [Group(told, "")] if kind == "group" else []
                case _:
                    pass
        return Subjects(people, groups)

    def is_open(self, space: Space) -> bool:
        raw = self._api.unknown(f"{_V2}/spaces/{space.id}")
        return raw is not None and text_of(raw, "id") == space.id

    def members(self, group: Group) -> Iterator[Somebody]:
        path = f"/rest/api/group/{quote(group.id, safe='')}/membersByGroupId"
        for leaf in by_count(self._api, path, {}, ""):
            yield from map(somebody, leaf.results)

    def described(self, one: Somebody) -> Somebody:
        raw = self._api.found("/rest/api/user", {"accountId": one.key})
        return somebody(raw) if raw else one

    def _all(self, path: str, params: Mapping[str, str | int]) -> Iterator[tuple[Json, str]]:
        for leaf in by_cursor(self._api, f"{_V2}{path}", params, ""):
            yield from ((one, leaf.base) for one in leaf.results)

    def _comments(self, kind: str, lists: list[str]) -> Iterator[Comment]:
        """Those of the lists and all answers to them, however deep these go."""
        seen: set[str] = set()
        while lists:
            path = f"{_V2}{lists.pop()}"
            for leaf in present(by_cursor(self._api, path, _STORED, "")):
                found = [_comment(raw, leaf.base) for raw in leaf.results]
                yield from (fresh := [one for one in found if one.id not in seen])
                seen |= {one.id for one in fresh}
                lists += [f"/{kind}/{one.id}/children" for one in fresh]

    def _pieced(self, content: Content, told: Around | None) -> Around:
        """With all that stands above it, folders too, each asked for whom it is restricted to."""
        known = {one.id: one for one in told.ancestors} if told else {}
        above: list[Ancestor] = []
        if content.kind is ContentKind.PAGE:
            for raw, _ in self._all(f"/pages/{content.id}/ancestors", {}):
                each = id_of(raw)
                above.append(known.get(each) or Ancestor(each, "", self._viewers_of(each)))
        if content.parent and content.parent not in {one.id for one in above}:
            above.append(Ancestor(content.parent, "", UNTOLD))
        if told is None:
            return Around(ancestors=above, viewers=viewers_of(self._api, content.id))
        return replace(told, ancestors=above)

    def _viewers_of(self, content_id: str) -> Subjects:
        """What many pages stand below is asked for once."""
        if content_id not in self._above:
            if len(self._above) >= _MOST_ABOVE:
                self._above.clear()
            self._above[content_id] = viewers_of(self._api, content_id)
        return self._above[content_id]


def _content(raw: Json, space: Space, kind: ContentKind, base: str) -> Content:
    """Raises Malformed."""
    makers = (text_of(raw, "authorId"), text_of(raw, "version", "authorId"))
    return Content(
        id=id_of(raw),
        kind=kind,
        title=field_of(raw, "title", str),
        space=space,
        parent=text_of(raw, "parentId"),
        link=base + text_of(raw, "_links", "webui"),
        body=text_of(raw, "body", "storage", "value"),
        number=field_of(field_of(raw, "version", dict), "number", int),
        created_at=time_of(raw, "createdAt"),
        updated_at=time_of(raw, "version", "createdAt"),
        authors=tuple(Somebody(key=one) for one in dict.fromkeys(filter(None, makers))),
    )


def _comment(raw: Json, base: str) -> Comment:
    """Raises Malformed."""
    return Comment(
        id=id_of(raw),
        number=field_of(field_of(raw, "version", dict), "number", int),
        at=time_of(raw, "version", "createdAt"),
        by=Somebody(key=text_of(raw, "version", "authorId")),
        body=field_of(field_of(field_of(raw, "body", dict), "storage", dict), "value", str),
        quoted=text_of(raw, "properties", "inlineOriginalSelection"),
        link=base + text_of(raw, "_links", "webui"),
    )


def _attachment(raw: Json, base: str) -> Attachment:
    """Raises Malformed."""
    size = raw.get("fileSize")
    return Attachment(
        id=id_of(raw),
        title=field_of(raw, "title", str),
        size=size if isinstance(size, int) else None,
        number=field_of(field_of(raw, "version", dict), "number", int),
        updated_at=time_of(raw, "version", "createdAt"),
        created_at=time_of(raw, "createdAt") if "createdAt" in raw else None,
        by=Somebody(key=text_of(raw, "version", "authorId")),
        link=base + (text_of(raw, "webuiLink") or text_of(raw, "_links", "webui")),
        path=text_of(raw, "downloadLink") or text_of(raw, "_links", "download"),
    )
