"""Which domains results may be of."""

import pytest

from backend.web_search.domains import ANY_DOMAIN, DomainRules, parse_domain
from connectors.errors import InvalidInputError


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("example.com", "example.com"),
        (" Example.COM. ", "example.com"),
        ("*.example.com", "example.com"),
        (".example.com", "example.com"),
        ("www.example.com", "example.com"),
        ("https://www.example.com/a?b=1", "example.com"),
        ("例え.jp", "xn--r8jz45g.jp"),
        ("BÜCHER.example", "xn--bcher-kva.example"),
        ("de", "de"),
    ],
)
def test_domains_are_spelled_one_way(text: str, domain: str) -> None:
    assert parse_domain(text) == domain


@pytest.mark.parametrize("text", ["", "*", "a b", "user@example.com", "ex*mple.com", "a..b", "/"])
def test_what_is_no_domain_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="is not a domain"):
        parse_domain(text)


def test_a_domain_includes_its_subdomains_and_no_other() -> None:
    rules = DomainRules.of(["example.com", "例え.jp"], ["ads.example.com"])
    assert rules.permits("https://example.com/a")
    assert rules.permits("http://docs.example.com:8080/a")
    assert rules.permits("https://www.xn--r8jz45g.jp/")
    assert rules.permits("https://sub.例え.jp/")
    assert not rules.permits("https://notexample.com/")
    assert not rules.permits("https://example.com.evil.org/")
    assert not rules.permits("https://ads.example.com/a")
    assert not rules.permits("https://x.ads.example.com/a")
    assert not rules.permits("https://other.org/")
    assert not rules.permits("nonsense")


def test_without_lists_all_is_permitted() -> None:
    assert DomainRules.of([], []) == ANY_DOMAIN
    assert ANY_DOMAIN.permits("https://anything.example/")


def test_two_rules_together_permit_what_both_do() -> None:
    admins = DomainRules.of(["example.com", "example.org"], ["bad.example.org"])
    own = DomainRules.of(["docs.example.com", "example.net"], ["worse.example.com"])
    both = admins.narrowed_by(own)
    assert both.allowed == frozenset({"docs.example.com"})
    assert both.blocked == {"bad.example.org", "worse.example.com"}
    assert both == own.narrowed_by(admins)
    apart = admins.narrowed_by(DomainRules.of(["example.net"], []))
    assert apart.allowed == frozenset()
    assert not apart.permits("https://example.net/")
    assert admins.narrowed_by(ANY_DOMAIN) == admins
