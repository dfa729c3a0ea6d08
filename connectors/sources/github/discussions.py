"""The discussions of a repository.

A first run reads them in the order of their creation, as a listing does; a later one from the latest
change back to those that the run before has read. Both use cursors, which stay valid when discussions
are added, changed or deleted. What changes meanwhile is read by the next run, which goes back to before
this one began. An edit of a comment that does not count as a change of its discussion is found only when
the discussion changes.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from connectors.connector import (
    Change,
    Deletion,
    DocumentListing,
    KnownVersions,
    Unreadable,
    format_timestamp,
)
from connectors.document import Document
from connectors.http_client.api_client import get_field, required
from connectors.http_client.response import MalformedResponse
from connectors.sources.github.content_reader import (
    PartCompleted,
    PartPosition,
    PartStart,
    RepositoryContext,
    read_or_report,
)
from connectors.sources.github.discussion_document import (
    DISCUSSION_FRAGMENT,
    Discussion,
    read_discussion,
)
from connectors.sources.github.graphql_client import GraphQLNotFoundError, InvalidCursorError
from connectors.text_cleaning import to_one_line

_PAGE_QUERY = """
query Discussions(
  $owner: String!, $name: String!, $after: String,
  $field: DiscussionOrderField!, $direction: OrderDirection!
) {
  rateLimit { remaining resetAt }
  repository(owner: $owner, name: $name) {
    discussions(first: 50, after: $after, orderBy: {field: $field, direction: $direction}) {
      nodes { %s }
      pageInfo { endCursor hasNextPage }
    }
  }
}
"""
_DISCUSSIONS_QUERY = _PAGE_QUERY % "...DiscussionFields" + DISCUSSION_FRAGMENT
_NUMBERS_QUERY = _PAGE_QUERY % "number"
_DISCUSSION_QUERY = f"""
query Discussion($owner: String!, $name: String!, $number: Int!) {{
  rateLimit {{ remaining resetAt }}
  repository(owner: $owner, name: $name) {{ discussion(number: $number) {{ ...DiscussionFields }} }}
}}
{DISCUSSION_FRAGMENT}"""
_OLDEST_FIRST = {"field": "CREATED_AT", "direction": "ASC"}
_LATEST_CHANGE_FIRST = {"field": "UPDATED_AT", "direction": "DESC"}


@dataclass(frozen=True, slots=True)
class DiscussionsPart:
    """Implements `connectors.sources.github.content_reader.Part`."""

    name: str = "discussions"

    def owns(self, name: str) -> bool:
        return re.fullmatch(r"discussions/\d{1,9}", name) is not None

    def changes(
        self, context: RepositoryContext, start: PartStart, known: KnownVersions
    ) -> Iterator[Change | PartPosition | PartCompleted]:
        """Yield what changed, with a position after each page of 50."""
        order = _LATEST_CHANGE_FIRST if start.since else _OLDEST_FIRST
        pages = self._iterate_pages(context, _DISCUSSIONS_QUERY, order, start.position)
        for page, cursor in pages:
            discussions = _parse_discussions(context, page)
            changed = [
                one for one in discussions if format_timestamp(one.updated_at) >= start.since
            ]
            yield from self._compare(context, changed, known)
            if not cursor or len(changed) < len(discussions):
                break
            yield PartPosition(cursor)
        yield PartCompleted()

    def refetch(self, context: RepositoryContext, document_ids: Sequence[str]) -> Iterator[Change]:
        for document_id in document_ids:
            number = int(context.to_name(document_id).rpartition("/")[2])
            discussion = self._find(context, number)
            if discussion is None:
                yield Deletion(document_id)
            else:
                yield self._read(context, discussion)

    def listing(
        self, context: RepositoryContext, position: str
    ) -> Iterator[DocumentListing | PartPosition]:
        for page, cursor in self._iterate_pages(context, _NUMBERS_QUERY, _OLDEST_FIRST, position):
            for raw in page:
                with required(f"the discussions of {context.repository.name}"):
                    number = get_field(raw, "number", int)
                document_id = context.to_document_id(f"discussions/{number}")
                yield DocumentListing(document_id, context.access)
            if cursor:
                yield PartPosition(cursor)

    def probe(self, context: RepositoryContext) -> None:
        next(self._iterate_pages(context, _NUMBERS_QUERY, _OLDEST_FIRST, ""), None)

    def _iterate_pages(
        self, context: RepositoryContext, query: str, order: Mapping[str, str], after: str
    ) -> Iterator[tuple[list[dict[str, Any]], str]]:
        """Yield the pages; none if discussions are disabled or the repository was deleted meanwhile."""
        if not context.repository.has_discussions:
            return
        iterate = context.graphql.iterate_pages
        variables = {**context.repository.graphql_variables, **order}
        what = f"the discussions of {context.repository.name}"
        with required(what):
            try:
                yield from iterate(query, variables, _get_discussions, after or None)
            except GraphQLNotFoundError:
                context.check_repository_gone(what)
            except InvalidCursorError:
                if not after:
                    raise
                yield from iterate(query, variables, _get_discussions)

    def _compare(
        self, context: RepositoryContext, discussions: Sequence[Discussion], known: KnownVersions
    ) -> Iterator[Change]:
        """Read those discussions whose known version differs."""
        ids = {one.number: context.to_document_id(one.name) for one in discussions}
        versions = known(list(ids.values())) if ids else {}
        for discussion in discussions:
            if versions.get(ids[discussion.number]) != discussion.version:
                yield self._read(context, discussion)

    def _read(self, context: RepositoryContext, discussion: Discussion) -> Document | Unreadable:
        unreadable = Unreadable(
            document_id=context.to_document_id(discussion.name),
            item=f"{context.repository.name}#{discussion.number} {to_one_line(discussion.title)}",
            reason="",
            link=discussion.link,
        )
        return read_or_report(lambda: read_discussion(context, discussion), unreadable)

    def _find(self, context: RepositoryContext, number: int) -> Discussion | None:
        """Return the discussion; None if it was deleted or transferred to another repository."""
        repository = context.repository
        variables = {**repository.graphql_variables, "number": number}
        with required(f"{repository.name}#{number}"):
            try:
                data = context.graphql.query(_DISCUSSION_QUERY, variables)
            except GraphQLNotFoundError:
                return None
            found = _get_discussion(data)
        is_here = found and found.link.lower().startswith(f"{repository.link}/".lower())
        return found if is_here else None


def _parse_discussions(
    context: RepositoryContext, page: Sequence[dict[str, Any]]
) -> list[Discussion]:
    with required(f"the discussions of {context.repository.name}"):
        return [Discussion.parse(one) for one in page]


def _get_discussions(data: dict[str, Any]) -> dict[str, Any]:
    match data:
        case {"repository": {"discussions": dict() as found}}:
            return found
        case _:
            raise MalformedResponse("GitHub returns a repository without its discussions")


def _get_discussion(data: dict[str, Any]) -> Discussion | None:
    match data:
        case {"repository": {"discussion": dict() as raw}}:
            return Discussion.parse(raw)
        case {"repository": {"discussion": None}}:
            return None
        case _:
            raise MalformedResponse("GitHub returns a repository without the discussion")
