"""From page to page by the moments of messages."""

from collections.abc import Mapping
from typing import Any

from connectors.http_client.response import Malformed
from connectors.sources.slack.client import next_cursor
from connectors.sources.slack.models import order


class Steps:
    """From page to page: by the moment that was reached, and by a cursor where a page does not get
    further (it is empty, though more is to come)."""

    def __init__(self, method: str, reached: str, *, forwards: bool = False) -> None:
        self._method = method
        self._forwards = forwards
        self._seen: set[str] = set()
        self.reached = reached
        self.cursor: Mapping[str, str] = {}

    def go(self, answer: Mapping[str, Any], edge: str) -> bool:
        """Whether there is another page. `edge` is the outermost `ts` of this one; empty if it is.

        Raises:
            Malformed: the pages go in a circle.
        """
        following = next_cursor(answer)
        if edge and self._is_beyond(edge):
            self.reached, self.cursor = edge, {}
            self._seen.clear()
        elif following and following not in self._seen:
            self.cursor = {"cursor": following}
            self._seen.add(following)
        elif answer.get("has_more") is True or following:
            raise Malformed(f"the pages of Slack's {self._method} go in a circle")
        return answer.get("has_more") is True or bool(following)

    def _is_beyond(self, edge: str) -> bool:
        if not self.reached:
            return True
        ends = order(edge), order(self.reached)
        return ends[0] > ends[1] if self._forwards else ends[0] < ends[1]
