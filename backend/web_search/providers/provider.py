"""What a provider of web search is: its protocol, and what a kind of provider declares."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Generic, Protocol, Self, TypeAlias, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, model_validator

from backend.web_search.results import WebQuery, WebResult
from connectors.errors import TemporarilyUnavailableError
from connectors.http_client.setting_types import PrivateHosts, WebAddress, check_encrypted
from indexing.runtime.deadline import Deadline

S = TypeVar("S", bound=BaseModel)
C = TypeVar("C", bound=BaseModel)

LONGEST_KEY = 10_000

FetchRendered: TypeAlias = Callable[[str, Deadline], str]
"""Returns the HTML of a page as it is once its scripts have run. Raises the errors of `SearchProvider.search`."""


class SearchProvider(Protocol):
    def search(self, query: WebQuery, deadline: Deadline) -> Sequence[WebResult]:
        """Return what the engine finds, best first, as it says it: nothing is filtered or cleaned here.

        Raises:
            TemporarilyUnavailableError: it does not answer, or asks to wait; QuotaExceededError: its plan is used up.
            ActionRequiredError: it rejects the credential, or answers in a way that trying again does not mend.
            DeadlineExceededError: the time is up.
        """
        ...


class QuotaExceededError(TemporarilyUnavailableError):
    """The plan of the account allows no further search until it is renewed, or another is bought."""


@dataclass(frozen=True, slots=True)
class EngineTerms:
    """Where the terms of a search engine are."""

    engine: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderKind(Generic[S, C]):
    """A kind of provider.

    Attributes:
        title: The name that people know it by.
        provider: Makes a provider from its name, settings and credential, without connecting to it.
        get_receiver: Returns whom queries are sent to, such as a host.
        per_minute: The most searches a minute, where an admin sets no other limit.
        notice: What an admin should know before switching it on.
        terms: Those of the engines that are asked without an account.
    """

    title: str
    settings: type[S]
    credential: type[C]
    provider: Callable[[str, S, C, FetchRendered], SearchProvider]
    get_receiver: Callable[[S], str]
    per_minute: int = 60
    notice: str = ""
    terms: tuple[EngineTerms, ...] = ()


def _check_key(key: SecretStr) -> SecretStr:
    """Check a key, with messages that do not repeat it."""
    text = key.get_secret_value()
    if not text or len(text) > LONGEST_KEY or not (text.isascii() and text.isprintable()):
        raise ValueError("The key is empty, or has a character that no key has. Enter it again.")
    if " " in text:
        raise ValueError("There is a blank in the key. Copy it again, without the text around it.")
    return key


ApiKey: TypeAlias = Annotated[SecretStr, AfterValidator(_check_key)]


class KeyCredential(BaseModel):
    """The API key of an account."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: ApiKey = Field(title="API key", description="Created on the pages of the account.")


class ApiSettings(BaseModel):
    """What all providers with an address of an API have in common."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    api_url: WebAddress
    private_hosts: PrivateHosts = ()

    @model_validator(mode="after")
    def _check_encrypted(self) -> Self:
        check_encrypted(self.api_url, self.private_hosts)
        return self
