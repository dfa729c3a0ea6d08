"""Answers that the cloud (v1) and servers give alike: contents, restrictions, people."""

from collections.abc import Iterator, Mapping
from typing import Any

from connectors.http_client.request import Params
from connectors.http_client.response import Malformed
from connectors.sources.confluence.client import (
    Api,
    Refused,
    field_of,
    id_of,
    inside,
    results_of,
    text_of,
    time_of,
)
from connectors.sources.confluence.models import (
    UNTOLD,
    Ancestor,
    Around,
    Attachment,
    Comment,
    ContentKind,
    Group,
    Somebody,
    Subjects,
)
from connectors.sources.confluence.pagination import Json

_VIEWERS = ("restrictions.read.restrictions.user", "restrictions.read.restrictions.group")
AROUND = ",".join(
    (
        *_VIEWERS,
        *(f"ancestors.{one}" for one in _VIEWERS),
        *("metadata.labels", "children.comment", "children.attachment"),
    )
)
"""The parts of a content that `around` reads."""
_LISTED = "restrictions.user,restrictions.group"
_MOST_VIEWERS = 200


def around(api: Api, raw: Json) -> Around:
    """
    Raises:
        ActionRequiredError, TemporarilyUnavailableError, BadAnswer: see `Api.get`.
    """
    return Around(
        ancestors=[_ancestor(api, one) for one in _above(raw)],
        viewers=_viewers(api, raw),
        labels=tuple(_labels(raw)),
        has_comments=_may_have(raw, "comment"),
        has_attachments=_may_have(raw, "attachment"),
    )


def viewers_of(api: Api, content_id: str) -> Subjects:
    """Those a content is restricted to, whom the list of contents tells only in part; none where it is
    not restricted, `UNTOLD` where the token may not see it.

    Raises:
        ActionRequiredError, TemporarilyUnavailableError, BadAnswer: see `Api.get`.
    """
    people: list[Somebody] = []
    groups: list[Group] = []
    path, start = f"/rest/api/content/{content_id}/restriction/byOperation/read", 0
    while True:
        asked: dict[str, str | int] = {"expand": _LISTED, "limit": _MOST_VIEWERS, "start": start}
        raw = _unless_refused(api, path, asked)
        if raw is None:
            return UNTOLD
        listed = field_of(raw, "restrictions", dict)
        more = [results_of(field_of(listed, name, dict)) for name in ("user", "group")]
        people += map(somebody, more[0])
        groups += map(group, more[1])
        if max(map(len, more)) == 0 or _is_whole(listed):
            return Subjects(people, groups)
        start += max(map(len, more))


def _unless_refused(api: Api, path: str, params: Params) -> Json | None:
    try:
        return api.found(path, params)
    except Refused:
        return None


def somebody(raw: Mapping[str, Any]) -> Somebody:
    return Somebody(
        key=text_of(raw, "accountId") or text_of(raw, "userKey"),
        username=text_of(raw, "username"),
        name=text_of(raw, "displayName") or text_of(raw, "publicName"),
        email=text_of(raw, "email"),
    )


def group(raw: Mapping[str, Any]) -> Group:
    """Raises Malformed."""
    name = text_of(raw, "name")
    told = text_of(raw, "id") or name
    if not told:
        raise Malformed("Confluence answers a group without a name")
    return Group(told, name)


def comment(raw: Json, base: str) -> Comment:
    """Raises Malformed."""
    return Comment(
        id=id_of(raw),
        number=field_of(field_of(raw, "version", dict), "number", int),
        at=time_of(raw, "history", "createdDate"),
        by=somebody(inside(raw, "history", "createdBy") or inside(raw, "version", "by") or {}),
        body=field_of(field_of(field_of(raw, "body", dict), "storage", dict), "value", str),
        quoted=text_of(raw, "extensions", "inlineProperties", "originalSelection"),
        link=base + text_of(raw, "_links", "webui"),
    )


def attachment(raw: Json, base: str) -> Attachment:
    """Raises Malformed."""
    size = inside(raw, "extensions", "fileSize")
    return Attachment(
        id=id_of(raw),
        title=field_of(raw, "title", str),
        size=size if isinstance(size, int) else None,
        number=field_of(field_of(raw, "version", dict), "number", int),
        updated_at=time_of(raw, "version", "when"),
        created_at=None,
        by=somebody(inside(raw, "version", "by") or {}),
        link=base + text_of(raw, "_links", "webui"),
        path=text_of(raw, "_links", "download"),
    )


def _above(raw: Json) -> list[object]:
    """Blog posts stand below nothing, and some versions do not even say so."""
    is_post = raw.get("type") == ContentKind.BLOG_POST
    return [] if is_post else field_of(raw, "ancestors", list)


def _ancestor(api: Api, raw: object) -> Ancestor:
    if not isinstance(raw, dict):
        raise Malformed("Confluence answers an ancestor that is no object")
    return Ancestor(id_of(raw), text_of(raw, "title"), _viewers(api, raw))


def _viewers(api: Api, raw: Json) -> Subjects:
    listed = inside(raw, "restrictions", "read", "restrictions")
    if not isinstance(listed, dict) or not _is_whole(listed):
        return viewers_of(api, id_of(raw))
    people, groups = (results_of(field_of(listed, name, dict)) for name in ("user", "group"))
    return Subjects(list(map(somebody, people)), list(map(group, groups)))


def _is_whole(listed: Json) -> bool:
    """Whether both lists are there and neither is as long as it may be."""
    return all(
        isinstance(results := inside(listed, name, "results"), list)
        and isinstance(limit := inside(listed, name, "limit"), int)
        and len(results) < limit
        for name in ("user", "group")
    )


def _labels(raw: Json) -> Iterator[str]:
    found = inside(raw, "metadata", "labels", "results")
    for one in found if isinstance(found, list) else ():
        if name := text_of(one if isinstance(one, dict) else {}, "name"):
            yield name


def _may_have(raw: Json, what: str) -> bool:
    return bool(inside(raw, "children", what, "results") != [])
