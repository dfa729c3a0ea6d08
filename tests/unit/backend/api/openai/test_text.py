"""The text of answers with plain markers, and where a client wants it to end."""

from hypothesis import given
from hypothesis import strategies as st

from backend.api.openai.text import AnswerText, TextLimit
from backend.chat.citations.citation_processor import (
    CitationInfo,
    CitedDocument,
    DynamicCitationProcessor,
    SourceKind,
)
from backend.chat.document_addresses import SourceAddresses
from backend.chat.events import AnswerDone, ChatEvent, TextPiece
from backend.chat.passages import REASON_TEXTS, PassagesReason, PassagesShown

SERVER = "http://127.0.0.1:8321"
DOCUMENTS = {
    1: CitedDocument("wiki:leave.md", "Leave", "file:///srv/wiki/leave.md"),
    2: CitedDocument("wiki:a/../b (c).md", "Odd", ""),
    3: CitedDocument("https://example.com/a", "Page", "https://example.com/a", SourceKind.WEB),
    4: CitedDocument("memory/7", "Memory", "", SourceKind.MEMORY),
}
PIECES = st.sampled_from(
    ["[1]", "[2]", "[3]", "[4]", "[9]", "[1][3]", " ", "(a)", ": b", "text", "!", "\n\n", "`[1]`", "😀"]
)  # fmt: skip


def write(*texts: str) -> tuple[str, AnswerText]:
    """Write an answer as a turn does."""
    processor = DynamicCitationProcessor()
    processor.update_citation_mapping(DOCUMENTS)
    answer = AnswerText(SourceAddresses(SERVER))
    pieces = [piece for text in (*texts, None) for piece in processor.process_token(text)]
    events = [TextPiece(one) if isinstance(one, str) else one for one in pieces]
    return "".join(map(answer.add, events)), answer


@given(st.lists(PIECES, max_size=12))
def test_every_annotation_is_of_a_marker_and_no_link_is_left(texts: list[str]) -> None:
    text, answer = write(*texts)
    for cited in answer.citations(len(text)):
        number = int(text[cited.start_index + 1 : cited.end_index - 1])
        assert text[cited.start_index : cited.end_index] == f"[{number}]"
        assert cited.title == DOCUMENTS[number].title
        # No address and no definition makes a link of it.
        assert not text[cited.end_index :].startswith(("(", ":"))
    assert "[[" not in text


def test_each_source_has_an_address() -> None:
    text, answer = write("So [1][2][3][4].")
    assert text == "So [1][2][3][4]."
    assert [one.url for one in answer.citations(len(text))] == [
        f"{SERVER}/document/wiki:leave.md",
        f"{SERVER}/document/wiki:a%2F..%2Fb%20%28c%29.md",
        "https://example.com/a",
        f"{SERVER}/memories",
    ]


def test_a_budget_that_is_used_up_is_said() -> None:
    answer = AnswerText(SourceAddresses(SERVER))
    reason = PassagesReason.BUDGET_USED
    done = AnswerDone(text="Leave.", plain="Leave.", citations=(), model=None)
    events: list[ChatEvent] = [PassagesShown(reason, ()), TextPiece("Leave."), done]
    assert "".join(map(answer.add, events)) == f"Leave.\n\n{REASON_TEXTS[reason]}"


def test_a_marker_in_code_of_a_source_that_is_not_cited_is_text() -> None:
    answer = AnswerText(SourceAddresses(SERVER))
    assert answer.add(TextPiece("[1]")) == "[1]"
    assert answer.citations(3) == ()
    answer.add(CitationInfo(1, "wiki:leave.md", "Leave", ""))
    assert answer.add(TextPiece("[1]")) == "[1]"
    assert len(answer.citations(6)) == 1


@given(st.text("abST\n ", max_size=40), st.lists(st.integers(1, 5), max_size=40))
def test_a_stop_is_found_however_the_text_arrives(text: str, lengths: list[int]) -> None:
    stops = ("STA", "T\nT", "aaa")
    limit = TextLimit(stops, None, len)
    sent, rest = "", text
    for length in (*lengths, len(text)):
        piece, rest = rest[:length], rest[length:]
        if not limit.reached:
            sent += limit.take(piece)
    sent += "" if limit.reached else limit.end()
    found = [at for stop in stops if (at := text.find(stop)) >= 0]
    # Of two stops that overlap, the one that is whole first ends the text.
    whole = min((text.find(one) + len(one) for one in stops if one in text), default=None)
    assert text.startswith(sent)
    assert (limit.reached == "stop") is bool(found)
    assert len(sent) == limit.length
    if whole is None:
        assert sent == text
    else:
        assert min(found) <= len(sent) < whole


@given(st.lists(st.sampled_from(["one ", "two\n", "three", " "]), max_size=30), st.integers(1, 30))
def test_no_more_tokens_are_let_through_than_allowed(pieces: list[str], most: int) -> None:
    def count_words(text: str) -> int:
        return len(text.split())

    limit = TextLimit((), most, count_words)
    sent = ""
    for piece in pieces:
        if not limit.reached:
            sent += limit.take(piece)
    text = "".join(pieces)
    assert text.startswith(sent)
    assert count_words(sent) <= most
    assert (limit.reached == "length") is (sent != text)
