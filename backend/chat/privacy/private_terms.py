"""Find the terms of a text that may give away what only some may read: codes, quoted words, names, amounts.

Terms are compared by their letters and digits alone, folded, so that neither case and width nor blanks and punctuation
between them make another term.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise

import regex

from backend.chat.privacy.han_names import find_han_names
from backend.chat.privacy.private_names import find_names
from backend.chat.privacy.well_known_names import is_well_known
from indexing.text.analysis import guess_languages
from indexing.text.languages import LANGUAGES
from indexing.text.normalization import SPACELESS, fold
from indexing.text.stop_words import FUNCTION_WORDS
from indexing.text.tokenizer import find_identifiers

FEWEST_LETTERS = 3
"""Of a term; of one in a script without blanks, two."""
LONGEST_QUOTE = 200
TELLING_DIGITS = 4
"""An amount of so many digits is a term without its currency too."""

_SIGNS: Mapping[str, str] = {"%": "percent", "€": "eur", "$": "usd", "£": "gbp", "¥": "jpy"}
"""Written as letters, so that an amount has the same ones however it is written."""
_CURRENCIES: tuple[tuple[str, ...], ...] = (
    ("eur", "euro", "euros"),
    ("usd", "dollar", "dollars", "美元", "ドル"),
    ("gbp", "pound", "pounds"),
    ("chf", "francs", "franken"),
    ("jpy", "yen", "円", "日元"),
    ("cny", "rmb", "yuan", "元"),
)
_CURRENCY_OF = {alias: aliases for aliases in _CURRENCIES for alias in aliases}

_QUOTE = regex.compile(
    rf"\"(?P<text>[^\"\n]{{2,{LONGEST_QUOTE}}})\"|“(?P<text>[^“”\n]{{2,{LONGEST_QUOTE}}})”|„(?P<text>[^„“”\n]{{2,{LONGEST_QUOTE}}})[“”]"
    rf"|«(?P<text>[^«»\n]{{2,{LONGEST_QUOTE}}})»|「(?P<text>[^「」\n]{{2,{LONGEST_QUOTE}}})」|『(?P<text>[^『』\n]{{2,{LONGEST_QUOTE}}})』"
    rf"|《(?P<text>[^《》\n]{{2,{LONGEST_QUOTE}}})》|〈(?P<text>[^〈〉\n]{{2,{LONGEST_QUOTE}}})〉"
)
_EMPHASIS = regex.compile(r"[\p{Ll}'’-]+")
_NAME_WORD = r"(?:\p{Lu}\.|\p{Lu}[\p{L}\p{M}\p{N}'’-]{0,60}+)"
_CONNECTOR = (
    r"(?:(?:of|de|del|della|di|da|do|dos|van|von|der|den|la|le|du|zu|bin|al|and|&)[ \t]+){0,2}"
)
_NAME = regex.compile(rf"(?<![\p{{L}}\p{{N}}]){_NAME_WORD}(?:[ \t]+{_CONNECTOR}{_NAME_WORD})++")
_SENTENCE_END = regex.compile(r"[.!?:\n][\s\"“„»«]*+\Z")
_ANY_WORD = regex.compile(r"[\p{L}\p{M}\p{N}'’-]++")
_NAME_PART = regex.compile(_NAME_WORD)
# With a bound, so that a table of numbers, each of which begins an amount, takes linear time.
_NUMBER = r"(?:\d{1,3}(?:[.,'’ ]\d{3}){1,6}(?:[.,]\d{1,2})?|\d+(?:[.,]\d+)?)"
_SCALE = r"(?:thousand|k|m|mn|bn|million(?:en|s)?|billion|mio|mrd|万|亿|億)"
_MONEY = (
    r"(?:€|\$|£|¥|eur(?:os?)?|usd|dollars?|gbp|pounds?|chf|francs|franken|jpy|yen|cny|rmb|yuan"
    r"|美元|ドル|円|日元|元)"
)
_UNIT = (
    rf"(?:%|％|percent|per cent|{_SCALE}|kg|tons?|km|cm|mm|[kmgt]b|[kmg]wh?|hours?|days?|weeks?|months?|years?|minutes?|stunden?|tagen?"
    r"|wochen?|monaten?|jahren?|jours?|semaines?|mois|ans|días?|semanas?|meses|años?|employees|people|customers|mitarbeiter\w*|人|名|天"
    r"|小时|個月|个月|周|週間|時間|か月)"
)
_AMOUNT = regex.compile(
    rf"(?<![\p{{L}}\p{{N}}.,])(?:(?P<money>{_MONEY})\s?+(?P<number>{_NUMBER})|(?P<number>{_NUMBER})\s?+(?P<scale>{_SCALE})?\s?+(?P<money>{_MONEY})"
    rf"|(?P<number>{_NUMBER})[\s-]?(?P<unit>{_UNIT}))(?![\p{{Latin}}\p{{N}}])",
    regex.IGNORECASE,
)
_UMLAUTS = {"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"}
_UMLAUT = regex.compile("[äöüøå]", regex.IGNORECASE)
_DIGRAPH = regex.compile("(?:ae|oe|(?<![aeq])ue|aa)", regex.IGNORECASE)
_SPACELESS_LETTER = regex.compile(rf"[{SPACELESS}]")


@lru_cache(maxsize=1 << 14)
def fold_character(character: str) -> str:
    """Return the letters and digits by which a character is compared; none for blanks and punctuation."""
    sign = _SIGNS.get(unicodedata.normalize("NFKC", character))
    return sign or "".join(one for one in fold(character) if one.isalnum())


def letters_of(text: str) -> str:
    return "".join(map(fold_character, unicodedata.normalize("NFC", text)))


def fold_words(text: str) -> str:
    """Return the letters of a text with a blank in place of all else."""
    return "".join(fold_character(one) or " " for one in unicodedata.normalize("NFC", text))


@lru_cache(maxsize=64)
def find_terms(text: str) -> frozenset[str]:
    """Return the letters of all terms of a text, in each way to write an umlaut."""
    names = chain(find_names(text), find_han_names(text))
    return frozenset(find_query_terms(text) | _to_letters(names))


def find_query_terms(query: str) -> set[str]:
    """Return the letters of the terms of a query, without names of a single word: its capitals tell nothing of them."""
    return _to_letters(_find_written_terms(query)) | set(filter(is_telling, _find_amounts(query)))


def _to_letters(terms: Iterable[str]) -> set[str]:
    found = (letters_of(spelled) for term in terms for spelled in spell(term))
    return set(filter(is_telling, found))


def spell(text: str) -> tuple[str, ...]:
    """Return a text, and as it is written where there are no umlauts, or where there are ("Mueller", "Müller")."""
    spread = _UMLAUT.sub(lambda found: _UMLAUTS[found[0].lower()], text)
    drawn = _DIGRAPH.sub(lambda found: found[0][0], text)
    return tuple(dict.fromkeys((text, spread, drawn)))


def is_telling(letters: str) -> bool:
    """Return whether a term has letters enough to be distinguished from others."""
    return len(letters) >= (2 if _SPACELESS_LETTER.search(letters) else FEWEST_LETTERS)


def _find_written_terms(text: str) -> Iterator[str]:
    for span in find_identifiers(text):
        yield from _split_address(span.of(text))
    for quote in _QUOTE.finditer(text):
        # A single word in quotation marks is emphasised, unless it is a name.
        if not _EMPHASIS.fullmatch(quote["text"]):
            yield quote["text"]
    words = _TextWords.of(text)
    for name in _NAME.finditer(text):
        yield from _find_pairs(name, words)


def _split_address(identifier: str) -> Iterator[str]:
    """Yield an identifier; of an address its host too, and the mailbox."""
    yield identifier
    mailbox, at, host = identifier.rpartition("://")[2].partition("/")[0].rpartition("@")
    if at or "://" in identifier:
        yield from (part for part in (mailbox, host) if "." in part)


@dataclass(frozen=True, slots=True)
class _TextWords:
    """The words of a text by which a name is distinguished from words that only begin with a capital."""

    small: frozenset[str]
    """Those that the text writes with a small letter."""
    small_pairs: frozenset[tuple[str, str]]
    """Neighbors that both are."""
    grammar: frozenset[str]
    """Function words of English and of the language of the text."""
    has_capital_nouns: bool
    """As German has."""

    @classmethod
    def of(cls, text: str) -> "_TextWords":
        found = _ANY_WORD.findall(text)
        pairs = (pair for pair in pairwise(found) if pair[0][0].islower() and pair[1][0].islower())
        language = guess_languages(text).get("Latin", "en")
        return cls(
            frozenset(word for word in found if word[0].islower()),
            frozenset(pairs),
            FUNCTION_WORDS["English"]
            | (FUNCTION_WORDS["German"] if language == "de" else LANGUAGES[language].stop_words),
            language == "de",
        )

    def is_ordinary(self, first: str, second: str, phrase: str, *, at_start: bool) -> bool:
        """Return whether two words are no name: one of grammar, or a phrase that the text writes in small letters too.

        In German each noun has a capital, and so has the first word of a sentence: there a word that the text writes
        small elsewhere is no name.
        """
        if any(fold(word) in self.grammar for word in (first, second)):
            return True
        if is_well_known(first) and is_well_known(second):
            return True
        if self.has_capital_nouns and at_start and first.lower() in self.small:
            return True
        return self.small_pairs.issuperset(pairwise(_ANY_WORD.findall(phrase.lower())))


def _find_pairs(name: regex.Match[str], words: _TextWords) -> Iterator[str]:
    """Yield each two neighboring words of a name."""
    begins_sentence = _SENTENCE_END.search(name.string, max(0, name.start() - 3), name.start())
    for first, second in pairwise(_NAME_PART.finditer(name[0])):
        pair = name[0][first.start() : second.end()]
        at_start = first.start() == 0 and (name.start() == 0 or begins_sentence is not None)
        if not words.is_ordinary(first[0], second[0], pair, at_start=at_start):
            yield pair


def _find_amounts(text: str) -> Iterator[str]:
    for found in _AMOUNT.finditer(text):
        number = letters_of(found["number"])
        money = letters_of(found["money"] or "")
        scaled = number + letters_of(found["scale"] or "")
        for alias in _CURRENCY_OF.get(money, ()):
            yield scaled + alias
            yield alias + scaled
        if money and len(number) >= TELLING_DIGITS:
            yield number
        if found["unit"]:
            yield number + letters_of(found["unit"])
