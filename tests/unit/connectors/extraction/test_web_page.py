"""Types, encodings and hidden parts of pages."""

import pytest
from lxml import html

from connectors.extraction.registry import HTML, PDF, TEXT, XML
from connectors.extraction.result import ExtractionError
from connectors.extraction.web_page import (
    decode_page,
    detect_served_type,
    extract_article,
    parse_html,
    remove_hidden,
)
from connectors.text_cleaning import remove_invisible


@pytest.mark.parametrize(
    ("path", "declared", "body", "found"),
    [
        ("/a", "text/plain", b"<!DOCTYPE html><p>x", HTML),
        ("/a", "text/html", b"just words", HTML),
        ("/a", "text/html", b"%PDF-1.7", PDF),
        ("/a.txt", "", b"just words", TEXT),
        ("/a", "text/xml", b"<a/>", XML),
        ("/a.png", "text/html", b"\x89PNG\r\n", "image/png"),
    ],
)
def test_the_first_bytes_tell_more_than_the_server(
    path: str, declared: str, body: bytes, found: str
) -> None:
    assert detect_served_type(f"https://a.test{path}", declared, body) == found


def test_a_page_that_begins_with_comments_is_told_from_one_of_comments_alone() -> None:
    comments = b"<!---->" * 500
    assert detect_served_type("https://a.test/a", "", b"<!-- a --> <!-- b -->\n<html>") == HTML
    # With a choice of where each comment ends, this would not return.
    assert detect_served_type("https://a.test/a", "", comments + b"text") == TEXT


def test_the_server_declares_the_encoding_before_the_page() -> None:
    page = '<meta charset="windows-1251"><p>Übergrößen'.encode("cp1252")
    assert "Übergrößen" in decode_page(page, "windows-1252")
    assert "Übergrößen" not in decode_page(page, None)
    assert "Übergrößen" in decode_page('<meta charset="gb2312">Übergrößen'.encode(), "gb2312")


@pytest.mark.parametrize(
    "attribute",
    [
        'hidden=""',
        'aria-hidden="true"',
        'style="DISPLAY:none"',
        'style="color:red; visibility : hidden"',
        'style="font-size: 0"',
        'style="position:absolute;left:-10000px"',
        'style="text-indent:-999px"',
    ],
)
def test_what_attributes_hide_is_removed(attribute: str) -> None:
    root = parse_html(f"<body><p>before <b {attribute}>secret</b> after</p></body>")
    assert root is not None
    remove_hidden(root)
    assert root.text_content().split() == ["before", "after"]


@pytest.mark.parametrize(
    "attribute",
    ['style="font-size:0.9em"', 'style="left:-5px"', 'aria-hidden="false"', 'class="hidden"'],
)
def test_what_is_shown_stays(attribute: str) -> None:
    root = parse_html(f"<body style='display:none'><p {attribute}>shown</p></body>")
    assert root is not None
    remove_hidden(root)
    assert "shown" in html.tostring(root, encoding="unicode")


def test_no_article_is_looked_for_in_what_is_too_long() -> None:
    paragraph = "<p>The tide rose over the wall of the old harbour, and the gate closed.</p>"
    page = f"<html><body><article>{paragraph * 9}</article></body></html>"
    assert extract_article(page, "https://a.test/", "txt")
    assert extract_article(page + " " * 2_000_000, "https://a.test/", "txt") is None


def test_letters_that_nobody_sees_are_removed() -> None:
    assert remove_invisible("ti\u200bde\U000e0041\ufeff") == "tide"
    assert remove_invisible("می‌خواهم 👩‍🚀") == "می‌خواهم 👩‍🚀"


def test_a_tag_with_many_attributes_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(ExtractionError, match="more than 1,000 attributes"):
        parse_html(f"<p {'a ' * 1_001}>x")
