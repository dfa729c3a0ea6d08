"""Analysis: how the texts of an index, and the queries to it, become the words that are compared.

An index stores the fingerprint of the analysis that made its words, and is searched and written with that one
until its words are made anew. Two are known: `BY_LANGUAGE`, which makes the words of every new index, and
`ENGLISH`, which made them before (`tokenizer.words` for texts and queries alike).

The rules of `BY_LANGUAGE`, beyond those of the tokenizer:

1. Each text is stemmed in its own language, and loses the stop words of that. A query is stemmed in every
   language that the documents before the asker are in.
2. A stem of a language other than the default one of its script is tagged, as in `de/haus`: stems of two
   languages that are written alike have nothing to do with each other, and a word is as rare as it is in
   its own language. Words with a digit and compound words are the same in all languages.
3. Stemming needs diacritics, which people leave out. Where a word of a text has another stem without its
   diacritics, it is indexed under both.
4. Vietnamese writes a word as several syllables: pairs of neighboring syllables are words as well.
5. Thai, Lao, Khmer and Burmese texts yield all pairs and triples of characters; queries the triples.

The language of a text is guessed. Where several share a script, each of their function words and special letters
that the text contains is a vote. Names are written with capitals and would vote for the language that they come from,
so that only words in lower case count. What is undecided, such as a table or a list of names, is taken for the default
language of its script.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from itertools import chain, pairwise
from typing import Protocol, TypeAlias

import regex

from indexing.text import tokenizer
from indexing.text.languages import (
    DEFAULT_CODES,
    LANGUAGES,
    Language,
    Script,
    find_script,
    group_by_script,
)
from indexing.text.normalization import fold, normalize, stem
from indexing.text.stop_words import FUNCTION_WORDS

QueryWord: TypeAlias = tuple[str, ...]
"""One word of a query in all forms under which documents may be indexed, of each language one."""
Languages: TypeAlias = frozenset[str]
"""Codes of languages beside the default ones of their scripts."""

NO_LANGUAGES: Languages = frozenset()
SAMPLE = 20_000
"""Characters of a document by which its language is guessed."""
LEAST_VOTES = 2
CHARACTERS_PER_VOTE = 300
"""A longer text needs one vote more for each so many characters: lists of names contain some by chance."""
MOST_MORE_VOTES = 4
VIETNAMESE = "vi"
LONGEST_SYLLABLE = 7
"""Letters of a syllable of Vietnamese, as in `nghiêng`."""
SYLLABLE_JOINER = "·"

_SPACELESS_PARTS = regex.compile(
    r"(?P<southeast>[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]++)|[^\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]++"
)
_CODE = regex.compile(r"(?=.*\p{L})(?=.*\p{N})[\p{L}\p{N}]++(?:[-._][\p{L}\p{N}]++)++")
_CODE_JOINER = regex.compile(r"[-._]")
_SPACED_CODE = regex.compile(r"(?<![\w-])([A-Z]{1,3}|[a-z]) (\d{2,6})(?![\w-])")
_LOWER_CASE = regex.compile(r"(?<![\p{L}\p{M}\p{N}])[\p{Ll}\p{Lo}][\p{L}\p{M}]*+")
# The same for ASCII texts, which are the most frequent.
_ASCII_LOWER_CASE = re.compile(r"\b[a-z]++\b")
_WORD = regex.compile(r"[\p{L}\p{M}]++")
_PROBE = """
    The employees' “vacation-policy” of Zürich, v2.10: see ERR-1042, foo_bar.py and ann@example.com
    les employées nationales, die Häuser und Wohnungen, las administraciones, i cittadini italiani
    işçilerin evlerinden, lucrătorilor români, pracowników firmy, työntekijöiden, người lao động
    株式会社の就業規則 カタカナ 年假政策 휴가 정책 ฉันทำงาน ພາສາລາວ ភាសាខ្មែរ မြန်မာ работников отпуска
    запослених радника إجازات الموظفين کارمندان कर्मचारियों की छुट्टियाँ कर्मचारीहरूको εργαζομένων
    աշխատողների ஊழியர்களின் 50 % ＡＢＣ
"""


@dataclass(frozen=True, slots=True)
class AnalyzedTexts:
    words: tuple[str, ...]
    """The words of each text, joined by spaces."""
    plain: tuple[str, ...]
    """`tokenizer.plain_words` of each, joined by spaces."""
    languages: Languages
    """Of all texts."""


class Analysis(Protocol):
    @property
    def fingerprint(self) -> str:
        """A digest that changes with the words that are made."""
        ...

    def analyze(self, texts: Sequence[str]) -> AnalyzedTexts:
        """Analyze the texts of one document."""
        ...

    def query_words(self, query: str, languages: Languages) -> list[QueryWord]:
        """Return the words of a query to documents in these languages, in order."""
        ...


class _English:
    @cached_property
    def fingerprint(self) -> str:
        return tokenizer.fingerprint()

    def analyze(self, texts: Sequence[str]) -> AnalyzedTexts:
        found = [tokenizer.words_and_plain_words(text) for text in texts]
        return AnalyzedTexts(
            tuple(" ".join(words) for words, _ in found),
            tuple(" ".join(plain) for _, plain in found),
            NO_LANGUAGES,
        )

    def query_words(self, query: str, languages: Languages) -> list[QueryWord]:
        del languages
        return [(word,) for word in tokenizer.words(query)]


class _ByLanguage:
    @cached_property
    def fingerprint(self) -> str:
        words = (
            add_joined_codes(document_words(_PROBE, frozenset({code})))
            for code in sorted(LANGUAGES)
        )
        return sha256(" ".join(chain.from_iterable(words)).encode()).hexdigest()

    def analyze(self, texts: Sequence[str]) -> AnalyzedTexts:
        languages = [*_choose_languages(texts)]
        words = map(add_joined_codes, map(document_words, texts, languages))
        return AnalyzedTexts(
            tuple(map(" ".join, words)),
            tuple(" ".join(tokenizer.plain_words(text)) for text in texts),
            NO_LANGUAGES.union(*languages),
        )

    def query_words(self, query: str, languages: Languages) -> list[QueryWord]:
        if not languages and query.isascii():
            found = ENGLISH.query_words(query, languages)
        else:
            found = list(_query_words(normalize(query), languages))
        numbers = _spaced_codes(query)
        return [_add_joined_form(word, numbers) for word in found]


ENGLISH: Analysis = _English()
BY_LANGUAGE: Analysis = _ByLanguage()


def find_analysis(fingerprint: str | None) -> Analysis:
    """Return the analysis that made the words of an index.

    One that is not known any more is nearest to the present one.
    """
    return ENGLISH if fingerprint == ENGLISH.fingerprint else BY_LANGUAGE


def add_joined_codes(words: list[str]) -> list[str]:
    """Add each code without what joins its parts: `E-2207`, `E_2207` and `E2207` are one code."""
    codes = [join_code(word) for word in words if not word.isalnum() and _is_code(word)]
    return words + codes if codes else words


def _add_joined_form(word: QueryWord, numbers: Mapping[str, str]) -> QueryWord:
    (whole, *_) = word
    if whole in numbers:
        return (*word, numbers[whole])
    return (*word, join_code(whole)) if not whole.isalnum() and _is_code(whole) else word


def _spaced_codes(query: str) -> dict[str, str]:
    """Return by its number each code whose letters are apart from it, joined: `E 2207`."""
    found = _SPACED_CODE.findall(query)
    return {number: f"{fold(letters)}{number}" for letters, number in found}


def _is_code(word: str) -> bool:
    return _CODE.fullmatch(word, concurrent=False) is not None


def join_code(code: str) -> str:
    """Return a code without what joins its parts."""
    return _CODE_JOINER.sub("", code, concurrent=False)


def _collect_voters(
    signs: Callable[[Language], Iterable[str]],
) -> Mapping[str, tuple[str, ...]]:
    """Return the codes of the languages that each sign, a word or a letter, votes for."""
    voters: dict[str, tuple[str, ...]] = {}
    for language in LANGUAGES.values():
        for sign in signs(language):
            voters[sign] = (*voters.get(sign, ()), language.code)
    return voters


def _voting_words(language: Language) -> Iterable[str]:
    """Return the words that vote for a language: a single letter on its own is rarely a word."""
    more = FUNCTION_WORDS["English"] if language.code == "en" else frozenset()
    return (word for word in language.stop_words | more if len(word) > 1)


_WORD_VOTES = _collect_voters(_voting_words)
_LETTER_VOTES = _collect_voters(lambda language: language.letters)


def guess_languages(text: str) -> Mapping[Script, str]:
    """Return the code of the language of each script in `text` for which there are votes enough."""
    votes = _count_signs(text)
    needed = LEAST_VOTES + min(len(text) // CHARACTERS_PER_VOTE, MOST_MORE_VOTES)
    found: dict[Script, str] = {}
    for code in sorted(votes, key=lambda code: (-votes[code], code not in DEFAULT_CODES, code)):
        if votes[code] >= needed:
            found.setdefault(LANGUAGES[code].script, code)
    return found


def _count_signs(text: str) -> Counter[str]:
    if text.isascii():
        return _count_votes(_ASCII_LOWER_CASE.findall(text), "")
    lower = " ".join(_LOWER_CASE.findall(text, concurrent=False))
    normalized = normalize(lower)
    # Case folding writes ß as ss.
    return _count_votes(normalized.split(), f"{lower}{normalized}")


def find_stop_words(normalized: str, codes: frozenset[str]) -> frozenset[str]:
    """Return the stop words of the language that a query is in, one of `codes` or a default one.

    Several languages are as likely as each other in a short query; a very short one gives no evidence.
    """
    if not codes:
        return frozenset()
    votes = _count_votes(_WORD.findall(normalized, concurrent=False), normalized)
    likely = {code: votes[code] for code in codes | DEFAULT_CODES}
    most = max(LEAST_VOTES, *likely.values())
    found = (LANGUAGES[code].stop_words for code, count in likely.items() if count == most)
    return frozenset[str]().union(*found)


def _count_votes(words: Iterable[str], letters: Iterable[str]) -> Counter[str]:
    """Count for each language, by its code, the distinct signs of it."""
    signs = chain(
        map(_WORD_VOTES.__getitem__, _WORD_VOTES.keys() & frozenset(words)),
        map(_LETTER_VOTES.__getitem__, _LETTER_VOTES.keys() & frozenset(letters)),
    )
    return Counter(chain.from_iterable(signs))


def _choose_languages(texts: Sequence[str]) -> Iterator[Languages]:
    """Guess the languages of each text of a document; of a text that gives too little evidence, those of the document."""
    document = guess_languages("\n".join(texts)[:SAMPLE]) if len(texts) > 1 else {}
    for text in texts:
        guessed = {**document, **guess_languages(text)}
        yield frozenset(code for code in guessed.values() if code not in DEFAULT_CODES)


def find_languages(text: str) -> Languages:
    """Guess the languages of a text, beside the default ones of their scripts."""
    (languages,) = _choose_languages([text])
    return languages


def document_words(text: str, languages: Languages) -> list[str]:
    """Return the words of a text in these languages, as `BY_LANGUAGE` indexes them; codes not yet joined."""
    if not languages and text.isascii():
        return tokenizer.words(text)
    found: list[str] = []
    for run in tokenizer.find_runs(normalize(text)):
        if tokenizer.is_spaceless(run):
            found += _spaceless_words(run, _pairs_and_triples)
        elif len(run) <= tokenizer.LONGEST_WORD:
            found += _document_forms(run, languages)
        else:
            found += _split_document_run(run, languages)
    return found + _pair_syllables(text) if VIETNAMESE in languages else found


@lru_cache(maxsize=1 << 15)
def _document_forms(run: str, languages: Languages) -> tuple[str, ...]:
    return tuple(_split_document_run(run, languages))


def _split_document_run(run: str, languages: Languages) -> list[str]:
    whole, parts = tokenizer.split_run(run)
    found = [fold(compound) for compound in whole]
    for part in parts:
        found += _index_forms(part, languages)
    return found


def _index_forms(word: str, languages: Languages) -> Iterable[str]:
    possible = _possible_languages(word, languages)
    if not possible:
        return (fold(word),)
    language = possible[-1]
    if word in language.stop_words:
        return ()
    return dict.fromkeys((_stem(word, language), _stem(fold(word), language)))


def _query_words(query: str, languages: Languages) -> Iterator[QueryWord]:
    left_out = find_stop_words(query, languages)
    before = ""
    for run in tokenizer.find_runs(query):
        if tokenizer.is_spaceless(run):
            yield from ((word,) for word in _spaceless_words(run, _triples))
            continue
        whole, parts = tokenizer.split_run(run)
        yield from ((fold(compound),) for compound in whole)
        for part in parts:
            forms = () if part in left_out else _query_forms(part, languages)
            syllable = _to_syllable(fold(part))
            if VIETNAMESE in languages and before and syllable:
                forms += (f"{before}{SYLLABLE_JOINER}{syllable}",)
            before = syllable
            if forms:
                yield forms


@lru_cache(maxsize=1 << 15)
def _query_forms(word: str, languages: Languages) -> QueryWord:
    possible = _possible_languages(word, languages)
    if not possible:
        return (fold(word),)
    stems = (_stem(word, language) for language in possible if word not in language.stop_words)
    return tuple(dict.fromkeys(stems))


def _possible_languages(word: str, languages: Languages) -> Sequence[Language]:
    """Return the default language of the word's script and those of `languages`; none, if it is not stemmed."""
    script = None if tokenizer.has_digit(word) else find_script(word)
    return group_by_script(languages)[script] if script else ()


def _stem(word: str, language: Language) -> str:
    if language.code in DEFAULT_CODES:
        return stem(fold(word), language.stemmer)
    return f"{language.code}/{fold(stem(word, language.stemmer))}"


def _spaceless_words(run: str, cut: Callable[[str], Iterable[str]]) -> Iterator[str]:
    """Yield the words of a run, of which the parts in South-East Asian scripts are cut by `cut`."""
    for match in _SPACELESS_PARTS.finditer(fold(run), concurrent=False):
        southeast = match.lastgroup == "southeast"
        yield from cut(match[0]) if southeast else tokenizer.characters_and_bigrams(match[0])


def _pairs_and_triples(run: str) -> Iterable[str]:
    return chain(_cut(run, 2), _cut(run, 3)) if len(run) > 1 else (run,)


def _triples(run: str) -> Iterable[str]:
    return _cut(run, 3) if len(run) > 2 else (run,)


def _cut(run: str, length: int) -> Iterator[str]:
    return (run[start : start + length] for start in range(len(run) - length + 1))


def _pair_syllables(text: str) -> list[str]:
    syllables = map(_to_syllable, tokenizer.plain_words(text))
    return [
        f"{first}{SYLLABLE_JOINER}{second}"
        for first, second in pairwise(syllables)
        if first and second
    ]


def _to_syllable(folded: str) -> str:
    """Return the word if it may be a syllable of Vietnamese, else nothing."""
    possible = len(folded) <= LONGEST_SYLLABLE and folded.isascii() and folded.isalpha()
    return folded if possible else ""
