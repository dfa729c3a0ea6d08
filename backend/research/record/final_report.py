"""The report of a research run."""

from collections.abc import Iterable
from dataclasses import dataclass

from backend.chat.citations.verification import Support, Verdict
from backend.research.record.sources import NumberedSource


@dataclass(frozen=True, slots=True)
class CheckedCitation:
    """A citation of the report, and what its source says of it."""

    number: int
    sentence: str
    """Without markers."""
    claim: str
    """The part of the sentence that this citation bears out."""
    support: Support | None = None
    """None where no check was possible."""

    @property
    def verdict(self) -> Verdict:
        return self.support.verdict if self.support else Verdict.UNCHECKED


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportCounts:
    """With what a report ends."""

    sentences: int = 0
    uncited: int = 0
    """Of the sentences, those that state something without a source."""
    citations: int = 0
    supported: int = 0
    weak: int = 0
    unsupported: int = 0
    contradicted: int = 0
    unchecked: int = 0

    @classmethod
    def of(
        cls, sentences: int, uncited: int, citations: Iterable[CheckedCitation]
    ) -> "ReportCounts":
        verdicts = [one.verdict for one in citations]
        return cls(
            sentences=sentences,
            uncited=uncited,
            citations=len(verdicts),
            supported=verdicts.count(Verdict.SUPPORTED) + verdicts.count(Verdict.VERBATIM),
            weak=verdicts.count(Verdict.WEAK),
            unsupported=verdicts.count(Verdict.UNSUPPORTED),
            contradicted=verdicts.count(Verdict.CONTRADICTED),
            unchecked=verdicts.count(Verdict.UNCHECKED),
        )


@dataclass(frozen=True, slots=True)
class SourceStatement:
    """What one source says of something that sources disagree on."""

    number: int
    says: str


@dataclass(frozen=True, slots=True)
class Contradiction:
    about: str
    statements: tuple[SourceStatement, ...]
    """Of two sources at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalReport:
    markdown: str
    """All of it, as it is shown: the text, contradictions, what was not found, counts, sources."""
    text: str
    """What the model wrote, with markers `[n]` of `sources`: 1, 2, … in the order of their first citation."""
    sources: tuple[NumberedSource, ...] = ()
    citations: tuple[CheckedCitation, ...] = ()
    """In the order of the text, contradictions included."""
    counts: ReportCounts = ReportCounts()
    not_found: tuple[str, ...] = ()
    """Questions that nothing was found of, each with why."""
    contradictions: tuple[Contradiction, ...] = ()
    documents: tuple[str, ...] = ()
    """Ids of all documents of the index that the report rests on, cited or not: who may not read one of them may not
    read the report."""
    notes: tuple[str, ...] = ()
    """Sentences on how it came about, such as that it was stopped before its end."""
