"""What is posted of an answer."""

from typing import Any

from backend.programs.slack.posts import ButtonSet, make_answer_posts, make_notice
from tests.support.conversations import make_answer
from tests.support.slack_blocks import find_fault, list_texts

BUTTONS = ButtonSet("conversation:5", offers_private=True)


def show(answer: dict[str, Any], server: str | None = "https://quarry.example.com") -> str:
    posts = make_answer_posts(answer, ["A note."], BUTTONS, server)
    for post in posts:
        assert find_fault(post.text, post.blocks) is None
    return "\n".join(text for post in posts for block in post.blocks for text in list_texts(block))


def test_each_source_is_listed_once_under_its_number() -> None:
    cited = "One [[1]](https://wiki.example.com/1). Two [[2]](https://wiki.example.com/2)."
    answer = make_answer(cited, "wiki:a", "wiki:b")
    answer["citations"].append(answer["citations"][0])
    shown = show(answer)
    assert "One <https://wiki.example.com/1|[1]>." in shown
    assert shown.count("<https://wiki.example.com/2|Title of wiki:b>") == 1
    assert "A note." in shown


def test_a_source_that_no_browser_opens_leads_to_its_page_here_if_there_is_one() -> None:
    answer = make_answer("One [[1]](file:///srv/a.md).", "wiki:a b.md")
    for one in (*answer["citations"], *answer["documents"]):
        one["link"] = "file:///srv/a.md"
    assert "<https://quarry.example.com/document/wiki:a%20b.md|[1]>" in show(answer)
    assert "[1] Title of wiki:a b.md" in show(answer, None)
    assert "file:" not in show(answer, None)


def test_what_is_from_general_knowledge_or_cut_off_says_so() -> None:
    shown = show(make_answer("Something.", general_knowledge=True, cut=True))
    assert "From general knowledge" in shown
    assert "cut off" in shown
    assert "Wrong source" not in shown


def test_long_titles_and_many_sources_fit() -> None:
    names = [f"wiki:{'x<&>' * 60}{number}" for number in range(70)]
    answer = make_answer("All of it.", *names)
    (post,) = make_answer_posts(answer, [], BUTTONS, None)
    assert find_fault(post.text, post.blocks) is None


def test_a_notice_mentions_nobody() -> None:
    notice = make_notice("a <!channel> & b")
    assert find_fault(notice.text, notice.blocks) is None
    assert notice.text == "a &lt;!channel&gt; &amp; b"
