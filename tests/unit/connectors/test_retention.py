from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from connectors.retention import Retention

_DAYS = st.integers(0, 1000)


@given(st.integers(1, 1000), _DAYS)
def test_a_document_stays_for_its_period(period: int, unlisted: int) -> None:
    retention = Retention(prefixes=("a/", "b/"), period=timedelta(days=period))
    assert retention.keeps("b/1", timedelta(days=unlisted)) == (unlisted < period)
    assert not retention.keeps("c/1", timedelta(days=unlisted))


@given(_DAYS)
def test_without_a_period_it_stays_for_ever(unlisted: int) -> None:
    retention = Retention(prefixes=("a/",), period=None)
    assert retention.keeps("a/1", timedelta(days=unlisted))
    assert not retention.keeps("a", timedelta(days=unlisted))
