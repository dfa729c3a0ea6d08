"""A checkpoint is read back, or it is as if there were none."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from connectors.checkpoints import is_stamp, stamp, stored
from connectors.connector import Checkpoint

MOMENTS = st.datetimes(datetime(1970, 1, 1), datetime(2999, 12, 31), timezones=st.just(UTC))


def test_what_is_no_json_is_nothing() -> None:
    assert stored(None) is None
    assert stored(Checkpoint("")) is None
    assert stored(Checkpoint("{")) is None
    assert stored(Checkpoint('{"at": [1, "a"]}')) == {"at": [1, "a"]}


@given(MOMENTS, MOMENTS)
def test_stamps_sort_by_time_and_only_stamps_are_stamps(one: datetime, other: datetime) -> None:
    assert is_stamp(stamp(one))
    assert not is_stamp(stamp(one)[:-1])
    if one + timedelta(seconds=1) <= other:
        assert stamp(one) < stamp(other)
