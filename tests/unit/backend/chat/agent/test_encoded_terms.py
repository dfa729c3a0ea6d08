"""Words that are another text in disguise are read; others are left alone."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.chat.agent.encoded_terms import SHORTEST, decode_word

TEXT = "Gerda Krummholz ZX-4417"


@pytest.mark.parametrize(
    "word",
    [
        TEXT[::-1],
        base64.b64encode(TEXT.encode()).decode(),
        base64.urlsafe_b64encode(TEXT.encode()).decode().rstrip("="),
        TEXT.encode().hex(),
        f"0x{TEXT.encode().hex().upper()}",
        TEXT.encode().hex(":"),
        "Gerda+Krummholz%20ZX%2D4417",
    ],
)
def test_a_disguise_is_seen_through(word: str) -> None:
    assert TEXT in list(decode_word(word))


@given(st.text())
def test_any_word_is_read_without_an_error(word: str) -> None:
    found = list(decode_word(word))
    assert len(found) <= 4
    assert found or len(word) < SHORTEST


@given(st.binary(min_size=4))
def test_what_is_encoded_of_bytes_is_text_or_nothing(content: bytes) -> None:
    for word in (content.hex(), base64.b64encode(content).decode()):
        assert all(isinstance(one, str) for one in decode_word(word))
