"""What of a page is its text, and what a large page costs."""

import time
from contextlib import suppress

import pytest

from backend.web_search import isolated_page
from backend.web_search.html_content import read_html_page
from backend.web_search.isolated_page import (
    LARGEST_HERE,
    MOST_ELEMENTS_HERE,
    is_costly,
    read_page,
)
from backend.web_search.obstacles import find_obstacle
from backend.web_search.page_content import PageContent
from backend.web_search.results import Obstacle
from connectors.extraction.result import ExtractionError
from indexing.runtime.deadline import Deadline
from tests.support.web_pages import texts
from tests.support.web_pages.page import article

_URL = "https://news.test/pool"
_BANNER = "<div id='onetrust-banner-sdk'><p>We and our partners use cookies and process personal data to show you what you like, and to measure it.</p><button>Accept all</button></div>"


def _read(body: str, head: str = "") -> PageContent:
    return read_html_page(f"<html><head>{head}</head><body>{body}</body></html>", _URL)


def test_a_banner_is_no_part_of_the_article_below_it() -> None:
    content = _read(_BANNER * 3 + article("Pool", texts.EN))
    assert "4.2 tonnes" in content.text
    assert "partners" not in content.text
    assert content.signs is not None
    assert find_obstacle(content.signs) is None


def test_a_page_that_is_a_banner_is_a_wall() -> None:
    content = _read(_BANNER * 8)
    assert content.signs is not None
    assert not content.signs.has_article
    assert find_obstacle(content.signs) is Obstacle.CONSENT


def test_text_in_a_box_that_is_called_like_a_banner_is_not_lost() -> None:
    content = _read(
        f"<div class='consent-page'>{''.join(f'<p>{one}</p>' for one in texts.EN)}</div>"
    )
    assert "4.2 tonnes" in content.text
    assert content.signs is not None
    assert find_obstacle(content.signs) is None


def test_descriptions_that_nobody_sees_are_not_text() -> None:
    assert "secret" not in _read("<p>Short.</p><img alt='secret'><a title='secret'>x</a>").text


def test_a_title_is_one_that_people_see() -> None:
    meta = '<meta property="og:title" content="Obey">'
    assert _read("<h1>Pool</h1>", meta).title == "Pool"
    assert _read("<p>Text</p>", meta).title == "pool"
    assert len(_read("<p>x</p>", f"<title>{'a' * 5_000}</title>").title) < 400


@pytest.mark.parametrize(
    "challenge",
    [
        "<script>window._cf_chl_opt = {}</script>",
        "<script src='/cdn-cgi/challenge-platform/h/b/orchestrate/chl_page/v1'></script>",
        "<iframe src='https://geo.captcha-delivery.com/captcha/'></iframe>",
        "<div class='h-captcha'></div>",
    ],
)
def test_programs_that_tell_people_from_robots(challenge: str) -> None:
    signs = _read(f"<p>One step.</p>{challenge}").signs
    assert signs is not None
    assert signs.has_challenge


@pytest.mark.parametrize(
    "no_challenge",
    [
        "<script src='/cdn-cgi/challenge-platform/scripts/jsd/main.js'></script>",
        "<form><input type='email'><textarea></textarea><div class='g-recaptcha'></div></form>",
    ],
)
def test_programs_on_pages_that_are_shown(no_challenge: str) -> None:
    signs = _read(f"<p>Write to us.</p>{no_challenge}").signs
    assert signs is not None
    assert not signs.has_challenge


def test_a_large_page_is_read_apart_and_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    head = '<title>Pool</title><meta name="date" content="2024-06-08">'
    body = article("Pool", texts.EN, more="<p><a href='/tides'>Tides</a></p>")
    page = f"<html lang='en'><head>{head}</head><body>{body}</body></html>"
    here = read_page(page, _URL, "de", Deadline.after(30.0))
    monkeypatch.setattr(isolated_page, "LARGEST_HERE", 0)
    assert read_page(page, _URL, "de", Deadline.after(30.0)) == here


def test_a_page_that_takes_too_long_ends_with_the_deadline() -> None:
    with pytest.raises(ExtractionError, match="too long"):
        read_page("<p>a" * (LARGEST_HERE // 4), _URL, None, Deadline.after(0.5))


@pytest.mark.parametrize("count", [2_000, LARGEST_HERE])
def test_a_tag_of_many_attributes_is_refused_before_it_takes_any_time(count: int) -> None:
    page = "<p " + " ".join(f"a{number}=1" for number in range(count)) + ">"
    with pytest.raises(ExtractionError, match="more than 1,000 attributes"):
        read_page(page, _URL, None, Deadline.after(30))


COSTLY = (
    "<div>" * 240 + "<p>para abc abc abc " * 14_600,
    "<html><body>" + "<p>word word" * 14_900,
    "<h2>word <p>x y" * 7_400,
    "<p>a</p>" * (LARGEST_HERE // 8),
)
JUST_BELOW = (
    "<html><body>" + "<p>word word</p>" * 7_400,
    "<div>" * 20 + "<p>para abc abc abc " * (MOST_ELEMENTS_HERE - 30),
    "<div>" * 240 + "<p>para abc" * 580,
    "<div>" * 300 + "<p>para abc" * 600,
)


@pytest.mark.parametrize("page", COSTLY, ids=len)
def test_a_page_that_takes_longer_than_a_process_is_read_in_one(page: str) -> None:
    assert is_costly(page)


@pytest.mark.soak("slow")
@pytest.mark.parametrize("page", JUST_BELOW, ids=len)
def test_what_is_read_here_takes_less_than_a_process(page: str) -> None:
    assert not is_costly(page)
    began = time.process_time()
    with suppress(ExtractionError):
        read_html_page(page, _URL)
    # 0.5 s where nothing else runs.
    assert time.process_time() - began < 2
