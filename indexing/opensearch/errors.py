"""Translates what the cluster refuses and what the driver raises into our errors."""

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from opensearchpy.exceptions import (
    ConnectionError as Unreachable,
)
from opensearchpy.exceptions import (
    ConnectionTimeout,
    ImproperlyConfigured,
    OpenSearchException,
    SerializationError,
    SSLError,
    TransportError,
)

from connectors.errors import (
    ActionRequiredError,
    ConflictError,
    DamagedDataError,
    NotConfiguredError,
    TemporarilyUnavailableError,
)
from indexing.runtime.deadline import Deadline, DeadlineExceededError

RETRY_SOON = timedelta(seconds=10)
"""When a cluster that is busy, or elects a manager, may be tried again."""

_NO_REASON = "no reason given"
"""Instead of a blank, such as a proxy sends that refuses without a body."""

BUSY_STATUSES = frozenset({408, 429, 502, 503, 504})

ClusterError = TemporarilyUnavailableError | ActionRequiredError


@contextmanager
def translate_errors(deadline: Deadline | None = None) -> Iterator[None]:
    """Translate the driver's errors within the block.

    Raises:
        TemporarilyUnavailableError: the cluster is unreachable or busy.
        ActionRequiredError: sign-in, TLS, a missing index, a full disk.
        DeadlineExceededError: no response before `deadline`.
    """
    try:
        yield
    except (OpenSearchException, ImproperlyConfigured) as error:
        if deadline is not None and deadline.remaining() == 0.0:
            raise DeadlineExceededError(DeadlineExceededError.__doc__) from error
        raise to_error(error) from error


def to_error(error: Exception) -> ClusterError:
    """Return our error for an exception of the driver."""
    match error:
        case SSLError():
            return _tls_error(error)
        case ConnectionTimeout():
            return TemporarilyUnavailableError("OpenSearch did not answer in time.", RETRY_SOON)
        case Unreachable():
            return _connection_error(error)
        case SerializationError():
            return NotConfiguredError(
                "The server at this address is not OpenSearch: its response is not valid. Check the address."
            )
        case TransportError():
            return refusal_to_error(status_of(error), *read_reason(error.info, str(error.error)))
        case _:
            return NotConfiguredError(f"Cannot connect to OpenSearch: {error}.")


def status_of(error: TransportError) -> int:
    """Return the HTTP status, or 0 without a response."""
    return error.status_code if isinstance(error.status_code, int) else 0


def read_reason(body: Any, fallback: str = "") -> tuple[str, str]:
    """Return type and reason of an error body or a failed item, with the underlying cause."""
    error = body.get("error", body) if isinstance(body, Mapping) else body
    if not isinstance(error, Mapping):
        return fallback, str(error or fallback or _NO_REASON)
    first = (error.get("root_cause") or [error])[0]
    reason = str(first.get("reason") or fallback or _NO_REASON)
    cause = _deepest_reason(error)
    return str(first.get("type", fallback)), f"{reason} ({cause})" if cause else reason


def _deepest_reason(error: Mapping[str, Any]) -> str:
    while cause := error.get("caused_by"):
        error = cause
        if not error.get("caused_by"):
            return str(error.get("reason", ""))
    return ""


def check_shards(response: Mapping[str, Any]) -> None:
    """Raise the error of a shard that failed an operation on all shards."""
    shards = response["_shards"]
    if shards["failed"]:
        failure = (shards.get("failures") or [{}])[0]
        raise refusal_to_error(
            failure.get("status", 0), *read_reason(failure.get("reason"), "a shard failed")
        )


def refusal_to_error(status: int, kind: str, reason: str) -> ClusterError:
    """Return the error for a response, or one of its items, with this status, type and reason."""
    # A full disk shows only in the text: its status is that of a busy cluster.
    if "flood-stage" in reason or "read-only" in reason or "/12/" in reason:
        return _disk_full_error(reason)
    if "create-index blocked" in reason:
        return _no_new_index_error(reason)
    match kind:
        case "index_not_found_exception":
            return DamagedDataError(
                f"The index does not exist ({reason}). It may have been deleted. Restart, then sync its"
                " sources."
            )
        case "strict_dynamic_mapping_exception" | "mapper_parsing_exception":
            return _mapping_error(reason)
        case "cluster_block_exception" if status not in BUSY_STATUSES:
            return ConflictError(
                f"The cluster refuses to write: {reason}. Remove the block, then try again."
            )
    return _status_to_error(status, kind, reason)


def _status_to_error(status: int, kind: str, reason: str) -> ClusterError:
    match status:
        case 401:
            return NotConfiguredError(
                "OpenSearch refused the sign-in. Check the configured user and password, client certificate"
                " or AWS credentials."
            )
        case 403:
            return NotConfiguredError(
                f"OpenSearch does not permit this to the configured user: {reason}. Grant the user access to"
                " the indexes of the prefix, or configure another user."
            )
        case 413:
            return NotConfiguredError(
                f"OpenSearch, or a proxy in front of it, accepts no request of this size: {reason}."
                " Allow 10 MB (http.max_content_length, client_max_body_size)."
            )
        case status if status in BUSY_STATUSES or status == 0:
            return TemporarilyUnavailableError(
                f"OpenSearch is busy or incomplete: {reason} ({kind}).", RETRY_SOON
            )
        case status if status >= 500:
            return TemporarilyUnavailableError(f"OpenSearch failed: {reason} ({kind}).", RETRY_SOON)
        case _:
            return NotConfiguredError(
                f"OpenSearch refused the request: {reason} ({kind}, status {status})."
            )


def _mapping_error(reason: str) -> ActionRequiredError:
    if "No handler for type [knn_vector]" in reason:
        return NotConfiguredError(
            "OpenSearch has no k-NN plugin: install opensearch-knn on every node."
        )
    return DamagedDataError(
        f"The index does not accept the record: {reason}. It was created by another version of Quarry or"
        " for another embedding model. Rebuild it: quarry reindex."
    )


def _disk_full_error(reason: str) -> ConflictError:
    return ConflictError(
        f"The disk of the cluster is nearly full, so it refuses to write: {reason}. Free space or add a"
        " node. The block is removed when the disk is below its high watermark again, or by setting"
        " index.blocks.read_only_allow_delete to null."
    )


def _no_new_index_error(reason: str) -> ConflictError:
    return ConflictError(
        "The cluster creates no new index, as it does when the disks of all nodes are nearly full:"
        f" {reason} Free space or add a node. The block is removed when a disk is below its high watermark"
        " again, or by setting cluster.blocks.create_index to null."
    )


def _tls_error(error: SSLError) -> NotConfiguredError:
    cause = error.info
    reason = getattr(cause, "reason", cause)
    if isinstance(reason, ssl.SSLCertVerificationError) or "CERTIFICATE_VERIFY_FAILED" in str(
        cause
    ):
        return NotConfiguredError(
            f"The certificate of OpenSearch is not trusted: {cause}. Configure the certificate of the"
            " authority that signed it, and use the host name that it was issued for."
        )
    return NotConfiguredError(
        f"OpenSearch closed the TLS connection: {cause}. Check that the address is https, and whether a"
        " client certificate is required."
    )


def _connection_error(error: Unreachable) -> ClusterError:
    cause = str(error.info)
    if "CERTIFICATE_REQUIRED" in cause or "certificate required" in cause:
        return NotConfiguredError(
            "OpenSearch requires a client certificate. Configure its file and that of its key."
        )
    return TemporarilyUnavailableError(
        f"OpenSearch cannot be reached: {_describe_cause(error.info)}.", RETRY_SOON
    )


def _describe_cause(cause: object) -> str:
    """Return readable text: the string of an exception with several arguments shows a tuple of objects."""
    parts = cause.args if isinstance(cause, BaseException) else ()
    words = [part for part in parts if isinstance(part, str)]
    return (words[-1] if words else str(cause)).rstrip(".")
