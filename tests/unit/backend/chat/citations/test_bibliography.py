"""The list of sources that a model writes behind its answer is left out, and nothing else is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.chat.citations.bibliography import BibliographyFilter

ANSWER = "Parents have 26 weeks [1]. The law grants 24 [2]."


def _pass_on(*tokens: str) -> str:
    remover = BibliographyFilter()
    return "".join([*map(remover.add, tokens), remover.end()])


@pytest.mark.parametrize(
    "written",
    [
        "\n\n## References\n\n[1] Parental leave\n[2] The law\n",
        "\n\n**References**\n\n- [1] Parental leave, https://example.com\n- [2] The law",
        "\n\n**Sources:**\n1. [Parental leave](https://example.com/a)\n2. [The law](https://example.com/b)",
        "\n\nSources:\n[1]: https://example.com/a\n[2]: https://example.com/b",
        "\n\n---\n\n### Sources\n[[1]](https://example.com) Leave\n",
        "\n### 参考文献\n【1】育儿假\n【2】法律",
        "\n\n**参考文献：**\n\n[1] 育儿假",
        "\n\n来源：\n- https://example.com/a\n- <https://example.com/b>",
        "\n\n## Quellen\n* [1] Elternzeit\n* [2] Das Gesetz\n\n",
        "\n\nReferences\n==========\n[1] Leave",
        "\r\n\r\n## References\r\n\r\n[1] Leave\r\n",
        "\n\n__出典__\n［1］育児休業",
        "\n\n#### Références :\n[1] Congé parental",
    ],
)
def test_a_list_at_the_end_is_left_out(written: str) -> None:
    assert _pass_on(ANSWER, written).rstrip("\r") == ANSWER
    assert _pass_on(*ANSWER, *written).rstrip("\r") == ANSWER


@pytest.mark.parametrize(
    "text",
    [
        ANSWER,
        f"{ANSWER}\n\n## References\n\n[1] Leave\n\nThat is all.",
        f"{ANSWER}\n\n## Sources of error\n\n[1] says that the scale drifts.",
        f"{ANSWER}\n\n## References\n\nAsk your manager for references.",
        f"{ANSWER}\n\n## References\n",
        f"{ANSWER}\n\n---\n",
        f"{ANSWER}\n\n- References\n- [1]",
        f"{ANSWER}\n\n```\n# References\n[1] Leave\n```\n",
        f"{ANSWER}\n\n```\n# References\n[1] Leave",
        f"{ANSWER}\n\n    # References\n    [1] Leave",
        "## References\n\n[1] Leave\n[2] The law",
        "\n\nSources:\n[1] Leave",
        f"{ANSWER}\n\nSources: [1], [2]",
        f"{ANSWER}\n\n# Sources\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
        "",
        "\n",
    ],
)
def test_what_is_no_list_stays(text: str) -> None:
    assert _pass_on(text) == text
    assert _pass_on(*text) == text


def test_of_two_lists_the_last_one_is_left_out() -> None:
    first = f"{ANSWER}\n\n## Sources\n[1] Leave"
    assert _pass_on(f"{first}\n\n## References\n[2] The law") == f"{first}\n"


def test_ordinary_text_is_passed_on_at_once() -> None:
    remover = BibliographyFilter()
    assert remover.add("Parents have") == "Parents have"
    assert remover.add(" 26 weeks.\n\nRe") == " 26 weeks."
    assert remover.add("member") == "\n\nRemember"
    assert remover.add(" it.\n## Ref") == " it."
    assert remover.add("und") == "\n## Refund"
    assert remover.end() == ""


_PARTS = st.sampled_from(
    [
        *("\n", "\n\n", " ", "a", "Text. ", "---", "***", "```", "~~~", "#", "## ", "**", "- ", "1. "),
        *("References", "Sources", ":", "参考文献", "：", "Quellen", "[1]", "[", "1", "]", "[2] The law"),
        *("https://example.com", "http", "[Leave](https://example.com)", "【1】", "\r\n", "\t", "    "),
    ]
)  # fmt: skip


@given(st.lists(_PARTS, max_size=24).map("".join), st.data())
def test_the_text_is_the_same_however_it_is_split(text: str, data: st.DataObject) -> None:
    whole = _pass_on(text)
    assert text.startswith(whole)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    ends = [*cuts, len(text)]
    tokens = [text[start:end] for start, end in zip([0, *cuts], ends, strict=True)]
    assert _pass_on(*tokens) == whole
    assert _pass_on(*text) == whole


@given(st.lists(_PARTS, max_size=24).map("".join))
def test_what_is_left_out_is_a_list_that_stands_behind_text(text: str) -> None:
    whole = _pass_on(text)
    if whole != text:
        left_out = text.removeprefix(whole).casefold()
        assert whole.strip()
        assert any(word in left_out for word in ("references", "sources", "参考文献", "quellen"))
        assert any(mark in left_out for mark in ("[", "【", "http"))


@given(st.text())
def test_other_text_stays(text: str) -> None:
    assert _pass_on(text) == text
