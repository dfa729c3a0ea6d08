"""Follow-up questions without a language model: by rules, in English and Chinese.

"And in 2024?", "what about trains?", "when does it end?", "那2024年呢？" are asked together with the question before them;
where it can be recognized what "parental leave" of "what about parental leave?" takes the place of, the question is asked of that.
Where a rule cannot tell what is meant, as with "the second one", that is said.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import regex

from backend.search.llm_protocol import ChatMessage
from backend.search.question_frames import ask_of, names_subject
from backend.search.retrieval import (
    EARLIER_TURNS,
    needs_history,
    normalize_query,
    says_something,
)
from indexing.text.tokenizer import extract_keywords, find_exact_terms, words

FOLLOW_UP = "follow_up"
"""The step that is lost where no rule tells what a follow-up means."""
MOST_BEFORE_PRONOUN = 1
"""Content words. A pronoun behind more of them refers to what the question itself names."""
LONGEST_ELLIPSIS = 8
"""Words after "and" or "what about"; a longer question stands by itself."""

_LEAD = regex.compile(
    r"(?i)^(?:(?:ok|okay|so|well|thanks|yes|no)[,.!]?\s+)*(?:(?:and\s+|but\s+)?(?:what|how)\s+(?:about|of)|and|but|or)\b[\s,]*"
)
_CHINESE_LEAD = regex.compile(r"^(?:那么?|还有|以及|如果是|换成|关于)[，,\s]*(?=\S)")
_CHINESE_ELLIPSIS = regex.compile(r"^(?P<topic>[^？?。！!]{1,16}?)呢[？?]?$")
_ADDITION = regex.compile(
    r"(?i)(?:about|above|after|against|as|at|because|before|below|between|by|during|for|from|how|if|in|into|near|of|on|outside|over"
    r"|per|since|than|through|till|to|under|unless|until|what|when|where|whether|which|while|who|whom|whose|why|with|within|without)\b"
    r"|[在对给从按]|如果"
)
"""What is asked of the same thing, as "for contractors", and names nothing to ask about."""
_QUESTION = regex.compile(
    r"(?i)(?:what|when|where|which|who|whom|whose|why|how|is|are|was|were|do|does|did|can|could|may|must|should|will|would|has|have)\b"
)
_WHY = regex.compile(
    r"(?i)(?:(?:but|and|so)\s+)?(?:why(?:\s+(?:not|so))?|how(?:\s+(?:so|come))?|when|where|who|which|since\s+when|what\s+for)"
    r"|为什么|为何|怎么办|什么时候|谁|哪里"
    r"|warum|wieso|weshalb|wann|pourquoi|quand|¿?por\s+qué|¿?cuándo|なぜ(?:ですか)?|どうして(?:ですか)?"
)
_MORE = regex.compile(
    r"(?i)(?:please\s+)?(?:(?:tell|show|give)\s+me\s+more(?:\s+(?:details?|information))?(?:\s+about\s+(?:it|this|that))?"
    r"|(?:any\s+|some\s+)?more(?:\s+(?:details?|information))?|(?:in\s+)?(?:more\s+)?details?|go\s+on|continue|elaborate|explain(?:\s+(?:it|this|that|more))?"
    r"|and(?:\s+then)?|so(?:\s+what)?|then\s+what|what\s+(?:else|more)|anything\s+else|really)(?:,?\s+please)?"
    r"|继续|接着说|详细(?:说说|一点|点|介绍)?|(?:再|多|展开)说(?:说|一点|点)|具体(?:说说)?|还有(?:吗|别的吗)?|然后|更多|真的吗"
    r"|und|weiter|mehr(?:\s+dazu)?|erzähle?\s+mir\s+mehr(?:\s+(?:dazu|darüber))?|et|encore|continuez?|dis-m['’]en\s+plus|¿?y|más|continúa|cuéntame\s+más|dime\s+más"
    r"|もっと(?:詳しく)?(?:教えて)?(?:ください)?|詳しく(?:教えて)?(?:ください)?|続けて(?:ください)?|それで|他には"
)
_THANKS = regex.compile(
    r"(?i)^(?:thanks|thank\s+you|danke|merci|gracias|谢谢|多谢|ありがとう)(?!\p{Latin})[^?？.]{0,40}[.!。！]*$"
)
_ENDS = " ?？.。!！…，,"
_PRONOUN = regex.compile(
    r"(?i)\b(?:(?P<dummy>it)(?=\s+(?:(?:is|be|was)\s+)?(?:possible|necessary|allowed|ok|okay|required|mandatory|better|true|important"
    r"|worth|enough|safe|legal)\b)|it|its|they|them|their|he|she|him|his|hers?"
    r"|(?:this|that|these|those)(?=\s*(?:[?.!,]|$|(?:is|are|was|were|mean|means|apply|applies|work|works|cost|costs|happen|happens"
    r"|end|ends|begin|begins|start|starts|one|ones|case|too|also|include|includes)\b))|there(?=\s*[?.!]))(?!\w)"
)
_CHINESE_PRONOUN = regex.compile(
    r"(?<!其)[它他]们?|她们?|(?:这|那)(?:个|些|种|项|件)?(?!\s*(?:里|么|样|边|儿|\d{0,4}年|月|周|次|家公司))|其(?!他|它|实|余)"
)
_ORDINAL = regex.compile(
    r"(?i)\bthe\s+(?:first|second|third|fourth|last|former|latter|other)(?:\s+(?:one|option|point|of\s+(?:them|these|those)))?(?=\s*(?:[?.!,]|$))"
    r"|第[一二三四五两](?:个|项|种|点)(?=[^\p{Han}]|的|呢|是|怎|有|多少|多久|几|什么|为什么|$)|前者|后者"
)
_NOTHING_BEFORE = "none of your last questions can be searched on its own. Ask a complete question."
_DATED = regex.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)年?")
_LETTER = regex.compile(r"\p{L}")
_YEAR = regex.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A message as it is searched."""

    question: str
    """The message itself, or what it means together with a question before it."""
    unclear: str = ""
    """What is said of it where no rule can tell what it means."""
    subject: str = ""
    """What it names instead of what was asked before: what says nothing of it is no answer."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a conversation is about."""

    question: str = ""
    """The last one that stands by itself."""
    of_few_words: str = ""
    """The last one such as "Is there a bus?"."""
    added: str = ""
    """What was last asked instead of a part of it, where no rule tells of which part."""

    @property
    def base(self) -> str:
        return self.question or self.of_few_words

    @property
    def whole(self) -> str:
        return f"{self.base} {self.added}".strip()


def resolve_follow_up(message: str, history: Sequence[ChatMessage]) -> FollowUp:
    """Put in what a message leaves to the questions before it."""
    if not history:
        return FollowUp(message)
    asked = _Asked()
    for text in [turn.text for turn in history if turn.role == "user"][-EARLIER_TURNS:]:
        _, asked = _read(text, asked)
    return _read(message, asked)[0]


def _read(message: str, before: _Asked) -> tuple[FollowUp, _Asked]:
    """Return a message as it is searched, and what the conversation is about after it."""
    line = normalize_query(message)
    bare = line.strip(_ENDS)
    if _WHY.fullmatch(bare.removesuffix("呢")) or _MORE.fullmatch(bare.removesuffix("呢")):
        return _ask_more(message, line, before), before
    if (added := _find_ellipsis(line)) is not None:
        return _read_ellipsis(message, added, before)
    if not (_refers_back(line) or _ORDINAL.search(line)):
        return FollowUp(message), _stand_alone(line, before)
    return _lean_on(before.whole, message, line), before


def _ask_more(message: str, line: str, before: _Asked) -> FollowUp:
    """Search again what was asked before; a question word ("why?") is asked of it."""
    if not before.base:
        return FollowUp(message, _NOTHING_BEFORE)
    return FollowUp(
        before.whole if _MORE.fullmatch(line.strip(_ENDS)) else f"{before.whole} {line}"
    )


def _read_ellipsis(message: str, added: str, before: _Asked) -> tuple[FollowUp, _Asked]:
    """Read what is asked instead of what was asked before."""
    topic = added.strip(_ENDS)
    named = _DATED.sub("", topic).strip()
    names_something = says_something(named)
    is_topic = names_something and not _ADDITION.match(topic) and not _ORDINAL.search(message)
    if not before.base and is_topic:
        return FollowUp(message), replace(before, question=topic)
    if not before.base or _ORDINAL.search(message):
        return _lean_on(before.base, message, added), before
    if _refers_back(added) or _QUESTION.match(added):
        return _lean_on(before.whole, message, added), before
    if moved := _move_to_year(before.base, added):
        after = replace(before, question=moved)
        return FollowUp(after.whole), after
    if is_topic and (asked := ask_of(topic, before.base)):
        return FollowUp(asked, subject=_find_new_words(topic, before.base)), _Asked(asked)
    found = FollowUp(f"{before.base} {added}", subject=_find_new_words(named, before.base))
    return found, replace(before, added=added) if names_something else before


def _find_new_words(topic: str, earlier: str) -> str:
    """Return the words of a topic that were not asked about before; none where they are figures, which need not stand in an answer."""
    known = frozenset(words(earlier))
    named = [one for one in topic.split() if _LETTER.search(one) and says_something(one)]
    return " ".join(one for one in named if not known.issuperset(words(one)))


def _lean_on(earlier: str, message: str, line: str) -> FollowUp:
    if not earlier:
        return FollowUp(message, _NOTHING_BEFORE)
    if named := _ORDINAL.search(message):
        reason = (
            f"only a language model can tell what “{named[0]}” means here. Ask a complete question."
        )
        return FollowUp(f"{earlier} {line}", reason)
    return FollowUp(f"{earlier} {line}")


def _stand_alone(line: str, before: _Asked) -> _Asked:
    """Return what the conversation is about after a message that leans on nothing: thanks and greetings change nothing."""
    text = _LEAD.sub("", line) or line
    if _THANKS.match(line) or not says_something(text):
        return before
    if _is_whole(text):
        return _Asked(text)
    # Greetings have few words too, and neither a question mark nor the ending of a Japanese question.
    asks = text.endswith(("?", "？", "か。", "か"))
    return replace(before, of_few_words=text) if asks else before


def _is_whole(text: str) -> bool:
    return not needs_history(text) or names_subject(text)


def _find_ellipsis(line: str) -> str | None:
    """Return what a follow-up such as "what about trains?" asks instead; None where it is none."""
    if ellipsis := _CHINESE_ELLIPSIS.match(line):
        topic = ellipsis["topic"]
        return topic if _CHINESE_PRONOUN.fullmatch(topic) else _CHINESE_LEAD.sub("", topic) or line
    rest = _LEAD.sub("", line)
    if rest == line or not rest or len(rest.split()) > LONGEST_ELLIPSIS:
        return None
    asks_in_full = _QUESTION.match(rest) and not _refers_back(rest) and _is_whole(rest)
    return None if asks_in_full else rest


def _refers_back(line: str) -> bool:
    """Return whether a message has a pronoun for what it does not name itself."""
    if find_exact_terms(line):
        return False
    if found := _CHINESE_PRONOUN.search(line):
        return len(line[: found.start()].strip()) <= 4
    pronouns = (one for one in _PRONOUN.finditer(line) if one["dummy"] is None)
    first = next(pronouns, None)
    return first is not None and _count_content(line[: first.start()]) <= MOST_BEFORE_PRONOUN


def _count_content(text: str) -> int:
    if not text.strip():
        return 0
    content = set(words(extract_keywords(text)))
    # A text of function words only is its own keywords.
    return 0 if content == set(words(text)) and len(content) <= 2 else len(content)


def _move_to_year(earlier: str, rest: str) -> str | None:
    """Return the earlier question of another year, where the follow-up names nothing else."""
    years = _YEAR.findall(rest)
    others = _YEAR.sub("", rest)
    if len(years) != 1 or len(_YEAR.findall(earlier)) != 1 or regex.search(r"\p{L}{4,}", others):
        return None
    return _YEAR.sub(years[0], earlier)
