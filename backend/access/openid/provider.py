"""The identity provider: its settings, what it says of itself (OpenID Connect Discovery 1.0), and requests to it.

The operator of Quarry names the provider, so its host may be in the private network; nothing else there may.
"""

import re
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus, urlsplit

from pydantic import BaseModel, ConfigDict, ValidationError

from backend.access.openid.errors import SignInRefusedError, translated_errors
from connectors.closing import Closing
from connectors.errors import NotConfiguredError, TemporarilyUnavailableError
from connectors.http_client.address_guard import (
    AddressNotAllowedError,
    AllowedNetworks,
    validate_url,
)
from connectors.http_client.client import WebClient
from connectors.http_client.request import MEBIBYTE, Authorization, RequestLimits, get_origin
from connectors.http_client.response import Response
from connectors.http_client.retry_policy import RetryPolicy

_METADATA_LIFETIME = 3600.0
"""Seconds after which the provider is asked again what it says of itself."""
_PAUSE = 5.0
"""Seconds for which a provider that did not respond is not asked again what it says of itself."""
_LIMITS = RequestLimits(total=10.0, connect=5.0, read=10.0, max_bytes=MEBIBYTE, max_redirects=0)
"""A person waits. No address of the protocol redirects."""
_DOMAIN = re.compile(r"[^\s@*.]+(\.[^\s@*.]+)+")
_RETRY_POLICY = RetryPolicy(max_attempts=2, max_total_delay=1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSettings:
    """What the operator says of the provider."""

    issuer: str
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    """None for a public client, which PKCE alone protects."""
    scopes: tuple[str, ...] = ("openid", "email", "profile")
    groups_claim: str = "groups"
    domains: frozenset[str] = frozenset()
    """In lower case: the provider vouches for the addresses of these."""
    authority: Path | None = None
    """Certificates (PEM) that are trusted besides the public ones."""

    @property
    def host(self) -> str:
        """By which people know the provider."""
        return urlsplit(self.issuer).hostname or self.issuer


def is_of_domains(email: str, domains: Set[str]) -> bool:
    """Return whether a provider that vouches for the addresses of these domains may vouch for this one."""
    return email.rpartition("@")[2] in domains


class ProviderMetadata(BaseModel):
    """The part of the discovery document that a sign-in needs."""

    model_config = ConfigDict(frozen=True)

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None = None
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    authorization_response_iss_parameter_supported: bool = False


class Provider(Closing):
    """Sends requests to the provider. Thread-safe; to be closed."""

    def __init__(
        self, settings: ProviderSettings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Set up what reads from the provider, without asking it yet.

        Raises:
            NotConfiguredError: the issuer is not an address that can be trusted, or the authority cannot be read.
        """
        self.settings = settings
        self._clock = clock
        self._lock = threading.Lock()
        self._metadata: tuple[float, ProviderMetadata] | None = None
        self._unavailable_until = float("-inf")
        self._client = WebClient(
            allowed_networks=_allow_issuer(settings.issuer),
            limits=_LIMITS,
            retry_policy=_RETRY_POLICY,
            ssl_context=_trust(settings.authority),
        )

    def close(self) -> None:
        self._client.close()

    def read_metadata(self) -> ProviderMetadata:
        """Return what the provider says of itself, at most an hour ago.

        Raises:
            NotConfiguredError: there is no such provider at the issuer's address.
            TemporarilyUnavailableError: it does not respond.
        """
        with self._lock:
            if self._metadata is None or self._clock() >= self._metadata[0]:
                self._metadata = (self._clock() + _METADATA_LIFETIME, self._try_to_discover())
            return self._metadata[1]

    def get_json(self, url: str, subject: str, access_token: str | None = None) -> dict[str, Any]:
        """Return the object at an address of the provider.

        Raises:
            SignInRefusedError: there is none.
            TemporarilyUnavailableError: it does not respond.
        """
        with translated_errors(subject):
            return _read_object(self._client.get(url, headers=_bearer(access_token)), subject)

    def post_json(
        self, url: str, subject: str, access_token: str, body: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the response to a request that only reads. Raises what `get_json` does."""
        with translated_errors(subject):
            response = self._client.query(url, json=dict(body), headers=_bearer(access_token))
            return _read_object(response, subject)

    def post_form(self, url: str, form: Mapping[str, str], headers: Mapping[str, str]) -> Response:
        """Send a form to the token endpoint, as it is. Raises what the client does."""
        return self._client.post(url, form=form, headers={**headers, "Accept": "application/json"})

    def _try_to_discover(self) -> ProviderMetadata:
        """Read the metadata; who waits for the same answer shares a failure, instead of waiting one after the other."""
        if self._clock() < self._unavailable_until:
            raise TemporarilyUnavailableError(
                "The identity provider did not respond a moment ago.", timedelta(seconds=_PAUSE)
            )
        try:
            return self._discover()
        except TemporarilyUnavailableError:
            self._unavailable_until = self._clock() + _PAUSE
            raise

    def _discover(self) -> ProviderMetadata:
        url = self.settings.issuer.rstrip("/") + "/.well-known/openid-configuration"
        try:
            metadata = ProviderMetadata.model_validate(self.get_json(url, url))
        except (SignInRefusedError, ValidationError) as error:
            raise NotConfiguredError(
                f"{url} does not describe an OpenID provider: check QUARRY_OIDC_ISSUER."
            ) from error
        _check_metadata(metadata, self.settings.issuer)
        return metadata


def parse_domains(text: str) -> frozenset[str]:
    """Return the domains of a setting, in lower case.

    Raises:
        NotConfiguredError: one of them is not a domain.
    """
    domains = frozenset(text.lower().replace(",", " ").split())
    if wrong := sorted(domain for domain in domains if not _DOMAIN.fullmatch(domain)):
        raise NotConfiguredError(
            f"QUARRY_OIDC_DOMAINS: {wrong[0]!r} is not a domain, such as example.com."
        )
    return domains


def client_authentication(
    settings: ProviderSettings, metadata: ProviderMetadata
) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return the headers and the fields of a form by which Quarry identifies itself (OpenID Connect Core 1.0, 9)."""
    client, secret = settings.client_id, settings.client_secret
    if secret is None:
        return {}, {"client_id": client}
    methods = metadata.token_endpoint_auth_methods_supported
    if "client_secret_basic" not in methods and "client_secret_post" in methods:
        return {}, {"client_id": client, "client_secret": secret}
    # Both are encoded before they are joined (RFC 6749, 2.3.1).
    pair = quote_plus(client), quote_plus(secret)
    return Authorization.basic(metadata.token_endpoint, *pair).headers, {}


def _allow_issuer(issuer: str) -> AllowedNetworks:
    try:
        url = validate_url(issuer)
    except AddressNotAllowedError as error:
        raise NotConfiguredError(f"QUARRY_OIDC_ISSUER cannot be used: {error}.") from error
    if url.scheme != "https" and not _is_this_machine(url.host):
        raise NotConfiguredError(
            "QUARRY_OIDC_ISSUER has to begin with https://; http:// is for a provider on this machine."
        )
    return AllowedNetworks(hosts=frozenset({url.raw_host.decode("ascii")}))


def _is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _trust(authority: Path | None) -> ssl.SSLContext | None:
    if authority is None:
        return None
    try:
        context = ssl.create_default_context()
        context.load_verify_locations(authority)
    except (OSError, ssl.SSLError) as error:
        raise NotConfiguredError(f"QUARRY_OIDC_CA: {authority} cannot be read: {error}") from error
    return context


def _check_metadata(metadata: ProviderMetadata, issuer: str) -> None:
    if metadata.issuer != issuer:
        raise NotConfiguredError(
            f"The provider calls itself {metadata.issuer!r}; QUARRY_OIDC_ISSUER is {issuer!r}."
            " Both have to be the same, character by character."
        )
    endpoints = (
        metadata.authorization_endpoint,
        metadata.token_endpoint,
        metadata.jwks_uri,
        metadata.userinfo_endpoint,
    )
    for url in filter(None, endpoints):
        if not is_protected(url, issuer):
            raise NotConfiguredError(f"The provider names an address that is not encrypted: {url}")


def is_protected(url: str, issuer: str) -> bool:
    """Return whether a secret may be sent to an address: it is encrypted, or on this machine as the issuer is."""
    try:
        origin = get_origin(url)
        return origin[0] == "https" or origin == get_origin(issuer)
    except AddressNotAllowedError:
        return False


def _bearer(access_token: str | None) -> Mapping[str, str]:
    accept = {"Accept": "application/json"}
    return accept if access_token is None else accept | {"Authorization": f"Bearer {access_token}"}


def _read_object(response: Response, subject: str) -> dict[str, Any]:
    if response.status != 200:
        raise SignInRefusedError(f"{subject} responds with the status {response.status}.")
    return response.json_object()
