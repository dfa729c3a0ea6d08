import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.sources.website.urls import Scope, normalize_url, parse_globs, parse_host


@pytest.mark.parametrize(
    ("link", "address"),
    [
        ("HTTPS://Example.COM:443/a/./b/../c#top", "https://example.com/a/c"),
        ("https://example.com", "https://example.com/"),
        ("https://example.com/%7eann/%c3%a4 b?q=%2f", "https://example.com/~ann/%C3%A4%20b?q=%2F"),
        ("https://example.com/ä", "https://example.com/%C3%A4"),
        ("https://example.com/a%2e%2e/%2e%2e/b", "https://example.com/b"),
        ("https://example.com/?b=2&utm_source=x&a=1&gclid=9", "https://example.com/?b=2&a=1"),
        ("https://example.com/a;jsessionid=0AF?PHPSESSID=1", "https://example.com/a"),
        ("http://example.com:8080/", "http://example.com:8080/"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("../up?", "https://example.com/up"),
        ("//other.example/x", "https://other.example/x"),
        ("https://example.com/100%", "https://example.com/100%25"),
    ],
)
def test_a_page_has_one_spelling(link: str, address: str) -> None:
    assert normalize_url(link, "https://example.com/folder/page") == address


@pytest.mark.parametrize(
    "link",
    [
        "mailto:ann@example.com",
        "javascript:void(0)",
        "file:///etc/passwd",
        "https://ann:secret@example.com/",
        "https://[::1/",
        "https://example.com:99999/",
        "https://example.com/" + "x" * 2_000,
        "https://example.com" + "/a/b" * 4,
        "https://example.com/" + "/".join(map(str, range(31))),
    ],
)
def test_what_is_no_page_has_none(link: str) -> None:
    assert normalize_url(link, "https://example.com/") is None


@given(st.text(max_size=60))
def test_the_spelling_of_a_spelling_is_itself(text: str) -> None:
    address = normalize_url(text, "https://example.com/a/b?c")
    assert address is None or normalize_url(address) == address


def test_a_site_is_its_hosts_and_the_chosen_paths() -> None:
    scope = Scope(
        hosts=frozenset({"example.com", "docs.example.com:8443"}),
        include=parse_globs(["docs/**"]),
        exclude=parse_globs(["**/private"]),
    )
    assert scope.includes("https://example.com/docs/a")
    assert scope.includes("http://docs.example.com:8443/docs/b%20c")
    assert not scope.includes("https://example.com/blog")
    assert scope.excludes("https://example.com/docs/private/x")
    assert scope.excludes("https://www.example.com/docs/a")


def test_a_host_is_named_without_a_path() -> None:
    assert parse_host(" Docs.Example.com ") == "docs.example.com"
    for text in ("https://example.com", "example.com/docs", "a b", ""):
        with pytest.raises(ValueError, match="not a host"):
            parse_host(text)
