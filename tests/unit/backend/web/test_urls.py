"""Addresses that a page may lead to."""

from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.web import urls
from connectors.document import Span


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_a_path_leads_to_the_document_whatever_its_id(document_id: str) -> None:
    address = urlsplit(f"http://quarry{urls.document(f'zoo:{document_id}')}")
    assert unquote(address.path) == f"/document/zoo:{document_id}"
    assert {".", ".."}.isdisjoint(address.path.split("/"))
    assert (address.query, address.fragment) == ("", "")


def test_a_passage_is_named_and_scrolled_to() -> None:
    address = urlsplit(urls.document("a:b/c d.md", 3, Span(5, 9), "bike?"))
    assert address.path == "/document/a:b/c%20d.md"
    assert parse_qs(address.query) == {
        "q": ["bike?"],
        "section": ["3"],
        "start": ["5"],
        "end": ["9"],
    }
    assert address.fragment == "cited"


def test_an_empty_passage_is_none() -> None:
    assert urls.document("a:b", 3, Span(5, 5)) == "/document/a:b"


@pytest.mark.parametrize(
    ("link", "leads"),
    [
        ("https://a.example/x", "https://a.example/x"),
        ("HTTP://a.example", "HTTP://a.example"),
        ("mailto:ann@example.com", "mailto:ann@example.com"),
        (" https://a.example ", "https://a.example"),
        ("javascript:alert(1)", None),
        ("java\nscript:alert(1)", None),
        ("data:text/html,x", None),
        ("//a.example", None),
        ("/api/sources", None),
        ("https:", None),
        ("", None),
    ],
)
def test_only_what_is_harmless_is_followed(link: str, leads: str | None) -> None:
    assert urls.elsewhere(link) == leads


def test_a_file_is_handed_out_by_quarry() -> None:
    assert urls.original("a:b c", "file:///x/b%20c") == "/api/documents/a:b%20c/original"
    assert urls.original("a:b", "https://a.example/b") == "https://a.example/b"
    assert urls.original("a:b", "javascript:x") is None
