"""Rendering: what a model and a person are shown, and numbers that stay."""

import json
import threading

from backend.search.models import DocumentNumbers, SearchDoc
from backend.search.result_format import results_for_model
from tests.support.search import UPDATED, section


def test_a_document_keeps_its_number() -> None:
    numbers = DocumentNumbers()
    assert [numbers.assign(one) for one in ("b", "a", "b", "文書", "a")] == [1, 2, 1, 3, 2]


def test_threads_agree_on_the_numbers() -> None:
    numbers = DocumentNumbers()
    told: list[list[int]] = [[] for _ in range(8)]

    def ask(answers: list[int]) -> None:
        answers.extend(numbers.assign(f"document {one % 100}") for one in range(1_000))

    threads = [threading.Thread(target=ask, args=(answers,)) for answers in told]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(answers == told[0] for answers in told)
    assert sorted(numbers.assign(f"document {one}") for one in range(100)) == list(range(1, 101))


def test_the_model_reads_json() -> None:
    numbers = DocumentNumbers()
    numbers.assign("seen before")
    text = results_for_model([section("社内", 0, 2)], numbers, "A note.")
    assert "社内" in text
    assert json.loads(text) == {
        "results": [
            {
                "document": 2,
                "title": "About 社内",
                "source": "wiki",
                "updated_at": "2026-03-01T09:30+00:00",
                "authors": ["Ann Lee"],
                "url": "https://wiki.example/社内",
                "content": "社内 piece 0\n社内 piece 1",
                "metadata": {"state": "final", "team": ["platform", "web"]},
            }
        ],
        "note": "A note.",
    }


def test_two_sections_of_a_document_share_its_number() -> None:
    shown = json.loads(
        results_for_model([section("a", 0, 1), section("a", 5, 6)], DocumentNumbers(), "")
    )
    assert [result["document"] for result in shown["results"]] == [1, 1]
    assert "note" not in shown


def test_people_are_shown_a_search_doc() -> None:
    found = section("a", 0, 2, best=1)
    doc = SearchDoc.from_section(found, 7)
    assert (doc.number, doc.document_id, doc.title, doc.source) == (7, "a", "About a", "wiki")
    assert (doc.link, doc.updated_at) == ("https://wiki.example/a", UPDATED)
    assert doc.content == "a piece 0\na piece 1"
    assert (doc.score, doc.why) == (found.best.score, found.best.why)
