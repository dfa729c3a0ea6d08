"""Find the sentences of an answer that state something and cite nothing."""

from collections.abc import Sequence

import regex

from backend.chat.citations.cited_sentences import MarkerOffset, clean_sentence, uncited_spans
from backend.chat.citations.claim_units import find_claimed_words
from backend.chat.citations.negation import is_negated
from connectors.document import Span

MIN_WORDS = 2
"""Of a sentence that states something; a word alone is an interjection or a label."""

_FENCE = regex.compile(r"^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1|\Z)", regex.DOTALL | regex.MULTILINE)
_HEADING = regex.compile(r"\s*#{1,6}\s")
_BOLD_LINE = regex.compile(r"\s*\*\*[^*]+\*\*\s*")
_RULER = frozenset("|:- \t")
LONGEST_RULER = 300
_OF_ITSELF = regex.compile(
    r"^\W*(?:(?:unfortunately|sorry|however|but|so|then)\W+)*I(?:['’]\w+)?\s"
    r"|\b(?:let me|let us|let's) (?:know|look|search|check)\b|\bfeel free\b|\bhope (?:this|that) helps\b"
    r"|\bhappy to help\b|\byou(?:['’]re| are) welcome\b|\bhow (?:can|may) I\b|^\W*(?:hello|hi|thanks|thank you)\b",
    regex.IGNORECASE,
)
"""What an answer says of itself, or to the asker."""
_SOURCES = regex.compile(
    r"\b(?:documents?|sources?|passages?|search|results?|information|details?"
    r"|dokumente?n?|quellen?|unterlagen|angaben|informationen"
    r"|documents?|informations?|documentos?|fuentes?|información)\b|文档|文件|資料|资料|来源|信息|文書|情報",
    regex.IGNORECASE,
)
_SAYING = regex.compile(
    r"\b(?:say|state|mention|specif|answer|contain|provid|cover|includ|address|tell|give|describ|explain"
    r"|indicat|list|show|found|find|available|there (?:is|are|was|were)"
    r"|sag|nenn|erwähn|enthalt|beantwort|gefunden|finde|gibt"
    r"|di(?:sent|cen)|mention|mencion|indi(?:qu|c)|conti|trouv|encontr|répond|respond)"
    r"|提|说明|包含|找到|回答|記載|述べ|見つか",
    regex.IGNORECASE,
)


def find_uncited(plain: str, marks: Sequence[MarkerOffset]) -> list[str]:
    """Return the sentences that need a citation and have none, in the order of the text.

    Code, headings, headers of tables, questions and lines that announce what follows need none, nor
    does what an answer says of itself or that the documents say nothing.

    Args:
        plain: an answer without its markers.
        marks: the offsets of the markers.
    """
    code = [Span(*found.span()) for found in _FENCE.finditer(plain)]
    return [
        clean_sentence(span.of(plain))
        for span in uncited_spans(plain, marks)
        if not any(one.start <= span.start < one.end for one in code)
        and _is_prose(plain, span)
        and states_fact(span.of(plain))
    ]


def _is_prose(plain: str, span: Span) -> bool:
    """Return whether the sentence is neither a heading, nor a salutation, nor the header or ruler of a table."""
    sentence = span.of(plain)
    if _HEADING.match(sentence) or _BOLD_LINE.fullmatch(sentence) or _is_ruler(sentence):
        return False
    if sentence.startswith("|"):
        following = plain[span.end : span.end + LONGEST_RULER].lstrip("\n").partition("\n")[0]
        return not _is_ruler(following)
    return not sentence.endswith(",")


def _is_ruler(line: str) -> bool:
    return "--" in line and _RULER.issuperset(line)


def states_fact(sentence: str) -> bool:
    """Return whether a sentence states something that a document would have to say."""
    if len(find_claimed_words(sentence)) < MIN_WORDS or _OF_ITSELF.search(sentence):
        return False
    return not (_SOURCES.search(sentence) and _SAYING.search(sentence) and is_negated(sentence))
