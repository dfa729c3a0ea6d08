"""What the audit keeps of settings holds no secret of an address."""

from backend.sources.audited_settings import describe_change, describe_settings

SECRET = "https://ann:pass@news.example/all/feed?token=s3cret&n=5#top"
SHOWN = "https://news.example/all/feed?…"


def test_what_may_be_a_secret_in_an_address_is_left_out() -> None:
    settings = {
        "url": SECRET,
        "more": [SECRET, "https://news.example/feed", "http://h?"],
        "path": "/srv/what?",
        "readers": ("user:ann@example.com",),
        "days": 30,
        "nothing": None,
    }
    assert describe_settings(settings) == {
        "url": SHOWN,
        "more": [SHOWN, "https://news.example/feed", "http://h?…"],
        "path": "/srv/what?",
        "readers": ["user:ann@example.com"],
        "days": 30,
        "nothing": None,
    }


def test_a_rotated_token_is_a_change_that_shows_neither() -> None:
    after = SECRET.replace("s3cret", "another")
    assert describe_change({"url": SECRET, "days": 1}, {"url": after, "days": 1}) == {
        "before": {"url": SHOWN},
        "after": {"url": SHOWN},
    }
    assert describe_change({"days": 1}, {"days": 1}) == {}
    assert describe_change({}, {"days": 1}) == {"before": {}, "after": {"days": 1}}
