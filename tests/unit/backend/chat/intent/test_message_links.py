"""Addresses in messages of several languages, and which of a model's are among them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.chat.intent.message_links import MAX_LINKS, address_key, find_links, keep_given
from backend.chat.intent.search_plan import LinkState, LinkToRead


@pytest.mark.parametrize(
    ("message", "addresses"),
    [
        ("See https://example.com/a.", ["https://example.com/a"]),
        ("(https://example.com/a?b=c&d=e#f)", ["https://example.com/a?b=c&d=e#f"]),
        ("[here](https://example.com/a)", ["https://example.com/a"]),
        ("<https://example.com/a>", ["https://example.com/a"]),
        ("https://en.wikipedia.org/wiki/A_(b)", ["https://en.wikipedia.org/wiki/A_(b)"]),
        ("看看https://example.com/a总结", ["https://example.com/a"]),
        (
            "https://example.com/a。还有https://example.com/b！",
            ["https://example.com/a", "https://example.com/b"],
        ),
        ("https://zh.wikipedia.org/wiki/中国 讲了什么", ["https://zh.wikipedia.org/wiki/中国"]),
        ("www.example.com/x has it", ["https://www.example.com/x"]),
        ("HTTP://EXAMPLE.COM/A", ["HTTP://EXAMPLE.COM/A"]),
        ("https://example.com https://example.com/", ["https://example.com"]),
        ("ann@www.example.com and www. and https:// and http://)", []),
        ("ftp://example.com javascript:alert(1) file:///etc/passwd", []),
    ],
)
def test_the_addresses_of_a_message_are_found(message: str, addresses: list[str]) -> None:
    assert [link.url for link in find_links(message)] == addresses


def test_a_link_that_was_read_before_says_so() -> None:
    message = "<url id='3' status='failed' title='A &lt;b&gt;'>https://example.com/a</url> and https://example.com/b"
    assert find_links(message) == (
        LinkToRead("https://example.com/a", "A <b>", LinkState.FAILED),
        LinkToRead("https://example.com/b"),
    )


def test_there_are_not_more_links_than_are_read() -> None:
    message = " ".join(f"https://example.com/{n}" for n in range(50))
    assert len(find_links(message)) == MAX_LINKS


def test_an_address_that_nobody_gave_is_dropped() -> None:
    given_ones = (LinkToRead("https://Example.com/a?x=1&y=2"), LinkToRead("https://example.com/b/"))
    written = [
        "https://example.com/b",
        "https://example.com/c",
        "https://example.com/a?x=1&amp;y=2",
    ]
    assert [link.url for link in keep_given(written, given_ones)] == [
        "https://example.com/b/",
        "https://Example.com/a?x=1&y=2",
    ]


@pytest.mark.parametrize(
    "other",
    [
        "https://example.com/A",
        "https://example.com/a?b=d",
        "https://example.com.evil.net/a?b=c",
        "https://evil.net/https://example.com/a?b=c",
        "https://example.com@evil.net/a?b=c",
        "http://example.com/a?b=c",
    ],
)
def test_another_address_is_not_taken_for_one_that_was_given(other: str) -> None:
    assert keep_given([other], (LinkToRead("https://example.com/a?b=c"),)) == ()


@given(st.text())
def test_any_text_has_a_key_and_links_that_stand_in_it(text: str) -> None:
    address_key(text)
    assert all(link.url.removeprefix("https://www.") in text for link in find_links(text))
