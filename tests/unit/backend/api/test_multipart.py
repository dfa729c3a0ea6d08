"""The form of an upload: one file, its bytes as they are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.api.multipart import read_file, read_file_with
from connectors.errors import InvalidInputError

TYPE = 'multipart/form-data; boundary="b0und"'


def _form(*parts: bytes) -> bytes:
    return b"".join(b"--b0und\r\n" + part + b"\r\n" for part in parts) + b"--b0und--\r\n"


def _part(head: str, data: bytes = b"x") -> bytes:
    return f"Content-Disposition: form-data; {head}\r\n\r\n".encode() + data


@given(st.binary().filter(lambda data: b"b0und" not in data))
def test_bytes_are_kept(data: bytes) -> None:
    body = _form(_part('name="a"'), _part('name="file"; filename="ä %22b%22.txt"', data))
    found = read_file(TYPE, body)
    assert (found.name, found.data) == ('ä "b".txt', data)


@given(st.binary(), st.text())
def test_whatever_comes_is_read_or_refused(body: bytes, content_type: str) -> None:
    for given_type in (TYPE, content_type):
        with pytest.raises(InvalidInputError):
            read_file(given_type, body)


@pytest.mark.parametrize(
    "body",
    [
        _form(),
        _form(_part('name="file"')),
        _form(_part('filename="a"'), _part('filename="b"')),
        _form(*[_part('name="n"')] * 30, _part('filename="a"')),
        _form(_part('filename="a"')).removesuffix(b"--\r\n"),
    ],
)
def test_what_is_no_form_with_one_file_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidInputError):
        read_file(TYPE, body)


@given(st.text().filter(lambda text: "b0und" not in text))
def test_a_text_beside_the_file_is_kept(text: str) -> None:
    body = _form(_part('name="metadata"', text.encode()), _part('name="file"; filename="a.txt"'))
    said, file = read_file_with(TYPE, body, "metadata")
    assert (said, file.name, file.data) == (text, "a.txt", b"x")


@pytest.mark.parametrize(
    "parts",
    [
        [_part('name="file"; filename="a"')],
        [_part('name="metadata"'), _part('name="metadata"'), _part('filename="a"')],
        [_part('name="metadata"', b"\xff"), _part('filename="a"')],
        [_part('name="metadata"')],
        [_part('name="metadata"; filename="a"')],
    ],
    ids=["no text", "two texts", "no UTF-8", "no file", "the text is the file"],
)
def test_a_form_without_one_text_and_one_file_is_refused(parts: list[bytes]) -> None:
    with pytest.raises(InvalidInputError):
        read_file_with(TYPE, _form(*parts), "metadata")
