"""An index copied to another, with real indexes on both sides."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from connectors.access import NOBODY, Readers
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.chunking.chunk import Chunk, ChunkRange
from indexing.index.protocols import (
    Amend,
    Delete,
    Facets,
    Filters,
    Found,
    Index,
    IndexQuery,
    Replace,
)
from indexing.index.spelling import Corrections, SpellingQuery
from indexing.local import LocalIndex, LocalIndexWriter, open_index, open_writer
from indexing.rebuild.copy_index import (
    Comparison,
    CopyEndpoint,
    CopyEvent,
    CopyProgress,
    CopyResult,
    compare_indexes,
    copy_index,
)
from indexing.rebuild.events import KeepAlive, WaitingForSync
from indexing.runtime.deadline import Deadline
from tests.support.chunks import IDENTITY, document, vectors

WORDS = ("apples", "pears", "plums", "cherries", "quinces", "medlars", "figs", "dates")


def nothing() -> None:
    """Nothing happens."""


@dataclass
class Two:
    """Two indexes, and how often the copy was made the active one."""

    folder: Path
    switched: int = 0
    busy: list[str] = field(default_factory=list)

    @property
    def source(self) -> LocalIndexWriter:
        return open_writer(self.folder / "source", IDENTITY)

    @property
    def target(self) -> LocalIndexWriter:
        return open_writer(self.folder / "target", IDENTITY)

    def index(self, name: str) -> LocalIndex:
        return open_index(self.folder / name, IDENTITY)

    def place(self, name: str) -> CopyEndpoint:
        writer = open_writer(self.folder / name, IDENTITY)
        return CopyEndpoint(writer, lambda: self.index(name))

    @contextmanager
    def pause_syncs(self) -> Iterator[KeepAlive]:
        if self.busy:
            raise TemporarilyUnavailableError(self.busy.pop(), retry_after=timedelta(seconds=5))
        yield nothing

    def switch(self) -> None:
        self.switched += 1

    def moving(self) -> Iterator[CopyEvent]:
        return copy_index(self.place("source"), self.place("target"), self.pause_syncs, self.switch)

    def moved(self) -> CopyResult:
        *_, last = self.moving()
        assert isinstance(last, CopyResult)
        return last

    def are_alike(self) -> bool:
        pairs = zip(self.source.export(), self.target.export(), strict=True)
        return all(_same(one, other) for one, other in pairs)


@pytest.fixture
def two(tmp_path: Path) -> Two:
    return Two(tmp_path)


def _same(one: Replace, other: Replace) -> bool:
    alike = one.chunks == other.chunks and np.array_equal(one.vectors, other.vectors)
    return alike and _version(one) == _version(other)


def _version(of: Replace) -> tuple[str, int, str]:
    return of.document_id, of.generation, of.content_hash


def orchard(count: int, **fields: Any) -> Iterator[Replace]:
    """Documents of three chunks, with words that several of them share."""
    for n in range(count):
        texts = [f"{WORDS[n % 8]} {WORDS[(n // 8 + part) % 8]} tree {n}" for part in range(3)]
        yield document(f"{n:04}", *texts, **fields)


def test_an_index_is_copied_as_it_is(two: Two) -> None:
    two.source.write(orchard(60, boost=1.5, sets=frozenset({"fruit"})))
    two.source.write([document("secret", "only figs", readers=["group:hr"])])
    two.source.write([document("hidden", "no dates", hidden=True), document("nobody", "x")])
    two.source.write([Amend(document_id="nobody", access=NOBODY)])
    done = two.moved()
    assert two.are_alike()
    assert (done.documents, done.deleted, two.switched) == (63, 0, 1)
    assert (done.comparison.documents, done.comparison.chunks) == (63, 183)
    assert (done.comparison.words, done.comparison.vectors) == (1.0, 1.0)
    assert done.comparison.sampled >= 50


def test_an_empty_index_is_copied_too(two: Two) -> None:
    two.target.write([document("left", "over")])
    done = two.moved()
    assert (done.documents, done.deleted) == (0, 1)
    comparison = Comparison(documents=0, chunks=0, sampled=0, words=1.0, vectors=1.0)
    assert done.comparison == comparison
    assert list(two.target.scan()) == []


@pytest.mark.soak("slow")
def test_what_was_stopped_goes_on_and_copies_nothing_twice(two: Two) -> None:
    two.source.write(orchard(2_000))  # 6,000 chunks: several batches
    steps = two.moving()
    copied = 0
    for step in steps:
        assert isinstance(step, CopyProgress)
        assert step.total == 2_000
        if copied := step.documents:
            break
    steps.close()  # type: ignore[attr-defined]
    assert 0 < copied < 2_000
    assert two.switched == 0
    assert two.moved().documents == 2_000 - copied
    assert two.moved().documents == 0
    assert two.are_alike()


def test_a_second_copy_brings_only_what_changed(two: Two) -> None:
    two.source.write(orchard(100))
    two.moved()
    two.source.write(
        [
            document("0000", "changed", generation=2),
            document("0050", "changed", generation=2),
            document("0051", "changed", generation=2),
            document("0099", "changed", generation=2),
            document("0100", "new"),
            Amend(document_id="0020", access=NOBODY),
            Delete("0030"),
        ]
    )
    done = two.moved()
    assert (done.documents, done.deleted) == (6, 1)
    assert two.are_alike()


def test_a_version_that_the_target_takes_for_older_is_brought_all_the_same(two: Two) -> None:
    """A document that was deleted and created again starts with generation 1."""
    two.target.write([document("a", "long ago", generation=9), document("b", "gone")])
    two.source.write([document("a", "now", generation=1)])
    done = two.moved()
    assert (done.documents, done.deleted) == (1, 1)
    assert two.are_alike()


def test_a_sync_that_goes_on_is_waited_for(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("indexing.rebuild.events.RETRY_SECONDS", 0.01)
    two.busy = ["A sync of 'desk' is going on."] * 2
    steps = list(two.moving())
    assert steps[:2] == [WaitingForSync("A sync of 'desk' is going on.")] * 2
    assert two.switched == 1


@dataclass
class Forgetful:
    """An index that returns wrong results for words."""

    inner: Index

    def find(self, queries: Sequence[IndexQuery], readers: Readers, deadline: Deadline) -> Found:
        asked = [replace(each, text="figs") if each.text else each for each in queries]
        return self.inner.find(asked, readers, deadline)

    def chunks(
        self, ranges: Sequence[ChunkRange], readers: Readers, deadline: Deadline
    ) -> list[list[Chunk]]:
        return self.inner.chunks(ranges, readers, deadline)

    def facets(self, filters: Filters, readers: Readers, deadline: Deadline) -> Facets:
        return self.inner.facets(filters, readers, deadline)

    def suggest_corrections(
        self, query: SpellingQuery, readers: Readers, deadline: Deadline
    ) -> Corrections:
        return self.inner.suggest_corrections(query, readers, deadline)


def test_a_copy_that_answers_otherwise_is_not_switched_to(two: Two) -> None:
    two.source.write(orchard(60))
    source, target = two.place("source"), two.place("target")
    forgetful = CopyEndpoint(target.writer, lambda: Forgetful(target.index()))
    with pytest.raises(
        ActionRequiredError, match=r"by words and 100% by vectors.*Nothing was switched"
    ):
        list(copy_index(source, forgetful, two.pause_syncs, two.switch))
    assert two.switched == 0


def test_a_copy_with_other_contents_is_refused(two: Two) -> None:
    two.source.write(orchard(5))
    two.target.write(orchard(4))
    with pytest.raises(ActionRequiredError, match="0004 is not the same in both"):
        compare_indexes(two.place("source"), two.place("target"), nothing)


def test_which_of_equals_are_named_does_not_count(two: Two) -> None:
    """Forty chunks with one text: any ten of them are the best ten."""
    text = "this page is left blank"
    two.source.write(document(f"{n:02}", text, vectors_of=vectors([f"{n}"])) for n in range(40))
    list(two.moving())
    two.target.write([Delete(f"{n:02}") for n in range(40)])
    two.target.write(reversed(list(two.source.export())))
    comparison = compare_indexes(two.place("source"), two.place("target"), nothing)
    assert (comparison.words, comparison.vectors) == (1.0, 1.0)
