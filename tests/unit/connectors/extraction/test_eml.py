from datetime import UTC, datetime
from email.message import EmailMessage

import pytest

from connectors.document import Person
from connectors.extraction import eml as mail_module
from connectors.extraction.eml import read_eml
from connectors.extraction.registry import extract
from connectors.extraction.result import ExtractionError, ExtractionResult
from tests.support.files import email, pdf, word_document


def read(data: bytes) -> ExtractionResult:
    return read_eml(data, extract)


def outline(mail: ExtractionResult) -> list[tuple[tuple[str, ...], str]]:
    return [(one.place.heading_path, one.text) for one in mail.sections]


def test_headers_say_who_when_and_about_what() -> None:
    found = read(
        email(
            "会議 next week",
            "See you.\n",
            From="Ann Lee <Ann@example.com>",
            To="Bö <bo@example.com>, cy@example.com",
            Date="Mon, 05 Jan 2026 10:00:00 +0200",
        )
    )
    assert found.title == "会議 next week"
    assert found.authors == (Person("Ann Lee", "ann@example.com"),)
    assert found.created_at == found.updated_at == datetime(2026, 1, 5, 8, tzinfo=UTC)
    assert found.metadata == {
        "from": ("Ann Lee <Ann@example.com>",),
        "to": ("Bö <bo@example.com>", "cy@example.com"),
    }
    assert outline(found) == [((), "See you.")]


def test_attachments_are_read_by_their_own_formats_and_named() -> None:
    inner = email("Older", "Earlier text.", {"deep.txt": b"deep"})
    files = {
        "rates.pdf": pdf("Bonn 90"),
        "policy.docx": word_document("# Leave", "Thirty days."),
        "older.eml": inner,
        "logo.png": b"\x89PNG....",
        "broken.pdf": b"%PDF-1.7",
    }
    found = read(email("All", "Attached.", files))
    assert outline(found) == [
        ((), "Attached."),
        (("rates.pdf",), "Bonn 90"),
        (("policy.docx", "Leave"), "Thirty days."),
        (("older.eml",), "Earlier text."),
        (("older.eml", "deep.txt"), "deep"),
    ]
    assert found.sections[1].place.page == 1
    assert found.sections[4].place.span is None
    assert found.metadata["attachments"] == (
        *("rates.pdf", "policy.docx", "older.eml", "deep.txt", "logo.png", "broken.pdf"),
    )
    unread = found.metadata["attachments_unread"]
    assert [text.split(" (")[0] for text in unread] == ["logo.png", "broken.pdf"]


def test_the_plain_body_is_preferred_and_html_is_read_where_it_is_the_only_one() -> None:
    message = EmailMessage()
    message["Subject"] = "s"
    message.set_content("plain")
    message.add_alternative("<h1>Title</h1><p>rich</p>", subtype="html")
    assert outline(read(message.as_bytes())) == [((), "plain")]
    message = EmailMessage()
    message["Subject"] = "s"
    message.set_content("<h1>Title</h1><p>rich</p>", subtype="html")
    assert outline(read(message.as_bytes())) == [(("Title",), "rich")]


def test_a_forwarded_message_is_an_attachment() -> None:
    outer, inner = EmailMessage(), EmailMessage()
    inner["Subject"] = "The original"
    inner.set_content("first words")
    outer["Subject"] = "Fwd"
    outer.set_content("see below")
    outer.add_attachment(inner)
    assert outline(read(outer.as_bytes())) == [
        ((), "see below"),
        (("The original",), "first words"),
    ]


def test_a_subject_alone_is_the_text() -> None:
    assert outline(read(b"Subject: call me\n\n")) == [((), "call me")]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"just some text\nand more\n", "no headers"),
        (b"From: a@b.c\n\n", "no text"),
        (b"Content-Type: message/rfc822\n\n" * 5_000, "nested too deeply"),
        (b"Content-Type: text/plain" + b";a=b" * 20_000 + b"\n\nx", "longer than 50,000 bytes"),
        (
            b"From: a@b.c\r\ncontent-type: text/plain" + b";\r\n a=b" * 9_000 + b"\r\n\r\nx",
            "a header",
        ),
        (b"Content-Disposition: inline" + b";a=b" * 20_000, "a header"),
    ],
)
def test_what_is_no_mail_says_why(data: bytes, says: str) -> None:
    with pytest.raises(ExtractionError, match=says):
        read(data)


@pytest.mark.parametrize(
    "header",
    [
        b"Subject: =?no-such?q?caf=E9?=",
        b"Subject: =?utf-8?b?!!!?=",
        b"Subject: caf\xe9 \xff",
        b"Subject: \x00\x01\x02\x03\x04\x05",
        b"Subject: s\nDate: no date at all",
        b"Subject: s\nDate: Mon, 99 Foo 99999 99:99:99 +9999",
        b'Subject: s\nFrom: <<<@@,,"(',
        b"Subject: s\nContent-Type: text/plain; charset=nonsense",
        b"Subject: s\nContent-Type: ;;;===",
        b"Subject: s\nContent-Type: multipart/mixed",
        b"Subject: s\nContent-Transfer-Encoding: base64",
    ],
)
def test_odd_headers_are_survived(header: bytes) -> None:
    found = read(header + b"\n\nhello w\xf6rld\n")
    "".join([found.title or "", *(one.text for one in found.sections)]).encode()
    assert found.sections


def test_a_long_line_that_is_no_header_is_read() -> None:
    body = f"A content-type: {'word ' * 20_000}\n\nContent-type: text/plain\n{'word ' * 20_000}"
    found = read(f"Subject: s\n\n{body}".encode())
    assert sum(one.text.count("word") for one in found.sections) == 40_000


def test_raw_bytes_in_a_header_are_decoded() -> None:
    assert read("Subject: Größe\n\nx".encode()).title == "Größe"
    assert read("Subject: Größe\n\nx".encode("latin-1")).title == "Größe"


def test_a_mail_saved_as_utf16_is_read() -> None:
    assert outline(read("Subject: s\n\nhello".encode("utf-16"))) == [((), "hello")]


def test_nesting_and_number_of_attachments_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    data = email("0", "bottom")
    for level in range(7):
        data = email(str(level + 1), f"level {level}", {f"{level}.eml": data})
    found = read(data)
    assert "bottom" not in [one.text for one in found.sections]
    assert found.metadata["attachments_unread"] == (
        "1.eml (it is nested more than 5 attachments deep)",
    )
    monkeypatch.setattr(mail_module, "_MOST_ATTACHMENTS", 1)
    found = read(email("s", "t", {"a.txt": b"a", "b.txt": b"b"}))
    assert outline(found) == [((), "t"), (("a.txt",), "a")]
    assert found.metadata["attachments_unread"] == ("1 more than 1 attachments",)


def test_a_body_that_is_no_text_does_not_hide_the_rest() -> None:
    message = EmailMessage()
    message["Subject"] = "s"
    message.set_content(bytes(range(256)), "text", "plain", disposition="inline")
    message.add_attachment(b"fine", "text", "plain", filename="a.txt")
    found = read(message.as_bytes())
    assert outline(found) == [(("a.txt",), "fine")]
    assert "control characters" in str(found.metadata["attachments_unread"])


def test_a_multipart_mail_without_its_parts_is_read_as_text() -> None:
    data = b"Subject: s\nContent-Type: multipart/alternative\n\nhello\n"
    assert outline(read(data)) == [((), "hello")]
