"""Links of Markdown, their labels and targets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexing.text.markdown_links import strip_link_targets, strip_links


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
