"""What kind of thing a question asks for, and whether a text holds one.

Told by question words and the shapes of answers, after the answer types of question answering
(Li and Roth, "Learning Question Classifiers", COLING 2002), in English, German, Chinese and
Japanese. A question whose type is not seen asks for nothing in particular.
"""

from enum import StrEnum

import regex

from indexing.text.normalization import fold
from indexing.text.tokenizer import words

LONGEST_QUESTION = 2000
"""Characters that are looked at."""


class AnswerType(StrEnum):
    AMOUNT = "amount"
    """Any number."""
    MONEY = "money"
    DURATION = "duration"
    TIME = "time"
    """A day, a date, a time of day, a year, or a period within which."""
    PERSON = "person"
    """A name, a role, a team, or how to reach one."""


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
_ROLE = regex.compile(rf"\b(?:{fold(_ROLES)})s?\b")
_NAME = regex.compile(
    r"\b\p{Lu}[\p{L}'’-]+\s+(?:\p{Lu}\.?\s+)?\p{Lu}[\p{L}'’-]+|\S@\S|[\p{Han}\p{Katakana}]"
)


_COUNTED = regex.compile(r"\b(?:how many|wie ?viele)\s+(\w+(?:\s\w+)?)")
_COUNT = regex.compile(rf"{fold(_NUMBER)}[\s-]*((?:[\w%$.,-]+\s+)?[\w-]+)")


def counted(question: str) -> frozenset[str]:
    """What is asked how many there are of: the words after "how many"; empty where nothing is."""
    asked = _COUNTED.search(fold(question[:LONGEST_QUESTION]))
    return frozenset(words(asked[1])) if asked else frozenset()


def counts(things: frozenset[str], text: str) -> bool:
    """Whether a number of any of these things stands in the text ("up to twenty working days")."""
    return any(things & frozenset(words(found[1])) for found in _COUNT.finditer(fold(text)))


def answer_type(question: str) -> AnswerType | None:
    """The most particular type that the question asks for; None where none is seen."""
    folded = fold(question[:LONGEST_QUESTION])
    return next((kind for kind, asked in _ASKED if asked.search(folded)), None)


def holds_answer(kind: AnswerType, text: str) -> bool:
    """Whether the text holds anything of this kind."""
    if kind is AnswerType.PERSON:
        return _NAME.search(text) is not None or _ROLE.search(fold(text)) is not None
    return _HELD[kind].search(fold(text)) is not None
