from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.chat.citations.verification import (
    EMBEDDED_TEXTS,
    Passage,
    Support,
    Verdict,
    anchors_present,
    find_support,
    negations_match,
    share,
    split_passages,
)
from connectors.document import Span
from indexing.embedding.embedder import Vectors
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.embedding.language_support import Understanding
from indexing.runtime.deadline import Deadline
from tests.support.chunks import chunk

UNDERSTOOD = Understanding({"English": 1.0, "German": 1.0, "French": 1.0, "Spanish": 1.0})


def support(sentence: str, text: str, title: str = "Handbook") -> Support:
    passages = split_passages([chunk("a", 0, text, title=title)])
    [found] = find_support(
        [(sentence, passages)], HashingEmbedder(), UNDERSTOOD, Deadline.after(30)
    )
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("sentence", "text", "title", "expected"),
    [
        # the very sentence
        ("Recordings are kept for 72 hours.", "Recordings are kept for 72 hours.", "", "supported"),
        # the same number in words
        ("Leave lasts 16 weeks.", "Leave lasts sixteen weeks.", "", "supported"),
        # the same day written otherwise
        ("It holds since 1 June 2025.", "It holds since 2025-06-01.", "", "supported"),
        # another number
        ("Recordings are kept for 24 hours.", "Recordings are kept for 72 hours.", "", "weak"),
        # another month
        ("It holds since 1 May 2025.", "It holds since 1 June 2025.", "", "weak"),
        # another code
        ("Reset it after QX-4031.", "Reset it after QX-4032.", "", "weak"),
        # another name
        ("You should ask Ann Lee.", "You should ask Bob Ray.", "", "weak"),
        # a name that begins the sentence of the passage
        ("You should ask Ann Lee first.", "Ann Lee should be asked first.", "", "supported"),
        # a name that only the title bears
        ("Let the Stonesight warm up first.", "Let it warm up first.", "Stonesight", "supported"),
        # the contrary
        ("Antifreeze may be used.", "Antifreeze may not be used.", "", "weak"),
        ("Antifreeze must not be used.", "Antifreeze must be used.", "", "weak"),
        # the denial is of something else
        ("Trips are booked early.", "Trips are booked early, and never by phone.", "", "supported"),
        # no word in common
        ("Dogs are welcome here.", "Invoices fall due at once.", "", "unsupported"),
    ],
)
def test_verdicts(sentence: str, text: str, title: str, expected: str) -> None:
    assert support(sentence, text, title).verdict == expected


def test_the_passage_that_holds_the_number_wins_over_one_that_is_more_like() -> None:
    text = "A room may cost up to 110 euros a night. A room in a capital costs 130 euros a night."
    found = support("A room may cost up to 130 euros a night.", text)
    assert found.quote == "A room in a capital costs 130 euros a night."


def test_two_sentences_are_quoted_where_one_says_too_little() -> None:
    text = "Close the cover until it clicks. Hold the power button for three seconds. Wait."
    found = support("Close the cover and hold the power button for three seconds.", text)
    assert (
        found.quote == "Close the cover until it clicks. Hold the power button for three seconds."
    )
    assert (
        support("Close the cover until it clicks.", text).quote
        == "Close the cover until it clicks."
    )


def test_without_passages_or_claim_there_is_no_support() -> None:
    passage = Passage("A sentence stands here.", 0, Span(0, 23))
    claims = [("Something.", []), ("  ", [passage]), ("A sentence stands here.", [passage])]
    nothing, blank, found = find_support(claims, HashingEmbedder(), UNDERSTOOD, Deadline.after(30))
    assert nothing is blank is None
    assert found is not None
    assert find_support([], HashingEmbedder(), UNDERSTOOD, Deadline.after(30)) == []


@dataclass(frozen=True)
class Counting(HashingEmbedder):
    calls: list[int] = field(default_factory=list)

    def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> Vectors:
        self.calls.append(len(texts))
        return super().embed_queries(texts, deadline)


def test_many_claims_share_one_bounded_call() -> None:
    passages = split_passages([chunk("a", 0, " ".join(f"Part {n} is blue." for n in range(300)))])
    embedder = Counting()
    claims = [(f"Part {n} is blue.", passages) for n in range(40)]
    found = find_support(claims, embedder, UNDERSTOOD, Deadline.after(30))
    assert [one.quote for one in found if one] == [sentence for sentence, _ in claims]
    (texts,) = embedder.calls
    assert texts <= EMBEDDED_TEXTS + len(claims)


def test_an_embedder_that_is_late_costs_the_meaning_only() -> None:
    passages = split_passages([chunk("a", 0, "Recordings are kept for 72 hours.")])
    (found,) = find_support(
        [("Recordings are kept for 72 hours.", passages)],
        HashingEmbedder(),
        UNDERSTOOD,
        Deadline.after(0),
    )
    assert found is not None
    assert (found.score, found.verdict) == (1.0, Verdict.SUPPORTED)


@given(text=st.text(max_size=300), sentence=st.text(min_size=1, max_size=80))
def test_a_quote_stands_verbatim_at_its_span(text: str, sentence: str) -> None:
    held = chunk("a", 0, text, span=Span(7, 7 + len(text)), section=2)
    passages = split_passages([held, held])
    (found,) = find_support(
        [(sentence, passages)], HashingEmbedder(), UNDERSTOOD, Deadline.after(30)
    )
    if found is not None:
        assert text[found.span.start - 7 : found.span.end - 7] == found.quote
        assert found.section == 2
        assert 0.0 <= found.score <= 1.0


@dataclass(frozen=True)
class Synonyms(HashingEmbedder):
    """Takes all texts for the same."""

    def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> Vectors:  # noqa: ARG002
        return np.tile(np.array([1.0, 0.0], np.float32), (len(texts), 1))


@pytest.mark.parametrize(
    ("understanding", "score", "verdict"),
    [
        (UNDERSTOOD, 0.6667, Verdict.SUPPORTED),  # (1/3 of the words + cosine 1) / 2
        (Understanding({}), 0.3333, Verdict.UNSUPPORTED),
    ],
)
def test_meaning_counts_where_the_language_is_understood(
    understanding: Understanding, score: float, verdict: Verdict
) -> None:
    passages = split_passages([chunk("a", 0, "The cycles are parked inside.")])
    claim = ("The bicycles stand inside.", passages)
    [found] = find_support([claim], Synonyms(), understanding, Deadline.after(30))
    assert found is not None
    assert (found.score, found.verdict) == (score, verdict)


def test_passages_are_sentences_and_pairs_under_their_headings() -> None:
    held = chunk("a", 0, "Lock it. Park it.", title="Bikes", heading_path=("Leeds", "Cellar"))
    assert [(each.text, each.sentences, each.heading) for each in split_passages([held])] == [
        ("Lock it.", 1, "Bikes Leeds Cellar"),
        ("Park it.", 1, "Bikes Leeds Cellar"),
        ("Lock it. Park it.", 2, "Bikes Leeds Cellar"),
    ]


def test_no_words_are_shared_with_nothing() -> None:
    assert share(frozenset(), frozenset({"word"})) == 0.0


@pytest.mark.parametrize(
    ("sentence", "passage", "expected"),
    [
        ("The van costs 40 euros.", "A van costs 60 euros. Bikes cost 40 euros.", False),
        ("The van costs 40 euros.", "Bikes cost 60 euros. A van costs 40 euros.", True),
        ("The van costs 40 euros.", "A van costs 40 euros for 60 km. Ask at the desk.", True),
    ],
)
def test_the_number_of_a_pair_is_that_of_the_sentence_it_is_like(
    sentence: str,
    passage: str,
    expected: bool,  # noqa: FBT001 - a column of the table
) -> None:
    *_, pair = split_passages([chunk("a", 0, passage)])
    assert pair.sentences == 2
    assert anchors_present(sentence, pair) is expected


@pytest.mark.parametrize(
    ("sentence", "passage", "expected"),
    [
        ("It is not open.", "", False),
        ("It is open.", "", True),
        ("Lamps shine.", "The gate is closed.", True),
        ("The gate is not closed on Sunday.", "The gate is closed on Sunday, no shop is.", False),
        ("Pay at once.", "Do not pay at once.", False),
        ("Do not pay at once.", "Do not pay at once.", True),
        ("Pay at once, but not in cash.", "Pay at once; cash is not taken.", True),
        ("Smoking is forbidden.", "Smoking is not allowed.", True),  # both deny
        ("Pay no later than Friday.", "Pay by Friday.", True),  # "no later" denies nothing
    ],
)
def test_clauses_deny_where_their_counterparts_do(
    sentence: str,
    passage: str,
    expected: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert negations_match(sentence, passage) is expected
