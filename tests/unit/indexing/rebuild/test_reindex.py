"""A new index version from the kept sections, while sources change what the ledger says."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from connectors.access import EVERYBODY, NOBODY, Access
from connectors.document import Document, Section
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.chunking.chunker import chunk_document
from indexing.embedding.embedder import Vectors
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.index.protocols import Amend, Delete, IndexChange, Replace
from indexing.ingestion.ledger import AccessAmended, ContentLost, Removed, Stored
from indexing.ingestion.pipeline import find_differences
from indexing.rebuild import reindex
from indexing.rebuild.events import (
    KeepAlive,
    MissingDocument,
    RateLimit,
    RebuildEvent,
    RebuildProgress,
    RebuildResult,
    WaitingForSync,
)
from indexing.rebuild.reindex import CONTENT_GONE, Reindexer
from tests.support.ledger import MemoryLedger
from tests.support.memory_index_writer import MemoryIndexWriter

HR = Access.to(["group:hr"])


@dataclass(frozen=True)
class NewModel(HashingEmbedder):
    """Accepts shorter texts than the old model, so that there are more chunks; refuses the word `poison`."""

    dimension: int = 64
    max_tokens: int = 40
    texts: list[str] = field(default_factory=list)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        if any("poison" in text for text in texts):
            raise ValueError("the model refuses poison")
        self.texts.extend(texts)
        return super().embed_passages(texts)


def nothing() -> None:
    """Nothing happens."""


class Setup:
    """A ledger filled with an old model, and an empty new index version."""

    def __init__(self, *documents: Document) -> None:
        self.old = HashingEmbedder()
        self.new = NewModel()
        self.ledger = MemoryLedger("desk", "web")
        self.writer = MemoryIndexWriter(self.new.dimension)
        self.before: list[Callable[[], None]] = []
        """Calls to make when syncs are paused, one each time."""
        self.switched = 0
        self.kept_alive = 0
        for each in documents:
            self.store(each)

    def store(self, document: Document) -> None:
        entry = self.ledger.entries([document.id]).get(document.id)
        self.ledger.save(
            [
                Stored(
                    document=document,
                    content_hash=f"hash of {document.sections}",
                    generation=entry.generation + 1 if entry else 1,
                    chunks=len(chunk_document(document, self.old)),
                )
            ]
        )

    @contextmanager
    def pause_syncs(self) -> Iterator[KeepAlive]:
        if self.before:
            self.before.pop(0)()

        def keep_alive() -> None:
            self.kept_alive += 1

        yield keep_alive

    def switch(self) -> None:
        self.switched += 1

    def run(self, limit: RateLimit | None = None) -> Iterator[RebuildEvent]:
        run = Reindexer(self.new, self.writer, self.ledger, limit)
        return run.run(self.pause_syncs, self.switch)

    def run_to_end(self) -> RebuildResult:
        *_, last = self.run()
        assert isinstance(last, RebuildResult)
        assert self.switched == 1
        return last

    def written(self, kind: type[IndexChange]) -> list[str]:
        return [change.document_id for change in self.writer.log if type(change) is kind]

    def agrees(self) -> bool:
        """Whether the new index version agrees with the ledger, including texts and numbers of chunks."""
        held = self.writer.held
        for each, line in self.ledger.rows.items():
            chunks = tuple(chunk_document(line.document, self.new))
            if chunks and (each not in held or held[each].chunks != chunks):
                return False
        entries = [each for source in ("desk", "web") for each in self.ledger.scan(source, "")]
        return not list(find_differences(iter(entries), self.writer.scan()))


def document(name: str, text: str = "Leave is 25 days.", access: Access = EVERYBODY) -> Document:
    return Document(
        id=name,
        source=name.partition(":")[0],
        title=name,
        sections=(Section(text=text),) if text else (),
        link=f"https://desk.test/{name}",
        media_type="text/plain",
        access=access,
        version=text,
    )


LONG = "The manager approves all travel beyond the border. " * 12


def test_all_documents_of_all_sources_are_cut_and_embedded_anew() -> None:
    setup = Setup(document("desk:a", LONG), document("web:b", access=HR), document("desk:c", ""))
    before = setup.ledger.rows["desk:a"]
    done = setup.run_to_end()
    assert setup.agrees()
    after = setup.writer.held["desk:a"]
    assert len(after.chunks) > before.chunks
    assert (after.generation, after.content_hash) == (1, before.content_hash)
    assert after.vectors.shape == (len(after.chunks), 64)
    assert setup.writer.held["web:b"].chunks[0].access == HR
    assert (done.documents, done.deleted, done.amended, done.missing) == (2, 0, 0, ())
    chunks = [chunk for one in setup.writer.held.values() for chunk in one.chunks]
    assert done.chunks == len(chunks)
    assert sorted(setup.new.texts) == sorted({chunk.embedded_text for chunk in chunks})


def test_of_the_ledger_only_the_numbers_of_chunks_change() -> None:
    setup = Setup(document("desk:a", LONG), document("desk:b"))
    long, short = setup.ledger.rows["desk:a"], setup.ledger.rows["desk:b"]
    saves = setup.ledger.saves
    setup.run_to_end()
    chunks = len(setup.writer.held["desk:a"].chunks)
    assert setup.ledger.rows == {"desk:a": replace(long, chunks=chunks), "desk:b": short}
    assert setup.ledger.saves == saves + 1


def test_the_ledger_is_written_only_after_the_switch() -> None:
    """Until then it describes the old index version, in which a repair would otherwise find too few chunks."""
    setup = Setup(document("desk:a", LONG))
    before = setup.ledger.rows["desk:a"].chunks
    seen: list[int] = []
    run = Reindexer(setup.new, setup.writer, setup.ledger)
    for _ in run.run(setup.pause_syncs, lambda: seen.append(setup.ledger.rows["desk:a"].chunks)):
        pass
    assert seen == [before]
    assert setup.ledger.rows["desk:a"].chunks > before


def test_an_empty_index_version_is_activated_too() -> None:
    assert Setup().run_to_end().documents == 0


def test_what_was_stopped_goes_on_with_what_is_left() -> None:
    setup = Setup(*(document(f"desk:{n:04}", f"note {n}") for n in range(300)))
    steps = setup.run(RateLimit(chunks_per_second=1e6))
    while not setup.writer.held:
        next(steps)
    steps.close()  # type: ignore[attr-defined]
    held = len(setup.writer.held)
    assert 0 < held <= 300
    done = setup.run_to_end()
    assert done.documents == 300 - held
    assert len(setup.new.texts) == 300
    assert setup.agrees()


def test_changes_before_the_sync_pause_are_taken_over() -> None:
    setup = Setup(
        document("desk:same"),
        document("desk:edited"),
        document("desk:deleted"),
        document("desk:narrowed"),
        document("desk:again"),
    )
    setup.store(document("desk:again", "second"))  # generation 2

    def change() -> None:
        assert len(setup.writer.held) == 5
        setup.store(document("desk:edited", LONG))
        setup.store(document("desk:new", "brand new"))
        setup.ledger.save([Removed("desk:deleted"), AccessAmended("desk:narrowed", HR)])
        setup.ledger.save([Removed("desk:again")])
        setup.store(document("desk:again", "third"))  # generation 1 once more

    setup.before = [change]
    done = setup.run_to_end()
    assert setup.agrees()
    assert setup.written(Amend) == ["desk:narrowed"]
    assert set(setup.written(Delete)) == {"desk:deleted", "desk:again"}
    assert setup.written(Replace).count("desk:same") == 1
    assert (done.amended, done.deleted) == (1, 2)
    assert setup.kept_alive > 0


def test_many_changes_are_taken_over_while_sources_may_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reindex, "MAX_LAST_DIFFERENCES", 5)
    setup = Setup(*(document(f"desk:{n}") for n in range(20)))
    standing: list[int] = []

    def change_many() -> None:
        standing.append(len(setup.writer.log))
        for n in range(20):
            setup.store(document(f"desk:{n}", f"changed {n}"))

    setup.before = [change_many, lambda: standing.append(len(setup.writer.log))]
    setup.run_to_end()
    assert standing == [20, 40]  # the second time they stood still, all had been written
    assert setup.agrees()


def test_a_source_that_is_synced_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("indexing.rebuild.events.RETRY_SECONDS", 0.01)
    setup = Setup(document("desk:a"))

    def busy() -> None:
        raise TemporarilyUnavailableError(
            "A sync of 'desk' is going on.", retry_after=timedelta(seconds=5)
        )

    setup.before = [busy, busy]
    steps = list(setup.run())
    events = [step for step in steps if isinstance(step, WaitingForSync)]
    assert events == [WaitingForSync("A sync of 'desk' is going on.")] * 2
    assert isinstance(steps[-1], RebuildResult)
    assert setup.switched == 1


def test_nothing_is_switched_after_the_sync_pause_was_lost() -> None:
    setup = Setup(document("desk:a"))
    setup.before = [lambda: setup.store(document("desk:b"))]

    def over() -> None:
        raise TemporarilyUnavailableError(
            "Another process has taken over.", retry_after=timedelta(seconds=5)
        )

    @contextmanager
    def lost() -> Iterator[KeepAlive]:
        with setup.pause_syncs():
            yield over

    with pytest.raises(TemporarilyUnavailableError, match="taken over"):
        list(Reindexer(setup.new, setup.writer, setup.ledger).run(lost, setup.switch))
    assert setup.switched == 0
    assert "desk:b" not in setup.writer.held
    assert setup.run_to_end().documents == 1


def test_what_cannot_be_had_is_named_and_stops_nothing() -> None:
    setup = Setup(*(document(f"desk:{name}") for name in ("a", "b", "c", "d", "e")))
    setup.store(document("desk:poisoned", "this is poison"))
    setup.ledger.lose_content("desk:b")
    setup.ledger.save([ContentLost("desk:c")])
    done = setup.run_to_end()
    refused = "it could not be indexed: the model refuses poison"
    assert done.missing == (
        MissingDocument("desk:b", CONTENT_GONE),
        MissingDocument("desk:c", CONTENT_GONE),
        MissingDocument("desk:poisoned", refused),
    )
    assert set(setup.writer.held) == {"desk:a", "desk:d", "desk:e"}
    assert done.documents == 3


def test_a_version_that_fails_does_not_leave_the_one_before_it() -> None:
    """Otherwise it might be shown to users who may no longer read it."""
    setup = Setup(document("desk:a"), document("desk:b"), document("desk:c"))
    setup.before = [lambda: setup.store(document("desk:b", "now poison", access=HR))]
    done = setup.run_to_end()
    assert [each.document_id for each in done.missing] == ["desk:b"]
    assert set(setup.writer.held) == {"desk:a", "desk:c"}


def test_what_failed_and_was_mended_is_not_missing() -> None:
    setup = Setup(document("desk:a"), document("desk:b", "poison"))
    setup.before = [lambda: setup.store(document("desk:b", "mended"))]
    assert setup.run_to_end().missing == ()
    assert setup.agrees()
    setup = Setup(document("desk:a"), document("desk:b", "poison"))
    setup.before = [lambda: setup.ledger.save([Removed("desk:b")])]
    assert setup.run_to_end().missing == ()


def test_an_index_version_that_would_lack_most_documents_is_not_activated() -> None:
    setup = Setup(document("desk:a"), document("desk:b"), document("desk:c"))
    for each in ("desk:a", "desk:b"):
        setup.ledger.lose_content(each)
    with pytest.raises(ActionRequiredError, match="2 of 3 documents cannot be indexed again"):
        setup.run_to_end()
    assert setup.switched == 0


def test_what_was_gone_and_came_back_as_it_was_is_not_missing() -> None:
    setup = Setup(document("desk:a"), document("desk:b"), document("desk:c"))
    setup.ledger.lose_content("desk:a")

    def read_again() -> None:
        setup.ledger.save([Removed("desk:a")])
        setup.store(document("desk:a"))

    setup.before = [read_again]
    assert setup.run_to_end().missing == ()
    assert setup.agrees()


def test_what_is_damaged_is_missing() -> None:
    setup = Setup(document("desk:a"), document("desk:b"), document("desk:c"))
    setup.ledger.damage_content("desk:a")
    (missing,) = setup.run_to_end().missing
    assert missing.document_id == "desk:a"


def test_progress_counts_towards_all_documents() -> None:
    setup = Setup(*(document(f"desk:{n:03}", f"note {n}") for n in range(200)))
    events = [step for step in setup.run() if isinstance(step, RebuildProgress)]
    assert (events[0].documents, events[0].total, events[0].seconds_left) == (0, 200, None)
    assert (events[-1].documents, events[-1].chunks, events[-1].seconds_left) == (200, 200, 0)
    assert [each.documents for each in events] == sorted(each.documents for each in events)


def test_a_rate_limit_holds_on_average() -> None:
    limit = RateLimit(chunks_per_second=10.0)
    assert limit.seconds_to_wait(chunks=50, seconds=2.0) == 3.0  # 50 chunks at 10 a second take 5 s
    assert limit.seconds_to_wait(chunks=50, seconds=6.0) == 0.0
    assert limit.batch_chunks == 10.0
    assert RateLimit(chunks_per_second=0.1).batch_chunks == 1.0
    assert RateLimit().seconds_to_wait(10**6, 1.0) == 0.0


def test_a_throttled_run_takes_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(reindex.time, "sleep", pauses.append)  # type: ignore[attr-defined]
    setup = Setup(*(document(f"desk:{n:02}", LONG) for n in range(20)))
    *_, done = setup.run(RateLimit(chunks_per_second=2.0))
    assert isinstance(done, RebuildResult)
    assert max(pauses) == pytest.approx(done.chunks / 2.0, abs=2.0)
    assert sum(pause > 0 for pause in pauses) >= 4  # a little at a time, not all at once


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["edit", "delete", "narrow", "widen", "lose"]),
        st.sampled_from(["desk:a", "desk:b", "web:c", "web:d"]),
        st.integers(0, 3),
    ),
    max_size=8,
)


def _change(setup: Setup, kind: str, name: str, number: int) -> None:
    match kind:
        case "edit":
            setup.store(document(name, f"text {number} " * (1 + 20 * number)))
        case "delete":
            setup.ledger.save([Removed(name)])
        case "narrow":
            setup.ledger.save([AccessAmended(name, NOBODY)])
        case "widen":
            setup.ledger.save([AccessAmended(name, EVERYBODY)])
        case _:
            setup.ledger.lose_content(name)


@settings(max_examples=80, deadline=None)
@given(first=STEPS, during=STEPS, late=STEPS, cut=st.integers(0, 6))
@example(
    first=[],
    during=[("edit", "desk:a", 0), ("lose", "desk:a", 0)],
    late=[("delete", "desk:a", 0), ("edit", "desk:a", 0)],
    cut=0,
)
def test_whatever_changes_and_wherever_it_stops_the_index_version_agrees_with_the_ledger(
    first: list[tuple[str, str, int]],
    during: list[tuple[str, str, int]],
    late: list[tuple[str, str, int]],
    cut: int,
) -> None:
    setup = Setup(*(document(f"desk:{n}", f"stays {n}") for n in range(9)))
    for step in first:
        _change(setup, *step)
    steps = setup.run()
    coming = iter(during)
    for _, _told in zip(range(cut), steps, strict=False):
        if change := next(coming, None):
            _change(setup, *change)
    steps.close()  # type: ignore[attr-defined]
    setup.switched = 0
    for change in coming:
        _change(setup, *change)

    def change_late() -> None:
        for change in late:
            _change(setup, *change)

    setup.before = [change_late]
    for missing in setup.run_to_end().missing:
        assert setup.ledger.rows[missing.document_id].content == "gone"
        assert missing.document_id not in setup.writer.held
        setup.ledger.save([Removed(missing.document_id)])
    assert setup.agrees()
