"""What the turns under way in this process have used of language models: it is recorded only at the end of each."""

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backend.chat.llm.metering import UsageMeter


class LiveUsage:
    """Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._people: dict[UsageMeter, int] = {}
        """Whose turn each meter counts."""

    def add(self, person_id: int, meter: "UsageMeter") -> None:
        with self._lock:
            self._people[meter] = person_id

    def remove(self, meter: "UsageMeter") -> None:
        with self._lock:
            del self._people[meter]

    def sum_tokens(self, person_id: int) -> tuple[int, int]:
        """Return the tokens that turns of a person have used, and those that all have used."""
        with self._lock:
            people = dict(self._people)
        used = {meter: _count_tokens(meter) for meter in people}
        own = sum(tokens for meter, tokens in used.items() if people[meter] == person_id)
        return own, sum(used.values())


def _count_tokens(meter: "UsageMeter") -> int:
    return sum(one.input_tokens + one.output_tokens for one in meter.read().values())
