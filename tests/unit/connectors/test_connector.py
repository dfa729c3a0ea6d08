"""A checkpoint is read back, or it is as if there were none."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from connectors.connector import Checkpoint, format_timestamp, is_timestamp, load_checkpoint

MOMENTS = st.datetimes(datetime(1970, 1, 1), datetime(2999, 12, 31), timezones=st.just(UTC))


def test_what_is_no_json_is_nothing() -> None:
    assert load_checkpoint(None) is None
    assert load_checkpoint(Checkpoint("")) is None
    assert load_checkpoint(Checkpoint("{")) is None
    assert load_checkpoint(Checkpoint('{"at": [1, "a"]}')) == {"at": [1, "a"]}


@given(MOMENTS, MOMENTS)
def test_stamps_sort_by_time_and_only_stamps_are_stamps(one: datetime, other: datetime) -> None:
    assert is_timestamp(format_timestamp(one))
    assert not is_timestamp(format_timestamp(one)[:-1])
    if one + timedelta(seconds=1) <= other:
        assert format_timestamp(one) < format_timestamp(other)
