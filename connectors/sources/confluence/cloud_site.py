"""Confluence Cloud: REST v2, and v1 for what v2 lacks (restrictions, groups, search)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from urllib.parse import quote

from connectors.http_client.api_client import find_text, get_field, get_time
from connectors.sources.confluence.client import ConfluenceClient, get_id
from connectors.sources.confluence.models import (
    UNKNOWN_PRINCIPALS,
    Ancestor,
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
    iterate_by_cursor,
    iterate_by_offset,
    require_list,
)
from connectors.sources.confluence.response_parsing import (
    EXPAND_CONTEXT,
    get_body,
    get_version_number,
    parse_context,
    parse_group,
    parse_user,
    read_viewers,
)
from connectors.sources.confluence.site import AttachmentWithParent, ContentPage

_V2 = "/api/v2"
_PATHS: Mapping[ContentKind, str] = {ContentKind.PAGE: "pages", ContentKind.BLOG_POST: "blogposts"}
_PARENT_FIELDS = (("pageId", ContentKind.PAGE), ("blogPostId", ContentKind.BLOG_POST))
_MAX_CACHED = 1000
"""Ancestors whose restrictions are cached."""
_WITH_BODY = {"body-format": "storage"}


class CloudSite:
    """Implements `connectors.sources.confluence.site.Site`."""

    def __init__(self, client: ConfluenceClient) -> None:
        self._client = client
        self._ancestor_viewers: dict[str, Principals] = {}

    @property
    def client(self) -> ConfluenceClient:
        return self._client

    @property
    def iterate_search(self) -> PageIterator:
        return iterate_by_cursor

    def list_spaces(self) -> Iterator[Space]:
        pages = iterate_by_cursor(self._client, f"{_V2}/spaces", {"status": "current"}, "")
        for page in require_list(pages):
            for raw in page.results:
                yield Space(get_id(raw), get_field(raw, "key", str), find_text(raw, "name"))

    def list_contents(self, space: Space, kind: ContentKind, start: str) -> Iterator[ContentPage]:
        path = f"{_V2}/spaces/{space.id}/{_PATHS[kind]}"
        params = {"status": "current", **_WITH_BODY}
        for page in require_list(iterate_by_cursor(self._client, path, params, start)):
            found = [_parse_content(one, space, kind, page.link_base) for one in page.results]
            yield ContentPage(found, page.next)

    def find_content(
        self, content_id: str, kind: ContentKind | None, spaces: Mapping[str, Space]
    ) -> Content | None:
        for one in [kind] if kind else ContentKind:
            raw = self._client.get_object(f"{_V2}/{_PATHS[one]}/{content_id}", _WITH_BODY)
            if raw is not None:
                space = spaces.get(find_text(raw, "spaceId"))
                if space is None or raw.get("status") != "current":
                    return None
                return _parse_content(raw, space, one, get_link_base(self._client, raw))
        return None

    def read_contexts(self, contents: Sequence[Content]) -> Iterator[ContentContext]:
        """Request all contexts with one search, and those that it does not find one by one.

        The search does not know a content that is new or was moved just now.
        """
        found: dict[str, ContentContext] = {}
        ids = ",".join(one.id for one in contents)
        params = {"cql": f"id in ({ids})", "expand": EXPAND_CONTEXT}
        if contents:
            search = iterate_by_cursor(self._client, "/rest/api/content/search", params, "")
            for page in search:
                found |= {get_id(raw): parse_context(self._client, raw) for raw in page.results}
        for content in contents:
            context = found.get(content.id)
            if context is None or not _has_parent(content, context):
                context = self._read_context(content, context)
            yield context

    def list_comments(self, content: Content) -> Iterator[Comment]:
        path = f"/{_PATHS[content.kind]}/{content.id}"
        for kind in ("footer-comments", "inline-comments"):
            yield from self._list_comment_tree(kind, f"{path}/{kind}")

    def list_attachments(self, content: Content) -> Iterator[Attachment]:
        path = f"{_V2}/{_PATHS[content.kind]}/{content.id}/attachments"
        pages = iterate_by_cursor(self._client, path, {"status": "current"}, "")
        for page in require_list(pages):
            yield from (_parse_attachment(raw, page.link_base) for raw in page.results)

    def find_attachment(self, attachment_id: str) -> AttachmentWithParent | None:
        raw = self._client.get_object(f"{_V2}/attachments/{attachment_id}")
        if raw is None or raw.get("status") != "current":
            return None
        attachment = _parse_attachment(raw, get_link_base(self._client, raw))
        for name, kind in _PARENT_FIELDS:
            if parent := find_text(raw, name):
                return AttachmentWithParent(attachment, parent, kind)
        return None

    def read_viewers(self, space: Space) -> Principals:
        users, groups = [], []
        for raw in self._list_all(f"/spaces/{space.id}/permissions"):
            match raw:
                case {"operation": {"key": "read", "targetType": "space"}, "principal": dict(one)}:
                    kind, principal_id = find_text(one, "type").lower(), find_text(one, "id")
                    users += [User(key=principal_id)] if kind == "user" else []
                    groups += [Group(principal_id, "")] if kind == "group" else []
                case _:
                    pass
        return Principals(users, groups)

    def is_public(self, space: Space) -> bool:
        raw = self._client.get_object_anonymously(f"{_V2}/spaces/{space.id}")
        return raw is not None and find_text(raw, "id") == space.id

    def list_groups(self) -> Iterator[Group]:
        for page in require_list(iterate_by_offset(self._client, "/rest/api/group", {}, "")):
            yield from map(parse_group, page.results)

    def list_members(self, group: Group) -> Iterator[User]:
        path = f"/rest/api/group/{quote(group.id, safe='')}/membersByGroupId"
        for page in iterate_by_offset(self._client, path, {}, ""):
            yield from map(parse_user, page.results)

    def read_user(self, user: User) -> User:
        raw = self._client.get_object("/rest/api/user", {"accountId": user.key})
        return parse_user(raw) if raw else user

    def _list_all(self, path: str) -> Iterator[Json]:
        for page in iterate_by_cursor(self._client, f"{_V2}{path}", {}, ""):
            yield from page.results

    def _list_comment_tree(self, kind: str, path: str) -> Iterator[Comment]:
        """Yield the comments of a list and all replies, to any depth."""
        seen: set[str] = set()
        paths = [path]
        while paths:
            pages = iterate_by_cursor(self._client, f"{_V2}{paths.pop()}", _WITH_BODY, "")
            for page in require_list(pages):
                comments = [_parse_comment(raw, page.link_base) for raw in page.results]
                yield from (fresh := [one for one in comments if one.id not in seen])
                seen |= {one.id for one in fresh}
                paths += [f"/{kind}/{one.id}/children" for one in fresh]

    def _read_context(self, content: Content, known: ContentContext | None) -> ContentContext:
        """Request the ancestors, folders included, and the restrictions of each."""
        known_ancestors = {one.id: one for one in known.ancestors} if known else {}
        ancestors: list[Ancestor] = []
        if content.kind is ContentKind.PAGE:
            for raw in self._list_all(f"/pages/{content.id}/ancestors"):
                ancestor_id = get_id(raw)
                ancestors.append(
                    known_ancestors.get(ancestor_id)
                    or Ancestor(ancestor_id, "", self._read_ancestor_viewers(ancestor_id))
                )
        if content.parent and content.parent not in {one.id for one in ancestors}:
            ancestors.append(Ancestor(content.parent, "", UNKNOWN_PRINCIPALS))
        if known is None:
            viewers = read_viewers(self._client, content.id)
            return ContentContext(ancestors=ancestors, viewers=viewers)
        return replace(known, ancestors=ancestors)

    def _read_ancestor_viewers(self, content_id: str) -> Principals:
        """Return the restriction of an ancestor, cached because many pages share it."""
        if content_id not in self._ancestor_viewers:
            if len(self._ancestor_viewers) >= _MAX_CACHED:
                self._ancestor_viewers.clear()
            self._ancestor_viewers[content_id] = read_viewers(self._client, content_id)
        return self._ancestor_viewers[content_id]


def _has_parent(content: Content, context: ContentContext) -> bool:
    return not content.parent or content.parent in {one.id for one in context.ancestors}


def _parse_content(raw: Json, space: Space, kind: ContentKind, link_base: str) -> Content:
    """Parse a content; raise MalformedResponse if a required field is missing."""
    authors = (find_text(raw, "authorId"), find_text(raw, "version", "authorId"))
    return Content(
        id=get_id(raw),
        kind=kind,
        title=get_field(raw, "title", str),
        space=space,
        parent=find_text(raw, "parentId"),
        link=link_base + find_text(raw, "_links", "webui"),
        body=find_text(raw, "body", "storage", "value"),
        version_number=get_version_number(raw),
        created_at=get_time(raw, "createdAt"),
        updated_at=get_time(raw, "version", "createdAt"),
        authors=tuple(User(key=one) for one in dict.fromkeys(filter(None, authors))),
    )


def _parse_comment(raw: Json, link_base: str) -> Comment:
    """Parse a comment; raise MalformedResponse if a required field is missing."""
    return Comment(
        id=get_id(raw),
        version_number=get_version_number(raw),
        created_at=get_time(raw, "version", "createdAt"),
        author=User(key=find_text(raw, "version", "authorId")),
        body=get_body(raw),
        quoted=find_text(raw, "properties", "inlineOriginalSelection"),
        link=link_base + find_text(raw, "_links", "webui"),
    )


def _parse_attachment(raw: Json, link_base: str) -> Attachment:
    """Parse an attachment; raise MalformedResponse if a required field is missing."""
    size = raw.get("fileSize")
    return Attachment(
        id=get_id(raw),
        title=get_field(raw, "title", str),
        size=size if isinstance(size, int) else None,
        version_number=get_version_number(raw),
        updated_at=get_time(raw, "version", "createdAt"),
        created_at=get_time(raw, "createdAt") if "createdAt" in raw else None,
        author=User(key=find_text(raw, "version", "authorId")),
        link=link_base + (find_text(raw, "webuiLink") or find_text(raw, "_links", "webui")),
        path=find_text(raw, "downloadLink") or find_text(raw, "_links", "download"),
    )
