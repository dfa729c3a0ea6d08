from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.sources.imap.response_parser import (
    Malformed,
    Piece,
    answers,
    attributes,
    folder_name,
    internal_date,
    number,
)


def test_attributes_with_literals_lists_and_quoted_texts() -> None:
    pieces: list[Piece] = [
        (b'12 (UID 5 FLAGS (\\Seen "odd") BODY[HEADER.FIELDS (SUBJECT DATE)]<0> {3}', b"a)("),
        (b" BODY[] {2}", b"hi"),
        b' INTERNALDATE "a \\"b\\"" RFC822.SIZE 90)',
    ]
    assert attributes(pieces) == {
        "": b"12",
        "UID": b"5",
        "BODY[HEADER.FIELDS (SUBJECT DATE)]<0>": b"a)(",
        "BODY[]": b"hi",
        "INTERNALDATE": b'a "b"',
        "RFC822.SIZE": b"90",
    }


def test_pieces_are_put_together_up_to_the_end_of_each_answer() -> None:
    pieces: list[Piece | None] = [b"1 (UID 1)", (b"2 (BODY[] {1}", b"x"), b")", None]
    assert list(answers(pieces)) == [[b"1 (UID 1)"], [(b"2 (BODY[] {1}", b"x"), b")"]]
    with pytest.raises(Malformed):
        list(answers([(b"2 (BODY[] {1}", b"x")]))


@pytest.mark.parametrize("text", [b"1 (UID 5", b"1 UID 5)", b'1 (UID "5)'])
def test_what_does_not_match_is_malformed(text: bytes) -> None:
    with pytest.raises(Malformed):
        attributes([text])


@pytest.mark.parametrize("text", [b"", b"-1", b"5x", b"9" * 5000])
def test_no_number_is_malformed(text: bytes) -> None:
    with pytest.raises(Malformed):
        number({"UID": text}, "UID")


def test_times_and_what_is_none() -> None:
    assert internal_date(b" 1-Jan-1970 01:00:05 +0100") == 5
    assert internal_date(b"soon") == internal_date(b"31-Dec-1969 00:00:00 +0000") == 0


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
    assert folder_name(raw) == name


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_malformed(data: bytes) -> None:
    with suppress(Malformed):
        assert all(isinstance(value, bytes) for value in attributes([data]).values())
