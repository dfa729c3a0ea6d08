"""An answer's Markdown: rendered, cited, and without a way to do harm."""

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import html

from backend.schemas.answer import AnswerResponse, CitationResponse
from backend.web.answer_html import answer_html, sanitize

_ALLOWED = {
    *("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "strong", "em", "s", "code", "pre"),
    *("ul", "ol", "li", "blockquote", "table", "thead", "tbody", "tr", "th", "td", "a"),
}
_SAFE = re.compile(r"(https?://|mailto:|#|/document/)")


def _citation(number: int, quote: str = "said", link: str = "file:///x") -> CitationResponse:
    return CitationResponse(
        number=number,
        document_id='zoo:a "b"/<c>.md',
        title='<img src=x> "quoted"',
        link=link,
        quote=quote,
        section=2,
        span=(3, 7),
        score=0.9,
        verdict="supported",
    )


def _rendered(text: str, citations: Sequence[CitationResponse] = ()) -> str:
    return answer_html(
        AnswerResponse(
            question="?", answer=text, model=None, citations=tuple(citations), seconds=0.1
        )
    )


def test_a_citation_leads_to_the_passage_that_it_quotes() -> None:
    (chip,) = html.fromstring(_rendered("So [[1]](file:///x).", [_citation(1)])).iter("a")
    assert chip.text == "1"
    assert chip.get("href") == (
        "/document/zoo:a%20%22b%22/%3Cc%3E.md?section=2&start=3&end=7#cited"
    )
    assert (chip.get("class"), chip.get("data-at"), chip.get("data-verdict")) == (
        "cite",
        "0",
        "supported",
    )
    assert chip.get("aria-label") == 'Source 1: <img src=x> "quoted"'


def test_a_citation_of_the_web_opens_beside_the_page_and_tells_its_site_nothing() -> None:
    link = "https://www.Example.com/a?b=1&c"
    of_web = _citation(1, link=link).model_copy(update={"kind": "url", "document_id": link})
    (chip,) = html.fromstring(_rendered(f"So [[1]]({link}).", [of_web])).iter("a")
    assert (chip.get("href"), chip.get("target")) == (link, "_blank")
    assert chip.get("rel") == "noopener noreferrer nofollow"
    assert chip.get("data-host") == "example.com"


@pytest.mark.parametrize("link", ["javascript:alert(1)", "", "data:text/html,x"])
def test_a_citation_of_the_web_without_an_address_of_it_leads_nowhere(link: str) -> None:
    of_web = _citation(1, link=link).model_copy(update={"kind": "url"})
    (chip,) = html.fromstring(_rendered("So [[1]](x) [1].", [of_web])).iter("a")
    assert not chip.get("href")


def test_a_citation_of_a_memory_leads_to_the_list_of_memories() -> None:
    memory = _citation(1, link="").model_copy(update={"kind": "memory"})
    (chip,) = html.fromstring(_rendered("So [1].", [memory])).iter("a")
    assert (chip.get("href"), chip.get("target")) == ("/memories", None)


def _uncited(text: str, uncited: Sequence[str], citations: Sequence[CitationResponse]) -> str:
    answer = AnswerResponse(
        question="?",
        answer=text,
        model="m",
        citations=tuple(citations),
        seconds=0.1,
        uncited=tuple(uncited),
    )
    return answer_html(answer)


@pytest.mark.parametrize(
    ("text", "sentence", "before"),
    [
        ("A is b [[1]](f). It costs 9 euros. Or so.", "It costs 9 euros.", "It costs 9 euros."),
        ("A [[1]](f).\n\n- **It costs\n  9 euros.**", "**It costs 9 euros.**", "9 euros."),
        ("It costs 9 euros. [[1]](f) It costs 9 euros.", "It costs 9 euros.", "It costs 9 euros."),
        ("A [[1]](f).\n\n| a | b |\n|---|---|\n| c | 9 |", "| c | 9 |", "9"),
        ("A [[1]](f). <b>Nine</b> &amp; 9.", "<b>Nine</b> &amp; 9.", "<b>Nine</b> & 9."),
    ],
)
def test_a_sentence_without_a_source_is_marked(text: str, sentence: str, before: str) -> None:
    root = html.fragment_fromstring(_uncited(text, [sentence], [_citation(1)]), "div")
    (mark,) = root.iter("sup")
    assert (mark.get("class"), mark.text) == ("uncited", "no source")
    said = root.text_content()
    assert said[: said.index("no source")].rstrip().endswith(before)
    assert [chip.text for chip in root.iter("a")] == ["1"]


def test_an_answer_without_any_source_is_not_marked_sentence_by_sentence() -> None:
    assert "no source" not in _uncited("It costs 9 euros.", ["It costs 9 euros."], [])


def test_marks_that_a_model_writes_itself_are_dropped() -> None:
    shown = _uncited("A [[1]](f). B \u2e2e\u2042 c `\u2e2e\u2042`.", (), [_citation(1)])
    assert "no source" not in shown
    assert "\u2e2e" not in shown


def test_citations_of_one_number_are_distinguished_by_their_order() -> None:
    text = "A [[2]](f). B [[1]](f). C [[2]](f).\n\n- D [[2]](f)"
    citations = [_citation(number) for number in (2, 1, 2, 2)]
    assert re.findall(r'data-at="(\d)"', _rendered(text, citations)) == ["0", "1", "2", "3"]


def test_a_citation_without_a_link_or_a_quote_is_one_too() -> None:
    shown = _rendered("A [3]. B [4].", [_citation(3, quote="", link="")])
    assert 'href="/document/zoo:a%20%22b%22/%3Cc%3E.md"' in shown
    assert "[4]" in shown


def test_a_number_in_code_or_that_is_not_cited_is_text() -> None:
    shown = _rendered("`[[1]](f)` and [9]", [_citation(1)])
    assert "<code>[[1]](f)</code> and [9]" in shown


def test_escaped_brackets_are_text_whatever_is_cited() -> None:
    text = r"He wrote \[\[1\]\](https\://evil.example/x) and \[1\] [[1]]()"
    shown = _rendered(text, [_citation(1, link="")])
    (chip,) = html.fromstring(shown).iter("a")
    assert chip.get("class") == "cite"
    assert "He wrote [[1]](https://evil.example/x) and [1] <a" in shown


@pytest.mark.parametrize("definition", ["[1]: https://evil.example", "[1\n]: https://evil.example"])
def test_a_definition_does_not_lead_a_citation_elsewhere(definition: str) -> None:
    shown = _rendered(
        f"So [[1]](file:///x), and [a].\n\n{definition}\n\n[a]: http://a", [_citation(1)]
    )
    (chip, link) = html.fromstring(shown).iter("a")
    assert (chip.text, chip.get("class")) == ("1", "cite")
    assert link.get("href") == "http://a"


def test_markdown_is_rendered() -> None:
    shown = _rendered("**a**\n\n1. b\n\n| c |\n|---|\n| d |\n")
    for tag in ("<strong>a</strong>", "<ol>", "<th>c</th>", "<td>d</td>"):
        assert tag in shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<script>x</script>", "<p>&lt;script&gt;x&lt;/script&gt;</p>\n"),
        ("[a](javascript:x)", "<p>a</p>\n"),
        ("[a](JAVASCRIPT&#58;x)", "<p>a</p>\n"),
        ("[a](data:text/html,x)", "<p>a</p>\n"),
        ("[a](//evil.example)", "<p>a</p>\n"),
        ("[a](/api/sources)", "<p>a</p>\n"),
        ("[a][b]\n\n[b]: javascript:x", "<p>a</p>\n"),
        ("{{7*7}}", "<p>{{7*7}}</p>\n"),
        ("a\u202eb", "<p>a�b</p>\n"),
        (
            "![a](https://b.example/p.png)",
            '<p><a href="https://b.example/p.png" target="_blank" rel="noopener noreferrer nofollow">a</a></p>\n',
        ),
        ("![a](javascript:x)", "<p>a</p>\n"),
    ],
)
def test_what_could_do_harm_is_text(text: str, shown: str) -> None:
    assert _rendered(text) == shown


@given(
    st.lists(
        st.sampled_from(
            ["<img src=x onerror=y>", "[a](", "javascript:x", ")", "[[1]](f)", "`", "**", "\n\n", "|", "---",
             "![", "](https://b.example)", '" onclick="x', "<", ">", "&lt;", "\n- ", "    ", "[1]", "\\"]
        ),
        max_size=30,
    ).map("".join)
)  # fmt: skip
def test_nothing_but_what_is_allowed_comes_out(text: str) -> None:
    shown = html.fragment_fromstring(_rendered(text, [_citation(1), _citation(1)]), "div")
    for element in shown.iterdescendants():
        assert element.tag in _ALLOWED
        assert not any(name.startswith("on") or name in {"style", "src"} for name in element.attrib)
        if element.tag == "a":
            assert _SAFE.match(element.get("href") or "")
            assert element.get("rel") == "noopener noreferrer nofollow"


def test_the_second_wall_stands_alone() -> None:
    hostile = '<p onclick="x">a<script>b</script><img src="c"><a href="javascript:d">e</a></p>'
    assert sanitize(hostile) == '<p>a<a rel="noopener noreferrer nofollow">e</a></p>'


def test_an_enormous_answer_ends() -> None:
    for unit in ("[a](b) ", "![", "[[1]](f) ", "> ", "*a", "| a "):
        assert _rendered(unit * 4_000, [_citation(1)])


def test_code_is_marked_by_its_language_and_remains_text() -> None:
    shown = _rendered("```python\nreturn '<b>' # [1]\n```")
    assert '<span class="code-keyword">return</span>' in shown
    assert "&lt;b&gt;" in shown
    assert "cite" not in shown


def test_much_code_of_one_answer_leaves_that_of_the_next_marked() -> None:
    block = "```python\n" + "return 1\n" * 400 + "```\n\n"
    for _ in range(2):
        shown = _rendered(block * 5)
        assert shown.count('<span class="code-keyword">return</span>') == 3 * 400
