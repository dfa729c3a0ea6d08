import pytest

from connectors.sources.website.robots_txt import Robots


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
    assert Robots.of(f"User-agent: *\n{rule}".encode()).allows(path) is is_read


def test_the_group_that_names_quarry_counts_alone() -> None:
    robots = Robots.of(
        b"Disallow: /nobody\nUser-agent: *\nDisallow: /\n\nuser-agent: other\n"
        b"User-Agent: Quarry/1.0\nDisallow: /a\nCrawl-delay: 2.5\nUser-agent: quarry\nDisallow: /b\n"
    )
    assert robots.delay == 2.5
    allowed = [path for path in ("/", "/nobody", "/a", "/b") if robots.allows(path)]
    assert allowed == ["/", "/nobody"]


def test_what_is_no_robots_txt_asks_for_nothing() -> None:
    for data in (b"", b"<html><body>Not: here</body></html>", b"\xff\xfe\x00", b"x" * 1_000_000):
        assert Robots.of(data) == Robots()


def test_a_rule_that_is_meant_to_take_for_ever_is_left_out() -> None:
    assert Robots.of(b"User-agent: *\nDisallow: /" + b"*a" * 50).rules == ()
