"""A discussion with its comments and their replies, as one document.

The fields are told under docs.github.com/graphql, "Using the GraphQL API for Discussions".
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from connectors.checkpoints import stamp
from connectors.document import Document, Section
from connectors.extraction.media_types import MARKDOWN
from connectors.extraction.result import one_line, shortened
from connectors.http_client.response import Malformed
from connectors.sources.github.client import field_of
from connectors.sources.github.comment_sections import author, heading, sections
from connectors.sources.github.content_reader import Home
from connectors.sources.github.graphql_client import next_cursor, nodes
from connectors.sources.github.issue_pagination import login_in, time_of

TOLD = """
fragment Told on Discussion {
  number title body url createdAt updatedAt closed
  author { login }
  category { name isAnswerable }
  answer { id }
  labels(first: 50) { nodes { name } }
  comments(first: 1) { totalCount }
}
"""

_READING = 1
"""Goes up when the same answers are read into another document."""
_SAID = """
fragment Said on DiscussionComment { id body url createdAt author { login } isAnswer }
"""
_COMMENTS = f"""
query Comments($owner: String!, $name: String!, $number: Int!, $after: String) {{
  rateLimit {{ remaining resetAt }}
  repository(owner: $owner, name: $name) {{
    discussion(number: $number) {{
      comments(first: 50, after: $after) {{
        nodes {{
          ...Said
          replies(first: 50) {{ nodes {{ ...Said }} pageInfo {{ endCursor hasNextPage }} }}
        }}
        pageInfo {{ endCursor hasNextPage }}
      }}
    }}
  }}
}}
{_SAID}"""
_REPLIES = f"""
query Replies($id: ID!, $after: String) {{
  rateLimit {{ remaining resetAt }}
  node(id: $id) {{
    ... on DiscussionComment {{
      replies(first: 50, after: $after) {{
        nodes {{ ...Said }}
        pageInfo {{ endCursor hasNextPage }}
      }}
    }}
  }}
}}
{_SAID}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A discussion as lists tell it."""

    number: int
    title: str
    body: str
    author: str
    link: str
    category: str
    is_answerable: bool
    answer: str
    """The id of the comment that was marked as the answer; mostly empty."""
    state: str
    labels: tuple[str, ...]
    comments: int
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, raw: dict[str, Any]) -> Self:
        """Raises Malformed."""
        category = field_of(raw, "category", dict)
        return cls(
            number=field_of(raw, "number", int),
            title=field_of(raw, "title", str),
            body=str(raw.get("body") or ""),
            author=login_in(raw.get("author")),
            link=field_of(raw, "url", str),
            category=one_line(str(category.get("name") or "")),
            is_answerable=category.get("isAnswerable") is True,
            answer=str((raw.get("answer") or {}).get("id") or ""),
            state="closed" if raw.get("closed") is True else "open",
            labels=tuple(field_of(one, "name", str) for one in nodes(raw.get("labels") or _NONE)),
            comments=field_of(field_of(raw, "comments", dict), "totalCount", int),
            created_at=time_of(raw, "createdAt"),
            updated_at=time_of(raw, "updatedAt"),
        )

    @property
    def own(self) -> str:
        """Its name within the repository."""
        return f"discussions/{self.number}"

    @property
    def version(self) -> str:
        """The time is to the second only: what was edited twice within one is told by its text."""
        told = repr((self.title, self.body, self.category, self.answer, self.state, self.labels))
        digest = hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        return f"{_READING}:{stamp(self.updated_at)}:{self.comments}:{digest}"


_NONE: dict[str, list[object]] = {"nodes": []}


def document(home: Home, topic: Topic) -> Document:
    """
    Raises:
        ActionRequiredError, TemporarilyUnavailableError, BadAnswer: see `Graph.ask`.
    """
    title = one_line(topic.title) or f"#{topic.number}"
    said = (*sections(topic.body, topic.link), *_comments(home, topic))
    answered = {"answered": "yes" if topic.answer else "no"} if topic.is_answerable else {}
    return Document(
        id=home.id_of(topic.own),
        source=home.source,
        title=shortened(title),
        sections=said or (Section(text=title, link=topic.link),),
        link=topic.link,
        media_type=MARKDOWN,
        access=home.rights.access,
        version=topic.version,
        metadata={
            "repository": home.repository.name,
            "kind": "discussion",
            "number": str(topic.number),
            "state": topic.state,
            "category": topic.category,
            **answered,
            **({"labels": topic.labels} if topic.labels else {}),
        },
        owners=author(topic.author, home.rights),
        created_at=topic.created_at,
        updated_at=topic.updated_at,
        parents=(*home.repository.parents, "discussions"),
    )


def _comments(home: Home, topic: Topic) -> Iterator[Section]:
    """Oldest first, each followed by its replies, which stand below it."""
    if not topic.comments:
        return
    whose = {**home.repository.named, "number": topic.number}
    for page, _ in home.graph.pages(_COMMENTS, whose, _of_discussion):
        for raw in page:
            above = [_heading(raw)]
            yield from _sections(raw, above)
            for reply in _replies(home, raw):
                yield from _sections(reply, [*above, _heading(reply)])


def _replies(home: Home, comment: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Those that came with the comment, and those of its further pages."""
    first = field_of(comment, "replies", dict)
    yield from nodes(first)
    if cursor := next_cursor(first):
        asked = {"id": field_of(comment, "id", str)}
        for page, _ in home.graph.pages(_REPLIES, asked, _of_comment, cursor):
            yield from page


def _of_discussion(data: dict[str, Any]) -> dict[str, Any]:
    match data:
        case {"repository": {"discussion": {"comments": dict() as found}}}:
            return found
        case _:
            raise Malformed("GitHub answers a discussion without its comments")


def _of_comment(data: dict[str, Any]) -> dict[str, Any]:
    match data:
        case {"node": {"replies": dict() as found}}:
            return found
        case _:
            raise Malformed("GitHub answers a comment without its replies")


def _heading(raw: dict[str, Any]) -> str:
    answers = "answer" if raw.get("isAnswer") is True else ""
    return heading(login_in(raw.get("author")), time_of(raw, "createdAt"), answers)


def _sections(raw: dict[str, Any], above: list[str]) -> Iterator[Section]:
    return sections(str(raw.get("body") or ""), str(raw.get("url") or ""), above)
