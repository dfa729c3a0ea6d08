"""Check what a question demands: a subject, an answer type, and numbers, names, a role and a year to fit.

Likeness cannot see these: a passage about lab 2 is as near to a question about lab 3, one about Graz as near as
one about Berlin, and the chief financial officer as near as the chief operating officer.

The type of answer is recognized by question words and the shapes of answers, after the answer types
of question answering (Li and Roth, "Learning Question Classifiers", COLING 2002), in English, German,
Chinese and Japanese. A question without a recognized type asks for nothing in particular.
"""

from calendar import day_name, month_abbr, month_name
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import islice
from pathlib import PurePosixPath

import numpy as np
import regex
from numpy.typing import NDArray

from backend.chat.extractive.candidate_sentences import Candidate, distinct_texts, heading_context
from backend.search.document_versions import without_version, years_in
from indexing.chunking.chunk import Chunk
from indexing.text.normalization import LETTER, fold
from indexing.text.stop_words import ENGLISH
from indexing.text.stop_words import FUNCTION_WORDS as FUNCTION_WORDS_OF
from indexing.text.tokenizer import (
    extract_keywords,
    find_identifiers,
    has_digit,
    plain_words,
    words,
)

MAX_WORDS = 10
"""Words of a question whose weight is measured by leaving them out in turn."""
FUNCTION_WORDS = ENGLISH | FUNCTION_WORDS_OF["English"]
WORD = regex.compile(rf"(?V1){LETTER}++(?:['’._-]{LETTER}++)*+")
_MEASURE_ASKED = regex.compile(
    r"\bhow (?:long|much|often|far|old|high|soon|quickly|fast|large|big)\b"
    r"|\bhow many\b(?:(?P<kind>\s[\w-]+)??\s(?:second|minute|hour|day|week|month|year)s\b)?",
    regex.IGNORECASE,
)
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
    r"(?:second|minute|hour|day|week|fortnight|month|year|decade|centur(?:y|ie)|shift)s?"
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
_PERSON_WORDS = (
    "manager|head|chief|director|officer|engineer|secretary|president|chair(?:man|woman|person)?|team|desk|department"
    "|office|lead|leader|owner|supervisor|colleague|dealer|customer|supplier|employee|board|committee|council|staff"
    "|whoever|everybody|everyone|anyone|anybody|nobody|leiter(?:in)?|abteilung|担当|負責|负责|部|经理|主管|社長|課長|受付"
)
_PERSON = regex.compile(rf"\b(?:{fold(_PERSON_WORDS)})s?\b")
_FULL_NAME_PATTERN = (
    r"\b\p{Lu}[\p{L}'’-]+\s+(?:\p{Lu}\.?\s+)?\p{Lu}[\p{L}'’-]+|[\p{Han}\p{Katakana}]"
)
_FULL_NAME = regex.compile(_FULL_NAME_PATTERN)
_NAME = regex.compile(rf"{_FULL_NAME_PATTERN}|\S@\S")
_NAME_ASKED = regex.compile(r"\bwho(?:'s| is| was| are)\b (?:the|our|your)\b")
_COUNTED = regex.compile(r"\b(?:how many|wie ?viele)\s+(\w+(?:\s\w+)?)")
_TIME_COUNTED = regex.compile(
    fold(
        rf"\b(?:how many|wie ?viele?n?)\s+(?:[\w-]+\s+)?(?:{_UNITS})\b"
        r"|(?:多少个?|几个?)(?:天|工作日|周|星期|月|年|小时|分钟)|何(?:日|時|週|年|[かヶカ]月)間"
    )
)
_SUM_NOUNS = r"price|cost|fee|salary|wage|deposit|bonus|allowance|rent|fare"
_SUM_ASKED = regex.compile(
    rf"\bhow much (?:does|do|did|is|are|was|were)\b.*\b(?:{_SUM_NOUNS})s?\b"
    rf"|\bwhat (?:is|are|was|were) (?:[\w-]+ ){{1,3}}(?:{_SUM_NOUNS})s?\s*(?:\?|$|\b(?:for|in|of|per)\b)"
    r"|\bwhat (?:does|do|did|will|would)\b.*\bcost\b|\bwas kostet\b|多少钱|多少錢|多少元|いくら"
)
"""Not "the price list", and not "how much time does it cost"."""
_OF_MONEY = regex.compile(
    fold(
        rf"\b(?:{_SUM_NOUNS}|costs?)s?\b|miete|gehalt|lohn|preis|gebühr|租金|工资|价|费|薪|賃料|給料|料金"
    )
)
_WEIGHT_ASKED = regex.compile(
    r"\b(?:what|how much)\b.*\bweighs?\b|\bhow heavy\b|\bwas wiegt\b|\bwie (?:viel wiegt|schwer ist)\b|多重"
)
_WEIGHT = regex.compile(
    rf"{fold(_NUMBER)}[\s-]*(?:(?:kg|g|mg|t|lbs?|oz|kilos?|(?:kilo)?gram(?:me)?s?|tons?|tonnes?|pounds?|ounces?|gramm|tonnen?)\b|公斤|千克|克|斤|吨)"
)
_FIGURE = regex.compile(rf"(?<![\w.,-])\d[\d.,]*+(?![\w-])(?!\s(?:{fold(_UNITS)})\b)")
"""A number that neither is part of a code nor counts a time."""
_NONE = regex.compile(
    r"\b(?:free|nothing|no|none|not|never|unlimited|kostenlos|gratis|keine?n?|nichts?)\b|免费|免費|不|无|無|ない|ません"
)
_TELEPHONE_ASKED = regex.compile(
    r"\b(?:tele)?phone (?:number|extension)\b|\btelefonnummer\b|电话号码|電話番号"
)
_TELEPHONE = regex.compile(r"\d[\d\s()/.-]+\d")
_ANY_COUNT = regex.compile(
    rf"{fold(_NUMBER)}|\b(?:no|none|nobody|zero|one|single|both|couple|pair|several|unlimited|keine?[mnrs]?|eine?[mnrs]?|mehrere)\b"
)
_COUNT = regex.compile(rf"{fold(_NUMBER)}[\s-]*((?:[\w%$.,-]+\s+)?[\w-]+)")
SHORT_QUESTION = 4
"""Words of its subject up to which each name of a question counts."""
SAME_STEM = 4
"""Letters that a country and its people, or a role and its office ("finance", "financial"), have in common."""

_CAPITALIZED = rf"(?V1)\p{{Lu}}{LETTER}++(?:['’.-]{LETTER}++)*+"
_NAMES = regex.compile(
    rf"(?<=[^\s.?!:]\s+[\"'(]?)(?!I\b){_CAPITALIZED}(?:\s(?:of|and|or|&)\s(?:the\s)?{_CAPITALIZED})*+"
)
_NUMBERED_NAME = regex.compile(
    rf"(?V1)(?<![\w.])(?P<name>(?<=[^\s.?!:]\s)\p{{Lu}}{LETTER}++|\p{{Lu}}{{2,}})\s(?P<number>\d{{1,6}})(?![\w%]|[.,:/]\d)"
)
"""At the beginning of a sentence, where any word has a capital, an abbreviation alone."""
_NUMBERED = regex.compile(r"(\p{L}+)[\s:#._-]{0,3}0*(\d+)(?!\d)")
_DATE_NAMES = frozenset(name.casefold() for name in (*month_name, *month_abbr, *day_name) if name)
_INITIALS = regex.compile(r"\p{Lu}{2,5}")
_ROLE_LIST = """
head chief director manager officer president chair chairman chairwoman chairperson lead leader boss supervisor secretary
minister
"""
_ROLES = frozenset(_ROLE_LIST.split())
_RANK_LIST = "executive deputy vice first last final only current former new old next present"
_GENERIC = _ROLES | frozenset(_RANK_LIST.split())
_ROLE = rf"(?:{'|'.join(sorted(_ROLES, key=len, reverse=True))})"
_ROLE_ASKED = regex.compile(
    rf"\bwho(?:'s| is| was) (?:the|our|your) (?P<role>(?:[\w&-]+ ){{0,3}}{_ROLE}(?: (?:of|for) (?:the )?[\w&-]+)?|c[a-z]o)\b"
)


def question_keywords(question: str) -> str:
    """Return the words of a question that are looked for: "how long" and "how many days" stand for a type of answer alone."""
    asked = _MEASURE_ASKED.sub(lambda found: f"{found['kind'] or ''} ", question)
    return extract_keywords(asked if asked.strip(" ?") else question)


def subject_words(question: str) -> list[str]:
    """Return the words of a question that carry its subject, as they are written, each once."""
    found = dict.fromkeys(WORD.findall(question_keywords(question)))
    return [word for word in found if fold(word) not in FUNCTION_WORDS][:MAX_WORDS]


def asks_nothing(question: str) -> bool:
    """Return whether a message has no subject, or asks nothing of it: "hello", "Why?", "What about Denver?"."""
    if next(find_identifiers(question), None):
        return False
    if _NO_POINT.match(fold(question)):
        return True
    if _SPACELESS_LETTER.search(question):
        return False
    return len(question.split()) == 1 or not subject_words(question)


def is_whole_statement(candidate: Candidate) -> bool:
    """Return whether a sentence is neither a question nor cut off."""
    return _CUT_OR_ASKED.search(candidate.text) is None


def fits_numbers(question: str, candidate: Candidate) -> bool:
    """Return whether a sentence speaks of the same "section 4", "lab 2" and the like, or of none."""
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
    FREQUENCY = "frequency"
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
            r"|\bwhat (?:does|do|did|will|would)\b.*\bcost\b"
            r"|\b(?:what|which)\b.{0,20}\b(?:price|fees?|salary|salaries|wages?|costs?|revenue|allowance|refund|bonus|deposit)\b"
            rf"|\bwie ?viel\b.*\b(?:{_MONEY_ASKED}|geld|euro)\b|\bwas kostet\b"
            r"|多少钱|多少錢|价格|いくら|料金|値段",
        ),
        (
            AnswerType.FREQUENCY,
            r"\bhow (?:often|frequently)\b|\bwie oft\b|多久.{0,10}一次|どのくらいの頻度",
        ),
        (
            AnswerType.DURATION,
            rf"\bhow (?:long|soon|quickly|fast)\b|\b(?:how many|wie ?viele?n?)\s+(?:\w+\s+)?(?:{_UNITS})\b"
            r"|\bwie (?:lange|schnell)\b|多久|多长时间|多少个?(?:天|月|年|周|星期|小时)|几天|几个月|几年|几小时|何日間|何時間|何年間|何か月|どのくらいの期間",
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
            r"\bhow (?:much|many|old|far|high|tall|heavy|big|large|deep|wide|hot|cold|loud|late|early)\b"
            r"|\b(?:what|which)\b.{0,20}\b(?:percentage|number|amount|share|limit|rate|extension|temperature|distance|size)\b"
            r"|\bphone (?:number|extension)\b|\bwie ?(?:viel|viele|alt|weit|hoch|groß|schwer)\b"
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
    AnswerType.FREQUENCY: regex.compile(
        fold(
            rf"\b(?:every|each|jede[nmrs]?|alle)\s+(?:[\w-]+\s+){{0,2}}?(?:{_UNITS}|{_DAYS})\b"
            rf"|(?:{_NUMBER}|\b(?:once|twice|times|einmal|mal))\s+(?:[\w-]+\s+)?(?:an?|per|every|each|pro|im)\s+(?:{_UNITS})\b"
            r"|\b(?:hourly|daily|nightly|weekly|monthly|quarterly|yearly|annually|regularly|always|usually|often|sometimes|seldom|rarely|never)\b"
            r"|\b(?:täglich|wöchentlich|monatlich|jährlich|immer|selten|nie)\b|每|毎|ごと|次|回|很少|从不"
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
    """Return whether the text has a number of any of these things ("up to twenty working days")."""
    return any(things & frozenset(words(found[1])) for found in _COUNT.finditer(fold(text)))


def holds_count(question: str, candidate: Candidate) -> bool:
    """Return whether a sentence has the figures asked for: how many there are, also none, or a telephone number."""
    text = fold(candidate.display_text)
    if _TELEPHONE_ASKED.search(fold(question[:MAX_QUESTION_CHARACTERS])):
        return _TELEPHONE.search(text) is not None
    return not counted_things(question) or _ANY_COUNT.search(text) is not None


def holds_counted_time(question: str, candidate: Candidate) -> bool:
    """Return whether a sentence has a time, or a word for none, if the question asks for a number of days or such."""
    is_asked = _TIME_COUNTED.search(fold(question[:MAX_QUESTION_CHARACTERS])) is not None
    return not is_asked or _holds_or_denies(AnswerType.DURATION, candidate)


def holds_sum(question: str, candidate: Candidate) -> bool:
    """Return whether a sentence has a sum, or a word for none, if the question asks what something costs.

    A number is a sum as well where the sentence speaks of money: "two months' rent", "an allowance of 14 a day".
    """
    if _SUM_ASKED.search(fold(question[:MAX_QUESTION_CHARACTERS])) is None:
        return True
    text = candidate.display_text
    is_of_money = _OF_MONEY.search(fold(text)) is not None
    return _holds_or_denies(AnswerType.MONEY, candidate) or (
        is_of_money and holds_answer(AnswerType.AMOUNT, text)
    )


def holds_weight(question: str, candidate: Candidate) -> bool:
    """Return whether a sentence has a weight if the question asks what something weighs."""
    if _WEIGHT_ASKED.search(fold(question[:MAX_QUESTION_CHARACTERS])) is None:
        return True
    return _WEIGHT.search(fold(candidate.display_text)) is not None or _has_figure(candidate)


def _holds_or_denies(kind: AnswerType, candidate: Candidate) -> bool:
    """Return whether a sentence has anything of this type or says that there is none."""
    text = candidate.display_text
    return (
        holds_answer(kind, text) or _has_figure(candidate) or _NONE.search(fold(text)) is not None
    )


def _has_figure(candidate: Candidate) -> bool:
    """Return whether a row of a table has a number whose unit the column may say."""
    return (
        candidate.text.startswith("|") and _FIGURE.search(fold(candidate.display_text)) is not None
    )


def answer_type(question: str) -> AnswerType | None:
    """Return the most specific type that the question asks for; None if none is recognized."""
    folded = fold(question[:MAX_QUESTION_CHARACTERS])
    return next((kind for kind, asked in _ASKED if asked.search(folded)), None)


def holds_answer(kind: AnswerType, text: str) -> bool:
    """Return whether the text has anything of this type."""
    if kind is AnswerType.PERSON:
        return _NAME.search(text) is not None or _PERSON.search(fold(text)) is not None
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
    asks_name = _NAME_ASKED.search(fold(question[:MAX_QUESTION_CHARACTERS])) is not None
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


def names_unknown_names(question: str, found: Sequence[Candidate]) -> bool:
    """Return whether a short question, and no list of keywords, has a name that no passage holds which was found."""
    names = list(islice(_NAMES.findall(question), MAX_WORDS))
    subject = subject_words(question)
    is_list_of_keywords = len(subject) == len(question.split())
    if not names or is_list_of_keywords or len(subject) > SHORT_QUESTION:
        return False
    texts = distinct_texts(found)
    held = frozenset(word for text in texts for word in words(text))
    return not all(_is_held(name, held) or _is_spelled_out(name, texts) for name in names)


def _is_held(name: str, held: frozenset[str]) -> bool:
    """Return whether a word of a name ("Bendigo and Geelong") is held, or one that begins alike ("Indian", "India")."""
    parts = frozenset(words(name)) - FUNCTION_WORDS
    return not parts or any(_has_stem(part, held) for part in parts)


def _has_stem(word: str, held: Iterable[str]) -> bool:
    begins = word[: max(SAME_STEM, len(word) - 1)]
    return word in held or (
        len(word) > SAME_STEM and any(other.startswith(begins) for other in held)
    )


def _is_spelled_out(name: str, texts: Iterable[str]) -> bool:
    """Return whether words one after the other begin with the letters of an abbreviation."""
    return _INITIALS.fullmatch(name) is not None and any(
        fold(name) in "".join(_initials(text)) for text in texts
    )


def _initials(text: str) -> Iterator[str]:
    return (word[0] for word in plain_words(text) if word not in FUNCTION_WORDS)


def holds_every_numbered_name(question: str, candidate: Candidate) -> bool:
    """Return whether a passage has all names with a number that the question has, such as "PEP 8" and "Apollo 11".

    Each may stand in the passage, its headings or its file name. A year is not the number of a name:
    `fits_years` judges it.
    """
    wanted = {
        (fold(found["name"]), found["number"].lstrip("0"))
        for found in _NUMBERED_NAME.finditer(question)
        if fold(found["name"]) not in _DATE_NAMES | FUNCTION_WORDS
    }
    wanted = {(name, number) for name, number in wanted if not years_in(number)}
    if not wanted:
        return True
    chunk = candidate.chunk
    file = PurePosixPath(chunk.document_id).name
    text = f"{file}\n{heading_context(chunk)}\n{chunk.embedded_text}"
    return wanted <= set(_NUMBERED.findall(fold(text)))


def holds_role(question: str, candidate: Candidate) -> bool:
    """Return whether a sentence or its headings have what tells the role asked for from others.

    A person has to stand there as well, if one is asked for. "Head" and "chief" tell nothing; of a chief operating
    officer "operating" does. Of a table only the row counts, of a text the whole passage.
    """
    asked = _ROLE_ASKED.search(fold(question))
    if asked is None:
        return True
    chunk = candidate.chunk
    is_row = candidate.text.startswith("|")
    said = candidate.text if is_row else chunk.embedded_text
    text = f"{heading_context(chunk)}\n{said}"
    if regex.fullmatch(r"c[a-z]o", asked["role"]):
        # "Chief executive" is a CEO, too.
        return asked["role"] in plain_words(text) or asked["role"][:2] in "".join(_initials(text))
    wanted = [word for word in plain_words(asked["role"]) if word not in _GENERIC | FUNCTION_WORDS]
    held = frozenset(plain_words(text))
    return holds_answer(AnswerType.PERSON, said) and all(_has_stem(word, held) for word in wanted)


def fits_years(question: str, candidate: Candidate, found: Sequence[Candidate]) -> bool:
    """Return whether each year of the question stands in the chunk or its headings, or in the time that it is valid."""
    if not has_digit(question):
        return True
    chunk = candidate.chunk
    held = years_in(f"{heading_context(chunk)} {chunk.embedded_text}")
    unknown = years_in(question) - held
    return not unknown or all(_is_valid_in(int(year), chunk, found) for year in unknown)


def _is_valid_in(year: int, chunk: Chunk, found: Sequence[Candidate]) -> bool:
    began = chunk.updated_at
    if began is None:
        return False
    title = without_version(chunk.title)
    later = [
        other.updated_at.year
        for other in {each.chunk.document_id: each.chunk for each in found}.values()
        if other.updated_at and other.updated_at > began and without_version(other.title) == title
    ]
    return began.year <= year <= min(later, default=year)
