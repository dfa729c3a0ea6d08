"""Markdown as mrkdwn: what has an effect in Slack, and what must not."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.programs.slack.mrkdwn import convert, cut, escape, make_link
from tests.support.slack_blocks import check_mrkdwn


def keep_target(label: str, target: str) -> str:
    del label
    return target


def show(markdown: str) -> str:
    return "\n\n".join(convert(markdown, keep_target))


@pytest.mark.parametrize(
    ("markdown", "mrkdwn"),
    [
        ("plain & <simple>", "plain &amp; &lt;simple&gt;"),
        ("**bold** _em_ ~~gone~~ `a < b`", "*bold* _em_ ~gone~ `a &lt; b`"),
        ("# Title **x**", "*Title x*"),
        ("- one\n- two\n  - inner", "• one\n• two\n    • inner"),
        ("3. three\n4. four", "3. three\n4. four"),
        ("> said\n> twice", "> said\n> twice"),
        ("```python\nif a < b:\n```", "```\nif a &lt; b:\n```"),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "```\na | b\n1 | 2\n```"),
        ("26 weeks [[1]](https://a.example/x)", "26 weeks <https://a.example/x|[1]>"),
        ("[label](javascript:alert)", "label"),
        ("[label](file:///srv/x)", "label"),
        ("![a picture](https://a.example/x.png)", "a picture"),
        ("<!channel> and <@U1>", "&lt;!channel&gt; and &lt;@U1&gt;"),
        ("<div>\n<!here>\n</div>", "&lt;div&gt;\n&lt;!here&gt;\n&lt;/div&gt;"),
        ("one\ntwo  \nthree", "one\ntwo\nthree"),
        ("a\n\n---\n\nb", "a\n\n———\n\nb"),
    ],
)
def test_markdown_is_shown_as_slack_shows_it(markdown: str, mrkdwn: str) -> None:
    assert show(markdown) == mrkdwn


@pytest.mark.parametrize(
    ("address", "label", "shown"),
    [
        ("https://a.example/?a=1&b=2", "x", "<https://a.example/?a=1&amp;b=2|x>"),
        (
            "https://a.example/|<!here>",
            "a|b<!here>",
            "<https://a.example/%7C%3C!here%3E|a¦b&lt;!here&gt;>",
        ),
        ("https://a.example/\n> x", "x", "<https://a.example/%0A%3E%20x|x>"),
        ("slack://channel", "<!channel>", "&lt;!channel&gt;"),
        (f"https://a.example/{'x' * 3000}", "long", "long"),
        ("", "none", "none"),
    ],
)
def test_a_link_leads_to_the_web_or_is_its_label(address: str, label: str, shown: str) -> None:
    assert make_link(address, label) == shown


PIECES = st.sampled_from(
    [
        *("<!channel>", "<@U1>", "<#C1|x>", "<!subteam^S1>", "<https://a.example|b>", "&lt;", "&"),
        *("[x](https://a.example/<!here>)", "[[1]](https://a.example/1)", "](", "```", "`", "\n"),
        *("\n\n", "> ", "- ", "1. ", "# ", "| ", "|---|", "**", "_", "~~", "word ", "<div>", "\\"),
        *("<!--", "-->", "![x](y)", "\t", "    ", "&#60;!here&#62;", "&lt;!here&gt;"),
    ]
)


@given(st.lists(PIECES, max_size=30).map("".join), st.integers(min_value=120, max_value=240))
def test_whatever_is_written_mentions_nobody_however_it_is_cut(markdown: str, longest: int) -> None:
    blocks = convert(markdown, keep_target)
    for block in blocks:
        assert list(check_mrkdwn(block)) == []
        for part in cut(block, longest):
            assert len(part) <= longest
            assert list(check_mrkdwn(part)) == []


@given(st.text(alphabet="ab &<>\n`", max_size=400), st.integers(min_value=20, max_value=80))
def test_nothing_is_lost_between_the_parts(text: str, longest: int) -> None:
    parts = list(cut(escape(text), longest))
    assert re.sub(r"\s", "", "".join(parts)) == re.sub(r"\s", "", escape(text))


def test_code_that_is_cut_stays_code() -> None:
    (block,) = convert("```\n" + "x <= y\n" * 100 + "```", keep_target)
    parts = list(cut(block, 200))
    assert len(parts) > 3
    assert all(part.startswith("```\n") and part.endswith("\n```") for part in parts)
