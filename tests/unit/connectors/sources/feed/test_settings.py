from hashlib import sha256

import pytest

from connectors.sources.feed.settings import FeedSettings, feed_key

FEED = "https://news.test/feeds/all"


def _settings(url: str, *more: str) -> FeedSettings:
    return FeedSettings(url=url, more=more, readers=("public",))


def test_the_key_of_a_feed_is_a_hash_of_its_address() -> None:
    assert feed_key(FEED) == sha256(FEED.encode()).hexdigest()[:12]


@pytest.mark.parametrize(
    "url",
    [
        "http://news.test/feeds/all",
        f"{FEED}?token=1",
        f"{FEED}?feed_token=1&private-token=2",
        f"{FEED}?API_KEY=1&sig=2&key=3",
        f"{FEED}?os_authType=basic",
    ],
)
def test_a_feed_keeps_its_key_when_its_secret_or_its_scheme_changes(url: str) -> None:
    assert feed_key(url) == feed_key(FEED)


@pytest.mark.parametrize(
    "url",
    [
        "https://other.test/feeds/all",
        "https://news.test:8443/feeds/all",
        "https://news.test/feeds",
        f"{FEED}?channel_id=1",
        f"{FEED}?author=ann",
        f"{FEED}?keyword=oil",
    ],
)
def test_feeds_of_other_addresses_have_keys_of_their_own(url: str) -> None:
    assert feed_key(url) != feed_key(FEED)


def test_no_feed_is_lost_where_two_differ_in_no_more_than_a_secret() -> None:
    one, other = f"{FEED}?key=pumps", f"{FEED}?key=oil"
    settings = _settings(one, other, one)
    assert list(settings.feeds().values()) == [one, other]
    assert next(iter(settings.feeds())) == feed_key(FEED)
    assert settings.retention().prefixes == tuple(f"{key}/" for key in settings.feeds())
