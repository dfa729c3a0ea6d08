"""Connects to the cluster: sign-in, TLS and timeouts."""

import gzip
import logging
import ssl
import warnings
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import SplitResult, urlsplit

import orjson
from opensearchpy import (
    JSONSerializer,
    OpenSearch,
    SerializationError,
    Urllib3AWSV4SignerAuth,
    Urllib3HttpConnection,
)
from opensearchpy.exceptions import ConnectionError as Unreachable
from urllib3 import Timeout
from urllib3.exceptions import InsecureRequestWarning

from connectors.errors import NotConfiguredError
from indexing.opensearch.cancellable_connection import cancellable
from indexing.runtime.deadline import Deadline

CONNECT_SECONDS = 5.0
"""For a connection; a running node accepts at once."""
CONNECT_SHARE = 0.25
"""Of the remaining time, so that some is left for another node after one that lost power."""
GZIP_LEVEL = 1
"""A third more bytes than the default, in a fifth of its time."""

# Errors are raised; the driver's own log messages are only for those who configure a handler.
logging.getLogger("opensearch").addHandler(logging.NullHandler())

_INCOMPLETE = "the response is incomplete"

Client: TypeAlias = OpenSearch

Verification: TypeAlias = Literal["unless-loopback", "always", "never"]


@dataclass(frozen=True, slots=True)
class Anonymous:
    """No sign-in."""


@dataclass(frozen=True, slots=True)
class Password:
    user: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    certificate: Path
    """PEM; may contain the key too."""
    key: Path | None = None


@dataclass(frozen=True, slots=True)
class AwsSigning:
    """Signature Version 4 with the credentials that botocore finds."""

    region: str
    service: Literal["es", "aoss"] = "es"
    """Managed domains, or OpenSearch Serverless."""


SignIn: TypeAlias = Anonymous | Password | ClientCertificate | AwsSigning


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSearchSettings:
    urls: tuple[str, ...]
    """Nodes of one cluster, `http(s)://host[:port][/path]`; if one does not answer, the next is used."""
    sign_in: SignIn = field(default_factory=Anonymous)
    ca_file: Path | None = None
    """PEM of the authority that signed the cluster's certificate; otherwise the system's authorities."""
    verification: Verification = "unless-loopback"
    timeout: float = 60.0
    """Seconds for one response, unless a deadline is earlier."""
    connections: int = 16
    """Kept open per node."""


def connect(settings: OpenSearchSettings) -> OpenSearch:
    """Create a client for any number of threads, without sending anything.

    It uses another node if one is unreachable, and retries nothing else: the caller knows the deadline.

    Raises:
        NotConfiguredError: an invalid setting.
    """
    urls = [_parse_url(url) for url in settings.urls]
    if not urls:
        raise NotConfiguredError("No OpenSearch address is configured.")
    for url in urls:
        _check_encryption(url, settings)
    return OpenSearch(
        [_host_options(url, settings) for url in urls],
        connection_class=_Connection,
        serializer=_Json(),
        timeout=settings.timeout,
        max_retries=len(urls) - 1,
        retry_on_status=(),
        pool_maxsize=settings.connections,
        **_sign_in_options(settings.sign_in),
    )


def request_timeout(deadline: Deadline) -> Mapping[str, Any]:
    """Return the request parameters for the remaining time."""
    left = max(deadline.remaining(), 0.001)
    return {
        "request_timeout": Timeout(connect=min(CONNECT_SECONDS, left * CONNECT_SHARE), read=left)
    }


def _parse_url(url: str) -> SplitResult:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise NotConfiguredError(
            f"{url!r} is not a valid OpenSearch address. Use https://host:port."
        )
    if parts.username or parts.password:
        raise NotConfiguredError(
            f"The OpenSearch address of {parts.hostname} contains a user name or a password. Configure them"
            " separately: addresses are shown and logged."
        )
    return parts


def _check_encryption(url: SplitResult, settings: OpenSearchSettings) -> None:
    protected = url.scheme == "https" or is_loopback(url) or settings.verification == "never"
    if isinstance(settings.sign_in, Password) and not protected:
        raise NotConfiguredError(
            f"The password would be sent to {url.hostname} unencrypted. Use an https:// address, or disable"
            " verification if this network is trusted."
        )


def is_loopback(url: SplitResult) -> bool:
    host = url.hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _host_options(url: SplitResult, settings: OpenSearchSettings) -> dict[str, Any]:
    secure = url.scheme == "https"
    host = {
        "host": url.hostname,
        "port": url.port or (443 if secure else 9200),
        "url_prefix": url.path,
        "use_ssl": secure,
        "http_compress": not is_loopback(url),
    }
    return host | {"ssl_context": _tls_context(url, settings)} if secure else host


def _tls_context(url: SplitResult, settings: OpenSearchSettings) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=settings.ca_file)
    except (OSError, ssl.SSLError) as error:
        raise NotConfiguredError(
            f"Cannot read the authorities' certificates in {settings.ca_file}: {error}."
        ) from error
    if not _verifies(url, settings.verification):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        # Somebody chose this; no warning is needed.
        warnings.filterwarnings(
            "ignore", f"Unverified HTTPS request.*'{url.hostname}'", InsecureRequestWarning
        )
    if isinstance(settings.sign_in, ClientCertificate):
        _load_certificate(settings.sign_in, context)
    return context


def _verifies(url: SplitResult, verification: Verification) -> bool:
    match verification:
        case "always":
            return True
        case "never":
            return False
        case "unless-loopback":
            return not is_loopback(url)


def _load_certificate(sign_in: ClientCertificate, context: ssl.SSLContext) -> None:
    try:
        context.load_cert_chain(sign_in.certificate, sign_in.key)
    except (OSError, ssl.SSLError) as error:
        raise NotConfiguredError(
            f"Cannot use the client certificate {sign_in.certificate}: {error}. It must be a PEM file that"
            " contains its key, or the key's file must be configured."
        ) from error


def _sign_in_options(sign_in: SignIn) -> dict[str, Any]:
    match sign_in:
        case Password(user, password):
            # In UTF-8, as RFC 7617 requires and the security plugin reads it; the driver encodes Latin-1.
            encoded = b64encode(f"{user}:{password}".encode()).decode()
            return {"headers": {"authorization": f"Basic {encoded}"}}
        case AwsSigning(region, service):
            return {"http_auth": _aws_signer(region, service)}
        case Anonymous() | ClientCertificate():
            return {}


def _aws_signer(region: str, service: str) -> Any:
    try:
        from botocore.session import Session  # type: ignore[import-untyped]
    except ImportError as error:
        raise NotConfiguredError(
            "AWS request signing needs the package botocore: install quarry-search[aws]."
        ) from error
    credentials = Session().get_credentials()
    if credentials is None:
        raise NotConfiguredError(
            "No AWS credentials were found. Configure a profile, a role, or AWS_ACCESS_KEY_ID and"
            " AWS_SECRET_ACCESS_KEY."
        )
    return Urllib3AWSV4SignerAuth(credentials, region, service)


class _Json(JSONSerializer):
    """The driver's serializer, with a faster parser: parsing is half of a search's cost on our side."""

    def loads(self, s: Any) -> Any:
        try:
            return orjson.loads(s)
        except orjson.JSONDecodeError as error:
            raise SerializationError(s, error) from error


class _Connection(Urllib3HttpConnection):
    """The driver's connection, with faster compression, cancellation, and a check for incomplete responses."""

    def perform_request(self, method: str, *args: Any, **kwargs: Any) -> Any:
        response = super().perform_request(method, *args, **kwargs)
        # A response cut within its head looks like one without a body, which the cluster never sends.
        if method != "HEAD" and not response[2]:
            raise Unreachable("N/A", _INCOMPLETE, ConnectionResetError(_INCOMPLETE))
        return response

    def _create_urllib3_pool(self) -> None:
        super()._create_urllib3_pool()
        self.pool.ConnectionCls = cancellable(self.pool.ConnectionCls)

    def _gzip_compress(self, body: Any) -> bytes:
        return gzip.compress(body, compresslevel=GZIP_LEVEL)
