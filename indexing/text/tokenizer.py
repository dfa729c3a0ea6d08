"""Text to the words that are indexed and searched; pure.

The rules, for whoever must build the same elsewhere:

1. *Fold*: Unicode NFKC and case folding; Latin letters lose their diacritics (other scripts keep their
   marks, which carry meaning there); soft hyphens, joiners and variation selectors are dropped.
2. *Words* are runs of letters, marks and digits, cut every 64 characters. A contraction's tail
   (`'s`, `'t`, `'d`, `'m`, `'ll`, `'re`, `'ve`) is left out.
3. Scripts written without spaces (Han, kana, Hangul, Thai, Lao, Khmer, Myanmar) give every character
   and every two neighbours, in the order `c1 c1c2 c2 c2c3 c3`.
4. Words joined by one of `- . _ : @ +` or by `::` are also kept whole, up to 128 characters, right
   before their parts, unless they are nothing but letters and hyphens.
5. English stop words are left out, and words without a digit are stemmed (Snowball, English). Hence
   a text of nothing but stop words has no words: it is found by its vector, or as a quoted phrase.
"""

import re
import threading
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import sha256
from itertools import chain, pairwise

import regex
import Stemmer  # type: ignore[import-not-found]

from connectors.document import Span
from indexing.text.identifiers import codes
from indexing.text.normalization import JOINER, LETTER, SPACELESS, fold
from indexing.text.stop_words import (
    CHINESE,
    ENGLISH,
    FUNCTION_WORDS,
    JAPANESE,
    JAPANESE_REQUESTS,
)

LONGEST_WORD = 64
LONGEST_COMPOUND = 128
MOST_EXACT_TERMS = 16
SHORT_MESSAGE = 24

_RUNS = regex.compile(rf"(?V1)[{SPACELESS}]++|{LETTER}++(?:(?:{JOINER}|')(?={LETTER}){LETTER}++)*+")
_PLAIN = regex.compile(rf"(?V1)[{SPACELESS}]|{LETTER}{{1,{LONGEST_WORD}}}+")
# The same for texts of ASCII, which are most, in a fifth of the time.
_ASCII_RUNS = re.compile(rf"[a-z0-9]++(?:(?:{JOINER}|')(?=[a-z0-9])[a-z0-9]++)*+")
_ASCII_PLAIN = re.compile(rf"[a-z0-9]{{1,{LONGEST_WORD}}}+")
_TAIL = regex.compile(rf"(?V1)'(?:s|t|d|m|ll|re|ve)(?!{LETTER})")
_SPACELESS = regex.compile(rf"[{SPACELESS}]")
_DIGIT = regex.compile(r"\p{N}")
_JOINED = regex.compile(JOINER)
_HYPHENATED = regex.compile(r"[\p{L}\p{M}'-]*+")
_LETTER = regex.compile(rf"(?V1){LETTER}")

_QUOTED = regex.compile(
    r"""(?<![\p{Latin}\d])"([^"\s][^"\n]{0,199})"(?![\p{Latin}\d])|“([^“”\n]{1,200})”|„([^„“”\n]{1,200})[“”]"""
    r"""|«\s*([^«»\n]{1,200}?)\s*»|「([^「」\n]{1,200})」|『([^『』\n]{1,200})』"""
)
_TAIL_IN_TEXT = regex.compile(rf"(?V1)(?i)(?<={LETTER})['’](?:s|t|d|m|ll|re|ve)(?!{LETTER})")
_PIECES = regex.compile(rf"(?V1)[{SPACELESS}]++|{LETTER}++(?:-{LETTER}++)*+")
_KANA = regex.compile(r"[\p{Hiragana}\p{Katakana}]")
_CHINESE = regex.compile("|".join(CHINESE))
_JAPANESE_REQUESTS = regex.compile("|".join(JAPANESE_REQUESTS))
_JAPANESE = regex.compile(
    rf"(?<![\p{{Hiragana}}何誰])(?:{'|'.join(JAPANESE)})++(?![\p{{Hiragana}}何誰])"
)
_of_thread = threading.local()

_PROBE = (
    "The employees' “vacation-policy” of Zürich, v2.10: see ERR-1042, foo_bar.py and ann@example.com"
    " 株式会社の就業規則 カタカナ 年假政策 휴가 정책 ฉันทำงาน отпуск إجازة 50 % ＡＢＣ"
)


def words(text: str) -> list[str]:
    """The tokens of `text` that are indexed and searched, in its order."""
    return _words(fold(text))


def plain_words(text: str) -> list[str]:
    """All words of `text` in its order, folded and no more; spaceless scripts as single characters.

    For phrases by position: what stands side by side in a text does so here.
    """
    return _plain(fold(text))


def both_words(text: str) -> tuple[list[str], list[str]]:
    """`words` and `plain_words` of a text; folding is half of the work."""
    folded = fold(text)
    return _words(folded), _plain(folded)


def _words(folded: str) -> list[str]:
    if folded.isascii():
        return list(chain.from_iterable(map(_of_run, _ASCII_RUNS.findall(folded))))
    found: list[str] = []
    for run in _RUNS.findall(folded, concurrent=False):
        spaceless = not run.isascii() and _SPACELESS.match(run, concurrent=False)
        found += _characters_and_bigrams(run) if spaceless else _of_run(run)
    return found


def _plain(folded: str) -> list[str]:
    if folded.isascii():
        return _ASCII_PLAIN.findall(folded)
    return _PLAIN.findall(folded, concurrent=False)


def fingerprint() -> str:
    """Changes with what is made of texts: words of another making would not be found."""
    made = [*words(_PROBE), "|", *plain_words(_PROBE)]
    return sha256(" ".join(made).encode()).hexdigest()


def _of_run(run: str) -> Sequence[str]:
    return _remembered(run) if len(run) <= LONGEST_WORD else _split(run)


@lru_cache(maxsize=1 << 15)
def _remembered(run: str) -> tuple[str, ...]:
    return tuple(_split(run))


def _split(run: str) -> list[str]:
    run = _TAIL.sub("", run, concurrent=False)
    parts = [_stem(part) for part in _PLAIN.findall(run, concurrent=False) if part not in ENGLISH]
    return [run, *parts] if _kept_whole(run) else parts


def _characters_and_bigrams(run: str) -> list[str]:
    found = [run[0]]
    for first, second in pairwise(run):
        found += (first + second, second)
    return found


def _kept_whole(run: str) -> bool:
    joined = len(run) <= LONGEST_COMPOUND and _JOINED.search(run, concurrent=False) is not None
    return joined and _HYPHENATED.fullmatch(run, concurrent=False) is None


def _stem(word: str) -> str:
    return word if _DIGIT.search(word, concurrent=False) else _stemmer().stemWord(word)


def _stemmer() -> Stemmer.Stemmer:
    # A stemmer keeps state in C and must not be shared between threads.
    stemmer: Stemmer.Stemmer | None = getattr(_of_thread, "stemmer", None)
    if stemmer is None:
        stemmer = _of_thread.stemmer = Stemmer.Stemmer("english")
    return stemmer


def exact_words(term: str) -> list[str]:
    """The words of an exact term as they stand side by side in a text that holds it."""
    return plain_words(term)


def exact_terms(message: str) -> tuple[str, ...]:
    """The quoted phrases and code-like words of `message`, in its order, each once, at most 16.

    Quotes are "…", “…”, „…“, «…», 「…」 and 『…』, never apostrophes; what is a code, `codes.py` says.
    In a message of more than 24 words quotes around one plain word mark emphasis or distance more
    often than a wish to find it: there they count around phrases only.
    """
    text = _one_line(message)
    distinct = {fold(span.of(text)): span.of(text) for span in reversed(_exact_spans(text))}
    return tuple(reversed(distinct.values()))[:MOST_EXACT_TERMS]


def holds(text: str, term: str) -> bool:
    """Whether `text` holds the exact term, both folded, white space collapsed, at word boundaries.

    A code is not held by a longer number: `E-22` neither by `E-2207` nor by `E-22.1`. Scripts
    without spaces need no boundary. An empty term is held by nothing.
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
    return sorted(phrases + _codes_outside(quotes, text))


def _quotes(text: str) -> list[regex.Match[str]]:
    fewest = 1 if len(plain_words(text)) <= SHORT_MESSAGE else 2
    return [
        quote
        for quote in _QUOTED.finditer(text, concurrent=False)
        if len(plain_words(quote[quote.lastindex or 0])) >= fewest
    ]


def _codes_outside(quotes: list[regex.Match[str]], text: str) -> list[Span]:
    """The codes that no quote holds; quotes are blanked out, so that spans stay."""
    pieces: list[str] = []
    end = 0
    for quote in quotes:
        pieces += (text[end : quote.start()], " " * len(quote[0]))
        end = quote.end()
    return list(codes("".join((*pieces, text[end:]))))


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


def keywords(message: str) -> str:
    """`message` as a keyword query: without the function words and question words of its language.

    Exact terms stay as they are, quotes included, and so does the order. A message that is made of
    such words only is given back as it is.
    """
    text = _one_line(message)
    kept = " ".join(_content(text)).strip()
    return kept or text


def _content(text: str) -> Iterator[str]:
    """The pieces of `text` that carry its subject."""
    dropped = _function_words(text)
    end = 0
    for span in _kept(text):
        yield from _content_words(text[end : span.start], dropped)
        yield span.of(text)
        end = span.end
    yield from _content_words(text[end:], dropped)


def _kept(text: str) -> list[Span]:
    """What exact terms take up, quotes included."""
    quotes = _quotes(text)
    return sorted([Span(*quote.span()) for quote in quotes] + _codes_outside(quotes, text))


def _content_words(text: str, dropped: frozenset[str]) -> Iterator[str]:
    for piece in _PIECES.findall(_TAIL_IN_TEXT.sub("", _without_particles(text))):
        if fold(piece) not in dropped:
            yield piece


def _without_particles(text: str) -> str:
    if _KANA.search(text):
        return _JAPANESE.sub(" ", _JAPANESE_REQUESTS.sub(" ", text))
    return _CHINESE.sub(" ", text)


def _function_words(text: str) -> frozenset[str]:
    """Those of the language that most words of `text` speak for; of English unless two more do."""
    found = plain_words(text)
    votes = {
        language: sum(word in dropped for word in found)
        for language, dropped in FUNCTION_WORDS.items()
    }
    best = max(votes, key=lambda language: votes[language])
    return FUNCTION_WORDS[best if votes[best] > votes["English"] + 1 else "English"]
