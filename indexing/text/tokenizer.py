"""Split text into the words that are indexed and searched; pure functions.

The rules, which the analyzer of OpenSearch follows too:

1. *Fold*: Unicode NFKC and case folding; diacritics of Latin letters are removed (marks of other scripts
   are kept, where they carry meaning), and so are soft hyphens, joiners and variation selectors.
2. *Words* are runs of letters, marks and digits, cut every 64 characters. The ending of a contraction
   (`'s`, `'t`, `'d`, `'m`, `'ll`, `'re`, `'ve`) is removed.
3. Scripts written without spaces (Han, kana, Hangul, Thai, Lao, Khmer, Myanmar) yield every character
   and every bigram, in the order `c1 c1c2 c2 c2c3 c3`.
4. Words joined by one of `- . _ : @ +` or by `::` are also kept whole, up to 128 characters, right
   before their parts, unless they consist of letters and hyphens only.
5. English stop words are removed, and words without a digit are stemmed (Snowball, English). Hence a
   text of stop words only has no words: it is found by its vector, or as a quoted phrase.

`regex` releases the GIL during every match unless called with `concurrent=False`. A text has hundreds of
matches of a microsecond each, and threads that search would wait for the GIL after each of them.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from itertools import chain, pairwise

import regex

from connectors.document import Span
from indexing.text.normalization import JOINER, LETTER, SPACELESS, fold, stem
from indexing.text.stop_words import (
    CHINESE,
    ENGLISH,
    FUNCTION_WORDS,
    JAPANESE,
    JAPANESE_REQUESTS,
)

LONGEST_WORD = 64
LONGEST_COMPOUND = 128
LONGEST_IDENTIFIER = 200
MOST_EXACT_TERMS = 16
SHORT_MESSAGE = 24

_RUNS = regex.compile(rf"(?V1)[{SPACELESS}]++|{LETTER}++(?:(?:{JOINER}|')(?={LETTER}){LETTER}++)*+")
_PLAIN = regex.compile(rf"(?V1)[{SPACELESS}]|{LETTER}{{1,{LONGEST_WORD}}}+")
# The same for ASCII texts, which are the most frequent, in a fifth of the time.
_ASCII_RUNS = re.compile(rf"[a-z0-9]++(?:(?:{JOINER}|')(?=[a-z0-9])[a-z0-9]++)*+")
_ASCII_PLAIN = re.compile(rf"[a-z0-9]{{1,{LONGEST_WORD}}}+")
_CONTRACTION = regex.compile(rf"(?V1)'(?:s|t|d|m|ll|re|ve)(?!{LETTER})")
_SPACELESS = regex.compile(rf"[{SPACELESS}]")
_DIGIT = regex.compile(r"\p{N}")
_JOINED = regex.compile(JOINER)
_HYPHENATED = regex.compile(r"[\p{L}\p{M}'-]*+")
_LETTER = regex.compile(rf"(?V1){LETTER}")

_QUOTED = regex.compile(
    r"""(?<![\p{Latin}\d])"([^"\s][^"\n]{0,199})"(?![\p{Latin}\d])|“([^“”\n]{1,200})”|„([^„“”\n]{1,200})[“”]"""
    r"""|«\s*([^«»\n]{1,200}?)\s*»|「([^「」\n]{1,200})」|『([^『』\n]{1,200})』"""
)
_CONTRACTION_IN_TEXT = regex.compile(rf"(?V1)(?i)(?<={LETTER})['’](?:s|t|d|m|ll|re|ve)(?!{LETTER})")
_PIECES = regex.compile(rf"(?V1)[{SPACELESS}]++|{LETTER}++(?:-{LETTER}++)*+")
_KANA = regex.compile(r"[\p{Hiragana}\p{Katakana}]")
_CHINESE = regex.compile("|".join(CHINESE))
_JAPANESE_REQUESTS = regex.compile("|".join(JAPANESE_REQUESTS))
_JAPANESE = regex.compile(
    rf"(?<![\p{{Hiragana}}何誰])(?:{'|'.join(JAPANESE)})++(?![\p{{Hiragana}}何誰])"
)
_FILE_TYPE = (
    "(?i:7z|bat|bin|bmp|cfg|conf|cpp|css|csv|dat|db|dll|docx?|eml|env|epub|exe|gif|gz|html?|ini|ipynb|jar|"
    "java|jpe?g|js|jsonl?|log|md|mp3|mp4|msg|od[pst]|parquet|pdf|pem|php|png|pptx?|ps1|py|rst|rtf|sh|sql|"
    "sqlite|svg|tar|tex|tgz|tiff?|toml|tsx?|tsv|txt|wav|webp|xls[mx]?|xml|ya?ml|zip)"
)
_TOP_LEVEL = (
    "(?:com|org|net|edu|gov|int|info|io|ai|dev|app|cloud|local|internal|example|test|"
    "eu|de|ch|fr|es|nl|pt|pl|se|uk|ca|au|br|jp|cn|kr)"
)

_CANDIDATE = regex.compile(
    rf"""
      (?P<address> [A-Za-z][A-Za-z0-9+.-]{{1,9}}+://[^\s<>"'`“”„«»「」『』（）()，。、]++
        | (?<![\w.+-])[A-Za-z0-9_.+-]{{1,64}}+@[A-Za-z0-9-]++(?:\.[A-Za-z0-9][A-Za-z0-9-]*+)++
        | (?<![\w.-])(?:~|\.{{1,2}}|[A-Za-z]:)?+[/\\]{{1,2}}+[\w.-]*+(?:[/\\][\w.-]*\w)++
        | (?<![A-Za-z0-9_./-])(?:[A-Za-z0-9_.-]{{1,64}}+/)++[A-Za-z0-9_-]++(?:\.[A-Za-z0-9_][A-Za-z0-9_-]*+)++
        | (?<![\w-])--[A-Za-z][A-Za-z0-9-]*[A-Za-z0-9]
        | (?<![\w\#&])\#[0-9]++ ) (?!{LETTER}|[-._]\d)
    | (?P<run> (?:{LETTER}|_)++ (?:(?:::|[-.:@])(?:{LETTER}|_)++)*+ (?:\+\+|\#)?+ )
    """,
    regex.VERBOSE | regex.V1,
)
_ADDRESS_END = ".,;:!?-"

_UNIT = r"(?:\p{L}{0,2}\p{Ll}+|[KMGT]?[ABCDFGHKMSTVWX]|HZ|AM|PM|ST|ND|RD|TH|USD|EUR|GBP)"
_QUANTITY = rf"\d+(?:[.,]\d+)?{_UNIT}?"
_PERIOD = r"(?:Q[1-4]|H[12]|(?:FY|CY)-?\d{2,4}|(?:KW|CW|W)\d{1,2}|\d{4}|\d{2})"
_ORDINARY = regex.compile(
    rf"""
      {_QUANTITY}(?:-\p{{L}}\p{{Ll}}*+)*+        # 16GB, 100mbps, 1st, 3PM, 24-hour, 5-year-old, 3-D
    | [1-9]\d{{0,4}}x\d{{1,5}}                                    # 4x4
    | {_PERIOD}(?:[-.:]{_PERIOD})*+              # Q3, FY24, 2024-Q3, 2019-2024, 10:30
    | \d{{1,2}}(?::\d\d){{1,2}}\p{{L}}{{0,2}}    # 9:30am
    | \d{{1,4}}-\d{{1,2}}-\d{{1,4}}\w*+ | \d{{1,2}}\.\d{{1,2}}\.\d{{4}} | \d{{4}}\.\d{{1,2}}\.\d{{1,2}}
    | \d{{1,3}}(?:\.\d{{3}})++                   # 1.000.000
    | (?:\p{{L}}\.)++\p{{L}}                     # e.g, U.S
    | (?:\p{{L}}++-)?+\d++s                      # mid-1990s
    """,
    regex.VERBOSE,
)

_WORD = r"[\p{L}\p{M}\p{N}_]"
_MIXED = r"(?=[\p{L}\d]*\p{L})(?=(?:[\p{L}]*\d){2})[\p{L}\d]+"
_CODE = regex.compile(
    rf"""
      (?=.*\p{{L}}).*[^_]_[^_].* | __\w+?__                            # max_size, __init__
    | .*\w::\w.*                                                       # std::vector
    | (?=.*\p{{L}}).*\w@\w.*                                           # root@db1
    | {_MIXED}                                                         # ISO9001, 0x80070005, B12
    | (?=.*\d)(?=(?:.*-)?\p{{Lu}}+(?:-|$))[\p{{L}}\d]++(?:-[\p{{L}}\d]++)++   # AB-1234, COVID-19, RFC-2119-bis
    | \p{{L}}{{1,2}}-\d{{2,}}[-\p{{L}}\d]*+                            # e-22
    | \d++-\p{{Lu}}{{2,}}[-\p{{L}}\d]*+                                # 1099-NEC
    | \p{{L}}++(?:-\d++){{2,}}                                         # inv-2024-001
    | (?:[\p{{L}}\d]++-)*?{_MIXED}(?:-[\p{{L}}\d]++)*+                 # web01-prod, a uuid
    | (?=(?:\D*\d){{7,}})\d++(?:-\d++)++                               # 978-3-16-148410-0
    | (?:{_WORD}|[-.])+\.{_FILE_TYPE}                                  # report.final.pdf
    | (?:{_WORD}|-){{2,}}(?:\.(?:{_WORD}|-){{2,}})*?\.{_TOP_LEVEL}(?::\d++)?+   # example.com:8080
    | \p{{L}}(?:{_WORD}|-)+(?:\.\p{{L}}(?:{_WORD}|-)+){{2,}}           # os.path.join
    | [vV]?+\d++(?:\.\d++){{2,}}(?:[-.:]?\w++)*+                       # 3.11.7, 10.0.0.1:80
    | [vV]\d++(?:\.\d++)++(?:[-.]?\w++)*+                              # v2.1
    | \d++\.\d++-?(?:a|b|rc|alpha|beta|dev|post)\.?\d++                # 1.0rc2
    | (?:[\p{{L}}\d]++-)*+\p{{L}}++\d++(?:\.\d++)++                    # python3.11
    | (?:localhost:\d++|\p{{L}}[\w-]*+:\d{{4,5}}|\w++(?::\w++){{2,}})  # db:5432, a MAC address
    | \p{{Ll}}{{2,}}\d*+(?:\p{{Lu}}\p{{Ll}}+\d*+)++                    # getUserName
    | (?:\p{{Lu}}\p{{Ll}}+){{3,}}\d*+                                  # AccessKeyId
    | (?:\p{{Lu}}\p{{Ll}}+)+(?:Error|Exception|Warning)                # KeyError
    | \p{{L}}{{1,2}}(?:\+\+|\#)                                        # C++, C#
    """,
    regex.VERBOSE,
)
_SUFFIX = regex.compile(
    r"(?:-(?:related|based|like|dependent|independent|positive|negative|certified|compliant|compatible|"
    r"specific|mediated|induced|deficient|style|type|free))+$"
)

_PROBE = (
    "The employees' “vacation-policy” of Zürich, v2.10: see ERR-1042, foo_bar.py and ann@example.com"
    " 株式会社の就業規則 カタカナ 年假政策 휴가 정책 ฉันทำงาน отпуск إجازة 50 % ＡＢＣ"
)


def words(text: str) -> list[str]:
    """Return the tokens of `text` that are indexed and searched, in order."""
    return _words_of(fold(text))


def plain_words(text: str) -> list[str]:
    """Return all words of `text` in order, only folded; spaceless scripts as single characters.

    They serve phrase queries: words that are adjacent in the text are adjacent here.
    """
    return _plain_of(fold(text))


def plain_words_around(text: str, parts: Sequence[str]) -> set[str]:
    """Return at least those words of `plain_words` that contain any of some parts of words.

    Most of a text is only searched for the parts, in a tenth of the time of cutting it into words.
    """
    folded = fold(text)
    pieces = chain.from_iterable(_pieces_with(part, folded) for part in parts)
    return set(chain.from_iterable(map(_plain_of, pieces)))


def _pieces_with(part: str, folded: str) -> Iterator[str]:
    """Yield what is between two spaces and contains a part; no word goes across a space."""
    at = folded.find(part)
    while at >= 0:
        end = folded.find(" ", at)
        end = len(folded) if end < 0 else end
        yield folded[folded.rfind(" ", 0, at) + 1 : end]
        at = folded.find(part, end + 1)


def words_and_plain_words(text: str) -> tuple[list[str], list[str]]:
    """Return `words` and `plain_words` of a text, folding it once: that is half of the work."""
    folded = fold(text)
    return _words_of(folded), _plain_of(folded)


def _words_of(folded: str) -> list[str]:
    if folded.isascii():
        return list(chain.from_iterable(map(_tokenize_run, _ASCII_RUNS.findall(folded))))
    found: list[str] = []
    for run in _RUNS.findall(folded, concurrent=False):
        found += characters_and_bigrams(run) if is_spaceless(run) else _tokenize_run(run)
    return found


def _plain_of(folded: str) -> list[str]:
    if folded.isascii():
        return _ASCII_PLAIN.findall(folded)
    return _PLAIN.findall(folded, concurrent=False)


def fingerprint() -> str:
    """Return a digest that changes with the tokenizer; an index must be tokenized again when it does."""
    tokens = [*words(_PROBE), "|", *plain_words(_PROBE)]
    return sha256(" ".join(tokens).encode()).hexdigest()


def find_runs(normalized: str) -> list[str]:
    """Return the runs of `normalized` that are made into words one by one: words, compounds, spaceless text."""
    if normalized.isascii():
        return _ASCII_RUNS.findall(normalized)
    found: list[str] = _RUNS.findall(normalized, concurrent=False)
    return found


def is_spaceless(run: str) -> bool:
    return not run.isascii() and _SPACELESS.match(run, concurrent=False) is not None


def split_run(run: str) -> tuple[list[str], list[str]]:
    """Return the run itself if it is a compound that is kept whole, and its words."""
    run = _CONTRACTION.sub("", run, concurrent=False)
    return [run] if _is_compound(run) else [], _PLAIN.findall(run, concurrent=False)


def _tokenize_run(run: str) -> Sequence[str]:
    return _tokenize_word(run) if len(run) <= LONGEST_WORD else _stem_run(run)


@lru_cache(maxsize=1 << 15)
def _tokenize_word(run: str) -> tuple[str, ...]:
    return tuple(_stem_run(run))


def _stem_run(run: str) -> list[str]:
    whole, parts = split_run(run)
    return whole + [_stem(part) for part in parts if part not in ENGLISH]


def characters_and_bigrams(run: str) -> list[str]:
    found = [run[0]]
    for first, second in pairwise(run):
        found += (first + second, second)
    return found


def _is_compound(run: str) -> bool:
    joined = len(run) <= LONGEST_COMPOUND and _JOINED.search(run, concurrent=False) is not None
    return joined and _HYPHENATED.fullmatch(run, concurrent=False) is None


def has_digit(word: str) -> bool:
    return _DIGIT.search(word, concurrent=False) is not None


def _stem(word: str) -> str:
    return word if has_digit(word) else stem(word, "english")


@lru_cache(maxsize=256)
def find_exact_terms(message: str) -> tuple[str, ...]:
    """Return the quoted phrases and identifiers of `message` in order, without duplicates, at most 16.

    Quotes are "…", “…”, „…“, «…», 「…」 and 『…』, never apostrophes; for identifiers see `find_identifiers`.
    In a message of more than 24 words, quotes around a single plain word more often mark emphasis or irony
    than a term to look up: there they count around phrases only.
    """
    text = _one_line(message)
    distinct = {fold(span.of(text)): span.of(text) for span in reversed(_exact_spans(text))}
    return tuple(reversed(distinct.values()))[:MOST_EXACT_TERMS]


@dataclass(frozen=True, slots=True)
class Quote:
    outer: Span
    """With its quotation marks."""
    inner: Span


def find_quotes(text: str) -> list[Quote]:
    """Find the quoted phrases of `text`, in order; `find_exact_terms` names the quotation marks."""
    return [
        Quote(Span(*quote.span()), Span(*quote.span(quote.lastindex or 0)))
        for quote in _quotes(text)
    ]


def find_identifiers(message: str) -> Iterator[Span]:
    """Yield the spans of the identifiers of `message`, in order: codes, part numbers, file names, addresses.

    They are recognized by their shape, with few false positives rather than few misses: chunks that contain an
    identifier rank above all others, so an ordinary word taken for one would do harm. Plain numbers, dates,
    times, quantities, periods and hyphenated words are not identifiers.
    """
    for match in _CANDIDATE.finditer(message, concurrent=False):
        start, end = match.span()
        if match["address"] is not None:
            yield Span(start, start + len(match[0].rstrip(_ADDRESS_END)))
        elif end - start <= LONGEST_IDENTIFIER:
            bare = _SUFFIX.sub("", match[0], concurrent=False)
            if _is_identifier(bare):
                yield Span(start, start + len(bare))


def _is_identifier(run: str) -> bool:
    return (
        _ORDINARY.fullmatch(run, concurrent=False) is None
        and _CODE.fullmatch(run, concurrent=False) is not None
    )


def contains_term(text: str, term: str) -> bool:
    """Return whether `text` contains the exact term, both folded, white space collapsed, at word boundaries.

    `E-22` is contained neither in `E-2207` nor in `E-22.1`. Scripts without spaces need no boundary. No
    text contains an empty term.
    """
    wanted = _collapsed(term)
    return (
        bool(wanted) and _boundaries(wanted).search(_collapsed(text), concurrent=False) is not None
    )


def _one_line(message: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", message).split())


def _exact_spans(text: str) -> list[Span]:
    quotes = _quotes(text)
    phrases = [Span(*quote.span(quote.lastindex or 0)) for quote in quotes]
    return sorted(phrases + _identifiers_outside(quotes, text))


def _quotes(text: str) -> list[regex.Match[str]]:
    fewest = 1 if len(plain_words(text)) <= SHORT_MESSAGE else 2
    return [
        quote
        for quote in _QUOTED.finditer(text, concurrent=False)
        if len(plain_words(quote[quote.lastindex or 0])) >= fewest
    ]


def _identifiers_outside(quotes: list[regex.Match[str]], text: str) -> list[Span]:
    """Find identifiers outside of quotes, which are blanked out so that spans stay the same."""
    pieces: list[str] = []
    end = 0
    for quote in quotes:
        pieces += (text[end : quote.start()], " " * len(quote[0]))
        end = quote.end()
    return list(find_identifiers("".join((*pieces, text[end:]))))


def _collapsed(text: str) -> str:
    return " ".join(fold(text).split())


@lru_cache(maxsize=256)
def _boundaries(wanted: str) -> regex.Pattern[str]:
    before = rf"(?<!{LETTER})" if _LETTER.match(wanted) else ""
    after = rf"(?!{LETTER})" if _LETTER.match(wanted[-1]) else ""
    if " " not in wanted and not wanted.isdigit():
        before += r"(?<!\d[-._])" if wanted[0].isdigit() else ""
        after += r"(?![-._]\d)" if wanted[-1].isdigit() else ""
    return regex.compile(rf"(?V1){before}{regex.escape(wanted)}{after}")


def extract_keywords(message: str) -> str:
    """Turn `message` into a keyword query, without the function and question words of its language.

    Exact terms with their quotes and the order are kept. A message of such words only is returned unchanged.
    """
    text = _one_line(message)
    content = " ".join(_content_pieces(text)).strip()
    return content or text


def _content_pieces(text: str) -> Iterator[str]:
    """Yield the pieces of `text` that carry its subject."""
    dropped = _function_words(text)
    end = 0
    for span in _exact_term_spans(text):
        yield from _content_words(text[end : span.start], dropped)
        yield span.of(text)
        end = span.end
    yield from _content_words(text[end:], dropped)


def _exact_term_spans(text: str) -> list[Span]:
    """Return the spans of exact terms, quotes included."""
    quotes = _quotes(text)
    return sorted([Span(*quote.span()) for quote in quotes] + _identifiers_outside(quotes, text))


def _content_words(text: str, dropped: frozenset[str]) -> Iterator[str]:
    for piece in _PIECES.findall(_CONTRACTION_IN_TEXT.sub("", _without_particles(text))):
        if fold(piece) not in dropped:
            yield piece


def _without_particles(text: str) -> str:
    if _KANA.search(text):
        return _JAPANESE.sub(" ", _JAPANESE_REQUESTS.sub(" ", text))
    return _CHINESE.sub(" ", text)


def _function_words(text: str) -> frozenset[str]:
    """Return the function words of the language with most of them in `text`; English unless it has two fewer."""
    found = plain_words(text)
    votes = {
        language: sum(word in dropped for word in found)
        for language, dropped in FUNCTION_WORDS.items()
    }
    best = max(votes, key=lambda language: votes[language])
    return FUNCTION_WORDS[best if votes[best] > votes["English"] + 1 else "English"]
