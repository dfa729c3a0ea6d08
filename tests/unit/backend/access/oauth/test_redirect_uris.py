"""Where programs may have people sent: to what only they receive."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.access.oauth.errors import OAuthError
from backend.access.oauth.redirect_uris import (
    LONGEST_URI,
    add_parameters,
    check_redirect_uri,
    describe_host,
    find_redirect_uri,
    is_loopback,
)

ACCEPTED = [
    "https://claude.ai/api/mcp/auth_callback",
    "https://chatgpt.com/connector_platform_oauth_redirect",
    "https://vscode.dev/redirect",
    "https://xn--bcher-kva.example/callback?tenant=1",
    "https://example.com:8443/",
    "http://localhost/callback",
    "http://localhost:33418/",
    "http://127.0.0.1",
    "http://127.0.0.1:0/callback",
    "http://[::1]:8080/callback",
]
REFUSED = [
    "http://[::1].evil.com/callback",
    "",
    "callback",
    "/callback",
    "//evil.example.com/callback",
    "http://example.com/callback",
    "http://127.0.0.2/callback",
    "http://127.1/callback",
    "http://0x7f000001/callback",
    "http://localhost.evil.example.com/callback",
    "http://localhost@evil.example.com/callback",
    "https://user:password@example.com/",
    "https://example.com/callback#fragment",
    "https://example.com/callback#",
    "https://*.example.com/callback",
    "https://example.com/*",
    "https://",
    "https:///callback",
    "https:example.com",
    "https://example.com:port/",
    "https://example.com:99999/",
    "https://exa mple.com/",
    "https://example.com/\n",
    "https://example.com\\@evil.example.com/",
    "https://example.com/\x00",
    "https://bücher.example/",
    "https://-example.com/",
    "https://%65vil.example.com/",
    "javascript:alert(1)",
    "JavaScript://localhost/%0aalert(1)",
    "data:text/html,<script>alert(1)</script>",
    "file:///etc/passwd",
    "vbscript:x",
    "blob:https://example.com/1",
    "ftp://127.0.0.1/",
    "cursor://anysphere.cursor-mcp/oauth/callback",
    "com.example.app:/callback",
    "urn:ietf:wg:oauth:2.0:oob",
    "https://example.com/?code=mine",
    "https://example.com/?a=1&state=mine",
    "https://example.com/?iss=https://other.example.com",
    f"https://example.com/{'x' * LONGEST_URI}",
]


@pytest.mark.parametrize("uri", ACCEPTED)
def test_what_only_the_program_receives_is_accepted(uri: str) -> None:
    check_redirect_uri(uri)
    assert find_redirect_uri([uri], uri) == uri
    assert find_redirect_uri([uri], None) == uri


@pytest.mark.parametrize("uri", REFUSED)
def test_anything_else_is_refused(uri: str) -> None:
    with pytest.raises(OAuthError) as refused:
        check_redirect_uri(uri)
    assert refused.value.code == "invalid_redirect_uri"
    assert refused.value.description.isascii()


@given(st.text(max_size=40), st.sampled_from(["", "https://", "http://localhost"]))
def test_whatever_is_accepted_leads_where_it_says(text: str, begin: str) -> None:
    uri = f"{begin}{text}"
    try:
        check_redirect_uri(uri)
    except OAuthError:
        return
    assert uri.lower().startswith(("https://", "http://localhost", "http://127.0.0.1", "http://[::1]"))  # fmt: skip
    assert uri.isascii()
    assert uri.isprintable()
    assert not set(uri) & set("#*\\ <>\"'`") - {"'"}
    assert describe_host(uri)


@pytest.mark.parametrize(
    ("registered", "asked"),
    [
        ("http://127.0.0.1/callback", "http://127.0.0.1:51004/callback"),
        ("http://127.0.0.1:1/callback", "http://127.0.0.1:2/callback"),
        ("http://localhost:3000/callback?a=1", "http://localhost/callback?a=1"),
        ("http://[::1]/", "http://[::1]:8080/"),
    ],
)
def test_a_program_on_the_machine_listens_at_any_port(registered: str, asked: str) -> None:
    assert is_loopback(registered)
    assert find_redirect_uri(["https://example.com/", registered], asked) == asked


@pytest.mark.parametrize(
    ("registered", "asked"),
    [
        ("https://example.com/callback", "https://example.com/callback/"),
        ("https://example.com/callback", "https://example.com/callback?next=1"),
        ("https://example.com/callback", "https://example.com/"),
        ("https://example.com/callback", "https://example.com/callback/../evil"),
        ("https://example.com/callback", "https://EXAMPLE.com/callback"),
        ("https://example.com/callback", "https://example.com:443/callback"),
        ("https://example.com/callback", "http://example.com/callback"),
        ("https://example.com/callback", "https://evil.example.com/callback"),
        ("https://example.com/callback", "https://example.com.evil.com/callback"),
        ("https://localhost/callback", "https://localhost:1/callback"),
        ("http://127.0.0.1/callback", "http://localhost/callback"),
        ("http://127.0.0.1/callback", "http://[::1]/callback"),
        ("http://[::1]/callback", "http://[::1].evil.com:80/callback"),
        ("http://127.0.0.1/callback", "http://127.0.0.1:99999/callback"),
        ("http://127.0.0.1/callback", "http://127.0.0.1:80@evil.example.com/callback"),
        ("http://127.0.0.1/callback", "http://127.0.0.1/callback#x"),
        ("http://127.0.0.1/callback", "http://127.0.0.1/other"),
        ("http://127.0.0.1/callback", "https://127.0.0.1/callback"),
        ("http://127.0.0.1/callback", "javascript://127.0.0.1/callback"),
    ],
)
def test_no_address_is_taken_for_another(registered: str, asked: str) -> None:
    with pytest.raises(OAuthError, match="not one that the program has registered"):
        find_redirect_uri([registered], asked)


def test_of_several_one_has_to_be_named() -> None:
    with pytest.raises(OAuthError):
        find_redirect_uri(["https://a.example.com/", "https://b.example.com/"], None)


def test_parameters_follow_those_that_are_there() -> None:
    added = add_parameters("https://example.com/?a=1", {"state": "x&iss=y", "code": "é"})
    assert added == "https://example.com/?a=1&state=x%26iss%3Dy&code=%C3%A9"
