"""Check what a question demands by its form: a subject, an answer type, and codes and numbers to fit.

Likeness cannot see these: a passage about lab 2 is as near to a question about lab 3.

The type of answer is recognised by question words and the shapes of answers, after the answer types
of question answering (Li and Roth, "Learning Question Classifiers", COLING 2002), in English, German,
Chinese and Japanese. A question without a recognised type asks for nothing in particular.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import islice

import numpy as np
import regex
from numpy.typing import NDArray

from backend.chat.extractive.candidate_sentences import Candidate, distinct_texts
from backend.chat.extractive.relevance import subject_words
from indexing.text.analysis import add_joined_codes, join_code
from indexing.text.normalization import fold
from indexing.text.tokenizer import contains_term, find_identifiers, words

MAX_CODES = 16
_NO_POINT = regex.compile(r"(?:and|but|so)?\s*(?:what|how) about\b|und was ist mit\b")
_SPACELESS_LETTER = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}]")
_CUT_OR_ASKED = regex.compile(r"(?:\?|？|\.\.\.|…)[\"'”’»)\]」』）]*$")
_NAMED_NUMBER = regex.compile(
    r"\b(annex|appendix|article|band|building|chapter|class|floor|form|gate|grade|lab|level|line|model|phase|"
    r"release|room|section|stage|step|tier|type|version)s? (\d+)\b"
)

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
_FULL_NAME_PATTERN = (
    r"\b\p{Lu}[\p{L}'’-]+\s+(?:\p{Lu}\.?\s+)?\p{Lu}[\p{L}'’-]+|[\p{Han}\p{Katakana}]"
)
_FULL_NAME = regex.compile(_FULL_NAME_PATTERN)
_NAME = regex.compile(rf"{_FULL_NAME_PATTERN}|\S@\S")
_HOLDER_ASKED = regex.compile(r"\bwho(?:'s| is| was| are)\b (?:the|our|your)\b")
_COUNTED = regex.compile(r"\b(?:how many|wie ?viele)\s+(\w+(?:\s\w+)?)")
_TELEPHONE_ASKED = regex.compile(
    r"\b(?:tele)?phone (?:number|extension)\b|\btelefonnummer\b|电话号码|電話番号"
)
_TELEPHONE = regex.compile(r"\d[\d\s()/.-]+\d")
_ANY_COUNT = regex.compile(
    rf"{fold(_NUMBER)}|\b(?:no|none|nobody|zero|one|single|both|couple|pair|several|unlimited|keine?[mnrs]?|eine?[mnrs]?|mehrere)\b"
)
_COUNT = regex.compile(rf"{fold(_NUMBER)}[\s-]*((?:[\w%$.,-]+\s+)?[\w-]+)")


def asks_nothing(question: str) -> bool:
    """Whether a message has no subject, or nothing that is asked of it: "hello", "Why?", "What about Denver?"."""
    if next(find_identifiers(question), None):
        return False
    if _NO_POINT.match(fold(question)):
        return True
    if _SPACELESS_LETTER.search(question):
        return False
    return len(question.split()) == 1 or not subject_words(question)


def respell_codes(question: str, found: Sequence[Candidate]) -> str:
    """Write codes of the question as the passages do that were found: `E2207` as `E-2207`."""
    texts = distinct_texts(found)
    for code in _codes(question):
        if not any(contains_term(text, code) for text in texts):
            question = question.replace(code, _spelling_of(code, texts) or code)
    return question


def _spelling_of(code: str, texts: Iterable[str]) -> str | None:
    joined = join_code(fold(code))
    spellings = (
        span.of(text)
        for text in texts
        if joined in add_joined_codes(words(text))
        for span in find_identifiers(text)
    )
    return next((each for each in spellings if join_code(fold(each)) == joined), None)


def names_unknown_codes(question: str, found: Sequence[Candidate]) -> bool:
    """Whether the question names codes and no passage that was found has any of them."""
    codes, texts = _codes(question), distinct_texts(found)
    return bool(codes) and not any(contains_term(text, code) for code in codes for text in texts)


def _codes(question: str) -> list[str]:
    return [span.of(question) for span in islice(find_identifiers(question), MAX_CODES)]


def is_whole_statement(candidate: Candidate) -> bool:
    """Whether a sentence is neither a question nor cut off."""
    return _CUT_OR_ASKED.search(candidate.text) is None


def fits_numbers(question: str, candidate: Candidate) -> bool:
    """Whether a sentence speaks of the same "section 4", "lab 2" and the like, or of none."""
    asked, said = (_named_numbers(text) for text in (question, candidate.display_text))
    return all(said[noun] & numbers for noun, numbers in asked.items() if noun in said)


def _named_numbers(text: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for noun, number in _NAMED_NUMBER.findall(fold(text)):
        found.setdefault(noun, set()).add(number)
    return found


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
            rf"(?:{_NUMBER}|(?<!\b(?:times|once|twice)(?: in)? )\b(?:an?|one|half an?|each|every|ein(?:e[nmrs]?)?)\b)[\s-]*"
            rf"(?:(?!times\b)\w+[\s-]+){{0,2}}?(?:{_UNITS})\b|{_NUMBER}(?:{_SPACELESS_UNITS})"
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


def holds_count(question: str, candidate: Candidate) -> bool:
    """Whether a sentence has the figures asked for: how many there are, also none, or a telephone number."""
    text = fold(candidate.display_text)
    if _TELEPHONE_ASKED.search(fold(question[:MAX_QUESTION_CHARACTERS])):
        return _TELEPHONE.search(text) is not None
    return not counted_things(question) or _ANY_COUNT.search(text) is not None


def answer_type(question: str) -> AnswerType | None:
    """Return the most specific type that the question asks for; None if none is recognised."""
    folded = fold(question[:MAX_QUESTION_CHARACTERS])
    return next((kind for kind, asked in _ASKED if asked.search(folded)), None)


def holds_answer(kind: AnswerType, text: str) -> bool:
    """Whether the text has anything of this type."""
    if kind is AnswerType.PERSON:
        return _NAME.search(text) is not None or _ROLE.search(fold(text)) is not None
    return _HELD[kind].search(fold(text)) is not None


def answer_type_mismatches(question: str, found: Sequence[Candidate]) -> NDArray[np.float64]:
    """Rate how far each candidate misses the type of answer: 0, 0.5 or 1.

    1 if it has no amount, time or person and the question asks for one, or no name and the question asks
    who has a role; 0.5 if the question asks how many there are of something and the candidate has a number,
    but of other things.
    """
    kind, things = answer_type(question), counted_things(question)
    if kind is None:
        return np.zeros(len(found))
    asks_name = _HOLDER_ASKED.search(fold(question[:MAX_QUESTION_CHARACTERS])) is not None
    return np.array(
        [
            1.0
            if asks_name and _FULL_NAME.search(each.display_text) is None
            else _mismatch(kind, things, each.display_text)
            for each in found
        ]
    )


def _mismatch(kind: AnswerType, things: frozenset[str], text: str) -> float:
    if not holds_answer(kind, text):
        return 1.0
    return 0.5 if things and not mentions_count(things, text) else 0.0
