"""An issue or a pull request with all that was said on it, as one document."""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from connectors.checkpoints import stamp
from connectors.document import Document, Section
from connectors.extraction.media_types import MARKDOWN
from connectors.extraction.result import one_line, shortened
from connectors.sources.github.client import Api
from connectors.sources.github.comment_sections import Saying, author, heading, sections
from connectors.sources.github.content_reader import Home
from connectors.sources.github.issue_pagination import Item, login_of, time_of
from connectors.sources.github.repositories import Repository

_READING = 1
"""Goes up when the same answers are read into another document."""
_VERDICTS: Mapping[str, str] = {
    "APPROVED": "approved",
    "CHANGES_REQUESTED": "changes requested",
    "DISMISSED": "review dismissed",
}


def said_until(version: str) -> str:
    """When the latest comment in a document of that version was made or edited; empty where there is
    none."""
    return version.rpartition("/")[2]


def is_of(version: str, item: Item) -> bool:
    """Whether a document of that version was made from the item as it is, whatever its comments."""
    return version.rpartition("/")[0] == mark(item)


def mark(item: Item) -> str:
    """Every edit and comment sets the time at which the item changed, but to the second only: what was
    edited twice within one is told by its text."""
    count = "" if item.comments is None else item.comments
    told = repr((item.title, item.body, item.state, item.labels))
    digest = hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{_READING}:{stamp(item.updated_at)}:{count}:{digest}"


def document(home: Home, item: Item) -> Document:
    """
    Raises:
        ActionRequiredError, TemporarilyUnavailableError, BadAnswer: see `Api.get`.
    """
    kind = "pull request" if item.is_pull else "issue"
    said = sorted(_sayings(home.api, home.repository, item))
    until = max((one.edited for one in said), default="")
    says = (
        *sections(item.body, item.link),
        *(one for each in said for one in sections(each.text, each.link, [each.heading])),
    )
    title = one_line(item.title) or f"#{item.number}"
    return Document(
        id=home.id_of(str(item.number)),
        source=home.source,
        title=shortened(title),
        sections=says or (Section(text=title, link=item.link),),
        link=item.link,
        media_type=MARKDOWN,
        access=home.rights.access,
        version=f"{mark(item)}/{until}",
        metadata={
            "repository": home.repository.name,
            "kind": kind,
            "number": str(item.number),
            "state": item.state,
            **({"labels": item.labels} if item.labels else {}),
        },
        owners=author(item.author, home.rights),
        created_at=item.created_at,
        updated_at=item.updated_at,
        parents=home.repository.parents,
    )


def item_name(repository: Repository, item: Item) -> str:
    return f"{repository.name}#{item.number} {one_line(item.title)}"


def _sayings(api: Api, repository: Repository, item: Item) -> Iterator[Saying]:
    if item.comments != 0:
        for raw in api.present(f"{repository.path}/issues/{item.number}/comments"):
            yield _saying(raw, "created_at")
    if item.is_pull:
        pull = f"{repository.path}/pulls/{item.number}"
        for raw in api.present(f"{pull}/reviews"):
            # One that is still being written has no date, and is its author's alone.
            if raw.get("state") != "PENDING":
                yield _saying(raw, "submitted_at", _VERDICTS.get(str(raw.get("state")), ""))
        for raw in api.present(f"{pull}/comments"):
            yield _saying(raw, "created_at", str(raw.get("path") or ""))


def _saying(raw: dict[str, Any], dated: str, besides: str = "") -> Saying:
    """Raises Malformed."""
    at = time_of(raw, dated)
    return Saying(
        at=at,
        edited=stamp(time_of(raw, "updated_at") if "updated_at" in raw else at),
        link=str(raw.get("html_url") or ""),
        heading=heading(login_of(raw), at, besides),
        # The verdict of a review counts where it says nothing more.
        text=str(raw.get("body") or "") or (besides if dated == "submitted_at" else ""),
    )
