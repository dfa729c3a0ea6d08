from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.sources.imap.response_parser import (
    MalformedResponseError,
    ResponsePart,
    decode_folder_name,
    group_responses,
    parse_attributes,
    parse_internal_date,
    parse_number,
)


def test_attributes_with_literals_lists_and_quoted_texts() -> None:
    parts: list[ResponsePart] = [
        (b'12 (UID 5 FLAGS (\\Seen "odd") BODY[HEADER.FIELDS (SUBJECT DATE)]<0> {3}', b"a)("),
        (b" BODY[] {2}", b"hi"),
        b' INTERNALDATE "a \\"b\\"" RFC822.SIZE 90)',
    ]
    assert parse_attributes(parts) == {
        "": b"12",
        "UID": b"5",
        "BODY[HEADER.FIELDS (SUBJECT DATE)]<0>": b"a)(",
        "BODY[]": b"hi",
        "INTERNALDATE": b'a "b"',
        "RFC822.SIZE": b"90",
    }


def test_parts_are_put_together_up_to_the_end_of_each_answer() -> None:
    parts: list[ResponsePart | None] = [b"1 (UID 1)", (b"2 (BODY[] {1}", b"x"), b")", None]
    assert list(group_responses(parts)) == [[b"1 (UID 1)"], [(b"2 (BODY[] {1}", b"x"), b")"]]
    with pytest.raises(MalformedResponseError):
        list(group_responses([(b"2 (BODY[] {1}", b"x")]))


@pytest.mark.parametrize("text", [b"1 (UID 5", b"1 UID 5)", b'1 (UID "5)'])
def test_what_does_not_match_is_malformed(text: bytes) -> None:
    with pytest.raises(MalformedResponseError):
        parse_attributes([text])


@pytest.mark.parametrize("text", [b"", b"-1", b"5x", b"9" * 5000])
def test_no_number_is_malformed(text: bytes) -> None:
    with pytest.raises(MalformedResponseError):
        parse_number({"UID": text}, "UID")


def test_times_and_what_is_none() -> None:
    assert parse_internal_date(b" 1-Jan-1970 01:00:05 +0100") == 5
    assert parse_internal_date(b"soon") == parse_internal_date(b"31-Dec-1969 00:00:00 +0000") == 0


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        (b"INBOX", "INBOX"),
        (b"Entw&APw-rfe", "Entwürfe"),
        (b"~peter/mail/&U,BTFw-/&ZeVnLIqe-", "~peter/mail/台北/日本語"),
        (b"Tom &- Jerry", "Tom & Jerry"),
        (b"broken &zz", "broken &zz"),
    ],
)
def test_names_of_folders(raw: bytes, name: str) -> None:
    assert decode_folder_name(raw) == name


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_malformed(data: bytes) -> None:
    with suppress(MalformedResponseError):
        assert all(isinstance(value, bytes) for value in parse_attributes([data]).values())
