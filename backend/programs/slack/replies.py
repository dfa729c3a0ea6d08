"""Answers what is asked in Slack: in the thread of the question, to what all who read along there may read.

What the bot says of an answer before it is checked for the last time holds nothing of it. So an answer is shown once, whole,
and only if then everybody who reads along may read all that it rests on.
"""

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from backend.programs.slack.answering import AnsweringService, Asking
from backend.programs.slack.audience import ALONE, Audience, AudienceFinder
from backend.programs.slack.directory import Directory, NobodyReason
from backend.programs.slack.events import AskedQuestion
from backend.programs.slack.posts import ButtonSet, make_answer_posts, make_notice
from backend.programs.slack.question_text import read_question_text
from backend.programs.slack.turn_encoder import FORBIDDEN
from backend.programs.slack.web_api import SlackApi, SlackCallError, SlackPost, Thread
from backend.store.accounts.people import Person
from backend.store.chat import slack_questions
from backend.store.chat.messages import Json, Message
from backend.store.chat.slack_questions import NewSlackQuestion, StoredAnswer
from backend.store.database import Database
from connectors.errors import ActionRequiredError, ConflictError, NotFoundError, QuarryError
from indexing.runtime.deadline import DeadlineExceededError
from indexing.text.normalization import is_visible

LOG = logging.getLogger("quarry.slack")
LONGEST_QUESTION = 8_000
MOST_EARLIER = 6
"""Answers of others in a thread that the model is given before a question."""
LOOKING = "Looking for an answer…"
NOTHING_ASKED = "Ask me something: mention me with a question."
TOO_LONG = f"Your question is too long: write at most {LONGEST_QUESTION:,} characters."
FAILED = "The question could not be answered by an error in Quarry; its log says more."
INTERRUPTED = "This answer was interrupted: the bot ended. Ask again."
STOPPING = "The bot is stopping. Try again in a minute."
UNAVAILABLE = "Quarry cannot answer right now. Ask again later."
NOT_WORKING = "Something at Quarry has to be mended before it can answer. Its administrators find it in the log."
NO_REASON_HERE = "The answer failed. Who asked finds the reason in Quarry, under Chat. Ask again."
BUSY = "Too many questions are being answered right now. Ask again in a minute."
WITHDRAWN = (
    "Not everybody who reads along here may read what this answer rests on any more. Ask again."
)
ONLY_SHARED = (
    "Only what everybody in this channel may read was searched."
    " Who asked can have all that they may read searched by “Answer privately”."
)


@dataclass(frozen=True, slots=True)
class Reply:
    """The message of the bot that says how far an answer is, and then becomes it."""

    thread: Thread
    ts: str


class Replier:
    """
    Args:
        server: the address of the pages, if one is set.
    """

    def __init__(
        self,
        api: SlackApi,
        database: Database,
        directory: Directory,
        audiences: AudienceFinder,
        answers: AnsweringService,
        server: str | None,
    ) -> None:
        self._api = api
        self._database = database
        self._directory = directory
        self._audiences = audiences
        self._answers = answers
        self._server = server

    def reply(self, asked: AskedQuestion, bot_user_id: str) -> None:
        """Answer a question that was taken, or say why not; whatever fails, it is said."""
        question = asked.question
        thread = Thread(question.message.channel_id, question.thread_ts)
        try:
            self._answer(asked, thread, read_question_text(asked.text, bot_user_id))
        except (QuarryError, DeadlineExceededError) as error:
            LOG.warning("A question in %s was not answered: %s", thread.channel_id, error)
            self.give_up(question, _describe(error))
        finally:
            slack_questions.end(self._database, question.message, datetime.now(UTC))

    def give_up(self, question: NewSlackQuestion, sentence: str) -> None:
        """Say in the thread of a question why it is not answered, in place of what was said there."""
        stored = slack_questions.find(self._database, question.message)
        thread = Thread(question.message.channel_id, question.thread_ts)
        notice = make_notice(sentence)
        # Where nothing can be said, the log has it.
        with suppress(QuarryError):
            if stored is not None and stored.reply_ts is not None:
                self._api.update(thread.channel_id, stored.reply_ts, notice)
            else:
                self._api.post(thread, notice)

    def _answer(self, asked: AskedQuestion, thread: Thread, text: str) -> None:
        person = self._directory.find_asker(asked.question.user_id)
        if isinstance(person, NobodyReason):
            self._say_to_asker(asked, thread, person)
        elif objection := _object(text):
            self._say_to_asker(asked, thread, objection)
        else:
            reply = self._begin_reply(asked.question, thread)
            self._answer_person(person, asked, reply, text)

    def _answer_person(self, person: Person, asked: AskedQuestion, reply: Reply, text: str) -> None:
        asking = Asking(
            person=person, audience=self._find_audience(asked), earlier=self._list_earlier(asked)
        )
        answer = self._begin_answer(asking, asked, text)
        slack_questions.set_answer(self._database, asked.question.message, answer)
        message = self._answers.wait(asking, answer, lambda step: self._show_step(reply, step))
        # Who reads along may have changed since.
        now = Asking(person=person, audience=self._find_audience(asked))
        self._show(now, reply, message)

    def _say_to_asker(self, asked: AskedQuestion, thread: Thread, sentence: str) -> None:
        if asked.is_direct:
            self._api.post(thread, make_notice(sentence))
        else:
            self._api.tell(thread, asked.question.user_id, make_notice(sentence))

    def _begin_reply(self, question: NewSlackQuestion, thread: Thread) -> Reply:
        reply = Reply(thread, self._api.post(thread, make_notice(LOOKING)))
        slack_questions.set_reply(self._database, question.message, reply.ts)
        return reply

    def _find_audience(self, asked: AskedQuestion) -> Audience:
        if asked.is_direct:
            return ALONE
        question = asked.question
        return self._audiences.find(question.message.channel_id, question.user_id)

    def _list_earlier(self, asked: AskedQuestion) -> tuple[Message, ...]:
        return tuple(slack_questions.list_of_others(self._database, asked.question, MOST_EARLIER))

    def _begin_answer(self, asking: Asking, asked: AskedQuestion, text: str) -> StoredAnswer:
        before = slack_questions.find_last_answer(self._database, asked.question)
        try:
            return self._answers.begin(asking, text, before)
        except (NotFoundError, ConflictError):
            # It was deleted or is busy: a conversation of its own.
            return self._answers.begin(asking, text, None)

    def _show_step(self, reply: Reply, step: str) -> None:
        with suppress(QuarryError):
            self._api.update(reply.thread.channel_id, reply.ts, make_notice(step))

    def answer_privately(
        self, question: NewSlackQuestion, asking: Asking, former: StoredAnswer
    ) -> None:
        """Answer the question of a former answer in a thread of direct messages, which belongs to its asker alone.

        Args:
            question: the message that opens the thread, which was taken.
        """
        thread = Thread(question.message.channel_id, question.thread_ts)
        try:
            reply = self._begin_reply(question, thread)
            answer = self._answers.answer_again(asking, former)
            slack_questions.set_answer(self._database, question.message, answer)
            message = self._answers.wait(asking, answer, lambda step: self._show_step(reply, step))
            self._show(asking, reply, message)
        except (QuarryError, DeadlineExceededError) as error:
            self.give_up(question, _describe(error))
        finally:
            slack_questions.end(self._database, question.message, datetime.now(UTC))

    def _show(self, asking: Asking, reply: Reply, message: Message) -> None:
        """Show an answer in place of a reply, if all who read along may read now what it rests on."""
        if message.status != "finished":
            self._update(reply, make_notice(_describe_failure(asking, message)))
        elif not self._answers.may_show(asking, message):
            self._update(reply, make_notice(WITHDRAWN))
        else:
            self._show_answer(asking, reply, message)

    def _show_answer(self, asking: Asking, reply: Reply, message: Message) -> None:
        answer = message.answer or {}
        buttons = ButtonSet(f"{message.conversation_id}:{message.id}", not asking.is_alone)
        posts = make_answer_posts(answer, _list_notes(asking, answer), buttons, self._server)
        self._update(reply, posts[0])
        for post in posts[1:]:
            self._api.post(reply.thread, post)

    def _update(self, reply: Reply, post: SlackPost) -> None:
        self._api.update(reply.thread.channel_id, reply.ts, post)


def _object(text: str) -> str | None:
    if not is_visible(text):
        return NOTHING_ASKED
    return TOO_LONG if len(text) > LONGEST_QUESTION else None


def _list_notes(asking: Asking, answer: Json) -> Sequence[str]:
    """Return what is said below an answer; nothing that depends on what its asker alone may read."""
    if asking.is_alone:
        return ()
    notes = [asking.audience.public_only] if asking.audience.public_only else []
    return notes if answer.get("citations") else [*notes, ONLY_SHARED]


def _describe(error: Exception) -> str:
    match error:
        case SlackCallError(code="missing_scope" | "not_in_channel" | "channel_not_found"):
            return f"{error} An administrator of the workspace has to let me read who is in this channel."
        case DeadlineExceededError():
            return "The time limit was reached. Ask again."
        case ActionRequiredError():
            return NOT_WORKING
        case _:
            return UNAVAILABLE


def _describe_failure(asking: Asking, message: Message) -> str:
    """Return why there is no answer; what is the asker's alone, such as a used budget, is not said in a channel."""
    problem = message.problem
    if message.status != "failed" or problem is None:
        return INTERRUPTED
    if not asking.is_alone and problem["status"] != FORBIDDEN:
        return NO_REASON_HERE
    return " ".join(filter(None, (problem["detail"], problem.get("advice"))))
