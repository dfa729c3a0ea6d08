"""Choose the embedding model, and load it when it is first used."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from backend.settings import Settings, variable

if TYPE_CHECKING:
    from indexing.embedding.embedder import Embedder
    from indexing.embedding.language_support import Understanding
    from indexing.index.versions import IndexVersion


@dataclass(frozen=True)
class EmbeddingModel:
    """The model that the settings name, or else the one that the index was built with."""

    settings: Settings
    home: Path
    active_version: Callable[[], "IndexVersion | None"]

    @property
    def folder(self) -> Path:
        """Where converted models are stored."""
        return self.settings.models or self.home / "models"

    @property
    def is_set(self) -> bool:
        return "embedding_model" in self.settings.model_fields_set

    @cached_property
    def name(self) -> str:
        """The model that is set; else that of the index; before there is an index, the default.

        Raises:
            NotConfiguredError: the index needs an embedding endpoint, and none is set.
        """
        from connectors.errors import NotConfiguredError

        settings = self.settings
        active = None if self.is_set else self.active_version()
        if active and active.embedder.precision == "remote" and settings.embedding_url is None:
            raise NotConfiguredError(
                f"The index was built with {active.model_name}, a model behind an endpoint. Set"
                f" {variable('embedding_url')} to that endpoint, or change to a local model:"
                " quarry reindex --model MODEL."
            )
        return active.model_name if active else settings.embedding_model

    @cached_property
    def embedder(self) -> "Embedder":
        return self._remote() if self.settings.embedding_url else self._local()

    def _local(self) -> "Embedder":
        from indexing.embedding.model_loading import load_embedder

        return load_embedder(self.name, self.folder, self.settings.threads)

    def _remote(self) -> "Embedder":
        from indexing.embedding.openai_embedder import OpenAiEmbedder, OpenAiEmbedderSettings

        settings, key = self.settings, self.settings.embedding_key
        return OpenAiEmbedder(
            OpenAiEmbedderSettings(
                url=settings.embedding_url or "",
                model=self.name,
                key=key.get_secret_value() if key else None,
                max_tokens=settings.embedding_tokens,
                query_prompt=settings.embedding_query_prompt,
                passage_prompt=settings.embedding_passage_prompt,
            )
        )

    @cached_property
    def language_support(self) -> "Understanding":
        """Which languages the model understands, measured once and stored beside it."""
        from indexing.embedding.language_support import understanding_of

        return understanding_of(self.embedder, self.folder)
