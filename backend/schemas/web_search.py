"""JSON of web search: its providers, its rules, and what came of a search."""

from collections.abc import Iterable
from datetime import datetime
from typing import Self

from pydantic import JsonValue

from backend.schemas.base import Schema, with_example
from backend.store.web_search import StoredProvider, WebRules
from backend.web_search.providers.registry import PROVIDER_KINDS, describe_receiver
from backend.web_search.search import get_limit
from backend.web_search.search_outcome import ProviderAttempt, WebOutcome
from connectors.settings_form import Form

_PROVIDER: dict[str, JsonValue] = {
    "name": "searxng",
    "kind": "searxng",
    "title": "SearXNG",
    "settings": {"api_url": "https://searx.example.com"},
    "has_credential": False,
    "is_enabled": True,
    "per_minute": 60,
    "receiver": "searx.example.com",
    "waits_until": None,
    "wait_reason": "",
}
_RULES: dict[str, JsonValue] = {
    "is_on": True,
    "allowed_domains": [],
    "blocked_domains": ["example.net"],
    "keeps_internal_names": True,
}
_TERMS: dict[str, JsonValue] = {"engine": "DuckDuckGo", "url": "https://duckduckgo.com/terms"}
_FAILED: dict[str, JsonValue] = {
    "provider": "tavily",
    "service": "Tavily",
    "receiver": "api.tavily.com",
    "sent": "parental leave law 2026",
    "sites": [],
    "found": 0,
    "failure": "quota",
    "reason": "The plan of tavily at Tavily is used up (status 432).",
}
_FOUND: dict[str, JsonValue] = {
    "title": "Parental leave",
    "url": "https://www.example.org/leave",
    "summary": "What changed in 2026.",
    "published": "2026-03-02T09:30:00Z",
    "provider": "searxng",
}


class WebProviderResponse(Schema):
    """A provider of web search. No credential is in it."""

    model_config = with_example(**_PROVIDER)

    name: str
    kind: str
    title: str
    """The name of its kind."""
    settings: dict[str, JsonValue]
    has_credential: bool
    is_enabled: bool
    per_minute: int
    """The most searches a minute, of each process of the server."""
    receiver: str
    """Whom queries are sent to."""
    waits_until: datetime | None
    """It is not asked before; null: it may be asked."""
    wait_reason: str

    @classmethod
    def from_stored(cls, provider: StoredProvider) -> Self:
        values, wait = provider.values, provider.wait
        kind = PROVIDER_KINDS.get(values.kind)
        return cls.model_validate(
            {
                "name": values.name,
                "kind": values.kind,
                "title": kind.title if kind else values.kind,
                "settings": dict(values.settings),
                "has_credential": values.sealed_credential is not None,
                "is_enabled": values.is_enabled,
                "per_minute": get_limit(provider),
                "receiver": describe_receiver(values.kind, values.settings),
                "waits_until": wait.until if wait else None,
                "wait_reason": wait.reason if wait else "",
            }
        )


class EngineTermsResponse(Schema):
    """Where the terms of a search engine are."""

    model_config = with_example(**_TERMS)

    engine: str
    url: str


class WebProviderKindResponse(Schema):
    """A kind of provider, and what is entered for one."""

    model_config = with_example(
        kind="ddgs",
        title="Local: search engines without a key",
        help="Public search engines without a key.",
        settings={"type": "object"},
        credential=None,
        per_minute=20,
        notice="Read the terms of the engines.",
        terms=[_TERMS],
    )

    kind: str
    title: str
    help: str
    settings: dict[str, JsonValue]
    """JSON schema."""
    credential: dict[str, JsonValue] | None
    """JSON schema; null where none is entered."""
    per_minute: int
    """The most searches a minute, where no other limit is set."""
    notice: str
    """What an admin should know before adding one; mostly empty."""
    terms: tuple[EngineTermsResponse, ...]
    """Of the engines that are asked without an account."""

    @classmethod
    def of(cls, name: str) -> Self:
        """Return the kind of this name, which exists."""
        kind = PROVIDER_KINDS[name]
        settings, credential = Form.from_model(kind.settings), Form.from_model(kind.credential)
        return cls(
            kind=name,
            title=kind.title,
            help=settings.help,
            settings=kind.settings.model_json_schema(),
            credential=kind.credential.model_json_schema() if credential.parts else None,
            per_minute=kind.per_minute,
            notice=kind.notice,
            terms=tuple(map(EngineTermsResponse.model_validate, kind.terms)),
        )


class WebRulesResponse(Schema):
    """Whether the web is searched, and what may be in a search of it."""

    model_config = with_example(**_RULES)

    is_on: bool
    allowed_domains: tuple[str, ...]
    """With their subdomains; empty: all."""
    blocked_domains: tuple[str, ...]
    keeps_internal_names: bool
    """Whether names and codes of documents that not everybody may read are kept out of queries."""


class WebSettingsResponse(WebRulesResponse):
    """All that is set of web search."""

    model_config = with_example(**_RULES, providers=[_PROVIDER])

    providers: tuple[WebProviderResponse, ...]
    """In the order in which they are asked."""

    @classmethod
    def of_stored(cls, rules: WebRules, providers: Iterable[StoredProvider]) -> Self:
        return cls(
            is_on=rules.is_on,
            allowed_domains=rules.allowed_domains,
            blocked_domains=rules.blocked_domains,
            keeps_internal_names=rules.keeps_internal_names,
            providers=tuple(map(WebProviderResponse.from_stored, providers)),
        )


class WebResultResponse(Schema):
    model_config = with_example(**_FOUND)

    title: str
    url: str
    summary: str
    """Plain text."""
    published: datetime | None
    """Where the engine says so."""
    provider: str


class ProviderAttemptResponse(Schema):
    """How one provider was asked."""

    model_config = with_example(**_FAILED)

    provider: str
    service: str
    """The name of its kind."""
    receiver: str
    """Whom the query was sent to."""
    sent: str | None
    """The query as it was sent; null where none was."""
    sites: tuple[str, ...]
    """The domains that results were asked of; empty: any."""
    found: int
    failure: str | None
    """Why it did not answer: `credential`, `quota`, `rate limit`, `too slow`, `unavailable`, `settings`, `unusable`
    or `nothing found`; null: it did."""
    reason: str
    """The same as a sentence."""

    @classmethod
    def from_attempt(cls, attempt: ProviderAttempt) -> Self:
        sent, failure = attempt.sent, attempt.failure
        return cls(
            provider=attempt.provider,
            service=attempt.service,
            receiver=attempt.receiver,
            sent=sent.text if sent else None,
            sites=sent.sites if sent else (),
            found=attempt.found,
            failure=failure.kind.value if failure else None,
            reason=failure.reason if failure else "",
        )


class WebOutcomeResponse(Schema):
    """What came of a search: the results of the first provider that found something."""

    model_config = with_example(answered_by="searxng", results=[_FOUND], attempts=[_FAILED])

    answered_by: str | None
    """The name of that provider; null: none found anything."""
    results: tuple[WebResultResponse, ...]
    attempts: tuple[ProviderAttemptResponse, ...]
    """In the order in which the providers were asked."""

    @classmethod
    def from_outcome(cls, outcome: WebOutcome) -> Self:
        return cls(
            answered_by=outcome.answered_by,
            results=tuple(map(WebResultResponse.model_validate, outcome.results)),
            attempts=tuple(map(ProviderAttemptResponse.from_attempt, outcome.attempts)),
        )
