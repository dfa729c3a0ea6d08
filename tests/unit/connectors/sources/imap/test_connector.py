"""Against a real mail server, and against one that says what a good one never does."""

import threading
import time
from base64 import b64encode
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest
from pydantic import SecretStr, ValidationError

from connectors.access import NOBODY, Access
from connectors.connector import Capability, Change, Checkpoint, Deletion, DocumentCount, Unreadable
from connectors.document import Document
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from connectors.sources.imap import session as session_module
from connectors.sources.imap import socket as socket_module
from connectors.sources.imap.connector import (
    AccessToken,
    ImapConnector,
    ImapCredential,
    ImapSettings,
    Password,
)
from tests.contract.connector_worlds.held import list_documents
from tests.support.files import email, pdf
from tests.support.services.imap import (
    HOST,
    PASSWORD,
    ImapProxy,
    InjectedResponse,
    Maildir,
    Script,
    dovecot,
    message,
    scripted,
)

RIGHT = ImapCredential(sign_in=Password(password=SecretStr(PASSWORD)))


@pytest.fixture
def maildir() -> Maildir:
    return dovecot().maildir()


@pytest.fixture
def proxy() -> Iterator[ImapProxy]:
    made = ImapProxy(dovecot().plain)
    yield made
    made.close()


def connector(
    user: str, port: int = 0, credential: ImapCredential = RIGHT, **settings: object
) -> ImapConnector:
    values = {
        "host": HOST,
        "port": port or dovecot().plain,
        "security": "plain",
        "user": user,
        "private_hosts": [HOST],
        **settings,
    }
    return ImapConnector("mail", ImapSettings.model_validate(values), credential)


class Held:
    """What Quarry would hold after the runs so far."""

    def __init__(self) -> None:
        self.versions: dict[str, str] = {}
        self.since: Checkpoint | None = None

    def run(self, source: ImapConnector) -> list[Change]:
        changes: list[Change] = []
        for change in source.changes(self.since, self.known):
            match change:
                case Checkpoint():
                    self.since = change
                    continue
                case DocumentCount():
                    continue
                case Document():
                    self.versions[change.id] = change.version
                case Deletion():
                    del self.versions[change.document_id]
                case _:
                    pass
            changes.append(change)
        return changes

    def known(self, ids: Sequence[str]) -> Mapping[str, str]:
        return {one: self.versions[one] for one in ids if one in self.versions}


def documents(source: ImapConnector) -> list[Document]:
    return [change for change in Held().run(source) if isinstance(change, Document)]


def sections_of(one: Document) -> list[tuple[str, str]]:
    return [(section.place.heading_path[0], section.text) for section in one.sections]


def test_a_conversation_over_two_folders_is_one_document_that_repeats_nothing(
    maildir: Maildir,
) -> None:
    maildir.put(message("Room", "Shall we meet at five?\n\n-- \nAnn\n", "a"))
    answer = message(
        "Re: Room",
        "Yes.\n\nOn 5 Jan 2026 Ann Lee wrote:\n> Shall we meet at five?\n",
        "b",
        From="Bo Ek <bo@example.com>",
        Date="Mon, 05 Jan 2026 11:30:00 +0100",
        To="Ann Lee <ann@example.com>",
        References="<a@mail.example.com>",
    )
    maildir.put(answer, "Sent")
    (one,) = documents(connector(maildir.user))
    assert one.id == "mail:a@mail.example.com"
    assert one.title == "Room"
    assert sections_of(one) == [
        ("Ann Lee, 2026-01-05 10:00 UTC", "Shall we meet at five?\n\n-- \nAnn"),
        ("Bo Ek, 2026-01-05 10:30 UTC", "Yes."),
    ]
    assert [section.link for section in one.sections] == [
        "mid:a@mail.example.com",
        "mid:b@mail.example.com",
    ]
    assert [person.email for person in one.owners] == ["ann@example.com", "bo@example.com"]
    assert one.parents == ("INBOX",)
    assert one.access == Access.to([f"user:{maildir.user}"])
    assert one.updated_at is not None
    assert one.created_at is not None
    assert one.updated_at - one.created_at == timedelta(minutes=30)


def test_attachments_are_read_and_those_that_cannot_be_are_named(maildir: Maildir) -> None:
    files = {"rates.pdf": pdf("Bonn 90"), "broken.pdf": b"%PDF-1.7"}
    maildir.put(email("Rates", "Attached.", files, Message_ID="<r@x>", From="ann@example.com"))
    (one,) = documents(connector(maildir.user))
    assert [(section.place.heading_path[1:], section.text) for section in one.sections] == [
        ((), "Attached."),
        (("rates.pdf",), "Bonn 90"),
    ]
    unread = one.metadata["attachments_unread"]
    assert len(unread) == 1
    assert unread[0].startswith("broken.pdf (")


def test_a_message_that_is_too_large_is_named_and_the_rest_of_its_conversation_read(
    maildir: Maildir,
) -> None:
    maildir.put(message("Photos", "See the next one.", "a"))
    maildir.put(message("Re: Photos", "x\n" * 3000, "b", References="<a@mail.example.com>"))
    (one,) = documents(connector(maildir.user, largest_message=5000))
    assert sections_of(one) == [("Ann Lee, 2026-01-05 10:00 UTC", "See the next one.")]
    unread = one.metadata["messages_unread"]
    assert len(unread) == 1
    assert "the limit is 5,000" in unread[0]


def test_folders_are_chosen_and_a_message_in_two_of_them_is_once(maildir: Maildir) -> None:
    for folder in ("INBOX", "Archive", "Trash"):
        maildir.put(message("Once", "Here.", "once"), folder)
    maildir.put(message("Thrown away", "Gone.", "trash"), "Trash")
    maildir.put(message("Work", "Deep.", "work"), "Projects.Bonn")
    assert {one.title: one.parents for one in documents(connector(maildir.user))} == {
        "Once": ("INBOX",),
        "Work": ("Projects", "Bonn"),
    }
    chosen = documents(
        connector(maildir.user, include=["Trash", "Projects/**"], exclude=["**/Bonn"])
    )
    assert {one.title for one in chosen} == {"Once", "Thrown away"}
    with pytest.raises(ActionRequiredError, match=r"the mailbox has: .*Projects/Bonn"):
        documents(connector(maildir.user, include=["Nowhere"]))


def test_where_nothing_came_or_went_no_message_is_asked_for(
    maildir: Maildir, proxy: ImapProxy
) -> None:
    path = maildir.put(message("A", "Text.", "a"))
    held, source = Held(), connector(maildir.user, proxy.port)
    held.run(source)
    before = len(proxy.commands)
    # that it was read is no change
    path.rename(path.with_name(path.name.replace(":2,S", ":2,FS")))
    assert held.run(source) == []
    asked = {command.split()[1] for command in proxy.commands[before:]}
    assert asked == {b"AUTHENTICATE", b"LIST", b"STATUS"}


def test_uids_that_are_counted_anew_double_nothing(maildir: Maildir) -> None:
    for number in range(3):
        maildir.put(message(f"M{number}", "Text.", f"m{number}"))
    held, source = Held(), connector(maildir.user)
    assert len(held.run(source)) == 3
    before = held.since
    time.sleep(1.1)  # UIDVALIDITY is a time in seconds
    maildir.reset_uids()
    assert held.run(source) == []
    assert held.since != before


def test_a_message_that_was_removed_leaves_its_conversation(maildir: Maildir) -> None:
    maildir.put(message("Plan", "First.", "a"))
    second = maildir.put(message("Re: Plan", "Second.", "b", References="<a@mail.example.com>"))
    held, source = Held(), connector(maildir.user)
    held.run(source)
    second.unlink()
    (one,) = held.run(source)
    assert isinstance(one, Document)
    assert [text for _, text in sections_of(one)] == ["First."]


def test_conversations_that_grow_together_are_held_once(maildir: Maildir) -> None:
    maildir.put(message("Plan", "First.", "a"))
    maildir.put(message("Other", "Second.", "b", Date="Tue, 06 Jan 2026 10:00:00 +0000"))
    held, source = Held(), connector(maildir.user)
    assert len(held.run(source)) == 2
    both = "<a@mail.example.com> <b@mail.example.com>"
    maildir.put(
        message("Both", "Third.", "c", References=both, Date="Wed, 07 Jan 2026 10:00:00 +0000")
    )
    gone, one = held.run(source)
    assert gone == Deletion("mail:b@mail.example.com")
    assert isinstance(one, Document)
    assert [text for _, text in sections_of(one)] == ["First.", "Second.", "Third."]
    assert {listed.document_id for listed in list_documents(source)} == set(held.versions)


def test_hostile_messages_are_survived(maildir: Maildir) -> None:
    hostile = {
        "headers": b"Subject: Long\n" + b"X-Filler: " + b"y" * 300_000 + b"\n\nhello\n",
        "mime": b"Subject: Deep\n" + b"Content-Type: multipart/mixed; boundary=a\n\n--a\n" * 300,
        "charset": b"Subject: =?x-none?q?Odd?=\nContent-Type: text/plain; charset=none\n\nhell\xf6\n",
        "name": b"Subject: S\nContent-Disposition: attachment; filename*=utf-8''%E4%BC%9A.txt\n\nhello\n",
        "zeros": b"Subject: Z\x00\x01\nFrom: \x00\nMessage-ID: <\x00\n\nhello\n",
        "nothing": b"\n\n",
    }
    for data in hostile.values():
        maildir.put(data)
    changes = Held().run(connector(maildir.user))
    assert len(changes) == len(hostile)
    titles = {one.title for one in changes if isinstance(one, Document)}
    assert {"Long", "S"} <= titles


def test_a_message_over_which_the_server_breaks_off_ends_nothing(maildir: Maildir) -> None:
    paths = [maildir.put(message(f"M{number}", "Text.", f"m{number}")) for number in range(9)]
    paths[4].chmod(0)
    changes = Held().run(connector(maildir.user))
    assert {one.title for one in changes if isinstance(one, Document)} == {
        f"M{number}" for number in range(9) if number != 4
    }
    (bad,) = [one for one in changes if isinstance(one, Unreadable)]
    assert bad.item == "message 5 of INBOX"
    assert "does not return it" in bad.reason


def test_a_conversation_that_was_read_in_part_is_read_again(
    maildir: Maildir, proxy: ImapProxy
) -> None:
    maildir.put(message("Plan", "First.", "a"))
    answer = message("Re: Plan", "Second.", "b", References="<a@mail.example.com>")
    path = maildir.put(answer)
    source, held = connector(maildir.user, proxy.port), Held()
    # the headers are known when the file can no longer be read
    proxy.run_before(b"BODY.PEEK[]", lambda: path.chmod(0))
    (part,) = held.run(source)
    assert isinstance(part, Document)
    assert [text for _, text in sections_of(part)] == ["First."]
    assert "does not return it" in part.metadata["messages_unread"][0]
    path.chmod(0o644)
    maildir.put(message("New", "Text.", "c"))
    whole = {one.title: one for one in held.run(source) if isinstance(one, Document)}
    assert [text for _, text in sections_of(whole["Plan"])] == ["First.", "Second."]


def test_tls_is_checked_and_starttls_agreed_on(maildir: Maildir) -> None:
    maildir.put(message("A", "Text.", "a"))
    authority = dovecot().authority
    over_tls = connector(maildir.user, dovecot().tls, security="tls", authority=authority)
    assert len(documents(over_tls)) == 1
    agreed = connector(maildir.user, security="starttls", authority=authority)
    assert len(documents(agreed)) == 1
    for security, port in (("tls", dovecot().tls), ("starttls", dovecot().plain)):
        unknown = connector(maildir.user, port, security=security)
        with pytest.raises(ActionRequiredError, match=r"certificate of 127\.0\.0\.1 is not valid"):
            documents(unknown)
    with pytest.raises(TemporarilyUnavailableError, match="is the port right"):
        documents(connector(maildir.user, dovecot().plain, security="tls"))


def test_a_file_of_an_authority_that_is_none_is_reported(maildir: Maildir, tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_bytes(b"")
    for name in ("empty.pem", "missing.pem"):
        source = connector(maildir.user, dovecot().tls, security="tls", authority=tmp_path / name)
        with pytest.raises(ActionRequiredError, match="correct authority"):
            documents(source)


def test_an_address_inside_needs_leave_and_nothing_goes_over_a_network_in_the_clear() -> None:
    with pytest.raises(ActionRequiredError, match="add the host"):
        documents(connector("ann@example.com", private_hosts=[]))
    abroad = connector("ann@example.com", host="192.0.2.7", private_hosts=["192.0.2.0/24"])
    with pytest.raises(ActionRequiredError, match="without encryption"):
        documents(abroad)


def test_a_wrong_password_is_reported_with_what_to_do(maildir: Maildir) -> None:
    wrong = ImapCredential(sign_in=Password(password=SecretStr("wrong")))
    source = connector(maildir.user, credential=wrong)
    with pytest.raises(ActionRequiredError, match="quarry sources edit mail"):
        documents(source)
    assert [one.capability for one in source.check() if one.fault] == list(Capability)


def test_readers_are_the_owner_those_of_the_settings_or_nobody(maildir: Maildir) -> None:
    maildir.put(message("A", "Text.", "a"))
    assert connector("ann", owner="Ann@Example.com")._settings.access() == Access.to(
        ["user:ann@example.com"]
    )
    shared = connector(maildir.user, readers=["group:sales", "user:Bo@Example.com"])
    assert documents(shared)[0].access == Access.to(["group:sales", "user:bo@example.com"])
    unknown = connector("ann")
    assert unknown._settings.access() == NOBODY
    with pytest.raises(ValidationError, match="not a reader"):
        connector("ann", readers=["everybody"])


def test_that_nobody_may_read_is_reported() -> None:
    with scripted(Script()) as port:
        faults = [one.fault for one in connector("ann", port).check()]
    assert faults[:2] == [None, None]
    assert "set owner" in str(faults[2])


@pytest.mark.parametrize(
    ("greeting", "after"),
    [
        (b"* BYE [UNAVAILABLE] too busy\r\n", timedelta(minutes=2)),
        (b"* BYE [THROTTLED] too often\r\n", timedelta(minutes=15)),
        (b"HTTP/1.1 400 Bad Request\r\n", timedelta(minutes=2)),
        (b"* OK {99999999999999}\r\n", timedelta(minutes=2)),
        (b"* OK {" + b"9" * 5000 + b"}\r\n", timedelta(minutes=2)),
        (b"x" * 1_200_000, timedelta(minutes=2)),
        (b"", timedelta(minutes=2)),
    ],
    ids=["busy", "throttled", "http", "large", "larger", "endless", "silent"],
)
def test_a_server_that_is_not_ready_is_asked_later(
    greeting: bytes, after: timedelta, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket_module, "_SILENCE_SECONDS", 0.3)
    with (
        scripted(Script(greeting=greeting)) as port,
        pytest.raises(TemporarilyUnavailableError) as caught,
    ):
        documents(connector("ann@example.com", port))
    assert caught.value.retry_after == after


def test_a_server_that_drips_does_not_hold_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "_COMMAND_SECONDS", 0.5)
    monkeypatch.setattr(session_module, "_MIN_BYTES_PER_SECOND", 10**12)
    begun = time.monotonic()
    script = Script(answers=[("LIST", b"* LIST () NIL INBOX\r\n" * 50)], pause=0.05)
    with (
        scripted(script) as port,
        pytest.raises(TemporarilyUnavailableError, match="takes too long"),
    ):
        documents(connector("ann@example.com", port))
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize(
    ("answer", "error", "says"),
    [
        (b"{tag} NO [AUTHENTICATIONFAILED] no\r\n", ActionRequiredError, "app password"),
        (b"{tag} NO no such user\r\n", ActionRequiredError, "app password"),
        (
            b"{tag} NO [UNAVAILABLE] the directory is down\r\n",
            TemporarilyUnavailableError,
            "directory",
        ),
        (b"{tag} NO [SERVERBUG] see the log\r\n", TemporarilyUnavailableError, "see the log"),
        (
            b"{tag} NO [LIMIT] too many connections\r\n",
            TemporarilyUnavailableError,
            "limits requests",
        ),
        (b"* BYE go away\r\n", TemporarilyUnavailableError, "go away"),
        (b"", TemporarilyUnavailableError, "closed the connection"),
    ],
)
def test_why_one_is_not_let_in_decides_who_acts(
    answer: bytes, error: type[Exception], says: str
) -> None:
    script = Script(answers=[("LOGIN", answer)])
    with scripted(script) as port, pytest.raises(error, match=says):
        documents(connector("ann@example.com", port))


def test_no_password_is_sent_where_the_server_forbids_it() -> None:
    forbids = b"* CAPABILITY IMAP4rev1 LOGINDISABLED\r\n{tag} OK done\r\n"
    script = Script(answers=[("CAPABILITY", forbids)])
    with scripted(script) as port, pytest.raises(ActionRequiredError, match="choose tls"):
        documents(connector("ann@example.com", port))
    assert not any(PASSWORD.encode() in command for command in script.seen)


@pytest.mark.parametrize(
    ("answers", "error", "says"),
    [
        ([], ActionRequiredError, "does not offer STARTTLS"),
        # orders that were slipped in before TLS must not be taken for its answers
        (
            [
                ("CAPABILITY", b"* CAPABILITY IMAP4rev1 STARTTLS\r\n{tag} OK done\r\n"),
                ("STARTTLS", b"{tag} OK begin\r\n* BAD slipped in\r\n"),
            ],
            TemporarilyUnavailableError,
            "before TLS",
        ),
    ],
    ids=["not offered", "injected"],
)
def test_without_starttls_no_password_is_sent(
    answers: list[tuple[str, bytes]], error: type[Exception], says: str
) -> None:
    script = Script(answers=answers)
    with scripted(script) as port, pytest.raises(error, match=says):
        documents(connector("ann@example.com", port, security="starttls"))
    assert not any(PASSWORD.encode() in command for command in script.seen)


def test_a_bearer_token_signs_in_and_a_refused_one_is_reported() -> None:
    token = ImapCredential(sign_in=AccessToken(access_token=SecretStr("token-1")))
    with scripted(_oauth(b"{tag} OK in\r\n")) as port:
        said = [str(one.fault) for one in connector("ann@example.com", port, token).check()]
    assert said == ["None"] * 3
    refused = b"+ eyJzdGF0dXMiOiI0MDAifQ==\r\n"
    with (
        scripted(_oauth(refused)) as port,
        pytest.raises(ActionRequiredError, match="get a new one"),
    ):
        documents(connector("ann@example.com", port, token))


def _oauth(answer: bytes) -> Script:
    """After the right token `answer`; after the empty line that ends the telling of an error, no."""
    token = b64encode(b"user=ann@example.com\1auth=Bearer token-1\1\1")
    return Script(
        answers=[("AUTHENTICATE XOAUTH2", b"+ \r\n")],
        continued={token: answer, b"": b"{tag} NO [AUTHENTICATIONFAILED] Invalid\r\n"},
    )


GMAIL = Script(
    answers=[
        ("CAPABILITY", b"* CAPABILITY IMAP4rev1 X-GM-EXT-1\r\n{tag} OK done\r\n"),
        (
            "LIST",
            b'* LIST (\\All) "/" "[Gmail]/All Mail"\r\n* LIST () "/" INBOX\r\n{tag} OK done\r\n',
        ),
        ("STATUS", b"* STATUS x (MESSAGES 2 UIDNEXT 3 UIDVALIDITY 1)\r\n{tag} OK done\r\n"),
        ("EXAMINE", b"* 2 EXISTS\r\n* OK [UIDVALIDITY 1] \r\n{tag} OK done\r\n"),
        (
            r"FETCH 1:2 .*X-GM-THRID",
            b"* 1 FETCH (X-GM-THRID 1278455344230334865 UID 1 RFC822.SIZE 40 BODY[HEADER] {17}\r\n"
            b"Message-ID: <a>\r\n)\r\n"
            b"* 2 FETCH (FLAGS (\\Seen))\r\n"
            b"* 2 FETCH (X-GM-THRID 1278455344230334865 UID 2 RFC822.SIZE 40 BODY[HEADER] {17}\r\n"
            b"Message-ID: <b>\r\n)\r\n{tag} OK done\r\n",
        ),
        (
            r"UID FETCH 1,2",
            b"* 1 FETCH (UID 1 BODY[]<0> {23}\r\nSubject: Hello\r\n\r\nFirst)\r\n"
            b"* 2 FETCH (UID 2 BODY[]<0> {21}\r\nSubject: Re\r\n\r\nSecond)\r\n{tag} OK done\r\n",
        ),
    ]
)


def test_gmail_says_itself_what_a_conversation_is() -> None:
    with scripted(GMAIL) as port:
        (one,) = documents(connector("ann@example.com", port))
    assert one.id == "mail:gm-1278455344230334865"
    assert [section.text for section in one.sections] == ["First", "Second"]
    assert one.parents == ("[Gmail]", "All Mail")
    assert one.sections[1].link == (
        "https://mail.google.com/mail/u/ann@example.com/#search/rfc822msgid%3Ab"
    )


def test_a_line_that_breaks_once_is_made_anew(maildir: Maildir, proxy: ImapProxy) -> None:
    for number in range(5):
        maildir.put(message(f"M{number}", "Text.", f"m{number}"))
    source = connector(maildir.user, proxy.port)
    proxy.run_before(b"BODY.PEEK[]", lambda: proxy.inject_after(0, _breaks_once(proxy)))
    assert len(documents(source)) == 5


def _breaks_once(proxy: ImapProxy) -> Callable[[bytes], InjectedResponse]:
    def respond(_: bytes) -> InjectedResponse:
        proxy.stop_injecting()
        return InjectedResponse(b"* BYE restarting\r\n", disconnects=True)

    return respond


def test_an_abandoned_run_leaves_no_connection(maildir: Maildir, proxy: ImapProxy) -> None:
    maildir.put(message("A", "Text.", "a"))
    before = threading.active_count()
    changes = connector(maildir.user, proxy.port).changes(None, lambda _: {})
    assert isinstance(next(changes), DocumentCount)
    assert isinstance(next(changes), Document)
    assert threading.active_count() > before
    cast("Generator[Change, None, None]", changes).close()
    ends = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < ends:
        time.sleep(0.01)
    assert threading.active_count() == before


@pytest.mark.parametrize(
    "wrong",
    [
        {"host": "imap.example.com/x"},
        {"host": "2130706433"},
        {"user": "ann\r\nLOGOUT"},
        {"owner": "ann"},
        {"include": ["a//b"]},
        {"webmail": "http://mail.example.com/{message_id}"},
        {"webmail": "https://mail.example.com/"},
        {"private_hosts": ["10.0.0.1/8"]},
        {"security": "none"},
        {"largest_message": 0},
    ],
    ids=str,
)
def test_settings_that_cannot_be_meant_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ImapSettings.model_validate({"host": HOST, "user": "ann@example.com"} | wrong)


def test_a_message_opens_where_the_settings_say(maildir: Maildir) -> None:
    maildir.put(message("A", "Text.", "a"))
    webmail = "https://mail.example.com/?id={message_id}"
    assert documents(connector(maildir.user, webmail=webmail))[0].link == (
        "https://mail.example.com/?id=a@mail.example.com"
    )
