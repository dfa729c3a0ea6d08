"""How often each provider is asked by this process, and how long one is left alone that asked to wait a moment."""

import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable

_MINUTE = 60.0


class Pacer:
    """Counts the searches of the last minute by provider. Safe to use from several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._asked: defaultdict[int, deque[float]] = defaultdict(deque)
        self._rested: dict[int, float] = {}

    def take_turn(self, provider_id: int, per_minute: int) -> float | None:
        """Count a search; where it may not be made yet, count none and return the seconds until then."""
        with self._lock:
            now, asked = self._clock(), self._asked[provider_id]
            while asked and asked[0] <= now - _MINUTE:
                asked.popleft()
            rest = self._rested.get(provider_id, now) - now
            wait = max(rest, asked[-per_minute] + _MINUTE - now if len(asked) >= per_minute else 0)
            if wait > 0:
                return wait
            asked.append(now)
            return None

    def rest(self, provider_id: int, seconds: float) -> None:
        """Ask a provider nothing for that long."""
        with self._lock:
            self._rested[provider_id] = self._clock() + seconds

    def forget(self, provider_id: int) -> None:
        """Let a provider be asked at once, such as for a test."""
        with self._lock:
            self._rested.pop(provider_id, None)
