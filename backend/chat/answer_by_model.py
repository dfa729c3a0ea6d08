"""Answer a turn with a language model, in the mode that its asker chose."""

from collections.abc import Generator

from backend.chat.chat_mode import run_chat_mode
from backend.chat.chat_state import ChatStateContainer
from backend.chat.events import ChatEvent
from backend.chat.llm_loop import run_llm_loop
from backend.chat.turn import ChatDependencies, ChatTurn
from backend.chat.turn_settings import AgentMode, ChatMode


def answer_by_model(
    turn: ChatTurn, dependencies: ChatDependencies, state: ChatStateContainer
) -> Generator[ChatEvent, None, None]:
    """Answer a turn in its mode.

    The last event is AnswerDone or TurnFailed; closing the generator stops the turn and the model.
    """
    match turn.mode:
        case AgentMode():
            return run_llm_loop(turn, dependencies, state)
        case ChatMode() as mode:
            return run_chat_mode(turn, mode, dependencies, state)
