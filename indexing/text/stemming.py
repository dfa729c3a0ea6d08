"""Snowball stemmers, by the names of their algorithms."""

import threading

import Stemmer  # type: ignore[import-not-found]

_stemmers = threading.local()


def stem(word: str, algorithm: str | None) -> str:
    """Return the stem of a word in lower case; without an algorithm, the word."""
    if algorithm is None:
        return word
    # A stemmer keeps state in C and must not be shared by threads.
    stemmers: dict[str, Stemmer.Stemmer] = _stemmers.__dict__
    if algorithm not in stemmers:
        stemmers[algorithm] = Stemmer.Stemmer(algorithm)
    found: str = stemmers[algorithm].stemWord(word)
    return found
