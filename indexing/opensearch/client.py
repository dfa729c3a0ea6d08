"""Connections to the cluster: who signs in, over which TLS, and how long is waited."""

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

from connectors.errors import ActionRequiredError
from indexing.opensearch.cancellable_connection import watched
from indexing.runtime.deadline import Deadline

CONNECT = 5.0
"""Seconds for a connection to stand; a node that is there answers at once."""
TO_CONNECT = 0.25
"""Of the time that is left, so that after a node that has lost its power there is some for the next one."""
QUICK = 1
"""Level of gzip: a third more bytes than the default, in a fifth of its time."""

# Whoever calls tells what went wrong; the driver's own words are for those who set up a log of them.
logging.getLogger("opensearch").addHandler(logging.NullHandler())

_CUT = "the answer was cut"

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
    """PEM; may hold the key too."""
    key: Path | None = None


@dataclass(frozen=True, slots=True)
class AwsSigning:
    """Signature Version 4 with whatever credentials botocore finds, as every AWS program does."""

    region: str
    service: Literal["es", "aoss"] = "es"
    """Managed domains, or the serverless kind."""


SignIn: TypeAlias = Anonymous | Password | ClientCertificate | AwsSigning


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSearchSettings:
    urls: tuple[str, ...]
    """Nodes of one cluster, `http(s)://host[:port][/path]`; where one does not answer the next is asked."""
    sign_in: SignIn = field(default_factory=Anonymous)
    ca_file: Path | None = None
    """PEM of the authority that signed the cluster's certificate; else those that the system trusts."""
    verification: Verification = "unless-loopback"
    timeout: float = 60.0
    """Seconds for one answer where no deadline says less."""
    connections: int = 16
    """Kept open to each node."""


def connect(settings: OpenSearchSettings) -> OpenSearch:
    """A client for any number of threads; nothing is sent yet.

    It asks another node where one cannot be reached, and repeats nothing else: who calls knows the
    deadline.

    Raises:
        ActionRequiredError: a setting that cannot work.
    """
    urls = [_split(url) for url in settings.urls]
    if not urls:
        raise ActionRequiredError("No address of OpenSearch is set.")
    for url in urls:
        _check_secrecy(url, settings)
    return OpenSearch(
        [_host(url, settings) for url in urls],
        connection_class=_Connection,
        serializer=_Json(),
        timeout=settings.timeout,
        max_retries=len(urls) - 1,
        retry_on_status=(),
        pool_maxsize=settings.connections,
        **_sign_in(settings.sign_in),
    )


def within(deadline: Deadline) -> Mapping[str, Any]:
    """Parameters of a request that is given up when the time is up."""
    left = max(deadline.remaining(), 0.001)
    return {"request_timeout": Timeout(connect=min(CONNECT, left * TO_CONNECT), read=left)}


def _split(url: str) -> SplitResult:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ActionRequiredError(f"{url!r} is no address of OpenSearch; write https://host:port.")
    if parts.username or parts.password:
        raise ActionRequiredError(
            f"The address of OpenSearch at {parts.hostname} holds a user name or a password. Take them out"
            " of it and set them on their own: addresses are shown and logged."
        )
    return parts


def _check_secrecy(url: SplitResult, settings: OpenSearchSettings) -> None:
    guarded = url.scheme == "https" or is_loopback(url) or settings.verification == "never"
    if isinstance(settings.sign_in, Password) and not guarded:
        raise ActionRequiredError(
            f"The password would be sent to {url.hostname} unencrypted. Set an https:// address, or switch"
            " verification off if this network may read it."
        )


def is_loopback(url: SplitResult) -> bool:
    host = url.hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _host(url: SplitResult, settings: OpenSearchSettings) -> dict[str, Any]:
    secure = url.scheme == "https"
    host = {
        "host": url.hostname,
        "port": url.port or (443 if secure else 9200),
        "url_prefix": url.path,
        "use_ssl": secure,
        "http_compress": not is_loopback(url),
    }
    return host | {"ssl_context": _tls(url, settings)} if secure else host


def _tls(url: SplitResult, settings: OpenSearchSettings) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=settings.ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ActionRequiredError(
            f"The certificates of authorities in {settings.ca_file} cannot be read: {error}."
        ) from error
    if not _verifies(url, settings.verification):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        # Nobody is to be warned of what somebody has set.
        warnings.filterwarnings(
            "ignore", f"Unverified HTTPS request.*'{url.hostname}'", InsecureRequestWarning
        )
    if isinstance(settings.sign_in, ClientCertificate):
        _show(settings.sign_in, context)
    return context


def _verifies(url: SplitResult, verification: Verification) -> bool:
    match verification:
        case "always":
            return True
        case "never":
            return False
        case "unless-loopback":
            return not is_loopback(url)


def _show(shown: ClientCertificate, context: ssl.SSLContext) -> None:
    try:
        context.load_cert_chain(shown.certificate, shown.key)
    except (OSError, ssl.SSLError) as error:
        raise ActionRequiredError(
            f"The client certificate {shown.certificate} cannot be used: {error}. It is to be a PEM file;"
            " its key stands in it, or in the file set for the key."
        ) from error


def _sign_in(sign_in: SignIn) -> dict[str, Any]:
    match sign_in:
        case Password(user, password):
            # In UTF-8, as RFC 7617 asks for and the security plugin reads it; the driver writes Latin-1.
            shown = b64encode(f"{user}:{password}".encode()).decode()
            return {"headers": {"authorization": f"Basic {shown}"}}
        case AwsSigning(region, service):
            return {"http_auth": _aws_signer(region, service)}
        case Anonymous() | ClientCertificate():
            return {}


def _aws_signer(region: str, service: str) -> Any:
    try:
        from botocore.session import Session  # type: ignore[import-untyped]
    except ImportError as error:
        raise ActionRequiredError(
            "Signing for AWS needs the package botocore: install quarry-search[aws]."
        ) from error
    credentials = Session().get_credentials()
    if credentials is None:
        raise ActionRequiredError(
            "No AWS credentials are found. Set a profile, a role, or AWS_ACCESS_KEY_ID and"
            " AWS_SECRET_ACCESS_KEY."
        )
    return Urllib3AWSV4SignerAuth(credentials, region, service)


class _Json(JSONSerializer):
    """The driver's, but that it reads quickly: half of what a search costs on our side is reading answers."""

    def loads(self, s: Any) -> Any:
        try:
            return orjson.loads(s)
        except orjson.JSONDecodeError as error:
            raise SerializationError(s, error) from error


class _Connection(Urllib3HttpConnection):
    """The driver's, but that it compresses quickly, can be cut while it waits for an answer, and takes no
    answer that the line cut for a whole one."""

    def perform_request(self, method: str, *args: Any, **kwargs: Any) -> Any:
        answer = super().perform_request(method, *args, **kwargs)
        # Cut in its head, an answer reads as one without a body. The cluster gives none such.
        if method != "HEAD" and not answer[2]:
            raise Unreachable("N/A", _CUT, ConnectionResetError(_CUT))
        return answer

    def _create_urllib3_pool(self) -> None:
        super()._create_urllib3_pool()
        self.pool.ConnectionCls = watched(self.pool.ConnectionCls)

    def _gzip_compress(self, body: Any) -> bytes:
        return gzip.compress(body, compresslevel=QUICK)
