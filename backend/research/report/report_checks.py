"""Check every citation of a report, and reword or mark what its source does not say."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

from backend.chat.citation_checker import CHECKING_SECONDS, Claim, judge_weak_claims
from backend.chat.citations.citation_processor import CitedDocument
from backend.chat.citations.evidence import Passage
from backend.chat.citations.judgement import MAX_CLAIMS, ClaimJudge, collect_evidence
from backend.chat.citations.verification import UNCHECKED, Support, Verdict, find_support
from backend.research import prompts
from backend.research.cited_text import CitedText, keep_markers, split_source
from backend.research.model_calls import ModelCalls, ask_for_json
from backend.research.record.final_report import CheckedCitation, Contradiction
from backend.research.record.sources import NumberedSource
from backend.research.report.sentence_places import (
    PlacedSentence,
    place_cited_sentences,
    replace_sentences,
)
from backend.search.llm_protocol import CompletionError
from backend.search.models import Budgets
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.runtime.deadline import Deadline, DeadlineExceededError

FAULTY = (Verdict.CONTRADICTED, Verdict.UNSUPPORTED)
"""What is reworded or marked; the first is the graver one."""
MAX_REWORDED = 20
"""Further faulty sentences of a report are marked."""


@dataclass(frozen=True, slots=True)
class CheckedText:
    text: str
    """With its markers, and marks behind what its sources do not say."""
    citations: tuple[CheckedCitation, ...]
    sentences: int
    """That cite a source, or state something without one."""


@dataclass(frozen=True, slots=True)
class _CheckedSentence:
    place: PlacedSentence
    citations: tuple[CheckedCitation, ...]

    @property
    def verdict(self) -> Verdict | None:
        """The gravest fault; None where there is none."""
        found = [one.verdict for one in self.citations]
        return next((fault for fault in FAULTY if fault in found), None)


@dataclass(frozen=True)
class ReportChecker:
    sources: Mapping[int, NumberedSource]
    calls: ModelCalls
    marks: Mapping[Verdict, str]
    """What is put behind a faulty sentence."""
    deadline: Deadline

    @cached_property
    def mapping(self) -> dict[int, CitedDocument]:
        return {number: one.cited_document for number, one in self.sources.items()}

    @cached_property
    def _passages(self) -> dict[int, list[Passage]]:
        return {number: split_source(one) for number, one in self.sources.items()}

    def check(self, written: CitedText) -> CheckedText:
        """Check a text; each faulty sentence is written anew once, and marked where that is of no use."""
        citations = self._check_sentences(written)
        sentences = list(_group(written.text, self.mapping, citations))
        better = self._reword(written.text, [one for one in sentences if one.verdict])
        places: list[tuple[PlacedSentence, str]] = []
        checked: list[CheckedCitation] = []
        for one in sentences:
            if reworded := better.get(one.place):
                places.append((one.place, reworded.text))
                checked += reworded.citations
            else:
                checked += one.citations
                if one.verdict:
                    marked = f"{one.place.span.of(written.text)} {self.marks[one.verdict]}"
                    places.append((one.place, marked))
        text = replace_sentences(written.text, [(place.span, text) for place, text in places])
        return CheckedText(text, tuple(checked), len(sentences) + len(written.uncited))

    def check_contradictions(
        self, found: Sequence[Contradiction]
    ) -> tuple[tuple[Contradiction, ...], dict[tuple[int, str], CheckedCitation]]:
        """Leave out statements that their sources do not make, and contradictions of which one statement is left."""
        said = [(one.number, one.says) for each in found for one in each.statements]
        supports = self._find_support([(says, self._passages[number]) for number, says in said])
        checked = {
            (number, says): CheckedCitation(number, says, says, support)
            for (number, says), support in zip(said, supports, strict=True)
        }
        kept = [
            replace(
                each,
                statements=tuple(
                    one
                    for one in each.statements
                    if checked[one.number, one.says].verdict not in FAULTY
                ),
            )
            for each in found
        ]
        return tuple(one for one in kept if len(one.statements) > 1), checked

    def _check_sentences(self, written: CitedText) -> list[CheckedCitation]:
        cited = written.sentences
        found = self._find_support([(one.claim, self._passages[one.number]) for one in cited])
        return [
            CheckedCitation(one.number, one.sentence, one.claim, support)
            for one, support in zip(cited, found, strict=True)
        ]

    def _find_support(self, claims: Sequence[Claim]) -> list[Support]:
        """Check claims; what the embedder or the model cannot check stays as it is."""
        dependencies = self.calls.dependencies
        try:
            found = find_support(
                claims,
                dependencies.sentence_embedder,
                dependencies.embedding.understanding,
                Deadline.after(CHECKING_SECONDS, self.deadline.cancel_token),
            )
        except (TemporarilyUnavailableError, ActionRequiredError, DeadlineExceededError):
            return [UNCHECKED] * len(claims)
        return self._judge_weak(claims, found)

    def _judge_weak(self, claims: Sequence[Claim], found: list[Support]) -> list[Support]:
        """Judge what is weak, as many claims in a call as one takes."""
        judge = ClaimJudge(
            complete=self.calls.judge,
            count_tokens=self.calls.dependencies.count_tokens,
            budget=Budgets.for_window(self.calls.dependencies.fast.settings.context_window).answer,
            deadline=self.deadline,
        )
        weak = [at for at, one in enumerate(found) if one.verdict is Verdict.WEAK]
        for first in range(0, len(weak), MAX_CLAIMS):
            batch = weak[first : first + MAX_CLAIMS]
            judged = judge_weak_claims(
                [claims[at] for at in batch], [found[at] for at in batch], judge
            )
            for at, support in zip(batch, judged, strict=True):
                found[at] = support
        return found

    def _reword(
        self, text: str, faulty: Sequence[_CheckedSentence]
    ) -> dict[PlacedSentence, CheckedText]:
        """Return what the model has written in the place of faulty sentences, where that is borne out."""
        asked = faulty[:MAX_REWORDED]
        written = self._ask(text, asked) if asked else {}
        texts = {
            one.place: keep_markers(written[at], self.mapping)
            for at, one in enumerate(asked)
            if at in written
        }
        own = {
            place: cited
            for place, cited in texts.items()
            if cited.seen and set(cited.seen) <= set(place.numbers)
        }
        checked = iter(
            self._find_support(
                [
                    (one.claim, self._passages[one.number])
                    for cited in own.values()
                    for one in cited.sentences
                ]
            )
        )
        better: dict[PlacedSentence, CheckedText] = {}
        for place, cited in own.items():
            citations = tuple(
                CheckedCitation(one.number, one.sentence, one.claim, support)
                for one, support in zip(
                    cited.sentences, islice(checked, len(cited.sentences)), strict=True
                )
            )
            if not any(one.verdict in FAULTY for one in citations):
                better[place] = CheckedText(cited.text, citations, 1)
        return better

    def _ask(self, text: str, faulty: Sequence[_CheckedSentence]) -> dict[int, str]:
        entries = [
            {
                "number": at,
                "sentence": one.place.span.of(text),
                "verdict": one.verdict,
                "passages": list(self._describe_passages(one)),
            }
            for at, one in enumerate(faulty)
        ]
        messages = prompts.quote(prompts.REWORD, {"sentences": entries})
        try:
            return ask_for_json(self.calls.write, messages, _read_sentences, self.deadline)
        except CompletionError:
            return {}

    def _describe_passages(self, sentence: _CheckedSentence) -> Iterator[dict[str, object]]:
        for one in sentence.citations:
            passages = self._passages[one.number]
            evidence = collect_evidence(one.claim, passages, one.support or UNCHECKED)
            yield {"source": one.number, "content": evidence}


def _group(
    text: str, known: Mapping[int, CitedDocument], citations: Sequence[CheckedCitation]
) -> Iterator[_CheckedSentence]:
    """Yield each cited sentence with its citations; both are in the order of the text."""
    left = iter(citations)
    for place in place_cited_sentences(text, known):
        yield _CheckedSentence(place, tuple(islice(left, len(place.numbers))))


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
