"""What an embedder understands: the measure, the languages of a text, and real embedders."""

from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.embedding.language_probes import PROBES
from indexing.embedding.language_support import (
    EVERYTHING,
    FLOOR_DEVIATIONS,
    NO_FLOOR,
    NOISE,
    REFERENCE_COSINES,
    UNDERSTOOD,
    LanguageSupport,
    compute_floor,
    compute_usual_cosines,
    from_json,
    is_english,
    load_language_support,
    measure,
    rescaled_reciprocal_rank,
    to_json,
)
from indexing.text.stop_words import FUNCTION_WORDS
from tests.support.models import minilm


@pytest.mark.soak("slow")
def test_minilm_understands_english_only() -> None:
    understanding = measure(minilm())
    shares = {language: understanding.language(language) for language in PROBES}
    assert shares == {**dict.fromkeys(PROBES, 0.0), "English": 1.0}


def test_an_embedder_that_knows_only_letters_understands_nothing() -> None:
    assert measure(HashingEmbedder()).vector_weight("Who approves travel?") == 0.0
    assert measure(HashingEmbedder()).vector_weight("谁批准出差？") == 0.0


@pytest.mark.parametrize("language", PROBES)
def test_a_question_shares_no_telling_word_with_its_passage(language: str) -> None:
    function_words = FUNCTION_WORDS.get(language, frozenset())
    for question, passage in PROBES[language]:
        shared = _words(question) & _words(passage) - function_words
        assert not shared, (question, passage)


def _words(text: str) -> frozenset[str]:
    """Words of four letters and more by their beginnings, and pairs of ideographs."""
    words = regex.findall(r"[\p{L}\p{M}]{4,}", text.lower())
    pairs = [a + b for a, b in pairwise(text) if regex.match(r"\p{Han}{2}", a + b)]
    return frozenset([*(word[:5] for word in words), *pairs])


def test_every_language_has_the_same_number_of_different_texts() -> None:
    for pairs in PROBES.values():
        assert len(pairs) == 8
        assert all(set(a).isdisjoint(b) for a, b in combinations(pairs, 2))


def test_the_measure_by_hand() -> None:
    right = np.eye(2, dtype=np.float32)
    # All four first: (1 - 0.75) / (1 - 0.75), with the chance of two, (1 + 1/2) / 2 = 0.75.
    assert rescaled_reciprocal_rank(right) == pytest.approx(1.0)
    # All four last: (0.5 - 0.75) / (1 - 0.75).
    assert rescaled_reciprocal_rank(right[::-1]) == pytest.approx(-1.0)
    # All alike: what ties goes before.
    assert rescaled_reciprocal_rank(np.ones((2, 2), dtype=np.float32)) == pytest.approx(-1.0)
    # A passage that is near every question does not hide that the questions know theirs.
    assert rescaled_reciprocal_rank(
        right + np.array([[5, 0], [5, 0]], np.float32)
    ) == pytest.approx(1.0)


def test_noise_stays_below_the_threshold() -> None:
    random = np.random.default_rng(7)
    figures = [
        rescaled_reciprocal_rank(random.standard_normal((8, 8)).astype(np.float32))
        for _ in range(2000)
    ]
    assert np.mean(figures) == pytest.approx(0.0, abs=0.02)
    assert np.mean(np.array(figures) > NOISE) < 0.005


MIXED = LanguageSupport({"English": 1.0, "Chinese": 0.0, "Japanese": 0.6, "German": 0.6})


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("Who approves travel?", 1.0),
        ("E-1042", 1.0),
        ("2024-01-01 !?", 1.0),
        ("", 1.0),
        ("报销", 0.0),
        # Six Latin letters of ten.
        ("iPhone的保修期", 0.6),
        # Kana make the ideographs Japanese: (0.6 - 0.5) / (0.7 - 0.5).
        ("有給休暇は", 0.5),
        ("გამარჯობა", 0.0),
        # German 0.5, French and Spanish nothing: a third of it.
        ("Wer darf über die Reisen entscheiden?", 0.5 / 3),
    ],
)
def test_the_share_goes_by_letters(text: str, share: float) -> None:
    assert MIXED.vector_weight(text) == pytest.approx(share)


@given(st.text())
def test_every_share_is_between_nothing_and_all(text: str) -> None:
    assert 0.0 <= MIXED.vector_weight(text) <= 1.0


@pytest.mark.parametrize(
    ("text", "english"),
    [
        ("Who may approve travel?", True),
        ("reset password SAP Fiori", True),
        ("Café Zürich", True),
        ("die cutting machine", True),
        ("resumé of the naïve façade", True),
        ("Wer genehmigt die Reisen?", False),
        ("¿Quién aprueba los viajes?", False),
        ("Chính sách hoàn tiền", False),
    ],
)
def test_english_is_distinguished_from_its_neighbors(text: str, english: bool) -> None:  # noqa: FBT001
    assert is_english(text) is english


def test_what_was_measured_is_kept(tmp_path: Path) -> None:
    embedder = HashingEmbedder()
    first = load_language_support(embedder, tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_text(to_json(EVERYTHING))
    assert first != EVERYTHING
    assert load_language_support(embedder, tmp_path) == EVERYTHING
    # Another embedder is measured by itself.
    assert load_language_support(replace(embedder, dimension=128), tmp_path) != EVERYTHING


def test_json_there_and_back() -> None:
    assert from_json(to_json(MIXED)) == MIXED


def test_the_floor_by_hand() -> None:
    related = 0.9
    # Unrelated pairs 0.1 and 0.3: mean 0.2, standard deviation 0.1.
    cosines = np.array([[related, 0.1], [0.3, related]], np.float32)
    assert compute_floor([cosines]) == pytest.approx(0.2 + FLOOR_DEVIATIONS * 0.1)
    assert compute_floor([]) == NO_FLOOR


def test_the_usual_cosines_by_hand() -> None:
    cosines = [
        np.array([[0.9, 0.1], [0.3, 0.7]], np.float32),
        np.array([[0.5, 0.2], [0.2, 0.5]], np.float32),
    ]
    assert compute_usual_cosines(cosines) == pytest.approx((0.2, 0.65))
    assert compute_usual_cosines([]) == REFERENCE_COSINES


def test_cosines_of_another_embedder_are_brought_to_the_scale_of_the_reference() -> None:
    high = LanguageSupport({}, unrelated=0.7, related=0.9)
    unrelated, related = REFERENCE_COSINES
    assert high.rescale(np.array([0.7, 0.9, 0.1])) == pytest.approx([unrelated, related, 0.0])
    assert LanguageSupport({}).rescale(np.array([0.4])) == pytest.approx([0.4])


def test_the_floor_of_an_embedder_is_measured_over_the_languages_that_it_understands() -> None:
    measured = measure(HashingEmbedder())
    assert (measured.floor == NO_FLOOR) == (max(measured.measured.values()) < UNDERSTOOD)
