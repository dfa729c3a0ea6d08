"""What the model is given of a conversation: its questions, and the answers that the asker may read now.

The newest messages are given whole. Older ones are summarized, once for each path, as soon as all together need more than
their share of the window.
"""

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from backend.chat.history import MESSAGE_TOKENS, without_citations
from backend.conversations.answer_gate import AnswerGate
from backend.conversations.fast_model import FastModel
from backend.conversations.summaries import cut_text, write_summary
from backend.search.llm_protocol import ChatMessage, CompletionError
from backend.store.chat import summaries
from backend.store.chat.messages import Message
from backend.store.chat.summaries import Summary
from backend.store.database import Database
from indexing.runtime.deadline import Deadline

NO_ANSWER = "(no answer)"
"""In the place of an answer that is left out: some models take questions and answers in turn only."""
MOST_HISTORY = 100
"""Messages before the question that are read."""
MOST_WHOLE = 80
"""Messages that are given whole; short ones fit the window for long, but not for ever."""
HISTORY_SHARE = 0.35
"""Of the window: the results of the search need as much, and the question and the answer the rest."""
KEPT_SHARE = 0.5
"""Of that share, for what stays whole where older messages are summarized: the next turns need no other summary."""
NEWEST_SHARE = 0.8
"""Of that share, for the newest turn alone; the summary is then cut to what is left."""
SUMMARY_SHARE = 0.15
"""Of the window, for a summary at most."""
SUMMARY_SECONDS = 20.0
SUMMARY_TIME_SHARE = 0.3
"""The model is waited for so many seconds, or this share of the time left, whichever is less."""
_NO_SUMMARY = Summary(0, "", ())


@dataclass(frozen=True, slots=True)
class TurnHistory:
    messages: tuple[ChatMessage, ...]
    """Oldest first."""
    document_ids: frozenset[str]
    """Those that its answers rest on: so does what the model makes of them."""
    summary: str = ""
    """Of the messages before these."""
    loss: str = ""
    """Why older messages could not be summarized: those that do not fit are left out."""


def make_history(path: Sequence[Message], gate: AnswerGate) -> TurnHistory:
    """Make the history from the messages before a question, all of them whole."""
    withheld = gate.find_withheld(path)
    readable = [one for one in path if one.role == "user" or (one.text and one.id not in withheld)]
    answers = {one.id: one.text for one in readable if one.role == "assistant"}
    messages = (
        ChatMessage(one.role, one.text if one.role == "user" else answers.get(one.id, NO_ANSWER))
        for one in path
    )
    return TurnHistory(
        tuple(messages), frozenset(document for one in readable for document in one.document_ids)
    )


class HistoryMaker:
    """Makes histories that fit their window, and keeps the summaries that this takes.

    Args:
        database: called each time.
    """

    def __init__(self, database: Callable[[], Database]) -> None:
        self._database = database
        self._points = _Points()

    def make(
        self, path: Sequence[Message], gate: AnswerGate, model: FastModel | None
    ) -> TurnHistory:
        """Make the history from the messages before a question; without a model nothing is summarized.

        A summary rests on what its answers rest on: one that the asker may not read now is not used, and another is made
        of the messages that may be read.
        """
        known = _fit(self._find_readable(path, gate), model)
        rest = [one for one in path if one.id > known.message_id]
        if model is None:
            return _told_after(known, make_history(rest, gate))
        kept = _choose_kept(rest, known.text, model)
        if kept == 0:
            return _told_after(known, make_history(rest, gate))
        try:
            summary = self._summarize(known, rest[:kept], gate, model)
        except CompletionError as error:
            return replace(_told_after(known, make_history(rest, gate)), loss=str(error))
        whole = rest[kept:]
        return _told_after(_fit(summary, model, whole), make_history(whole, gate))

    def _find_readable(self, path: Sequence[Message], gate: AnswerGate) -> Summary:
        """Return the summary that tells most of a path, of those that may be read."""
        found = summaries.list_of(self._database(), [one.id for one in path])
        readable = gate.find_readable(itertools.chain(*(one.document_ids for one in found)))
        passing = (one for one in found if readable.issuperset(one.document_ids))
        return next(passing, _NO_SUMMARY)

    def _summarize(
        self, known: Summary, older: Sequence[Message], gate: AnswerGate, model: FastModel
    ) -> Summary:
        """Summarize messages and what was known of those before them; once, whoever else wants the same now.

        Raises:
            CompletionError
        """
        left = gate.deadline.remaining()
        deadline = gate.deadline.limited_to(min(SUMMARY_SECONDS, SUMMARY_TIME_SHARE * left))
        with self._points.hold(older[-1].id, deadline):
            made = self._find_readable(older, gate)
            if made.message_id == older[-1].id:
                return made
            history = make_history(older, gate)
            text = write_summary(known.text, without_citations(history.messages), model, deadline)
            documents = sorted(history.document_ids.union(known.document_ids))
            summary = Summary(older[-1].id, text, tuple(documents))
            summaries.keep(self._database(), summary)
            return summary


def _fit(summary: Summary, model: FastModel | None, whole: Sequence[Message] = ()) -> Summary:
    """Cut a summary that was made for a larger window, or that leaves no room for what is given whole."""
    if model is None or not summary.text:
        return summary
    left = model.answering_window * HISTORY_SHARE - sum(_count_tokens(whole, model))
    most = int(min(model.answering_window * SUMMARY_SHARE, left))
    return replace(summary, text=cut_text(summary.text, most, model.count_tokens))


def _told_after(summary: Summary, history: TurnHistory) -> TurnHistory:
    documents = history.document_ids.union(summary.document_ids)
    return replace(history, summary=summary.text, document_ids=documents)


def _choose_kept(messages: Sequence[Message], summary: str, model: FastModel) -> int:
    """Return where the messages begin that are given whole; 0 where all are."""
    costs = _count_tokens(messages, model)
    room = model.answering_window * HISTORY_SHARE - model.count_tokens(summary)
    if sum(costs) <= room and len(messages) < MOST_WHOLE:
        return 0
    spent, kept = 0, len(messages)
    for at in range(len(messages) - 1, -1, -1):
        spent += costs[at]
        share = NEWEST_SHARE if kept == len(messages) else KEPT_SHARE
        if spent > room * share or len(messages) - at > MOST_WHOLE // 2:
            break
        if messages[at].role == "user":
            kept = at
    return kept


def _count_tokens(messages: Sequence[Message], model: FastModel) -> list[int]:
    return [model.count_tokens(one.text) + MESSAGE_TOKENS for one in messages]


class _Points:
    """Lets one turn at a time summarize the same path."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._held: set[int] = set()

    @contextmanager
    def hold(self, message_id: int, deadline: Deadline) -> Iterator[None]:
        """Hold a summary for one turn during the block. Raises CompletionError: another turn still writes it."""
        with self._changed:
            is_free = self._changed.wait_for(
                lambda: message_id not in self._held, deadline.remaining()
            )
            if not is_free:
                raise CompletionError("another answer is still waiting for the same summary")
            self._held.add(message_id)
        try:
            yield
        finally:
            with self._changed:
                self._held.discard(message_id)
                self._changed.notify_all()
