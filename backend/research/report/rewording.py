"""Write faulty sentences of a report anew, with the passages of their sources in hand."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from backend.chat.citations.judgement import collect_evidence
from backend.chat.citations.verification import UNCHECKED, Verdict
from backend.research import prompts
from backend.research.model_calls import ask_for_json
from backend.research.record.final_report import CheckedCitation
from backend.research.references.cited_text import CitedText
from backend.research.report.claim_checker import FAULTY, ClaimChecker
from backend.research.report.sentence_places import PlacedSentence
from backend.search.llm_protocol import CompletionError

MAX_REWORDED = 20
"""Further faulty sentences stay as they are."""


@dataclass(frozen=True, slots=True)
class CheckedSentence:
    place: PlacedSentence
    citations: tuple[CheckedCitation, ...]

    @property
    def fault(self) -> Verdict | None:
        """The gravest one; None where there is none."""
        found = [one.verdict for one in self.citations]
        return next((fault for fault in FAULTY if fault in found), None)


@dataclass(frozen=True, slots=True)
class Rewording:
    """What replaces a sentence, supported by the same sources."""

    text: str
    citations: tuple[CheckedCitation, ...]


def reword_sentences(
    text: str, faulty: Sequence[CheckedSentence], checker: ClaimChecker
) -> dict[PlacedSentence, Rewording]:
    """Return what the model writes in place of faulty sentences, by one call; nothing that is faulty again.

    Args:
        text: in which the sentences have their places.
    """
    asked = faulty[:MAX_REWORDED]
    written = _ask(text, asked, checker) if asked else {}
    read = {one.place: checker.read(written[at]) for at, one in enumerate(asked) if at in written}
    own = {place: cited for place, cited in read.items() if _cites_own(place, cited)}
    checked = zip(own.items(), checker.check_texts(list(own.values())), strict=True)
    return {
        place: Rewording(cited.text, citations)
        for (place, cited), citations in checked
        if not any(one.verdict in FAULTY for one in citations)
    }


def _cites_own(place: PlacedSentence, cited: CitedText) -> bool:
    """Return whether a text cites sources of the sentence, and no others."""
    return bool(cited.seen) and set(cited.seen) <= set(place.numbers)


def _ask(text: str, faulty: Sequence[CheckedSentence], checker: ClaimChecker) -> Mapping[int, str]:
    """Return what the model writes, by the places among `faulty`."""
    entries = [
        {
            "number": at,
            "sentence": one.place.span.of(text),
            "verdict": one.fault,
            "passages": list(_describe_passages(one, checker)),
        }
        for at, one in enumerate(faulty)
    ]
    messages = prompts.quote(prompts.REWORD, {"sentences": entries})
    try:
        return ask_for_json(checker.calls.write, messages, _read_sentences, checker.deadline)
    except CompletionError:
        return {}


def _describe_passages(
    sentence: CheckedSentence, checker: ClaimChecker
) -> Iterator[dict[str, object]]:
    for one in sentence.citations:
        passages = checker.passages[one.number]
        evidence = collect_evidence(one.claim, passages, one.support or UNCHECKED)
        yield {"source": one.number, "content": evidence}


def _read_sentences(value: object) -> dict[int, str] | None:
    match value:
        case {"sentences": [*entries]}:
            return dict(pair for entry in entries if (pair := _read_sentence(entry)))
        case _:
            return None


def _read_sentence(entry: object) -> tuple[int, str] | None:
    match entry:
        case {"number": bool()}:
            return None
        case {"number": int(number), "text": str(text)} if text.strip():
            return number, " ".join(text.split())
        case _:
            return None
