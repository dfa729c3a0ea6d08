"""Random changes of rights over shared conversations: at each moment everybody is shown exactly what they may read then."""

import random
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from backend.access.roles import Role
from backend.api.answer_events import plain_html
from backend.api.sharing_responses import make_shared
from backend.conversations.answer_gate import AnswerGate
from backend.conversations.feedback import FeedbackReview, OwnFeedback
from backend.conversations.markdown_export import export_markdown
from backend.conversations.sharing import SharingService
from backend.schemas.feedback import FeedbackResponse, ReviewedFeedbackResponse
from backend.store import audit
from backend.store.accounts import people
from backend.store.audit import OWNER as AT_THE_MACHINE
from backend.store.audit import Actor, AuditFilter
from backend.store.chat import conversations
from backend.store.chat.answer_feedback import Feedback
from backend.store.chat.new_messages import NewQuestion, ask, begin_conversation
from backend.store.database import Database, open_database
from backend.store.owner import ConversationOwner
from connectors.access import Readers
from connectors.errors import ConflictError, NotFoundError
from indexing.chunking.chunk import ChunkRange
from indexing.index.protocols import Index
from indexing.runtime.deadline import Deadline
from tests.support.accounts import add_person
from tests.support.conversations import finish, make_answer, own_no_memories, writer
from tests.support.soak import scaled

PEOPLE, DOCUMENTS, TURNS = 4, 6, 3
CHANGES = scaled(scaled(500, 2_000, "slow"), 10_000, "access")
SECRET = re.compile(r"(?:title|answer)of\w+")


@dataclass
class Shelf:
    """An index of documents by their ids, of which one person may read some."""

    readable: set[str]

    def chunks(self, ranges: list[ChunkRange], readers: Readers, deadline: Deadline) -> list[Any]:
        del readers, deadline
        return [["a chunk"] if one.document_id in self.readable else [] for one in ranges]


@dataclass
class Talk:
    """A conversation as the model of this test knows it."""

    id: str
    owner: int
    answers: list[int]
    rests_on: list[set[str]]
    """What each answer rests on: its own documents, and those of the answers before it."""
    cites: list[set[str]]
    link: str | None = None
    shared: int = 0
    """The number of answers that are shared."""

    def visible(self, number: int, readable: set[str]) -> set[str]:
        """The secrets of the first answers that one who may read these documents is to be shown."""
        found: set[str] = set()
        for answer, rests_on, cites in zip(
            self.answers[:number], self.rests_on, self.cites, strict=False
        ):
            if rests_on <= readable:
                found |= {f"answerof{answer}x", *(f"titleof{one}x" for one in cites)}
        return found


@dataclass
class Office:
    """People, what each may read, and what they share: the arithmetic beside the product."""

    database: Database
    chance: random.Random
    people: list[int]
    readable: dict[int, set[str]]
    disabled: set[int] = field(default_factory=set)
    talks: list[Talk] = field(default_factory=list)
    dead_links: list[str] = field(default_factory=lambda: ["never-was-one"])
    shown: int = 0
    hidden: int = 0

    def gate(self, person: int) -> AnswerGate:
        return AnswerGate(
            index=cast("Index", Shelf(self.readable[person])),
            readers=Readers.of(),
            own_memories=own_no_memories,
            deadline=Deadline.after(60),
        )

    def service(self, person: int) -> SharingService:
        owner = ConversationOwner(person)
        return SharingService(database=self.database, owner=owner, gate=self.gate(person))

    def begin_talk(self) -> None:
        owner = self.chance.choice(self.people)
        begun = begin_conversation(
            self.database,
            ConversationOwner(owner),
            "question",
            NewQuestion(text="question", filters={}),
            writer(),
        )
        talk = Talk(begun.question.conversation_id, owner, [], [], [])
        so_far: set[str] = set()
        for number in range(TURNS):
            if number:
                begun = ask(
                    self.database,
                    ConversationOwner(owner),
                    talk.id,
                    talk.answers[-1],
                    NewQuestion(text="question", filters={}),
                    writer(),
                )
            cites = {f"d{self.chance.randrange(DOCUMENTS)}" for _ in range(2)}
            so_far = so_far | cites
            self._finish(begun.answer.id, cites, so_far)
            talk.answers.append(begun.answer.id)
            talk.cites.append(cites)
            talk.rests_on.append(so_far)
        self.talks.append(talk)

    def _finish(self, message: int, cites: set[str], rests_on: set[str]) -> None:
        cited = sorted(cites)
        markers = "".join(f"[[{one}]](https://x)" for one in range(1, len(cited) + 1))
        answer = make_answer(f"answerof{message}x {markers}", *cited)
        for one in (*answer["citations"], *answer["documents"]):
            one["title"] = f"titleof{one['document_id']}x"
            one["quote"] = ""
        finish(self.database, message, answer["answer"], tuple(sorted(rests_on)), answer)

    def change(self) -> None:
        """Change something at random: mostly rights."""
        kind = self.chance.random()
        if kind < 0.6:
            readable = self.readable[self.chance.choice(self.people)]
            readable ^= {f"d{self.chance.randrange(DOCUMENTS)}"}
        elif kind < 0.75:
            self._share(self.chance.choice(self.talks))
        elif kind < 0.83:
            self._take_back(self.chance.choice(self.talks))
        elif kind < 0.9:
            self._switch(self.chance.choice(self.people))
        elif kind < 0.93:
            self._delete(self.chance.choice(self.talks))
        else:
            self._say(self.chance.choice(self.talks))

    def _share(self, talk: Talk) -> None:
        talk.shared = self.chance.randint(1, TURNS)
        shared = self.service(talk.owner).share(talk.id, talk.answers[talk.shared - 1])
        assert talk.link in {None, shared.id}
        talk.link = shared.id

    def _take_back(self, talk: Talk) -> None:
        self.service(talk.owner).take_back(talk.id)
        if talk.link:
            self.dead_links.append(talk.link)
        talk.link = None

    def _switch(self, person: int) -> None:
        self.disabled ^= {person}
        at = datetime.now(UTC) if person in self.disabled else None
        people.set_disabled(self.database, person, at)

    def _delete(self, talk: Talk) -> None:
        conversations.remove(self.database, ConversationOwner(talk.owner), talk.id)
        if talk.link:
            self.dead_links.append(talk.link)
        self.talks.remove(talk)
        self.begin_talk()

    def _say(self, talk: Talk) -> None:
        at = self.chance.randrange(TURNS)
        own = OwnFeedback(
            database=self.database,
            owner=ConversationOwner(talk.owner),
            gate=self.gate(talk.owner),
        )
        may = talk.rests_on[at] <= self.readable[talk.owner]
        said = Feedback(rating="wrong_source", comment="", source=1)
        try:
            own.give(talk.id, talk.answers[at], said)
            assert may
        except ConflictError:
            assert not may

    def look(self) -> None:
        """Somebody looks at something: they are shown neither more nor less than the arithmetic says."""
        reader, talk = self.chance.choice(self.people), self.chance.choice(self.talks)
        match self.chance.randrange(4):
            case 0:
                self._look_at_link(reader, talk)
            case 1:
                self._look_at_nothing(reader)
            case 2:
                self._look_at_own(talk)
            case _:
                self._look_at_feedback(reader, talk)

    def _look_at_link(self, reader: int, talk: Talk) -> None:
        if talk.link is None or talk.owner in self.disabled:
            if talk.link:
                self._assert_missing(reader, talk.link)
            return
        expected = talk.visible(talk.shared, self.readable[reader])
        opened = self.service(reader).open_shared(talk.link)
        returned = make_shared(opened, plain_html)
        assert len(returned.messages) == 2 * talk.shared
        self._compare(returned.model_dump_json(), expected)
        exported = export_markdown(opened.read, "https://quarry.example.com", str)
        self._compare(exported, expected)
        self.shown += len(expected)
        self.hidden += sum(one.withheld for one in returned.messages)
        sources = {one for one in expected if one.startswith("title")}
        assert exported.count("](https://") == len(sources)

    def _look_at_nothing(self, reader: int) -> None:
        self._assert_missing(reader, self.chance.choice(self.dead_links))

    def _assert_missing(self, reader: int, link: str) -> None:
        with pytest.raises(NotFoundError, match="Nothing is shared under this link"):
            self.service(reader).open_shared(link)

    def _look_at_own(self, talk: Talk) -> None:
        expected = talk.visible(TURNS, self.readable[talk.owner])
        read = self.service(talk.owner).read_own(talk.id, None)
        self._compare(export_markdown(read, "https://quarry.example.com", str), expected)

    def _look_at_feedback(self, reader: int, talk: Talk) -> None:
        gate = self.gate(reader)
        review = FeedbackReview(database=self.database, gate=gate, actor=AT_THE_MACHINE)
        by_answer = {one: each for each in self.talks for one in each.answers}
        for one in review.list_page(None, None, 5):
            of = by_answer[one.given.answer.id]
            may = of.rests_on[of.answers.index(one.given.answer.id)] <= self.readable[reader]
            returned = ReviewedFeedbackResponse.from_reviewed(one, plain_html)
            assert returned.withheld is not may
            assert (returned.source, bool(returned.verdicts)) == (
                (1, True) if may else (None, False)
            )
            assert bool(SECRET.search(returned.model_dump_json())) is may
        own = OwnFeedback(
            database=self.database, owner=ConversationOwner(talk.owner), gate=self.gate(talk.owner)
        )
        for one in own.list_given(talk.id):
            at = talk.answers.index(one.given.answer.id)
            may = talk.rests_on[at] <= self.readable[talk.owner]
            assert FeedbackResponse.from_reviewed(one).source == (1 if may else None)

    def _compare(self, text: str, expected: set[str]) -> None:
        assert set(SECRET.findall(text)) == expected


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with closing(open_database(database_url)) as opened:
        yield opened


def test_that_a_link_is_made_moved_and_withdrawn_is_in_the_audit_and_no_text_of_it(
    database: Database,
) -> None:
    ann = add_person(database, "ann@example.com", Role.ADMIN).id
    office = Office(database, random.Random(16), [ann], {ann: {"d0", "d1", "d2", "d3", "d4"}})
    office.begin_talk()
    (talk,) = office.talks
    service = replace(office.service(ann), actor=Actor("user:ann@example.com", "192.0.2.7"))
    first, second = talk.answers[:2]
    service.take_back(talk.id)
    link = service.share(talk.id, first).id
    service.share(talk.id, second)
    for _ in range(2):
        service.take_back(talk.id)
    with pytest.raises(NotFoundError):
        service.share("never-was", first)
    entries = audit.list_entries(database, AuditFilter(subject=f"conversation:{talk.id}"))
    assert {(one.actor, one.address) for one in entries} == {("user:ann@example.com", "192.0.2.7")}
    assert [(one.action, one.detail) for one in reversed(entries)] == [
        ("share_conversation", {"before": {}, "after": {"message": first}}),
        ("share_conversation", {"before": {"message": first}, "after": {"message": second}}),
        ("withdraw_conversation_link", {"before": {"message": second}}),
    ]
    # Whoever has the link reads by it; no text of the conversation is for admins either.
    assert link not in str(entries)
    assert not SECRET.search(str(entries))


@pytest.mark.deep("slow")
@pytest.mark.deep("access")
def test_everybody_is_shown_exactly_what_they_may_read_now(database: Database) -> None:
    chance = random.Random(16)
    found = [
        add_person(database, f"p{number}@example.com", Role.ADMIN).id for number in range(PEOPLE)
    ]
    everything = {f"d{number}" for number in range(DOCUMENTS)}
    office = Office(database, chance, found, {one: set(everything) for one in found})
    for _ in range(5):
        office.begin_talk()
    for _ in range(CHANGES):
        office.change()
        office.look()
    assert office.shown > CHANGES / 20
    assert office.hidden > CHANGES / 20
