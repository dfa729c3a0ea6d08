"""Check what sentences say against what was read of the sources that they cite."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from backend.chat.citation_checker import CHECKING_SECONDS, Claim, judge_weak_claims
from backend.chat.citations.citation_processor import CitedDocument
from backend.chat.citations.evidence import Passage
from backend.chat.citations.judgement import MAX_CLAIMS, ClaimJudge
from backend.chat.citations.verification import UNCHECKED, Support, Verdict, find_support
from backend.research.model_calls import ModelCalls
from backend.research.record.final_report import CheckedCitation
from backend.research.record.sources import NumberedSource
from backend.research.references.cited_text import CitedText, keep_markers, split_source
from backend.search.models import Budgets
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.runtime.deadline import Deadline, DeadlineExceededError

FAULTY = (Verdict.CONTRADICTED, Verdict.UNSUPPORTED)
"""The graver one first."""


@dataclass(frozen=True)
class ClaimChecker:
    sources: Mapping[int, NumberedSource]
    calls: ModelCalls
    deadline: Deadline

    @cached_property
    def passages(self) -> dict[int, list[Passage]]:
        return {number: split_source(one) for number, one in self.sources.items()}

    @cached_property
    def _mapping(self) -> dict[int, CitedDocument]:
        return {number: one.cited_document for number, one in self.sources.items()}

    def read(self, text: str) -> CitedText:
        return keep_markers(text, self._mapping)

    def check_texts(self, texts: Sequence[CitedText]) -> list[tuple[CheckedCitation, ...]]:
        """Return the citations of each text, all of them checked together."""
        cited = [one for text in texts for one in text.sentences]
        supports = iter(self.find_support([(one.number, one.claim) for one in cited]))
        return [
            tuple(
                CheckedCitation(one.number, one.sentence, one.claim, next(supports))
                for one in text.sentences
            )
            for text in texts
        ]

    def find_support(self, said: Sequence[tuple[int, str]]) -> list[Support]:
        """Check claims, each with the number of its source; what cannot be checked is unchecked."""
        claims = [(claim, self.passages[number]) for number, claim in said]
        dependencies = self.calls.dependencies
        try:
            found = find_support(
                claims,
                dependencies.sentence_embedder,
                dependencies.embedding.understanding,
                self.deadline.restarted(CHECKING_SECONDS),
            )
        except (TemporarilyUnavailableError, ActionRequiredError, DeadlineExceededError):
            return [UNCHECKED] * len(claims)
        return self._judge_weak(claims, found)

    def _judge_weak(self, claims: Sequence[Claim], found: Sequence[Support]) -> list[Support]:
        """Let the fast model judge what is weak, as many claims in a call as one takes."""
        window = self.calls.dependencies.fast.settings.context_window
        judge = ClaimJudge(
            complete=self.calls.judge,
            count_tokens=self.calls.dependencies.count_tokens,
            budget=Budgets.for_window(window).answer,
            deadline=self.deadline,
        )
        judged = list(found)
        weak = iter([at for at, one in enumerate(found) if one.verdict is Verdict.WEAK])
        while batch := list(islice(weak, MAX_CLAIMS)):
            asked, weakly = [claims[at] for at in batch], [found[at] for at in batch]
            for at, support in zip(batch, judge_weak_claims(asked, weakly, judge), strict=True):
                judged[at] = support
        return judged
