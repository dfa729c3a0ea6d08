"""What the buttons below an answer do: record what somebody says of it, and have it answered privately."""

import logging
from contextlib import suppress
from datetime import UTC, datetime

from backend.conversations.feedback import OwnFeedback
from backend.programs.slack.answering import AnsweringService, Asking
from backend.programs.slack.audience import ALONE
from backend.programs.slack.directory import Directory, NobodyReason
from backend.programs.slack.events import PressedButton
from backend.programs.slack.posts import make_notice
from backend.programs.slack.replies import Replier
from backend.programs.slack.web_api import SlackApi, Thread
from backend.store.accounts.people import Person
from backend.store.chat import slack_questions
from backend.store.chat.answer_feedback import Feedback, Rating
from backend.store.chat.slack_questions import NewSlackQuestion, SlackMessage, StoredAnswer
from backend.store.database import Database
from backend.store.owner import ConversationOwner
from backend.sync.run_lease import this_process
from connectors.errors import NotFoundError, QuarryError
from indexing.runtime.deadline import DeadlineExceededError

LOG = logging.getLogger("quarry.slack")
THANKS = "Thank you. What you said of this answer is recorded."
NOT_YOURS = "Only the person who asked can do this. Ask me yourself, here or in a direct message."
PRIVATELY = "I answer you in our direct messages."
_SHOWN_QUESTION = 500
_GONE = "This answer is no longer stored. Ask again."


class ButtonHandler:
    def __init__(
        self,
        api: SlackApi,
        database: Database,
        directory: Directory,
        answers: AnsweringService,
        replier: Replier,
    ) -> None:
        self._api = api
        self._database = database
        self._directory = directory
        self._answers = answers
        self._replier = replier

    def press(self, pressed: PressedButton) -> None:
        """Do what a button says, as the person who pressed it; whatever fails, it is said to them."""
        try:
            sentence = self._act(pressed)
        except NotFoundError:
            sentence = NOT_YOURS
        except (QuarryError, DeadlineExceededError) as error:
            LOG.warning("A button in %s had no effect: %s", pressed.channel_id, error)
            sentence = str(error)
        if sentence:
            self.say(pressed, sentence)

    def say(self, pressed: PressedButton, sentence: str) -> None:
        thread = Thread(pressed.channel_id, pressed.thread_ts)
        with suppress(QuarryError):
            self._api.tell(thread, pressed.user_id, make_notice(sentence))

    def _act(self, pressed: PressedButton) -> str | None:
        """Return what is said to who pressed."""
        person = self._directory.find_asker(pressed.user_id)
        if isinstance(person, NobodyReason):
            return person
        parts = pressed.value.split(":")
        if len(parts) < 2 or not parts[1].isdecimal():
            return _GONE
        answer = StoredAnswer(parts[0], int(parts[1]))
        match pressed.name:
            case "good" | "bad":
                return self._rate(person, answer, pressed.name, None)
            case "wrong_source":
                return self._rate(person, answer, "wrong_source", _read_number(parts))
            case "answer_privately":
                self._answer_privately(person, answer, pressed)
                return None

    def _rate(
        self, person: Person, answer: StoredAnswer, rating: Rating, source: int | None
    ) -> str:
        """Rate one's own answer. Raises NotFoundError: it is somebody else's; InvalidInputError, ConflictError."""
        owner = ConversationOwner(person.id)
        gate = self._answers.make_own_gate(owner)
        feedback = Feedback(rating=rating, comment="", source=source)
        own = OwnFeedback(database=self._database, owner=owner, gate=gate)
        own.give(answer.conversation_id, answer.message_id, feedback)
        return THANKS

    def _answer_privately(
        self, person: Person, answer: StoredAnswer, pressed: PressedButton
    ) -> None:
        """Answer the question once more, for the asker alone. Raises NotFoundError: somebody else asked."""
        asking = Asking(person=person, audience=ALONE)
        text = self._answers.get_question(asking, answer)
        self.say(pressed, PRIVATELY)
        channel = self._api.open_direct_messages(pressed.user_id)
        opening = make_notice(f"You asked: {text[:_SHOWN_QUESTION]}")
        ts = self._api.post(Thread(channel, ""), opening)
        message = SlackMessage(pressed.team_id, channel, ts)
        question = NewSlackQuestion(message=message, thread_ts=ts, user_id=pressed.user_id)
        slack_questions.take(self._database, question, this_process(), datetime.now(UTC))
        self._replier.answer_privately(question, asking, answer)


def _read_number(parts: list[str]) -> int | None:
    return int(parts[2]) if len(parts) > 2 and parts[2].isdecimal() else None
