"""The JSON of an answer, and the cost of making it."""

import subprocess
import sys
from dataclasses import replace
from typing import get_args

from backend.chat.citations.citation_processor import SourceKind
from backend.chat.citations.verification import Support, Verdict
from backend.chat.events import AnswerDone, Citation, ShownDocument
from backend.chat.passages import PassagesReason
from backend.schemas.answer import AnswerResponse, PassagesReasonName
from connectors.document import Span
from tests.support.search import UPDATED, section

_LOADED = "import sys; from backend.schemas import answer, document, index, run, search, source, system; print(*sys.modules)"


def test_it_loads_no_room_and_no_database() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _LOADED], capture_output=True, text=True, check=True
    )
    loaded = set(ran.stdout.split())
    assert "backend.schemas.answer" in loaded
    assert not loaded & {"sqlalchemy", "backend.store", "backend.chat", "backend.search"}


def test_a_citation_is_reported_with_its_quote() -> None:
    support = Support("Two signatures.", 3, Span(10, 25), 0.75, Verdict.WEAK)
    response = AnswerResponse.from_answer("Who signs?", _answer(support), 0.123456)
    assert response.seconds == 0.1235
    (citation,) = response.citations
    assert (citation.quote, citation.section, citation.span) == ("Two signatures.", 3, (10, 25))
    assert (citation.score, citation.verdict) == (0.75, "weak")


def test_a_citation_that_was_not_checked_is_reported_without_a_quote() -> None:
    (citation,) = AnswerResponse.from_answer("Who signs?", _answer(None), 0.1).citations
    assert (citation.number, citation.document_id) == (1, "folder:rules.md")
    assert (citation.quote, citation.section, citation.span) == ("", 0, (0, 0))
    assert (citation.score, citation.verdict) == (0.0, Verdict.UNCHECKED.value)


def test_the_cited_sources_are_listed_once_by_number() -> None:
    one = _answer(None).citations[0]
    law = replace(one, number=2, document_id="https://a.b/c", kind=SourceKind.WEB)
    done = replace(_answer(None), citations=(law, one, law))
    answer = AnswerResponse.from_answer("Who signs?", done, 0.1)
    assert [(each.number, each.kind) for each in answer.references] == [(1, "document"), (2, "url")]
    assert answer.model_dump()["references"][1] == {
        "number": 2,
        "title": "Rules",
        "link": "https://example.com/rules",
        "kind": "url",
        "document_id": "https://a.b/c",
    }
    stored = AnswerResponse.model_validate_json(answer.model_dump_json())
    assert stored.references == answer.references
    nothing = replace(done, citations=(), is_general_knowledge=True)
    assert AnswerResponse.from_answer("Who signs?", nothing, 0.1).references == ()


def test_why_passages_are_shown_is_kept_with_the_answer() -> None:
    done = replace(_answer(None), passages_reason=PassagesReason.GROUP_BUDGET_USED)
    made = AnswerResponse.from_answer("Who signs?", done, 0.1)
    stored = made.model_dump(mode="json")
    assert stored["passages_reason"] == "group_budget_used"
    assert AnswerResponse.model_validate(stored) == made
    del stored["passages_reason"]
    assert AnswerResponse.model_validate(stored).passages_reason is None
    assert AnswerResponse.from_answer("Who signs?", _answer(None), 0.1).passages_reason is None


def test_documents_are_kept_with_where_they_are_from_and_of_when() -> None:
    found = section("folder:rules.md", 0, 2)
    document = ShownDocument(
        number=1, document_id="folder:rules.md", title="Rules", link="", sections=(found,)
    )
    whole = replace(document, number=2, document_id="files:plan", sections=())
    shared, renamed = replace(whole, source="Your files"), replace(document, source="Shared")
    done = replace(_answer(None), documents=(document, whole, shared, renamed))
    made = AnswerResponse.from_answer("Who signs?", done, 0.1)
    assert [(one.source, one.updated_at) for one in made.documents] == [
        ("wiki", UPDATED),
        ("", None),
        ("Your files", None),
        ("Shared", UPDATED),
    ]
    stored = made.model_dump(mode="json")
    assert AnswerResponse.model_validate(stored) == made
    for one in stored["documents"]:
        del one["source"], one["updated_at"]
    of_before = AnswerResponse.model_validate(stored)
    assert {(one.source, one.updated_at) for one in of_before.documents} == {("", None)}


def test_every_reason_has_a_name() -> None:
    assert set(get_args(PassagesReasonName)) == {one.value for one in PassagesReason}


def _answer(support: Support | None) -> AnswerDone:
    citation = Citation(
        number=1,
        document_id="folder:rules.md",
        title="Rules",
        link="https://example.com/rules",
        sentence="Two people sign.",
        claim="Two people sign.",
        support=support,
    )
    return AnswerDone(
        text="Two people sign [1].", plain="Two people sign.", citations=(citation,), model=None
    )
