"""A conversation as Markdown: each source once, and nothing that others wrote gets out of its place."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from backend.chat.events import GENERAL_KNOWLEDGE
from backend.chat.passages import REASON_TEXTS, PassagesReason
from backend.conversations.answer_gate import WITHHELD
from backend.conversations.markdown_export import EARLIER, export_markdown
from backend.conversations.sharing import ReadConversation, ReadMessage
from backend.conversations.turn_events import STOPPED
from backend.conversations.unfinished_answer import make_unfinished_answer
from backend.web.catalogs import load_messages
from tests.support.conversations import make_answer, make_message

SERVER = "https://quarry.example.com"
ENGLISH = (
    "Question",
    "Answer",
    "References",
    STOPPED,
    WITHHELD,
    REASON_TEXTS[PassagesReason.NO_MODEL],
)
CHINESE = (
    "问题",
    "回答",
    "参考文献",
    "回答已停止。",
    "此回答依据的来源已被删除，或您无权读取。",
    load_messages("zh").translate(REASON_TEXTS[PassagesReason.NO_MODEL]),
)
GITHUB = MarkdownIt("gfm-like", {"linkify": False, "html": True})
ONE, TWO = "[[1]](https://wiki.example.com/1)", "[[2]](https://wiki.example.com/2)"


def _asked(text: str) -> ReadMessage:
    return ReadMessage(make_message("user", text), text, withheld=False)


def _answered(text: str, *documents: str, title: str | None = None) -> ReadMessage:
    answer = make_answer(text, *documents)
    if title is not None:
        answer["citations"][0]["title"] = title
    return ReadMessage(make_message("assistant", text, answer), "?", withheld=False)


def _export(
    *messages: ReadMessage, title: str = "Leave", translate: Callable[[str], str] = str
) -> str:
    return export_markdown(ReadConversation(title, messages), SERVER, translate)


def _types(markdown: str) -> set[str]:
    tokens = GITHUB.parse(markdown)
    return {one.type for each in tokens for one in (each, *(each.children or ()))}


def test_sources_have_one_number_through_the_whole_document() -> None:
    first = _answered(f"One {ONE} and two {TWO}{ONE}.", "a:x", "a:y")
    second = _answered(f"Two again {ONE}.", "a:y")
    written = _export(_asked("How long\n\nis it?"), first, _asked("And now?"), second)
    assert written == (
        "# Leave\n\n## Question\n\n> How long  \n>\n> is it?  \n\n## Answer\n\nOne [1] and two [2][1].\n\n"
        "## Question\n\n> And now?  \n\n## Answer\n\nTwo again [2].\n\n## References\n\n"
        "1. [Title of a:x](https://wiki.example.com/1)\n2. [Title of a:y](https://wiki.example.com/2)\n"
    )


def test_a_source_that_is_not_on_the_web_leads_to_its_page() -> None:
    answer = make_answer("It is [1].", "a:folder/x y).md")
    answer["citations"][0]["link"] = ""
    one = ReadMessage(make_message("assistant", "It is [1].", answer), "?", withheld=False)
    written = _export(_asked("?"), one)
    assert "It is [1].\n" in written
    assert f"]({SERVER}/document/a:folder/x%20y%29.md)\n" in written


def test_a_memory_leads_to_the_list_of_memories() -> None:
    answer = make_answer("It is [1].", "memory/x")
    answer["citations"][0] |= {"link": "", "kind": "memory"}
    one = ReadMessage(make_message("assistant", "It is [1].", answer), "?", withheld=False)
    assert f"]({SERVER}/memories)\n" in _export(_asked("?"), one)


def test_general_knowledge_is_marked_and_lists_nothing() -> None:
    text = "Water boils at 100 degrees."
    answer = {**make_answer(text), "general_knowledge": True}
    one = ReadMessage(make_message("assistant", text, answer), "?", withheld=False)
    assert _export(_asked("?"), one).endswith(f"{text}\n\n*{GENERAL_KNOWLEDGE}*\n")


def test_of_an_answer_that_is_withheld_there_is_one_sentence() -> None:
    shown = _answered(f"Secret {ONE}.", "a:x")
    written = _export(_asked("Why?"), replace(shown, withheld=True))
    assert written == f"# Leave\n\n## Question\n\n> Why?  \n\n## Answer\n\n*{WITHHELD}*\n"


def test_an_answer_that_was_stopped_has_its_sources() -> None:
    text = f"It is {ONE} so"
    cited = {"number": 1, "document_id": "a:x", "title": "X", "link": "https://wiki.example.com/1"}
    answer = make_unfinished_answer(text, [cited])
    message = replace(make_message("assistant", text, answer), status="stopped")
    written = _export(_asked("?"), ReadMessage(message, "?", withheld=False))
    assert written.endswith(
        "It is [1] so\n\n*The answer was stopped.*\n\n## References\n\n1. [X](https://wiki.example.com/1)\n"
    )


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (f"It is{ONE} so", "It is so"),
        (f"It is {ONE} so", "It is so"),
        (f"It is {ONE} {TWO}.", "It is."),
    ],
)
def test_an_answer_of_which_no_citation_is_known_loses_its_numbers(text: str, written: str) -> None:
    """One that was stopped by an earlier version."""
    message = replace(make_message("assistant", text), status="stopped")
    exported = _export(_asked("?"), ReadMessage(message, "?", withheld=False))
    assert exported.endswith(f"\n\n{written}\n\n*The answer was stopped.*\n")


def test_that_earlier_messages_are_left_out_is_said() -> None:
    read = ReadConversation("Leave", (_asked("?"),), has_earlier=True)
    for language, said in (("en", EARLIER), ("zh", "未显示较早的消息。")):
        written = export_markdown(read, SERVER, load_messages(language).translate)
        assert written.startswith(f"# Leave\n\n*{said}*\n\n## ")
    assert EARLIER not in _export(_asked("?"))


def _lost(text: str, *losses: dict[str, str]) -> ReadMessage:
    message = replace(make_message("assistant", text, make_answer(text)), losses=losses)
    return ReadMessage(message, "?", withheld=False)


UNSEEN = {"step": "history", "reason": "The summary was not written in time."}


def test_what_an_answer_was_written_without_stands_below_it() -> None:
    assert _export(_asked("?"), _lost("It is.", UNSEEN)).endswith(
        "It is.\n\n*Done without the earliest messages of this conversation: The summary was not written in time.*\n"
    )
    chinese = _export(_lost("It is.", UNSEEN), translate=load_messages("zh").translate)
    assert "未采用此对话最早的消息：" in chinese


def test_a_loss_of_a_withheld_answer_is_not_told() -> None:
    withheld = replace(_lost("It is.", UNSEEN), withheld=True)
    assert "Done without" not in _export(_asked("?"), withheld)


def test_why_something_was_lost_is_no_markup() -> None:
    written = _export(_lost("It is.", {"step": "web", "reason": "![](https://evil.example/p)<b>"}))
    assert _types(written).isdisjoint({"image", "html_inline", "link_open"})


HOSTILE = (
    "](javascript:alert(1)) [x",
    "# Sources\n\n1. Mine",
    "<img src=x onerror=alert(1)>",
    "`<b>` ![](https://evil.example/p.png)",
    "a\n- b",
    "\u202egpj.exe",
    "1) x",
    "&lt;script&gt; **x** _y_ ~~z~~ ``",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_title_and_no_question_breaks_out(text: str) -> None:
    cited = _answered(f"It is {ONE}.", "a:x", title=text)
    written = _export(_asked(text), cited, title=text)
    headings = [line for line in written.splitlines() if line.startswith("#")]
    assert headings[1:] == ["## Question", "## Answer", "## References"]
    assert _types(written).isdisjoint({"image", "html_inline", "html_block", "strong_open"})
    links = [
        one.attrGet("href")
        for each in GITHUB.parse(written)
        for one in each.children or ()
        if one.type == "link_open"
    ]
    assert links == ["https://wiki.example.com/1"]
    assert "\u202e" not in written


ANSWERS = (
    "```\nopen <b>code</b> [1]: x",
    "~~~~ sh\n> x\n~~~",
    "- a\n  ```\n  code\n```",
    "[1]: https://evil.example 'x'\n\n[ 1 ]: https://evil.example",
    f"See {ONE}(https://evil.example) {ONE}[x] {ONE}: y",
    "\\\\<img src=x> \\<img src=x>",
    "`a\n\n<img src=x>\n\nb`",
    "| `a | <img src=x>` |\n|---|---|\n| ![x](https://evil.example) | b |",
    "\\`<img src=x>\\`",
    "```a``<img src=x>``",
    "<!-- hidden",
    "<https://evil.example>",
)


@pytest.mark.parametrize("text", ANSWERS)
def test_no_answer_runs_on_or_brings_pictures_and_html(text: str) -> None:
    _assert_is_shut_off(text)


@given(
    st.lists(
        st.sampled_from(
            [*"`~<>![]()\\:|-#1 \n", "\n\n", "```", "<img x>", "![a](b)", "    ", "[1]: u", ONE]
        ),
        max_size=25,
    )
)
def test_whatever_an_answer_is_made_of_it_stays_in_its_place(parts: list[str]) -> None:
    _assert_is_shut_off("".join(parts))


def _assert_is_shut_off(text: str) -> None:
    written = _export(_asked("?"), _answered(text, "a:x"), _asked("last"), _answered("Yes", "a:x"))
    found: dict[str, Any] = {}
    tokens = GITHUB.parse(written, found)
    assert not found.get("references"), "a number leads where nothing here says"
    assert _types(written).isdisjoint({"image", "html_inline", "html_block"}), written
    headings = [
        after.content
        for token, after in itertools.pairwise(tokens)
        if token.type == "heading_open" and token.level == 0
    ]
    assert headings[-2:] == ["Question", "Answer"] or headings[-1] == "References", written
    assert written.count("\n## Question\n") >= 2
    assert "last" in [one.content for one in tokens if one.type == "inline"], written


def test_code_is_left_as_it_is() -> None:
    text = "Use `List<int>`:\n\n```\nif a < b: ![x](y)\n```\n\n    a < b\n\nso a < b."
    assert "Use `List<int>`:" in _export(_answered(text))
    assert "\nif a < b: ![x](y)\n" in _export(_answered(text))
    assert "\n    a < b\n\nso a \\< b." in _export(_answered(text))


def test_headings_and_notices_are_in_the_language_of_the_reader_and_nothing_else() -> None:
    answer = _answered(f"Answer: {ONE}", "a:x", title="\u2067")
    stopped = replace(answer, message=replace(answer.message, status="stopped"))
    withheld = replace(answer, withheld=True)
    passages = ReadMessage(
        make_message("assistant", REASON_TEXTS[PassagesReason.NO_MODEL]), "?", withheld=False
    )
    for language, words in (("en", ENGLISH), ("zh", CHINESE)):
        written = _export(
            *(_asked("Sources"), stopped, withheld, passages),
            translate=load_messages(language).translate,
        )
        question, said, sources, stop, hidden, why = words
        assert written == (
            f"# Leave\n\n## {question}\n\n> Sources  \n\n## {said}\n\nAnswer: [1]\n\n*{stop}*\n\n"
            f"## {said}\n\n*{hidden}*\n\n## {said}\n\n{why}\n\n"
            f"## {sources}\n\n1. [\ufffd](https://wiki.example.com/1)\n"
        )


@pytest.mark.parametrize(
    ("reason", "english", "chinese"),
    [
        (
            "group_budget_used",
            "Your group had used the day's budget of language model tokens. No language model wrote this answer.",
            "您所在群组当天的语言模型词元额度已用完。此回答不是由语言模型撰写的。",
        ),
        (
            "model_broke_off",
            "The language model did not finish this answer.",
            "语言模型没有完成此回答。",
        ),
    ],
)
def test_it_says_why_no_model_wrote_an_answer(reason: str, english: str, chinese: str) -> None:
    answer = make_answer(f"26 weeks {ONE}.", "a:x", passages_reason=reason)
    one = ReadMessage(make_message("assistant", answer["answer"], answer), "?", withheld=False)
    assert f"26 weeks [1].\n\n*{english}*\n\n" in _export(one)
    assert f"*{chinese}*\n" in _export(one, translate=load_messages("zh").translate)


@pytest.mark.parametrize("reason", [None, "no_model", "model_failed"])
def test_what_needs_no_reason_has_none(reason: str | None) -> None:
    answer = make_answer(f"26 weeks {ONE}.", "a:x", passages_reason=reason)
    one = ReadMessage(make_message("assistant", answer["answer"], answer), "?", withheld=False)
    assert "*" not in _export(one)


def test_a_source_without_a_title_has_a_name_in_the_language_of_the_reader() -> None:
    answer = _answered(f"{ONE}", "a:x", title=" ")
    assert "1. [Untitled](" in _export(answer)
    assert "1. [无标题](" in _export(answer, translate=load_messages("zh").translate)
