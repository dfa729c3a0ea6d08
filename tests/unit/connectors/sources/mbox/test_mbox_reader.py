from datetime import UTC, datetime
from io import BufferedReader, BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.sources.mbox.mbox_reader import StoredMessage, iter_messages, read_message

FIRST = b"From ann@example.com Mon Jan  5 10:00:00 2026\n"


def opened(data: bytes) -> BufferedReader:
    return BufferedReader(BytesIO(data))


def messages(data: bytes) -> list[bytes]:
    with opened(data) as file:
        found = list(iter_messages(file))
        return [read_message(file, one.offset, one.size) for one in found]


def test_messages_lie_between_their_separators() -> None:
    data = FIRST + b"Subject: a\n\none\n\n" + FIRST + b"Subject: b\n\ntwo\n"
    with opened(data) as file:
        first, second = iter_messages(file)
    moment = int(datetime(2026, 1, 5, 10, tzinfo=UTC).timestamp())
    # 46 bytes of separator; then 11 of header, 1, 4 of text and 1 before the next separator
    assert first == StoredMessage(46, 17, b"Subject: a\n\n", moment)
    assert second == StoredMessage(46 + 17 + 46, 16, b"Subject: b\n\n", moment)


def test_a_line_of_the_text_that_begins_alike_is_no_separator() -> None:
    text = b"Subject: a\n\nFrom here on\nall is well.\n\nFrom there too.\n"
    assert messages(FIRST + text) == [text]


@pytest.mark.parametrize(
    "separator",
    [
        b"From \n",
        b"From - Mon Jan 05 10:00:00 2026\r\n",
        b"From 1712345678901234567@xxx Mon Jan 05 10:00:00 +0000 2026\n",
        b"From MAILER-DAEMON Mon Jan  5 10:00:00 2026\n",
    ],
)
def test_separators_of_known_programs(separator: bytes) -> None:
    data = separator + b"Subject: a\n\none\n\n" + separator + b"Subject: b\n\ntwo\n"
    assert len(messages(data)) == 2


def test_the_quoting_of_separators_is_undone() -> None:
    data = FIRST + b"Subject: a\n\n>From me\n>>From you\n> From them\n"
    assert messages(data) == [b"Subject: a\n\nFrom me\n>From you\n> From them\n"]


def test_what_stands_before_the_first_separator_is_no_message() -> None:
    assert messages(b"noise\n\n" + FIRST + b"Subject: a\n\none\n") == [b"Subject: a\n\none\n"]
    assert messages(b"") == messages(b"noise") == []


def test_headers_and_lines_without_end_are_bounded() -> None:
    data = (
        FIRST + b"Subject: a\nX: " + b"y" * 1_000_000 + b"\n\nFrom \n\n" + FIRST + b"Subject: b\n\n"
    )
    with opened(data) as file:
        found = list(iter_messages(file))
    assert [one.headers[:10] for one in found] == [b"Subject: a", b"\n", b"Subject: b"]
    assert all(len(one.headers) <= 65_536 for one in found)


LINES = st.lists(st.sampled_from([b"text", b"From me", b">From me", b"From a 10:00 2026", b""]))


@given(st.lists(LINES, min_size=1, max_size=4))
def test_what_is_written_as_mboxrd_is_read_as_it_was(bodies: list[list[bytes]]) -> None:
    written = [b"Subject: s\n\n" + b"".join(line + b"\n" for line in body) for body in bodies]
    data = b""
    for one in written:
        quoted = b"".join(
            b">" + line if line.lstrip(b">").startswith(b"From ") else line
            for line in one.splitlines(keepends=True)
        )
        data += FIRST + quoted + b"\n"
    assert messages(data) == [one + b"\n" for one in written]
