"""`quarry slack run` as a process of its own: what it answers, and what becomes of questions when it ends."""

import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from backend.access.roles import Role
from backend.container import Container
from backend.programs.slack.replies import INTERRUPTED, LOOKING
from backend.settings import Settings
from backend.store.sync import sources
from backend.sync.foreground_run import sync
from tests.support.accounts import add_person
from tests.support.home import QUARRY, Home
from tests.support.models import MODEL_CACHE
from tests.support.scripted_model import Reply, Request, Say, ScriptedModel
from tests.support.slack_server import SlackServer
from tests.support.slack_world import repeat_all

SOON = 120.0


class Slow:
    """A model that answers once it may."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.may_answer = threading.Event()

    def __call__(self, request: Request) -> Reply:
        if not request.answers:
            return Say("")
        self.asked.set()
        self.may_answer.wait(SOON)
        return repeat_all(request)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """With one document, and the account of Ann."""
    made = Home(tmp_path)
    settings = {"home": tmp_path / "state", "models": MODEL_CACHE}
    container = Container(Settings.model_validate(settings))
    add_person(container.database, "ann@example.com", Role.ADMIN)
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "leave.md").write_text("# Leave\n\nParental leave is 26 weeks.\n", encoding="utf-8")
    (folder / "access.yaml").write_text(
        'rules:\n  - match: "**"\n    readers: [public]\n', encoding="utf-8"
    )
    source = sources.add(container.database, "wiki", "folder", {"path": str(folder)})
    assert list(
        sync(
            container.database,
            source,
            container.sources.connector(source),
            container.sources.pipeline(source),
        )
    )
    container.close()
    return made


@contextmanager
def run_bot(
    home: Home, slack: SlackServer, model: ScriptedModel
) -> Iterator[subprocess.Popen[str]]:
    """A bot that is connected."""
    settings = {f"QUARRY_{name.upper()}": value for name, value in slack.settings.items()}
    settings |= {"QUARRY_LLM_URL": model.base_url, "QUARRY_LLM_MODEL": "scripted"}
    before = slack.connections
    process = subprocess.Popen(
        [str(QUARRY), "slack", "run"],
        env=home.environment(**settings),
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        slack.wait_for(lambda: slack.connections > before, SOON)
        yield process
    finally:
        process.kill()
        process.communicate(timeout=SOON)


def test_a_process_finishes_what_it_answers_and_the_next_one_says_what_died(home: Home) -> None:
    slow = Slow()
    with SlackServer() as slack, ScriptedModel(slow) as model:
        ann = slack.add_user("ann@example.com")
        channel = slack.add_channel(ann)
        with run_bot(home, slack, model) as killed:
            lost = slack.mention(channel, ann, "What of leave?")
            slack.wait_for(slow.asked.is_set, SOON)
            assert LOOKING in slack.ever_shown(channel)
            killed.send_signal(signal.SIGKILL)
            killed.wait(SOON)
        slow.asked.clear()
        with run_bot(home, slack, model) as stopped:
            slack.wait_for(lambda: INTERRUPTED in slack.of_bot(channel, lost)[0].shown, SOON)
            asked = slack.mention(channel, ann, "What of leave?")
            slack.wait_for(slow.asked.is_set, SOON)
            stopped.send_signal(signal.SIGTERM)
            slow.may_answer.set()
            assert stopped.wait(SOON) == 0
            assert "26 weeks" in slack.wait_for_answer(channel, asked).shown
        assert len(slack.of_bot(channel)) == 2


def test_what_does_not_end_in_time_is_said_to_be_interrupted(home: Home) -> None:
    slow = Slow()
    with SlackServer() as slack, ScriptedModel(slow) as model:
        ann = slack.add_user("ann@example.com")
        with run_bot(home, slack, model) as stopped:
            asked = slack.write_to_bot(ann, "What of leave?")
            slack.wait_for(slow.asked.is_set, SOON)
            stopped.send_signal(signal.SIGTERM)
            assert stopped.wait(SOON) == 0
            (said,) = slack.of_bot(f"D{ann}", asked)
            assert "interrupted" in said.shown
        slow.may_answer.set()
