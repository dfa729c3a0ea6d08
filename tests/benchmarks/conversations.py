"""What it costs to store the events of answers, and to open a long conversation.

    .venv/bin/python -m tests.benchmarks.conversations [--at-once 20] [--turns 30] [--opened 200]

Answers are written in this process as `quarry serve` writes them, over the handbook, by a scripted model in another process
that says 50 tokens a second. The processor time of the thread that stores all events is compared with that of this whole
process: wanted is less than 5 % with many answers at once, and that of one alone is printed beside it. Then a conversation of 2,000 messages and one of 20 are opened by turns: wanted is a
ratio of the medians of at most 3. The command exits with 1 if a bar is missed.
"""

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from backend.api.answer_events import TurnEncoder, plain_html
from backend.api.conversation_responses import make_opened
from backend.chat.turn_settings import PLAIN
from backend.composition.chat import ChatService
from backend.container import Container
from backend.conversations.answer_gate import AnswerGate
from backend.conversations.assistant_service import AssistantService, AssistantUser
from backend.conversations.new_turn import LocalTurns, NewTurn
from backend.conversations.project_service import ProjectService
from backend.conversations.service import ConversationService
from backend.conversations.turn_runner import Answering, TurnOrder, TurnRunner
from backend.files.file_keeper import FileKeeper
from backend.sample import handbook
from backend.settings import Settings
from backend.store import audit
from backend.store.accounts.people import NOBODY
from backend.store.chat import new_messages, turns
from backend.store.chat.new_messages import Begun, NewQuestion, Writer
from backend.store.chat.turns import Ending, Progress
from backend.store.database import Database
from backend.store.owner import ConversationOwner
from backend.store.sync import sources
from backend.sync.foreground_run import sync
from backend.sync.run_lease import this_process
from connectors.access import Readers
from indexing.index.protocols import Filters
from indexing.runtime.deadline import CancelToken, Deadline
from tests.support.conversations import own_no_memories
from tests.support.model_process import running_model
from tests.support.models import MODEL_CACHE
from tests.support.scripted_model import Call, Manner, Reply, Request, Say, ToolUse

BAR, LONGEST_RATIO = 0.05, 3.0
OWNER = ConversationOwner(None)
READERS = Readers.of("public")
QUESTION = "What should a customer do when the scanner shows QX-4031?"
WORDS = ["Close ", "the ", "cover ", "until ", "it ", "clicks, ", "then ", "scan ", "again. "] * 20
SHORT, LONG, PAGE = 20, 2_000, 50


def model_says(request: Request) -> Reply:
    """A model that searches, then writes 50 tokens a second."""
    if request.has_sources:
        return Say(WORDS, manner=Manner(delay=0.02))
    if request.tool_names:
        return Call(ToolUse("internal_search", {"queries": ["QX-4031"]}))
    return Say("QX-4031")


@contextmanager
def hold_no_slot(key: str, cancel_token: CancelToken) -> Iterator[None]:
    del key, cancel_token
    yield


@dataclass(frozen=True)
class Server:
    """What runs turns in a server process."""

    container: Container

    @property
    def chat(self) -> ChatService:
        return self.container.chat

    @property
    def database(self) -> Database:
        return self.container.database

    def make_runner(self) -> TurnRunner:
        return TurnRunner(lambda: self.database, hold_no_slot, lambda _: None)

    def begin(self, runner: TurnRunner) -> int:
        begun = begin_conversation(self.database)
        turn = NewTurn(begun.answer.id, begun.question, PLAIN)
        runner.begin(*self.make_order(turn))
        return begun.answer.id

    def make_order(self, turn: NewTurn) -> tuple[TurnOrder, Answering]:
        order = TurnOrder(
            message_id=turn.message_id,
            question=turn.question,
            person_id=NOBODY,
            turn_key="owner",
            readers_now=lambda: READERS,
            own_memories=own_no_memories,
        )
        return order, self.make_answering(turn.question.text)

    def make_answering(self, question: str) -> Answering:
        chat = self.chat
        return Answering(
            index=chat.engine.index,
            answer=lambda turn, state, _: chat.answer(turn, (), state),
            seconds=chat.seconds,
            encoder=TurnEncoder(question, plain_html),
            read_filters=lambda _: Filters(),
            open_fast_model=lambda _: nullcontext(None),
        )


def begin_conversation(database: Database) -> Begun:
    writer = Writer(this_process(), datetime.now(UTC))
    question = NewQuestion(text=QUESTION, filters={})
    return new_messages.begin_conversation(database, OWNER, QUESTION, question, writer)


def read_processor_seconds(thread: int) -> float:
    """Return what a thread has used of a processor, or 0 if it has ended."""
    try:
        spent = Path(f"/proc/self/task/{thread}/schedstat").read_text(encoding="ascii")
    except FileNotFoundError:
        return 0.0
    return int(spent.split()[0]) / 1e9


def measure_storing(server: Server, at_once: int, turns_wanted: int) -> float:
    """Return the share of the processor time that storing takes, with so many answers at once."""
    runner, storing = server.make_runner(), dict[int, float]()
    began, begun = time.process_time(), 0
    running = set[int]()
    while begun < turns_wanted or running:
        while begun < turns_wanted and len(running) < at_once:
            running.add(server.begin(runner))
            begun += 1
        for each in threading.enumerate():
            if each.name == "turns" and each.native_id:
                spent = read_processor_seconds(each.native_id)
                storing[each.native_id] = max(spent, storing.get(each.native_id, 0.0))
        time.sleep(0.05)
        running = {one for one in running if runner.runs(one)}
    whole, stored = time.process_time() - began, sum(storing.values())
    print(
        f"{turns_wanted} answers, {at_once} at once: {whole / turns_wanted * 1e3:.0f} ms of a processor each,"
        f" {stored / turns_wanted * 1e3:.1f} ms of them to store its events: {stored / whole:.1%} (wanted: under {BAR:.0%})"
    )
    return stored / whole


def write_conversation(database: Database, length: int) -> str:
    """Write a conversation of so many messages, and return its id."""
    begun = begin_conversation(database)
    conversation = begun.question.conversation_id
    writer = Writer(this_process(), datetime.now(UTC))
    for number in range(2, length + 1, 2):
        text = f"{number}. {''.join(WORDS)}"
        ending = Ending(message_id=begun.answer.id, status="finished", text=text)
        turns.store(database, [Progress(begun.answer.id, None, ending)], writer.now)
        if number < length:
            following = NewQuestion(text=f"And {number}?", filters={})
            begun = new_messages.ask(
                database, OWNER, conversation, begun.answer.id, following, writer
            )
    return conversation


def measure_opening(server: Server, times: int) -> float:
    """Return the ratio of the medians of opening a long conversation and a short one."""
    service = ConversationService(
        database=server.database,
        owner=OWNER,
        gate=AnswerGate(
            index=server.chat.engine.index,
            readers=READERS,
            own_memories=own_no_memories,
            deadline=Deadline.after(3_600),
        ),
        turns=LocalTurns(server.make_runner(), server.make_order),
        assistants=AssistantService(
            database=server.database,
            user=AssistantUser(owner=OWNER, readers=READERS, is_admin=True, actor=audit.OWNER),
            find_sources=frozenset,
        ),
        projects=ProjectService(database=server.database, owner=OWNER),
        files=FileKeeper(lambda: server.container.sources.file_index),
    )
    lengths = (SHORT, LONG)
    ids = {length: write_conversation(server.database, length) for length in lengths}
    spent: dict[int, list[float]] = {length: [] for length in lengths}
    for _ in range(times):
        for length in lengths:
            began = time.perf_counter()
            opened = make_opened(service.open(ids[length], None, None, PAGE), plain_html)
            assert opened.model_dump_json()
            spent[length].append(time.perf_counter() - began)
    short, long = (median(spent[length]) * 1e3 for length in lengths)
    print(
        f"opening {LONG:,} messages {long:.2f} ms, {SHORT} messages {short:.2f} ms: ratio {long / short:.2f}"
        f" (wanted: at most {LONGEST_RATIO:.0f})"
    )
    return long / short


def open_server(folder: Path, url: str) -> Server:
    settings = Settings(home=folder, models=Path(MODEL_CACHE), llm_url=url, llm_model="scripted")
    container = Container(settings)
    source = sources.add(container.database, "handbook", "folder", {"path": str(handbook())})
    steps = sync(
        container.database,
        source,
        container.sources.connector(source),
        container.sources.pipeline(source),
    )
    assert list(steps)
    return Server(container)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--at-once", type=int, default=20)
    parser.add_argument("--turns", type=int, default=30)
    parser.add_argument("--opened", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, running_model(model_says) as url:
        server = open_server(Path(folder), url)
        # What is loaded once is no part of a turn.
        measure_storing(server, 1, 1)
        shares = [
            measure_storing(server, number, options.turns // 10 * number or 1)
            for number in (1, options.at_once)
        ]
        ratio = measure_opening(server, options.opened)
    sys.exit(shares[-1] >= BAR or ratio > LONGEST_RATIO)


if __name__ == "__main__":
    main()
