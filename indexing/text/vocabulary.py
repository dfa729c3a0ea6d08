"""Words that ordinary texts of a language use, by the dictionaries of pyspellchecker."""

from collections.abc import Mapping
from functools import lru_cache

import spellchecker

WITH_DICTIONARY = frozenset(spellchecker.SpellChecker.languages())
"""Languages, by their ISO 639-1 codes."""


@lru_cache(maxsize=4)
def load_vocabulary(language: str) -> Mapping[str, int]:
    """Return the words of a language in lower case, inflected forms too, each with its place among them by frequency.

    The most frequent one has 0. Empty where the language has no dictionary. One takes up to a second to load, and 60 MB.
    """
    if language not in WITH_DICTIONARY:
        return {}
    counts = spellchecker.SpellChecker(language=language).word_frequency.dictionary
    frequent_first = sorted(counts, key=lambda word: (-counts[word], word))
    return {word: place for place, word in enumerate(frequent_first)}
