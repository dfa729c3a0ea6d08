"""The names of sources, types and people that an asker may see: those of documents that the asker may read."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from connectors.access import Readers
from indexing.index.person_keys import person_key
from indexing.index.protocols import Facets, Filters, Index
from indexing.runtime.deadline import Deadline

KEPT_SECONDS = 60.0
"""Names are only looked for in queries; what an asker finds is decided by the index at that moment."""
MOST_ASKERS = 200


@dataclass(frozen=True, slots=True)
class VisibleNames:
    documents: int
    """How many the asker may read."""
    sources: Mapping[str, int]
    """Each with its documents."""
    media_types: Mapping[str, int]
    people: Mapping[str, frozenset[str]]
    """The keys of the people who have a name, by the key of the name."""

    @classmethod
    def of(cls, counted: Facets) -> "VisibleNames":
        people: dict[str, frozenset[str]] = {}
        for key, one in counted.people.items():
            for name in {person_key(one.name), key}:
                people[name] = people.get(name, frozenset()) | {key}
        return cls(sum(counted.sources.values()), counted.sources, counted.media_types, people)


@dataclass(frozen=True)
class VisibleNamesCache:
    """Looks names up for each asker, and keeps them for a while. Safe to use from several threads."""

    index: Index
    clock: Callable[[], float] = time.monotonic
    _kept: dict[Readers, tuple[float, VisibleNames]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, readers: Readers, deadline: Deadline) -> VisibleNames:
        """Return the names that `readers` may see.

        Raises:
            DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError: the index did not answer.
        """
        now = self.clock()
        with self._lock:
            until, names = self._kept.get(readers, (now, None))
        if names is not None and now < until:
            return names
        names = VisibleNames.of(self.index.facets(Filters(), readers, deadline))
        with self._lock:
            self._kept.pop(readers, None)
            self._kept[readers] = (now + KEPT_SECONDS, names)
            if len(self._kept) > MOST_ASKERS:
                del self._kept[next(iter(self._kept))]
        return names
