"""People with accounts, documents that some of them may read, a workspace of Slack, and the bot that answers there."""

import re
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from backend.access.groups import GroupService
from backend.access.roles import Role
from backend.container import Container
from backend.programs.slack.service import SlackService
from backend.settings import Settings
from backend.store.accounts.people import Person
from backend.store.documents.documents import save_conjunctions
from connectors.access import Access
from indexing.chunking.chunk import Chunk
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.embedding.language_support import EVERYTHING
from indexing.local import open_index, open_writer
from tests.support.accounts import add_person
from tests.support.chunks import chunk
from tests.support.scripted_model import Reply, Request, Say, ScriptedModel
from tests.support.search import one_chunk_documents, write_local_index
from tests.support.slack_server import SlackServer

STOP_SECONDS = 60.0


def repeat_all(request: Request) -> Reply:
    """Answer as a model does that says all that it is told, and cites all of it."""
    if not request.answers:
        return Say("")
    told = [f"{one['title']}: {one['content']} [{one['number']}]." for one in request.sources]
    return Say("\n\n".join(told) or "I found nothing.")


@dataclass
class SlackWorld:
    container: Container
    slack: SlackServer
    model: ScriptedModel | None
    folder: Path
    people: dict[str, Person] = field(default_factory=dict)
    """By the id of their user in Slack."""
    rights: dict[str, frozenset[str]] = field(default_factory=dict)
    """What each of these holds: `public`, its address and its groups."""
    chunks: dict[str, Chunk] = field(default_factory=dict)
    _bots: list[tuple[threading.Event, threading.Thread]] = field(default_factory=list)

    def add_person(self, name: str, role: Role = Role.MEMBER) -> str:
        """Add somebody with an account here and a user there; return the id of the user."""
        email = f"{name}@example.com"
        user = self.slack.add_user(email)
        self.people[user] = add_person(self.container.database, email, role)
        self.rights[user] = frozenset({"public", f"user:{email}"})
        return user

    def add_group(self, name: str, *users: str) -> None:
        GroupService(self.container.database).create(name)
        for user in users:
            self.join_group(name, user)

    def join_group(self, name: str, user: str) -> None:
        GroupService(self.container.database).add_member(name, self.people[user].email)
        self.rights[user] |= {f"group:{name}"}

    def remove_from_group(self, name: str, user: str) -> None:
        GroupService(self.container.database).remove_member(name, self.people[user].email)
        self.rights[user] -= {f"group:{name}"}

    def add_document(
        self, document_id: str, text: str, *clauses: Sequence[str], title: str = "A title"
    ) -> None:
        access = Access.all_of(clauses or [["public"]])
        link = f"https://wiki.example.com/{document_id}"
        self.chunks[document_id] = chunk(
            document_id, 0, text, access=access, title=title, link=link
        )

    def write(self) -> None:
        """Index the documents that were added."""
        with self.container.database.writing() as connection:
            save_conjunctions(connection, [one.access for one in self.chunks.values()])
        write_local_index(self.folder, self.chunks.values())

    def change(self, *document_ids: str) -> None:
        """Index documents again that were added anew."""
        writer = open_writer(self.folder, HashingEmbedder().identity)
        writer.write(one_chunk_documents(self.chunks[one] for one in document_ids))

    def readable_by_all(self, users: Collection[str]) -> set[str]:
        """Return the documents that each of these users may read; one without an account reads what is public."""
        held = [self.rights.get(user, frozenset({"public"})) for user in users]
        return {
            name
            for name, one in self.chunks.items()
            if all(
                not tokens.isdisjoint(clause) for clause in one.access.clauses for tokens in held
            )
        }

    def start_bot(self) -> SlackService:
        """Start a bot, which the end of the test stops."""
        service, stopping = SlackService(self.container), threading.Event()
        running = threading.Thread(target=service.run, args=(stopping,), daemon=True)
        running.start()
        self._bots.append((stopping, running))
        return service

    def stop_bots(self) -> None:
        for stopping, _ in self._bots:
            stopping.set()
        # The client waits up to three seconds for what the server says before it closes its connection.
        time.sleep(0.1)
        self.slack.cut()
        for _, running in self._bots:
            running.join(STOP_SECONDS)
            assert not running.is_alive()
        self._bots.clear()


@contextmanager
def open_slack_world(
    folder: Path, model: ScriptedModel | None = None, settings: Mapping[str, object] | None = None
) -> Iterator[SlackWorld]:
    """Make a home without documents, and a workspace; its bot is started by the test."""
    chosen: dict[str, object] = {
        "home": folder / "home",
        "public_url": "https://quarry.example.com",
    }
    if model is not None:
        chosen |= {"llm_url": model.base_url, "llm_model": "scripted"}
    with SlackServer() as slack:
        container = Container(
            Settings.model_validate({**chosen, **slack.settings, **(settings or {})})
        )
        index_folder = folder / "index"
        open_writer(index_folder, HashingEmbedder().identity)
        with (
            closing(container.database),
            closing(open_index(index_folder, HashingEmbedder().identity)) as index,
        ):
            engine = container.chat.engine
            vars(engine)["index"] = index
            vars(engine.embedding).update(embedder=HashingEmbedder(), language_support=EVERYTHING)
            world = SlackWorld(container, slack, model, index_folder)
            try:
                yield world
            finally:
                world.stop_bots()


SECRET = re.compile(r"(?:secret|title)\d+x")


def find_secrets(text: str) -> set[str]:
    return set(SECRET.findall(text))
