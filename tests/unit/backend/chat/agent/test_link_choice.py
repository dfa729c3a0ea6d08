"""Which links of a page the model is shown: those near the question, and none that spell."""

from collections.abc import Sequence

import pytest

from backend.chat.agent.link_choice import (
    ALPHABET,
    LISTED_LINKS,
    find_alphabet,
    get_site,
    list_links,
    list_related_links,
)
from backend.web_search.results import PageLink

ASKED = "https://news.example/law"
QUESTION = "How much annual leave do people have?"
LETTERS = "abcdefghij"


def links(*paths: str, text: str = "Annual leave") -> list[PageLink]:
    return [PageLink(f"https://news.example{path}", text) for path in paths]


def test_the_nearest_are_listed_in_the_order_of_the_page() -> None:
    many = [PageLink(f"https://news.example/other/{n}", f"Topic {n}") for n in range(30)]
    near = PageLink("https://news.example/fees", "Annual leave in detail")
    listed = list_links([*many, near], QUESTION)
    assert len(listed) == LISTED_LINKS
    assert listed == [*many[: LISTED_LINKS - 1], near]


@pytest.mark.parametrize(
    "link",
    [
        PageLink("https://other.example/annual-leave", "Annual leave"),
        PageLink("https://a.news.example/annual-leave", "Annual leave"),
        PageLink("https://news.example:8443/annual-leave", "Annual leave"),
        PageLink("https://news.example.evil.example/annual-leave", "Annual leave"),
        PageLink("https://news.example@evil.example/annual-leave", "Annual leave"),
        PageLink("https://news.example/z", "Z"),
    ],
)
def test_another_site_and_what_has_nothing_to_do_with_the_question_is_not_related(
    link: PageLink,
) -> None:
    assert list_related_links([link], QUESTION, ASKED) == []
    assert list_links([link], QUESTION) == [link]


def test_the_site_is_that_of_the_address_that_was_asked() -> None:
    [link] = links("/annual")
    assert list_related_links([link], QUESTION, "http://www.NEWS.example/x") == [link]
    assert get_site("https://WWW.news.example/a?b") == "news.example"


@pytest.mark.parametrize(
    "paths",
    [
        [f"/say/{one}" for one in LETTERS],
        [f"/annual/leave?letter={one}&law=1" for one in LETTERS],
        [f"/annual-leave-{one}.html" for one in LETTERS],
        [f"/{one}/annual-leave" for one in LETTERS],
        [f"/annual-leave/{number}" for number in range(10)],
        [f"/年假/{one}" for one in "甲乙丙丁戊己庚辛壬癸"],
    ],
)
def test_an_alphabet_is_not_related_whatever_it_says(paths: Sequence[str]) -> None:
    assert list_related_links(links(*paths), QUESTION, ASKED) == []
    assert find_alphabet(f"https://news.example{path}" for path in paths)


def test_a_few_neighbors_are_no_alphabet() -> None:
    few = links(*(f"/annual-leave/{number}" for number in range(ALPHABET - 1)))
    assert find_alphabet(link.url for link in few) == frozenset()
    assert list_related_links(few, QUESTION, ASKED) == few[:LISTED_LINKS]
