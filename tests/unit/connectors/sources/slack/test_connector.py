"""Slack by its API: what is said, in full, however slowly and in whatever pages it comes."""

import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import SecretStr, ValidationError

from connectors.connector import Change, Checkpoint, Deletion, Unreadable
from connectors.document import Person
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from connectors.registry import create_connector
from connectors.sources.slack.connector import SlackConnector, SlackCredential, SlackSettings
from connectors.sources.slack.settings import ApiSettings
from tests.contract.connector_worlds.held import Held, documents, list_documents, run
from tests.support.services.serving import ReceivedRequest, Reply, reply_json, serve
from tests.support.services.slack import SCOPES, TOKEN, SlackService, person, rate_limited

_DAY = 86_400.0


@pytest.fixture
def service() -> SlackService:
    return acme()


@pytest.fixture
def url(service: SlackService) -> Iterator[str]:
    with serve(service) as server:
        yield server.url


def acme() -> SlackService:
    made = SlackService()
    made.users = [
        person("U1", "Ann Lee", "ann@example.com"),
        person("U2", "Bo Ek", "bo@example.com"),
    ]
    made.add_channel("C1", "general", ["U1", "U2"])
    return made


def slack(url: str, token: str = TOKEN, **more: Any) -> SlackConnector:
    own = {name: more.pop(name) for name in ApiSettings.model_fields if name in more}
    read = ApiSettings(api_url=f"{url}/api", private_hosts=("127.0.0.1",), **own)
    given_ = SlackSettings(read=read, **more)
    return SlackConnector("s", 1, given_, SlackCredential(token=SecretStr(token)))


def texts(changes: list[Change]) -> list[str]:
    return [one.sections[0].text for one in documents(changes)]


def request(service: SlackService, method: str) -> list[dict[str, str]]:
    return [params for name, params in service.calls if name == method]


def test_all_of_a_long_channel_is_found_that_is_paged_newest_first(
    service: SlackService, url: str
) -> None:
    stamps = [f"{1_600_000_000 + number}.000100" for number in range(5000)]
    service.conversations["C1"].messages = [
        {"type": "message", "user": "U1", "text": f"number {number}", "ts": ts}
        for number, ts in enumerate(stamps)
    ]
    found = documents(run(slack(url), Held()))
    assert [one.id for one in found] == [f"s:C1/{ts}" for ts in reversed(stamps)]
    pages = request(service, "conversations.history")
    assert {one["limit"] for one in pages} == {"200"}
    # The first page brings 200, every other one 199 and the last of the page before.
    assert len(pages) == 1 + -(-4800 // 199)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    moments=st.lists(st.integers(1, 12), min_size=1, max_size=30),
    most=st.integers(1, 7),
    is_patchy=st.booleans(),
)
def test_pages_of_any_size_lose_and_repeat_nothing_at_equal_moments(
    moments: list[int], most: int, *, is_patchy: bool
) -> None:
    service = acme()
    service.max_page_size, service.has_gaps = most + is_patchy, is_patchy
    for moment in moments:
        service.post("C1", "said", ts=f"16000000{moment:02}.000100")
    with serve(service) as server:
        found = [one.id for one in documents(run(slack(server.url), Held()))]
    newest_first = sorted({f"s:C1/16000000{moment:02}.000100" for moment in moments}, reverse=True)
    assert found == newest_first


def test_a_message_is_a_document_of_its_own(service: SlackService, url: str) -> None:
    at = 1_700_000_000.0
    ts = service.post("C1", "Who has the <@U2> key?\nI need it.", at=at)
    other = service.post("C1", "Good morning", at=at - 1, user="U2")
    first, second = documents(run(slack(url), Held()))
    assert first.id == f"s:C1/{ts}"
    assert first.title == "Who has the @Bo Ek key?"
    assert [one.text for one in first.sections] == ["Ann Lee: Who has the @Bo Ek key?\nI need it."]
    assert first.link == f"https://acme.slack.com/archives/C1/p{ts.replace('.', '')}"
    assert first.parents == ("#general",)
    assert first.owners == (Person("Ann Lee", "ann@example.com"),)
    assert first.metadata == {"channel": "#general", "authors": ("Ann Lee",)}
    moment = datetime(2023, 11, 14, 22, 13, 20, int(ts[-6:]), UTC)
    assert first.created_at == first.updated_at == moment
    assert second.id == f"s:C1/{other}"


def test_a_thread_is_one_document_with_its_answers_in_order(
    service: SlackService, url: str
) -> None:
    at = 1_700_000_000.0
    root = service.post("C1", "The wire broke", at=at)
    service.post("C1", "Tension it again", to=root, at=at + 60, user="U2")
    late = service.post("C1", "It holds", to=root, at=at + _DAY)
    (found,) = documents(run(slack(url), Held()))
    assert [one.text for one in found.sections] == [
        "Ann Lee: The wire broke\n\nBo Ek: Tension it again\n\nAnn Lee: It holds"
    ]
    place = f"https://acme.slack.com/archives/C1/p{root.replace('.', '')}"
    assert found.link == f"{place}?thread_ts={root}&cid=C1"
    assert found.metadata["authors"] == ("Ann Lee", "Bo Ek")
    assert found.created_at == datetime.fromtimestamp(float(root), UTC)
    assert found.updated_at == datetime.fromtimestamp(float(late), UTC)


def test_a_long_thread_is_paged_and_cut_into_sections_that_link_to_their_message(
    service: SlackService, url: str
) -> None:
    service.max_page_size = 15
    root = service.post("C1", "0 " + "x" * 100)
    stamps = [service.post("C1", f"{n} " + "x" * 100, to=root) for n in range(1, 101)]
    (found,) = documents(run(slack(url), Held()))
    whole = "\n\n".join(one.text for one in found.sections)
    assert re.findall(r"Ann Lee: (\d+)", whole) == [str(n) for n in range(101)]
    assert all(len(one.text) < 2200 for one in found.sections)
    begins = [int(re.findall(r"Ann Lee: (\d+)", one.text)[0]) for one in found.sections]
    for number, section in zip(begins[1:], found.sections[1:], strict=True):
        message = stamps[number - 1].replace(".", "")
        assert section.link == (
            f"https://acme.slack.com/archives/C1/p{message}?thread_ts={root}&cid=C1"
        )


def test_an_answer_that_was_sent_to_the_channel_too_is_no_document(
    service: SlackService, url: str
) -> None:
    root = service.post("C1", "root")
    answer = service.post("C1", "for all", to=root)
    service.post("C1", "for all", ts=answer, thread_ts=root, subtype="thread_broadcast")
    service.post("C1", "<@U2> has joined the channel", subtype="channel_join")
    assert [one.id for one in documents(run(slack(url), Held()))] == [f"s:C1/{root}"]
    assert [one.document_id for one in list_documents(slack(url))] == [f"s:C1/{root}"]


def test_who_speaks_is_named(service: SlackService, url: str) -> None:
    service.users += [
        person("UB", "Deploy Bot", is_bot=True),
        person("U3", "Cy Oak"),
        person("U4", "Dee", is_bot=True),
    ]
    service.users[2]["profile"]["bot_id"] = "B1"
    service.users[3]["profile"]["display_name"] = "cy"
    service.post("C1", "a", user="U3")
    service.post("C1", "b", user="", bot_id="B1", subtype="bot_message")
    service.post("C1", "c", user="", bot_id="B9", username="Alarm", subtype="bot_message")
    service.post("C1", "d", user="", bot_id="B9", bot_profile={"name": "Tickets"})
    service.post("C1", "e to <@USTRANGER> and <@UGONE>", user="USTRANGER")
    service.post("C1", "f", user="UGONE")
    service.post("C1", "g", user="UGONE", user_profile={"real_name": "Gil"})
    assert sorted(texts(run(slack(url), Held())), key=lambda said: said.partition(": ")[2]) == [
        "cy: a",
        "Deploy Bot: b",
        "Alarm: c",
        "Tickets: d",
        "Eva Fern: e to @Eva Fern and @UGONE",
        "UGONE: f",
        "Gil: g",
    ]
    lookups = Counter(one["user"] for one in request(service, "users.info"))
    assert lookups == {"USTRANGER": 1, "UGONE": 1}


def test_users_and_channels_come_in_pages(service: SlackService, url: str) -> None:
    service.max_page_size = 2
    service.users += [person(f"U{n}", f"Person {n}") for n in range(3, 8)]
    for number in range(2, 7):
        service.add_channel(f"C{number}", f"room-{number}", ["U1"])
        service.post(f"C{number}", f"hello <#C{number}>", user=f"U{number}")
    assert texts(run(slack(url), Held())) == [
        "Bo Ek: hello #room-2",
        *(f"Person {n}: hello #room-{n}" for n in range(3, 7)),
    ]


def test_what_a_deleted_message_was_answered_stays(service: SlackService, url: str) -> None:
    root = service.post("C1", "a secret")
    service.post("C1", "an answer", to=root, user="U2")
    held = Held()
    run(slack(url), held)
    service.delete("C1", root)
    (found,) = documents(run(slack(url), held))
    assert found.title == "an answer"
    assert [one.text for one in found.sections] == ["Bo Ek: an answer"]
    assert found.owners == ()


def test_only_new_content_is_requested_again(service: SlackService, url: str) -> None:
    now = time.time()
    old = service.post("C1", "old", at=now - 40 * _DAY)
    service.post("C1", "answer", to=old, at=now - 40 * _DAY + 9)
    held = Held()
    run(slack(url), held)
    service.calls.clear()
    service.post("C1", "new")
    assert texts(run(slack(url), held)) == ["Ann Lee: new"]
    (page,) = request(service, "conversations.history")
    assert abs(float(page["oldest"]) - (now - 14 * _DAY)) < 60
    assert request(service, "conversations.replies") == []


def test_an_answer_to_a_message_of_the_last_days_is_found(service: SlackService, url: str) -> None:
    root = service.post("C1", "root", at=time.time() - 13 * _DAY)
    held = Held()
    run(slack(url), held)
    service.post("C1", "late answer", to=root, user="U2")
    assert texts(run(slack(url), held)) == ["Ann Lee: root\n\nBo Ek: late answer"]
    service.post("C1", "a second", to=root)
    assert texts(run(slack(url), held)) == [
        "Ann Lee: root\n\nBo Ek: late answer\n\nAnn Lee: a second"
    ]


def test_an_edited_answer_is_found_while_its_thread_is_fresh(
    service: SlackService, url: str
) -> None:
    fresh, settled = (
        service.post("C1", "root", at=time.time() - days * _DAY) for days in (1.5, 3.0)
    )
    answers = [
        service.post("C1", "mistaken", to=root, at=float(root) + 5) for root in (fresh, settled)
    ]
    held = Held()
    run(slack(url), held)
    for answer in answers:
        service.edit("C1", answer, "right")
    service.calls.clear()
    (found,) = documents(run(slack(url), held))
    assert found.id == f"s:C1/{fresh}"
    assert found.updated_at is not None
    assert datetime.now(UTC) - found.updated_at < timedelta(minutes=5)
    assert {one["ts"] for one in request(service, "conversations.replies")} == {fresh}


def test_what_changed_long_ago_is_found_when_all_is_compared(
    service: SlackService, url: str
) -> None:
    now = time.time()
    old = service.post("C1", "old", at=now - 90 * _DAY)
    older = service.post("C1", "older", at=now - 99 * _DAY)
    held = Held()
    run(slack(url), held)
    service.post("C1", "so late", to=old)
    service.edit("C1", older, "older, mended")
    assert documents(run(slack(url), held)) == []
    # A comparison is due after a thousandth of a second.
    found = texts(run(slack(url, compare_days=0.001 / _DAY), held))
    assert found == ["Ann Lee: old\n\nAnn Lee: so late", "Ann Lee: older, mended"]
    assert documents(run(slack(url, compare_days=0.0), held)) == []


def test_a_channel_that_the_app_is_invited_to_is_read_to_its_beginning(
    service: SlackService, url: str
) -> None:
    service.max_page_size = 20
    for number in range(50):
        service.post("C1", f"{number}", at=time.time() - (90 - number) * _DAY)
    held = Held()
    run(slack(url), held)
    service.add_channel("C0", "older", ["U1"])
    for number in range(100):
        service.post("C0", f"{number}", at=time.time() - (120 - number) * _DAY)
    service.calls.clear()
    step(slack(url), held)
    while not is_done(held):
        step(slack(url), held)
    assert sum(one.startswith("s:C0/") for one in held.documents) == 100
    known = [one for one in request(service, "conversations.history") if one["channel"] == "C1"]
    # Once for the last days, and once for what is older and known: it goes no further.
    assert len(known) <= 3
    service.calls.clear()
    run(slack(url), held)
    assert len(request(service, "conversations.history")) == 2


def step(connector: SlackConnector, held: Held) -> None:
    """A run that is broken off at the first checkpoint that gets any further."""
    begun = held.since
    for change in connector.changes(begun, held.known):
        held.take(change)
        if isinstance(change, Checkpoint) and change != begun:
            return


def is_done(held: Held) -> bool:
    return held.since is not None and '"at": "done"' in held.since.value


def test_slower_limits_make_it_only_slow(service: SlackService, url: str) -> None:
    service.max_page_size = 15
    service.add_channel("C2", "other", ["U1"])
    service.add_channel("C3", "empty", ["U1"])
    roots = [("C1", service.post("C1", f"{number}")) for number in range(40)]
    roots += [("C2", service.post("C2", f"{number}")) for number in range(20)]
    for channel, root in roots[::4]:
        service.post(channel, "answer", to=root)
    held, errors = Held(), []
    while error := a_minute_of(service, slack(url, edited_answers_days=0), held):
        errors.append(error.retry_after)
        assert len(errors) < 60
    assert held.documents.keys() == {f"s:{channel}/{root}" for channel, root in roots}
    assert set(errors) == {timedelta(minutes=1)}
    # Each of the 15 threads with an answer took a minute.
    assert len(errors) >= 14


def test_a_run_that_looks_for_new_channels_gets_further_by_one_request(
    service: SlackService, url: str
) -> None:
    service.post("C1", "hello", at=time.time() - 30 * _DAY)
    held = Held()
    run(slack(url), held)
    for own in ("C0", "C2", "C3"):
        service.add_channel(own, own, ["U1"])
    service.post("C2", "new here", at=time.time() - 30 * _DAY)
    minutes = 0
    while a_minute_of(service, slack(url), held):
        minutes += 1
        assert minutes < 20
    assert sorted(one.title for one in held.documents.values()) == ["hello", "new here"]
    # Of each of the four channels the last days, and what is older.
    assert minutes == 2 * 4 - 1


def a_minute_of(
    service: SlackService, connector: SlackConnector, held: Held
) -> TemporarilyUnavailableError | None:
    """A run with one request a minute for messages and one for answers, and what ended it. What comes
    after the last checkpoint of a run that breaks off is not kept."""
    once = {"conversations.history": 1, "conversations.replies": 1}
    often = {"auth.test": 99, "users.list": 99, "conversations.list": 99}
    service.budget = Counter(once | often)
    batch: list[Change] = []
    try:
        for change in connector.changes(held.since, held.known):
            batch.append(change)
            if isinstance(change, Checkpoint):
                for one in batch:
                    held.take(one)
                batch = []
    except TemporarilyUnavailableError as error:
        return error
    return None


def test_a_short_wait_during_a_thread_is_slept(service: SlackService, url: str) -> None:
    service.max_page_size = 15
    root = service.post("C1", "root")
    for number in range(20):
        service.post("C1", f"{number}", to=root)
    waits = iter([rate_limited("1")])

    def refuse_once(request_: ReceivedRequest) -> Reply:
        service.fault = None
        return next(waits) if request_.path.endswith("replies") else service(request_)

    # auth.test, conversations.list, users.list, history and one page of answers go well
    service.requests_before_fault, service.fault = 5, refuse_once
    (found,) = documents(run(slack(url), Held()))
    assert found.sections[0].text.count("Ann Lee: ") == 21
    assert next(waits, None) is None


@pytest.mark.parametrize(
    ("answer", "error", "says"),
    [
        (
            {"error": "invalid_auth"},
            ActionRequiredError,
            "create a new token .*quarry sources edit s",
        ),
        ({"error": "token_revoked"}, ActionRequiredError, "token_revoked.*create a new token"),
        (
            {"error": "account_inactive"},
            ActionRequiredError,
            "account_inactive.*create a new token",
        ),
        (
            {"error": "missing_scope", "needed": "users:read"},
            ActionRequiredError,
            "the scope users:read",
        ),
        ({"error": "ratelimited"}, TemporarilyUnavailableError, "wait"),
        ({"error": "internal_error"}, TemporarilyUnavailableError, "internal_error"),
        ({"error": "something_new"}, TemporarilyUnavailableError, "something_new"),
        ({}, TemporarilyUnavailableError, "neither ok nor"),
    ],
)
def test_an_error_says_what_to_do(
    service: SlackService, url: str, answer: dict[str, str], error: type[Exception], says: str
) -> None:
    service.fault = lambda _: reply_json({"ok": False, **answer})
    for ask in (
        lambda: run(slack(url), Held()),
        lambda: list(list_documents(slack(url))),
        lambda: list(slack(url).refetch(["s:C1/1.0"])),
    ):
        with pytest.raises(error, match=says):
            ask()
    assert all(re.search(says, one.fault or "") for one in slack(url).check())


def test_a_channel_that_is_no_longer_ours_is_passed_over(service: SlackService, url: str) -> None:
    for own in ("C2", "C3", "G4"):
        service.add_channel(own, f"room-{own}", ["U1"])
        service.post(own, own)
    service.conversations["C2"].raw["is_member"] = False
    held = Held()
    with breaking_in(service, "G4"):
        assert texts(run(slack(url), held)) == ["Ann Lee: C3"]
    assert [one.document_id.partition("/")[0] for one in list_documents(slack(url))] == [
        "s:C3",
        "s:G4",
    ]
    service.is_app = False
    assert texts(run(slack(url, compare_days=0.001 / _DAY), held)) == ["Ann Lee: C2", "Ann Lee: G4"]


@contextmanager
def breaking_in(service: SlackService, channel: str) -> Iterator[None]:
    """The channel is gone as soon as messages are asked for."""
    gone = service.conversations[channel]

    def vanish(request: int) -> None:
        del request
        service.conversations.pop(channel, None)

    service.before_history = vanish
    yield
    service.before_history = lambda _: None
    service.conversations[channel] = gone


def test_a_thread_whose_answers_cannot_be_had_is_named(service: SlackService, url: str) -> None:
    root = service.post("C1", "Broken thread")
    service.post("C1", "answer", to=root)
    service.failing_threads.add(root)
    changes = run(slack(url), Held())
    (bad,) = [one for one in changes if isinstance(one, Unreadable)]
    assert bad.document_id == f"s:C1/{root}"
    assert bad.item == "#general: Broken thread"
    assert "fatal_error" in bad.reason
    assert bad.link == f"https://acme.slack.com/archives/C1/p{root.replace('.', '')}"


def test_unknown_ids_are_deletions_when_refetched(service: SlackService, url: str) -> None:
    root = service.post("C1", "root")
    answer = service.post("C1", "answer", to=root)
    ids = ["s:C9/1.000001", f"s:C1/{answer}", "s:C1/x", "s:", "other", "s:C1/1.000001"]
    assert list(slack(url).refetch(ids)) == [Deletion(one) for one in ids]


def test_channels_are_chosen_by_name_id_and_kind(service: SlackService, url: str) -> None:
    service.add_channel("C2", "team-saws", ["U1"])
    service.add_channel("C3", "team-noise", ["U1"])
    service.add_channel("G4", "team-board", ["U1"])
    service.add_channel("M5", "mpdm-ann--bo-1", ["U1", "U2"])
    service.add_channel("D6", "", ["U1", "U2"])
    for own in service.conversations:
        service.post(own, own)

    def read(**more: Any) -> set[str]:
        return {one.sections[0].text[-2:] for one in documents(run(slack(url, **more), Held()))}

    assert read() == {"C1", "C2", "C3", "G4"}
    assert read(include=("team-*",), exclude=("*-noise",)) == {"C2", "G4"}
    assert read(exclude=("C1", "G*")) == {"C2", "C3"}
    assert read(conversations=("public",)) == {"C1", "C2", "C3"}
    assert read(conversations=("direct", "group")) == {"M5", "D6"}


@pytest.mark.parametrize(
    ("missing", "says"),
    [
        ("channels:history", "lacks the scope channels:history"),
        ("groups:read", "lacks the scope groups:read"),
        ("users:read", "lacks the scope users:read"),
        ("files:read", "lacks the scope files:read"),
    ],
)
def test_a_missing_scope_is_named(service: SlackService, url: str, missing: str, says: str) -> None:
    service.scopes = " ".join(one for one in SCOPES.split() if one != missing)
    content, listing, _ = slack(url).check()
    assert content.fault == listing.fault
    assert says in (content.fault or "")


def test_a_scope_that_is_missing_during_a_run_is_named(service: SlackService, url: str) -> None:
    service.post("C1", "hello")
    service.scopes = SCOPES.replace("channels:history", "")
    with pytest.raises(ActionRequiredError, match="the scope channels:history: add it"):
        run(slack(url), Held())


def test_missing_e_mail_addresses_are_reported(service: SlackService, url: str) -> None:
    service.scopes = SCOPES.replace("users:read.email ", "")
    content, _, access = slack(url).check()
    assert content.fault is None
    assert "users:read.email" in (access.fault or "")


def test_an_app_without_channels_gets_a_hint(service: SlackService, url: str) -> None:
    service.conversations["C1"].raw["is_member"] = False
    content, _, access = slack(url).check()
    assert "invite the app" in (content.fault or "")
    assert access.fault is None


@pytest.mark.parametrize(
    ("settings_", "says"),
    [
        ({"read": {"kind": "api", "api_url": "http://slack.example/api"}}, "not encrypted"),
        ({"read": {"kind": "api", "api_url": "slack"}}, "not a web address"),
        ({"read": {"kind": "export", "path": "/x.zip"}}, "workspace_url"),
        ({"read": {"kind": "fax"}}, "api"),
        ({"include": ["a**"]}, "must stand alone"),
        ({"conversations": []}, "at least 1"),
    ],
)
def test_invalid_settings_have_a_reason(settings_: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        SlackSettings.model_validate(settings_)


def test_the_api_needs_a_token() -> None:
    with pytest.raises(ActionRequiredError, match="enter one, or read an export"):
        create_connector("slack", "s", {})
    made = create_connector("slack", "s", {}, {"token": "xoxb-1"})
    assert isinstance(made, SlackConnector)
    assert made.source == "s"


def test_an_old_state_is_not_trusted_from_the_future(service: SlackService, url: str) -> None:
    service.post("C1", "hello")
    held = Held()
    run(slack(url), held)
    assert held.since is not None
    actual = re.sub(r'"began": [\d.]+', '"began": 99999999999.0', held.since.value)
    held.since = Checkpoint(actual)
    service.post("C1", "world")
    assert texts(run(slack(url), held)) == ["Ann Lee: world"]
