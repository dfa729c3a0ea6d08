"""Parsing of responses that the cloud (v1) and servers have in common: contents, restrictions, users."""

from collections.abc import Iterator, Mapping
from typing import Any

from connectors.http_client.api_client import (
    AccessDeniedError,
    find_text,
    find_value,
    get_field,
    get_time,
)
from connectors.http_client.request import Params
from connectors.http_client.response import MalformedResponse
from connectors.sources.confluence.client import ConfluenceClient, get_id, get_results
from connectors.sources.confluence.models import (
    UNKNOWN_PRINCIPALS,
    Ancestor,
    Attachment,
    Comment,
    ContentContext,
    ContentKind,
    Group,
    Principals,
    User,
)
from connectors.sources.confluence.pagination import Json

_VIEWERS = ("restrictions.read.restrictions.user", "restrictions.read.restrictions.group")
EXPAND_CONTEXT = ",".join(
    (
        *_VIEWERS,
        *(f"ancestors.{one}" for one in _VIEWERS),
        *("metadata.labels", "children.comment", "children.attachment"),
    )
)
"""The parts of a content that `parse_context` reads."""
_EXPAND_RESTRICTIONS = "restrictions.user,restrictions.group"
_RESTRICTIONS_LIMIT = 200


def parse_context(client: ConfluenceClient, raw: Json) -> ContentContext:
    """Parse the context of a content, with more requests if lists of viewers are not complete.

    Raises:
        SourceAuthError, TemporarilyUnavailableError, ResponseError: see `ApiClient`.
    """
    return ContentContext(
        ancestors=[_parse_ancestor(client, one) for one in _get_ancestors(raw)],
        viewers=_parse_viewers(client, raw),
        labels=tuple(_iterate_labels(raw)),
        has_comments=_may_have(raw, "comment"),
        has_attachments=_may_have(raw, "attachment"),
    )


def read_viewers(client: ConfluenceClient, content_id: str) -> Principals:
    """Request all to whom a content is restricted; none if it is not restricted.

    It is `UNKNOWN_PRINCIPALS` if the token may not see the restriction.

    Raises:
        SourceAuthError, TemporarilyUnavailableError, ResponseError: see `ApiClient`.
    """
    users: list[User] = []
    groups: list[Group] = []
    path, start = f"/rest/api/content/{content_id}/restriction/byOperation/read", 0
    while True:
        params: Params = {
            "expand": _EXPAND_RESTRICTIONS,
            "limit": _RESTRICTIONS_LIMIT,
            "start": start,
        }
        raw = _get_unless_denied(client, path, params)
        if raw is None:
            return UNKNOWN_PRINCIPALS
        restrictions = get_field(raw, "restrictions", dict)
        page = [get_results(get_field(restrictions, name, dict)) for name in ("user", "group")]
        users += map(parse_user, page[0])
        groups += map(parse_group, page[1])
        length = max(map(len, page))
        if length == 0 or _is_complete(restrictions):
            return Principals(users, groups)
        start += length


def parse_user(raw: Mapping[str, Any]) -> User:
    return User(
        key=find_text(raw, "accountId") or find_text(raw, "userKey"),
        username=find_text(raw, "username"),
        name=find_text(raw, "displayName") or find_text(raw, "publicName"),
        email=find_text(raw, "email"),
    )


def parse_group(raw: Mapping[str, Any]) -> Group:
    """Parse a group; raise MalformedResponse if it has neither id nor name."""
    name = find_text(raw, "name")
    group_id = find_text(raw, "id") or name
    if not group_id:
        raise MalformedResponse("the response has a group without a name")
    return Group(group_id, name)


def parse_comment(raw: Json, link_base: str) -> Comment:
    """Parse a comment; raise MalformedResponse if a required field is missing."""
    author = find_value(raw, "history", "createdBy") or find_value(raw, "version", "by") or {}
    return Comment(
        id=get_id(raw),
        version_number=get_version_number(raw),
        created_at=get_time(raw, "history", "createdDate"),
        author=parse_user(author),
        body=get_body(raw),
        quoted=find_text(raw, "extensions", "inlineProperties", "originalSelection"),
        link=link_base + find_text(raw, "_links", "webui"),
    )


def parse_attachment(raw: Json, link_base: str) -> Attachment:
    """Parse an attachment; raise MalformedResponse if a required field is missing."""
    size = find_value(raw, "extensions", "fileSize")
    return Attachment(
        id=get_id(raw),
        title=get_field(raw, "title", str),
        size=size if isinstance(size, int) else None,
        version_number=get_version_number(raw),
        updated_at=get_time(raw, "version", "when"),
        created_at=None,
        author=parse_user(find_value(raw, "version", "by") or {}),
        link=link_base + find_text(raw, "_links", "webui"),
        path=find_text(raw, "_links", "download"),
    )


def get_version_number(raw: Json) -> int:
    """Return the number of the version; raise MalformedResponse if there is none."""
    return get_field(get_field(raw, "version", dict), "number", int)


def get_body(raw: Json) -> str:
    """Return the body in the storage format; raise MalformedResponse if there is none."""
    return get_field(get_field(get_field(raw, "body", dict), "storage", dict), "value", str)


def _get_unless_denied(client: ConfluenceClient, path: str, params: Params) -> Json | None:
    try:
        return client.get_object(path, params)
    except AccessDeniedError:
        return None


def _get_ancestors(raw: Json) -> list[object]:
    # Blog posts have no ancestors, and some versions leave out the empty list.
    is_post = raw.get("type") == ContentKind.BLOG_POST
    return [] if is_post else get_field(raw, "ancestors", list)


def _parse_ancestor(client: ConfluenceClient, raw: object) -> Ancestor:
    if not isinstance(raw, dict):
        raise MalformedResponse("the response has an ancestor that is not an object")
    return Ancestor(get_id(raw), find_text(raw, "title"), _parse_viewers(client, raw))


def _parse_viewers(client: ConfluenceClient, raw: Json) -> Principals:
    restrictions = find_value(raw, "restrictions", "read", "restrictions")
    if not isinstance(restrictions, dict) or not _is_complete(restrictions):
        return read_viewers(client, get_id(raw))
    users, groups = (get_results(get_field(restrictions, name, dict)) for name in ("user", "group"))
    return Principals(list(map(parse_user, users)), list(map(parse_group, groups)))


def _is_complete(restrictions: Json) -> bool:
    """Return whether both lists are present and neither is as long as its limit."""
    return all(
        isinstance(results := find_value(restrictions, name, "results"), list)
        and isinstance(limit := find_value(restrictions, name, "limit"), int)
        and len(results) < limit
        for name in ("user", "group")
    )


def _iterate_labels(raw: Json) -> Iterator[str]:
    found = find_value(raw, "metadata", "labels", "results")
    for one in found if isinstance(found, list) else ():
        if name := find_text(one if isinstance(one, dict) else {}, "name"):
            yield name


def _may_have(raw: Json, child: str) -> bool:
    return bool(find_value(raw, "children", child, "results") != [])
