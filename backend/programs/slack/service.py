"""The bot as a process: connects, answers until it is stopped, and ends what a dead process left unanswered."""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Self

from backend.container import Container
from backend.programs.slack.answering import AnsweringService
from backend.programs.slack.audience import AudienceFinder, AudienceRules
from backend.programs.slack.buttons import ButtonHandler
from backend.programs.slack.directory import Directory
from backend.programs.slack.events import AskedQuestion, PressedButton, read_pressed, read_question
from backend.programs.slack.replies import BUSY, FAILED, INTERRUPTED, STOPPING, Replier
from backend.programs.slack.socket_listener import SocketListener
from backend.programs.slack.web_api import BotIdentity, SlackApi, SlackCallError
from backend.programs.slack.work_pool import Job, WorkPool
from backend.settings import Settings, variable
from backend.store.accounts.people import has_people
from backend.store.chat import slack_questions
from backend.store.chat.slack_questions import TakenQuestion
from backend.sync.run_lease import is_dead, this_process
from connectors.errors import NotConfiguredError, QuarryError

LOG = logging.getLogger("quarry.slack")
SWEEP_SECONDS = 30.0
STOP_SECONDS = 20.0
"""In which answers that are being written may come to their end when the bot is stopped."""
LAST_SECONDS = 10.0
"""In which it is said of the others that they were interrupted."""
KEPT = timedelta(days=90)
"""For which it is known what a message of Slack was answered with."""
_BEYOND_ANSWER = timedelta(minutes=10)
_RATINGS_AT_ONCE = 2


@dataclass(frozen=True, slots=True)
class SlackTokens:
    bot: str
    app: str

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Read the tokens of the settings. Raises NotConfiguredError: one is not set."""
        found = {
            "slack_bot_token": settings.slack_bot_token,
            "slack_app_token": settings.slack_app_token,
        }
        missing = [variable(name) for name, token in found.items() if token is None]
        if missing:
            raise NotConfiguredError(
                f"Set {' and '.join(missing)}. How to get them is in docs/slack.md."
            )
        bot, app = (token.get_secret_value() for token in found.values() if token is not None)
        return cls(bot, app)


def connect(settings: Settings, tokens: SlackTokens) -> tuple[SlackApi, BotIdentity]:
    """Connect to Slack by its API. Raises NotConfiguredError: Slack refuses the token; TemporarilyUnavailableError."""
    api = SlackApi(tokens.bot, settings.slack_api_url)
    try:
        return api, api.identify()
    except SlackCallError as error:
        raise NotConfiguredError(
            f"Slack refuses {variable('slack_bot_token')}: {error.code}."
        ) from error


def make_rules(settings: Settings, identity: BotIdentity) -> AudienceRules:
    trusted = map(str.strip, settings.slack_trusted_apps.split(","))
    return AudienceRules(
        bot_user_id=identity.user_id,
        trusted_apps=frozenset(filter(None, trusted)),
        most_members=settings.slack_most_members,
        public_channels=settings.slack_public_channels,
    )


class SlackService:
    """
    Raises:
        NotConfiguredError: a token is missing or refused, or there are no accounts.
        TemporarilyUnavailableError: Slack cannot be reached.
    """

    def __init__(self, container: Container) -> None:
        settings = container.settings
        tokens = SlackTokens.of(settings)
        if not has_people(container.database):
            raise NotConfiguredError(
                "There are no accounts, so that nobody in Slack is known. Invite the first admin: quarry users invite ann@example.com --role admin"
            )
        self._database = container.database
        api, self.identity = connect(settings, tokens)
        directory = Directory(api, self._database, self.identity.team_id)
        audiences = AudienceFinder(api, directory, make_rules(settings, self.identity))
        self._answers = AnsweringService(container)
        self._replier = Replier(
            api, self._database, directory, audiences, self._answers, settings.public_url
        )
        self._buttons = ButtonHandler(api, self._database, directory, self._answers, self._replier)
        self._lost_after = timedelta(seconds=settings.answer_seconds) + _BEYOND_ANSWER
        self._answering = WorkPool(settings.slack_answers_at_once)
        self._rating = WorkPool(_RATINGS_AT_ONCE)
        self._listener = SocketListener(tokens.app, api.client, self._take)

    def run(self, stopping: threading.Event) -> None:
        """Answer until the event is set; then end within half a minute."""
        self._sweep()
        self._listener.start()
        LOG.info("Answering in %s as %s.", self.identity.team_name, self.identity.user_id)
        try:
            while not stopping.wait(SWEEP_SECONDS):
                self._sweep()
        finally:
            self._stop()

    def _stop(self) -> None:
        self._listener.stop()
        self._answering.stop()
        self._rating.stop()
        if not self._answering.wait(STOP_SECONDS):
            self._answers.interrupt_all(LAST_SECONDS)
            self._answering.wait(LAST_SECONDS)

    def _sweep(self) -> None:
        """End what dead processes left, forget what is old, and follow a switch of the index."""
        try:
            self._answers.follow_index()
            slack_questions.forget_before(self._database, datetime.now(UTC) - KEPT)
            for taken in slack_questions.list_unended(self._database):
                if self._is_lost(taken):
                    self._end(taken.question, INTERRUPTED)
        except QuarryError as error:
            LOG.warning("Questions of before cannot be looked at now: %s", error)

    def _is_lost(self, taken: TakenQuestion) -> bool:
        return is_dead(taken.holder) or taken.taken_at < datetime.now(UTC) - self._lost_after

    def _end(self, question: slack_questions.NewSlackQuestion, sentence: str) -> None:
        self._replier.give_up(question, sentence)
        slack_questions.end(self._database, question.message, datetime.now(UTC))

    def _take(self, kind: str, payload: Mapping[str, Any]) -> Callable[[], object] | None:
        """Take what an envelope of Socket Mode holds. Raises TemporarilyUnavailableError."""
        match kind:
            case "events_api":
                asked = read_question(payload)
                return self._take_question(asked) if asked is not None else None
            case "interactive":
                pressed = read_pressed(payload)
                return partial(self._press, pressed) if pressed is not None else None
            case _:
                return None

    def _take_question(self, asked: AskedQuestion) -> Callable[[], object] | None:
        if asked.question.user_id == self.identity.user_id:
            return None
        taken = slack_questions.take(
            self._database, asked.question, this_process(), datetime.now(UTC)
        )
        return partial(self._reply, asked) if taken else None

    def _reply(self, asked: AskedQuestion) -> None:
        job = Job(
            asked.question.user_id,
            partial(self._replier.reply, asked, self.identity.user_id),
            partial(self._end, asked.question, FAILED),
            partial(self._end, asked.question, INTERRUPTED),
        )
        if not self._answering.submit(job):
            self._end(asked.question, BUSY)

    def _press(self, pressed: PressedButton) -> None:
        is_long = pressed.name == "answer_privately"
        pool = self._answering if is_long else self._rating
        job = Job(
            pressed.user_id,
            partial(self._buttons.press, pressed),
            partial(self._buttons.say, pressed, FAILED),
            partial(self._buttons.say, pressed, STOPPING),
        )
        if not pool.submit(job):
            self._buttons.say(pressed, BUSY)
