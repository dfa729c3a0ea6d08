"""What the cluster refuses and what the driver raises, named by what the caller should do."""

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

from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.runtime.deadline import Deadline, DeadlineExceededError

SOON = timedelta(seconds=10)
"""When a cluster that is busy or electing may be asked again."""

BUSY = frozenset({408, 429, 502, 503, 504})

Named = TemporarilyUnavailableError | ActionRequiredError


@contextmanager
def named_errors(deadline: Deadline | None = None) -> Iterator[None]:
    """Whatever the driver raises inside is raised as ours.

    Raises:
        TemporarilyUnavailableError: the cluster cannot be reached or is busy; it may be well later.
        ActionRequiredError: sign-in, TLS, a missing index, a full disk: a person must mend something.
        DeadlineExceededError: an answer did not come before `deadline`.
    """
    try:
        yield
    except (OpenSearchException, ImproperlyConfigured) as error:
        if deadline is not None and deadline.remaining() == 0.0:
            raise DeadlineExceededError(DeadlineExceededError.__doc__) from error
        raise named(error) from error


def named(error: Exception) -> Named:
    """What to raise for an exception of the driver."""
    match error:
        case SSLError():
            return _of_tls(error)
        case ConnectionTimeout():
            return TemporarilyUnavailableError("OpenSearch did not answer in time.", SOON)
        case Unreachable():
            return _of_connection(error)
        case SerializationError():
            return ActionRequiredError(
                "What answers at the address of OpenSearch does not speak its language. Check the address."
            )
        case TransportError():
            return of_refusal(status_of(error), *told(error.info, str(error.error)))
        case _:
            return ActionRequiredError(f"The connection to OpenSearch cannot be made: {error}.")


def status_of(error: TransportError) -> int:
    """0 where no answer came."""
    return error.status_code if isinstance(error.status_code, int) else 0


def told(body: Any, fallback: str = "") -> tuple[str, str]:
    """Type and reason that a body of an error or of a failed item tells, with what is behind it."""
    error = body.get("error", body) if isinstance(body, Mapping) else body
    if not isinstance(error, Mapping):
        return fallback, str(error or fallback)
    first = (error.get("root_cause") or [error])[0]
    reason = str(first.get("reason") or fallback)
    behind = _deepest(error)
    return str(first.get("type", fallback)), f"{reason} ({behind})" if behind else reason


def _deepest(error: Mapping[str, Any]) -> str:
    while cause := error.get("caused_by"):
        error = cause
        if not error.get("caused_by"):
            return str(error.get("reason", ""))
    return ""


def check_shards(answer: Mapping[str, Any]) -> None:
    """Raises what a shard told that failed at what all of them were to do."""
    shards = answer["_shards"]
    if shards["failed"]:
        failure = (shards.get("failures") or [{}])[0]
        raise of_refusal(failure.get("status", 0), *told(failure.get("reason"), "a shard failed"))


def of_refusal(status: int, kind: str, reason: str) -> Named:
    """What an answer with this status, type and reason means. For whole answers and for items of them."""
    # The disk is told by words: its status is that of a busy cluster.
    if "flood-stage" in reason or "read-only" in reason or "/12/" in reason:
        return _full(reason)
    if "create-index blocked" in reason:
        return _full_for_new(reason)
    match kind:
        case "index_not_found_exception":
            return ActionRequiredError(
                f"The index is not there ({reason}). Was it removed? Start again, and sync its sources."
            )
        case "strict_dynamic_mapping_exception" | "mapper_parsing_exception":
            return _of_mapping(reason)
        case "cluster_block_exception" if status not in BUSY:
            return ActionRequiredError(
                f"The cluster refuses to write: {reason}. Lift the block, then retry."
            )
    return _of_status(status, kind, reason)


def _of_status(status: int, kind: str, reason: str) -> Named:
    match status:
        case 401:
            return ActionRequiredError(
                "OpenSearch refused the sign-in. Check the user and password, the client certificate or"
                " the AWS credentials that are set for it."
            )
        case 403:
            return ActionRequiredError(
                f"OpenSearch does not permit this to the user that is set: {reason}. Grant it the rights on"
                " the indexes of the prefix, or set another user."
            )
        case 413:
            return ActionRequiredError(
                f"OpenSearch, or a proxy before it, takes no request of this size: {reason}."
                " Allow 10 MB (http.max_content_length, client_max_body_size)."
            )
        case status if status in BUSY or status == 0:
            return TemporarilyUnavailableError(
                f"OpenSearch is busy or not whole: {reason} ({kind}).", SOON
            )
        case status if status >= 500:
            return TemporarilyUnavailableError(f"OpenSearch failed: {reason} ({kind}).", SOON)
        case _:
            return ActionRequiredError(f"OpenSearch refused: {reason} ({kind}, status {status}).")


def _of_mapping(reason: str) -> ActionRequiredError:
    if "No handler for type [knn_vector]" in reason:
        return ActionRequiredError(
            "OpenSearch lacks its k-NN plugin; install opensearch-knn on every node."
        )
    return ActionRequiredError(
        f"The index does not take the record: {reason}. It was laid out by another version of Quarry or"
        " for another embedder: build it anew with `quarry reindex`."
    )


def _full(reason: str) -> ActionRequiredError:
    return ActionRequiredError(
        f"The disk of the cluster is nearly full, so it refuses to write: {reason}. Free space or add a"
        " node; the block is lifted when the disk is below its high watermark again, or by setting"
        " index.blocks.read_only_allow_delete to null."
    )


def _full_for_new(reason: str) -> ActionRequiredError:
    return ActionRequiredError(
        "The cluster makes no new index, as when the disks of all its nodes are nearly full:"
        f" {reason} Free space or add a node; the block is lifted when a disk is below its high watermark"
        " again, or by setting cluster.blocks.create_index to null."
    )


def _of_tls(error: SSLError) -> ActionRequiredError:
    cause = error.info
    reason = getattr(cause, "reason", cause)
    if isinstance(reason, ssl.SSLCertVerificationError) or "CERTIFICATE_VERIFY_FAILED" in str(
        cause
    ):
        return ActionRequiredError(
            f"The certificate of OpenSearch is not trusted: {cause}. Set the file of the authority that"
            " signed it, and the host name that it is made for."
        )
    return ActionRequiredError(
        f"OpenSearch ended the TLS connection: {cause}. Is the address https, and is a client certificate"
        " demanded?"
    )


def _of_connection(error: Unreachable) -> Named:
    told_by = str(error.info)
    if "CERTIFICATE_REQUIRED" in told_by or "certificate required" in told_by:
        return ActionRequiredError(
            "OpenSearch demands a client certificate. Set its file, and that of its key."
        )
    return TemporarilyUnavailableError(
        f"OpenSearch cannot be reached: {_words_of(error.info)}.", SOON
    )


def _words_of(cause: object) -> str:
    """As a sentence holds them: an exception of several parts shows itself as a tuple with objects in it."""
    parts = cause.args if isinstance(cause, BaseException) else ()
    words = [part for part in parts if isinstance(part, str)]
    return (words[-1] if words else str(cause)).rstrip(".")
