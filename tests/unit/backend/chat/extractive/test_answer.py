"""Extractive answers and quoted passages over sections made by hand, with an embedder that knows words only."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.chat.extractive.answer import (
    MAX_SENTENCES,
    QUOTE_CHARACTERS,
    AnswerSentence,
    extract_answer,
    names_unknown_codes,
    quote_passage,
    respell_codes,
)
from backend.chat.extractive.candidate_scoring import MAX_SCORED, remove_word, word_shares
from backend.chat.extractive.candidate_sentences import find_candidates
from backend.chat.extractive.question_checks import answer_type_mismatches, subject_words
from backend.chat.passages import QuotedPassage, TextRun
from backend.search.models import DocumentNumbers, InferenceSection
from connectors.document import Span
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from connectors.extraction import registry
from indexing.chunking.chunk import Chunk
from indexing.embedding.embedder import Vectors
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.embedding.language_support import LanguageSupport
from indexing.index.protocols import Evidence, Hit
from indexing.index.protocols import Evidence as FoundBy
from indexing.runtime.deadline import Deadline, DeadlineExceededError
from tests.support.candidates import found_in
from tests.support.chunks import chunk

UNDERSTOOD = LanguageSupport({"English": 1.0, "Chinese": 1.0, "Japanese": 1.0})
NOT_UNDERSTOOD = LanguageSupport({})
OLD = datetime(2023, 2, 1, tzinfo=UTC)
NEW = datetime(2025, 5, 12, tzinfo=UTC)

BATTERY = "The battery of the scanner lasts nine hours. Charge it overnight on the grey dock."
FILLER = (
    "Visitors sign the book in the lobby. The canteen closes at half past two."
    " Coats hang in the cupboard on the left. Parcels go to the post room before noon."
    " Windows are shut at the end of the day. Lamps go out by themselves after ten minutes."
)

SAWS = found_in("E-2207 means that the wire is slack. Ask for part PN-88-1402-A.")

DOCK = "# Dock\n\nThe dock is grey. It charges overnight. Ask the lab for help."


def section(*chunks: Chunk, cosine: float | None = 0.6) -> InferenceSection:
    best = Hit(chunks[0], 1.0, FoundBy(cosine=cosine), ())
    return InferenceSection(chunks, best, (best,))


def of(
    document_id: str, text: str, cosine: float | None = 0.6, **fields: object
) -> InferenceSection:
    return section(chunk(document_id, 0, text, **fields), cosine=cosine)


def extract(
    question: str,
    sections: Sequence[InferenceSection],
    embedder: HashingEmbedder | None = None,
    understanding: LanguageSupport = UNDERSTOOD,
) -> tuple[AnswerSentence, ...]:
    deadline = Deadline.after(30)
    return extract_answer(
        question, sections, embedder or HashingEmbedder(), understanding, deadline
    ).sentences


@pytest.mark.parametrize("understanding", [UNDERSTOOD, NOT_UNDERSTOOD])
def test_the_sentence_that_answers_is_reported_first(understanding: LanguageSupport) -> None:
    sections = [of("lobby", FILLER, 0.1), of("manual", BATTERY)]
    first, *_ = extract("How long does the scanner battery last?", sections, None, understanding)
    assert first.text == "The battery of the scanner lasts nine hours."
    assert 0 < first.score <= 1


def test_the_passage_of_the_best_sentence_is_the_first_that_is_shown() -> None:
    flyer = "The battery of the scanner lasts nine hours or more."
    sections = [of("manual", BATTERY), of("flyer", flyer, 0.58), of("lobby", FILLER, 0.1)]
    found = extract_answer(
        "How long does the battery of the scanner last?",
        sections,
        HashingEmbedder(),
        UNDERSTOOD,
        Deadline.after(30),
    )
    answering = [one.candidate.chunk.document_id for one in found.sentences]
    assert answering == ["manual", "flyer"]
    assert [one.candidate.chunk.document_id for one in found.closest][:2] == answering


@pytest.mark.parametrize("understanding", [UNDERSTOOD, NOT_UNDERSTOOD])
def test_what_nothing_speaks_of_is_declined(understanding: LanguageSupport) -> None:
    sections = [of("lobby", FILLER, 0.1), of("manual", BATTERY, 0.1)]
    assert extract("Which insurance covers dental treatment?", sections, None, understanding) == ()


def test_nothing_to_read_or_to_ask_is_no_answer() -> None:
    assert extract("How long?", []) == ()
    assert extract("How long?", [of("heading", "# Battery")]) == ()
    assert extract("  ", [of("manual", BATTERY)]) == ()


def test_a_code_that_nothing_holds_is_declined_however_like_it_is_to_another() -> None:
    sections = [of("codes", "QX-4031 means that the cover is open. Close it.")]
    assert extract("What does QX-4031 mean?", sections)
    assert extract("What does QX-4301 mean?", sections) == ()


@dataclass(frozen=True)
class Unreachable(HashingEmbedder):
    """Fails in a given way."""

    failure: Exception = field(default_factory=DeadlineExceededError)

    def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> Vectors:  # noqa: ARG002
        raise self.failure


@pytest.mark.parametrize(
    "failure",
    [DeadlineExceededError(), TemporarilyUnavailableError("no answer", timedelta(seconds=3))],
)
def test_an_embedder_that_fails_costs_the_meaning_only(failure: Exception) -> None:
    sections = [of("manual", BATTERY), of("lobby", FILLER)]
    answer = extract(
        "How long does the scanner battery last?", sections, Unreachable(failure=failure)
    )
    assert answer == extract(
        "How long does the scanner battery last?", sections, None, NOT_UNDERSTOOD
    )
    assert answer


def test_what_only_the_owner_can_mend_is_raised() -> None:
    with pytest.raises(ActionRequiredError):
        extract(
            "How long does the battery last?",
            [of("a", BATTERY)],
            Unreachable(failure=ActionRequiredError("key")),
        )


@dataclass(frozen=True)
class Counting(HashingEmbedder):
    calls: list[int] = field(default_factory=list)

    def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> Vectors:
        self.calls.append(len(texts))
        return super().embed_queries(texts, deadline)


@pytest.mark.soak("slow")
def test_the_embedder_is_called_twice_at_most_with_a_bounded_number_of_texts() -> None:
    embedder = Counting()
    long = " ".join(f"Shelf {n} holds the spare parts of machine {n}." for n in range(2000))
    extract(
        "How long may anybody keep a borrowed machine at home?", [of("shelves", long)], embedder
    )
    first, *rest = embedder.calls
    assert first <= 1 + 10 + MAX_SCORED  # the question, without each word, the sentences
    assert len(rest) <= 1
    assert sum(rest) <= 10 + 40  # words of the question, words around the best sentence


TRAVEL = "# Meals\n\nFor meals on a trip you receive {} euros a day."


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How much do I get for meals on a trip?", "new"),  # both say it: the newer one holds
        ("How much did I get for meals under the old policy?", "old"),
        ("How much did I get for meals on a trip in 2023?", "old"),  # only its title bears the year
    ],
)
def test_of_two_versions_the_one_that_is_asked_for_is_reported_alone(
    question: str, expected: str
) -> None:
    sections = [
        of(
            "old",
            TRAVEL.format(38),
            0.62,
            title="Travel (2023)",
            heading_path=("Meals",),
            updated_at=OLD,
        ),
        of("new", TRAVEL.format(45), 0.6, title="Travel", heading_path=("Meals",), updated_at=NEW),
        of("lobby", FILLER, 0.1),
    ]
    assert {one.candidate.chunk.document_id for one in extract(question, sections)} == {expected}


def test_a_newer_document_that_says_something_else_overrules_nothing() -> None:
    sections = [
        of("manual", BATTERY, updated_at=OLD),
        of("lobby", FILLER, 0.3, updated_at=NEW),
    ]
    first, *_ = extract("How long does the scanner battery last?", sections)
    assert first.candidate.chunk.document_id == "manual"


def test_a_chunk_that_two_sections_hold_is_read_once() -> None:
    one = of("manual", BATTERY)
    assert len(find_candidates([one, one])) == 2


def test_a_sentence_that_leans_on_the_one_before_is_quoted_with_it() -> None:
    text = "The dock is grey. It stands in the lab. Ask for help."
    assert [found.text for found in find_candidates([of("dock", text)])] == [
        "The dock is grey.",
        "The dock is grey. It stands in the lab.",
        "Ask for help.",
    ]


def test_headings_rulers_and_header_rows_are_no_answers() -> None:
    table = "| Name | Price in euros |\n|---|---|\n| Cover of the lens | 40 |"
    text = f"# Spare parts we sell\n\nSpare parts and where to buy\n\n{table}"
    found = find_candidates([of("parts", text, heading_path=("Spare parts",))])
    assert [one.text for one in found] == ["| Cover of the lens | 40 |"]


def test_of_markdown_a_link_is_what_its_label_says() -> None:
    text = (
        "![](images/the-cover-of-the-lens.png)\n\n[Home](https://example.com/the/home/of/parts)\n\n"
        "Ask for [a cover](https://example.com/forms?id=7) before you ship it."
    )
    (found,) = find_candidates([of("parts", text, media_type=registry.MARKDOWN)])
    assert found.display_text == "Ask for a cover before you ship it."
    assert found.span.of(text) == found.text
    assert len(find_candidates([of("parts", text, media_type=registry.TEXT)])) == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- Keep  the cover\tshut.", "Keep the cover shut."),
        ("* **Keep** the cover shut.", "**Keep** the cover shut."),
        ("**Keep** the cover shut.", "**Keep** the cover shut."),
        ("Close it\x1b[31m now\x07 and \u202ewait.", "Close it [31m now and wait."),
        ("| Lens cover | | 40 |", "Part: Lens cover; Price: 40"),  # an empty cell says nothing
        (r"| Lens \| cover | new | 40 |", "Part: Lens | cover; State: new; Price: 40"),
        ("| Lens cover | 40 |", "Lens cover; 40"),  # not as many cells as columns
    ],
)
def test_a_sentence_is_reported_in_one_line_that_is_safe_to_print(text: str, expected: str) -> None:
    table = f"| Part | State | Price |\n|---|---|---|\n{text}"
    (found,) = find_candidates([of("a", text, embedded_text=table if "|" in text else text)])
    assert found.display_text == expected


def test_sentences_of_one_chunk_are_reported_in_its_order() -> None:
    text = "The battery lasts nine hours in the scanner. The scanner battery lasts nine hours."
    answer = extract(
        "How long does the scanner battery last?", [of("manual", text), of("b", FILLER)]
    )
    assert [one.candidate.span.start for one in answer] == sorted(
        one.candidate.span.start for one in answer
    )


@given(
    text=st.text(max_size=400),
    question=st.text(max_size=80),
    start=st.integers(0, 1000),
    trust=st.sampled_from([UNDERSTOOD, NOT_UNDERSTOOD]),
)
def test_every_quote_stands_at_its_span_and_little_is_reported(
    text: str, question: str, start: int, trust: LanguageSupport
) -> None:
    placed = replace(
        chunk("a", 0, text), section=3, span=Span(start, start + len(text)), embedded_text=text
    )
    found = extract(question, [section(placed), of("manual", BATTERY)], None, trust)
    assert len(found) <= MAX_SENTENCES
    for one in found:
        span, held = one.candidate.span, one.candidate.chunk
        assert held.text[span.start - held.span.start : span.end - held.span.start] == (
            one.candidate.text
        )
        assert 0 <= one.score <= 1
        assert one.text.replace("\u200c", "").replace("\u200d", "").isprintable()


def test_rare_words_weigh_more_and_shares_are_of_the_whole() -> None:
    text = "Parts of a saw are blue. Parts of a drill are red. Parts of a lathe stay."
    shares = word_shares("parts drill", find_candidates([of("parts", text)]))
    saw, drill, lathe = shares.sentence
    assert saw == lathe
    assert drill == pytest.approx(1.0)
    # parts: held by 3 of 3, ln(1 + 0.5 / 3.5) = 0.134; drill: by 1, ln(1 + 2.5 / 1.5) = 0.981
    assert saw == pytest.approx(0.134 / (0.134 + 0.981), abs=0.001)


def test_a_number_of_other_things_answers_half_as_badly_as_none() -> None:
    text = "The saw rests for 9 days. The blade weighs 90 tons. The motor stays cold."
    found = find_candidates([of("saw", text)])
    assert answer_type_mismatches("How many days does the saw rest?", found).tolist() == [
        0.0,
        1.0,
        1.0,
    ]
    assert answer_type_mismatches("How many parts are there?", found).tolist() == [0.5, 0.5, 1.0]
    assert answer_type_mismatches("Is the blade heavy?", found).tolist() == [0.0, 0.0, 0.0]


def test_the_name_of_whoever_has_a_role_is_asked_for() -> None:
    text = "The chief financial officer approves it. Ines Almqvist is chief financial officer."
    found = find_candidates([of("staff", text)])
    asked = "Who is the chief financial officer?"
    assert answer_type_mismatches(asked, found).tolist() == [1.0, 0.0]
    assert answer_type_mismatches("Who approves it?", found).tolist() == [0.0, 0.0]


def test_words_that_matter_are_left_out_whole() -> None:
    assert subject_words("Can I bring my dog to the office?") == ["bring", "dog", "office"]
    assert remove_word("The dog and the dogma", "dog") == "The  and the dogma"
    assert remove_word("E-2207", "E-2207") == "?"


def quote(held: Chunk, text: str, *, answering: bool) -> QuotedPassage:
    """Quote the candidate with this text."""
    best = Hit(held, 1.0, Evidence(cosine=0.5), ())
    found = find_candidates([InferenceSection((held,), best, (best,))])
    (one, *_) = [each for each in found if each.text == text]
    return quote_passage(one, 0.12345, [one.span] if answering else [], DocumentNumbers())


def test_the_neighbors_are_quoted_and_the_answer_is_highlighted() -> None:
    shown = quote(chunk("a", 0, DOCK), "Ask the lab for help.", answering=True)
    assert shown.quote == "The dock is grey. It charges overnight. Ask the lab for help."
    assert shown.runs == (
        TextRun("The dock is grey. It charges overnight. "),
        TextRun("Ask the lab for help.", highlighted=True),
    )
    assert (shown.number, shown.score) == (1, 0.1235)


def test_of_a_table_a_row_is_quoted_alone_and_read_with_its_columns() -> None:
    rows = "| Part | Price |\n|---|---|\n| Lens cover | 40 |\n| Grey dock | 90 |"
    shown = quote(chunk("a", 0, rows, embedded_text=rows), "| Grey dock | 90 |", answering=False)
    assert shown.quote == "| Grey dock | 90 |"
    assert shown.runs == (TextRun("Part: Grey dock; Price: 90"),)


def test_a_quote_is_as_long_as_fits() -> None:
    text = " ".join(f"Shelf {n} holds the spare parts of machine {n}." for n in range(100))
    shown = quote(
        chunk("a", 0, text), "Shelf 50 holds the spare parts of machine 50.", answering=True
    )
    assert QUOTE_CHARACTERS - 100 < len(shown.quote) <= QUOTE_CHARACTERS


def test_scripts_without_blanks_are_joined_without_blanks() -> None:
    text = "入口在左边。请先登记。"
    shown = quote(chunk("a", 0, text), "请先登记。", answering=False)
    assert shown.runs == (TextRun(text),)


def test_the_place_is_where_the_headings_lead_or_the_page() -> None:
    headed = chunk("a", 0, DOCK, title="Manual", heading_path=("Manual", "Tools", "Dock"))
    paged = chunk("a", 0, DOCK, title="Manual", page=7)
    text = "The dock is grey."
    assert quote(headed, text, answering=False).place == "Tools › Dock"
    assert quote(paged, text, answering=False).place == "page 7"


@given(
    text=st.text(alphabet="Ab1 .?\n|#。-", max_size=200),
    start=st.integers(0, 100),
    data=st.data(),
)
def test_a_quote_stands_at_its_span_and_holds_what_is_highlighted(
    text: str, start: int, data: st.DataObject
) -> None:
    held = replace(
        chunk("a", 0, text), section=3, span=Span(start, start + len(text)), embedded_text=text
    )
    best = Hit(held, 1.0, Evidence(cosine=0.5), ())
    found = find_candidates([InferenceSection((held,), best, (best,))])
    if not found:
        return
    one = data.draw(st.sampled_from(found))
    shown = quote_passage(one, 0.5, [one.span], DocumentNumbers())
    assert (" " * start + text)[shown.span.start : shown.span.end] == shown.quote
    assert shown.span.start <= one.span.start < one.span.end <= shown.span.end
    assert any(run.highlighted for run in shown.runs)


@pytest.mark.parametrize(
    ("question", "respelled"),
    [
        ("What does E2207 mean?", "What does E-2207 mean?"),
        ("What is PN881402A?", "What is PN-88-1402-A?"),
        ("What does E-2207 mean?", "What does E-2207 mean?"),
        ("What does E2270 mean?", "What does E2270 mean?"),
        ("What is slack?", "What is slack?"),
    ],
)
def test_a_code_is_written_as_the_passages_write_it(question: str, respelled: str) -> None:
    assert respell_codes(question, SAWS) == respelled


@given(st.text(max_size=80))
def test_what_has_no_code_of_the_passages_is_left_as_it_is(question: str) -> None:
    assert respell_codes(question, found_in("The wire is slack.")) == question


def test_codes_that_no_passage_has() -> None:
    assert names_unknown_codes("What does E-2270 mean?", SAWS)
    assert not names_unknown_codes("What does E-2207 mean?", SAWS)
    assert not names_unknown_codes("What is slack?", SAWS)
