"""Paging through messages by their timestamps."""

from collections.abc import Mapping
from typing import Any

from connectors.http_client.response import MalformedResponse
from connectors.sources.slack.client import get_next_cursor
from connectors.sources.slack.models import parse_ts


class TimestampPager:
    """Moves from page to page by timestamp, and by cursor past a page that has no messages."""

    def __init__(self, method: str, reached: str, *, forwards: bool = False) -> None:
        self._method = method
        self._forwards = forwards
        self._seen: set[str] = set()
        self.reached = reached
        self.cursor: Mapping[str, str] = {}

    def advance(self, result: Mapping[str, Any], edge: str) -> bool:
        """Move past a page, and return whether there is another.

        Args:
            edge: the outermost `ts` of the page; empty if it has no messages.

        Raises:
            MalformedResponse: the pages form a loop.
        """
        following = get_next_cursor(result)
        has_more = result.get("has_more") is True or bool(following)
        if edge and self._is_beyond(edge):
            self.reached, self.cursor = edge, {}
            self._seen.clear()
        elif following and following not in self._seen:
            self.cursor = {"cursor": following}
            self._seen.add(following)
        elif has_more:
            raise MalformedResponse(f"the pages of Slack's {self._method} form a loop")
        return has_more

    def _is_beyond(self, edge: str) -> bool:
        if not self.reached:
            return True
        new, old = parse_ts(edge), parse_ts(self.reached)
        return new > old if self._forwards else new < old
