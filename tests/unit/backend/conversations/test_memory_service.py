"""What may be remembered, and as what it is kept."""

import unicodedata
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.conversations.memory_service import LONGEST_MEMORY, MemoryService, clean_text
from backend.store.database import Database, open_database
from connectors.errors import InvalidInputError
from tests.support.conversations import OWNER


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with closing(open_database(database_url)) as opened:
        yield opened


@pytest.mark.parametrize(
    ("given_text", "kept"),
    [
        ("  I sit in Leeds.\n", "I sit in Leeds."),
        ("Cafe\u0301", "Caf\u00e9"),
        ("one\r\ntwo\rthree", "one\ntwo\nthree"),
        ("我在上海工作。", "我在上海工作。"),
        ("x" * LONGEST_MEMORY + "  ", "x" * LONGEST_MEMORY),
    ],
)
def test_a_text_is_kept_in_one_form(given_text: str, kept: str) -> None:
    assert clean_text(given_text) == kept


@pytest.mark.parametrize(
    ("refused", "said"),
    [
        ("", "visible characters"),
        (" \u200b\n", "visible characters"),
        ("x" * (LONGEST_MEMORY + 1), "at most 2,000 characters, these are 2,001"),
        # The composition of this letter is excluded: its normal form is two characters.
        ("\u0958" * LONGEST_MEMORY, "these are 4,000"),
        ("half \ud800", "an invalid character"),
        ("nul \0", "an invalid character"),
    ],
)
def test_what_cannot_be_remembered_is_refused_with_the_reason(refused: str, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        clean_text(refused)


@given(st.text(max_size=LONGEST_MEMORY + 5))
def test_whatever_is_kept_stays_as_it_is(text: str) -> None:
    try:
        kept = clean_text(text)
    except InvalidInputError:
        return
    assert clean_text(kept) == kept == kept.strip()
    assert unicodedata.is_normalized("NFC", kept)
    assert 0 < len(kept) <= LONGEST_MEMORY


def test_the_last_page_says_that_nothing_follows(database: Database) -> None:
    service = MemoryService(database=database, owner=OWNER)
    added = [service.add(f"Fact {number}.") for number in range(3)]
    first = service.list_page(None, 2)
    assert (first.memories, first.next is None) == (added[:0:-1], False)
    last = service.list_page(first.next, 2)
    assert (last.memories, last.next) == (added[:1], None)
    assert service.list_page(None, 3).next is None
    assert service.delete_all() == 3
    assert service.list_page(None, 3).memories == []
