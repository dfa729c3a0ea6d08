"""Compare a claim with the passages that it cites: by words, by meaning, and by the facts in both."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest

from backend.chat.citations.chinese_facts import is_in_chinese_characters
from backend.chat.citations.claim_units import find_claimed_words, split_units
from backend.chat.citations.evidence import Passage, content_words
from backend.chat.citations.fact_conflicts import FactFinding, Finding, Sentence, check_facts
from backend.chat.citations.facts import FUNCTION, FactKind, Reading, read_text
from backend.chat.citations.negation import Denial, compare_denials, read_clauses
from backend.chat.citations.roles import (
    find_other_speaker,
    has_swapped_names,
    is_of_another_row,
)
from backend.chat.citations.support_model import BY_MEANING, Likeness
from indexing.embedding.embedder import Vector
from indexing.embedding.language_support import LanguageSupport
from indexing.text.tokenizer import plain_words

EMBEDDED_PASSAGES = 12
"""Passages of one claim that are compared by meaning: those that share most words with it."""
EMBEDDED_TEXTS = 192
"""Passages of all claims together; of many claims, each has fewer."""
RUN_PENALTY = 0.05
"""A further sentence is quoted only if it adds so much."""
WORDS_AROUND = 40
WEIGHT_OF_A_NAME = 0.08
"""How far the vector of a sentence moves without its subject; without another first word less."""
SAME_MEANING = 0.5
"""The cosine of two words from which on they count as synonyms."""
UNDERSTOOD = 0.5
"""The least share of a text that the embedder must understand."""


@dataclass(frozen=True)
class ComparedClaim:
    """A claim and the passages that it is compared with."""

    text: str
    units: Sequence[str]
    singles: Sequence[Passage]
    compared: Sequence[Passage]
    """Those that share most words with the claim, or with a part of it."""
    is_understood: bool

    @classmethod
    def of(
        cls, text: str, passages: Sequence[Passage], understanding: LanguageSupport, claims: int
    ) -> "ComparedClaim":
        singles = [passage for passage in passages if passage.sentences == 1]
        headings = {passage.above for passage in singles}
        above = {word for heading in headings for word in content_words(heading)}
        if find_claimed_words(text) <= above:  # nothing, or a mere title
            return cls(text, (), (), (), is_understood=False)
        most = max(1, min(EMBEDDED_PASSAGES, EMBEDDED_TEXTS // claims))
        units = split_units(text)
        wanted = [content_words(unit) for unit in units]
        compared = _limit_passages(wanted, _select_passages(text, wanted, passages)[:most])
        said = " ".join(passage.text for passage in compared)
        understood = (
            min(understanding.vector_weight(text), understanding.vector_weight(said)) >= UNDERSTOOD
        )
        return cls(text, units, singles, compared, understood)

    @cached_property
    def reading(self) -> Reading:
        return read_text(self.text)

    @cached_property
    def words(self) -> frozenset[str]:
        return content_words(self.text)

    @cached_property
    def findings(self) -> Sequence[FactFinding]:
        evidence = [Sentence(single.reading, single.reading_above) for single in self.singles]
        return check_facts(self.reading, evidence)

    @cached_property
    def lacks_plain_fact(self) -> bool:
        """Whether both are in Chinese, and the evidence has not a number or a marked name of the claim; no vector is needed to tell."""
        lacking = {one.fact.kind for one in self.findings if one.finding is Finding.MISSING}
        return (
            not lacking.isdisjoint(_PLAIN_IN_CHINESE)
            and is_in_chinese_characters(self.text)
            and any(is_in_chinese_characters(single.text) for single in self.singles)
        )

    @cached_property
    def first_word(self) -> "_FirstWord | None":
        """The first word, if the evidence lacks it: is it a name?"""
        if not any(finding.fact.kind is FactKind.FIRST_WORD for finding in self.findings):
            return None
        nearest = self._nearest(self.words).text_in_context
        around = dict.fromkeys(word for word in plain_words(nearest) if word not in FUNCTION)
        word, _, rest = self.text.partition(" ")
        return _FirstWord(word, rest, tuple(around)[:WORDS_AROUND]) if rest.strip() else None

    def texts(self) -> Iterator[str]:
        """Yield what is to be embedded: nothing of a quotation, which needs no comparison."""
        if self.is_understood and self.compared and not self.verbatim:
            yield self.text
            yield from self.units
            for passage in self.compared:
                yield passage.text
                yield passage.text_in_context
            if self.first_word:
                yield from (self.first_word.word, self.first_word.rest, *self.first_word.around)

    def measure_likeness(self, vectors: Mapping[str, Vector]) -> Likeness:
        return Likeness(
            cosine=max((self._cosine(self.text, p, vectors) for p in self.compared), default=0.0),
            unit_cosine=min(
                max(self._cosine(unit, p, vectors) for p in self.compared) for unit in self.units
            ),
            unit_words=_share_of_units(map(content_words, self.units), self.compared),
        )

    def _cosine(self, text: str, passage: Passage, vectors: Mapping[str, Vector]) -> float:
        if not vectors:
            return 0.0
        forms = (passage.text, passage.text_in_context)
        return max(0.0, min(1.0, max(float(vectors[text] @ vectors[form]) for form in forms)))

    @cached_property
    def verbatim(self) -> Passage | None:
        """The passage that is the claim word for word."""
        wanted = self.reading.tokens
        held = (p for p in self.compared if self.words <= p.words and p.reading.tokens == wanted)
        return next(held, None)

    def find_fault(self, vectors: Mapping[str, Vector]) -> "Fault | None":
        """Return what the evidence contradicts, else what it lacks."""
        found = [
            finding
            for finding in self.findings
            if finding.fact.kind is not FactKind.FIRST_WORD
            or (self.first_word and self.first_word.is_name(self.text, vectors))
        ]
        for finding in found:
            if finding.finding is Finding.CONFLICT:
                return Fault(self.singles[finding.sentence or 0])
        if tells_of_others := self._find_others():
            return Fault(tells_of_others)
        said = [clause for single in self.singles for clause in single.clauses]
        denial = compare_denials([*read_clauses(self.text)], said)
        if denial is Denial.CONFLICT:
            return Fault(self._nearest(self.words))
        return Fault(None) if found or denial is Denial.MISSING else None

    def _find_others(self) -> Passage | None:
        """Return the sentence that says of others what the claim says."""
        nearest = self._nearest(self.words)
        if has_swapped_names(self.reading, nearest.reading):
            return nearest
        if said_by_another := find_other_speaker(self.reading, self.singles):
            return said_by_another
        rows = [single for single in self.singles if single.text.startswith("|")]
        for unit in map(content_words, self.units):
            row = self._nearest(unit)
            if row.text.startswith("|") and is_of_another_row(unit, row, rows):
                return row
        return None

    def _nearest(self, wanted: frozenset[str]) -> Passage:
        return max(self.singles, key=lambda single: share(wanted, single.words))

    def choose_quote(self, vectors: Mapping[str, Vector]) -> Passage:
        """Return the passage most like the claim; a longer one only if it is clearly more so."""
        return max(
            self.compared,
            key=lambda passage: (
                self._cosine(self.text, passage, vectors)
                + share(self.words, passage.words)
                - RUN_PENALTY * (passage.sentences - 1),
                -len(passage.text),
            ),
        )


_PLAIN_IN_CHINESE = {FactKind.NUMBER, FactKind.MARKED_NAME}
"""Facts that can be said in one way alone: numerals are read as figures."""


@dataclass(frozen=True, slots=True)
class _FirstWord:
    """A word that begins a claim, where every word has a capital, and that its evidence lacks."""

    word: str
    rest: str
    """The claim without it."""
    around: tuple[str, ...]
    """The words of the sentence that is most like the claim."""

    def is_name(self, claim: str, vectors: Mapping[str, Vector]) -> bool:
        """Return whether the claim says something else without the word, and no other word means the same."""
        if not vectors:
            return False
        weight = 1.0 - float(vectors[claim] @ vectors[self.rest])
        alike = max((float(vectors[self.word] @ vectors[w]) for w in self.around), default=0.0)
        return weight >= WEIGHT_OF_A_NAME and alike < SAME_MEANING


@dataclass(frozen=True, slots=True)
class Fault:
    sentence: Passage | None
    """What contradicts the claim; None if something of it is merely missing."""


def _select_passages(
    text: str, units: Sequence[frozenset[str]], passages: Sequence[Passage]
) -> list[Passage]:
    """Sort passages: in turn the best for the whole claim and the best for each part of it.

    Of runs of sentences only the best: most of what they say is compared in the single ones, and they are the longest.
    """
    rankings = [_rank(content_words(text), passages)]
    singles = [passage for passage in passages if passage.sentences == 1]
    rankings += [_rank(unit, singles) for unit in units]
    turns = (passage for turn in zip_longest(*rankings) for passage in turn if passage)
    ordered = list({id(passage): passage for passage in turns}.values())
    runs = [passage for passage in ordered if passage.sentences > 1]
    return [passage for passage in ordered if passage.sentences == 1 or passage is runs[0]]


def _limit_passages(
    units: Sequence[frozenset[str]], compared: Sequence[Passage]
) -> Sequence[Passage]:
    """Leave out what cannot change the verdict: where the words alone bear the claim out, all but the best for it and for its parts.

    Vectors then only choose what is quoted.
    """
    best = compared[: 1 + len(units)]
    if not best:
        return ()
    by_words = Likeness(cosine=0.0, unit_cosine=0.0, unit_words=_share_of_units(units, best))
    is_borne_out = BY_MEANING.probability(by_words) >= BY_MEANING.supported
    return best if is_borne_out else compared


def _share_of_units(units: Iterable[frozenset[str]], passages: Sequence[Passage]) -> float:
    """Return the least share of a part's words that one passage contains."""
    return min(max(share(words, passage.words) for passage in passages) for words in units)


def _rank(wanted: frozenset[str], passages: Sequence[Passage]) -> list[Passage]:
    return sorted(passages, key=lambda p: (-share(wanted, p.words), len(p.text)))


def share(wanted: frozenset[str], held: frozenset[str]) -> float:
    """Return the share of the wanted words that are present, 0 to 1; 1 if none is wanted."""
    return len(wanted & held) / len(wanted) if wanted else 1.0
