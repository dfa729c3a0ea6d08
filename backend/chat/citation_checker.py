"""Check the citations of a finished answer against the documents that they name."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from backend.chat.chat_state import ChatRecord, ChatStateContainer
from backend.chat.citations.evidence import (
    Passage,
    split_document,
    split_passages,
    split_texts,
)
from backend.chat.citations.judgement import ClaimJudge, OpenClaim, collect_evidence
from backend.chat.citations.verification import Support, Verdict, find_support
from backend.chat.events import AnswerDone, ChatEvent, Citation
from connectors.document import Document
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.embedding.embedder import QueryEmbedder
from indexing.embedding.language_support import LanguageSupport
from indexing.runtime.deadline import Deadline, DeadlineExceededError

CHECKING_SECONDS = 20.0
"""Time to check citations, even if the answer has used all of its own."""

Claim: TypeAlias = tuple[str, Sequence[Passage]]
"""What is said, and what was read of the source that it cites."""
_Cited: TypeAlias = tuple[int, str]
"""The number and the id of a cited document."""


@dataclass(frozen=True, slots=True)
class CitationChecker:
    """Finds, for each cited sentence, what in its document supports it."""

    embedder: QueryEmbedder
    understanding: LanguageSupport
    state: ChatStateContainer
    judge: ClaimJudge
    deadline: Deadline
    """Of the answer."""
    files: Mapping[str, Document] = field(default_factory=dict)
    """Files that the model read whole, by their ids."""

    def check_citations(self, events: Iterable[ChatEvent]) -> Iterator[ChatEvent]:
        """Pass on the events, and add to the citations of the answer their support.

        If the embedder fails, the citations stay unchecked.
        """
        for event in events:
            yield self._check(event) if isinstance(event, AnswerDone) else event

    def _check(self, answer: AnswerDone) -> AnswerDone:
        passages = self._split_cited(answer.citations)
        claims = [
            (citation.claim, passages[citation.number, citation.document_id])
            for citation in answer.citations
        ]
        try:
            deadline = self.deadline.restarted(CHECKING_SECONDS)
            found = find_support(claims, self.embedder, self.understanding, deadline)
        except (TemporarilyUnavailableError, ActionRequiredError, DeadlineExceededError):
            return answer
        supported = [
            replace(citation, support=support)
            for citation, support in zip(
                answer.citations, judge_weak_claims(claims, found, self.judge), strict=True
            )
        ]
        return replace(answer, citations=tuple(supported))

    def _split_cited(self, citations: Iterable[Citation]) -> Mapping[_Cited, Sequence[Passage]]:
        """Split each document once: what was read of a passage serves every sentence that cites it."""
        record = self.state.snapshot()
        cited = dict.fromkeys((each.number, each.document_id) for each in citations)
        return {each: self._passages(each, record) for each in cited}

    def _passages(self, cited: _Cited, record: ChatRecord) -> list[Passage]:
        number, document_id = cited
        found = [
            passage
            for section in record.sections.get(number, ())
            for passage in split_passages(section.chunks)
        ]
        if shown := record.texts.get(number):
            found += split_texts(record.documents[number].title, shown)
        file = self.files.get(document_id)
        return found or (split_document(file) if file else [])


def judge_weak_claims(
    claims: Sequence[Claim], found: Sequence[Support], judge: ClaimJudge
) -> list[Support]:
    """Let the model decide what is weak."""
    weak = [at for at, support in enumerate(found) if support.verdict is Verdict.WEAK]
    judged = judge.judge(
        [OpenClaim(claims[at][0], collect_evidence(*claims[at], found[at])) for at in weak]
    )
    verdicts = dict(zip(weak, judged, strict=True))
    return [
        replace(support, verdict=verdicts.get(at, support.verdict))
        for at, support in enumerate(found)
    ]
