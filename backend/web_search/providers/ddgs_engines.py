"""Public search engines without a key or an account, by the package `ddgs` (the extra `web`).

Its HTTP client does not pass by the address guard: it connects to the addresses of the engines and of the proxy alone,
none of which comes from a query or a result.
"""

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr

from backend.web_search.providers.provider import EngineTerms, FetchRendered, ProviderKind
from backend.web_search.results import WebQuery, WebResult
from connectors.errors import NotConfiguredError, TemporarilyUnavailableError
from connectors.http_client.address_guard import (
    AddressNotAllowedError,
    find_forbidden,
    validate_host,
)
from connectors.http_client.response import RateLimitedError
from indexing.runtime.deadline import Deadline, DeadlineExceededError

if TYPE_CHECKING:
    from ddgs import DDGS
    from ddgs.exceptions import DDGSException

Engine: TypeAlias = Literal[
    "brave", "duckduckgo", "grokipedia", "mojeek", "startpage", "wikipedia", "yahoo"
]
_TERMS = (
    EngineTerms("Brave", "https://brave.com/terms-of-use/"),
    EngineTerms("DuckDuckGo", "https://duckduckgo.com/terms"),
    EngineTerms("Grokipedia", "https://x.ai/legal/terms-of-service"),
    EngineTerms("Mojeek", "https://www.mojeek.com/about/terms"),
    EngineTerms("Startpage", "https://www.startpage.com/en/terms-of-service"),
    EngineTerms("Wikipedia", "https://foundation.wikimedia.org/wiki/Policy:Terms_of_Use"),
    EngineTerms("Yahoo", "https://legal.yahoo.com/us/en/yahoo/terms/otos/index.html"),
)
_LIMITED = timedelta(minutes=1)
_PROXY_SCHEMES = ("http", "https", "socks5", "socks5h")
_REGIONS = MappingProxyType(
    # A country and a language; the engines know the first, Wikipedia the second.
    {"ar": "xa-ar", "cs": "cz-cs", "da": "dk-da", "de": "de-de", "el": "gr-el", "en": "us-en"}
    | {"es": "es-es", "fi": "fi-fi", "fr": "fr-fr", "he": "il-he", "hu": "hu-hu", "it": "it-it"}
    | {"ja": "jp-ja", "ko": "kr-ko", "nl": "nl-nl", "no": "no-no", "pl": "pl-pl", "pt": "br-pt"}
    | {"ro": "ro-ro", "ru": "ru-ru", "sv": "se-sv", "tr": "tr-tr", "uk": "ua-uk", "zh": "cn-zh"}
)


def _check_proxy(proxy: str) -> str:
    url = urlsplit(proxy.strip())
    if proxy.strip() and not _leads_to_host(url):
        raise ValueError("Write a proxy as http://proxy.example.com:3128, or with socks5://.")
    if url.username or url.password:
        raise ValueError("Give the user and the password of the proxy as the credential.")
    if url.hostname and (reason := find_forbidden(url.hostname)):
        raise ValueError(f"{url.hostname} {reason}.")
    return proxy.strip()


def _leads_to_host(url: SplitResult) -> bool:
    """Return whether the package takes the address of a proxy.

    What it does not take would end the search, and no next provider would be asked.
    """
    try:
        return (
            url.scheme in _PROXY_SCHEMES
            and bool(validate_host(url.hostname or ""))
            and url.port != 0
        )
    except (AddressNotAllowedError, ValueError):
        return False


def _check_login(login: SecretStr) -> SecretStr:
    """Check a login, with a message that does not repeat it."""
    text = login.get_secret_value()
    if text and (":" not in text or "@" in text or not text.isprintable() or " " in text):
        raise ValueError("Write USER:PASSWORD, with %40 for an @ in it.")
    return login


class DdgsSettings(BaseModel):
    """Public search engines without a key: DuckDuckGo and others, by the package ddgs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    engines: tuple[Engine, ...] = Field(min_length=1, description="The engines that are asked.")
    proxy: Annotated[str, AfterValidator(_check_proxy)] = Field(
        default="",
        description="The proxy that queries go through, such as http://proxy.example.com:3128.",
    )


class DdgsCredential(BaseModel):
    """User name and password of the proxy, if it requires them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    proxy_login: Annotated[SecretStr, AfterValidator(_check_login)] = Field(
        default=SecretStr(""), description="USER:PASSWORD."
    )


@dataclass(frozen=True, slots=True)
class DdgsProvider:
    name: str
    engines: tuple[Engine, ...]
    proxy: str = ""
    login: str = field(default="", repr=False)

    def search(self, query: WebQuery, deadline: Deadline) -> list[WebResult]:
        """See `SearchProvider.search`. No engine says when a page was published."""
        make, failed = _load_ddgs()
        deadline.check()
        try:
            found = _call_until(deadline, lambda: self._ask(make, query, deadline))
        except failed as error:
            return self._interpret(error)
        return [
            WebResult(
                title=item.get("title") or "",
                url=item.get("href") or "",
                summary=item.get("body") or "",
                published=None,
                provider=self.name,
            )
            for item in found
        ]

    def _ask(self, make: "type[DDGS]", query: WebQuery, deadline: Deadline) -> list[dict[str, str]]:
        # Whole seconds, and at least one: the wait for the call is what the deadline bounds.
        seconds = max(1, int(deadline.remaining()))
        return make(proxy=self._full_proxy, timeout=seconds).text(
            query.text_with_sites,
            region=_REGIONS.get(query.language or "", "us-en"),
            timelimit=query.freshness.value[0] if query.freshness else None,
            max_results=query.limit,
            backend=",".join(self.engines),
        )

    @property
    def _full_proxy(self) -> str | None:
        scheme, _, rest = self.proxy.partition("://")
        login = f"{self.login}@" if self.login else ""
        return f"{scheme}://{login}{rest}" if self.proxy else None

    def _interpret(self, error: "DDGSException") -> list[WebResult]:
        """Return nothing where that is the reason. Raises the errors of `SearchProvider.search`."""
        said = str(error).replace(self.login, "…") if self.login else str(error)
        said = " ".join(said.split())[:200]
        match type(error).__name__:
            case _ if "No results found" in said:
                return []
            case "RatelimitException":
                raise RateLimitedError(
                    f"The engines of {self.name} ask to wait: they were asked too often.", _LIMITED
                ) from None
            case _:
                raise TemporarilyUnavailableError(
                    f"No engine of {self.name} answers ({said}).", _LIMITED
                ) from None


def _load_ddgs() -> "tuple[type[DDGS], type[DDGSException]]":
    """Load the package. Raises NotConfiguredError: it is not installed."""
    try:
        from ddgs import DDGS
        from ddgs.exceptions import DDGSException
    except ImportError as error:
        raise NotConfiguredError(
            "Search engines without a key need a package that is not installed: pip install 'quarry-search[web]'."
        ) from error
    # It logs the addresses that do not answer, in which the queries of people stand.
    logging.getLogger("ddgs").setLevel(logging.WARNING)
    return DDGS, DDGSException


def _call_until(
    deadline: Deadline, call: Callable[[], list[dict[str, str]]]
) -> list[dict[str, str]]:
    """Return what a call returns that knows no deadline. It goes on in its thread until its own limits end it.

    Raises:
        DeadlineExceededError: it does not return in time.
    """
    executor = ThreadPoolExecutor(1, thread_name_prefix="web-search")
    try:
        return executor.submit(call).result(deadline.remaining())
    except TimeoutError as error:
        raise DeadlineExceededError(DeadlineExceededError.__doc__) from error
    finally:
        executor.shutdown(wait=False)


def _make_provider(
    name: str, settings: DdgsSettings, credential: DdgsCredential, _: FetchRendered
) -> DdgsProvider:
    return DdgsProvider(
        name=name,
        engines=settings.engines,
        proxy=settings.proxy,
        login=credential.proxy_login.get_secret_value(),
    )


def _list_engines(settings: DdgsSettings) -> str:
    return ", ".join(settings.engines)


PROVIDER_KIND = ProviderKind(
    title="Local: search engines without a key",
    settings=DdgsSettings,
    credential=DdgsCredential,
    provider=_make_provider,
    get_receiver=_list_engines,
    per_minute=20,
    notice="The engines are asked as a browser asks them. Their terms of use restrict or forbid automated queries: read"
    " those of the engines that you choose before you add this.",
    terms=_TERMS,
)
