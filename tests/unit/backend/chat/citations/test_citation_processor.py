"""Citations in a streamed answer, in all three modes."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from backend.chat.citations.citation_processor import (
    CitationInfo,
    CitationMode,
    CitedDocument,
    DynamicCitationProcessor,
    update_citation_processor_from_tool_response,
)
from backend.search.models import DocumentNumbers, SearchDoc, SearchResult
from indexing.text.markdown_links import safe_link
from tests.support.search import section

ONE = CitedDocument("kb:one", "One", "http://x/1")
TWO = CitedDocument("kb:two", "Two", "file:///srv/two.md")
BARE = CitedDocument("kb:bare", "Bare", "")
MAPPING = {1: ONE, 2: TWO, 5: BARE}
ALL_MODES = list(CitationMode)

PIECES = [
    *(
        "[1]",
        "[2]",
        "[99]",
        "[1, 2]",
        "[1, 99]",
        "[2-3]",
        "[[1]]",
        "【2】",
        "［1］",
        "[5]",
        "[1](u)",
        "[[2]](https://evil.example)",
        "[1]:",
        "(u)",
    ),
    *("`", "```\n", "\n", " ", "  ", "!", ".", ",", ")", "。", "word", "有給休暇", "[", "]", "- "),
]
texts = st.lists(st.sampled_from(PIECES), max_size=20).map("".join)


def processor(mode: CitationMode = CitationMode.HYPERLINK) -> DynamicCitationProcessor:
    fresh = DynamicCitationProcessor(mode)
    fresh.update_citation_mapping(MAPPING)
    return fresh


def process(mode: CitationMode, *tokens: str) -> list[str | CitationInfo]:
    """All that comes out, neighboring texts as one."""
    citing = processor(mode)
    out: list[str | CitationInfo] = []
    for token in [*tokens, None]:
        for piece in citing.process_token(token):
            if isinstance(piece, str) and out and isinstance(out[-1], str):
                out[-1] += piece
            else:
                out.append(piece)
    return out


def text(mode: CitationMode, *tokens: str) -> str:
    return "".join(piece for piece in process(mode, *tokens) if isinstance(piece, str))


def linked(*tokens: str) -> str:
    return text(CitationMode.HYPERLINK, *tokens)


def removed(*tokens: str) -> str:
    return text(CitationMode.REMOVE, *tokens)


def test_a_citation_is_reported_before_its_link_and_once() -> None:
    assert process(CitationMode.HYPERLINK, "A [1]. B [2]. C [1].") == [
        "A ",
        CitationInfo(1, "kb:one", "One", "http://x/1"),
        "[[1]](http://x/1). B ",
        CitationInfo(2, "kb:two", "Two", "file:///srv/two.md"),
        "[[2]](file:///srv/two.md). C [[1]](http://x/1).",
    ]


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("Text[1] x", "Text[[1]](http://x/1) x"),
        ("[1, 2]", "[[1]](http://x/1) [[2]](file:///srv/two.md)"),
        ("[1-2]", "[[1]](http://x/1) [[2]](file:///srv/two.md)"),
        ("[[1]]", "[[1]](http://x/1)"),
        ("有給休暇【1】。", "有給休暇[[1]](http://x/1)。"),
        ("See [99] and [2024].", "See and."),
        ("See [99].", "See."),
        ("See [99] [1].", "See [[1]](http://x/1)."),
        ("See [99][1].", "See [[1]](http://x/1)."),
        ("See [1][99].", "See [[1]](http://x/1)."),
        ("- [99] item", "- item"),
        ("code `a[99]` and\n```\nx[99]\n```\n", "code `a[99]` and\n```\nx[99]\n```\n"),
        ("[99](http://x)", "[99](http://x)"),
        ("arr[0]", "arr[0]"),
        ("use `a[1]` here", "use `a[1]` here"),
        ("See [1](http://x)", "See [1](http://x)"),
        ("fact [1]\n```\nx[1]\n```\n", "fact [[1]](http://x/1)\n```\nx[1]\n```\n"),
        ("[1, 99]", "[[1]](http://x/1)"),
        ("[98, 99]", ""),
        ("【99】", ""),
        ("weeks [[1]](https://evil.example/x)", "weeks [[1]](http://x/1)"),
        ("weeks [[1]](<https://evil.example/x y> 'title')", "weeks [[1]](http://x/1)"),
        ("weeks ![[1]](https://evil.example/p.png)", "weeks ! [[1]](http://x/1)"),
        ("weeks [[99]](https://evil.example/x).", "weeks."),
        ("weeks [1][2](u)", "weeks [[1]](http://x/1)[[2]](file:///srv/two.md)"),
        ("weeks [1][Handbook](u)", "weeks [[1]](http://x/1)[Handbook](u)"),
        ("weeks [1][see note]", "weeks [[1]](http://x/1)[see note]"),
        ("[1]: Parental leave", "[[1]](http://x/1): Parental leave"),
        ("[1]: https://evil.example", "[[1]](http://x/1): https://evil.example"),
        ("no link [5]", "no link [5]"),
        ("[5]: https://evil.example", "[5]\\: https://evil.example"),
        ("no link 【5】(https://evil.example)", "no link [5]\\(https://evil.example)"),
        ("Great![1]", "Great! [[1]](http://x/1)"),
        ("Great! [1]", "Great! [[1]](http://x/1)"),
        ("[1", "[1"),
        ("[1]", "[[1]](http://x/1)"),
    ],
)
def test_a_known_number_becomes_our_link_and_an_unknown_one_goes(written: str, shown: str) -> None:
    assert linked(written) == shown == linked(*written)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("Text [1] more.", "Text more."),
        ("Text [1].", "Text."),
        ("Text[1] more", "Text more"),
        ("Text [1][2].", "Text."),
        ("Text [1] [2] more", "Text more"),
        ("Text [1]more", "Text more"),
        ("Text [1, 99].", "Text."),
        ("Text [98, 1, 99].", "Text."),
        ("Text\t[1].", "Text."),
        ("Text\n[1] more", "Text\nmore"),
        ("Text [99].", "Text."),
        ("休暇【1】。次", "休暇。次"),
        ("[1] begins", "begins"),
        ("- [1] item\n- [2] item", "- item\n- item"),
        ("ends [1]", "ends"),
        ("ends [1]\nnext", "ends\nnext"),
        ("`a[1]` stays", "`a[1]` stays"),
        ("trailing ", "trailing "),
    ],
)
def test_taking_citations_out_leaves_clean_text(written: str, shown: str) -> None:
    assert removed(written) == shown == removed(*written)


@given(texts)
def test_keeping_markers_changes_nothing(written: str) -> None:
    assert text(CitationMode.KEEP_MARKERS, *written) == written


@given(texts, st.data())
@pytest.mark.parametrize("mode", ALL_MODES)
def test_the_output_is_the_same_for_every_way_of_cutting(
    mode: CitationMode, written: str, data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(written)), max_size=9)))
    edges = zip([0, *cuts], [*cuts, len(written)], strict=True)
    assert process(mode, *(written[i:j] for i, j in edges)) == process(mode, written)


@given(texts.map(lambda text: text.replace("`", "'")))
def test_no_citation_leads_elsewhere(written: str) -> None:
    """As a page would render it, by another parser of Markdown; code may hold anything."""
    for block in MarkdownIt("commonmark").parse(linked(written)):
        parts = block.children or []
        for opened, label in itertools.pairwise(parts):
            if opened.type == "link_open" and label.content in {"[1]", "[2]"}:
                assert "evil.example" not in str(opened.attrGet("href"))


@given(texts.map(lambda text: text.replace("99", "1")))
def test_links_are_made_once(written: str) -> None:
    """What has become a link is left alone when the text is read again."""
    assert linked(linked(written)) == linked(written)


@pytest.mark.parametrize("mode", ALL_MODES)
def test_what_was_cited_is_known_in_every_mode(mode: CitationMode) -> None:
    citing = processor(mode)
    for token in ("B [2], A [1], `[5]`, ", "[99], again [2].", None):
        list(citing.process_token(token))
    assert citing.get_seen_citations() == {2: TWO, 1: ONE}
    assert list(citing.get_seen_citations()) == [2, 1]
    assert citing.get_cited_documents() == [TWO, ONE]


def test_a_document_under_two_numbers_is_one_document() -> None:
    citing = DynamicCitationProcessor()
    citing.update_citation_mapping({1: ONE, 2: ONE})
    list(citing.process_token("[1] [2] "))
    assert list(citing.get_seen_citations()) == [1, 2]
    assert citing.get_cited_documents() == [ONE]


def test_documents_may_be_added_on_the_way_and_keep_their_numbers() -> None:
    citing = DynamicCitationProcessor()
    assert citing.get_next_citation_number() == 1
    assert "".join(map(str, citing.process_token("[1] "))) == ""
    citing.update_citation_mapping({1: ONE})
    citing.update_citation_mapping({1: TWO, 7: TWO})
    assert citing.get_next_citation_number() == 8
    list(citing.process_token("[1] "))
    assert citing.get_seen_citations() == {1: ONE}


def test_the_event_of_a_citation_has_a_link_that_is_safe_too() -> None:
    citing = DynamicCitationProcessor()
    citing.update_citation_mapping(
        {1: CitedDocument("a", "A", "http://x/a b"), 2: CitedDocument("b", "B", "javascript:x")}
    )
    found = [*citing.process_token("[1][2]"), *citing.process_token(None)]
    links = [piece.link for piece in found if isinstance(piece, CitationInfo)]
    assert links == ["http://x/a%20b", ""]


def test_after_the_end_a_new_text_begins() -> None:
    citing = processor()
    assert "".join(map(str, citing.process_token("```\n[1]"))) == "```\n[1]"
    assert list(citing.process_token(None)) == []
    assert "[[1]](http://x/1)" in list(citing.process_token("[1] "))


def test_an_unread_answer_is_processed_all_the_same() -> None:
    citing = processor()
    citing.process_token("A [1] ")
    assert list(citing.get_seen_citations()) == [1]


@pytest.mark.parametrize(
    ("link", "safe"),
    [
        ("https://x.example/a b(c)|d", "https://x.example/a%20b%28c%29%7Cd"),
        ("file:///home/ann/有給 休暇.md", "file:///home/ann/有給%20休暇.md"),
        ("https://x/?q=%20&a=1#frag", "https://x/?q=%20&a=1#frag"),
        ("http://x/<script>", "http://x/%3Cscript%3E"),
        ("http://x/\u2028\n", "http://x/"),
        ("javascript:alert(1)", ""),
        (" JavaScript:alert(1)", ""),
        ("data:text/html,x", ""),
        ("", ""),
    ],
)
def test_a_link_cannot_break_out_of_its_place(link: str, safe: str) -> None:
    assert safe_link(link) == safe


@given(st.text(max_size=40))
def test_any_link_leaves_the_text_after_it_alone(link: str) -> None:
    citing = DynamicCitationProcessor()
    citing.update_citation_mapping({1: CitedDocument("d", "D", f"http://x/{link}")})
    tokens = ("a [1] b `c` ", None)
    pieces = [piece for token in tokens for piece in citing.process_token(token)]
    out = "".join(piece for piece in pieces if isinstance(piece, str))
    assert out.startswith("a [[1]](http://x/")
    assert out.endswith(") b `c` ")
    assert not set("()<>[]| \n\t`") & set(out[len("a [[1]](") : -len(") b `c` ")])


def test_each_citation_has_the_words_that_it_stands_for() -> None:
    citing = processor()
    answer = (
        "Staff have 25 days of leave [1] and 10 days of sick pay [2].\n\n"
        "- According to [1], unused days expire. [2]\n"
        "休暇は25日です【1】。病欠は10日です。[2]\n"
        "[1] Nothing else is known [99]."
    )
    for token in [*answer, None]:
        citing.process_token(token)
    both = "Staff have 25 days of leave and 10 days of sick pay."
    expire = "According to, unused days expire."
    assert [(c.number, c.sentence, c.claim) for c in citing.get_cited_sentences()] == [
        (1, both, "Staff have 25 days of leave"),
        (2, both, "and 10 days of sick pay."),
        (1, expire, "According to"),
        (2, expire, ", unused days expire."),
        (1, "休暇は25日です。", "休暇は25日です。"),
        (2, "病欠は10日です。", "病欠は10日です。"),
        (1, "Nothing else is known.", "Nothing else is known."),
    ]


def test_citations_side_by_side_stand_for_the_same_words() -> None:
    citing = processor()
    citing.process_token("Leave is 25 days [1][2], or more [1].")
    citing.process_token(None)
    assert [(c.number, c.claim) for c in citing.get_cited_sentences()] == [
        (1, "Leave is 25 days"),
        (2, "Leave is 25 days"),
        (1, "Leave is 25 days, or more."),
    ]


@given(texts)
def test_every_citation_has_a_sentence(written: str) -> None:
    citing = processor()
    citing.process_token(f"A [1]. {written}")
    citing.process_token(None)
    sentences = citing.get_cited_sentences()
    assert all(cited.sentence and cited.claim for cited in sentences)
    assert {cited.number for cited in sentences} == set(citing.get_seen_citations())


def test_of_several_sections_of_a_document_the_best_gives_the_link() -> None:
    numbers = DocumentNumbers()
    found = [section("a", 0, 1), section("b", 0, 1), section("a", 5, 6)]
    docs = [SearchDoc.from_section(each, numbers.assign(each.document_id)) for each in found]
    docs[2] = replace(docs[2], link="https://wiki.example/a#5")
    result = SearchResult(
        sections=tuple(found), docs=tuple(docs), for_model="", note="", citations={}, partial=False
    )
    citing = DynamicCitationProcessor()
    update_citation_processor_from_tool_response(citing, result)
    list(citing.process_token("Both [1] say [2]."))
    assert citing.get_seen_citations() == {
        1: CitedDocument("a", "About a", "https://wiki.example/a"),
        2: CitedDocument("b", "About b", "https://wiki.example/b"),
    }
