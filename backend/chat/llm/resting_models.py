"""Remember which language models failed lately, so that not every call waits for them."""

import time
from threading import Lock

from backend.chat.llm.model_settings import ModelSettings

REST_SECONDS = 60.0
"""So long a model that failed is left alone."""


class RestingModels:
    """Models that failed lately, by their settings: one that was changed is tried at once. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._until: dict[ModelSettings, float] = {}

    def add(self, model: ModelSettings) -> None:
        """Leave a model alone from now on, for a while."""
        now = time.monotonic()
        with self._lock:
            self._until = {one: until for one, until in self._until.items() if until > now}
            self._until[model] = now + REST_SECONDS

    def __contains__(self, model: ModelSettings) -> bool:
        with self._lock:
            return time.monotonic() < self._until.get(model, 0.0)
