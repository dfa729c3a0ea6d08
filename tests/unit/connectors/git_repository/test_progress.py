from hypothesis import given
from hypothesis import strategies as st

from connectors.connector import Checkpoint
from connectors.git_repository.progress import (
    Completed,
    InProgress,
    SyncProgress,
    from_checkpoint,
    to_checkpoint,
)

PROGRESS = st.one_of(
    st.builds(Completed, st.text()),
    st.builds(
        InProgress,
        base=st.none() | st.text(),
        commit=st.text(),
        done=st.integers(min_value=0),
    ),
)


@given(at=PROGRESS, chosen=st.text())
def test_a_checkpoint_says_where_it_was_made(at: SyncProgress, chosen: str) -> None:
    assert from_checkpoint(to_checkpoint(at, chosen), chosen) == at


@given(at=PROGRESS)
def test_with_other_settings_one_begins_from_the_start(at: SyncProgress) -> None:
    assert from_checkpoint(to_checkpoint(at, "these"), "those") is None


@given(value=st.text() | st.sampled_from(["1", "[]", '{"commit": 1, "chosen": "x"}']))
def test_what_says_nothing_sensible_begins_from_the_start(value: str) -> None:
    assert from_checkpoint(Checkpoint(value), "x") is None
