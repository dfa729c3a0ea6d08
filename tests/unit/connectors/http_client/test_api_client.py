from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from connectors.errors import SourceAuthError, TemporarilyUnavailableError
from connectors.http_client.api_client import (
    AccessDeniedError,
    ApiAccount,
    ApiClient,
    check_objects,
    find_text,
    find_value,
    get_field,
    get_time,
    required,
)
from connectors.http_client.response import ClientError, MalformedResponse
from tests.support.loopback import LOOPBACK
from tests.support.services.serving import (
    Reply,
    RequestHandler,
    ScriptedHandler,
    echo,
    reply_json,
    serve,
)


@contextmanager
def connect(handler: RequestHandler, **values: Any) -> Iterator[ApiClient]:
    with serve(handler) as service:
        account = ApiAccount(
            service="Desk",
            source="support",
            api_url=service.url,
            token="secret",
            token_page="Desk, Settings, Tokens",
            allowed_networks=LOOPBACK,
            **values,
        )
        with ApiClient(account) as client:
            yield client


def test_an_object_is_read_and_a_missing_one_is_none() -> None:
    with connect(ScriptedHandler([reply_json({"id": 1}), Reply(status=404)])) as client:
        assert client.get_object("/items/1") == {"id": 1}
        assert client.get_object("/items/2") is None


@pytest.mark.parametrize(
    ("values", "header"),
    [({}, "Bearer secret"), ({"user": "ann"}, "Basic YW5uOnNlY3JldA==")],
)
def test_the_token_is_sent_with_or_without_a_user(values: dict[str, str], header: str) -> None:
    with connect(echo, **values) as client:
        assert client.get("/me").json_object()["headers"]["authorization"] == header


@pytest.mark.parametrize(
    ("status", "error", "message"),
    [
        (401, SourceAuthError, r"Desk rejects the token of support \(expired\).* create a new"),
        (403, AccessDeniedError, r"support may not read .*/items \(expired\).*Desk, Settings"),
    ],
)
def test_a_refusal_says_what_to_do(status: int, error: type[Exception], message: str) -> None:
    with (
        connect(lambda _: reply_json({"message": "expired"}, status=status)) as client,
        pytest.raises(error, match=message) as raised,
    ):
        client.get("/items", {"key": "hidden"})
    assert "hidden" not in str(raised.value)
    assert "secret" not in str(raised.value)


def test_a_refusal_without_a_message_has_its_status() -> None:
    with (
        connect(lambda _: Reply(status=403, body=b"<html>")) as client,
        pytest.raises(AccessDeniedError, match="status 403"),
    ):
        client.get("/items")


def test_another_rejection_keeps_its_response() -> None:
    with (
        connect(lambda _: reply_json({"code": 7}, status=422)) as client,
        pytest.raises(ClientError) as raised,
    ):
        client.get("/items")
    assert raised.value.response.json_object() == {"code": 7}


def test_times_are_those_of_the_server() -> None:
    first, second = "Tue, 06 May 2031 07:08:09 GMT", "Tue, 06 May 2031 07:08:10 GMT"
    replies = [Reply(headers={"Date": first}), Reply(headers={"Date": second})]
    with connect(ScriptedHandler(replies)) as client:
        with pytest.raises(ValueError, match="no response"):
            _ = client.now
        client.get("/")
        client.get("/")
        assert client.started_at == datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
        assert client.now == datetime(2031, 5, 6, 7, 8, 10, tzinfo=UTC)


def test_a_response_that_a_run_requires_ends_it_for_now() -> None:
    with (
        pytest.raises(TemporarilyUnavailableError, match="the list of items cannot be read: no id"),
        required("the list of items"),
    ):
        raise MalformedResponse("no id")


def test_fields_are_read_by_type_and_path() -> None:
    raw = {"id": 7, "by": {"name": "Ann"}, "at": "2026-03-01T13:00:00+01:00"}
    assert get_field(raw, "id", int) == 7
    assert find_value(raw, "by", "name") == "Ann"
    assert find_value(raw, "at", "name") is None
    assert (find_text(raw, "id"), find_text(raw, "by")) == ("7", "")
    assert get_time(raw, "at") == datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert check_objects([{}]) == [{}]


def test_what_is_missing_or_of_another_type_is_malformed() -> None:
    with pytest.raises(MalformedResponse, match="without id"):
        get_field({"id": "7"}, "id", int)
    with pytest.raises(MalformedResponse, match="valid at"):
        get_time({"at": "yesterday"}, "at")
    with pytest.raises(MalformedResponse, match="not objects"):
        check_objects([{}, 1])
