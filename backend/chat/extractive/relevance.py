"""Score how well sentences fit a question, and decide whether the best of them answers it.

Meaning is the mean of two cosines with the question: of the sentence under its title and headings,
and of its whole chunk. Words are the question's words in the sentence, its headings and its chunk,
weighted by how rare they are among the candidates (after Robertson and Spärck Jones). If the embedder
does not support the question's language, words decide alone.

The type of answer is recognised by question words and the shapes of answers, after the answer types
of question answering (Li and Roth, "Learning Question Classifiers", COLING 2002), in English, German,
Chinese and Japanese. A question without a recognised type asks for nothing in particular.

Two figures decide whether the best candidate answers at all. *Margin*: how far it scores above the typical one, since texts
about the subject in general score alike, and an answer scores clearly higher. *Missing*: the weight of the most
important word of the question that nothing around the best candidate resembles. The weight of a word
is how far the question's vector moves when the word is left out (occlusion: Li, Monroe and Jurafsky,
"Understanding Neural Networks through Representation Erasure", 2016).

Both go into a logistic model. `tests/benchmarks/answerability.py` fits and evaluates the models; the
constants are what it printed on 2026-11-21 with all-MiniLM-L6-v2: from 130 English
questions of XQuAD (Artetxe et al., 2020), for `BY_WORDS` also 59 Chinese ones, each asked of its 240
paragraphs with and without the one that answers it. On held-out halves the AUC of right
against wrong sentences is 0.91 to 0.94 (`BY_WORDS` 0.93, in Chinese 0.86 to 0.88; there the missing
word adds nothing to the margin, and has no weight).

`least` is a choice: rather show a wrong sentence, which can be checked by its quote, than withhold a
right one. It was made, like the choice of figures, with the questions on the sample handbook in view,
so the rates reached there are no estimate for other documents. At this `least` 98 to 100 % of the
right sentences of XQuAD are shown, and 37 to 48 % of the questions declined whose paragraph was removed
(`BY_WORDS` 100 % and 11 to 24 %). On questions of MTRAG (Katsis et al., 2025), which were not fitted,
the AUC is 0.58: 97 % of the right sentences are shown, and only 12 % of the questions without their
passages declined.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import regex
from numpy.typing import NDArray

from backend.chat.extractive.candidate_sentences import Candidate, heading_context
from backend.search.models import InferenceSection
from indexing.embedding.embedder import Vectors
from indexing.text.normalization import LETTER, fold
from indexing.text.stop_words import ENGLISH, FUNCTION_WORDS
from indexing.text.tokenizer import extract_keywords, words

MEANING_WEIGHT = 0.75
WORDS_WEIGHT = 0.25
MISMATCH_PENALTY = 0.1
"""Subtracted if the question asks for an amount, a time or a person and the sentence has none; half of
it if the sentence has a number, but of other things than the question counts."""
NEIGHBOUR_FACTOR = 0.9
"""The cosine of a chunk that was read only as a neighbour is estimated as the lowest found times this."""

Scores = NDArray[np.float64]
MAX_QUESTION_CHARACTERS = 2000
"""Only the beginning of a longer question is classified."""

_UNITS = (
    r"(?:second|minute|hour|day|week|month|year|decade|centur(?:y|ie)|shift)s?"
    r"|(?:sekunde|minute|stunde|tag|woche|monat|jahr)(?:e|n|en|s)?"
)
_SPACELESS_UNITS = (
    "个?工作日|営業日|秒|分|小时|小時|时间|時間|天|日|周|週|星期|礼拜|个月|ヶ月|か月|カ月|月|年"
)
_MONEY_ASKED = (
    r"cost|pays?|paid|price|earns?|refund|fees?|salary|salaries|wages?|spend|charge|allowance|budget|euros?"
    r"|dollars?|money|fine|bonus|deposit|preis|gehalt|kosten|kostet|lohn|gebühr"
)
_NUMBER_WORDS = (
    "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen"
    "|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million"
    "|billion|once|twice|half|third|quarter|dozen|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf|zwanzig|dreißig"
    "|hundert|tausend"
)
_NUMBER = rf"(?:\d[\d.,]*|\b(?:(?:{_NUMBER_WORDS})[\s-]?(?:and\s)?)+(?!\w)|[一二三四五六七八九十百千万两]+)"
_CURRENCY = r"€|\$|£|¥|元|円|\b(?:euros?|dollars?|pounds?|yuan|yen|francs?|cents?|eur|usd|gbp|cny|rmb|jpy|chf)\b"
_MONTHS = (
    "january|february|march|april|june|july|august|september|october|november|december"
    "|januar|februar|märz|juni|juli|oktober|dezember"
)
_DAYS = "(?:mon|tues|wednes|thurs|fri|satur|sun)days?|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag"
_ROLES = (
    "manager|head|chief|director|officer|engineer|secretary|president|chair(?:man|woman|person)?|team|desk|department"
    "|office|lead|leader|owner|supervisor|colleague|dealer|customer|supplier|employee|board|committee|council|staff"
    "|whoever|everybody|everyone|anyone|anybody|nobody|leiter(?:in)?|abteilung|担当|負責|负责|部|经理|主管|社長|課長|受付"
)
_ROLE = regex.compile(rf"\b(?:{fold(_ROLES)})s?\b")
_NAME = regex.compile(
    r"\b\p{Lu}[\p{L}'’-]+\s+(?:\p{Lu}\.?\s+)?\p{Lu}[\p{L}'’-]+|\S@\S|[\p{Han}\p{Katakana}]"
)
_COUNTED = regex.compile(r"\b(?:how many|wie ?viele)\s+(\w+(?:\s\w+)?)")
_COUNT = regex.compile(rf"{fold(_NUMBER)}[\s-]*((?:[\w%$.,-]+\s+)?[\w-]+)")
MAX_WORDS = 10
"""Words of a question whose weight is measured by leaving them out in turn."""
MAX_SURROUNDING_WORDS = 40
"""Words around the best candidate that are compared by meaning."""
PRIOR_WEIGHT = 8
"""The median of few candidates says little; so many at the usual level are added."""
SIMILARITY_RANGE = (0.3, 0.8)
"""Cosines of two single words: unrelated up to the first, synonyms from the second on."""
_WORD = regex.compile(rf"(?V1){LETTER}++(?:['’._-]{LETTER}++)*+")
_STOP_WORDS = ENGLISH | FUNCTION_WORDS["English"]


class AnswerType(StrEnum):
    AMOUNT = "amount"
    """Any number."""
    MONEY = "money"
    DURATION = "duration"
    TIME = "time"
    """A day, a date, a time of day, a year, or a period."""
    PERSON = "person"
    """A name, a role, a team, or how to reach one."""


_ASKED: tuple[tuple[AnswerType, regex.Pattern[str]], ...] = tuple(
    (kind, regex.compile(fold(pattern)))
    for kind, pattern in (
        (
            AnswerType.MONEY,
            rf"\bhow much\b.*\b(?:{_MONEY_ASKED})\b|\bhow much (?:is|are|do i get|does it)\b"
            r"|\b(?:what|which)\b.{0,20}\b(?:price|fees?|salary|salaries|wages?|costs?|revenue|allowance|refund|bonus|deposit)\b"
            rf"|\bwie ?viel\b.*\b(?:{_MONEY_ASKED}|geld|euro)\b|\bwas kostet\b"
            r"|多少钱|多少錢|价格|いくら|料金|値段",
        ),
        (
            AnswerType.DURATION,
            rf"\bhow (?:long|soon|quickly|fast)\b|\b(?:how many|wie ?viele?n?)\s+(?:\w+\s+)?(?:{_UNITS})\b"
            r"|\bwie (?:lange|schnell)\b|多久|多长时间|几天|几个月|几年|几小时|何日間|何時間|何年間|何か月|どのくらいの期間",
        ),
        (
            AnswerType.TIME,
            r"\bwhen\s+(?:is|are|was|were|will|do|does|did|can|could|must|should|has|have|may|shall)\b"
            r"|\b(?:by|until|till|since|from) when\b|\b(?:what|which) (?:time|day|date|year|month|quarter)\b"
            r"|\bwann\b|\b(?:welche[mnrs]?|an welchem) (?:tag|datum|jahr|monat)\b|\bum wie ?viel uhr\b"
            r"|什么时候|何时|几点|哪天|哪年|哪一天|哪一年|いつ|何時(?!間)|何日(?!間|まで|もら)|何年(?!間)",
        ),
        (
            AnswerType.AMOUNT,
            r"\bhow (?:much|many|often|old|far|high|tall|heavy|big|large|deep|wide|hot|cold|loud|late|early)\b"
            r"|\b(?:what|which)\b.{0,20}\b(?:percentage|number|amount|share|limit|rate|extension|temperature|distance|size)\b"
            r"|\bphone (?:number|extension)\b|\bwie ?(?:viel|viele|oft|alt|weit|hoch|groß|schwer)\b"
            r"|多少|几(?:个|人|次|台|位|名)|何(?:人|回|個|台|度|%|日|名)",
        ),
        (
            AnswerType.PERSON,
            r"\bwh(?:o|om|ose)\b(?!\s+(?:is|are)\s+(?:we|you)\b)|\bwe[rnm](?:\s+(?:ist|sind|hat|kann|muss|soll|leitet|darf))\b"
            r"|\ban wen\b|\bwessen\b|谁|誰|どなた|哪位",
        ),
    )
)


_HELD = {
    AnswerType.AMOUNT: regex.compile(fold(_NUMBER)),
    AnswerType.MONEY: regex.compile(
        fold(
            rf"(?:{_CURRENCY})\s?(?:{_NUMBER})|(?:{_NUMBER})[\s-]*(?:million |billion |万|千)?(?:{_CURRENCY}|per cent|percent|%)"
        )
    ),
    AnswerType.DURATION: regex.compile(
        fold(
            rf"(?:{_NUMBER}|\b(?:an?|one|half an?|each|every|ein(?:e[nmrs]?)?)\b)[\s-]*(?:\w+[\s-]+){{0,2}}?(?:{_UNITS})\b|{_NUMBER}(?:{_SPACELESS_UNITS})"
        )
    ),
    AnswerType.TIME: regex.compile(
        fold(
            rf"\b(?:1\d|20)\d\ds?\b|\b(?:{_MONTHS}|{_DAYS})\b|\bmay \d|\d may\b|\d:\d\d|\bo'clock\b|\buhr\b|\b\d+ ?[ap]\.?m\b|\bnoon\b|\bmidnight\b"
            rf"|\b(?:spring|summer|autumn|winter|today|tomorrow|yesterday|daily|weekly|monthly|yearly)\b|(?:{_NUMBER}|\b(?:an?|one|each|every|first|last|next)\b)[\s-]*(?:\w+[\s-]+)?(?:{_UNITS})\b"
            rf"|{_NUMBER}(?:{_SPACELESS_UNITS})|早上|晚上|上午|下午|中午|凌晨|午前|午後"
        )
    ),
}


def counted_things(question: str) -> frozenset[str]:
    """Return the words after "how many", of which the question asks the number; empty without one."""
    asked = _COUNTED.search(fold(question[:MAX_QUESTION_CHARACTERS]))
    return frozenset(words(asked[1])) if asked else frozenset()


def mentions_count(things: frozenset[str], text: str) -> bool:
    """Whether the text has a number of any of these things ("up to twenty working days")."""
    return any(things & frozenset(words(found[1])) for found in _COUNT.finditer(fold(text)))


def answer_type(question: str) -> AnswerType | None:
    """Return the most specific type that the question asks for; None if none is recognised."""
    folded = fold(question[:MAX_QUESTION_CHARACTERS])
    return next((kind for kind, asked in _ASKED if asked.search(folded)), None)


def holds_answer(kind: AnswerType, text: str) -> bool:
    """Whether the text has anything of this type."""
    if kind is AnswerType.PERSON:
        return _NAME.search(text) is not None or _ROLE.search(fold(text)) is not None
    return _HELD[kind].search(fold(text)) is not None


@dataclass(frozen=True, slots=True)
class WordShares:
    """Weighted shares of the question's words, 0 to 1, one for each candidate."""

    sentence: Scores
    """In the sentence."""
    with_headings: Scores
    """In the sentence and its headings."""
    chunk: Scores
    """In its chunk and the headings."""

    @property
    def mean(self) -> Scores:
        mean: Scores = (self.sentence + self.with_headings + 2 * self.chunk) / 4
        return mean


def word_shares(question: str, found: Sequence[Candidate]) -> WordShares:
    weights = _rarity_weights(question, found)
    chunks = {c.chunk.key: c.chunk for c in found}
    headings = {key: frozenset(words(heading_context(chunk))) for key, chunk in chunks.items()}
    wholes = {
        key: frozenset(words(chunk.embedded_text)) | headings[key] for key, chunk in chunks.items()
    }
    return WordShares(
        sentence=_shares(weights, [c.words for c in found]),
        with_headings=_shares(weights, [c.words | headings[c.chunk.key] for c in found]),
        chunk=_shares(weights, [wholes[c.chunk.key] for c in found]),
    )


def _rarity_weights(question: str, found: Sequence[Candidate]) -> dict[str, float]:
    """Weight each word of the question by its rarity among the candidates, summing to 1."""
    wanted = frozenset(words(extract_keywords(question)))
    holders = Counter(word for c in found for word in wanted & c.words)
    raw = {
        word: math.log(1 + (len(found) - holders[word] + 0.5) / (holders[word] + 0.5))
        for word in sorted(wanted)
    }
    whole = sum(raw.values())
    return {word: weight / whole for word, weight in raw.items()} if whole else {}


def _shares(weights: Mapping[str, float], held: Sequence[frozenset[str]]) -> Scores:
    return np.array([sum(weights[word] for word in weights.keys() & each) for each in held])


def chunk_cosines(found: Sequence[Candidate]) -> Scores:
    """Return the question's cosine with the chunk of each candidate, as the search measured it; 0 to 1."""
    cosines: dict[tuple[str, int], float] = {}
    for section in {id(c.section): c.section for c in found}.values():
        cosines |= _cosines_of(section)
    return np.clip([cosines[c.chunk.key] for c in found], 0.0, 1.0)


def _cosines_of(section: InferenceSection) -> dict[tuple[str, int], float]:
    known = {
        hit.chunk.key: hit.evidence.cosine
        for hit in (section.best, *section.hits)
        if hit.evidence.cosine is not None
    }
    unknown = NEIGHBOUR_FACTOR * min(known.values(), default=0.0)
    return {chunk.key: known.get(chunk.key, unknown) for chunk in section.chunks}


def answer_type_mismatches(question: str, found: Sequence[Candidate]) -> Scores:
    """Rate how far each candidate misses the type of answer: 0, 0.5 or 1.

    1 if it has no amount, time or person and the question asks for one; 0.5 if the question asks how
    many there are of something and the candidate has a number, but of other things.
    """
    kind, things = answer_type(question), counted_things(question)
    if kind is None:
        return np.zeros(len(found))
    return np.array([_mismatch(kind, things, candidate.display_text) for candidate in found])


def _mismatch(kind: AnswerType, things: frozenset[str], text: str) -> float:
    if not holds_answer(kind, text):
        return 1.0
    return 0.5 if things and not mentions_count(things, text) else 0.0


def combine_scores(meaning: Scores, shares: Scores, mismatches: Scores, trust: float) -> Scores:
    """Combine to 0 to 1; meaning counts as far as the embedder supports the question's language."""
    weight = trust * MEANING_WEIGHT
    mixed = (weight * meaning + WORDS_WEIGHT * shares) / (weight + WORDS_WEIGHT)
    bounded: Scores = np.clip(mixed - MISMATCH_PENALTY * mismatches, 0.0, 1.0)
    return bounded


@dataclass(frozen=True, slots=True)
class AnswerEvidence:
    margin: float
    """Of scores, 0 to 1."""
    missing: float
    """0 if all important words are there."""


@dataclass(frozen=True, slots=True)
class AnswerabilityModel:
    """A logistic model of whether the best sentence is right."""

    intercept: float
    margin: float
    missing: float
    typical: float
    """The usual median of scores."""
    least: float
    """The lowest probability at which a sentence is shown."""

    def probability(self, evidence: AnswerEvidence) -> float:
        logit = self.intercept + self.margin * evidence.margin + self.missing * evidence.missing
        return 1 / (1 + math.exp(-logit))


def typical_score(scores: Scores, usual: float) -> float:
    """Return the median, drawn to its usual level if there are few scores."""
    count = len(scores)
    return (count * float(np.median(scores)) + PRIOR_WEIGHT * usual) / (count + PRIOR_WEIGHT)


def margin(scores: Scores, model: AnswerabilityModel) -> float:
    """Return how far the best score is above the typical one."""
    return float(scores.max()) - typical_score(scores, model.typical)


def subject_words(question: str) -> list[str]:
    """Return the words of a question that carry its subject, as they are written, each once."""
    found = dict.fromkeys(_WORD.findall(extract_keywords(question)))
    return [word for word in found if fold(word) not in _STOP_WORDS][:MAX_WORDS]


def remove_word(question: str, word: str) -> str:
    bare = regex.sub(rf"(?V1)(?<!{LETTER}){regex.escape(word)}(?!{LETTER})", "", question)
    return bare if bare.strip() else "?"


def surrounding_words(best: Candidate) -> list[str]:
    """Return the words of the sentence, its headings and its chunk, nearest first."""
    texts = (best.display_text, heading_context(best.chunk), best.chunk.embedded_text)
    found = dict.fromkeys(fold(word) for text in texts for word in _WORD.findall(text))
    return [word for word in found if len(word) > 1 and word not in _STOP_WORDS][
        :MAX_SURROUNDING_WORDS
    ]


def is_contained(word: str, best: Candidate) -> bool:
    """Whether the candidate, its headings or its chunk have the word, in any inflection."""
    around = f"{heading_context(best.chunk)}\n{best.chunk.embedded_text}"
    return frozenset(words(word)) <= frozenset(words(around))


def similarity(wanted: Vectors, present: Vectors) -> Scores:
    """Rate for each wanted word, 0 to 1, how similar the most similar present word is."""
    if not len(present):
        return np.zeros(len(wanted))
    least, most = SIMILARITY_RANGE
    nearest = (wanted @ present.T).max(axis=1).astype(np.float64)
    bounded: Scores = np.clip((nearest - least) / (most - least), 0.0, 1.0)
    return bounded


def missing_weight(weights: Scores, present: Scores) -> float:
    """Return the weight of the most important word that is missing.

    Args:
        weights: how important each word of the question is, 0 to 1 or a little more.
        present: how similar the most similar word around the best candidate is, 0 to 1.
    """
    return float((weights * (1 - present)).max(initial=0.0))


BY_MEANING = AnswerabilityModel(
    intercept=-2.88, margin=12.2, missing=-13.6, typical=0.19, least=0.08
)
BY_WORDS = AnswerabilityModel(intercept=-3.64, margin=9.2, missing=0.0, typical=0.11, least=0.08)
