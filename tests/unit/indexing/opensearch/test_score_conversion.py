"""Raw figures from the cluster's scores."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexing.opensearch import score_conversion
from indexing.opensearch.mapping import VectorSettings
from tests.support.chunks import vector

BYTES = VectorSettings(quantisation="byte")


@pytest.mark.parametrize(
    ("score", "product"),
    [(2.0, 1.0), (1.9, 0.9), (1.0, 0.0), (0.5, -1.0), (2 / 3, -0.5), (1 / 14_431, -14_430.0)],
)
def test_a_score_is_converted_to_the_inner_product(score: float, product: float) -> None:
    assert score_conversion.score_to_product(score) == pytest.approx(product)


@given(st.floats(-2.0, 2.0))
def test_lucenes_score_formula_is_inverted(product: float) -> None:
    # MAXIMUM_INNER_PRODUCT of Lucene's VectorSimilarityFunction.
    score = product + 1.0 if product >= 0.0 else 1.0 / (1.0 - product)
    assert score_conversion.score_to_product(score) == pytest.approx(product, abs=1e-12)


@pytest.mark.parametrize(
    ("version", "factor"),
    [("2.17.0", 1.0), ("2.19.1", 1.0), ("3.0.0", 2.2), ("3.5.0-SNAPSHOT", 2.2), ("10.1", 2.2)],
)
def test_bm25_is_converted_to_robertsons(version: str, factor: float) -> None:
    assert score_conversion.bm25_factor(version) == factor


def test_a_query_is_compared_as_vectors_are_kept() -> None:
    asked = vector("asked")
    assert score_conversion.to_query_vector(asked, VectorSettings()) == pytest.approx(
        asked.tolist(), abs=1e-7
    )
    whole = score_conversion.to_query_vector(asked, BYTES)
    assert all(isinstance(value, int) for value in whole)
    assert np.array(whole) @ np.array(whole) / score_conversion.self_product(
        BYTES
    ) == pytest.approx(1.0, abs=0.01)
