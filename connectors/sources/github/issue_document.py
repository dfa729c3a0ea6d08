"""An issue or a pull request with its comments and reviews, as one document."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from connectors.connector import format_timestamp
from connectors.document import Document, Section
from connectors.extraction.registry import MARKDOWN
from connectors.http_client.api_client import find_text, get_field, get_time
from connectors.http_client.response import MalformedResponse
from connectors.sources.github.comment_sections import (
    Comment,
    format_heading,
    to_sections,
)
from connectors.sources.github.content_reader import RepositoryContext
from connectors.text_cleaning import shorten_title, to_one_line

_FORMAT = 1
"""Raised when the same responses give another document, so that all are read again."""
_MAX_NUMBER = 1 << 31
_REVIEW_STATES: Mapping[str, str] = {
    "APPROVED": "approved",
    "CHANGES_REQUESTED": "changes requested",
    "DISMISSED": "review dismissed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """An issue or a pull request without its comments, as lists return it."""

    number: int
    title: str
    body: str
    author: str
    """The login; empty if the account was deleted."""
    link: str
    is_pull_request: bool
    comment_count: int | None
    """None if the list does not say."""
    created_at: datetime
    updated_at: datetime
    state: str
    labels: tuple[str, ...]

    @classmethod
    def parse(cls, raw: dict[str, Any]) -> Self:
        """Parse an issue of the API; raise MalformedResponse if a required field is missing."""
        number = get_field(raw, "number", int)
        if not 0 < number < _MAX_NUMBER:
            raise MalformedResponse(f"GitHub returns an issue with the number {number}")
        return cls(
            number=number,
            title=get_field(raw, "title", str),
            body=find_text(raw, "body"),
            author=find_text(raw, "user", "login"),
            link=get_field(raw, "html_url", str),
            is_pull_request="pull_request" in raw or "head" in raw,
            comment_count=_get_comment_count(raw),
            created_at=get_time(raw, "created_at"),
            updated_at=get_time(raw, "updated_at"),
            state=find_text(raw, "state"),
            labels=tuple(_iterate_labels(raw.get("labels"))),
        )

    @property
    def version(self) -> str:
        """The version without the comments.

        Every edit and comment sets the time of the last change, but with a resolution of one second:
        the digest detects a second edit in it.
        """
        count = "" if self.comment_count is None else self.comment_count
        content = repr((self.title, self.body, self.state, self.labels))
        digest = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        return f"{_FORMAT}:{format_timestamp(self.updated_at)}:{count}:{digest}"


def get_issue_version(version: str) -> str:
    """Return the part of a document's version that is the `Issue.version`."""
    return version.rpartition("/")[0]


def get_last_comment_time(version: str) -> str:
    """Return the part of a document's version that is the stamp of the latest comment, or empty."""
    return version.rpartition("/")[2]


def format_issue_name(context: RepositoryContext, issue: Issue) -> str:
    return f"{context.repository.name}#{issue.number} {to_one_line(issue.title)}"


def read_issue(context: RepositoryContext, issue: Issue) -> Document:
    """Read the comments and return the whole document.

    Raises:
        SourceAuthError, TemporarilyUnavailableError, ResponseError: see `ApiClient`.
    """
    comments = sorted(_read_comments(context, issue))
    last_edit = max((one.edited for one in comments), default="")
    sections = (
        *to_sections(issue.body, issue.link),
        *(one for each in comments for one in to_sections(each.text, each.link, [each.heading])),
    )
    title = to_one_line(issue.title) or f"#{issue.number}"
    return Document(
        id=context.to_document_id(str(issue.number)),
        source=context.source,
        title=shorten_title(title),
        sections=sections or (Section(text=title, link=issue.link),),
        link=issue.link,
        media_type=MARKDOWN,
        access=context.access,
        version=f"{issue.version}/{last_edit}",
        metadata={
            "repository": context.repository.name,
            "kind": "pull request" if issue.is_pull_request else "issue",
            "number": str(issue.number),
            "state": issue.state,
            **({"labels": issue.labels} if issue.labels else {}),
        },
        owners=context.get_owners(issue.author),
        created_at=issue.created_at,
        updated_at=issue.updated_at,
        parents=context.repository.parents,
    )


def _read_comments(context: RepositoryContext, issue: Issue) -> Iterator[Comment]:
    path, list_existing = context.repository.path, context.client.list_existing
    if issue.comment_count != 0:
        for raw in list_existing(f"{path}/issues/{issue.number}/comments"):
            yield _parse_comment(raw, "created_at")
    if issue.is_pull_request:
        for raw in list_existing(f"{path}/pulls/{issue.number}/reviews"):
            # A pending review has no date, and only its author may see it.
            if raw.get("state") != "PENDING":
                yield _parse_review(raw)
        for raw in list_existing(f"{path}/pulls/{issue.number}/comments"):
            yield _parse_comment(raw, "created_at", find_text(raw, "path"))


def _parse_review(raw: dict[str, Any]) -> Comment:
    state = _REVIEW_STATES.get(find_text(raw, "state"), "")
    # The state of a review counts also if it has no text.
    return _parse_comment({**raw, "body": raw.get("body") or state}, "submitted_at", state)


def _parse_comment(raw: dict[str, Any], date_field: str, suffix: str = "") -> Comment:
    created_at = get_time(raw, date_field)
    return Comment(
        created_at=created_at,
        edited=format_timestamp(get_time(raw, "updated_at") if "updated_at" in raw else created_at),
        link=find_text(raw, "html_url"),
        heading=format_heading(find_text(raw, "user", "login"), created_at, suffix),
        text=find_text(raw, "body"),
    )


def _get_comment_count(raw: dict[str, Any]) -> int | None:
    # A single pull request has a count, a list of them has none: ignoring it in both cases gives the
    # same version.
    match raw:
        case {"head": _}:
            return None
        case {"comments": int(count)}:
            return count
        case _:
            return None


def _iterate_labels(labels: object) -> Iterator[str]:
    for one in labels if isinstance(labels, list) else ():
        match one:
            case {"name": str(name)} | str(name):
                yield name
            case _:
                pass
