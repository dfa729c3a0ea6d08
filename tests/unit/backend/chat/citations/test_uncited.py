"""Sentences that state something and cite nothing, and those that need no citation."""

import pytest

from backend.chat.citations.citation_processor import CitedDocument, DynamicCitationProcessor
from backend.chat.citations.uncited import states_fact


def _uncited(text: str) -> list[str]:
    processor = DynamicCitationProcessor()
    processor.update_citation_mapping({1: CitedDocument("kb:leave", "Leave", "https://w/leave")})
    for token in (*text, None):
        list(processor.process_token(token))
    return processor.get_uncited_sentences()


def test_a_statement_without_a_citation_is_found() -> None:
    text = "Leave is 25 days [1]. It costs 900 euros. Sick pay lasts ten days. [1]"
    assert _uncited(text) == ["It costs 900 euros."]


def test_a_number_that_no_document_has_cites_nothing() -> None:
    assert _uncited("Leave is 25 days [7]. Sick pay is ten days [1].") == ["Leave is 25 days."]


def test_items_and_rows_count_one_by_one_and_headers_do_not() -> None:
    text = (
        "# Leave of all kinds\n\n**Paid leave**\n\n- 25 days for all staff\n- 30 days after five years [1]\n\n"
        "| Kind | Days |\n|---|---|\n| Sick leave | 10 days |\n| Annual leave | 25 days [1] |\n"
    )
    assert _uncited(text) == ["25 days for all staff", "| Sick leave | 10 days |"]


def test_code_is_no_statement() -> None:
    assert _uncited("Run this:\n\n```\nquarry sync handbook\n# reads all files\n```\n") == []


@pytest.mark.parametrize(
    "sentence",
    [
        "Hello. What would you like to know?",
        "Thank you for asking about annual leave!",
        "I could not find how long the warranty lasts.",
        "Let me know if you need more details on the warranty.",
        "The documents do not say how long the warranty lasts.",
        "There is no information about parking spaces in the documents.",
        "No document mentions a warranty of scanners.",
        "Die Dokumente enthalten keine Angaben zur Garantie.",
        "Les documents ne mentionnent pas la durée de la garantie.",
        "资料中没有提到保修期。",
        "The most important rules are:",
        "Is the warranty longer than a year?",
        "Yes.",
        "Dear colleagues of the warehouse,",
    ],
)
def test_what_claims_nothing_of_a_document_needs_no_citation(sentence: str) -> None:
    assert _uncited(sentence) == []


@pytest.mark.parametrize(
    "sentence",
    [
        "The warranty is not longer than a year.",
        "Documents are kept for ten years.",
        "No bike may stand in the hall.",
        "Die Garantie beträgt zwölf Monate.",
        "保修期为十二个月。",
    ],
)
def test_a_statement_that_is_negative_or_speaks_of_documents_is_one(sentence: str) -> None:
    assert states_fact(sentence)
