"""When two addresses are one page."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.web_search.addresses import get_domain, get_host, list_own_labels, normalize_address

HOSTS = st.sampled_from(
    ["example.com", "docs.example.co.uk", "例え.jp", "xn--r8jz45g.jp", "8.8.8.8", "a-b.example.org"]
)
SEGMENTS = st.lists(
    st.text("abcXYZ019-_.~!$&'()*+,;=:@% é休/", min_size=1, max_size=8).map(
        lambda text: quote(text, safe="!$&'()*+,;=:@")
    ),
    max_size=4,
)
PARAMETERS = st.lists(
    st.tuples(st.sampled_from(["q", "id", "page", "empty"]), st.text("ab1 é&=", max_size=4)),
    max_size=3,
)
TRACKING = st.sampled_from(
    ["utm_source=x", "gclid=1", "FBCLID=2", "utm_campaign=", "msclkid=9", "mc_cid=3"]
)


def _write(host: str, segments: list[str], parameters: list[tuple[str, str]]) -> str:
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in parameters)
    return f"https://{host}/{'/'.join(segments)}{'?' if query else ''}{query}"


ADDRESSES = st.builds(_write, HOSTS, SEGMENTS, PARAMETERS)


@given(ADDRESSES)
def test_a_normalized_address_stays_as_it_is(url: str) -> None:
    once = normalize_address(url)
    assert once is not None
    assert normalize_address(once) == once


@given(st.text(max_size=20))
def test_any_text_is_an_address_that_stays_or_none(text: str) -> None:
    for url in (text, f"https://{text}", f"http://example.com/{text}"):
        once = normalize_address(url)
        assert once is None or normalize_address(once) == once


@given(ADDRESSES, TRACKING, st.data())
def test_what_does_not_tell_pages_apart_is_left_out(
    url: str, tracking: str, data: st.DataObject
) -> None:
    same = url
    if data.draw(st.booleans()):
        same = same.replace("https://", "http://", 1)
    if data.draw(st.booleans()) and not same.partition("//")[2].startswith("8."):
        same = same.replace("://", "://www.", 1)
    if data.draw(st.booleans()) and "?" not in same:
        same = f"{same}/"
    if data.draw(st.booleans()):
        same = f"{same}{'&' if '?' in same else '?'}{tracking}"
    if data.draw(st.booleans()):
        same = f"{same}#part-2"
    assert normalize_address(same) == normalize_address(url)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://example.com/a", "https://example.com/b"),
        ("https://example.com/a", "https://example.com/A"),
        ("https://example.com/a?q=1", "https://example.com/a?q=2"),
        ("https://example.com/a", "https://docs.example.com/a"),
        ("https://example.com/a", "https://example.com:8443/a"),
        ("https://example.com/a%2Fb", "https://example.com/a/b"),
        ("https://www.com/", "https://com/"),
    ],
)
def test_other_pages_stay_apart(one: str, other: str) -> None:
    assert normalize_address(one) != normalize_address(other)


@pytest.mark.parametrize(
    ("url", "normalized"),
    [
        ("HTTP://WWW.Example.COM:80/a/./b/../c/?utm_source=x#top", "https://example.com/a/c"),
        ("https://example.com", "https://example.com"),
        ("https://例え.jp/休", "https://xn--r8jz45g.jp/%E4%BC%91"),
        ("https://example.com/%7eann?b=2&a=1&", "https://example.com/~ann?b=2&a=1"),
        ("https://[2001:db8::1]:8443/a", "https://[2001:db8::1]:8443/a"),
    ],
)
def test_addresses_are_spelled_one_way(url: str, normalized: str) -> None:
    assert normalize_address(url) == normalized


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "/search?q=a",
        "javascript:alert(1)",
        "data:text/html,x",
        "ftp://example.com/",
        "file:///etc/passwd",
        "https://",
        "https://user:pass@example.com/",
        "https://exa mple.com/",
        "http://0x7f000001/",
        "https://example.com:25/",
        "https://example.com/" + "a" * 3000,
    ],
)
def test_what_is_no_web_address_is_none(url: str) -> None:
    assert normalize_address(url) is None


def test_the_host_is_read_without_www() -> None:
    assert get_host("https://www.例え.jp/a") == "xn--r8jz45g.jp"
    assert get_host("mailto:ann@example.com") is None


@pytest.mark.parametrize(
    ("url", "own", "domain"),
    [
        ("https://evil.example/x", ["evil"], "evil.example"),
        ("https://BX-4471.evil.example:8443/x", ["bx-4471", "evil"], "evil.example"),
        ("https://www.bbc.co.uk/news", ["www", "bbc"], "bbc.co.uk"),
        ("https://co.uk/", ["co"], "co.uk"),
        ("https://a.ab.de/", ["a", "ab"], "ab.de"),
        ("https://xn--r8jz45g.example/", ["例え"], "例え.example"),
        ("mailto:ann@evil.example", [], ""),
    ],
)
def test_the_domain_is_what_its_owner_has_registered(url: str, own: list[str], domain: str) -> None:
    assert list_own_labels(url) == own
    assert get_domain(url) == domain
