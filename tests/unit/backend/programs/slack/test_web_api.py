"""How the bot calls Slack, and what it makes of refusals."""

from collections.abc import Iterator

import pytest
from slack_sdk.web import WebClient

from backend.programs.slack.posts import make_notice
from backend.programs.slack.socket_listener import SocketListener
from backend.programs.slack.web_api import (
    RATE_LIMIT_TRIES,
    SlackApi,
    SlackCallError,
    SlackChannel,
    Thread,
)
from connectors.errors import TemporarilyUnavailableError
from tests.support.slack_server import BOT, BOT_TOKEN, TEAM, SlackServer


@pytest.fixture
def slack() -> Iterator[SlackServer]:
    with SlackServer() as server:
        yield server


@pytest.fixture
def api(slack: SlackServer) -> SlackApi:
    return SlackApi(BOT_TOKEN, slack.api_url)


def test_a_refusal_names_its_code(api: SlackApi) -> None:
    with pytest.raises(SlackCallError) as refused:
        api.find_user("U999")
    assert refused.value.code == "user_not_found"
    with pytest.raises(SlackCallError, match="channel_not_found"):
        api.post(Thread("C999", ""), make_notice("x"))


def test_a_limit_of_the_rate_is_waited_for_and_then_given_up(
    api: SlackApi, slack: SlackServer
) -> None:
    user = slack.add_user("ann@example.com")
    slack.limits["users.info"] = [0, 0]
    assert api.find_user(user).email == "ann@example.com"
    slack.limits["users.info"] = [0] * (RATE_LIMIT_TRIES + 1)
    with pytest.raises(TemporarilyUnavailableError):
        api.find_user(user)


def test_a_server_that_is_not_there_may_be_later() -> None:
    with pytest.raises(TemporarilyUnavailableError, match="cannot be reached"):
        SlackApi(BOT_TOKEN, "http://127.0.0.1:9/api/").identify()


def test_a_message_is_not_posted_again_where_the_answer_was_lost(
    api: SlackApi, slack: SlackServer
) -> None:
    channel, calls = slack.add_channel(), 0

    def hang_up(method: str, arguments: object) -> None:
        nonlocal calls
        del arguments
        calls += method == "chat.postMessage"
        raise ConnectionAbortedError

    slack.before_call = hang_up
    with pytest.raises(TemporarilyUnavailableError):
        api.post(Thread(channel, ""), make_notice("x"))
    assert calls == 1


@pytest.mark.parametrize(
    ("properties", "channel"),
    [
        ({"is_private": True}, SlackChannel(is_shared=False, is_public=False)),
        ({"is_private": False}, SlackChannel(is_shared=False, is_public=True)),
        ({"is_private": False, "is_mpim": True}, SlackChannel(is_shared=False, is_public=False)),
        ({"is_ext_shared": True}, SlackChannel(is_shared=True, is_public=False)),
        ({"is_org_shared": True}, SlackChannel(is_shared=True, is_public=False)),
    ],
)
def test_a_channel_says_who_may_open_it(
    api: SlackApi, slack: SlackServer, properties: dict[str, bool], channel: SlackChannel
) -> None:
    assert api.find_channel(slack.add_channel(**properties)) == channel


def test_members_of_all_pages_are_listed(api: SlackApi, slack: SlackServer) -> None:
    users = [slack.add_user(f"p{number}@example.com") for number in range(10)]
    assert list(api.list_members(slack.add_channel(*users))) == [BOT, *users]


def test_an_account_of_the_enterprise_belongs_to_its_workspaces(
    api: SlackApi, slack: SlackServer
) -> None:
    user = slack.add_user("a@example.com", team_id="E1", enterprise_user={"teams": [TEAM, "T2"]})
    assert api.find_user(user).team_ids == {"E1", TEAM, "T2"}


def take_nothing(kind: str, payload: object) -> None:
    del kind, payload


class InsecureClient(WebClient):
    """A Web API with TLS that names an address without."""

    def apps_connections_open(self, **arguments: object) -> dict[str, str]:  # type: ignore[override]
        del arguments
        return {"url": "ws://127.0.0.1:9/link"}


def test_socket_mode_without_tls_is_refused_where_the_web_api_has_it() -> None:
    client = InsecureClient(base_url="https://slack.example.com/api/")
    listener = SocketListener("xapp-x", client, take_nothing)
    with pytest.raises(TemporarilyUnavailableError, match="without TLS"):
        listener.start()
