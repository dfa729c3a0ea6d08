"""The mode of a question as it is sent, stored and read again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.chat.intent.search_plan import Side
from backend.chat.turn_settings import DEFAULT_MODE, AgentMode, ChatMode, TurnMode
from backend.schemas.turn_mode import ModeBody, dump_mode, load_mode
from connectors.errors import ConflictError
from tests.support.sides import BOTH_SIDES

MODES = st.one_of(
    st.just(AgentMode()),
    st.builds(ChatMode, st.frozensets(st.sampled_from(Side)), st.booleans()),
)


def test_what_is_left_out_has_its_usual_position() -> None:
    assert ModeBody().read_mode() == DEFAULT_MODE
    assert ModeBody(web=True).read_mode() == ChatMode(BOTH_SIDES)
    assert ModeBody(knowledge=False, rewrite=False).read_mode() == ChatMode(
        frozenset(), rewrites=False
    )
    assert ModeBody(mode="agent").read_mode() == AgentMode()


@given(MODES)
def test_a_mode_is_stored_and_read_again(mode: TurnMode) -> None:
    assert load_mode(dump_mode(mode)) == mode
    assert ModeBody.from_mode(mode).read_mode() == mode


def test_the_usual_mode_is_stored_as_nothing() -> None:
    assert dump_mode(ModeBody().read_mode()) is None
    assert dump_mode(ModeBody(knowledge=True, web=False, rewrite=True).read_mode()) is None


def test_the_web_is_looked_at_only_where_it_is_asked_for() -> None:
    def fail() -> bool:
        raise AssertionError

    assert ModeBody().read_permitted_mode(fail) == DEFAULT_MODE
    assert ModeBody(web=False).read_permitted_mode(fail) == DEFAULT_MODE
    assert ModeBody(web=True).read_permitted_mode(lambda: True) == ChatMode(BOTH_SIDES)
    with pytest.raises(ConflictError, match="quarry web on"):
        ModeBody(web=True).read_permitted_mode(lambda: False)
