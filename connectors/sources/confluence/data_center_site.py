"""Confluence Data Center: REST v1, with the JSON-RPC API for space permissions before version 9.1."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from connectors.http_client.api_client import (
    AccessDeniedError,
    find_text,
    find_value,
    get_field,
    get_time,
)
from connectors.sources.confluence.client import ConfluenceClient, get_id
from connectors.sources.confluence.models import (
    Attachment,
    Comment,
    Content,
    ContentContext,
    ContentKind,
    Group,
    Principals,
    Space,
    User,
)
from connectors.sources.confluence.pagination import (
    Json,
    PageIterator,
    get_link_base,
    iterate_by_offset,
    require_list,
)
from connectors.sources.confluence.response_parsing import (
    EXPAND_CONTEXT,
    get_version_number,
    parse_attachment,
    parse_comment,
    parse_context,
    parse_group,
    parse_user,
)
from connectors.sources.confluence.site import AttachmentWithParent, ContentPage

_EXPAND_CONTENT = f"space,version,history,body.storage,{EXPAND_CONTEXT}"
_EXPAND_COMMENT = "body.storage,version,history,extensions.inlineProperties"
_V1 = "/rest/api"


class DataCenterSite:
    """Implements `connectors.sources.confluence.site.Site`."""

    def __init__(self, client: ConfluenceClient, mail_domain: str = "") -> None:
        self._client = client
        self._mail_domain = mail_domain

    @property
    def client(self) -> ConfluenceClient:
        return self._client

    @property
    def iterate_search(self) -> PageIterator:
        return iterate_by_offset

    def list_spaces(self) -> Iterator[Space]:
        pages = iterate_by_offset(self._client, f"{_V1}/space", {"status": "current"}, "")
        for page in require_list(pages):
            yield from map(_parse_space, page.results)

    def list_contents(self, space: Space, kind: ContentKind, start: str) -> Iterator[ContentPage]:
        params = {
            "spaceKey": space.key,
            "type": str(kind),
            "status": "current",
            "expand": _EXPAND_CONTENT,
        }
        pages = iterate_by_offset(self._client, f"{_V1}/content", params, start)
        for page in require_list(pages):
            contents = [self._parse_content(one, space, page.link_base) for one in page.results]
            yield ContentPage(contents, page.next)

    def find_content(
        self, content_id: str, kind: ContentKind | None, spaces: Mapping[str, Space]
    ) -> Content | None:
        del kind
        path = f"{_V1}/content/{content_id}"
        raw = self._client.get_object(path, {"expand": _EXPAND_CONTENT})
        if raw is None or raw.get("status") != "current" or raw.get("type") not in {*ContentKind}:
            return None
        space = spaces.get(find_text(raw, "space", "id"))
        link_base = get_link_base(self._client, raw)
        return self._parse_content(raw, space, link_base) if space else None

    def read_contexts(self, contents: Sequence[Content]) -> Iterator[ContentContext]:
        for one in contents:
            if one.context is None:
                raise ValueError(f"{one.id} was read without its context")
            yield one.context

    def list_comments(self, content: Content) -> Iterator[Comment]:
        params = {"depth": "all", "expand": _EXPAND_COMMENT}
        seen: set[str] = set()
        path = f"{_V1}/content/{content.id}/child/comment"
        for page in require_list(iterate_by_offset(self._client, path, params, "")):
            for comment in (parse_comment(raw, page.link_base) for raw in page.results):
                if comment.id not in seen:
                    yield comment
                seen.add(comment.id)

    def list_attachments(self, content: Content) -> Iterator[Attachment]:
        path = f"{_V1}/content/{content.id}/child/attachment"
        pages = iterate_by_offset(self._client, path, {"expand": "version"}, "")
        for page in require_list(pages):
            yield from (parse_attachment(raw, page.link_base) for raw in page.results)

    def find_attachment(self, attachment_id: str) -> AttachmentWithParent | None:
        path = f"{_V1}/content/{attachment_id}"
        raw = self._client.get_object(path, {"expand": "version,container"})
        if raw is None or raw.get("status") != "current":
            return None
        parent = find_value(raw, "container") or {}
        if parent.get("type") not in {*ContentKind}:
            return None
        attachment = parse_attachment(raw, get_link_base(self._client, raw))
        return AttachmentWithParent(attachment, get_id(parent), ContentKind(parent["type"]))

    def read_viewers(self, space: Space) -> Principals:
        path = f"{_V1}/space/{quote(space.key, safe='')}/permissions"
        response = self._client.get(path)
        if response.not_found:
            return self._read_viewers_by_rpc(space)
        return _parse_principals(
            find_value(one, "subject")
            for one in response.json_list()
            if find_value(one, "operation", "operationKey") == "read"
            and find_value(one, "operation", "targetType") == "space"
        )

    def is_public(self, space: Space) -> bool:
        path = f"{_V1}/space/{quote(space.key, safe='')}"
        raw = self._client.get_object_anonymously(path)
        return raw is not None and find_text(raw, "id") == space.id

    def list_groups(self) -> Iterator[Group]:
        for page in require_list(iterate_by_offset(self._client, "/rest/api/group", {}, "")):
            yield from map(parse_group, page.results)

    def list_members(self, group: Group) -> Iterator[User]:
        path = f"{_V1}/group/{quote(group.id, safe='')}/member"
        for page in iterate_by_offset(self._client, path, {}, ""):
            yield from map(parse_user, page.results)

    def read_user(self, user: User) -> User:
        if not user.username or not user.name:
            params = {"key": user.key} if user.key else {"username": user.username}
            raw = self._client.get_object(f"{_V1}/user", params)
            user = parse_user(raw) if raw else user
        if user.email or not user.username:
            return user
        return replace(user, email=self._find_email(user.username))

    def _find_email(self, username: str) -> str:
        # The REST API of servers has no e-mail addresses; the API of the mobile app has them.
        if self._mail_domain:
            return username if "@" in username else f"{username}@{self._mail_domain}"
        path = f"/rest/mobile/1.0/profile/{quote(username, safe='')}"
        return find_text(self._client.get_object(path) or {}, "email")

    def _read_viewers_by_rpc(self, space: Space) -> Principals:
        """Read the viewers of a space before Confluence 9.1."""
        url = f"{self._client.account.api_url}/rpc/json-rpc/confluenceservice-v2"
        call = {
            "jsonrpc": "2.0",
            "method": "getSpacePermissionSets",
            "params": [space.key],
            "id": 1,
        }
        response = self._client.query(url, call)
        sets = None if response.not_found else find_value(response.json_object(), "result")
        if not isinstance(sets, list):
            raise AccessDeniedError(
                f"Confluence does not list who may view the space {space.key}: its version is before"
                " 9.1, and the remote API (Administration, Further configuration) is disabled or"
                " denies access"
            )
        lists = (
            find_value(one, "spacePermissions") or [] for one in sets if _is_view_permission(one)
        )
        return _parse_principals(
            {"username": find_text(one, "userName"), "name": find_text(one, "groupName")}
            for permissions in lists
            for one in permissions
        )

    def _parse_content(self, raw: Json, space: Space, link_base: str) -> Content:
        """Parse a content; raise MalformedResponse if a required field is missing."""
        authors = (find_value(raw, "history", "createdBy"), find_value(raw, "version", "by"))
        return Content(
            id=get_id(raw),
            kind=ContentKind(get_field(raw, "type", str)),
            title=get_field(raw, "title", str),
            space=space,
            parent="",
            link=link_base + find_text(raw, "_links", "webui"),
            body=find_text(raw, "body", "storage", "value"),
            version_number=get_version_number(raw),
            created_at=get_time(raw, "history", "createdDate"),
            updated_at=get_time(raw, "version", "when"),
            authors=tuple(dict.fromkeys(parse_user(one) for one in authors if one)),
            context=parse_context(self._client, raw),
        )


def _parse_space(raw: Json) -> Space:
    return Space(get_id(raw), get_field(raw, "key", str), find_text(raw, "name"))


def _is_view_permission(raw: object) -> bool:
    return isinstance(raw, dict) and raw.get("type") == "VIEWSPACE"


def _parse_principals(subjects: Iterable[Any]) -> Principals:
    """Parse users and groups; others to whom a permission may be granted (anonymous) have no name."""
    users, groups = [], []
    for one in subjects:
        match one:
            case {"userKey": str(key)} if key:
                users.append(User(key=key, username=find_text(one, "username")))
            case {"username": str(name)} if name:
                users.append(User(username=name))
            case {"name": str(name), "type": "user"} if name:
                users.append(User(username=name))
            case {"name": str(name)} if name:
                groups.append(Group(name, name))
            case _:
                pass
    return Principals(users, groups)
