"""Ask a question of something else: "How long is the warranty?" of parental leave.

What stands in place of what is read off the forms of both: a code takes the place of a code, a name that of a name, an
amount that of an amount in the same unit, and a subject that of a subject of its form. Where the forms do not tell, nothing is put in.
"""

import regex

from indexing.text.tokenizer import find_identifiers

_NAME = r"\p{Lu}\p{Ll}[\p{L}'-]*+(?:\s\p{Lu}\p{Ll}[\p{L}'-]*+)*+"
_PLACED_NAME = regex.compile(rf"(?<=\s(?:in|at|for|to|from|of)\s){_NAME}")
_ONLY_NAME = regex.compile(_NAME)
_AMOUNT = regex.compile(r"(?<![\d.,])(?P<number>\d[\d.,]*+)\s(?P<unit>\p{L}++)")
_FRAME = regex.compile(
    r"(?i)^(?P<asks>(?:how\s\w+|when|where)\s(?:is|are|was|were))"
    r"\s(?!(?:i|we|you|they|he|she|it|this|that|these|those|there|one)\b)(?P<subject>.+?)(?P<end>\s(?:valid|due|open|closed|held|paid|served))?$"
    r"|^(?P<asks>(?:how\s\w+|when|where|what)\s(?:does|do|did|will))"
    r"\s(?!(?:i|we|you|they|he|she|it|this|that|these|those|there|one)\b)(?P<subject>.+?)(?P<end>\s(?:apply|begin|close|cost|end|expire|happen|last|mean|open|run|start|take"
    r"|weigh|work))$"
)
"""Questions whose question words say what is asked, so that another subject leaves nothing out."""
_CHINESE_FRAME = regex.compile(
    r"^(?P<subject>[^的在是有要会能多几什哪谁和与，,]{1,16})(?P<asks>(?:是|有|要)?(?:多少(?:钱|天)?|多久|多长(?:时间)?|什么时候|几天))$"
)
_SUBJECT_NAMED = regex.compile(
    r"(?i)^(?:(?:how\s\w+|when|where|what|who|which\s\w+)\s(?:is|are|was|were|does|do|did)|(?:is|are)\sthere)\s(?:the|an?|my|our|\p{L}{4,})\b"
)
_COMPLEMENT = regex.compile(r"(?i)\s(?:of|on|for|with|to|from|by|under|per|about|between)\s")
_SETTING = regex.compile(r"(?i)\s(?:in|at|during)\s.+$")
"""Where or when something is, which holds of another subject as well."""
_DETERMINER = regex.compile(
    r"(?i)(?:the|an?|my|your|our|their|its|his|her|this|that|these|those)\s"
)
_SINGULAR = regex.compile(r"(?i)(?:[^s]|ss|us|is)$")


def ask_of(topic: str, question: str) -> str | None:
    """Return the question with `topic` in place of what was asked about; None where the forms do not tell its place."""
    return (
        _exchange_code(topic, question)
        or _exchange_name(topic, question)
        or _exchange_amount(topic, question)
        or _fill(topic, question)
    )


def names_subject(question: str) -> bool:
    """Return whether a question of few words says what it is about ("Where is the canteen?", unlike "Who pays?")."""
    return _SUBJECT_NAMED.match(question) is not None


def _exchange_code(topic: str, question: str) -> str | None:
    given = [span.of(topic) for span in find_identifiers(topic)]
    found = [*find_identifiers(question)]
    if given != [topic] or len(found) != 1:
        return None
    return f"{question[: found[0].start]}{topic}{question[found[0].end :]}"


def _exchange_name(topic: str, question: str) -> str | None:
    names = _PLACED_NAME.findall(question)
    if len(names) != 1 or not _ONLY_NAME.fullmatch(topic):
        return None
    return _PLACED_NAME.sub(topic, question)


def _exchange_amount(topic: str, question: str) -> str | None:
    given = _AMOUNT.fullmatch(topic)
    if given is None:
        return None
    unit = given["unit"].casefold()
    found = [one for one in _AMOUNT.finditer(question) if one["unit"].casefold() == unit]
    if len(found) != 1:
        return None
    start, end = found[0].span("number")
    return f"{question[:start]}{given['number']}{question[end:]}"


def _fill(topic: str, question: str) -> str | None:
    bare = question.rstrip(" ?.!？。！")
    if chinese := _CHINESE_FRAME.match(bare):
        return f"{topic}{chinese['asks']}？"
    frame = _FRAME.match(bare)
    if frame is None or not _takes_place_of(topic, frame["subject"]):
        return None
    setting = _SETTING.search(frame["subject"])
    asks = _agree(frame["asks"], topic)
    return f"{asks} {topic}{setting[0] if setting else ''}{frame['end'] or ''}?"


def _agree(asks: str, topic: str) -> str:
    """Put the verb into the number of the topic."""
    words, _, verb = asks.rpartition(" ")
    number = 0 if _is_singular(topic) else 1
    pairs = (("is", "are"), ("was", "were"), ("does", "do"))
    return f"{words} {next((pair[number] for pair in pairs if verb in pair), verb)}"


def _takes_place_of(topic: str, subject: str) -> bool:
    """Return whether a topic is one as the subject is.

    It is not where the subject is of it ("the warranty", "the scanner"). A noun in the singular without an article
    ("parental leave") is a subject of its own.
    """
    if not topic[0].islower():
        return False
    head, *complement = _COMPLEMENT.split(_SETTING.sub("", subject), maxsplit=1)
    stands_bare = _is_bare(topic) and _is_singular(topic)
    if complement:
        return stands_bare and not (_is_bare(complement[0]) and _is_singular(complement[0]))
    if _is_bare(topic) != _is_bare(head):
        return stands_bare
    return _is_bare(topic) or _is_singular(topic) == _is_singular(head)


def _is_bare(phrase: str) -> bool:
    return phrase[0].islower() and _DETERMINER.match(phrase) is None


def _is_singular(phrase: str) -> bool:
    head = _COMPLEMENT.split(_SETTING.sub("", phrase), maxsplit=1)[0]
    return _SINGULAR.search(head) is not None
