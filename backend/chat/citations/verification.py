"""Verify that cited passages support the sentence that cites them.

A claim is *supported* if every part of it is like something in its evidence, and the evidence has its
numbers, dates, names, codes and shares, and denies what it denies. It is *contradicted* where the evidence
says another number or name, or the contrary, of the same thing; *weak* if something of it is missing, and
*unsupported* if no passage mentions it. What cannot be judged is *unchecked*: what states nothing, or is in
a language that the embedder does not understand and not in the words of its evidence.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from backend.chat.citations.compared_claim import ComparedClaim, Fault
from backend.chat.citations.evidence import Passage
from backend.chat.citations.support_model import BY_MEANING, BY_WORDS
from connectors.document import Span
from connectors.errors import TemporarilyUnavailableError
from indexing.embedding.embedder import QueryEmbedder, Vector
from indexing.embedding.language_support import LanguageSupport
from indexing.runtime.deadline import Deadline, DeadlineExceededError

SAME_SUBJECT = 0.55
"""The cosine of a claim and a passage that speak of the same, whatever else the claim says."""


class Verdict(StrEnum):
    VERBATIM = "verbatim"
    """The sentence is the document's own, quoted without a model."""
    SUPPORTED = "supported"
    WEAK = "weak"
    UNSUPPORTED = "unsupported"
    CONTRADICTED = "contradicted"
    UNCHECKED = "unchecked"


@dataclass(frozen=True, slots=True)
class Support:
    quote: str
    """The passage that bears the claim out, contradicts it, or comes nearest to it; empty without one."""
    section: int
    span: Span
    score: float
    """0 to 1: how likely the passages bear the claim out, its facts aside."""
    verdict: Verdict


UNCHECKED = Support("", 0, Span(0, 0), 0.0, Verdict.UNCHECKED)


def find_support(
    claims: Sequence[tuple[str, Sequence[Passage]]],
    embedder: QueryEmbedder,
    understanding: LanguageSupport,
    deadline: Deadline,
) -> list[Support]:
    """Find for each sentence the passage that supports it best, and judge it.

    All sentences share one call of the embedder. If it is late or does not answer, words alone decide,
    and a sentence in other words than its passages is unchecked.

    Raises:
        ActionRequiredError: as the embedder does.
    """
    compared = [
        ComparedClaim.of(text, passages, understanding, len(claims)) for text, passages in claims
    ]
    texts = [text for claim in compared for text in claim.texts()]
    vectors = _embed(list(dict.fromkeys(texts)), embedder, deadline)
    return [_judge(claim, vectors) for claim in compared]


def _embed(
    texts: Sequence[str], embedder: QueryEmbedder, deadline: Deadline
) -> Mapping[str, Vector]:
    if not texts:
        return {}
    try:
        vectors = embedder.embed_queries(texts, deadline)
    except (DeadlineExceededError, TemporarilyUnavailableError):
        return {}
    return dict(zip(texts, vectors, strict=True))


def _judge(claim: ComparedClaim, vectors: Mapping[str, Vector]) -> Support:
    if not claim.compared:
        return UNCHECKED
    if claim.verbatim:
        return _support(claim.verbatim, 1.0, Verdict.SUPPORTED)
    known = vectors if claim.is_understood and claim.text in vectors else {}
    model = BY_MEANING if known else BY_WORDS
    likeness = claim.measure_likeness(known)
    score = model.probability(likeness)
    fault = claim.find_fault(known)
    speaks_of_it = score >= model.weak or likeness.cosine >= SAME_SUBJECT
    verdict = (
        _decide(fault, is_supported=score >= model.supported)
        if speaks_of_it
        else Verdict.UNSUPPORTED
    )
    if not known and verdict in {Verdict.WEAK, Verdict.UNSUPPORTED}:
        # What is missing may stand there in other words, but for what has none.
        if not claim.lacks_plain_fact:
            return UNCHECKED
        verdict = Verdict.WEAK
    conflicting = fault.sentence if fault else None
    return _support(conflicting or claim.choose_quote(known), score, verdict)


def _decide(fault: Fault | None, *, is_supported: bool) -> Verdict:
    if fault and fault.sentence:
        return Verdict.CONTRADICTED
    return Verdict.SUPPORTED if is_supported and not fault else Verdict.WEAK


def _support(passage: Passage, score: float, verdict: Verdict) -> Support:
    return Support(passage.text, passage.section, passage.span, round(score, 4), verdict)
