"""Let the language model judge the claims that the check leaves weak, all in one call.

It sees each claim and what its citation leads to, as data, and nothing else of the turn. A claim
that it says nothing usable of stays weak.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from backend.chat.citations.compared_claim import share
from backend.chat.citations.evidence import Passage, content_words
from backend.chat.citations.verification import Support, Verdict
from backend.chat.loose_json import parse_loose_json
from backend.chat.prompts import judging_prompt
from backend.search.llm_protocol import ChatMessage, Complete, CompletionError
from backend.search.prompts import strip_reasoning
from backend.search.sections import to_json
from connectors.document import Span
from indexing.embedding.token_counting import CountTokens
from indexing.runtime.deadline import Deadline

MAX_CLAIMS = 20
"""Further weak claims of an answer stay weak."""
EVIDENCE_CHARACTERS = 1_500
"""Of the cited document, for each claim."""
JUDGING_SECONDS = 15.0
_VERDICTS = {
    one.value: one
    for one in (Verdict.SUPPORTED, Verdict.WEAK, Verdict.UNSUPPORTED, Verdict.CONTRADICTED)
}


@dataclass(frozen=True, slots=True)
class OpenClaim:
    """A claim that is neither supported nor refuted by what was compared."""

    claim: str
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimJudge:
    complete: Complete
    count_tokens: CountTokens
    budget: int
    """Tokens of all claims and their evidence."""
    deadline: Deadline
    """That of the answer."""

    def judge(self, claims: Sequence[OpenClaim]) -> list[Verdict]:
        """Return a verdict for each claim; weak where the model gives none."""
        asked = self._fit(claims)
        verdicts = self._ask(asked) if asked else {}
        judged = [verdicts.get(number, Verdict.WEAK) for number in range(len(asked))]
        return judged + [Verdict.WEAK] * (len(claims) - len(asked))

    def _fit(self, claims: Sequence[OpenClaim]) -> list[Mapping[str, object]]:
        """Return the first claims that fit the budget together, numbered."""
        left, fitting = self.budget, list[Mapping[str, object]]()
        for number, one in enumerate(claims[:MAX_CLAIMS]):
            entry = {"claim": number, "says": one.claim, "passage": one.evidence}
            left -= self.count_tokens(to_json(entry))
            if left < 0:
                break
            fitting.append(entry)
        return fitting

    def _ask(self, entries: Sequence[Mapping[str, object]]) -> dict[int, Verdict]:
        system, quoted = judging_prompt(to_json({"claims": entries}))
        messages = [ChatMessage("system", system), ChatMessage("user", quoted)]
        try:
            answer = self.complete(messages, self.deadline.limited_to(JUDGING_SECONDS))
        except CompletionError:
            return {}
        return parse_verdicts(answer)


def parse_verdicts(answer: str) -> dict[int, Verdict]:
    """Return the verdicts by the numbers of their claims; nothing of what is not as it was asked for."""
    text = strip_reasoning(answer)
    start, end = text.find("{"), text.rfind("}")
    match parse_loose_json(text[start : end + 1]) if start >= 0 else None:
        case {"verdicts": [*entries]}:
            return dict(pair for entry in entries if (pair := _parse_entry(entry)))
        case _:
            return {}


def _parse_entry(entry: object) -> tuple[int, Verdict] | None:
    match entry:
        case {"claim": bool()}:
            return None
        case {"claim": int(number), "verdict": str(verdict)}:
            known = _VERDICTS.get(verdict.strip().lower())
            return (number, known) if known else None
        case _:
            return None


def collect_evidence(claim: str, passages: Sequence[Passage], support: Support) -> str:
    """Return the cited sentences that the claim is judged by, in the order of the document.

    Those around the quote come first, then those that share most words with the claim.
    """
    singles = [one for one in passages if one.sentences == 1]
    wanted = content_words(claim)

    def distance(one: Passage) -> tuple[int, float]:
        near = _gap(one.span, support.span) if one.section == support.section else None
        around = near is not None and near <= EVIDENCE_CHARACTERS // 4
        return (0, near or 0) if around else (1, -share(wanted, one.words))

    chosen: list[Passage] = []
    left = EVIDENCE_CHARACTERS
    for one in sorted(singles, key=distance):
        left -= len(one.text_in_context)
        if left < 0 and chosen:
            break
        chosen.append(one)
    chosen.sort(key=lambda one: (one.section, one.span.start))
    return "\n".join(one.text_in_context for one in chosen)[:EVIDENCE_CHARACTERS]


def _gap(one: Span, other: Span) -> int:
    """Return the characters between two spans; 0 if they overlap."""
    return max(0, one.start - other.end, other.start - one.end)
