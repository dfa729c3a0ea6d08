"""A turn that begins, and the process that is to run it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from backend.chat.turn_settings import AssistantSettings
from backend.conversations.turn_runner import Answering, TurnOrder, TurnRunner
from backend.store.chat.messages import Message
from backend.store.sync.runs import Process
from backend.sync.run_lease import this_process


@dataclass(frozen=True, slots=True)
class NewTurn:
    """An answer that is to be written."""

    message_id: int
    question: Message
    settings: AssistantSettings
    """Of the assistant, and of the project of the conversation."""


class TurnProcess(Protocol):
    """A process that runs the turns of one asker."""

    @property
    def holder(self) -> Process:
        """Who holds the leases of these turns."""

    def begin(self, turn: NewTurn) -> None:
        """Begin a turn, and return at once."""


class Turns(Protocol):
    """The turns of one asker, in whichever processes they run."""

    def choose_process(self) -> TurnProcess:
        """Return the process that is to run the next turn."""

    def stop(self, message_id: int) -> None:
        """Stop a turn at once, if a process that this one knows runs it."""


@dataclass(frozen=True, slots=True)
class LocalTurns:
    """Turns that this process runs. Implements `Turns` and `TurnProcess`."""

    runner: TurnRunner
    make_order: Callable[[NewTurn], tuple[TurnOrder, Answering]]

    @property
    def holder(self) -> Process:
        return this_process()

    def choose_process(self) -> TurnProcess:
        return self

    def begin(self, turn: NewTurn) -> None:
        self.runner.begin(*self.make_order(turn))

    def stop(self, message_id: int) -> None:
        self.runner.stop(message_id)
