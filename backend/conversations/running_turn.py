"""A turn that this process runs: what was written of it, and what of that is still to be stored."""

import json
import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from backend.chat.events import ReasoningStep, TextPiece
from backend.conversations.turn_events import (
    CITATION,
    LOST,
    SELECTED,
    EncodedEvent,
    EventEncoder,
    encode_ending,
    encode_portion,
)
from backend.conversations.turn_record import TurnRecord
from backend.conversations.unfinished_answer import make_unfinished_answer
from backend.store.chat.messages import AnswerStatus, Json
from backend.store.chat.turns import Ending, Portion
from indexing.runtime.deadline import CancelToken

Written: TypeAlias = TextPiece | ReasoningStep


@dataclass(frozen=True, slots=True)
class Unstored:
    """What is to be stored of a turn."""

    portion: Portion
    ending: Ending | None


class RunningTurn:
    """Written by the thread that answers, and ended by whoever comes first; stored by the thread that keeps turns."""

    def __init__(self, message_id: int, encoder: EventEncoder) -> None:
        self.message_id = message_id
        self._encoder = encoder
        self._is_given_up = False
        self.cancel_token = CancelToken()
        """Cancelled where the turn ends before the answer does."""
        self._lock = threading.Lock()
        self._text: list[str] = []
        self._losses: list[Json] = []
        self._citations: list[Json] = []
        self._selections: list[str] = []
        """As JSON: only an answer that does not come to its end needs them."""
        self._record = TurnRecord()
        self._documents: set[str] = set()
        self._stored_documents: frozenset[str] = frozenset()
        self._pending: list[EncodedEvent] = []
        self._written: list[Written] = []
        """What is behind the pending events, of one kind. It becomes one event once more than that is asked for."""
        self._kinds = set[type[Written]]()
        """Of what was written so far."""
        self._first = 1
        """The number of the first pending event."""
        self._ending: Ending | None = None

    @property
    def is_ended(self) -> bool:
        with self._lock:
            return self._ending is not None

    @property
    def is_finished(self) -> bool:
        """Whether the answer came to its own end."""
        with self._lock:
            return self._ending is not None and self._ending.status == "finished"

    def rest_on(self, document_ids: Iterable[str]) -> None:
        """Record documents that what follows rests on."""
        with self._lock:
            self._documents.update(document_ids)

    def write(self, piece: Written) -> None:
        """Add a piece of text or of reasoning; nothing once the turn has ended.

        Raises:
            UnicodeEncodeError: it cannot be sent.
        """
        # It becomes an event in the thread that stores all turns, which must not fail by one of them.
        piece.text.encode()
        with self._lock:
            if self._ending is not None:
                return
            if self._written and type(self._written[0]) is not type(piece):
                self._encode_written()
            self._written.append(piece)
            if isinstance(piece, TextPiece):
                self._text.append(piece.text)
            if type(piece) not in self._kinds:
                self._kinds.add(type(piece))
                self._encode_written()

    def add(self, event: EncodedEvent) -> None:
        """Add an event; nothing once the turn has ended."""
        with self._lock:
            if self._ending is None:
                self._encode_written()
                self._append(event)
                self._keep(event)

    def _keep(self, event: EncodedEvent) -> None:
        """Keep what is shown about the answer with it, however it ends."""
        if event.name == LOST:
            self._losses.append(json.loads(event.data))
        elif event.name == CITATION:
            self._citations.append(json.loads(event.data))
        elif event.name == SELECTED:
            self._selections.append(event.data)

    def _encode_written(self) -> None:
        """Make one event of what was written: each event costs its followers more than the text in it."""
        if self._written:
            text = "".join(piece.text for piece in self._written)
            event = self._encoder.encode(replace(self._written[0], text=text))
            self._written.clear()
            if event is not None:
                self._append(event)

    def _append(self, event: EncodedEvent) -> None:
        self._record.note(event)
        self._pending.append(event)

    def finish(self, done: EncodedEvent, text: str) -> None:
        answer = json.loads(done.data)["answer"]
        del answer["question"]  # the message before has it
        self._end("finished", done, text=text, answer=self._record.add_to(answer))

    def fail(self, error: EncodedEvent) -> None:
        self._end("failed", error, problem=json.loads(error.data))

    def break_down(self) -> bool:
        """End the turn by an error in the program; False where it has ended."""
        if self.is_ended:
            return False
        self.fail(self._encoder.broken)
        return True

    def break_off(self, status: AnswerStatus, detail: str) -> None:
        """End the turn with what was written until now, and stop what writes it."""
        self._end(status, encode_ending(status, detail))
        self.cancel_token.cancel()

    def give_up(self) -> bool:
        """End a turn of which something cannot be stored, without that; False where this was tried already."""
        broken = self._encoder.broken
        with self._lock:
            if self._is_given_up:
                return False
            self._is_given_up = True
            self._written.clear()
            self._pending[:] = [broken]
            self._documents = set(self._stored_documents)
            self._ending = Ending(
                message_id=self.message_id,
                status="failed",
                text="",
                problem=json.loads(broken.data),
            )
        self.cancel_token.cancel()
        return True

    def abandon(self) -> None:
        """Stop what writes a turn that was ended by somebody else, or deleted."""
        with self._lock:
            self._written.clear()
            self._pending.clear()
            self._ending = Ending(message_id=self.message_id, status="interrupted", text="")
        self.cancel_token.cancel()

    def _end(
        self,
        status: AnswerStatus,
        event: EncodedEvent,
        *,
        text: str | None = None,
        answer: dict[str, object] | None = None,
        problem: dict[str, object] | None = None,
    ) -> None:
        with self._lock:
            if self._ending is not None:
                return
            self._encode_written()
            self._pending.append(event)
            said = "".join(self._text) if text is None else text
            self._ending = Ending(
                message_id=self.message_id,
                status=status,
                text=said,
                answer=answer or self._make_unfinished(said),
                problem=problem,
                losses=tuple(self._losses),
            )

    def _make_unfinished(self, said: str) -> dict[str, object] | None:
        return make_unfinished_answer(said, self._citations, map(json.loads, self._selections))

    def unstored(self) -> Unstored | None:
        """Return what came since the last portion was stored; None without an event."""
        with self._lock:
            self._encode_written()
            if not self._pending:
                return None
            last = self._first + len(self._pending) - 1
            changed = self._documents != self._stored_documents
            portion = Portion(
                self.message_id,
                self._first,
                last,
                encode_portion(self._first, self._pending),
                tuple(sorted(self._documents)) if changed else None,
            )
            return Unstored(portion, self._ending)

    def confirm(self, stored: Unstored) -> None:
        """Record that this was stored."""
        with self._lock:
            del self._pending[: stored.portion.last - self._first + 1]
            self._first = stored.portion.last + 1
            if stored.portion.document_ids is not None:
                self._stored_documents = frozenset(stored.portion.document_ids)
