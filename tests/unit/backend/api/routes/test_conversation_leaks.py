"""Random looks at shared and project conversations, while rights, memberships and links change: who sees which words.

Each conversation has words that stand nowhere else: in its question, title, answer, comment and search variant. What a look
shows has to be exactly the words that a second, plain computation allows: no more, which would be a leak, and no less, by
which the test would prove nothing.
"""

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from backend.api.app import Api
from backend.web import routes
from tests.support.conversations import begin, finish, make_answer
from tests.support.soak import scaled
from tests.unit.backend.api.conftest import make_container
from tests.unit.backend.api.routes.test_sharing import (
    ADMIN,
    ANN,
    BOB,
    CID,
    DEE,
    EVE,
    LEAVE,
    PAY,
    SHARED,
    World,
    make_worlds,
)

CHECKS = scaled(scaled(60, 150, "slow"), 10_000, "access")
PEOPLE = (BOB, CID, DEE, EVE)
READERS = (ANN, *PEOPLE)
PAGE_SHARE = 0.1
"""Of the looks at pages, which take longer than those at the API."""
SEVERAL = 10
"""Conversations at a time."""
NEVER = "never-was-there"
_WORDS = re.compile(r"(?:question|title|answer|comment|variant)\d+word")


@dataclass(slots=True, eq=False)
class Talk:
    """A conversation of one question and one answer, as it should be."""

    number: int
    author: str
    documents: tuple[str, ...]
    id: str
    message: int
    title: str
    in_project: bool = False
    link: str | None = None
    comment: str | None = None

    def word(self, kind: str) -> str:
        return f"{kind}{self.number}word"


@dataclass(frozen=True, slots=True)
class Look:
    """One request, and what it has to show."""

    client: str
    path: str
    status: int
    words: Set[str] = frozenset()
    method: str = "GET"
    json: Mapping[str, object] | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    count: tuple[str, int] | None = None
    """Of the items of a list in the response."""


@dataclass(frozen=True)
class Company:
    world: World
    draw: Random
    project: str
    talks: list[Talk] = field(default_factory=list)
    finance: set[str] = field(default_factory=lambda: {BOB, DEE})
    members: set[str] = field(default_factory=set)
    """Of the project, which is Bob's, besides him."""
    made: Iterator[int] = field(default_factory=lambda: iter(range(1_000_000)))

    def request(self, client: str, method: str, path: str, **values: Any) -> Any:
        return self.world.clients[client].request(method, path, **values)

    def do(self, client: str, method: str, path: str, **values: Any) -> Any:
        done = self.request(client, method, path, **values)
        assert done.is_success, done.text
        return done

    # What has to be seen.

    def is_member(self, person: str) -> bool:
        return person == BOB or person in self.members

    def may_read(self, person: str, talk: Talk) -> bool:
        return PAY not in talk.documents or person in self.finance

    def words_of(self, person: str, talk: Talk, *kinds: str) -> set[str]:
        """Its title and its question, and of its answer what a person may read."""
        shown = {talk.title, talk.word("question")}
        return shown | ({talk.word(one) for one in kinds} if self.may_read(person, talk) else set())

    def in_project(self) -> list[Talk]:
        return [one for one in self.talks if one.in_project and self.is_member(one.author)]

    # Changes.

    def change(self) -> None:
        changes = (
            self.change_rights,
            self.change_rights,
            self.change_members,
            self.change_link,
            self.change_link,
            self.change_project,
            self.change_project,
            self.change_title,
            self.change_comment,
            self.replace,
        )
        self.draw.choice(changes)()

    def change_rights(self) -> None:
        person = self.draw.choice(READERS)
        if person in self.finance:
            self.world.groups.remove_member("finance", person)
            self.finance.remove(person)
        else:
            self.world.groups.add_member("finance", person)
            self.finance.add(person)

    def change_members(self) -> None:
        person = self.draw.choice((CID, DEE, EVE))
        path = f"/api/projects/{self.project}/members"
        if person not in self.members:
            self.do(BOB, "POST", path, json={"email": person})
            self.members.add(person)
            return
        listed = self.do(BOB, "GET", path).json()["members"]
        (number,) = (one["id"] for one in listed if one["email"] == person)
        self.do(self.draw.choice((BOB, person)), "DELETE", f"{path}/{number}")
        self.members.remove(person)

    def change_link(self) -> None:
        talk = self.draw.choice(self.talks)
        path = f"/api/conversations/{talk.id}/share"
        if talk.link is not None:
            self.do(talk.author, "DELETE", path)
            talk.link = None
        else:
            shared = self.do(talk.author, "POST", path, json={"message_id": talk.message})
            talk.link = shared.json()["id"]

    def change_project(self) -> None:
        talk = self.draw.choice(self.talks)
        target = None if talk.in_project else self.project
        path = f"/api/conversations/{talk.id}/project"
        moved = self.request(talk.author, "PUT", path, json={"project_id": target})
        if target is None or self.is_member(talk.author):
            assert moved.status_code == 200, moved.text
            talk.in_project = not talk.in_project
        else:
            assert moved.status_code == 404, moved.text

    def change_title(self) -> None:
        talk = self.draw.choice(self.talks)
        talk.title = talk.word("title")
        self.do(talk.author, "PATCH", f"/api/conversations/{talk.id}", json={"title": talk.title})

    def change_comment(self) -> None:
        talk = self.draw.choice(self.talks)
        path = f"/api/conversations/{talk.id}/messages/{talk.message}/feedback"
        said = {"rating": "good", "comment": talk.word("comment")}
        given = self.request(talk.author, "PUT", path, json=said)
        assert given.status_code == (204 if self.may_read(talk.author, talk) else 409)
        if given.status_code == 204:
            talk.comment = talk.word("comment")

    def replace(self) -> None:
        talk = self.draw.choice(self.talks)
        self.do(talk.author, "DELETE", f"/api/conversations/{talk.id}")
        self.talks.remove(talk)
        self.add()

    def add(self) -> None:
        number, author = next(self.made), self.draw.choice(PEOPLE)
        documents = self.draw.choice(((PAY,), (LEAVE,), (LEAVE, PAY)))
        database = self.world.container.database
        question, text = f"How is question{number}word decided?", f"By answer{number}word [[1]](x)."
        begun = begin(database, question, self.world.owner(author))
        variant = {"name": "original", "text": f"variant{number}word", "weight": 1}
        answer = make_answer(text, *documents, record={"variants": [variant], "steps": {}})
        finish(database, begun.answer.id, text, documents, answer)
        talk = Talk(
            number=number,
            author=author,
            documents=documents,
            id=begun.question.conversation_id,
            message=begun.answer.id,
            title=f"question{number}word",
        )
        self.talks.append(talk)

    # Looks.

    def looks(self) -> Iterator[Look]:
        """Yield looks of somebody at something, each of another kind."""
        for look in self._all_looks():
            if look.path.startswith("/api/") or self.draw.random() < PAGE_SHARE:
                yield look

    def _all_looks(self) -> Iterator[Look]:
        reader, talk = self.draw.choice(READERS), self.draw.choice(self.talks)
        yield from self._looks_at_own(reader, talk)
        yield from self._looks_at_project(reader, talk)
        yield from self._looks_at_shared(reader, talk)
        yield from self._looks_of_admin()

    def _looks_at_own(self, reader: str, talk: Talk) -> Iterator[Look]:
        own = [one for one in self.talks if one.author == reader]
        listed = {word for one in own for word in (one.title,)}
        yield Look(reader, "/api/conversations", 200, listed, count=("conversations", len(own)))
        is_own = talk.author == reader
        for query in (talk.word("question"), talk.title):
            words = {talk.title} if is_own else set()
            found = ("conversations", int(is_own))
            yield Look(
                reader, "/api/conversations", 200, words, params={"query": query}, count=found
            )
        # By what its answer says, who may read that now finds it, in their own alone.
        hits = [one for one in own if one is talk and self.may_read(reader, one)]
        for query in (talk.word("answer"), f"{talk.title} {talk.word('answer')}"):
            yield Look(
                reader,
                "/api/conversations",
                200,
                {one.title for one in hits},
                params={"query": query},
                count=("conversations", len(hits)),
            )
        readable = [one for one in own if self.may_read(reader, one)]
        yield Look(
            reader,
            "/api/conversations",
            200,
            {one.title for one in readable},
            params={"query": "by answer"},
            count=("conversations", len(readable)),
        )
        path, status = f"/api/conversations/{talk.id}", 200 if is_own else 404
        shown = self.words_of(reader, talk, "answer") if is_own else set()
        yield Look(reader, f"{path}/export", status, shown)
        yield Look(reader, path, status, shown)
        said = {talk.comment} if is_own and talk.comment else set()
        yield Look(reader, f"{path}/feedback", status, said)
        events = f"{path}/messages/{talk.message}/events"
        allowed = is_own and self.may_read(reader, talk)
        yield Look(reader, events, status, {talk.word("answer")} if allowed else set())

    def _looks_at_project(self, reader: str, talk: Talk) -> Iterator[Look]:
        inside = self.in_project() if self.is_member(reader) else []
        path, status = f"/api/projects/{self.project}", 200 if self.is_member(reader) else 404
        count = ("conversations", len(inside)) if self.is_member(reader) else None
        yield Look(
            reader, f"{path}/conversations", status, {one.title for one in inside}, count=count
        )
        page = f"/projects/{self.project}"
        titles = {one.title for one in inside}
        yield Look(reader, page, status, titles)
        status = 200 if talk in inside else 404
        shown = self.words_of(reader, talk, "answer") if talk in inside else set()
        yield Look(reader, f"{path}/conversations/{talk.id}", status, shown)
        if talk.author != reader:
            yield Look(reader, f"{page}/conversations/{talk.id}", status, shown)
        allowed = talk in inside and self.may_read(reader, talk)
        said = {talk.word("answer")} if allowed else set()
        yield Look(reader, f"{path}/messages/{talk.message}/events", status, said)

    def _looks_at_shared(self, reader: str, talk: Talk) -> Iterator[Look]:
        path, status = talk.link or NEVER, 200 if talk.link else 404
        shown = self.words_of(reader, talk, "answer") if talk.link else set()
        for suffix in ("", "/export"):
            yield Look(reader, f"{SHARED}/{path}{suffix}", status, shown)
        # The page is alike for every link: what is shared comes over the API.
        yield Look(reader, f"/shared/{path}", 200)

    def _looks_of_admin(self) -> Iterator[Look]:
        rated = [one for one in self.talks if one.comment]
        shown = set[str]()
        for one in rated:
            shown.add(one.word("question"))
            if self.may_read(ANN, one):
                shown |= {one.word("answer"), one.word("comment"), one.word("variant")}
        yield Look(
            "admin", ADMIN, 200, shown, params={"limit": "100"}, count=("feedback", len(rated))
        )
        yield Look("admin", "/feedback", 200, shown)
        judged = {one.word("question") for one in rated if self.may_read(ANN, one)}
        yield Look("admin", f"{ADMIN}/export", 200, judged)

    def check(self, look: Look) -> None:
        found = self.request(look.client, look.method, look.path, params=look.params)
        assert found.status_code == look.status, (look, found.text)
        assert set(_WORDS.findall(found.text)) == look.words, (look, found.text)
        if look.count is not None:
            name, expected = look.count
            assert len(found.json()[name]) == expected, look


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Iterator[Company]:
    container = make_container(tmp_path_factory.mktemp("looks"))
    for world in make_worlds(container, folder):
        app = world.clients[BOB].app
        assert isinstance(app, Api)
        routes.mount(app)
        made = world.clients[BOB].post("/api/projects", json={"name": "Depot"})
        company = Company(world, Random(17), made.json()["id"])
        for _ in range(SEVERAL):
            company.add()
        yield company


@pytest.mark.deep("slow")
@pytest.mark.deep("access")
def test_looks_show_what_is_allowed_now_and_nothing_else(company: Company) -> None:
    shown = hidden = checks = 0
    while checks < CHECKS:
        company.change()
        for look in company.looks():
            company.check(look)
            checks += 1
            shown += bool(look.words)
            hidden += not look.words
    # Neither nearly everything nor nearly nothing was allowed.
    assert min(shown, hidden) > checks // 20
