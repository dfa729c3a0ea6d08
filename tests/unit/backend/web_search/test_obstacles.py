"""What is suspected, and what a suspected page is taken for."""

import pytest

from backend.web_search.obstacles import SHORT, PageSigns, find_obstacle, find_refusal
from backend.web_search.results import Obstacle

_ROBOT = "Please verify you are human."
_TALE = "The tide rose slowly over the wall of the old harbour. "


def _of_length(text: str, length: int) -> str:
    return text + "x" * (length - len(text))


def test_a_text_of_300_characters_is_suspected_and_a_longer_article_is_not() -> None:
    short, longer = _of_length(_ROBOT, SHORT), _of_length(_ROBOT, SHORT + 1)
    assert find_obstacle(PageSigns("", short, has_article=True)) is Obstacle.CAPTCHA
    assert find_obstacle(PageSigns("", longer, has_article=True)) is None
    assert find_obstacle(PageSigns("Just a moment...", longer, has_article=True)) is None
    assert find_obstacle(PageSigns("Just a moment...", longer)) is Obstacle.CAPTCHA


def test_a_longer_page_without_an_article_speaks_of_little_else() -> None:
    wall = f"{_ROBOT} Your browser is checked. " * 12
    assert find_obstacle(PageSigns("", wall)) is Obstacle.CAPTCHA
    assert find_obstacle(PageSigns("", wall + _TALE * 6)) is None
    assert find_obstacle(PageSigns("", _ROBOT + _TALE * 200)) is None


def test_many_dots_are_read_once() -> None:
    # With a choice of where they end, this would take minutes.
    assert find_obstacle(PageSigns("", "." * 300_000 + "x", has_scripts=True)) is None
    assert find_obstacle(PageSigns("", "Loading ...", has_scripts=True)) is Obstacle.SCRIPTS


def test_a_banner_below_a_short_text_stands_in_nobodys_way() -> None:
    banner = "We use cookies. Accept all or reject all."
    assert find_obstacle(PageSigns("", banner)) is Obstacle.CONSENT
    assert find_obstacle(PageSigns("", _TALE * 3 + banner)) is None


@pytest.mark.parametrize(
    ("signs", "obstacle"),
    [
        (PageSigns("Log in | Site", "Name Password", has_password_field=True), Obstacle.LOGIN),
        (PageSigns("Log in | Site", "Name"), None),
        (PageSigns("Login guide for the API", "Tokens", has_password_field=True), None),
        (PageSigns("404 Not Found", "nginx"), Obstacle.NOT_FOUND),
        (PageSigns("Route 404", "From the harbour to the mill"), None),
        (PageSigns("", "Loading…", has_scripts=True), Obstacle.SCRIPTS),
        (PageSigns("", "Loading…"), Obstacle.EMPTY),
        (PageSigns("", "", noscript="Please enable JavaScript."), Obstacle.SCRIPTS),
        (PageSigns("", "It works!", has_scripts=True), None),
        (PageSigns("", "", has_challenge=True), Obstacle.CAPTCHA),
        (PageSigns("", "You’re not signed in. Please sign in."), Obstacle.LOGIN),
        (PageSigns("", "請先登入後再查看"), Obstacle.LOGIN),
        (PageSigns("", "您訪問的頁面不存在"), Obstacle.NOT_FOUND),
        (PageSigns("", "You must register for VAT if your turnover is large."), None),
        (PageSigns("", "本公司董事会保证公告内容不存在任何虚假记载。"), None),
        (PageSigns("", "卫星进入预定轨道,完成技术验证任务。"), None),
    ],
)
def test_short_pages(signs: PageSigns, obstacle: Obstacle | None) -> None:
    assert find_obstacle(signs) is obstacle


@pytest.mark.parametrize(
    ("headers", "signs", "obstacle"),
    [
        ({"cf-mitigated": "challenge"}, PageSigns("", _TALE * 20), Obstacle.CAPTCHA),
        ({"x-amzn-waf-action": "captcha"}, PageSigns("", ""), Obstacle.CAPTCHA),
        ({}, PageSigns("", _ROBOT), Obstacle.CAPTCHA),
        ({}, PageSigns("", "You must be logged in."), Obstacle.LOGIN),
        ({}, PageSigns("Forbidden", "You may not see this."), None),
        ({}, PageSigns("", ""), None),
    ],
)
def test_pages_that_were_sent_with_an_error(
    headers: dict[str, str], signs: PageSigns, obstacle: Obstacle | None
) -> None:
    assert find_refusal(headers, signs) is obstacle
