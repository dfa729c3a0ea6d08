"""Document sets: what is kept of them, who sees which, and which documents belong to them."""

from datetime import timedelta

import pytest

from backend.access.roles import Role
from backend.store.documents import document_set_jobs, document_sets
from backend.store.documents.source_removal import list_sets_losing_rules, remove_source
from backend.store.sync import sources
from backend.store.sync.runs import Process
from backend.store.sync.sources import SourcesOf
from connectors.access import Readers
from connectors.errors import ConflictError, NotFoundError
from indexing.index.protocols import SelectedDocument, Selection
from tests.support.accounts import add_person
from tests.support.document_sets import define, folder, single, source, tag, values
from tests.support.store import Store

ONE, OTHER = Process("here", 1, ""), Process("here", 2, "")


def _document(document_id: str, *tags: str) -> SelectedDocument:
    return SelectedDocument(document_id, frozenset(tags), frozenset())


def _claim(store: Store, holder: Process = ONE) -> document_set_jobs.SetJob:
    job = document_set_jobs.claim(store.database, holder, lambda _: False)
    assert job is not None
    return job


def test_sets_are_kept_as_they_were_given(store: Store) -> None:
    given = values("b", source("desk"), folder("web", "a/b"), tag("k=v"), tag("k=v", "desk"))
    document_sets.add(store.database, given)
    document_sets.add(store.database, values("a", single("web:x"), readers=frozenset({"group:x"})))
    first, second = document_sets.list_sets(store.database)
    assert (first.name, first.values.readers) == ("a", frozenset({"group:x"}))
    assert second.values == given
    assert document_sets.find(store.database, "b") == second
    assert not second.progress.is_applied
    with pytest.raises(NotFoundError):
        document_sets.find(store.database, "c")
    with pytest.raises(ConflictError):
        document_sets.add(store.database, values("a"))
    with pytest.raises(ConflictError):
        document_sets.change(store.database, first.id, values("b"))


def test_only_a_change_of_the_rules_makes_work(store: Store) -> None:
    found = define(store.database, "a", source("desk"), folder("web", "x"))
    job = _claim(store)
    document_set_jobs.finish(store.database, job, 3)
    version = document_sets.read_version(store.database)
    document_sets.change(
        store.database, found.id, values("new", folder("web", "x"), source("desk"))
    )
    assert document_sets.read_version(store.database) == version
    assert not document_set_jobs.is_due(store.database)
    renamed = document_sets.find(store.database, "new")
    assert (renamed.id, renamed.progress.is_applied, renamed.progress.documents) == (
        found.id,
        True,
        3,
    )
    define(store.database, "new", source("desk"), tag("k=v"))
    assert document_sets.read_version(store.database) > version
    job = _claim(store)
    assert [each.tag for each in job.joining] == ["k=v"]
    assert [each.prefix for each in job.leaving] == ["web:x/"]


def test_documents_belong_to_what_selects_them(store: Store) -> None:
    a = define(store.database, "a", source("desk"), tag("k=v", "web")).label
    b = define(store.database, "b", folder("web", "x/y/"), tag("l=w"), single("web:one")).label
    documents = [
        _document("desk:1"),
        _document("desk:2", "k=v", "l=w"),
        _document("web:x/y/3"),
        _document("web:x/yz"),
        _document("web:one", "k=v"),
        _document("web:one2"),
    ]
    assigned = document_sets.assign(store.database, documents)
    assert assigned.version == document_sets.read_version(store.database)
    assert dict(assigned.labels) == {
        "desk:1": {a},
        "desk:2": {a, b},
        "web:x/y/3": {b},
        "web:x/yz": set(),
        "web:one": {a, b},
        "web:one2": set(),
    }


def test_a_set_is_seen_by_its_readers_alone_and_gone_at_once(store: Store) -> None:
    everybodys = define(store.database, "a", source("desk"))
    document_sets.add(
        store.database, values("b", source("desk"), readers=frozenset({"group:x", "group:y"}))
    )
    groups = document_sets.find(store.database, "b")
    assert document_sets.list_visible(store.database, Readers.of()) == {everybodys.label: "a"}
    assert set(document_sets.list_visible(store.database, Readers.of("group:y")).values()) == {
        "a",
        "b",
    }
    document_sets.remove(store.database, groups.id)
    assert set(document_sets.list_visible(store.database, Readers(frozenset({"group:y"})))) == set()
    assert [each.name for each in document_sets.list_sets(store.database)] == ["a"]
    define(store.database, "b", tag("k=v"))
    assert document_sets.find(store.database, "b").label != groups.label


def test_a_source_manager_has_the_sets_wholly_of_their_sources(store: Store) -> None:
    add_person(store.database, "boss@example.com", Role.ADMIN)
    ann = add_person(store.database, "ann@example.com", Role.SOURCE_MANAGER)
    sources.set_owner(store.database, "desk", ann.id)
    define(store.database, "mine", source("desk"), folder("desk", "x"), single("desk:1"))
    define(store.database, "mixed", source("desk"), source("web"))
    define(store.database, "anywhere", source("desk"), tag("k=v"))
    define(store.database, "none")
    found = document_sets.list_sets(store.database, SourcesOf(ann.id))
    assert [each.name for each in found] == ["mine"]
    with pytest.raises(NotFoundError):
        document_sets.find(store.database, "mixed", SourcesOf(ann.id))
    define(store.database, "mixed", source("desk"))
    assert document_sets.find(store.database, "mixed", SourcesOf(ann.id)).name == "mixed"


def test_rules_of_a_source_go_with_it(store: Store) -> None:
    found = define(store.database, "a", source("desk"), folder("web", "x"))
    sources.remove(store.database, "desk")
    sources.add(store.database, "desk", "folder", {"path": "/elsewhere"})
    assert document_sets.find(store.database, "a").values.rules == (folder("web", "x"),)
    assigned = document_sets.assign(store.database, [_document("desk:1"), _document("web:x/1")])
    assert dict(assigned.labels) == {"desk:1": set(), "web:x/1": {found.label}}


def test_a_set_whose_sources_were_deleted_is_left_to_who_looked_after_them(store: Store) -> None:
    add_person(store.database, "boss@example.com", Role.ADMIN)
    ann, bob = (
        add_person(store.database, f"{name}@example.com", Role.SOURCE_MANAGER).id
        for name in ("ann", "bob")
    )
    for name, owner in (("desk", ann), ("web", bob)):
        sources.set_owner(store.database, name, owner)
    for name, *rules in (
        ("desks", source("desk"), folder("desk", "x")),
        ("both", source("desk"), source("web")),
        ("webs", source("web")),
    ):
        define(store.database, name, *rules)
        document_set_jobs.finish(store.database, _claim(store), 3)

    def seen(person: int) -> list[str]:
        return [one.name for one in document_sets.list_sets(store.database, SourcesOf(person))]

    desk = sources.find(store.database, "desk")
    assert list_sets_losing_rules(store.database, desk) == ["both", "desks"]
    remove_source(store.database, "desk")
    assert (seen(ann), seen(bob)) == (["desks"], ["both", "webs"])
    # What was counted before is not shown on.
    applied = {one.name: one.progress.is_applied for one in document_sets.list_sets(store.database)}
    assert applied == {"both": False, "desks": False, "webs": True}
    jobs = [_claim(store), _claim(store)]
    assert [one.leaving for one in jobs] == [(Selection(in_set=one.label),) for one in jobs]
    for job in jobs:
        document_set_jobs.finish(store.database, job, 0)
    assert not document_set_jobs.is_due(store.database)
    remove_source(store.database, "web")
    assert (seen(ann), seen(bob)) == (["desks"], ["both", "webs"])
    # Whoever sees it depends on its rules again once it has some.
    sources.add(store.database, "wiki", "folder", {"path": "/srv/wiki"})
    define(store.database, "desks", source("wiki"))
    assert seen(ann) == []
    remove_source(store.database, "wiki")
    assert seen(ann) == []


def test_a_job_is_held_by_one_worker_until_its_lease_ends(store: Store) -> None:
    define(store.database, "a", source("desk"))
    job = _claim(store)
    assert document_set_jobs.claim(store.database, OTHER, lambda _: False) is None
    taken = document_set_jobs.claim(store.database, OTHER, lambda process: process == ONE)
    assert taken is not None
    assert taken.fence == job.fence + 1
    with pytest.raises(document_set_jobs.JobLostError):
        document_set_jobs.report(store.database, job, 5)
    with pytest.raises(document_set_jobs.JobLostError):
        document_set_jobs.finish(store.database, job, 5)
    document_set_jobs.give_back(store.database, job, "too late")
    document_set_jobs.report(store.database, taken, 7, 9)
    progress = document_sets.find(store.database, "a").progress
    assert (progress.done, progress.total, progress.trouble) == (7, 9, None)


def test_what_is_changed_while_a_job_runs_stays_due(store: Store) -> None:
    define(store.database, "a", source("desk"), folder("web", "x"))
    job = _claim(store)
    define(store.database, "a", source("desk"), tag("k=v"))
    document_set_jobs.finish(store.database, job, 1)
    again = _claim(store)
    assert [each.tag for each in again.joining] == ["k=v"]
    assert [each.prefix for each in again.leaving] == ["web:x/"]
    document_set_jobs.finish(store.database, again, 1)
    assert document_sets.find(store.database, "a").progress.is_applied
    assert not document_set_jobs.is_due(store.database)


def test_a_job_that_failed_is_tried_again_later(store: Store) -> None:
    define(store.database, "a", source("desk"))
    hour = timedelta(hours=1)
    document_set_jobs.give_back(store.database, _claim(store), "The disk is full.", hour)
    assert not document_set_jobs.is_due(store.database)
    assert document_sets.find(store.database, "a").progress.trouble == "The disk is full."
    define(store.database, "a", source("web"))
    document_set_jobs.finish(store.database, _claim(store), 2)
    assert document_sets.find(store.database, "a").progress.trouble is None
