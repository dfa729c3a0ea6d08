from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.chat.citations.compared_claim import (
    EMBEDDED_PASSAGES,
    EMBEDDED_TEXTS,
    ComparedClaim,
    share,
)
from backend.chat.citations.evidence import Passage, split_passages
from backend.chat.citations.verification import Support, Verdict, find_support
from connectors.access import EVERYBODY
from connectors.document import Document, Span
from connectors.extraction.registry import extract
from indexing.chunking.chunker import chunk_document
from indexing.embedding.embedder import Vectors
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.embedding.language_support import LanguageSupport
from indexing.runtime.deadline import Deadline
from tests.support.chunks import chunk
from tests.support.models import minilm

ENGLISH = LanguageSupport({"English": 1.0})
HANDBOOK = Path(__file__).parents[5] / "backend" / "sample" / "handbook"


def judge(claim: str, passages: Sequence[Passage]) -> Support:
    (found,) = find_support([(claim, passages)], minilm(), ENGLISH, Deadline.after(60))
    return found


def support(claim: str, text: str, title: str = "Handbook") -> Support:
    return judge(claim, split_passages([chunk("a", 0, text, title=title)]))


@cache
def page(name: str) -> list[Passage]:
    media_type = "text/markdown"
    found = extract((HANDBOOK / name).read_bytes(), media_type)
    document = Document(
        id=name,
        source="handbook",
        title=found.title or name,
        sections=found.sections,
        link="",
        media_type=media_type,
        access=EVERYBODY,
        version="1",
    )
    return split_passages(chunk_document(document, minilm()))


@pytest.mark.parametrize(
    ("name", "claim", "expected"),
    [
        (
            "people/parental-leave.md",
            "Parents get sixteen weeks of leave at full pay.",
            "supported",
        ),
        ("people/parental-leave.md", "Leave is at half pay.", "contradicted"),
        ("people/parental-leave.md", "Parents get sixteen months of leave.", "contradicted"),
        (
            "people/parental-leave.md",
            "It must be taken before the child's third birthday.",
            "contradicted",
        ),
        (
            "people/parental-leave.md",
            "It must be taken before the child's first birthday.",
            "supported",
        ),
        (
            "people/parental-leave.md",
            "Parents get sixteen weeks of leave, which was caused by a sabotage of a competitor.",
            "weak",
        ),
        ("people/parental-leave.md", "父母可享受十六周的全薪育儿假。", "unchecked"),
        ("people/parental-leave.md", "Sources: [1] [2]", "unchecked"),
        ("people/parental-leave.md", "- [1]", "unchecked"),
        ("people/parental-leave.md", "Parental leave", "unchecked"),
        ("people/parental-leave.md", "Is the leave paid?", "unchecked"),
        (
            "support/error-codes-saws.md",
            "E-2207 means that the tension of the wire has risen above its upper limit.",
            "contradicted",
        ),
        (
            "support/error-codes-saws.md",
            "E-2207 means that the tension of the wire is below its lower limit.",
            "supported",
        ),
        ("engineering/on-call.md", "A week of on-call duty is paid with 240 euros.", "supported"),
        (
            "engineering/on-call.md",
            "A week of on-call duty is paid with 240 dollars.",
            "contradicted",
        ),
    ],
)
def test_claims_on_the_pages_of_a_handbook(name: str, claim: str, expected: str) -> None:
    assert judge(claim, page(name)).verdict == expected


@pytest.mark.parametrize(
    ("claim", "text", "expected"),
    [
        # the very sentence
        ("Recordings are kept for 72 hours.", "Recordings are kept for 72 hours.", "supported"),
        # the same number in words
        ("Leave lasts 16 weeks.", "Leave lasts sixteen weeks.", "supported"),
        # the same day written otherwise
        ("It holds since 1 June 2025.", "It holds since 2025-06-01.", "supported"),
        # the same time in another unit
        ("The trial lasts two weeks.", "The trial lasts 14 days.", "supported"),
        # another number, month, day, year, code, name
        ("Recordings are kept for 24 hours.", "Recordings are kept for 72 hours.", "contradicted"),
        ("It holds since 1 May 2025.", "It holds since 1 June 2025.", "contradicted"),
        ("It holds since 2 June 2025.", "It holds since 1 June 2025.", "contradicted"),
        ("It holds since June 2024.", "It holds since June 2025.", "contradicted"),
        ("Reset it after QX-4031.", "Reset it after QX-4032.", "contradicted"),
        ("You should ask Ann Lee first.", "You should ask Bob Ray first.", "contradicted"),
        # a name that begins the sentence
        (
            "Houston keeps the archive.",
            "Lisbon keeps the archive; Lisbon is in Portugal.",
            "contradicted",
        ),
        ("Ann Lee keeps the archive.", "The archive is kept by Ann Lee.", "supported"),
        # names that change places
        ("Ann Lee pays Bob Ray a fee.", "Bob Ray pays Ann Lee a fee.", "contradicted"),
        ("Ann Lee was paid by Bob Ray.", "Bob Ray paid Ann Lee.", "supported"),
        # a number that is said of something else
        (
            "The van costs 40 euros a day.",
            "The van costs 60 euros a day. Bikes cost 40 euros a day.",
            "contradicted",
        ),
        (
            "China was the largest market, followed by Italy.",
            "Italy was the largest market, followed by China.",
            "contradicted",
        ),
        # another unit of the same number
        ("The wire holds 3.1 newtons.", "The wire holds 3.1 kilonewtons.", "contradicted"),
        ("Feed 22 gallons a minute.", "Feed 22 litres a minute.", "contradicted"),
        # a day and its date, a term and its last day
        (
            "The table is moved on 21 February 2026.",
            "The laboratory moves in February 2026. The table is moved on Saturday the 21st.",
            "supported",
        ),
        (
            "The course must be finished within five working days.",
            "The course must be finished before the end of the fifth working day.",
            "supported",
        ),
        # figures under the unit of their line
        (
            "The revenue was 61.8 million euros.",
            "Figure 2024 2025\nRevenue in million euros 56.7 61.8",
            "supported",
        ),
        ("Sales rose by nine percent.", "Sales rose by nine per cent.", "supported"),
        # both sides of an opposite
        ("Fewer than 50 more scans fit.", "Fewer than 50 scans fit.", "supported"),
        # what there is none of
        (
            "Cash advances are available to frequent travellers.",
            "There are no cash advances. Frequent travellers can have a card.",
            "contradicted",
        ),
        # a share
        ("Most of the guests stay.", "All of the guests stay.", "supported"),
        ("All of the guests stay.", "Half of the guests stay.", "contradicted"),
        # the contrary
        ("Antifreeze may be used.", "Antifreeze may not be used.", "contradicted"),
        ("Antifreeze must not be used.", "Antifreeze must be used.", "contradicted"),
        ("Prices rose in spring.", "Prices fell in spring.", "contradicted"),
        # the denial is of something else
        ("Trips are booked early.", "Trips are booked early, and never by phone.", "supported"),
        # half of it
        (
            "The desk opens at nine and lunch is served in the garden.",
            "The desk opens at nine.",
            "weak",
        ),
        # nothing of it
        ("Dogs are welcome here.", "Invoices fall due at once.", "unsupported"),
    ],
)
def test_verdicts(claim: str, text: str, expected: str) -> None:
    assert support(claim, text).verdict == expected


def test_what_stands_above_a_sentence_belongs_to_it() -> None:
    assert support("Let the Stonesight warm up first.", "Let it warm up first.").verdict == "weak"
    titled = support("Let the Stonesight warm up first.", "Let it warm up first.", "Stonesight")
    assert titled.verdict == "supported"


TABLE = "| City | Limit for a room |\n|---|---|\n| Vienna | 130 euros |\n| Graz | 110 euros |"


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("The limit for a room in Vienna is 130 euros.", "supported"),
        ("The limit for a room in Vienna is 110 euros.", "contradicted"),
    ],
)
def test_a_cell_is_said_of_its_row(claim: str, expected: str) -> None:
    held = chunk("a", 0, TABLE, embedded_text=TABLE)
    found = judge(claim, split_passages([held]))
    assert (found.verdict, found.quote) == (expected, "| Vienna | 130 euros |")


TALK = "Ann Lee: The mirror is down.\nI will restart it at noon.\n\nBob Ray: Thanks, the report can wait."


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("Ann Lee said that the mirror is down.", "supported"),
        ("Ann Lee said that she will restart it at noon.", "supported"),
        ("Bob Ray said that the mirror is down.", "contradicted"),
    ],
)
def test_a_message_is_said_by_its_author(claim: str, expected: str) -> None:
    assert support(claim, TALK).verdict == expected


def test_the_passage_that_holds_the_number_wins_over_one_that_is_more_like() -> None:
    text = "A room may cost up to 110 euros a night. A room in a capital costs 130 euros a night."
    found = support("A room in a capital may cost up to 130 euros a night.", text)
    assert found.quote == "A room in a capital costs 130 euros a night."
    assert found.verdict == "supported"


def test_two_sentences_are_quoted_where_one_says_too_little() -> None:
    text = "Close the cover until it clicks. Hold the power button for three seconds. Wait."
    both = "Close the cover until it clicks. Hold the power button for three seconds."
    assert (
        support("Close the cover and hold the power button for three seconds.", text).quote == both
    )
    one = "Close the cover until it clicks."
    assert support(one, text).quote == one


def test_without_passages_or_claim_nothing_is_checked() -> None:
    passage = Passage("A sentence stands here.", 0, Span(0, 23))
    claims = [("Something.", []), ("  ", [passage]), ("A sentence stands here.", [passage])]
    found = find_support(claims, HashingEmbedder(), ENGLISH, Deadline.after(30))
    assert [one.verdict for one in found] == ["unchecked", "unchecked", "supported"]
    assert [one.quote for one in found] == ["", "", passage.text]
    assert find_support([], HashingEmbedder(), ENGLISH, Deadline.after(30)) == []


@dataclass(frozen=True)
class Counting(HashingEmbedder):
    calls: list[int] = field(default_factory=list)

    def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> Vectors:
        self.calls.append(len(texts))
        return super().embed_queries(texts, deadline)


def test_many_claims_share_one_bounded_call() -> None:
    passages = split_passages([chunk("a", 0, " ".join(f"Part {n} is blue." for n in range(300)))])
    embedder = Counting()
    claims = [(f"Part {n} is painted blue.", passages) for n in range(40)]
    found = find_support(claims, embedder, ENGLISH, Deadline.after(30))
    assert [one.quote for one in found] == [f"Part {n} is blue." for n in range(40)]
    (texts,) = embedder.calls
    assert texts <= 2 * EMBEDDED_TEXTS + 2 * len(claims)


@pytest.mark.parametrize(
    ("claim", "parts", "compared"),
    [
        # A word that its passages lack: vectors decide.
        ("Part 7 is painted blue.", 1, EMBEDDED_PASSAGES),
        # All its words stand in one passage: the best for it, and the best for its one part.
        ("Blue is part 7.", 1, 2),
        # The second part stands in no passage, so vectors decide.
        ("Part 7 is blue, because thieves stole every brush.", 2, EMBEDDED_PASSAGES),
    ],
)
def test_vectors_are_computed_only_of_what_may_change_the_verdict(
    claim: str, parts: int, compared: int
) -> None:
    passages = split_passages([chunk("a", 0, " ".join(f"Part {n} is blue." for n in range(30)))])
    embedder = Counting()
    (found,) = find_support([(claim, passages)], embedder, ENGLISH, Deadline.after(30))
    assert found.quote == "Part 7 is blue."
    # The claim, its parts, and each passage alone and under its title.
    assert embedder.calls == [1 + parts + 2 * compared]


def test_of_runs_of_sentences_the_best_alone_is_compared() -> None:
    text = "Close the cover until it clicks. Hold the power button. Wait. Scan the wafer. Open the cover."
    passages = split_passages([chunk("a", 0, text)])
    claim = ComparedClaim.of(
        "Shut the cover, hold the power button and wait.", passages, ENGLISH, 1
    )
    assert sum(passage.sentences > 1 for passage in passages) == 4 + 3  # runs of two and of three
    runs = [passage.text for passage in claim.compared if passage.sentences > 1]
    assert runs == ["Close the cover until it clicks. Hold the power button. Wait."]


def test_what_is_quoted_word_for_word_needs_no_vectors() -> None:
    passages = split_passages([chunk("a", 0, "Part 1 is blue. Part 2 is red.")])
    embedder = Counting()
    (found,) = find_support([("Part 2 is red.", passages)], embedder, ENGLISH, Deadline.after(30))
    assert (found.verdict, found.quote, embedder.calls) == ("supported", "Part 2 is red.", [])


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("Recordings are kept for 72 hours.", "supported"),
        ("Recordings are kept for 24 hours.", "contradicted"),
        ("Videos stay for 72 hours.", "unchecked"),
    ],
)
def test_where_the_embedder_is_late_other_words_are_unchecked(claim: str, expected: str) -> None:
    passages = split_passages([chunk("a", 0, "Recordings are kept for 72 hours.")])
    (found,) = find_support([(claim, passages)], HashingEmbedder(), ENGLISH, Deadline.after(0))
    assert found.verdict == expected


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("Der Urlaub beträgt 25 Tage im Jahr.", "supported"),
        ("Der Urlaub beträgt 30 Tage im Jahr.", "contradicted"),
        ("Man bekommt jährlich fünf Wochen frei.", "unchecked"),
    ],
)
def test_a_language_that_is_not_understood_is_judged_by_its_words(
    claim: str, expected: str
) -> None:
    assert support(claim, "Der Urlaub beträgt 25 Tage im Jahr.").verdict == expected


@pytest.mark.parametrize(
    ("claim", "evidence", "verdict"),
    [
        ("他于1931年写了《捉兔记》。", "他于1931年写了一部小说。", Verdict.WEAK),
        ("这部小说的作者是艾萨克·阿西莫夫。", "这部小说出自一位不知名的作者。", Verdict.WEAK),
        ("这座桥长230米。", "这座桥很长，建于清代。", Verdict.WEAK),
        ("这座桥长230米。", "The bridge is 230 m long.", Verdict.UNCHECKED),
        ("The bridge is 240 m long.", "这座桥长230米。", Verdict.UNCHECKED),
        ("他写过很多动人的故事。", "他的作品打动了许多读者。", Verdict.UNCHECKED),
        ("他写了《哈姆雷特》。", "He wrote Hamlet in 1601.", Verdict.UNCHECKED),
    ],
)
def test_of_a_language_that_is_not_understood_a_number_or_marked_name_is_missed_in_chinese(
    claim: str, evidence: str, verdict: Verdict
) -> None:
    assert support(claim, evidence).verdict is verdict


@given(text=st.text(max_size=300), sentence=st.text(min_size=1, max_size=80))
def test_a_quote_stands_verbatim_at_its_span(text: str, sentence: str) -> None:
    held = chunk("a", 0, text, span=Span(7, 7 + len(text)), section=2)
    passages = split_passages([held, held])
    (found,) = find_support([(sentence, passages)], HashingEmbedder(), ENGLISH, Deadline.after(30))
    assert 0.0 <= found.score <= 1.0
    if found.verdict is not Verdict.UNCHECKED:
        assert text[found.span.start - 7 : found.span.end - 7] == found.quote
        assert found.section == 2


@dataclass(frozen=True)
class Synonyms(HashingEmbedder):
    """Takes all texts for the same."""

    def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> Vectors:  # noqa: ARG002
        return np.tile(np.array([1.0, 0.0], np.float32), (len(texts), 1))


@pytest.mark.parametrize(
    ("understanding", "verdict"),
    [(ENGLISH, Verdict.SUPPORTED), (LanguageSupport({}), Verdict.UNCHECKED)],
)
def test_meaning_counts_where_the_language_is_understood(
    understanding: LanguageSupport, verdict: Verdict
) -> None:
    passages = split_passages([chunk("a", 0, "The cycles are parked inside.")])
    claim = ("The bicycles stand inside.", passages)
    (found,) = find_support([claim], Synonyms(), understanding, Deadline.after(30))
    assert found.verdict is verdict


def test_passages_are_sentences_and_runs_under_their_headings() -> None:
    held = chunk("a", 0, "Lock it. Park it. Go.", title="Bikes", heading_path=("Leeds", "Cellar"))
    assert [(each.text, each.sentences, each.above) for each in split_passages([held])] == [
        ("Lock it.", 1, "Bikes Leeds Cellar"),
        ("Park it.", 1, "Bikes Leeds Cellar"),
        ("Go.", 1, "Bikes Leeds Cellar"),
        ("Lock it. Park it.", 2, "Bikes Leeds Cellar"),
        ("Park it. Go.", 2, "Bikes Leeds Cellar"),
        ("Lock it. Park it. Go.", 3, "Bikes Leeds Cellar"),
    ]


def test_no_words_are_shared_with_nothing() -> None:
    assert share(frozenset({"word"}), frozenset()) == 0.0
    assert share(frozenset(), frozenset({"word"})) == 1.0
