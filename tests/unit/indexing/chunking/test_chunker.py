"""Chunks: never too long, cut where a reader would, with exact spans, in linear time."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.access import EVERYBODY, NOBODY
from connectors.document import Document, Metadata, Person, Place, Section, Span
from indexing.chunking.chunk import Chunk
from indexing.chunking.chunker import chunk_document, compute_content_hash, head
from indexing.embedding.embedder import Embedder
from indexing.embedding.hash_embedder import HashingEmbedder
from tests.support.models import minilm

SMALL = HashingEmbedder(max_tokens=32)


def document(
    *sections: Section | str, title: str = "Travel", metadata: Metadata | None = None
) -> Document:
    return Document(
        id="handbook:travel.md",
        source="handbook",
        title=title,
        sections=tuple(Section(text=each) if isinstance(each, str) else each for each in sections),
        link="file:///travel.md",
        media_type="text/markdown",
        access=EVERYBODY,
        version="1",
        metadata=metadata or {},
    )


def check(document: Document, chunks: Sequence[Chunk], embedder: Embedder, limit: int) -> None:
    """What holds for every document, whatever is in it."""
    assert [chunk.position for chunk in chunks] == list(range(len(chunks)))
    assert [chunk.section for chunk in chunks] == sorted(chunk.section for chunk in chunks)
    counts = embedder.count_tokens([chunk.embedded_text for chunk in chunks])
    assert max(counts, default=0) <= limit
    for number, section in enumerate(document.sections):
        place = 0
        for chunk in chunks:
            if chunk.section == number:
                assert chunk.text == chunk.span.of(section.text)
                assert chunk.text in chunk.embedded_text
                assert chunk.text.strip()
                assert not section.text[place : chunk.span.start].strip()
                place = chunk.span.end
        assert not section.text[place:].strip()


def test_an_abstract_is_its_title_and_its_text() -> None:
    (chunk,) = chunk_document(document("Flights are booked early.", title="Flights"), SMALL)
    assert chunk.embedded_text == "Flights\nFlights are booked early."
    assert (chunk.text, chunk.section, chunk.span) == (
        "Flights are booked early.",
        0,
        Span(0, 25),
    )


MACHINES = {
    "file_id": "nine",
    "driveId": "four",
    "link": "https://x.org/a",
    "rev": "0123456789abcdef",
}


def test_a_chunk_carries_what_its_document_and_section_say() -> None:
    place = Place(page=3, heading_path=("Travel", "Abroad", "Visa"))
    moment = datetime(2026, 3, 1, tzinfo=UTC)
    section = Section(text="Ask early.", link="file:///travel.md#visa", place=place)
    whole = replace(
        document(
            section, metadata={"team": "People", "tags": ("a", "b"), "paid": "yes", **MACHINES}
        ),
        owners=(Person("Ann Lee", "ann@example.com"),),
        updated_at=moment,
    )
    (chunk,) = chunk_document(whole, HashingEmbedder())
    # The heading that says the title again is left out, and so is what only machines read.
    assert (
        chunk.embedded_text
        == "Travel\nAbroad > Visa\nAsk early.\npaid: yes\ntags: a, b\nteam: People"
    )
    assert chunk.link == "file:///travel.md#visa"
    assert (chunk.page, chunk.heading_path) == (3, ("Travel", "Abroad", "Visa"))
    assert {"team=People", "tags=a", "tags=b", "driveId=four"} < chunk.tags
    assert (chunk.owners, chunk.updated_at, chunk.access) == (whole.owners, moment, EVERYBODY)


def test_text_is_cut_between_sentences() -> None:
    # 7 tokens a sentence; 32 - 2 special - 1 title - 2 free leaves 27: three sentences.
    text = "The first rule is very short. " * 7
    chunks = chunk_document(document(text), SMALL)
    assert [chunk.text.count(".") for chunk in chunks] == [3, 3, 1]
    assert all(chunk.text.startswith("The") and chunk.text.endswith(".") for chunk in chunks)


def test_a_tiny_last_piece_is_evened_out() -> None:
    text = "One two three four five six seven eight. " * 3 + "No."
    chunks = chunk_document(document(text), SMALL)
    # 27 + 2 tokens would leave "No." alone; so the last sentence of nine goes with it.
    assert [chunk.text.count(".") for chunk in chunks] == [2, 2]


def test_a_chinese_text_is_cut_between_sentences() -> None:
    text = "员工每年有十五天带薪假。" * 6
    chunks = chunk_document(document(text), SMALL)
    assert [chunk.text for chunk in chunks] == ["员工每年有十五天带薪假。" * 2] * 3


def test_a_long_sentence_is_cut_between_words() -> None:
    text = " ".join(f"w{number}" for number in range(100))
    chunks = chunk_document(document(text), SMALL)
    assert " ".join(chunk.text for chunk in chunks) == text
    assert len(chunks) == 4


def test_a_long_word_is_cut_anywhere() -> None:
    text = "x" * 1000
    chunks = chunk_document(document(text), SMALL)
    assert "".join(chunk.text for chunk in chunks) == text
    check(document(text), chunks, SMALL, 32)


def test_a_table_repeats_its_header_where_it_goes_on() -> None:
    rows = [f"| E-{number} | restart |" for number in range(12)]
    table = Section(text="\n".join(["| Code | What to do |", "| --- | --- |", *rows]), kind="table")
    chunks = chunk_document(document(table), HashingEmbedder(max_tokens=64))
    assert len(chunks) > 1
    assert chunks[0].embedded_text == f"Travel\n{chunks[0].text}"
    for chunk in chunks[1:]:
        assert chunk.embedded_text == f"Travel\n| Code | What to do |\n{chunk.text}"
    assert "\n".join(chunk.text for chunk in chunks) == table.text


def test_what_stands_around_the_text_takes_at_most_a_quarter() -> None:
    place = Place(heading_path=tuple(f"heading number {n}" for n in range(50)))
    metadata = {f"key {n}": "some words to say" for n in range(50)}
    section = Section(text="Here is the text. " * 50, place=place)
    whole = document(section, title="title word " * 100, metadata=metadata)
    embedder = HashingEmbedder(max_tokens=64)
    chunks = chunk_document(whole, embedder)
    check(whole, chunks, embedder, 64)
    # Five tokens a sentence, and 64 - 16 - 2 - 2 left for them.
    assert chunks[0].text.count(".") >= 8
    headings = chunk_document(document(section, title="T"), embedder)[0].embedded_text.split("\n")[
        1
    ]
    # The innermost that fit into the quarter less the title: 16 - 2 - 1, three or four tokens each.
    assert headings == "heading number 47 > heading number 48 > heading number 49"


def test_documents_without_text_have_no_chunks() -> None:
    assert chunk_document(document(), SMALL) == []
    assert chunk_document(document("", " \n\u3000"), SMALL) == []


def test_each_section_is_its_own() -> None:
    chunks = chunk_document(document("One.", "", "Two."), SMALL)
    assert [(chunk.section, chunk.text) for chunk in chunks] == [(0, "One."), (2, "Two.")]


def test_a_limit_that_leaves_no_room_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 32"):
        chunk_document(document("text"), HashingEmbedder(max_tokens=31))


HOSTILE = st.lists(
    st.sampled_from(
        [
            *(
                "word ",
                "Sentence. ",
                "年假。",
                "休暇は",
                "かな、",
                "「はい。」",
                "\n",
                "\n\n",
                "| a | b |\n",
                "|-|-|\n",
            ),
            *(
                "\ufdfa",
                "x" * 300,
                "é\u0301\u0301",
                "\U0001f468\u200d\U0001f469\u200d\U0001f467",
                "\x00",
                "\u200b",
            ),
            *(
                "\u202e",
                "ﬁ",
                "½",
                "\ud800",
                "1.2.3",
                "a_b" * 40,
                " " * 200,
                "!?" * 60,
                "нет. ",
                "ไทย",
                "\ue000",
            ),
        ]
    )
    | st.text(st.characters(), max_size=20),
    max_size=120,
).map("".join)


@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(HOSTILE, min_size=1, max_size=2),
    title=HOSTILE,
    heading=HOSTILE,
    value=HOSTILE,
    limit=st.sampled_from([32, 64, 256]),
    kind=st.sampled_from(["text", "table"]),
)
def test_no_text_makes_a_chunk_too_long_for_a_real_tokenizer(
    texts: list[str], title: str, heading: str, value: str, limit: int, kind: str
) -> None:
    place = Place(heading_path=(heading, "in it"))
    sections = [
        Section(text=text, kind="table" if kind == "table" else "text", place=place)
        for text in texts
    ]
    whole = document(*sections, title=title, metadata={"note": value})
    check(whole, chunk_document(whole, minilm(), limit), minilm(), limit)


@settings(max_examples=100, deadline=None)
@given(st.lists(HOSTILE, max_size=3))
def test_no_text_is_lost_with_the_double(texts: list[str]) -> None:
    whole = document(*texts)
    check(whole, chunk_document(whole, SMALL), SMALL, 32)


class _Counting(HashingEmbedder):
    """Notes how many characters it was asked to tokenise."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        _READ.extend(map(len, texts))
        return HashingEmbedder().count_tokens(texts)

    def token_ends(self, text: str) -> list[int]:
        _READ.append(len(text))
        return super().token_ends(text)


_READ: list[int] = []


def test_the_tags_of_a_document_are_made_once() -> None:
    many = {"topics": tuple(f"topic {number}" for number in range(100))}
    first, *others = chunk_document(document("A rule. " * 200, metadata=many), SMALL)
    assert others
    assert all(chunk.tags is first.tags for chunk in others)


def test_a_few_passages_are_counted_at_a_time() -> None:
    most: list[int] = []

    class Noting(HashingEmbedder):
        def count_tokens(self, texts: Sequence[str]) -> list[int]:
            most.append(len(texts))
            return super().count_tokens(texts)

    chunks = chunk_document(document("word " * 30_000), Noting(max_tokens=32))
    assert len(chunks) > 1000
    assert max(most) <= 256


def test_a_very_long_header_row_is_not_counted_for_each_section() -> None:
    header = f"| {'| '.join(f'column {number} ' for number in range(20_000))}|"
    table = Section(text=f"{header}\n| --- |\n| 1 |", kind="table")
    embedder = _Counting(max_tokens=64)
    _READ.clear()
    chunk_document(document(*[table] * 3), embedder)
    # To plan and to verify, each text with its title.
    assert sum(_READ) < 3 * 2.5 * len(table.text)


@pytest.mark.parametrize("rule", ["| --- | --- |", "|:-:|-:|", "---|---", "-", " - "])
def test_a_line_of_dashes_is_the_rule_below_a_header(rule: str) -> None:
    text = "\n".join(["| Code | Do |", rule, *["| E-1 | restart |"] * 20])
    chunks = chunk_document(document(Section(text=text, kind="table")), SMALL)
    assert all("| Code | Do |" in chunk.embedded_text for chunk in chunks)


@pytest.mark.parametrize("other", ["| --- | x |", "| :: |", "||", "+"])
def test_no_other_line_is(other: str) -> None:
    text = "\n".join(["| Code | Do |", other, *["| E-1 | restart |"] * 20])
    chunks = chunk_document(document(Section(text=text, kind="table")), SMALL)
    assert all("| Code | Do |" not in chunk.embedded_text for chunk in chunks[1:])


@pytest.mark.soak("slow")
@pytest.mark.parametrize(
    "unit", ["A sentence of some words. ", "word ", "x", "年", "\x00", "a.\n", "|a|\n"]
)
def test_each_character_is_tokenised_a_few_times_only(unit: str) -> None:
    embedder = _Counting(max_tokens=64)
    text = unit * (200_000 // len(unit))
    _READ.clear()
    chunks = chunk_document(document(text), embedder)
    # Once to plan, once to prove, and the title with each chunk.
    framed = len(text) + len(chunks) * len("Travel\n")
    assert sum(_READ) <= 2.2 * framed + 1000


def test_the_content_hash_covers_what_is_indexed_and_not_who_may_read_it() -> None:
    plain = document("text")
    moment = datetime(2026, 3, 1, 12, tzinfo=UTC)
    others = [
        document("texts"),
        document("text", ""),
        document(Section(text="text", kind="table")),
        document(Section(text="text", link="x")),
        document(Section(text="text", place=Place(page=1))),
        document(Section(text="text", place=Place(heading_path=("a",)))),
        document("text", title="Other"),
        document("text", metadata={"a": "b"}),
        document("text", metadata={"a": ("b",)}),
        replace(plain, link="x"),
        replace(plain, source="x"),
        replace(plain, media_type="x"),
        replace(plain, parents=("x",)),
        replace(plain, owners=(Person("Ann"),)),
        replace(plain, created_at=moment),
        replace(plain, updated_at=moment),
    ]
    hashes = [compute_content_hash(each) for each in (plain, *others)]
    assert len(set(hashes)) == len(hashes)
    assert compute_content_hash(replace(plain, access=NOBODY, version="2")) == compute_content_hash(
        plain
    )


def test_the_content_hash_knows_one_moment_in_two_zones_and_one_set_in_two_orders() -> None:
    utc = datetime(2026, 3, 1, 12, tzinfo=UTC)
    tokyo = utc.astimezone(timezone(timedelta(hours=9)))
    first = replace(document("text", metadata={"a": "1", "b": "2"}), updated_at=utc)
    second = replace(document("text", metadata={"b": "2", "a": "1"}), updated_at=tokyo)
    assert compute_content_hash(first) == compute_content_hash(second)


def test_head_is_cut_at_a_token() -> None:
    embedder = HashingEmbedder()
    assert head("Reimbursement of costs", 2, embedder) == "Reimbursement"
    assert head("Reimbursement of costs", 9, embedder) == "Reimbursement of costs"
    assert head("Reimbursement", 0, embedder) == ""
