"""Confluence Data Center: REST v1, with the older remote API for space permissions before version 9.1."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from connectors.sources.confluence.client import (
    Api,
    Refused,
    field_of,
    id_of,
    inside,
    text_of,
    time_of,
)
from connectors.sources.confluence.models import (
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
from connectors.sources.confluence.pagination import Json, Listing, base_of, by_count, present
from connectors.sources.confluence.response_parsing import (
    AROUND,
    around,
    attachment,
    comment,
    somebody,
)
from connectors.sources.confluence.site import Hung, Sheaf

_WHOLE = f"space,version,history,body.storage,{AROUND}"
_SAID = "body.storage,version,history,extensions.inlineProperties"
_V1 = "/rest/api"


class DataCenterWiki:
    """Implements `connectors.sources.confluence.site.Wiki`."""

    def __init__(self, api: Api, mail_domain: str = "") -> None:
        self._api = api
        self._mail_domain = mail_domain

    @property
    def api(self) -> Api:
        return self._api

    @property
    def searching(self) -> Listing:
        return by_count

    def spaces(self) -> Iterator[Space]:
        for leaf in present(by_count(self._api, f"{_V1}/space", {"status": "current"}, "")):
            yield from map(_space, leaf.results)

    def contents(self, space: Space, kind: ContentKind, start: str) -> Iterator[Sheaf]:
        asked = {"spaceKey": space.key, "type": str(kind), "status": "current", "expand": _WHOLE}
        for leaf in present(by_count(self._api, f"{_V1}/content", asked, start)):
            found = [self._content(one, space, leaf.base) for one in leaf.results]
            yield Sheaf(found, leaf.next)

    def content(
        self, content_id: str, kind: ContentKind | None, spaces: Mapping[str, Space]
    ) -> Content | None:
        del kind
        raw = self._api.found(f"{_V1}/content/{content_id}", {"expand": _WHOLE})
        if raw is None or raw.get("status") != "current" or raw.get("type") not in {*ContentKind}:
            return None
        space = spaces.get(text_of(raw, "space", "id"))
        return self._content(raw, space, base_of(self._api, raw)) if space else None

    def surroundings(self, contents: Sequence[Content]) -> Iterator[Around]:
        for one in contents:
            if one.around is None:
                raise ValueError(f"{one.id} was read without what is around it")
            yield one.around

    def comments(self, content: Content) -> Iterator[Comment]:
        asked = {"depth": "all", "expand": _SAID}
        seen: set[str] = set()
        path = f"{_V1}/content/{content.id}/child/comment"
        for leaf in present(by_count(self._api, path, asked, "")):
            for found in (comment(raw, leaf.base) for raw in leaf.results):
                if found.id not in seen:
                    yield found
                seen.add(found.id)

    def attachments(self, content: Content) -> Iterator[Attachment]:
        path = f"{_V1}/content/{content.id}/child/attachment"
        for leaf in present(by_count(self._api, path, {"expand": "version"}, "")):
            yield from (attachment(raw, leaf.base) for raw in leaf.results)

    def attachment(self, attachment_id: str) -> Hung | None:
        asked = {"expand": "version,container"}
        raw = self._api.found(f"{_V1}/content/{attachment_id}", asked)
        if raw is None or raw.get("status") != "current":
            return None
        place = inside(raw, "container") or {}
        if place.get("type") not in {*ContentKind}:
            return None
        found = attachment(raw, base_of(self._api, raw))
        return Hung(found, id_of(place), ContentKind(place["type"]))

    def viewers(self, space: Space) -> Subjects:
        answer = self._api.get(f"{_V1}/space/{quote(space.key, safe='')}/permissions")
        if answer.gone:
            return self._viewers_before(space)
        return _subjects(
            inside(one, "subject")
            for one in answer.json_list()
            if inside(one, "operation", "operationKey") == "read"
            and inside(one, "operation", "targetType") == "space"
        )

    def is_open(self, space: Space) -> bool:
        raw = self._api.unknown(f"{_V1}/space/{quote(space.key, safe='')}")
        return raw is not None and text_of(raw, "id") == space.id

    def members(self, group: Group) -> Iterator[Somebody]:
        path = f"/group/{quote(group.id, safe='')}/member"
        for leaf in by_count(self._api, f"{_V1}{path}", {}, ""):
            yield from map(somebody, leaf.results)

    def described(self, one: Somebody) -> Somebody:
        if not one.username or not one.name:
            asked = {"key": one.key} if one.key else {"username": one.username}
            raw = self._api.found(f"{_V1}/user", asked)
            one = somebody(raw) if raw else one
        if one.email or not one.username:
            return one
        return replace(one, email=self._address(one.username))

    def _address(self, username: str) -> str:
        """The REST API of servers tells none; what mobile devices are shown does."""
        if self._mail_domain:
            return username if "@" in username else f"{username}@{self._mail_domain}"
        raw = self._api.found(f"/rest/mobile/1.0/profile/{quote(username, safe='')}")
        return text_of(raw or {}, "email")

    def _viewers_before(self, space: Space) -> Subjects:
        """Before Confluence 9.1."""
        question = {"jsonrpc": "2.0", "method": "getSpacePermissionSets", "params": [space.key]}
        answer = self._api.ask("/rpc/json-rpc/confluenceservice-v2", {**question, "id": 1})
        sets = None if answer.gone else inside(answer.json_object(), "result")
        if not isinstance(sets, list):
            raise Refused(
                f"Confluence does not tell who may view the space {space.key}: its version is before"
                " 9.1, and the remote API (Administration, Further configuration) is off or refuses"
            )
        listed = (inside(one, "spacePermissions") or [] for one in sets if _is_view(one))
        return _subjects(
            {"username": text_of(one, "userName"), "name": text_of(one, "groupName")}
            for several in listed
            for one in several
        )

    def _content(self, raw: Json, space: Space, base: str) -> Content:
        """Raises Malformed."""
        makers = (inside(raw, "history", "createdBy"), inside(raw, "version", "by"))
        return Content(
            id=id_of(raw),
            kind=ContentKind(field_of(raw, "type", str)),
            title=field_of(raw, "title", str),
            space=space,
            parent="",
            link=base + text_of(raw, "_links", "webui"),
            body=text_of(raw, "body", "storage", "value"),
            number=field_of(field_of(raw, "version", dict), "number", int),
            created_at=time_of(raw, "history", "createdDate"),
            updated_at=time_of(raw, "version", "when"),
            authors=tuple(dict.fromkeys(somebody(one) for one in makers if one)),
            around=around(self._api, raw),
        )


def _space(raw: Json) -> Space:
    return Space(id_of(raw), field_of(raw, "key", str), text_of(raw, "name"))


def _is_view(raw: object) -> bool:
    return isinstance(raw, dict) and raw.get("type") == "VIEWSPACE"


def _subjects(listed: Any) -> Subjects:
    """Of whatever else a permission may be given to (anonymous visitors) there is nobody to name."""
    people, groups = [], []
    for one in listed:
        match one:
            case {"userKey": str(key)} if key:
                people.append(Somebody(key=key, username=text_of(one, "username")))
            case {"username": str(name)} if name:
                people.append(Somebody(username=name))
            case {"name": str(name), "type": "user"} if name:
                people.append(Somebody(username=name))
            case {"name": str(name)} if name:
                groups.append(Group(name, name))
            case _:
                pass
    return Subjects(people, groups)
