"""Who may read what is said in Slack, and what of its files is read."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import SecretStr

from connectors.access import is_account_token, make_account_token
from connectors.connector import Checkpoint, ReaderGroup
from connectors.document import Document
from connectors.errors import TemporarilyUnavailableError
from connectors.extraction.result import ExtractionError
from connectors.sources.slack.channel_scopes import derive_channel_access
from connectors.sources.slack.client import SlackAccount, SlackClient
from connectors.sources.slack.connector import SlackConnector, SlackCredential, SlackSettings
from connectors.sources.slack.settings import ApiSettings
from tests.contract.connector_worlds.held import (
    Held,
    documents,
    list_documents,
    list_groups,
    resolve,
    run,
)
from tests.support.loopback import LOOPBACK
from tests.support.rights import may_read
from tests.support.services.serving import Reply, redirect, serve
from tests.support.services.slack import SCOPES, TOKEN, SlackService, person, rate_limited


@pytest.fixture
def service() -> SlackService:
    """Members Ann and Bo, the guest Gus, and some who may not read."""
    made = SlackService()
    made.users = [
        person("U1", "Ann Lee", "Ann@Example.com"),
        person("U2", "Bo Ek", "bo@example.com", is_email_confirmed=True),
        person("U3", "Gus", "gus@example.com", is_restricted=True),
        person("U4", "Gone", "gone@example.com") | {"deleted": True},
        person("U5", "Bot", "bot@example.com", is_bot=True),
        person("U6", "Other", "other@example.com", is_stranger=True),
        person("U7", "Unconfirmed", "eve@example.com", is_email_confirmed=False),
        person("U8", "Without address"),
        person("U9", "Odd", "not an address"),
    ]
    return made


@pytest.fixture
def url(service: SlackService) -> Iterator[str]:
    with serve(service) as server:
        yield server.url


def slack(url: str, **more: Any) -> SlackConnector:
    own = {name: more.pop(name) for name in ApiSettings.model_fields if name in more}
    read = ApiSettings(api_url=f"{url}/api", private_hosts=("127.0.0.1",), **own)
    credential = SlackCredential(token=SecretStr(TOKEN))
    return SlackConnector("s", 1, SlackSettings(read=read, **more), credential)


def readers(url: str, **more: Any) -> dict[str, set[str]]:
    """Who of some people may read a channel's messages; "everybody" if somebody unknown may."""
    found = {one.id: one.access for one in documents(run(slack(url, **more), Held()))}
    assert {one.document_id: one.access for one in list_documents(slack(url, **more))} == found
    groups = list_groups(slack(url, **more))
    askers = {name: resolve(groups, f"user:{name}@example.com") for name in PEOPLE}
    return {
        document_id[2:4]: {name for name, asker in askers.items() if may_read(asker, access)}
        for document_id, access in found.items()
    }


WITHOUT_ADDRESS = ("Unconfirmed", "Without address", "Odd")
"""Who may read what their accounts may, once these are mapped."""
PEOPLE = ("ann", "bo", "gus", "gone", "bot", "other", "eve", "stranger")
_ALL_USERS = [f"U{number}" for number in range(1, 10)]


def test_members_of_a_private_place_read_it(service: SlackService, url: str) -> None:
    for own, members in {"G1": _ALL_USERS, "M2": ["U1", "U3"], "D3": ["U2", "U8"]}.items():
        service.add_channel(own, own, members)
        service.post(own, "hello", user="U6")
    assert readers(url, conversations=("private", "group", "direct")) == {
        "G1": {"ann", "bo", "gus"},
        "M2": {"ann", "gus"},
        "D3": {"bo"},
    }


def test_public_channels_are_read_by_the_workspace_and_by_guests_who_are_there(
    service: SlackService, url: str
) -> None:
    service.add_channel("C1", "general", ["U1"])
    service.add_channel("C2", "fair", ["U2", "U3"])
    service.post("C1", "hello")
    service.post("C2", "hello")
    assert readers(url) == {"C1": {"ann", "bo"}, "C2": {"ann", "bo", "gus"}}
    members = {"C1": {"ann"}, "C2": {"bo", "gus"}}
    assert readers(url, public_channels="members") == members
    everybody = {"C1": set(PEOPLE), "C2": set(PEOPLE)}
    assert readers(url, public_channels="everybody") == everybody


def test_members_are_not_requested_without_guests(service: SlackService, url: str) -> None:
    del service.users[2]
    service.add_channel("C1", "general", ["U1"])
    service.post("C1", "hello")
    assert readers(url) == {"C1": {"ann", "bo"}}
    assert "conversations.members" not in {method for method, _ in service.calls}


def test_a_listing_of_groups_asks_for_members_and_no_message(
    service: SlackService, url: str
) -> None:
    service.add_channel("C1", "general", ["U1"])
    service.add_channel("G2", "board", ["U1", "U2"])
    groups = {one.name: one for one in list_groups(slack(url))}
    assert groups.keys() == {"acme.slack.com", "#general", "#board", *WITHOUT_ADDRESS}
    assert groups["#general"].members == {"external:1:@workspace"}
    assert groups["#board"].members == {"user:ann@example.com", "user:bo@example.com"}
    methods = [method for method, _ in service.calls]
    assert not {"conversations.history", "conversations.replies"} & set(methods)
    assert methods.count("conversations.members") == 2


def test_under_twenty_requests_an_hour_all_members_are_listed(
    service: SlackService, url: str
) -> None:
    for number in range(60):
        service.add_channel(f"G{number:02}", f"team-{number}", ["U1"])
    found: list[str] = []
    reached: Checkpoint | None = None
    for _ in range(5):
        service.requests_before_fault, service.fault = 20, lambda _: rate_limited("3600")
        try:
            for item in slack(url).groups(reached):
                if isinstance(item, ReaderGroup):
                    found.append(item.name)
                else:
                    reached = item
        except TemporarilyUnavailableError:
            continue
        break
    teams = [f"#team-{n}" for n in range(60)]
    assert sorted(found) == sorted(["acme.slack.com", *WITHOUT_ADDRESS, *teams])


def test_who_has_no_known_address_reads_nothing(service: SlackService, url: str) -> None:
    service.scopes = SCOPES.replace("users:read.email ", "")
    service.add_channel("C1", "general", ["U1"])
    service.add_channel("G2", "board", ["U1"])
    service.post("C1", "hello")
    service.post("G2", "hello")
    assert readers(url) == {"C1": set(), "G2": set()}


def test_who_has_no_known_address_is_named_by_the_account(service: SlackService, url: str) -> None:
    service.users.append(person("U10", "Guest without address", is_restricted=True))
    service.users.append(person("U11", "Gone without address") | {"deleted": True})
    service.add_channel("C1", "general", ["U8"])
    service.add_channel("C2", "fair", ["U10", "U3"])
    service.add_channel("G3", "board", ["U1", "U8", "U11"])
    groups = list_groups(slack(url))
    accounts = {make_account_token(1, each) for each in ("U7", "U8", "U9", "U10")}
    assert {one.token for one in groups if is_account_token(one.token)} == accounts
    assert all(not one.members for one in groups if one.token in accounts)
    held = {each: resolve(groups, make_account_token(1, each)) for each in ("U8", "U10", "U11")}
    channels = {each: derive_channel_access(1, each) for each in ("C1", "C2", "G3")}
    assert {
        each: {name for name, access in channels.items() if may_read(readers, access)}
        for each, readers in held.items()
    } == {"U8": {"C1", "C2", "G3"}, "U10": {"C2"}, "U11": set()}
    (board,) = (one for one in groups if one.name == "#board")
    assert board.members == {"user:ann@example.com", make_account_token(1, "U8")}


def test_a_conversation_is_called_after_those_who_speak(service: SlackService, url: str) -> None:
    service.add_channel("M2", "mpdm-ann--bo-1", ["U3", "U1", "U2"])
    service.post("M2", "hello")
    (found,) = documents(run(slack(url, conversations=("group",)), Held()))
    assert found.parents == ("Ann Lee, Bo Ek, Gus",)


def file(url: str, name: str = "plan.txt", **more: Any) -> dict[str, Any]:
    path = f"/files-pri/T1-F1/{name}"
    whole = {"id": "F1", "name": name, "title": "The plan", "mimetype": "text/plain", "size": 9}
    return whole | {"url_private_download": f"{url}{path}"} | more


def one_document(service: SlackService, url: str, **more: Any) -> Document:
    if "C1" not in service.conversations:
        service.add_channel("C1", "general", ["U1"])
    (found,) = documents(run(slack(url, **more), Held()))
    return found


def test_files_are_read(service: SlackService, url: str) -> None:
    service.add_channel("C1", "general", ["U1"])
    service.files["/files-pri/T1-F1/plan.md"] = b"# Spring\n\nWe saw in April."
    ts = service.post("C1", "Look", files=[file(url, "plan.md")], at=1_700_000_000.0)
    found = one_document(service, url)
    assert [one.text for one in found.sections] == ["Ann Lee: Look\n[The plan]", "We saw in April."]
    assert found.sections[1].place.heading_path == (
        "Ann Lee, 2023-11-14 22:13 UTC",
        "The plan",
        "Spring",
    )
    assert found.sections[1].link == found.link
    assert ts.replace(".", "") in found.link
    assert found.metadata["files"] == ("The plan",)
    assert "files_unread" not in found.metadata


def test_a_file_without_words_around_it_is_titled_by_itself(
    service: SlackService, url: str
) -> None:
    service.add_channel("C1", "general", ["U1"])
    service.files["/files-pri/T1-F1/plan.txt"] = b"We saw in April."
    service.post("C1", "", files=[file(url)])
    assert one_document(service, url).title == "The plan"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"size": 20_000_001}, "20,000,001 bytes; the limit is 20,000,000"),
        ({"mode": "tombstone"}, "not stored by Slack"),
        ({"mode": "hidden_by_limit"}, "not stored by Slack"),
        ({"is_external": True}, "not stored by Slack"),
        ({"name": "photo.png"}, "image/png is not a supported format"),
        ({"name": "blob", "mimetype": "application/x"}, "is not a supported format"),
        ({"url_private_download": "http://files.example/x"}, "not stored by Slack"),
        ({"url_private_download": "file:///etc/passwd"}, "not a web address"),
        ({"url_private_download": None, "url_private": ""}, "not stored by Slack"),
    ],
)
def test_a_file_not_stored_by_slack_has_only_its_name_indexed(
    service: SlackService, url: str, more: dict[str, Any], says: str
) -> None:
    service.add_channel("C1", "general", ["U1"])
    service.post("C1", "Look", files=[file(url, **more)])
    found = one_document(service, url)
    assert [one.text for one in found.sections] == ["Ann Lee: Look\n[The plan]"]
    unread = found.metadata["files_unread"][0]
    assert unread.startswith("The plan: ")
    assert says in unread


def test_a_file_that_is_not_given_is_only_named(service: SlackService, url: str) -> None:
    service.add_channel("C1", "general", ["U1"])
    service.files["/files-pri/T1-F1/plan.txt"] = b"We saw in April."
    service.post("C1", "Look", files=[file(url)])
    service.scopes = SCOPES.replace("files:read ", "")
    unread = one_document(service, url).metadata["files_unread"][0]
    assert "files:read" in unread
    assert len(one_document(service, url, largest_file=0).sections) == 1


def test_files_are_read_again_once_the_settings_allow_it(service: SlackService, url: str) -> None:
    service.add_channel("C1", "general", ["U1"])
    service.files["/files-pri/T1-F1/plan.txt"] = b"We saw in April."
    service.post("C1", "Look", files=[file(url)])
    held = Held()
    run(slack(url, largest_file=0), held)
    (found,) = documents(run(slack(url), held))
    assert [one.text for one in found.sections][1:] == ["We saw in April."]


def test_a_rate_limit_on_files_is_waited_out(service: SlackService) -> None:
    service.add_channel("C1", "general", ["U1"])
    busy = rate_limited("600")
    with serve(lambda request: busy if "/files" in request.path else service(request)) as server:
        service.post("C1", "Look", files=[file(server.url)])
        with pytest.raises(TemporarilyUnavailableError) as caught:
            run(slack(server.url), Held())
    assert caught.value.retry_after.total_seconds() == 600


def test_the_token_is_sent_to_no_other_server(service: SlackService, url: str) -> None:
    service.add_channel("C1", "general", ["U1"])
    with serve(lambda _: Reply(body=b"stolen")) as other:
        elsewhere = f"{other.url}/files-pri/T1-F1/plan.txt"
        service.post("C1", "Look", files=[file(url, url_private_download=elsewhere)])
        found = one_document(service, url)
        assert other.log == []
    assert "stolen" not in " ".join(one.text for one in found.sections)


def test_a_file_is_not_followed_elsewhere() -> None:
    with (
        serve(lambda _: Reply(body=b"stolen")) as other,
        serve(lambda _: redirect(f"{other.url}/plan.txt")) as server,
    ):
        account = SlackAccount(
            source="s", api_url=f"{server.url}/api", token=TOKEN, allowed_networks=LOOPBACK
        )
        with SlackClient(account) as client, pytest.raises(ExtractionError, match="files:read"):
            client.download(f"{server.url}/plan.txt", 100)
        assert other.log == []


def test_the_files_of_a_workspace_lie_beside_its_api() -> None:
    for api, files in {
        "https://slack.com/api": "https://files.slack.com",
        "https://slack-gov.com/api": "https://files.slack-gov.com",
    }.items():
        account = SlackAccount(source="s", api_url=api, token=TOKEN, allowed_networks=LOOPBACK)
        assert account.files_url == files
        assert TOKEN not in repr(account)
