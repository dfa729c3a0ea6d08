"""Follow-up questions without a language model: by rules, in English and Chinese.

"And in 2024?", "what about trains?", "when does it end?", "那2024年呢？" are asked together with the question before them.
Where a rule cannot tell what is meant, as with "the second one", that is said.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import regex

from backend.search.llm_protocol import ChatMessage
from backend.search.retrieval import EARLIER_TURNS, needs_history, normalize_query
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
_PRONOUN = regex.compile(
    r"(?i)\b(?:(?P<dummy>it)(?=\s+(?:(?:is|be|was)\s+)?(?:possible|necessary|allowed|ok|okay|required|mandatory|better|true|important"
    r"|worth|enough|safe|legal)\b)|it|its|they|them|their|he|she|him|his|hers?"
    r"|(?:this|that|these|those)(?=\s*(?:[?.!,]|$|(?:is|are|was|were|mean|means|apply|applies|work|works|cost|costs|happen|happens"
    r"|end|ends|begin|begins|start|starts|one|ones|case|too|also|include|includes)\b))|there(?=\s*[?.!]))(?!\w)"
)
_CHINESE_PRONOUN = regex.compile(
    r"(?<!其)[它他]们?|她们?|(?:这|那)(?:个|些|种|项|件)?(?!\s*(?:里|么|样|边|儿|年|月|周|次|家公司))|其(?!他|它|实|余)"
)
_ORDINAL = regex.compile(
    r"(?i)\bthe\s+(?:first|second|third|fourth|last|former|latter|other)(?:\s+(?:one|option|point|of\s+(?:them|these|those)))?(?=\s*(?:[?.!,]|$))"
    r"|第[一二三四五两](?:个|项|种|点)(?=[^\p{Han}]|的|呢|是|怎|有|多少|多久|几|什么|为什么|$)|前者|后者"
)
_YEAR = regex.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A message as it is searched."""

    question: str
    """The message itself, or what it means together with a question before it."""
    unclear: str = ""
    """What is said of it where no rule can tell what it means."""


def resolve_follow_up(message: str, history: Sequence[ChatMessage]) -> FollowUp:
    """Put in what a message leaves to the questions before it."""
    rest = _find_addition(message)
    if not history or rest is None:
        return FollowUp(message)
    earlier = next(_list_whole(history), None)
    if earlier is None:
        return FollowUp(
            message,
            "none of your last questions can be searched on its own. Ask a complete question.",
        )
    if named := _ORDINAL.search(message):
        reason = (
            f"only a language model can tell what “{named[0]}” means here. Ask a complete question."
        )
        return FollowUp(f"{earlier} {rest}", reason)
    return FollowUp(_move_to_year(earlier, rest) or f"{earlier} {rest}")


def _find_addition(message: str) -> str | None:
    """Return what a follow-up adds to the question before it; None for a question that stands by itself."""
    line = normalize_query(message)
    if ellipsis := _CHINESE_ELLIPSIS.match(line):
        return _CHINESE_LEAD.sub("", ellipsis["topic"]) or line
    bare = _LEAD.sub("", line)
    if bare != line and bare and len(bare.split()) <= LONGEST_ELLIPSIS:
        return bare
    return line if _refers_back(line) or _ORDINAL.search(line) else None


def _refers_back(line: str) -> bool:
    """Whether a message has a pronoun for what it does not name itself."""
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


def _list_whole(history: Sequence[ChatMessage]) -> Iterator[str]:
    """Yield the asker's last questions that stand by themselves, the latest first; then those of few words, such as "Is there a bus?"."""
    asked = [normalize_query(turn.text) for turn in history if turn.role == "user"]
    alone = [text for text in reversed(asked[-EARLIER_TURNS:]) if _find_addition(text) is None]
    yield from (text for text in alone if not needs_history(text))
    # Thanks and greetings have few words too, and no question mark.
    yield from (text for text in alone if needs_history(text) and text.endswith(("?", "？")))


def _move_to_year(earlier: str, rest: str) -> str | None:
    """Return the earlier question of another year, where the follow-up names nothing else."""
    years = _YEAR.findall(rest)
    others = _YEAR.sub("", rest)
    if len(years) != 1 or len(_YEAR.findall(earlier)) != 1 or regex.search(r"\p{L}{4,}", others):
        return None
    return _YEAR.sub(years[0], earlier)
