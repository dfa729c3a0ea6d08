"""Whatever a run rests on, and whatever becomes of the rights of those who look at it: nobody is shown a word of what they may not read."""

import io
import json
import random
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from backend.access.roles import Role
from backend.api import research_responses as responses
from backend.conversations.answer_gate import AnswerGate
from backend.conversations.followed_turn import FollowPosition, WithheldError
from backend.conversations.turn_notifications import TurnNotifications
from backend.research.runs.followed_research import ResearchFollower
from backend.research.runs.report_docx import write_docx
from backend.research.runs.service import ResearchService
from backend.store.chat import projects
from backend.store.database import Database, open_database
from backend.store.owner import ConversationOwner
from backend.web.research_view import ResearchView, build_research_view
from connectors.access import Readers
from connectors.errors import NotFoundError
from indexing.runtime.deadline import CancelToken, Deadline
from tests.support.accounts import add_person
from tests.support.conversations import START, own_no_memories
from tests.support.databases import sqlite_in
from tests.support.research_runs import SENTENCES, add_run, finish_run
from tests.support.soak import scaled
from tests.unit.backend.conversations.test_turn_runner import Shelf

CHECKS = scaled(scaled(50, 300, "slow"), 10_000, "access")
CHECKS_A_RUN = 10
DOCUMENTS = [f"wiki:{number}" for number in range(8)]
SAID = {document: f"secret-of-{document.partition(':')[2]}-" for document in DOCUMENTS}


@dataclass(frozen=True)
class Place:
    database: Database
    author: ConversationOwner
    member: ConversationOwner
    stranger: ConversationOwner
    project: str


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder: Path = tmp_path_factory.mktemp("leaks")
    with closing(open_database(sqlite_in(folder))) as database:
        author, member, stranger = (
            ConversationOwner(add_person(database, f"{name}@example.com", Role.ADMIN).id)
            for name in ("author", "member", "stranger")
        )
        project = projects.add(database, author, "Depot", "", START)
        projects.add_member(database, project, "member@example.com")
        yield Place(database, author, member, stranger, project)


def _make_rounds(chance: random.Random) -> list[Mapping[str, str]]:
    documents = chance.sample(DOCUMENTS, chance.randint(1, 6))
    rounds: list[Mapping[str, str]] = []
    while documents:
        taken = documents[: chance.randint(1, 3)]
        del documents[: len(taken)]
        rounds.append({one: SAID[one] for one in taken})
    return rounds


def _gate(readable: Sequence[str]) -> AnswerGate:
    return AnswerGate(
        index=Shelf(*readable),  # type: ignore[arg-type]
        readers=Readers.of("public"),
        own_memories=own_no_memories,
        deadline=Deadline.after(30),
    )


def _follow(
    place: Place, asker: ConversationOwner, run_id: str, readable: Sequence[str], after: int
) -> str:
    follower = ResearchFollower(
        database=place.database,
        run_id=run_id,
        owner=asker,
        index=Shelf(*readable),  # type: ignore[arg-type]
        readers_now=lambda: Readers.of("public"),
        own_memories=own_no_memories,
        seconds=30.0,
        news=TurnNotifications(),
        cancel_token=CancelToken(),
    )
    return str(follower.look(FollowPosition(after)).events)


def _list_shown(
    place: Place, asker: ConversationOwner, run_id: str, readable: Sequence[str], after: int
) -> list[str]:
    """All that somebody is shown of a run, by every way to it."""
    service = ResearchService(
        database=place.database, owner=asker, gate=_gate(readable), acting_as=()
    )
    found = service.open(run_id)
    opened = responses.make_opened(found).model_dump_json()
    outline, page = _read_page(build_research_view(found))
    listed = responses.make_page(service.list_page(place.project, None, 50), service)
    followed = _follow(place, asker, run_id, readable, after)
    shown = [opened, followed, listed.model_dump_json(), *outline, page]
    try:
        report = service.get_report(run_id)
    except WithheldError:
        return shown
    return [*shown, report.markdown, service.export_report(run_id), _read_docx(write_docx(report))]


def _read_page(view: ResearchView) -> tuple[list[str], str]:
    """Return the lines of the outline, and all else of the page that rests on documents."""
    outline = [one.text for one in view.report.written.headings] if view.report else []
    return outline, repr((view.tasks, view.report))


def _read_docx(file: bytes) -> str:
    with zipfile.ZipFile(io.BytesIO(file)) as parts:
        return parts.read("word/document.xml").decode()


@pytest.mark.deep("slow")
@pytest.mark.deep("access")
def test_nobody_is_shown_a_word_of_what_they_may_not_read(place: Place) -> None:
    chance = random.Random(7)
    for _ in range(CHECKS // CHECKS_A_RUN):
        rounds = _make_rounds(chance)
        history = chance.sample(DOCUMENTS, chance.choice([0, 0, 0, 1]))
        run_id = add_run(place.database, place.author, project_id=place.project, history=history)
        record = finish_run(place.database, run_id, rounds)
        rests_on = {*history, *record.documents}
        for _ in range(CHECKS_A_RUN):
            asker = chance.choice([place.author, place.member])
            readable = chance.sample(DOCUMENTS, chance.randint(0, len(DOCUMENTS)))
            shown = _list_shown(place, asker, run_id, readable, chance.choice([0, 1, 5, 9]))
            _check(shown, readable)
            is_readable = rests_on <= set(readable)
            assert (str(SENTENCES) in str(shown)) == is_readable
            if is_readable:
                assert record.report is not None
                assert record.report.markdown in shown
                planned = {one.task.question for one in record.reports if not one.task.round}
                assert planned <= {*shown}
        with pytest.raises(NotFoundError):
            _list_shown(place, place.stranger, run_id, DOCUMENTS, 0)


def _check(shown: Sequence[str], readable: Sequence[str]) -> None:
    text = json.dumps(shown)
    leaked = [one for one in DOCUMENTS if one not in readable and SAID[one] in text]
    assert leaked == []


def test_the_check_finds_what_is_shown_without_a_gate(place: Place) -> None:
    run_id = add_run(place.database, place.author)
    finish_run(place.database, run_id, [{"wiki:1": SAID["wiki:1"]}])
    shown = _list_shown(place, place.author, run_id, DOCUMENTS, 0)
    with pytest.raises(AssertionError):
        _check(shown, [])


def test_what_may_be_read_is_shown_beside_what_may_not(place: Place) -> None:
    run_id = add_run(place.database, place.author)
    rounds = [{one: SAID[one] for one in ("wiki:1", "wiki:2")}, {"wiki:3": SAID["wiki:3"]}]
    finish_run(place.database, run_id, rounds)
    opened, followed, *_ = _list_shown(place, place.author, run_id, ["wiki:1", "wiki:3"], 0)
    for shown in (opened, followed):
        assert SAID["wiki:1"] in shown
        # The question of the second round was written by one who knew what the first had found.
        assert SAID["wiki:3"] not in shown
    assert "withheld" in followed
