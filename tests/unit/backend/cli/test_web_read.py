"""`quarry web read`: what a person at a terminal sees of a page."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from backend.cli import app
from backend.composition.web import WebParts
from backend.web_search.page_fetcher import PageFetcher
from backend.web_search.page_reader import PageReader
from tests.support.local_web import LocalWeb, local_web


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalWeb]:
    with local_web() as served:
        reader = PageReader(PageFetcher(served.allowed, served.resolve))
        monkeypatch.setattr(WebParts, "page_reader", reader)
        yield served


def _run(home: Path, *arguments: str) -> Result:
    return CliRunner(env={"QUARRY_HOME": str(home)}).invoke(app, ["web", "read", *arguments])


def test_a_page_is_shown_with_its_date_and_language(web: LocalWeb, tmp_path: Path) -> None:
    lines = _run(tmp_path, web.url("/en/pool")).output.splitlines()
    assert lines[:4] == ["A tidal pool", web.url("/en/pool"), "2024-06-08, en", ""]
    assert "4.2 tonnes" in "\n".join(lines)
    guessed = _run(tmp_path, web.url("/dated/text")).output
    assert "2024-06-08 (guessed), en" in guessed


def test_as_json_it_has_links_too(web: LocalWeb, tmp_path: Path) -> None:
    shown = json.loads(_run(tmp_path, web.url("/en/pool"), "--json").output)
    assert shown["published"] == {"at": "2024-06-08T05:30:00Z", "is_guess": False}
    assert {"url": "https://other.test/x?a=1&b=2", "text": "elsewhere"} in shown["links"]


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/walls/captcha-en", "news.test shows only a captcha."),
        ("/walls/consent-de", "news.test asks for consent to cookies, and shows nothing else."),
        ("/walls/login-zh", "news.test shows this page only to people who are signed in."),
        ("/walls/shell", "news.test shows this page only in a browser that runs scripts."),
        ("/walls/empty", "news.test sent a page without any text."),
        ("/walls/missing-ja", "news.test says that there is no such page."),
        ("/status/404", "There is no page at this address of news.test (status 404)."),
    ],
)  # fmt: skip
def test_a_page_that_is_not_read_is_named(
    path: str, sentence: str, web: LocalWeb, tmp_path: Path
) -> None:
    refused = _run(tmp_path, web.url(path))
    assert refused.exit_code == 1
    assert refused.output.strip() == sentence
    assert json.loads(_run(tmp_path, web.url(path), "--json").output) == {"error": sentence}


def test_an_address_without_a_scheme_is_one_of_https(tmp_path: Path) -> None:
    assert _run(tmp_path, "127.0.0.1/secret").output.strip() == (
        "127.0.0.1 leads to what is not on the public web (http or https)."
    )
