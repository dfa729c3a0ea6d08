"""What a refusal means to whoever has to act on it."""

import pytest
from opensearchpy.exceptions import ImproperlyConfigured, NotFoundError, TransportError

from connectors.errors import (
    ActionRequiredError,
    ConflictError,
    DamagedDataError,
    NotConfiguredError,
    TemporarilyUnavailableError,
)
from indexing.opensearch.errors import (
    check_shards,
    read_reason,
    refusal_to_error,
    to_error,
    translate_errors,
)
from indexing.runtime.deadline import Deadline, DeadlineExceededError

FLOOD = (
    "index [i] blocked by: [TOO_MANY_REQUESTS/12/disk usage exceeded flood-stage watermark, index has"
    " read-only-allow-delete block];"
)
PLUGIN = (
    "Failed to parse mapping [_doc]: No handler for type [knn_vector] declared on field [vector]"
)


@pytest.mark.parametrize(
    ("status", "kind", "reason", "error", "words"),
    [
        (
            429,
            "opensearch_rejected_execution_exception",
            "queue is full",
            TemporarilyUnavailableError,
            "busy",
        ),
        (429, "circuit_breaking_exception", "Data too large", TemporarilyUnavailableError, "busy"),
        (429, "cluster_block_exception", FLOOD, ConflictError, "Free space"),
        (
            403,
            "cluster_block_exception",
            "FORBIDDEN/8/index write (api)",
            ConflictError,
            "Remove the block",
        ),
        (
            503,
            "cluster_block_exception",
            "state not recovered",
            TemporarilyUnavailableError,
            "incomplete",
        ),
        (
            503,
            "unavailable_shards_exception",
            "primary shard is not active",
            TemporarilyUnavailableError,
            "incomplete",
        ),
        (503, "no_shard_available_action_exception", "", TemporarilyUnavailableError, "incomplete"),
        (
            503,
            "cluster_manager_not_discovered_exception",
            "",
            TemporarilyUnavailableError,
            "incomplete",
        ),
        (502, "", "Bad Gateway", TemporarilyUnavailableError, "busy"),
        (500, "null_pointer_exception", "null", TemporarilyUnavailableError, "failed"),
        (401, "", "Unauthorized", NotConfiguredError, "refused the sign-in"),
        (
            403,
            "security_exception",
            "no permissions for [x]",
            NotConfiguredError,
            "does not permit",
        ),
        (404, "index_not_found_exception", "no such index [i]", DamagedDataError, "does not exist"),
        (400, "mapper_parsing_exception", PLUGIN, NotConfiguredError, "install opensearch-knn"),
        (400, "strict_dynamic_mapping_exception", "of [x]", DamagedDataError, "quarry reindex"),
        (413, "", "too large", NotConfiguredError, "10 MB"),
        (
            400,
            "parsing_exception",
            "unknown query [x]",
            NotConfiguredError,
            "refused the request: unknown query",
        ),
    ],
)
def test_a_refusal_says_what_to_do(
    status: int, kind: str, reason: str, error: type[Exception], words: str
) -> None:
    found = refusal_to_error(status, kind, reason)
    assert type(found) is error
    assert words in str(found)


def test_the_reason_is_that_of_the_root_cause_with_the_underlying_one() -> None:
    body = {
        "error": {
            "type": "search_phase_execution_exception",
            "reason": "all shards failed",
            "root_cause": [{"type": "query_shard_exception", "reason": "failed to create query"}],
            "caused_by": {
                "type": "query_shard_exception",
                "reason": "failed to create query",
                "caused_by": {"type": "illegal_argument_exception", "reason": "k is 0"},
            },
        }
    }
    assert read_reason(body) == ("query_shard_exception", "failed to create query (k is 0)")
    assert read_reason({"error": "no handler found"}) == ("", "no handler found")
    assert read_reason(None, "gone") == ("gone", "gone")
    assert read_reason("") == ("", "no reason given")
    assert read_reason({"error": {"type": "odd"}}) == ("odd", "no reason given")


def test_a_deadline_that_is_up_is_the_reason_whatever_the_driver_says() -> None:
    with pytest.raises(DeadlineExceededError), translate_errors(Deadline.after(-1)):
        raise TransportError(503, "unavailable", {})
    with pytest.raises(TemporarilyUnavailableError), translate_errors(Deadline.after(60)):
        raise TransportError(503, "unavailable", {})


def test_nothing_of_the_driver_gets_out() -> None:
    for error in (NotFoundError(404, "x", {}), ImproperlyConfigured("no certificates")):
        assert isinstance(to_error(error), ActionRequiredError)
        with pytest.raises(ActionRequiredError) as raised, translate_errors():
            raise error
        assert raised.value.__cause__ is error


def test_what_is_no_error_of_the_driver_passes() -> None:
    with pytest.raises(KeyError), translate_errors():
        raise KeyError


def test_a_failed_shard_may_be_retried() -> None:
    check_shards({"_shards": {"failed": 0}})
    failure = {"status": 503, "reason": {"type": "node_not_connected_exception", "reason": "[n]"}}
    with pytest.raises(TemporarilyUnavailableError):
        check_shards({"_shards": {"failed": 1, "failures": [failure]}})
    with pytest.raises(TemporarilyUnavailableError):
        check_shards({"_shards": {"failed": 1}})
