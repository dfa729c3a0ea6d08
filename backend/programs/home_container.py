"""The container of a home that a program keeps open, while its index may be replaced."""

import threading

from backend.container import Container
from backend.search.search_service import SearchService
from backend.settings import Settings
from backend.web_search.search import WebSearch
from connectors.access import Readers
from connectors.errors import ConflictError


class HomeContainer:
    """Holds a home open for one asker. Safe to use from several threads until it is closed.

    Args:
        own: the reader tokens of the asker; None for the owner of the machine.
    """

    def __init__(self, container: Container, own: Readers | None) -> None:
        self._own = own
        self._lock = threading.Lock()
        self._container = container
        self._replaced: list[Container] = []
        self._is_closed = False

    @property
    def settings(self) -> Settings:
        return self._container.settings

    def close(self) -> None:
        """Close all that was opened."""
        with self._lock:
            self._is_closed = True
            for container in (*self._replaced, self._container):
                container.close()

    def get(self) -> Container:
        """Return the container of the home. Raises ConflictError: the home was closed."""
        with self._lock:
            return self._check_open()

    def open_search(self) -> SearchService:
        # Opened under the lock: what several threads first use at once is made once.
        with self._lock:
            return self._check_open().chat.search

    def open_web(self) -> WebSearch:
        with self._lock:
            return self._check_open().web.search

    def find_readers(self) -> Readers:
        """Return what the asker may read now."""
        container = self.get()
        if self._own is not None:
            return container.home_database.resolve_readers(self._own)
        return container.home_database.resolve_readers_of_owner(Readers.of())

    def reopen(self) -> None:
        """Open the index anew, unless another thread has done so since it was replaced."""
        with self._lock:
            container = self._check_open()
            active = container.engine.versions.active()
            if active is None or active.embedder != container.engine.version.embedder:
                # Other threads may still search it.
                self._replaced.append(container)
                self._container = container.reopen()

    def _check_open(self) -> Container:
        if self._is_closed:
            raise ConflictError("The home of Quarry was closed. Open it again.")
        return self._container
