"""Which scripts an embedder understands, measured; what it does not understand gets no vote.

An embedder gives every text a vector, also in languages it never learned, and there its likeness is
noise that only harms a ranking. So a new model is put to a small test: in each of thirteen
languages it must lead eight questions to their answers (`language_probes`).

The figure of a language is the mean reciprocal rank of the right passage for each question and of
the right question for each passage, 0 at chance and 1 when all are first. Before ranking, each
row's and each column's mean is taken off the similarities: among so few texts one passage that is
near everything would hide what the model knows (on such hubs: Radovanović et al., "Hubs in Space",
JMLR 2010).

The same texts show what a cosine between two unrelated texts may be: the *floor*, below which a passage that
shares no word with a query is no result; and what a cosine of unrelated and of related texts usually is, by
which cosines of different embedders are compared.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import regex
from numpy.typing import NDArray

from indexing.embedding.embedder import Embedder
from indexing.embedding.language_probes import PROBE_VERSION, PROBES, Pairs
from indexing.runtime.atomic_file import write_atomically
from indexing.runtime.deadline import Deadline
from indexing.text.normalization import fold
from indexing.text.stop_words import FUNCTION_WORDS

NOISE = 0.5
"""Up to here a language is not understood at all; chance has a standard deviation of 0.16."""
UNDERSTOOD = 0.7
"""From here on it counts as understood; between the two the share grows evenly."""

FLOOR_DEVIATIONS = 3.3
"""The floor lies so many standard deviations above the mean of unrelated pairs. One pair in two thousand
lies above that by chance, if cosines are distributed normally: a query is compared with thousands of passages."""
NO_FLOOR = -1.0
REFERENCE_COSINES = (0.045, 0.353)
"""Of unrelated and of related texts with all-MiniLM-L6-v2, as `measure` finds them."""
MIN_RANGE = 0.05
"""Between the two of any embedder: a smaller one is noise."""

_LATIN = ("German", "French", "Spanish")
_LANGUAGE_OF_SCRIPT = {
    "Cyrillic": "Russian",
    "Greek": "Greek",
    "Arabic": "Arabic",
    "Hebrew": "Hebrew",
    "Devanagari": "Hindi",
    "Han": "Chinese",
    "Kana": "Japanese",
    "Hangul": "Korean",
    "Thai": "Thai",
}
_PATIENCE = 600.0

_LETTERS = regex.compile(
    r"(?P<Latin>\p{Latin}+)|(?P<Han>\p{Han}+)|(?P<Kana>[\p{Hiragana}\p{Katakana}]+)"
    r"|(?P<Hangul>\p{Hangul}+)|(?P<Cyrillic>\p{Cyrillic}+)|(?P<Greek>\p{Greek}+)"
    r"|(?P<Arabic>\p{Arabic}+)|(?P<Hebrew>\p{Hebrew}+)|(?P<Devanagari>\p{Devanagari}+)"
    r"|(?P<Thai>\p{Thai}+)|(?P<Other>\p{L}+)"
)
_ENGLISH = FUNCTION_WORDS["English"]
_FOREIGN = tuple(
    frozenset(word for word in words - _ENGLISH if len(word) > 1)
    for language, words in FUNCTION_WORDS.items()
    if language != "English"
)
_FOREIGN_WORDS = 2
_ASCII_LETTER = regex.compile(r"[A-Za-z]")
_WORD = regex.compile(r"\p{Latin}+")
_MARKED_LETTERS = 3
_MARKED_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class CosineScale:
    """What cosines of an embedder mean."""

    unrelated: float = 0.0
    """Up to here they say nothing: most texts that have nothing to do with each other lie below."""
    related: float = 1.0
    """The usual cosine of a question and the passage that answers it."""

    def strength(self, cosine: float) -> float:
        """Return how much a cosine speaks for a passage: 0 as of unrelated texts, 1 as of related ones or nearer."""
        return min(1.0, max(0.0, (cosine - self.unrelated) / (self.related - self.unrelated)))


RAW_COSINES = CosineScale()
"""Of an embedder that was not measured."""


@dataclass(frozen=True, slots=True)
class LanguageSupport:
    """What one embedder understands: `vector_weight` of a text is the factor for the share of its vector leg."""

    measured: Mapping[str, float]
    """By language: 0 at chance (or a little below), 1 when every question finds its answer."""
    floor: float = NO_FLOOR
    """The lowest cosine at which a passage is a result without a word of the query."""
    unrelated: float = REFERENCE_COSINES[0]
    """The usual cosine of a question and a passage that have nothing to do with each other."""
    related: float = REFERENCE_COSINES[1]
    """The usual cosine of a question and the passage that answers it."""

    @property
    def cosine_scale(self) -> CosineScale:
        """Begins one standard deviation above the mean of unrelated texts: five in six of them lie below."""
        deviation = max(0.0, self.floor - self.unrelated) / FLOOR_DEVIATIONS
        unrelated = self.unrelated + deviation
        return CosineScale(unrelated, max(self.related, unrelated + MIN_RANGE))

    def rescale(self, cosines: NDArray[np.float64]) -> NDArray[np.float64]:
        """Bring cosines of this embedder to the scale of the one by which thresholds were fitted, 0 to 1."""
        unrelated, related = REFERENCE_COSINES
        stretch = (related - unrelated) / max(self.related - self.unrelated, MIN_RANGE)
        scaled: NDArray[np.float64] = unrelated + (cosines - self.unrelated) * stretch
        return np.clip(scaled, 0.0, 1.0)

    def language(self, language: str) -> float:
        """Rate a language: 0 for noise, 1 for understood; 0 for one that was not measured."""
        figure = self.measured.get(language, 0.0)
        return min(1.0, max(0.0, (figure - NOISE) / (UNDERSTOOD - NOISE)))

    def vector_weight(self, text: str) -> float:
        """Return how much of the text is understood, 0 to 1, by its letters; 1 where it has none."""
        if text.isascii():  # nothing to count: all letters are of one script
            return min(1.0, self._latin(text)) if _ASCII_LETTER.search(text) else 1.0
        letters = Counter[str]()
        for match in _LETTERS.finditer(text):
            letters[match.lastgroup or "Other"] += match.end() - match.start()
        if not letters:
            return 1.0
        shares = (count * self._script(script, text, letters) for script, count in letters.items())
        return min(1.0, sum(shares) / letters.total())

    def _script(self, script: str, text: str, letters: Mapping[str, int]) -> float:
        if script == "Latin":
            return self._latin(text)
        if script == "Han" and letters.get("Kana"):
            script = "Kana"
        return self.language(_LANGUAGE_OF_SCRIPT.get(script, ""))

    def _latin(self, text: str) -> float:
        """Rate Latin letters: as English unless the words or the letters speak for another language."""
        if is_english(text):
            return self.language("English")
        return sum(map(self.language, _LATIN)) / len(_LATIN)


@dataclass(frozen=True, slots=True)
class EmbedderWithLanguages:
    """An embedder together with the languages that it understands."""

    embedder: Embedder
    understanding: LanguageSupport


def is_english(text: str) -> bool:
    """Return whether the Latin letters of a text are English as far as can be seen.

    Names, codes and a single foreign word say nothing, and pass for English: to search English in
    vain with a model that knows it costs more than to give noise a share.
    """
    written = {word.lower() for word in _WORD.findall(text)}
    words = set(map(fold, written))
    english = len(words & _ENGLISH)
    foreign = max(len(words & known) for known in _FOREIGN)
    if foreign >= _FOREIGN_WORDS and foreign > english:
        return False
    letters = "".join(written)
    marked = len(letters) - len(letters.encode("ascii", "ignore"))
    return english > 0 or marked < _MARKED_LETTERS or marked < _MARKED_SHARE * len(letters)


EVERYTHING = LanguageSupport(dict.fromkeys(PROBES, 1.0))


def measure(embedder: Embedder) -> LanguageSupport:
    """Put an embedder to the test: 208 short texts, a second for a local model.

    Raises:
        TemporarilyUnavailableError, ActionRequiredError: a remote model does not answer.
    """
    cosines = {language: _cosines(embedder, pairs) for language, pairs in PROBES.items()}
    measured = {language: rescaled_reciprocal_rank(each) for language, each in cosines.items()}
    known = [each for language, each in cosines.items() if measured[language] >= UNDERSTOOD]
    return LanguageSupport(measured, compute_floor(known), *compute_usual_cosines(known))


def compute_usual_cosines(cosines: Sequence[NDArray[np.float32]]) -> tuple[float, float]:
    """Return the mean cosine of unrelated and that of related pairs, the latter on the diagonals."""
    if not cosines:
        return REFERENCE_COSINES
    related = float(np.concatenate([np.diagonal(each) for each in cosines]).mean())
    return float(_unrelated_pairs(cosines).mean()), related


def compute_floor(cosines: Sequence[NDArray[np.float32]]) -> float:
    """Compute the floor from square matrices of cosines whose related pairs are on the diagonal.

    Without a matrix there is no floor: where no language is understood, vectors have no vote.
    """
    if not cosines:
        return NO_FLOOR
    unrelated = _unrelated_pairs(cosines)
    return float(unrelated.mean() + FLOOR_DEVIATIONS * unrelated.std())


def _unrelated_pairs(cosines: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    return np.concatenate([each[~np.eye(len(each), dtype=np.bool_)] for each in cosines])


def load_language_support(embedder: Embedder, cache: Path) -> LanguageSupport:
    """Measure what a model understands when it is new, afterwards read it from the folder `cache`.

    Raises:
        TemporarilyUnavailableError, ActionRequiredError: a remote model is new and does not answer.
    """
    key = json.dumps([PROBE_VERSION, asdict(embedder.identity)], sort_keys=True)
    file = cache / f"understanding-{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"
    if file.is_file():
        return from_json(file.read_text(encoding="utf-8"))
    understanding = measure(embedder)
    cache.mkdir(parents=True, exist_ok=True)
    write_atomically(file, to_json(understanding))
    return understanding


def to_json(understanding: LanguageSupport) -> str:
    return json.dumps(asdict(understanding), indent=2)


def from_json(text: str) -> LanguageSupport:
    fields = json.loads(text)
    measured = {str(key): float(value) for key, value in fields["measured"].items()}
    return LanguageSupport(
        measured, float(fields["floor"]), float(fields["unrelated"]), float(fields["related"])
    )


def _cosines(embedder: Embedder, pairs: Pairs) -> NDArray[np.float32]:
    """Compare every question with every passage: shape (questions, passages)."""
    questions = embedder.embed_queries([pair[0] for pair in pairs], Deadline.after(_PATIENCE))
    passages = embedder.embed_passages([pair[1] for pair in pairs])
    cosines: NDArray[np.float32] = questions @ passages.T
    return cosines


def rescaled_reciprocal_rank(likeness: NDArray[np.float32]) -> float:
    """Rate a square matrix whose right pairs are on the diagonal: 1 if all are first, 0 at chance."""
    centred = likeness - likeness.mean(axis=0) - likeness.mean(axis=1, keepdims=True)
    both = np.concatenate([_ranks(centred), _ranks(centred.T)])
    size = len(likeness)
    chance = sum(1 / rank for rank in range(1, size + 1)) / size
    return float(((1 / both).mean() - chance) / (1 - chance))


def _ranks(scores: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the rank of the diagonal in each row, counted from 1; those that tie with it go before it."""
    ranks: NDArray[np.int64] = (scores >= np.diagonal(scores)[:, np.newaxis]).sum(axis=1)
    return ranks
