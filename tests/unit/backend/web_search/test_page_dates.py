"""When a page was published, and its language."""

import pytest

from backend.web_search.page_dates import find_declared_date, guess_date, parse_declared_date
from backend.web_search.page_languages import find_language
from connectors.extraction.web_page import parse_html


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2024-06-08", "2024-06-08"),
        ("2024-06-08T23:30:00-05:00", "2024-06-09"),
        ("2024-06-08 09:00:00 +0200", "2024-06-08"),
        ("Sat, 08 Jun 2024 05:30:00 GMT", "2024-06-08"),
        ("1066-10-14", None),
        ("2999-01-01", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_declared_dates(text: str, day: str | None) -> None:
    found = parse_declared_date(text)
    assert (found and f"{found.at:%Y-%m-%d}") == day
    assert found is None or not found.is_guess


@pytest.mark.parametrize(
    ("url", "text", "day"),
    [
        ("https://n.test/2024/06/08/pool", "", "2024-06-08"),
        ("https://n.test/a-2024-6-8.html", "June 9, 2023", "2024-06-08"),
        ("https://n.test/2024/13/45/pool", "", None),
        ("https://n.test/12024/06/08", "", None),
        ("https://n.test/", "By Ann · 8th June 2024", "2024-06-08"),
        ("https://n.test/", "Sept. 8, 2024", "2024-09-08"),
        ("https://n.test/", "8. März 2024", "2024-03-08"),
        ("https://n.test/", "le 1er juin 2024", "2024-06-01"),
        ("https://n.test/", "8 de junio de 2024", "2024-06-08"),
        ("https://n.test/", "2024年6月8日", "2024-06-08"),
        ("https://n.test/", "2024년 6월 8일", "2024-06-08"),
        ("https://n.test/", "2024.06.08", "2024-06-08"),
        ("https://n.test/", "version 2024.31.08", None),
        ("https://n.test/", "x" * 500 + " 2024-06-08", None),
    ],
)
def test_guessed_dates(url: str, text: str, day: str | None) -> None:
    found = guess_date(url, text)
    assert (found and f"{found.at:%Y-%m-%d}") == day
    assert found is None or found.is_guess


def test_of_several_articles_none_gives_its_date_to_the_page() -> None:
    one = "<article><time datetime='2024-06-08'>8 June</time></article>"
    for page, day in ((one, "2024-06-08"), (one * 2, None)):
        root = parse_html(f"<html><body>{page}</body></html>")
        assert root is not None
        found = find_declared_date(root)
        assert (found and f"{found.at:%Y-%m-%d}") == day


@pytest.mark.parametrize(
    "data", ["[" * 2_000, '{"a": ' * 5_000, "[]", "null", '{"datePublished": 7}', "{broken"]
)
def test_malformed_linked_data_declares_nothing(data: str) -> None:
    root = parse_html(f"<script type='application/ld+json'>{data}</script><p>x</p>")
    assert root is not None
    assert find_declared_date(root) is None


@pytest.mark.parametrize(
    ("declared", "text", "language"),
    [
        ("de-AT", "", "de"),
        ("zh_TW", "四万张老照片", "zh"),
        ("en", "Die Stadt hat das Netz in Betrieb genommen, und die Kosten trägt sie nicht.", "de"),
        ("nl", "The town opened a pool, and the gate of it is made of oak.", "nl"),
        ("ja", "The town opened a pool, and the gate of it is made of oak.", "en"),
        ("en", "四万张老照片", "zh"),
        ("zh", "廃校を改装した宿泊施設を開いた", "ja"),
        (None, "优の良品是一家店,四万张老照片都在这里展出,市民可以在网上免费浏览", "zh"),
        (None, "통조림 공장", "ko"),
        (None, "שלום לכולם", "he"),
        ("english", "", None),
        ("", "12 34", None),
    ],
)
def test_languages(declared: str | None, text: str, language: str | None) -> None:
    assert find_language(declared, text) == language
