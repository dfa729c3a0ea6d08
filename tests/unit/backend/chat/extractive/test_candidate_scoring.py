"""The decision whether anything answers: its figures by hand, and which way each of them points."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.chat.extractive.candidate_scoring import (
    BY_MEANING,
    BY_WORDS,
    OWN_CASE,
    AnswerabilityModel,
    AnswerEvidence,
    measure_missing,
    model_by_meaning,
    typical_score,
)

SHARES = st.floats(0, 1)


def test_the_typical_score_is_the_median_drawn_to_its_usual_level() -> None:
    # (2 * 0.5 + 8 * 0.2) / 10 = 0.26
    assert typical_score(np.array([0.6, 0.4]), 0.2) == pytest.approx(0.26)


def test_missing_is_the_weightiest_word_that_is_not_held_and_the_share_of_all_of_them() -> None:
    missing, share = measure_missing(np.array([0.3, 0.2, 0.1]), np.array([1.0, 0.5, 0.0]))
    assert missing == pytest.approx(0.1)
    assert share == pytest.approx(0.2 / 0.6)  # half of 0.2, and 0.1
    assert measure_missing(np.array([]), np.array([])) == (0.0, 0.0)


@pytest.mark.parametrize("model", [BY_MEANING, BY_WORDS, OWN_CASE])
@given(margins=st.tuples(SHARES, SHARES), lacks=st.tuples(SHARES, SHARES), rest=SHARES)
def test_a_wider_margin_never_speaks_against_an_answer_nor_a_missing_word_for_it(
    model: AnswerabilityModel,
    margins: tuple[float, float],
    lacks: tuple[float, float],
    rest: float,
) -> None:
    good = AnswerEvidence(
        margin=max(margins), missing=min(lacks), missing_share=min(lacks), matched=rest + 1
    )
    bad = AnswerEvidence(
        margin=min(margins), missing=max(lacks), missing_share=max(lacks), matched=rest
    )
    assert model.log_odds(good) >= model.log_odds(bad)


@pytest.mark.parametrize(
    ("question", "model"),
    [
        ("Who opened the museum?", BY_MEANING),
        ("My phone was stolen. Whom do I call?", OWN_CASE),
        ("Is it all right to smoke?", OWN_CASE),
        ("Muss ich das selbst bezahlen? Ich war in Graz.", OWN_CASE),
        ("How many days of leave do I get?", BY_MEANING),  # a lone question for a value
        ("I work by night. How many days of leave do I get?", OWN_CASE),
        ("How many days of leave did I get under the old rules?", OWN_CASE),
    ],
)
def test_a_question_on_the_askers_own_case_has_a_model_of_its_own(
    question: str, model: AnswerabilityModel
) -> None:
    assert model_by_meaning(question) is model
