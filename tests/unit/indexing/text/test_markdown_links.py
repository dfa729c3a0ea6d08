"""Links of Markdown, their labels and targets."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lxml import html
from markdown_it import MarkdownIt

from indexing.text.markdown_links import escape_markdown, strip_link_targets, strip_links

GITHUB = MarkdownIt("commonmark").enable(["table", "strikethrough"])


@pytest.mark.parametrize(
    ("text", "alone"),
    [
        ("see [the form](https://example.com/a?b=c#d) now", "see the form now"),
        ("see [it](/wiki/A_(b)) now", "see it now"),
        ('[a](b "its title") and [c](<d e>)', "a and c"),
        ('[Concur]({% page "/travel/book/" %})', "Concur"),
        ("[us]({{ site.baseurl }}/us/) [you](/{id}/x)", "us you"),
        ("![a chart](chart.png)", "a chart"),
        ("[](x)", ""),
    ],
)
def test_a_link_is_its_label(text: str, alone: str) -> None:
    assert strip_links(text) == alone


@pytest.mark.parametrize(
    "text",
    ["[1] (see below)", "f[i](x, y)", "a](b", "[a](b c)", "[a](b", "[a]", "([1])", "{a}](b)"],
)
def test_what_is_no_link_stays(text: str) -> None:
    assert strip_links(text) == text


def test_of_a_line_the_targets_alone_are_left_out() -> None:
    assert strip_link_targets("or as [one](x) and end](y), too") == "or as [one] and end], too"


@given(st.text('[](){}<>%!ab \n"', max_size=60))
def test_whatever_is_left_out_the_rest_stays_in_its_order(text: str) -> None:
    left = iter(text)
    assert all(character in left for character in strip_links(text))


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("[[1]](https://evil.example/x)", r"\[\[1\]\](https\://evil.example/x)"),
        ("![logo](https://evil.example/p.png)", r"!\[logo\](https\://evil.example/p.png)"),
        ("see www.evil.example", r"see www\.evil.example"),
        ("ask a@evil.example", r"ask a\@evil.example"),
        ("**snake_case** `x` <b> &amp; ~~y~~", r"\*\*snake\_case\*\* \`x\` \<b> \&amp; \~\~y\~\~"),
        ("12. of May", r"12\. of May"),
        ("- one - two", r"\- one - two"),
        ("# one # two", r"\# one # two"),
        ("Up to 12.50 euros (net), at 9:30.", "Up to 12.50 euros (net), at 9:30."),
    ],
)
def test_escaped_text_is_changed_where_it_would_be_markup(text: str, escaped: str) -> None:
    assert escape_markdown(text) == escaped


@example(" 2) ")
@example("    - a")
@given(
    st.lists(
        st.sampled_from(
            ["[", "]", "(", ")", "[[1]]", "(https://evil.example)", "!", "`", "``", "*", "__", "~~", "<", ">",
             "<b>", "https://evil.example", "&amp;", "&#60;", "\\", "1.", "2) ", "- ", "+ ", "# ", "> ", "=", "---",
             "|", ":", "a", " ", "word", "\\["]
        ),
        max_size=20,
    ).map("".join)
)  # fmt: skip
def test_escaped_text_is_shown_by_markdown_as_it_is(text: str) -> None:
    shown = GITHUB.render(f"{escape_markdown(text)}.")
    (paragraph,) = html.fragments_fromstring(shown)
    assert (paragraph.tag, len(paragraph)) == ("p", 0)
    assert paragraph.text == f"{text}.".strip(" ")
