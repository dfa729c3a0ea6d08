"""The texts that one question is searched as, each with its weight in the fusion."""

import re
from collections.abc import Iterable, Sequence

import regex

from backend.search.events import VariantQuery
from backend.search.llm_protocol import Complete, CompletionFailed
from backend.search.prompts import keyword_prompt, rephrase_prompt, spoken
from backend.search.request import SearchRequest
from indexing.runtime.deadline import Deadline
from indexing.text.normalization import SPACELESS
from indexing.text.tokenizer import exact_terms, keywords, words

ORIGINAL_QUERY_WEIGHT = 2.0
LLM_SEMANTIC_QUERY_WEIGHT = 1.75
LLM_NON_CUSTOM_QUERY_WEIGHT = 1.5
LLM_KEYWORD_QUERY_WEIGHT = 1.25

MAX_KEYWORD_QUERIES = 3
MAX_MODEL_QUERIES = 8
MAX_QUERY_CHARACTERS = 4_000
FEW_CONTENT_WORDS = 2.5
"""A message of at most so many does not stand by itself."""
EARLIER_TURNS = 6
"""How far back the question is looked for that such a message belongs to."""

_LIST_MARK = re.compile(r"^(?:[-*•]|\d{1,2}[.)])\s+")
_QUOTES = "\"'`“”「」"
_WRAPPED = re.compile(rf"[{_QUOTES}]+([^{_QUOTES}]*)[{_QUOTES}]+")
_HIRAGANA = regex.compile(r"\p{Hiragana}+")
_SPACELESS = regex.compile(rf"[{SPACELESS}]")


def own_variants(request: SearchRequest) -> tuple[VariantQuery, ...]:
    """What needs no further call to a model: the message, and the queries the chat model wrote."""
    original = VariantQuery("original", searchable(request.message), ORIGINAL_QUERY_WEIGHT)
    asked = [
        VariantQuery("llm", searchable(query), LLM_NON_CUSTOM_QUERY_WEIGHT)
        for query in request.model_queries[:MAX_MODEL_QUERIES]
    ]
    return deduplicate_queries([original, *asked])


def variants_without_model(request: SearchRequest) -> tuple[VariantQuery, ...]:
    """The own variants, and what can be made of the text itself in place of the model's.

    A follow-up that says almost nothing by itself ("and in Japan?") is searched together with
    the question before it as well.
    """
    own, terms = own_variants(request), keywords(searchable(request.message))
    earlier = ""
    if request.history and leans_on_history(request.message):
        earlier = searchable(_question_before(request))
    if not earlier:
        keyword = VariantQuery("keyword", terms, LLM_KEYWORD_QUERY_WEIGHT)
        return deduplicate_queries([*own, keyword])
    joined = searchable(f"{earlier} {request.message}")
    terms = searchable(f"{keywords(earlier)} {terms}")
    return deduplicate_queries(
        [
            *own,
            VariantQuery("semantic", joined, LLM_SEMANTIC_QUERY_WEIGHT),
            VariantQuery("keyword", terms, LLM_KEYWORD_QUERY_WEIGHT),
        ]
    )


def semantic_query_rephrase(
    request: SearchRequest, complete: Complete, deadline: Deadline
) -> tuple[VariantQuery, ...]:
    """The message as one question that stands without the history. Raises CompletionFailed."""
    said = _lines(complete(rephrase_prompt(request.message, request.history), deadline))
    return (VariantQuery("semantic", said[0], LLM_SEMANTIC_QUERY_WEIGHT),)


def keyword_query_expansion(
    request: SearchRequest, complete: Complete, deadline: Deadline
) -> tuple[VariantQuery, ...]:
    """Up to three keyword queries for the message. Raises CompletionFailed."""
    said = _lines(complete(keyword_prompt(request.message, request.history), deadline))
    return tuple(
        VariantQuery("keyword", text, LLM_KEYWORD_QUERY_WEIGHT)
        for text in said[:MAX_KEYWORD_QUERIES]
    )


def deduplicate_queries(variants: Iterable[VariantQuery]) -> tuple[VariantQuery, ...]:
    """Fold equal texts within the hybrid and within the keyword group; their weights add up.

    The first of them gives name, spelling and place. Empty texts are left out.
    """
    folded: dict[tuple[str, str], VariantQuery] = {}
    for variant in variants:
        if not variant.text:
            continue
        first = folded.get(query_key(variant))
        weight = variant.weight + (first.weight if first else 0.0)
        name, text = (first.name, first.text) if first else (variant.name, variant.text)
        folded[query_key(variant)] = VariantQuery(name, text, weight)
    return tuple(folded.values())


def query_key(variant: VariantQuery) -> tuple[str, str]:
    """Equal for variants that are searched alike."""
    group = "keyword" if variant.name == "keyword" else "hybrid"
    return group, variant.text.casefold()


def exact_terms_of(request: SearchRequest) -> tuple[str, ...]:
    """What must be found as it is written: of the user's own words only, never of a model's."""
    return exact_terms(request.message)


def searchable(text: str) -> str:
    """`text` on one line; of a very long one the beginning and the end, where questions stand."""
    line = " ".join(text.split())
    if len(line) <= MAX_QUERY_CHARACTERS:
        return line
    half = MAX_QUERY_CHARACTERS // 2
    return f"{line[:half]} {line[-half:]}"


def leans_on_history(message: str) -> bool:
    """Whether a message has too few words of content to be searched by themselves."""
    if exact_terms(message):
        return False
    content = keywords(searchable(message))
    return sum(map(_weight, set(words(content)))) <= FEW_CONTENT_WORDS


def _weight(word: str) -> float:
    # Scripts without spaces give every character and every pair of neighbours: a pair counts as
    # half a word, and a character is in its pairs already. Hiragana alone is mostly grammar.
    if not _SPACELESS.search(word):
        return 1.0
    return 0.5 if len(word) > 1 and not _HIRAGANA.fullmatch(word) else 0.0


def _question_before(request: SearchRequest) -> str:
    """The last thing the user said that stands by itself."""
    said = [turn.text for turn in request.history if turn.role == "user"]
    recent = reversed(said[-EARLIER_TURNS:])
    return next((text for text in recent if not leans_on_history(text)), "")


def _lines(answer: str) -> Sequence[str]:
    """The lines of a model's answer without what models put around them."""
    lines = [searchable(_unwrapped(line)) for line in spoken(answer).splitlines()]
    said = [line for line in lines if line.strip("`")]
    if not said:
        raise CompletionFailed("the language model said nothing")
    return said


def _unwrapped(line: str) -> str:
    bare = _LIST_MARK.sub("", line.strip())
    wrapped = _WRAPPED.fullmatch(bare)
    return wrapped.group(1) if wrapped else bare
