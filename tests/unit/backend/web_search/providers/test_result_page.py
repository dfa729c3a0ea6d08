"""The template of a result page's address."""

from typing import Any

import pytest
from pydantic import ValidationError

from backend.web_search.providers.result_page import PROVIDER_KIND, ResultPageSettings
from backend.web_search.results import WebQuery
from connectors.registry import NoCredential
from indexing.runtime.deadline import Deadline


@pytest.mark.parametrize(
    "url",
    [
        "https://search.example.com/search",
        "https://search.example.com/%s?q=%s",
        "https://%s.example.com/search",
        "http://search.example.com/search?q=%s",
        "javascript:%s",
        "search?q=%s",
        "https://ann:pass@search.example.com/?q=%s",
        "https://search.example.com:22/?q=%s",
    ],
)
def test_a_template_that_is_wrong_is_refused(url: str) -> None:
    with pytest.raises(ValidationError):
        ResultPageSettings.model_validate({"url": url})


@pytest.mark.parametrize(
    ("template", "address"),
    [
        ("https://s.example/search?q=%s", "https://s.example/search?q=a+%26+b%2F100%25+%E4%BC%91"),
        ("https://s.example/%s?hl=%65n", "https://s.example/a+%26+b%2F100%25+%E4%BC%91?hl=%65n"),
    ],
)
def test_the_query_stands_in_its_place(template: str, address: str) -> None:
    fetched: list[str] = []

    def fetch(url: str, deadline: Deadline) -> str:
        assert deadline.remaining()
        fetched.append(url)
        return "<p>Nothing</p>"

    settings: Any = ResultPageSettings.model_validate({"url": template})
    provider = PROVIDER_KIND.provider("page", settings, NoCredential(), fetch)
    assert provider.search(WebQuery("a & b/100% 休", 5), Deadline.after(5)) == []
    assert fetched == [address]
