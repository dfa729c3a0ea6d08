"""What a refusal means to whoever has to act on it."""

import pytest
from opensearchpy.exceptions import ImproperlyConfigured, NotFoundError, TransportError

from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.opensearch.errors import check_shards, named, named_errors, of_refusal, told
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
        (429, "cluster_block_exception", FLOOD, ActionRequiredError, "Free space"),
        (
            403,
            "cluster_block_exception",
            "FORBIDDEN/8/index write (api)",
            ActionRequiredError,
            "Lift the block",
        ),
        (
            503,
            "cluster_block_exception",
            "state not recovered",
            TemporarilyUnavailableError,
            "not whole",
        ),
        (
            503,
            "unavailable_shards_exception",
            "primary shard is not active",
            TemporarilyUnavailableError,
            "not whole",
        ),
        (503, "no_shard_available_action_exception", "", TemporarilyUnavailableError, "not whole"),
        (
            503,
            "cluster_manager_not_discovered_exception",
            "",
            TemporarilyUnavailableError,
            "not whole",
        ),
        (502, "", "Bad Gateway", TemporarilyUnavailableError, "busy"),
        (500, "null_pointer_exception", "null", TemporarilyUnavailableError, "failed"),
        (401, "", "Unauthorized", ActionRequiredError, "refused the sign-in"),
        (
            403,
            "security_exception",
            "no permissions for [x]",
            ActionRequiredError,
            "does not permit",
        ),
        (404, "index_not_found_exception", "no such index [i]", ActionRequiredError, "not there"),
        (400, "mapper_parsing_exception", PLUGIN, ActionRequiredError, "install opensearch-knn"),
        (400, "strict_dynamic_mapping_exception", "of [x]", ActionRequiredError, "quarry reindex"),
        (413, "", "too large", ActionRequiredError, "10 MB"),
        (
            400,
            "parsing_exception",
            "unknown query [x]",
            ActionRequiredError,
            "refused: unknown query",
        ),
    ],
)
def test_a_refusal_says_what_to_do(
    status: int, kind: str, reason: str, error: type[Exception], words: str
) -> None:
    found = of_refusal(status, kind, reason)
    assert type(found) is error
    assert words in str(found)


def test_the_root_of_an_error_is_told_with_what_is_behind_it() -> None:
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
    assert told(body) == ("query_shard_exception", "failed to create query (k is 0)")
    assert told({"error": "no handler found"}) == ("", "no handler found")
    assert told(None, "gone") == ("gone", "gone")


def test_a_deadline_that_is_up_is_the_reason_whatever_the_driver_says() -> None:
    with pytest.raises(DeadlineExceededError), named_errors(Deadline.after(-1)):
        raise TransportError(503, "unavailable", {})
    with pytest.raises(TemporarilyUnavailableError), named_errors(Deadline.after(60)):
        raise TransportError(503, "unavailable", {})


def test_nothing_of_the_driver_gets_out() -> None:
    for error in (NotFoundError(404, "x", {}), ImproperlyConfigured("no certificates")):
        assert isinstance(named(error), ActionRequiredError)
        with pytest.raises(ActionRequiredError) as raised, named_errors():
            raise error
        assert raised.value.__cause__ is error


def test_what_is_no_error_of_the_driver_passes() -> None:
    with pytest.raises(KeyError), named_errors():
        raise KeyError


def test_a_search_of_which_a_part_is_missing_may_be_asked_again() -> None:
    check_shards({"_shards": {"failed": 0}})
    failure = {"status": 503, "reason": {"type": "node_not_connected_exception", "reason": "[n]"}}
    with pytest.raises(TemporarilyUnavailableError):
        check_shards({"_shards": {"failed": 1, "failures": [failure]}})
    with pytest.raises(TemporarilyUnavailableError):
        check_shards({"_shards": {"failed": 1}})
