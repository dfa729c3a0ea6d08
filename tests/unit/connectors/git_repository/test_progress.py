from hypothesis import given
from hypothesis import strategies as st

from connectors.connector import Checkpoint
from connectors.git_repository.progress import Arrived, Place, Stage, checkpoint, place

PLACES = st.one_of(
    st.builds(Arrived, st.text()),
    st.builds(
        Stage,
        base=st.none() | st.text(),
        commit=st.text(),
        done=st.integers(min_value=0),
    ),
)


@given(at=PLACES, chosen=st.text())
def test_a_checkpoint_says_where_it_was_made(at: Place, chosen: str) -> None:
    assert place(checkpoint(at, chosen), chosen) == at


@given(at=PLACES)
def test_with_other_settings_one_begins_from_the_start(at: Place) -> None:
    assert place(checkpoint(at, "these"), "those") is None


@given(value=st.text() | st.sampled_from(["1", "[]", '{"commit": 1, "chosen": "x"}']))
def test_what_says_nothing_sensible_begins_from_the_start(value: str) -> None:
    assert place(Checkpoint(value), "x") is None
