import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.mail.headers import Envelope, parse_envelope, strip_reply_prefixes, to_key


def of(headers: bytes, received: int = 7) -> Envelope:
    return parse_envelope(headers, folder="INBOX", number=1, size=100, received=received)


def test_what_the_headers_say() -> None:
    found = of(
        b"Message-ID: <c@x>\r\nReferences: <a@x>\r\n <b@x>\r\nIn-Reply-To: <b@x>\r\n"
        b"Subject: Re: =?utf-8?q?Gr=C3=B6=C3=9Fe?=\r\nFrom: =?utf-8?q?J=C3=B6rg?= <j@x>\r\n"
        b"Date: Thu, 01 Jan 1970 01:00:09 +0100\r\n\r\n"
    )
    assert (found.key, found.references) == ("c@x", ("a@x", "b@x"))
    assert (found.subject, found.base_subject, found.is_reply) == ("Re: Größe", "grösse", True)
    assert (found.sender, found.sent) == ("Jörg", 9)


@pytest.mark.parametrize(
    ("headers", "references"),
    [
        (b"In-Reply-To: Your message of Monday <a@x>\n", ("a@x",)),
        (b"In-Reply-To: a@x\n", ("a@x",)),
        # a message does not answer itself
        (b"References: <m@x> <a@x> <a@x>\n", ("a@x",)),
        # a mail program broke the line within an id
        (b"References: <a\n @x>\n", ("a@x",)),
        (b"References: <> < >\n", ()),
    ],
)
def test_what_a_message_answers(headers: bytes, references: tuple[str, ...]) -> None:
    assert of(b"Message-ID: <m@x>\n" + headers + b"\n").references == references


def test_of_endless_references_the_first_and_the_last_count() -> None:
    text = "".join(f" <{number}@x>" for number in range(1000))
    found = of(f"Message-ID: <m@x>\nReferences:{text}\n\n".encode()).references
    assert len(found) == 100
    assert (found[0], found[1], found[-1]) == ("0@x", "901@x", "999@x")


def test_a_message_without_an_id_is_known_by_what_it_says() -> None:
    first = of(b"Subject: a\nFrom: ann@x\n\n")
    assert first.key == of(b"Received: elsewhere\nSubject: a\nFrom: ann@x\n\n").key
    assert first.key != of(b"Subject: b\nFrom: ann@x\n\n").key


def test_an_id_that_no_document_could_have_is_digested() -> None:
    assert to_key("a+b@x.example.com") == "a+b@x.example.com"
    for odd in ("a" * 201, "ü@x", "a\x01@x"):
        assert to_key(odd).startswith("sha256-")


@pytest.mark.parametrize("date", [b"", b"Date: soon\n", b"Date: Mon, 99 Foo 99999 99:99 +9999\n"])
def test_a_message_without_a_time_has_that_of_its_coming(date: bytes) -> None:
    assert of(b"Subject: s\n" + date + b"\n", received=1234).sent == 1234


@pytest.mark.parametrize(
    ("subject", "topic"),
    [
        ("Re: Budget", "Budget"),
        ("RE: AW: Re[2]: Budget", "Budget"),
        ("[list] Re: Budget", "Budget"),
        ("回复：预算", "预算"),
        ("Reading list", "Reading list"),
        ("Fwd: Budget", "Fwd: Budget"),
    ],
)
def test_the_marks_of_replies(subject: str, topic: str) -> None:
    assert strip_reply_prefixes(subject) == topic


@given(st.binary(max_size=300))
def test_no_headers_are_too_odd(data: bytes) -> None:
    found = of(b"Subject: " + data)
    assert found.key
    "".join([found.key, found.subject, found.author, found.sender, *found.references]).encode()
    assert found.sent_at.utcoffset() is not None
