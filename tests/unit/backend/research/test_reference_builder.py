"""References that are built for a text: where their markers stand, and that nothing else of the text changes."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import count, islice

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from backend.research.references.chunk_matching import MOST_REFERENCES
from backend.research.references.citable_source import CitableSource, Picture, make_text_source
from backend.research.references.reference_builder import ReferencedText, build_references
from backend.research.references.reference_markers import MarkerStyle
from connectors.errors import TemporarilyUnavailableError
from indexing.embedding.embedder import Embedder, Vectors
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.embedding.language_support import EVERYTHING, EmbedderWithLanguages, LanguageSupport
from indexing.runtime.deadline import Deadline, DeadlineExceededError
from tests.support.models import minilm
from tests.support.search import ENGLISH_ONLY

LEAVE = "Each parent is entitled to 26 weeks of paid parental leave, in two parts where the manager agrees."
TRAVEL = "First class is for journeys above four hours, whether by train or by plane, in whatever country you travel."
CHINESE = "入职满一年的员工每年享有十五天带薪年假，需要提前两周向直接主管书面申请，未用的天数可以结转到次年三月底。"
MODEL = EmbedderWithLanguages(HashingEmbedder(), EVERYTHING)
PATIENCE = 60.0
_PARSER = MarkdownIt("commonmark").enable("table")
_UNTOUCHED = ("link", "heading", "th", "td")


class FailingEmbedder(HashingEmbedder):
    def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> Vectors:
        raise TemporarilyUnavailableError(f"{len(texts)} texts by {deadline}", timedelta())


class LateEmbedder(HashingEmbedder):
    def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> Vectors:
        raise DeadlineExceededError(f"{len(texts)} texts by {deadline}")


def build(
    text: str,
    *sources: str,
    model: EmbedderWithLanguages = MODEL,
    style: MarkerStyle = MarkerStyle.BRACKETS,
) -> ReferencedText:
    given = [make_text_source(f"Source {at}", "", one) for at, one in enumerate(sources, 1)]
    return build_references(text, given, model, style, Deadline.after(PATIENCE))


class CountingEmbedder(HashingEmbedder):
    """Keeps what it was asked, call by call."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = list[list[str]]()

    def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> Vectors:
        self.calls.append([*texts])
        return super().embed_queries(texts, deadline)


def remove_markers(built: ReferencedText) -> str:
    text = built.text
    for one in reversed(built.citations):
        text = text[: one.marker.start] + text[one.marker.end :]
    return text


def test_each_sentence_refers_to_the_passage_that_says_it() -> None:
    text = f"{TRAVEL} Nobody has ever said this sentence about the weather in the mountains of the moon. {LEAVE}"
    built = build(text, f"Of leave.\n\n{LEAVE}\n\nNo more of it.", TRAVEL)
    assert built.text == (
        f"{TRAVEL}[1] Nobody has ever said this sentence about the weather in the mountains of the moon. {LEAVE}[2]"
    )
    first, second = (one.reference for one in built.references)
    assert (first.title, first.exact_quote) == ("Source 2", TRAVEL)
    assert first.relevance_score == pytest.approx(1.0)
    assert second.title == "Source 1"
    assert LEAVE in second.exact_quote
    assert second.answer_chunk == second.answer_chunk_position.of(text) == LEAVE
    assert second.span.of(f"Of leave.\n\n{LEAVE}\n\nNo more of it.") == second.exact_quote
    assert built.notes == ()


def test_footnotes_have_the_markers_of_markdown() -> None:
    assert build(LEAVE, LEAVE, style=MarkerStyle.FOOTNOTES).text == f"{LEAVE}[^1]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"# {LEAVE}\n", None),
        (f"{LEAVE}\n===\n", None),
        (f"| a | {LEAVE} |\n|---|---|\n| b | {LEAVE} |\n", None),
        (f"```\n{LEAVE}\n```\n", None),
        (f"    {LEAVE}\n", None),
        (f"<div>{LEAVE}</div>\n", None),
        (f"$$\n{LEAVE}\n$$\n", None),
        (f"[^2]: {LEAVE}\n", None),
        ("Leave is paid.\n\nIt is long.\n", None),
        (f"`{LEAVE} {LEAVE}`", f"`{LEAVE} {LEAVE}`[1]"),
        (f"See [{LEAVE} {LEAVE}](https://a.example)", f"See [{LEAVE} {LEAVE}](https://a.example)[1]"),
        (f"- {LEAVE[:-1]}\n- b", f"- {LEAVE[:-1]}[1]\n- b"),
        (f"12. {LEAVE}\n", f"12. {LEAVE}[1]\n"),
        (f"> {LEAVE}\n> {LEAVE}\n", f"> {LEAVE}[1]\n> {LEAVE}\n"),
        (f"**{LEAVE}** And so on.", f"**{LEAVE}** And so on.[1]"),
        (f"“{LEAVE}” It is so.", f"“{LEAVE}”[1] It is so."),
        (f"{LEAVE} See https://a.example/x.", f"{LEAVE}[1] See https://a.example/x."),
        (f"{LEAVE} [3]", f"{LEAVE}[1] [3]"),
        (f"{LEAVE} So says [1].", f"{LEAVE}[2] So says [1]."),
        (f"{LEAVE}\r\nIt is so.\r\n", f"{LEAVE}[1]\r\nIt is so.\r\n"),
        (f"{CHINESE}(见手册)", f"{CHINESE}(见手册)[1]"),
        (f"{CHINESE}并且如此。", f"{CHINESE}[1]并且如此。"),
        (f"It is so. {LEAVE}", f"It is so. {LEAVE}[1]"),
        (f"$$\n{LEAVE}\n\n{LEAVE}\n$$\n\n{LEAVE}\n", f"$$\n{LEAVE}\n\n{LEAVE}\n$$\n\n{LEAVE}[1]\n"),
        (f"[a `]` {LEAVE} b](x)", f"[a `]` {LEAVE} b](x)[1]"),
        (f"![a `b](x) {LEAVE} ` {LEAVE}", f"![a `b](x) {LEAVE} ` {LEAVE}[1]"),
        (f"<b title='`'>{LEAVE} `{TRAVEL} a`", f"<b title='`'>{LEAVE}[1] `{TRAVEL} a`"),
        (f"It is **so. {LEAVE}**", f"It is **so. {LEAVE}[1]**"),
        (f"{LEAVE[:-1]} **", f"{LEAVE[:-1]}[1] **"),
    ],
)  # fmt: skip
def test_markers_stand_behind_sentences_and_nowhere_else(text: str, expected: str | None) -> None:
    assert build(text, LEAVE, CHINESE).text == (text if expected is None else expected)


def test_equal_passages_are_used_once_each() -> None:
    text = f"{LEAVE}\n\n{LEAVE}\n\n{LEAVE}"
    built = build(text, LEAVE, LEAVE)
    assert [one.reference.title for one in built.references] == ["Source 1", "Source 2"]
    assert built.text == f"{LEAVE}[1]\n\n{LEAVE}[2]\n\n{LEAVE}"


def test_the_best_ten_are_kept_in_the_order_of_the_text() -> None:
    said = [f"{LEAVE[:-1]}, says rule {name} of the handbook." for name in "abcdefghijklmno"]
    built = build("\n\n".join(said), *said)
    assert [one.number for one in built.references] == list(range(1, MOST_REFERENCES + 1))
    places = [one.reference.answer_chunk_position for one in built.references]
    assert places == sorted(places)


def test_what_the_embedder_does_not_understand_is_compared_by_words() -> None:
    model = EmbedderWithLanguages(LateEmbedder(), ENGLISH_ONLY)
    assert build(CHINESE, CHINESE.replace("需要", "须"), model=model).text == f"{CHINESE}[1]"
    other = "公司在北京和上海设有办事处，员工可以根据岗位需要申请在不同城市之间调动工作，审批时间约为十个工作日。"
    assert build(CHINESE, other, model=model).references == ()


@pytest.mark.parametrize("embedder", [FailingEmbedder(), LateEmbedder()])
def test_where_the_embedder_fails_or_is_late_words_decide(embedder: Embedder) -> None:
    model = EmbedderWithLanguages(embedder, EVERYTHING)
    built = build(f"{LEAVE} {TRAVEL}", TRAVEL, LEAVE.replace("entitled to", "given"), model=model)
    assert [one.reference.title for one in built.references] == ["Source 2", "Source 1"]


def test_without_time_there_is_no_result() -> None:
    source = make_text_source("", "", LEAVE)
    with pytest.raises(DeadlineExceededError):
        build_references(LEAVE, [source], MODEL, MarkerStyle.BRACKETS, Deadline.after(0))


@pytest.mark.parametrize(
    "understanding",
    [
        LanguageSupport({"English": 1.0}, unrelated=0.7, related=0.85),
        LanguageSupport({"English": 1.0}, unrelated=0.2, related=0.2),
        LanguageSupport({"English": 1.0}, unrelated=-0.1, related=0.99),
    ],
)
def test_equal_texts_are_equal_to_every_embedder(understanding: LanguageSupport) -> None:
    model = EmbedderWithLanguages(HashingEmbedder(), understanding)
    (one,) = build(LEAVE, LEAVE, model=model).references
    assert one.reference.relevance_score == pytest.approx(1.0)


def test_other_words_are_found_by_meaning() -> None:
    model = EmbedderWithLanguages(minilm(), ENGLISH_ONLY)
    text = "Mothers and fathers receive half a year of parental leave with pay, which they may split if their boss consents."
    built = build(text, TRAVEL, LEAVE, model=model)
    assert [one.reference.title for one in built.references] == ["Source 2"]
    assert build(text, TRAVEL, model=model).references == ()


def make_illustrated_source(*texts: str, pictures: Sequence[Picture]) -> CitableSource:
    return CitableSource(
        title="Handbook", url="https://a.example/people/leave", texts=texts, pictures=pictures
    )


def build_illustrated(
    text: str, source: CitableSource, model: EmbedderWithLanguages = MODEL
) -> ReferencedText:
    return build_references(text, [source], model, MarkerStyle.BRACKETS, Deadline.after(PATIENCE))


def test_pictures_are_chosen_by_what_is_said_of_them() -> None:
    pictures = (Picture("https://a.example/leave.png", LEAVE), Picture("x.png", " ** "))
    source = make_illustrated_source("", pictures=pictures)
    text = f"{TRAVEL} {LEAVE} It is so."
    built = build_illustrated(text, source)
    (one,) = built.pictures
    assert (one.number, one.marker.of(built.text)) == (1, "[1]")
    assert (one.reference.url, one.reference.title) == ("https://a.example/leave.png", "Handbook")
    assert one.reference.answer_chunk_position.of(text) == one.reference.answer_chunk == LEAVE
    assert built.text == f"{TRAVEL} {LEAVE}[1] It is so."
    assert built.references == ()
    assert built.notes == (
        "1 picture of the sources has no text to compare with, and no reference.",
    )


def test_pictures_and_passages_have_one_numbering_by_place() -> None:
    """The picture of travel comes first, leave has a passage and then a picture, the text's own [2] is passed over."""
    pictures = (Picture("leave.png", LEAVE), Picture("/travel.png", TRAVEL))
    source = make_illustrated_source(LEAVE, pictures=pictures)
    text = f"As [2] has it.\n\n{TRAVEL}\n\n- {LEAVE}\n"
    built = build_illustrated(text, source)
    assert built.text == f"As [2] has it.\n\n{TRAVEL}[1]\n\n- {LEAVE}[3][4]\n"
    assert [one.number for one in built.citations] == [1, 3, 4]
    assert [one.number for one in built.references] == [3]
    assert [(one.number, one.reference.url) for one in built.pictures] == [
        (1, "https://a.example/travel.png"),
        (4, "https://a.example/people/leave.png"),
    ]
    assert remove_markers(built) == text


def test_text_passages_and_pictures_are_embedded_by_one_call() -> None:
    embedder = CountingEmbedder()
    source = make_illustrated_source(TRAVEL, pictures=[Picture("leave.png", f"{LEAVE} So.")])
    built = build_illustrated(LEAVE, source, EmbedderWithLanguages(embedder, EVERYTHING))
    assert embedder.calls == [[LEAVE, TRAVEL, f"{LEAVE} So."]]
    assert built.text == f"{LEAVE}[1]"


def test_passages_take_no_place_from_pictures_and_are_ten_of_each() -> None:
    """Twelve passages are as like the sentence as the picture is."""
    said = [f"{LEAVE[:-1]}, says rule {name} of the handbook." for name in "abcdefghijkl"]
    pictures = [Picture(f"{at}.png", one) for at, one in enumerate(said)]
    built = build_illustrated("\n\n".join(said), make_illustrated_source(*said, pictures=pictures))
    assert [one.number for one in built.citations] == list(range(1, 2 * MOST_REFERENCES + 1))
    assert (len(built.references), len(built.pictures)) == (MOST_REFERENCES, MOST_REFERENCES)
    alone = build_illustrated(LEAVE, make_illustrated_source(*[LEAVE] * 12, pictures=[Picture("x.png", f"{LEAVE} So.")]))  # fmt: skip
    assert alone.text == f"{LEAVE}[1][2]"


def test_pictures_of_a_language_that_is_not_understood_are_compared_by_words() -> None:
    model = EmbedderWithLanguages(CountingEmbedder(), ENGLISH_ONLY)
    pictures = [Picture("leave.png", LEAVE), Picture("nian.png", CHINESE)]
    built = build_illustrated(
        f"{LEAVE}\n\n{CHINESE}", make_illustrated_source(TRAVEL, pictures=pictures), model
    )
    assert built.text == f"{LEAVE}[1]\n\n{CHINESE}[2]"


def test_pictures_in_markdown_are_no_passages() -> None:
    built = build(LEAVE, f"![{LEAVE}](leave.png)\n\n![](x.png)")
    assert built.references == ()
    assert [one.reference.url for one in built.pictures] == ["leave.png"]


def test_an_address_that_cannot_be_resolved_stays_as_it_is() -> None:
    source = make_illustrated_source("", pictures=[Picture("http://[bad", LEAVE)])
    assert [one.reference.url for one in build_illustrated(LEAVE, source).pictures] == ["http://[bad"]  # fmt: skip


_SENTENCES = st.sampled_from((LEAVE, TRAVEL, CHINESE, "Short.", "是。", LEAVE[:-1], f"{LEAVE} {TRAVEL}", f"![{LEAVE}](a.png)"))  # fmt: skip
_LINES = st.one_of(
    _SENTENCES,
    st.text(max_size=60),
    st.builds(
        "{0}{1}{2}".format,
        st.sampled_from(("- ", "  - ", "> ", "# ", "1. ", "| ", "    ", "**", "`", "[", "$", "\\(", "![", "<b>", "[1] ", "[^1]: ", "```\n", "$$\n", "\\")),
        _SENTENCES,
        st.sampled_from(("", " |\n|---|", "**", "`", "](x)", "$", "\\)", "[2]", "</b>", "\n```", "\n$$", "\n---", "  ", "\\", "(x)", "https://a.example", "[")),
    ),
)  # fmt: skip
_TEXTS = st.builds(
    str.join, st.sampled_from(("\n", "\n\n", " ", "\r\n", "\r")), st.lists(_LINES, max_size=8)
)


@given(_TEXTS, st.lists(_TEXTS, max_size=3), st.sampled_from(MarkerStyle))
@example(f"{LEAVE}\n\n[1]: https://a.example", [LEAVE], MarkerStyle.BRACKETS)
def test_nothing_but_markers_is_new_and_each_stands_where_it_may(
    text: str, others: list[str], style: MarkerStyle
) -> None:
    shown = f"![{TRAVEL}](travel.png)"
    built = build(text, *others, LEAVE, TRAVEL, CHINESE, shown, style=style)
    assert remove_markers(built) == text
    markers = [one.marker.of(built.text) for one in built.citations]
    assert markers == [style.write(one.number) for one in built.citations]
    assert not any(marker in text for marker in markers)
    assert [one.number for one in built.citations] == list(
        islice((n for n in count(1) if not _is_taken(n, text)), len(markers))
    )
    assert max(len(built.references), len(built.pictures)) <= MOST_REFERENCES
    quotes = [(one.reference.title, one.reference.section, one.reference.span) for one in built.references]  # fmt: skip
    assert len(set(quotes)) == len(quotes)
    assert all(one.reference.relevance_score >= 0.7 for one in built.citations)
    for group in (built.references, built.pictures):
        ends = [one.reference.answer_chunk_position.end for one in group]
        assert ends == sorted(set(ends))
    places = [one.reference.answer_chunk_position.end for one in built.citations]
    assert places == sorted(places)
    _check_markdown(text, built.text, markers)


def _is_taken(number: int, text: str) -> bool:
    return f"[{number}]" in text or f"[^{number}]" in text


def _check_markdown(before: str, after: str, markers: Sequence[str]) -> None:
    """The text reads as before but for the markers, none of which is in code, a link, a heading or a table."""
    rendered = _PARSER.render(after)
    for marker in markers:
        rendered = rendered.replace(marker, "", 1)
    assert rendered == _PARSER.render(before)
    untouched = "".join(_list_untouched(_PARSER.parse(after)))
    assert not any(marker in untouched for marker in markers)


def _list_untouched(tokens: Sequence[Token]) -> Iterator[str]:
    """Yield the contents of code, links, headings and tables."""
    depth = 0
    for token in tokens:
        if token.type.startswith(_UNTOUCHED):
            depth += token.nesting
        if depth or token.type.startswith(("code", "fence", "html")):
            yield token.content
        yield from _list_untouched(token.children or ())
