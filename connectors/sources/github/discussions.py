"""The discussions of a repository, each with what was said on it.

A first run goes through them in the order of their making, which is that of a listing too; a later one
from the latest change back to those that the run before has read. Both go by cursors, which stand still
when others come, change or go. What changes meanwhile is read by the next run, which begins before this
one. An edit of a comment that does not count as a change of its discussion is found when that changes.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from connectors.checkpoints import stamp
from connectors.connector import Change, Deletion, Known, Listed, Unreadable
from connectors.document import Document
from connectors.extraction.result import one_line
from connectors.http_client.response import Malformed
from connectors.sources.github.client import field_of, needed
from connectors.sources.github.content_reader import At, Home, Read, Start, read
from connectors.sources.github.discussion_document import TOLD, Topic, document
from connectors.sources.github.graphql_client import BadCursor, NotThere

_PAGE = """
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
_WHOLE = _PAGE % "...Told" + TOLD
_NUMBERS = _PAGE % "number"
_ONE = f"""
query Discussion($owner: String!, $name: String!, $number: Int!) {{
  rateLimit {{ remaining resetAt }}
  repository(owner: $owner, name: $name) {{ discussion(number: $number) {{ ...Told }} }}
}}
{TOLD}"""
_AS_MADE = {"field": "CREATED_AT", "direction": "ASC"}
_LATEST_FIRST = {"field": "UPDATED_AT", "direction": "DESC"}


@dataclass(frozen=True, slots=True)
class Discussions:
    """Implements `connectors.sources.github.content_reader.Part`."""

    name: str = "discussions"

    def owns(self, own: str) -> bool:
        return re.fullmatch(r"discussions/\d{1,9}", own) is not None

    def changes(self, home: Home, start: Start, known: Known) -> Iterator[Change | At | Read]:
        """A checkpoint for each page of 50."""
        order = _LATEST_FIRST if start.since else _AS_MADE
        for page, following in self._pages(home, _WHOLE, order, start.at):
            topics = _topics(home, page)
            fresh = [one for one in topics if stamp(one.updated_at) >= start.since]
            yield from self._batch(home, fresh, known)
            if not following or len(fresh) < len(topics):
                break
            yield At(following)
        yield Read()

    def again(self, home: Home, document_ids: Sequence[str]) -> Iterator[Change]:
        for one in document_ids:
            topic = self._topic(home, int(home.own_of(one).rpartition("/")[2]))
            yield Deletion(one) if topic is None else self._read(home, topic)

    def listing(self, home: Home) -> Iterator[Listed]:
        for page, _ in self._pages(home, _NUMBERS, _AS_MADE, ""):
            for raw in page:
                with needed(f"the discussions of {home.repository.name}"):
                    number = field_of(raw, "number", int)
                yield Listed(home.id_of(f"discussions/{number}"), home.rights.access)

    def probe(self, home: Home) -> None:
        next(self._pages(home, _NUMBERS, _AS_MADE, ""), None)

    def _pages(
        self, home: Home, query: str, order: Mapping[str, str], after: str
    ) -> Iterator[tuple[list[dict[str, Any]], str]]:
        """None where discussions are switched off, or the repository went away meanwhile."""
        if not home.repository.has_discussions:
            return
        asked = {**home.repository.named, **order}
        with needed(f"the discussions of {home.repository.name}"):
            try:
                yield from home.graph.pages(query, asked, _listed, after or None)
            except NotThere:
                home.check_gone(f"the discussions of {home.repository.name}")
            except BadCursor:
                if not after:
                    raise
                yield from home.graph.pages(query, asked, _listed)

    def _batch(self, home: Home, topics: Sequence[Topic], known: Known) -> Iterator[Change]:
        held = known([home.id_of(one.own) for one in topics]) if topics else {}
        for topic in topics:
            if held.get(home.id_of(topic.own)) != topic.version:
                yield self._read(home, topic)

    def _read(self, home: Home, topic: Topic) -> Document | Unreadable:
        unread = Unreadable(
            document_id=home.id_of(topic.own),
            item=f"{home.repository.name}#{topic.number} {one_line(topic.title)}",
            reason="",
            link=topic.link,
        )
        return read(lambda: document(home, topic), unread)

    def _topic(self, home: Home, number: int) -> Topic | None:
        """Nothing where it is gone, or was transferred to another repository."""
        asked = {**home.repository.named, "number": number}
        with needed(f"{home.repository.name}#{number}"):
            try:
                data = home.graph.ask(_ONE, asked)
            except NotThere:
                return None
            topic = _told(data)
        inside = topic and topic.link.lower().startswith(f"{home.repository.link}/".lower())
        return topic if inside else None


def _topics(home: Home, page: Sequence[dict[str, Any]]) -> list[Topic]:
    with needed(f"the discussions of {home.repository.name}"):
        return [Topic.of(one) for one in page]


def _listed(data: dict[str, Any]) -> dict[str, Any]:
    match data:
        case {"repository": {"discussions": dict() as found}}:
            return found
        case _:
            raise Malformed("GitHub answers a repository without its discussions")


def _told(data: dict[str, Any]) -> Topic | None:
    match data:
        case {"repository": {"discussion": dict() as raw}}:
            return Topic.of(raw)
        case {"repository": {"discussion": None}}:
            return None
        case _:
            raise Malformed("GitHub answers a repository without the discussion that was asked for")
