"""What a batch of changes comes to, given what the cluster holds; pure.

Every change of a document is at most three states of its record, each written only if the former is still
there:

1. *announced*: as it was, but it names the version that is about to be written; readers see no difference;
2. *flipped*: what readers see from here on; it names the version that is to go;
3. *finished*: nothing is left to do.

What touches no chunks is flipped and finished in one.
"""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from indexing.index.protocols import Amend, Delete, Written
from indexing.index.validation import PreparedChange, PreparedReplace, is_stale
from indexing.opensearch.record_mapping import (
    NO_VERSION,
    Columns,
    DocumentRecord,
    Held,
    Version,
    record_of,
)


@dataclass(frozen=True, slots=True)
class Work:
    """A change that is to be made."""

    item: PreparedChange
    held: Held | None
    """The record before; `None`: there is none."""
    announced: DocumentRecord | None
    """`None`: nothing has to be written before the flip."""
    flipped: DocumentRecord

    @property
    def name(self) -> str:
        return self.flipped.id


@dataclass(frozen=True, slots=True)
class Plan:
    works: Sequence[Work]
    stale: tuple[str, ...]
    missing: tuple[str, ...]


def planned(batch: Iterable[PreparedChange], held: Mapping[str, Held]) -> Plan:
    """For a batch in which no document stands twice, and of which none is unfinished."""
    works: list[Work] = []
    stale: list[str] = []
    missing: list[str] = []
    for item in batch:
        known = held.get(item.document_id)
        if known and is_stale(item, known.record.generation):
            stale.append(item.document_id)
        elif isinstance(item, PreparedReplace):
            works.append(_replacement(item, known))
        elif known is None:
            missing.append(item.document_id)
        else:
            works.append(
                _removal(item, known) if isinstance(item, Delete) else _amendment(item, known)
            )
    return Plan(works, tuple(stale), tuple(missing))


def told(works: Sequence[Work], plan: Plan) -> Written:
    """What was done when `works` of a plan are."""
    items = [work.item for work in works]
    return Written(
        replaced=sum(isinstance(item, PreparedReplace) for item in items),
        chunks=sum(len(item.words) for item in items if isinstance(item, PreparedReplace)),
        deleted=sum(isinstance(item, Delete) for item in items),
        amended=sum(isinstance(item, Amend) for item in items),
        stale=plan.stale,
        missing=plan.missing,
    )


def widened(before: DocumentRecord, after: DocumentRecord) -> Columns:
    """By which whoever finds the document before or after finds its chunks."""
    old, new = Columns.of(before), Columns.of(after)
    return Columns(old.readers | new.readers, old.sets | new.sets, new.boost)


def _replacement(item: PreparedReplace, held: Held | None) -> Work:
    # By chance, so that no two attempts ever write the same chunks.
    version = Version(secrets.token_hex(6), len(item.words))
    new = record_of(item, version)
    old = (held.record.version,) if held and held.record.version.chunks else ()
    before = held.record if held else replace(new, state="coming", version=NO_VERSION)
    announced = replace(before, leaving=(version,), unfinished=True)
    flipped = replace(new, leaving=old, unfinished=bool(old))
    return Work(item, held, announced if version.chunks else None, flipped)


def _removal(change: Delete, held: Held) -> Work:
    before = held.record
    gone = replace(before, state="gone", leaving=(before.version,), unfinished=True)
    return Work(change, held, None, gone)


def _amendment(change: Amend, held: Held) -> Work:
    before = held.record
    after = _amended(before, change)
    labels = Columns.of(before) != Columns.of(after) and before.version.chunks > 0
    wider = (before.shown_to, before.sets) != (
        before.shown_to | after.shown_to,
        before.sets | after.sets,
    )
    announced = replace(before, unfinished=True) if labels and wider else None
    return Work(change, held, announced, replace(after, unfinished=labels))


def _amended(record: DocumentRecord, change: Amend) -> DocumentRecord:
    said = {
        name: value
        for name in ("access", "sets", "boost", "hidden")
        if (value := getattr(change, name)) is not None
    }
    return replace(record, **said)
