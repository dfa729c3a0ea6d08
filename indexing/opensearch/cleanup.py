"""What is left to do of a change that readers see already, or never will.

A record that is unfinished says all of it: the versions that leave, whose chunks are deleted by their ids,
and, where none leaves, that its chunks are to be labelled as the record says. The writer of a change settles
it right after the flip; where the writer is gone, the next one does.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from opensearchpy import OpenSearch

from indexing.opensearch.bulk_actions import drop_chunks, label_chunks
from indexing.opensearch.bulk_requests import Action, Bulk
from indexing.opensearch.document_records import Documents, held_record
from indexing.opensearch.record_mapping import Columns, Held

LOOK = 10.0
"""Seconds between two looks for what was left over of documents that nobody writes."""
LEFT = 60.0
"""Seconds without a sign of life after which they are taken for left over."""
SEEN = 200
"""Records of one look."""


def settle(documents: Documents, bulk: Bulk, held: Sequence[Held]) -> None:
    """Only for who wrote these states of the records; may be repeated."""
    labelled = [each for each in held if _is_labelled(each)]
    bulk.send(chain.from_iterable(map(_cleaning, held)))
    overtaken = {each.record.id for each in documents.finish(held)}
    label_again(documents, bulk, [each for each in labelled if each.record.id in overtaken])


def take_over(documents: Documents, bulk: Bulk, held: Sequence[Held]) -> None:
    """Settle what others left unfinished. One who is only slow finds at its next step that it lost."""
    claimed = documents.put([(each.record, each) for each in held])
    settle(documents, bulk, [each for each in claimed if each])


def _cleaning(held: Held) -> Iterator[Action]:
    record = held.record
    for version in record.leaving:
        yield from drop_chunks(record, version)
    if _is_labelled(held):
        yield from label_chunks(record, Columns.of(record))


def _is_labelled(held: Held) -> bool:
    return held.record.state == "document" and not held.record.leaving


def label_again(documents: Documents, bulk: Bulk, overtaken: Sequence[Held]) -> None:
    """Two that label the same chunks may end in any order; whoever is last labels by the newest record."""
    while overtaken:
        now = documents.read(each.record.id for each in overtaken)
        wanted = [each for each in now.values() if each.record.state == "document"]
        bulk.send(
            chain.from_iterable(
                label_chunks(each.record, Columns.of(each.record)) for each in wanted
            )
        )
        after = documents.read(each.record.id for each in wanted)
        overtaken = [each for each in wanted if after.get(each.record.id) not in (each, None)]


@dataclass(frozen=True, slots=True)
class _Sight:
    sequence: int
    since: float


@dataclass(frozen=True, slots=True)
class Patience:
    """Tells a record whose writer is at work from one whose writer is gone: only the former changes."""

    grace: float
    """Seconds without a change after which a writer is taken for gone."""
    _sights: dict[str, _Sight] = field(default_factory=dict)
    _losses: dict[str, int] = field(default_factory=dict)

    def is_abandoned(self, held: Held) -> bool:
        """Whether the record has not changed for so long that it may be taken over."""
        name = held.record.id
        sight = self._sights.get(name)
        if sight is None or sight.sequence != held.sequence:
            self._sights[name] = _Sight(held.sequence, time.monotonic())
            return False
        # Two whose writes take longer than this would take over from each other forever.
        grace = self.grace * float(2 ** self._losses.get(name, 0))
        return time.monotonic() - sight.since >= grace

    def lost(self, names: Iterable[str]) -> None:
        """Another writer took these over while they were written."""
        for name in names:
            self._losses[name] = self._losses.get(name, 0) + 1


class Leftovers:
    """Unfinished records of documents that nobody writes now; looked for between batches."""

    def __init__(self, client: OpenSearch, index: str, grace: float = LEFT) -> None:
        self._client = client
        self._index = index
        self._patience = Patience(grace)
        self._looked = -LOOK

    def settle(self, documents: Documents, bulk: Bulk) -> None:
        """Settle those that have not changed for long; at most one look in a while."""
        if time.monotonic() - self._looked < LOOK:
            return
        self._looked = time.monotonic()
        found = bulk.patiently(self._found)
        if found:
            # The search sees what was refreshed; what is true is read.
            now = documents.read(each.record.id for each in found).values()
            left = [each for each in now if each.record.unfinished]
            take_over(documents, bulk, [e for e in left if self._patience.is_abandoned(e)])

    def _found(self) -> list[Held]:
        body = {
            "query": {"term": {"unfinished": True}},
            "size": SEEN,
            "seq_no_primary_term": True,
        }
        answer = self._client.search(body=body, index=self._index)
        return [held_record(hit) for hit in answer["hits"]["hits"]]
