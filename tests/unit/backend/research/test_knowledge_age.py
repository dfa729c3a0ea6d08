"""What rests on pages of the web becomes stale with age; looks at many documents end with their deadline; exports are bounded."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backend.research.knowledge import service as knowledge_service
from backend.research.knowledge.kept_knowledge import (
    DocumentVersion,
    ImportedItem,
    PageVersion,
    Staleness,
)
from backend.research.knowledge.lookup import find_earlier
from backend.research.knowledge.service import KnowledgeService, add_items
from backend.research.knowledge.sources import check_sources, locate_references
from backend.store.chat import projects
from backend.store.research import knowledge, research_runs
from backend.store.research.knowledge_records import OWN, KnowledgePlace
from indexing.runtime.deadline import Deadline, DeadlineExceededError
from tests.support.conversations import OWNER, START
from tests.support.databases import sqlite_in
from tests.support.knowledge import KnowledgeWorld, learn, make_item, make_reference
from tests.support.research_runs import add_run
from tests.unit.backend.research.test_knowledge_service import MODEL

LEAVE = "Leave is 25 days."
WEB, DAYS = "https://sky.example/lyon", timedelta(days=90)
EXPIRED = Deadline.after(0)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[KnowledgeWorld]:
    with closing(KnowledgeWorld(sqlite_in(tmp_path), tmp_path / "index")) as opened:
        yield opened


def _import(world: KnowledgeWorld, age: timedelta, *pages: str) -> str:
    given = ImportedItem(
        item=make_item("Does it rain?", "It rains."),
        pages=tuple(PageVersion(one, "0" * 40) for one in pages),
        made_at=datetime.now(UTC) - age,
    )
    (made,) = world.serve(OWNER).import_items(OWN, [given]).ids
    return made


def test_what_was_found_on_the_web_is_stale_once_it_is_too_old(world: KnowledgeWorld) -> None:
    minute = timedelta(minutes=1)
    fresh, old = _import(world, DAYS - minute, WEB), _import(world, DAYS + minute, WEB)
    of_no_page = _import(world, 10 * DAYS)
    service = world.serve(OWNER)
    assert [service.get(one).stale for one in (fresh, old, of_no_page)] == [
        None,
        Staleness.TOO_OLD,
        None,
    ]
    gate, deadline = world.open_gate(OWNER), Deadline.after(60)
    used = find_earlier(gate, [OWN], "Does it rain?", MODEL, deadline)
    assert {one.id for one in used} == {fresh, of_no_page}
    strict = replace(gate, web_age=timedelta(days=1))
    used = find_earlier(strict, [OWN], "Does it rain?", MODEL, deadline)
    assert {one.id for one in used} == {of_no_page}


def test_a_person_who_corrects_what_is_too_old_makes_it_fresh(world: KnowledgeWorld) -> None:
    old = _import(world, 2 * DAYS, WEB)
    service = world.serve(OWNER)
    assert service.correct(old, None, "It rains on Mondays.").stale is None


def test_a_look_at_sources_ends_with_its_deadline(world: KnowledgeWorld) -> None:
    leave = world.put("leave", LEAVE)
    (made,) = world.keep(learn(LEAVE, leave))
    moved = replace(make_reference(LEAVE, LEAVE, leave), section=1)
    with pytest.raises(DeadlineExceededError):
        locate_references([moved], [LEAVE], EXPIRED)
    stored = knowledge.get(world.database, OWNER, made)
    gate = world.open_gate(OWNER)
    hashes = gate.find_hashes([leave])
    with pytest.raises(DeadlineExceededError):
        check_sources(stored, hashes, gate.open_texts(), EXPIRED)
    checked = check_sources(stored, hashes, gate.open_texts(), Deadline.after(60))
    # What was looked at needs no time.
    assert check_sources(checked, hashes, gate.open_texts(), EXPIRED) is checked


def test_what_names_a_document_and_quotes_nothing_of_it_is_unverified_in_a_project(
    world: KnowledgeWorld,
) -> None:
    leave = world.put("leave", LEAVE)
    project = KnowledgePlace("project", projects.add(world.database, OWNER, "Depot", "", START))
    quoted = make_item("Q?", LEAVE, make_reference(LEAVE, LEAVE, leave))
    bare = make_item("How long is leave?", "Leave is 99 days.")
    service = world.serve(OWNER)
    hashes = world.open_gate(OWNER).find_hashes([leave])
    named = ImportedItem(item=bare, documents=(DocumentVersion(leave, hashes[leave]),))
    report = service.import_items(project, [named, ImportedItem(item=quoted)])
    assert [service.get(one).stale for one in report.ids] == [Staleness.UNVERIFIED, None]
    assert report.unverified == 1


def test_an_export_is_bounded_and_says_where_the_next_one_begins(
    world: KnowledgeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [_import(world, timedelta(days=age)) for age in range(5)]
    monkeypatch.setattr(knowledge_service, "MOST_ITEMS", 2)
    service: KnowledgeService = world.serve(OWNER)
    exported, before = list[list[str]](), None
    while True:
        page = service.export_page(None, before)
        exported.append([one.id for one in page.items])
        if (before := page.next) is None:
            break
    assert exported == [ids[:2], ids[2:4], ids[4:]]


def test_a_run_that_is_deleted_before_it_has_ended_leaves_no_findings(
    world: KnowledgeWorld,
) -> None:
    """Its findings are kept between its report and its end."""
    run_id, database = add_run(world.database, OWNER), world.database
    assert len(add_items(database, OWNER, OWN, [learn("It rains.", url=WEB)], run_id)) == 1
    research_runs.remove(database, OWNER, run_id)
    assert world.serve(OWNER).list_all(None) == []
    assert add_items(database, OWNER, OWN, [learn("It rains.", url=WEB)], run_id) == []
    assert world.serve(OWNER).list_all(None) == []
