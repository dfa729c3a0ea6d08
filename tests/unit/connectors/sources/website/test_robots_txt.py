import time

import pytest

from connectors.sources.website.robots_txt import RobotsTxt

HOST = "https://example.com"


@pytest.mark.parametrize(
    ("rule", "path", "is_read"),
    [
        ("Disallow: /fish", "/fish/salmon", False),
        ("Disallow: /fish", "/Fish", True),
        ("Disallow: /fish$", "/fish", False),
        ("Disallow: /fish$", "/fish/salmon", True),
        ("Disallow: /*.php$", "/a/b.php", False),
        ("Disallow: /*.php$", "/b.php?x=1", True),
        ("Disallow: /*?", "/b?x=1", False),
        ("Disallow: /a*a$", "/a", True),
        ("Disallow: /ä", "/%C3%A4", False),
        ("Disallow:", "/", True),
        ("Disallow: /a\nAllow: /a/b", "/a/b/c", True),
        ("Allow: /a\nDisallow: /a/b", "/a/b/c", False),
        ("Disallow: /a\nAllow: /a", "/a", True),
        ("Disallow: / # all", "/x", False),
    ],
)
def test_the_longest_rule_decides(rule: str, path: str, is_read: bool) -> None:  # noqa: FBT001
    assert RobotsTxt(f"User-agent: *\n{rule}".encode()).allows(f"{HOST}{path}") is is_read


def test_the_group_that_names_quarry_counts_alone() -> None:
    robots = RobotsTxt(
        b"Disallow: /nobody\nUser-agent: *\nDisallow: /\n\nuser-agent: other\n"
        b"User-Agent: Quarry/1.0\nDisallow: /a\nCrawl-delay: 2.5\nUser-agent: quarry\nDisallow: /b\n"
    )
    assert robots.crawl_delay == 2.5
    allowed = [path for path in ("/", "/nobody", "/a", "/b") if robots.allows(f"{HOST}{path}")]
    assert allowed == ["/", "/nobody"]


def test_what_is_no_robots_txt_asks_for_nothing() -> None:
    for data in (b"", b"<html><body>Not: here</body></html>", b"\xff\xfe\x00", b"x" * 1_000_000):
        robots = RobotsTxt(data)
        assert robots.allows(f"{HOST}/a")
        assert robots.crawl_delay == 0


@pytest.mark.parametrize("delay", [b"inf", b"nan", b"-1", b"soon"])
def test_a_delay_that_is_no_number_of_seconds_is_none(delay: bytes) -> None:
    assert RobotsTxt(b"User-agent: *\nCrawl-delay: " + delay).crawl_delay == 0


def test_a_rule_with_many_wildcards_takes_no_time() -> None:
    robots = RobotsTxt(b"User-agent: *\nDisallow: /" + b"*a" * 500 + b"$")
    before = time.thread_time()
    assert robots.allows(f"{HOST}/{'a' * 1_900}b")
    assert time.thread_time() - before < 0.5
