"""Check every citation of a report, and reword or mark what its source does not say."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from backend.chat.citations.verification import Verdict
from backend.research.record.final_report import CheckedCitation, Contradiction
from backend.research.references.cited_text import CitedText
from backend.research.report.claim_checker import FAULTY, ClaimChecker
from backend.research.report.rewording import CheckedSentence, Rewording, reword_sentences
from backend.research.report.sentence_places import place_cited_sentences, replace_sentences
from connectors.document import Span


@dataclass(frozen=True, slots=True)
class CheckedText:
    text: str
    """With its markers, and marks behind what its sources do not say."""
    citations: tuple[CheckedCitation, ...]
    sentences: int
    """That cite a source, or state something without one."""
    uncited: int
    """Of them, those without a source."""


@dataclass(frozen=True, slots=True)
class CheckedContradictions:
    """Those of which two statements at least are what their sources say."""

    contradictions: tuple[Contradiction, ...]
    citations: tuple[CheckedCitation, ...]
    """Of their statements, in their order."""


def check_report(
    written: CitedText, checker: ClaimChecker, marks: Mapping[Verdict, str]
) -> CheckedText:
    """Check a text; each faulty sentence is written anew once, and marked where that is of no use.

    Args:
        marks: what is put behind a faulty sentence.
    """
    [citations] = checker.check_texts([written])
    sentences = list(_group(written.text, checker, citations))
    faulty = [one for one in sentences if one.fault]
    better = reword_sentences(written.text, faulty, checker)
    done = [better.get(one.place) or _mark(written.text, one, marks) for one in sentences]
    places = [(one.place.span, each.text) for one, each in zip(sentences, done, strict=True)]
    return CheckedText(
        replace_sentences(written.text, _drop_overlapping(places)),
        tuple(citation for one in done for citation in one.citations),
        len(sentences) + len(written.uncited),
        len(written.uncited),
    )


def _group(
    text: str, checker: ClaimChecker, citations: Sequence[CheckedCitation]
) -> Iterator[CheckedSentence]:
    """Yield each cited sentence with its citations; both are in the order of the text."""
    left = iter(citations)
    for place in place_cited_sentences(text, checker.sources):
        yield CheckedSentence(place, tuple(islice(left, len(place.numbers))))


def _mark(text: str, sentence: CheckedSentence, marks: Mapping[Verdict, str]) -> Rewording:
    """Return the sentence as it is, with a mark behind it where it is faulty."""
    said = sentence.place.span.of(text)
    fault = sentence.fault
    return Rewording(f"{said} {marks[fault]}" if fault else said, sentence.citations)


def _drop_overlapping(places: Iterable[tuple[Span, str]]) -> Iterator[tuple[Span, str]]:
    """Pass on the places that begin behind all before them."""
    end = 0
    for span, text in places:
        if span.start >= end:
            yield span, text
            end = span.end


def check_contradictions(
    found: Sequence[Contradiction], checker: ClaimChecker
) -> CheckedContradictions:
    """Leave out statements that their sources do not make, and contradictions of which one statement is left."""
    said = [(one.number, one.says) for each in found for one in each.statements]
    supports = dict(zip(said, checker.find_support(said), strict=True))
    true = {one for one, support in supports.items() if support.verdict not in FAULTY}
    kept = [
        replace(
            each, statements=tuple(one for one in each.statements if (one.number, one.says) in true)
        )
        for each in found
    ]
    left = tuple(one for one in kept if len(one.statements) > 1)
    named_claims = ((one.number, one.says) for each in left for one in each.statements)
    return CheckedContradictions(
        left, tuple(CheckedCitation(one[0], one[1], one[1], supports[one]) for one in named_claims)
    )
