"""A discussion with its comments and their replies, as one document.

The fields are described at docs.github.com/graphql, "Using the GraphQL API for Discussions".
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from connectors.connector import format_timestamp
from connectors.document import Document, Section
from connectors.extraction.registry import MARKDOWN
from connectors.http_client.api_client import find_text, get_field, get_time
from connectors.http_client.response import MalformedResponse
from connectors.sources.github.comment_sections import format_heading, to_sections
from connectors.sources.github.content_reader import RepositoryContext
from connectors.sources.github.graphql_client import get_next_cursor, get_nodes
from connectors.text_cleaning import shorten_title, to_one_line

DISCUSSION_FRAGMENT = """
fragment DiscussionFields on Discussion {
  number title body url createdAt updatedAt closed
  author { login }
  category { name isAnswerable }
  answer { id }
  labels(first: 50) { nodes { name } }
  comments(first: 1) { totalCount }
}
"""

_FORMAT = 1
"""Raised when the same responses give another document, so that all are read again."""
_COMMENT_FRAGMENT = """
fragment CommentFields on DiscussionComment { id body url createdAt author { login } isAnswer }
"""
_COMMENTS_QUERY = f"""
query Comments($owner: String!, $name: String!, $number: Int!, $after: String) {{
  rateLimit {{ remaining resetAt }}
  repository(owner: $owner, name: $name) {{
    discussion(number: $number) {{
      comments(first: 50, after: $after) {{
        nodes {{
          ...CommentFields
          replies(first: 50) {{ nodes {{ ...CommentFields }} pageInfo {{ endCursor hasNextPage }} }}
        }}
        pageInfo {{ endCursor hasNextPage }}
      }}
    }}
  }}
}}
{_COMMENT_FRAGMENT}"""
_REPLIES_QUERY = f"""
query Replies($id: ID!, $after: String) {{
  rateLimit {{ remaining resetAt }}
  node(id: $id) {{
    ... on DiscussionComment {{
      replies(first: 50, after: $after) {{
        nodes {{ ...CommentFields }}
        pageInfo {{ endCursor hasNextPage }}
      }}
    }}
  }}
}}
{_COMMENT_FRAGMENT}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Discussion:
    """A discussion without its comments, as lists return it."""

    number: int
    title: str
    body: str
    author: str
    link: str
    category: str
    is_answerable: bool
    answer_id: str
    """The id of the comment that is marked as the answer; usually empty."""
    state: str
    labels: tuple[str, ...]
    comment_count: int
    created_at: datetime
    updated_at: datetime

    @classmethod
    def parse(cls, raw: dict[str, Any]) -> Self:
        """Parse a discussion of the API; raise MalformedResponse if a required field is missing."""
        category = get_field(raw, "category", dict)
        labels = get_nodes(raw.get("labels") or {"nodes": []})
        return cls(
            number=get_field(raw, "number", int),
            title=get_field(raw, "title", str),
            body=find_text(raw, "body"),
            author=find_text(raw, "author", "login"),
            link=get_field(raw, "url", str),
            category=to_one_line(find_text(category, "name")),
            is_answerable=category.get("isAnswerable") is True,
            answer_id=find_text(raw, "answer", "id"),
            state="closed" if raw.get("closed") is True else "open",
            labels=tuple(get_field(one, "name", str) for one in labels),
            comment_count=get_field(get_field(raw, "comments", dict), "totalCount", int),
            created_at=get_time(raw, "createdAt"),
            updated_at=get_time(raw, "updatedAt"),
        )

    @property
    def name(self) -> str:
        """The name within the repository."""
        return f"discussions/{self.number}"

    @property
    def version(self) -> str:
        # The time of a change has a resolution of one second: the digest detects a second edit in it.
        content = (
            self.title, self.body, self.category, self.answer_id, self.state, self.labels,
        )  # fmt: skip
        digest = hashlib.sha256(repr(content).encode("utf-8", "surrogatepass")).hexdigest()[:12]
        return f"{_FORMAT}:{format_timestamp(self.updated_at)}:{self.comment_count}:{digest}"


def read_discussion(context: RepositoryContext, discussion: Discussion) -> Document:
    """Read the comments and return the whole document.

    Raises:
        SourceAuthError, TemporarilyUnavailableError, ResponseError: see `GraphQLClient.query`.
    """
    title = to_one_line(discussion.title) or f"#{discussion.number}"
    sections = (
        *to_sections(discussion.body, discussion.link),
        *_read_comments(context, discussion),
    )
    return Document(
        id=context.to_document_id(discussion.name),
        source=context.source,
        title=shorten_title(title),
        sections=sections or (Section(text=title, link=discussion.link),),
        link=discussion.link,
        media_type=MARKDOWN,
        access=context.access,
        version=discussion.version,
        metadata=_build_metadata(context, discussion),
        owners=context.get_owners(discussion.author),
        created_at=discussion.created_at,
        updated_at=discussion.updated_at,
        parents=(*context.repository.parents, "discussions"),
    )


def _build_metadata(
    context: RepositoryContext, discussion: Discussion
) -> dict[str, str | tuple[str, ...]]:
    answered = {"answered": "yes" if discussion.answer_id else "no"}
    return {
        "repository": context.repository.name,
        "kind": "discussion",
        "number": str(discussion.number),
        "state": discussion.state,
        "category": discussion.category,
        **(answered if discussion.is_answerable else {}),
        **({"labels": discussion.labels} if discussion.labels else {}),
    }


def _read_comments(context: RepositoryContext, discussion: Discussion) -> Iterator[Section]:
    """Yield the comments, oldest first, each followed by its replies, whose heading is below it."""
    if not discussion.comment_count:
        return
    variables = {**context.repository.graphql_variables, "number": discussion.number}
    for page, _ in context.graphql.iterate_pages(_COMMENTS_QUERY, variables, _get_comments):
        for comment in page:
            headings = [_heading(comment)]
            yield from _to_sections(comment, headings)
            for reply in _iterate_replies(context, comment):
                yield from _to_sections(reply, [*headings, _heading(reply)])


def _iterate_replies(
    context: RepositoryContext, comment: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield the replies that came with the comment, and those of further pages."""
    first = get_field(comment, "replies", dict)
    yield from get_nodes(first)
    if cursor := get_next_cursor(first):
        variables = {"id": get_field(comment, "id", str)}
        pages = context.graphql.iterate_pages(_REPLIES_QUERY, variables, _get_replies, cursor)
        for page, _ in pages:
            yield from page


def _get_comments(data: dict[str, Any]) -> dict[str, Any]:
    match data:
        case {"repository": {"discussion": {"comments": dict() as found}}}:
            return found
        case _:
            raise MalformedResponse("GitHub returns a discussion without its comments")


def _get_replies(data: dict[str, Any]) -> dict[str, Any]:
    match data:
        case {"node": {"replies": dict() as found}}:
            return found
        case _:
            raise MalformedResponse("GitHub returns a comment without its replies")


def _heading(comment: dict[str, Any]) -> str:
    suffix = "answer" if comment.get("isAnswer") is True else ""
    return format_heading(
        find_text(comment, "author", "login"), get_time(comment, "createdAt"), suffix
    )


def _to_sections(comment: dict[str, Any], headings: list[str]) -> Iterator[Section]:
    return to_sections(find_text(comment, "body"), find_text(comment, "url"), headings)
