"""Result pages in the shapes that engines have, written for these tests."""

import time
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.web_search.providers.result_page_html import read_result_page

PAGE = "https://www.engine.example/search?q=leave"


class Shown(NamedTuple):
    title: str
    url: str
    summary: str


def read(html: str, url: str = PAGE) -> list[Shown]:
    return [Shown(one.title, one.url, one.summary) for one in read_result_page(html, url, "desk")]


LEAVE = Shown(
    "Parental leave", "https://www.example.org/leave", "Parents may take leave for 26 weeks in all."
)
TRAVEL = Shown(
    "Travel rules", "https://example.net/travel", "First class is for long journeys only."
)
BOTH = [LEAVE, TRAVEL]

AROUND = """
<html><head><title>leave - Engine</title><style>.x{}</style></head><body>
<header><a href="https://accounts.example.com/signin"><h3>Sign in to the engine</h3></a></header>
<nav><a href="/images?q=leave">Images</a><a href="https://maps.example.com/">Maps of the world</a></nav>
<form><a href="https://help.example.com/">Search help page</a></form>
%s
<footer><a href="https://about.example.com/">About the engine and its people</a></footer></body></html>"""

HEADING_IN_LINK = (
    AROUND
    % """
<div id="search">
<div class="g"><div><a href="/url?sa=t&q=https://www.example.org/leave&ved=2"><h3>Parental leave</h3>
<div><span>Example</span><cite>https://www.example.org › leave</cite></div></a></div>
<div><div class="snip"><span>2 days ago — </span></div></div>
<div class="snip"><span>Parents may take <em>leave</em> for 26 weeks in all.</span></div></div>
<div class="g"><div><a href="https://example.net/travel"><h3>Travel rules</h3><cite>example.net</cite></a></div>
<div class="snip">First class is for long journeys only.</div>
<a href="/search?q=cache:1">Cached</a><a href="/search?q=related:1">Similar</a></div>
</div>"""
)

LINK_IN_HEADING = (
    AROUND
    % """
<ol id="results">
<li class="ad"><h2><a href="https://www.engine.example/aclick?ld=1&u=a1aHR0cHM6Ly9zaG9wLmV4YW1wbGUv">Buy leave now</a></h2><p>Cheap leave for everybody.</p></li>
<li class="algo"><div class="tpic"><a href="https://www.engine.example/ck/a?u=a1aHR0cHM6Ly93d3cuZXhhbXBsZS5vcmcvbGVhdmU&ntb=1"><img alt=""></a></div>
<h2><a href="https://www.engine.example/ck/a?p=1&u=a1aHR0cHM6Ly93d3cuZXhhbXBsZS5vcmcvbGVhdmU&ntb=1">Parental leave</a></h2>
<div class="caption"><div class="attribution"><cite>https://www.example.org/leave</cite></div>
<p class="lineclamp">Parents may take leave for 26 weeks in all.</p></div></li>
<li class="algo"><h2><a href="https://example.net/travel">Travel rules</a></h2>
<div class="caption"><p>First class is for long journeys only.</p></div></li>
</ol>
<aside><h2><a href="https://encyclopedia.example/">Leave, the word</a></h2></aside>"""
)

SUMMARY_IS_A_LINK = (
    AROUND
    % """
<div class="results">
<div class="result result--ad"><h2><a href="https://ads.example/x">Sponsored leave of absence</a></h2><a href="https://ads.example/x">Take leave of your money here.</a></div>
<div class="result"><div class="body"><h2 class="title"><a class="result__a" href="//engine.example/l/?uddg=https%3A%2F%2Fwww.example.org%2Fleave&rut=1">Parental leave</a></h2>
<div class="extras"><a class="result__url" href="//engine.example/l/?uddg=https%3A%2F%2Fwww.example.org%2Fleave">www.example.org/leave</a></div>
<a class="result__snippet" href="//engine.example/l/?uddg=https%3A%2F%2Fwww.example.org%2Fleave">Parents may take <b>leave</b> for 26 weeks in all.</a></div></div>
<div class="result"><div class="body"><h2 class="title"><a class="result__a" href="//engine.example/l/?uddg=https%3A%2F%2Fexample.net%2Ftravel">Travel rules</a></h2>
<a class="result__snippet" href="//engine.example/l/?uddg=https%3A%2F%2Fexample.net%2Ftravel">First class is for long journeys only.</a></div></div>
</div>"""
)

ROWS_OF_A_TABLE = """
<html><body><table>
<tr><td>1.</td><td><a rel="nofollow" href="https://www.example.org/leave" class="result-link">Parental leave</a></td></tr>
<tr><td></td><td class="result-snippet">Parents may take <b>leave</b> for 26 weeks in all.</td></tr>
<tr><td></td><td><span class="link-text">www.example.org/leave</span></td></tr>
<tr><td>2.</td><td><a rel="nofollow" href="https://example.net/travel" class="result-link">Travel rules</a></td></tr>
<tr><td></td><td class="result-snippet">First class is for long journeys only.</td></tr>
</table><a href="https://engine.example/privacy">Privacy</a></body></html>"""

ADDRESS_IN_AN_ATTRIBUTE = (
    AROUND
    % """
<div id="content_left">
<div class="result c-container" mu="https://www.example.org/leave"><h3 class="t"><a href="http://www.engine.example/link?url=AbCd">Parental leave</a></h3>
<div class="c-abstract">Parents may take leave for 26 weeks in all.</div><a href="http://cache.engine.example/c?m=1">百度快照</a></div>
<div class="result c-container" mu="https://example.net/travel"><h3 class="t"><a href="http://www.engine.example/link?url=EfGh">Travel rules</a></h3>
<div class="c-abstract">First class is for long journeys only.</div></div>
<div class="result c-container"><h3><a href="http://www.engine.example/link?url=IjKl">Shop for leave</a></h3><span>广告</span></div>
</div>"""
)

ADDRESS_IN_THE_PATH = (
    AROUND
    % """
<ol><li><div><h3><a href="https://r.engine.example/_ylt=A/RV=2/RE=1/RO=10/RU=https%3a%2f%2fwww.example.org%2fleave/RK=2/RS=x-">Parental leave</a></h3></div>
<div><p>Parents may take leave for 26 weeks in all.</p></div></li>
<li><div><h3><a href="https://example.net/travel">Travel rules</a></h3></div><div><p>First class is for long journeys only.</p></div></li></ol>"""
)

ARTICLES = (
    AROUND
    % """
<main><article class="result"><h3><a href="https://www.example.org/leave">Parental leave</a></h3>
<p class="content">Parents may take leave for 26 weeks in all.</p><div class="engines"><span>mojeek</span></div></article>
<article class="result"><h3><a href="https://example.net/travel">Travel rules</a></h3>
<p class="content">First class is for long journeys only.</p></article></main>"""
)

WITHOUT_HEADINGS = (
    AROUND
    % """
<section><div class="card"><a class="title" href="https://www.example.org/leave"><span>Parental leave</span></a>
<a class="site" href="https://www.example.org/">Example</a><div class="text">Parents may take leave for 26 weeks in all.</div></div>
<div class="card"><a class="title" href="https://example.net/travel"><span>Travel rules</span></a>
<a class="site" href="https://example.net/">Net</a><div class="text">First class is for long journeys only.</div></div></section>"""
)

HEADINGS_BY_ROLE = (
    AROUND
    % """
<div><div><a href="https://www.example.org/leave"><div role="heading" aria-level="3">Parental leave</div></a><div>Parents may take leave for 26 weeks in all.</div></div>
<div><a href="https://example.net/travel"><div role="heading" aria-level="3">Travel rules</div></a><div>First class is for long journeys only.</div></div></div>"""
)


@pytest.mark.parametrize(
    "html",
    [
        HEADING_IN_LINK,
        LINK_IN_HEADING,
        SUMMARY_IS_A_LINK,
        ROWS_OF_A_TABLE,
        ADDRESS_IN_AN_ATTRIBUTE,
        ADDRESS_IN_THE_PATH,
        ARTICLES,
        WITHOUT_HEADINGS,
        HEADINGS_BY_ROLE,
    ],
    ids=[
        "heading in link",
        "link in heading",
        "summary is a link",
        "rows of a table",
        "address in an attribute",
        "address in the path",
        "articles",
        "without headings",
        "headings by role",
    ],
)
def test_results_are_read_whatever_the_engine(html: str) -> None:
    assert read(html) == BOTH


def test_results_in_other_scripts_are_read() -> None:
    html = AROUND % (
        '<div><h3><a href="https://例え.jp/休暇">育児休暇</a></h3><p>父母可享受二十六周育儿假。</p></div>'
        '<div><h3><a href="https://b.example.cn/">差旅规定</a></h3><p>仅长途旅行可坐头等座位。</p></div>'
    )
    assert [(one.title, one.summary) for one in read(html)] == [
        ("育児休暇", "父母可享受二十六周育儿假。"),
        ("差旅规定", "仅长途旅行可坐头等座位。"),
    ]


def test_one_result_is_read_without_the_rest_of_the_page() -> None:
    html = AROUND % (
        '<p>About 1 result in 0.2 s of all that there is.</p><div class="r"><h3><a href="https://www.example.org/leave">'
        "Parental leave</a></h3><p>Parents may take leave for 26 weeks in all.</p></div>"
    )
    assert read(html) == [LEAVE]


@pytest.mark.parametrize(
    "html",
    [
        "",
        " ",
        "text",
        "<p>No results for leave.</p>",
        AROUND % "<p>Your search did not match any documents.</p>",
        AROUND
        % '<p>Unusual traffic. <a href="https://example.com/why">Why did this happen?</a></p>',
        '<h3><a href="javascript:alert(1)">A heading</a></h3><h3><a href="#x">Another one</a></h3>',
        '<div hidden><h3><a href="https://a.example/">Hidden one</a></h3><h3><a href="https://b.example/">Two</a></h3></div>',
    ],
)
def test_pages_without_results_have_none(html: str) -> None:
    assert read(html) == []


@given(st.text("<>/ahref=\"'3 :.&;#divp\n", max_size=60))
def test_any_page_is_read(html: str) -> None:
    for one in read(f"<div>{html}<h3><a href='https://a.example/'>One{html}</a></h3>{html}"):
        assert one.url.startswith("http")


def test_a_deeply_nested_page_is_read() -> None:
    nested = "<div>" * 3_000 + "<h3><a href='https://a.example/'>Deep one</a></h3>"
    assert isinstance(read(nested), list)


def test_depth_does_not_multiply_the_time() -> None:
    def seconds(depth: int) -> float:
        page = (
            "<div>" * depth + "<h3><a href='https://a.example/'>One</a></h3>" + "<b>x</b>" * 4_000
        )
        started = time.process_time()
        read(page)
        return time.process_time() - started

    # Each element around a title was read whole: 200 of them took 200 times as long.
    assert min(seconds(200) for _ in range(2)) < 20 * min(seconds(1) for _ in range(2)) + 0.05


def test_a_long_class_is_not_read_for_each_link() -> None:
    links = "".join(f"<a href='https://e{n}.example/'>Title of it</a>" for n in range(2_000))

    def seconds(name: str) -> float:
        started = time.process_time()
        read(f"<div class='{name}'>{links}</div>")
        return time.process_time() - started

    assert seconds("x " * 30_000) < 10 * seconds("x") + 0.1


def test_a_page_with_a_tag_of_many_attributes_has_no_results() -> None:
    page = '<h3><a href="https://pool.test/">Pool</a></h3>'
    assert read(page)
    assert read(f"{page}<p {'a ' * 1_001}>") == []
