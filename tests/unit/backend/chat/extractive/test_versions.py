"""Years of a question, and the time in which a document is valid."""

from datetime import UTC, datetime

import pytest

from backend.chat.extractive.candidate_sentences import Candidate, find_candidates
from backend.chat.extractive.versions import fits_years
from backend.search.models import InferenceSection
from indexing.chunking.chunk import Chunk
from indexing.index.protocols import Evidence, Hit
from tests.support.chunks import chunk


def candidate(held: Chunk) -> Candidate:
    best = Hit(held, 1.0, Evidence(cosine=0.5), ())
    (found,) = find_candidates([InferenceSection((held,), best, (best,))])
    return found


def policy(document_id: str, title: str, year: int | None) -> Candidate:
    changed = datetime(year, 5, 1, tzinfo=UTC) if year else None
    text = "For meals you receive 45 euros a day."
    return candidate(chunk(document_id, 0, text, title=title, updated_at=changed))


OLD = policy("old", "Travel (old)", 2023)
NEW = policy("new", "Travel", 2025)
UNDATED = policy("undated", "Meals", None)
FOUND = (OLD, NEW, UNDATED)


@pytest.mark.parametrize(
    ("year", "fitting"),
    [
        (2022, []),
        (2023, [OLD]),
        (2024, [OLD]),  # until its successor
        (2025, [OLD, NEW]),
        (2026, [NEW]),
    ],
)
def test_a_document_is_valid_from_its_date_to_that_of_its_successor(
    year: int, fitting: list[Candidate]
) -> None:
    question = f"How much did I get for meals in {year}?"
    assert [each for each in FOUND if fits_years(question, each, FOUND)] == fitting


def test_a_year_that_stands_there_fits_whatever_the_date() -> None:
    report = candidate(chunk("report", 0, "The revenue was 61 million euros.", title="Report 2019"))
    assert fits_years("What was the revenue in 2019?", report, [report])
    assert not fits_years("What was the revenue in 2018?", report, [report])


def test_without_a_year_everything_fits() -> None:
    assert all(fits_years("How much do I get?", each, FOUND) for each in FOUND)
