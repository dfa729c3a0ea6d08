"""Mark the words of a query in a text, as the index would find them."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain, repeat, takewhile

import regex

from connectors.document import Span
from connectors.extraction import registry
from indexing.chunking.chunk import split_sentences
from indexing.text.analysis import (
    BY_LANGUAGE,
    Languages,
    add_joined_codes,
    document_words,
    find_languages,
)
from indexing.text.markdown_links import strip_links
from indexing.text.normalization import JOINER, LETTER, SPACELESS, fold
from indexing.text.tokenizer import extract_keywords, find_identifiers, words

LONGEST_EXCERPT = 320

_SPACELESS = regex.compile(rf"[{SPACELESS}]")
_TOKENS = regex.compile(rf"(?V1)([{SPACELESS}]++|{LETTER}++(?:(?:{JOINER}|['’]){LETTER}++)*+)")
# The same for ASCII texts, by the standard library, which is several times as fast on these.
_ASCII_TOKENS = re.compile(r"([A-Za-z0-9]++(?:(?:::|[-._:@+'])[A-Za-z0-9]++)*+)")
_TABLE_RULE = regex.compile(r"(?m)^\|(?: *:?-+:? *\|)+ *(?:\n|$)")
_TABLE_ROW = regex.compile(r"(?m)^\| ?(.*?) ?\|$")
_CELL_END = regex.compile(r" *(?<!\\)\| *")
_ENDS = {"", ".", ";", ":", "!", "?", "。"}
_MARKUP_SIGN = re.compile(r"[\[*_`#>+-]")
"""Of links, emphasis, headings, lists and quotations: most passages have none."""
_MARKDOWN = (
    (regex.compile(r"(?m)^ {0,3}(?:#{1,6}|[-*+>]) +"), ""),
    (regex.compile(r"(\*\*|__|`)(?=\S)([^\n]*?)(?<=\S)\1"), r"\2"),
)


@dataclass(frozen=True, slots=True)
class _Match:
    start: int
    end: int
    words: frozenset[str]


@dataclass(frozen=True, slots=True)
class Piece:
    text: str
    marked: bool = False


class QueryWords:
    """The words of a query as they are indexed, which differs with the languages of a text.

    Of a code only the whole: its parts occur in other codes, which were not searched for. Without "from" and "my", which stand
    everywhere, unless the query has no other words.
    """

    def __init__(self, query: str) -> None:
        codes = [span.of(query) for span in find_identifiers(query)]
        for code in codes:
            query = query.replace(code, " ")
        self._rest = extract_keywords(query)
        self._in_all = frozenset(words(self._rest)).union(*map(_words_of_code, codes))
        self._by_languages: dict[Languages, frozenset[str]] = {}

    def in_languages(self, languages: Languages) -> frozenset[str]:
        """Return the words that a text in these languages may contain."""
        found = self._by_languages.get(languages)
        if found is None:
            forms = chain.from_iterable(BY_LANGUAGE.query_words(self._rest, languages))
            found = self._by_languages[languages] = self._in_all.union(forms)
        return found


def _words_of_code(code: str) -> frozenset[str]:
    """Return the code as it is written and without its hyphens; its parts if it is indexed in no other way."""
    parts = words(code)
    joined = frozenset(add_joined_codes(parts)).difference(parts)
    as_written = joined.union({fold(code)}.intersection(parts))
    return as_written or frozenset(parts)


def readable_text(text: str, media_type: str) -> str:
    """Return a passage as it is shown in a list: without markup, its tables as lines."""
    return without_markup(text) if media_type == registry.MARKDOWN else table_as_lines(text)


def pieces(text: str, wanted: QueryWords) -> tuple[Piece, ...]:
    """Return the whole of `text`, cut where a wanted word begins or ends."""
    return _cut(text, _find_matches(text, wanted))


def _cut(text: str, matches: Iterable[_Match]) -> tuple[Piece, ...]:
    found: list[Piece] = []
    at = 0
    for match in matches:
        if match.start > at:
            found.append(Piece(text[at : match.start]))
        marked = text[max(at, match.start) : match.end]
        if found and found[-1].marked:
            found[-1] = Piece(found[-1].text + marked, marked=True)
        else:
            found.append(Piece(marked, marked=True))
        at = match.end
    return (*found, Piece(text[at:])) if text[at:] else tuple(found)


def excerpt(text: str, wanted: QueryWords) -> tuple[Piece, ...]:
    """Return the part of `text` with most of the wanted words, on one line."""
    matches = list(_find_matches(text, wanted))
    start = _choose_start(text, matches)
    line = _on_one_line(text[start:])
    before = "… " if text[:start].strip() else ""
    shown = before + (line if len(line) <= LONGEST_EXCERPT else _at_word_end(line))
    after = " …" if len(shown) < len(before + line) else ""
    # A match has no blanks in it, and those before it are fewer on one line.
    moved = (
        _move(match, len(before) + len(_on_one_line(f"{text[start : match.start]}|")) - 1)
        for match in matches
        if match.start >= start
    )
    return _cut(shown + after, takewhile(lambda match: match.end <= len(shown), moved))


def _choose_start(text: str, matches: Sequence[_Match]) -> int:
    """Return where the best excerpt begins: at a sentence, the earlier the nearer the end of the text."""
    spans = split_sentences(text) if len(text) > LONGEST_EXCERPT else []
    if not spans:
        return 0
    best = max(spans, key=lambda span: _rank_excerpt(span, matches))
    if len(text) - best.start < LONGEST_EXCERPT:
        # So near the end, more of the preceding text fits in.
        best = next(
            span for span in spans if len(text) - span.start <= LONGEST_EXCERPT or span == best
        )
    return best.start


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _move(match: _Match, start: int) -> _Match:
    return _Match(start, start + match.end - match.start, match.words)


def without_markup(text: str) -> str:
    """Return Markdown as one reads it aloud: cells apart by dots, no marks of emphasis, lists and links."""
    if _MARKUP_SIGN.search(text):
        text = strip_links(text)
        for pattern, instead in _MARKDOWN:
            text = pattern.sub(instead, text)
    return table_as_lines(text)


def table_as_lines(text: str) -> str:
    """Return a table with its cells apart by dots and its rows by semicolons."""
    return _TABLE_ROW.sub(_row, _TABLE_RULE.sub("", text)).removesuffix(";")


def _row(found: regex.Match[str]) -> str:
    line = " · ".join(filter(None, _CELL_END.split(found[1])))
    return line if line[-1:] in _ENDS else f"{line};"


def _rank_excerpt(first: Span, matches: Sequence[_Match]) -> tuple[int, int, int]:
    """Rank an excerpt that begins with this sentence: the more of the words, and the sooner, the better."""
    end = first.start + LONGEST_EXCERPT
    near = [match for match in matches if match.start >= first.start and match.end <= end]
    in_window = frozenset[str]().union(*(match.words for match in near))
    in_first = frozenset[str]().union(*(match.words for match in near if match.end <= first.end))
    return len(in_window), len(in_first), -first.start


def _at_word_end(line: str) -> str:
    cut = line[:LONGEST_EXCERPT]
    return cut.rpartition(" ")[0] or cut


def _find_matches(text: str, query: QueryWords) -> Iterator[_Match]:
    """Yield the positions of the words of the query in `text`, which is tokenized once."""
    languages = find_languages(text)
    wanted = query.in_languages(languages)
    if not wanted:
        return
    parts = _split_tokens(text)
    tokens = _choose_candidates(parts[1::2], wanted, languages)
    words_of = dict(zip(tokens, map(_words_of, tokens, repeat(languages)), strict=False))
    matched = {
        token for token, its in words_of.items() if its is None or not wanted.isdisjoint(its)
    }
    lone = _lone(wanted)
    for token, end in zip(parts, accumulate(map(len, parts)), strict=True):
        if token not in matched:
            continue
        start, its = end - len(token), words_of[token]
        if its is None:
            yield from _spaceless_matches(token, start, wanted, lone)
        else:
            yield _Match(start, end, wanted & its)


def _choose_candidates(
    tokens: Iterable[str], wanted: frozenset[str], languages: Languages
) -> frozenset[str]:
    """Leave out most tokens that cannot be wanted without stemming them: the first letter of an English word stays."""
    if languages:
        return frozenset(tokens)
    initials = {word[:1] for word in wanted}
    initials |= {letter.upper() for letter in initials}
    return frozenset(
        token
        for token in tokens
        if token[0] in initials or not (token.isascii() and token.isalnum())
    )


def _split_tokens(text: str) -> list[str]:
    """Return what is between the tokens and the tokens in turn: together they are the text."""
    return _ASCII_TOKENS.split(text) if text.isascii() else _TOKENS.split(text, concurrent=False)


@lru_cache(maxsize=1 << 15)
def _words_of(run: str, languages: Languages) -> frozenset[str] | None:
    """Return the indexed words of a token; None for a run of a script without spaces."""
    if _SPACELESS.match(run):
        return None
    return frozenset(add_joined_codes(document_words(run, languages)))


def _spaceless_matches(
    run: str, at: int, wanted: frozenset[str], lone: set[str]
) -> Iterator[_Match]:
    """Yield two neighbors that the query has; single characters only where it has them alone."""
    folded = [fold(character) for character in run]
    for number, character in enumerate(folded):
        pair = "".join(folded[number : number + 2])
        if number + 1 < len(run) and pair in wanted:
            yield _Match(at + number, at + number + 2, frozenset({pair}))
        elif character in lone:
            yield _Match(at + number, at + number + 1, frozenset({character}))


def _lone(wanted: frozenset[str]) -> set[str]:
    pairs = "".join(word for word in wanted if len(word) > 1)
    return {word for word in wanted if len(word) == 1 and word not in pairs}
