"""What a batch of changes comes to, given what the index holds."""

from collections.abc import Sequence
from dataclasses import dataclass

from indexing.index.protocols import Amend, Delete, Written
from indexing.index.validation import Batch, PreparedReplace, is_stale
from indexing.local import sql
from indexing.local.database import Connection, to_json_list


@dataclass(frozen=True, slots=True)
class Held:
    """A document as the index has it before the batch."""

    ordinal: int
    generation: int
    first_row: int
    count: int
    hidden: int
    details: str
    readers: bytes
    """Reader labels, packed."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What of a batch is to be done."""

    replaced: list[tuple[PreparedReplace, Held | None]]
    deleted: list[Held]
    amended: list[tuple[Amend, Held]]
    written: Written


def planned(connection: Connection, batch: Batch) -> Plan:
    """The plan for a batch in which no document stands twice."""
    held = _held(connection, [item.document_id for item in batch])
    plan = Plan([], [], [], Written())
    stale, missing = [], []
    for item in batch:
        known = held.get(item.document_id)
        if known is not None and is_stale(item, known.generation):
            stale.append(item.document_id)
        elif isinstance(item, PreparedReplace):
            plan.replaced.append((item, known))
        elif known is None:
            missing.append(item.document_id)
        elif isinstance(item, Delete):
            plan.deleted.append(known)
        else:
            plan.amended.append((item, known))
    return Plan(plan.replaced, plan.deleted, plan.amended, _written(plan, stale, missing))


def _held(connection: Connection, ids: Sequence[str]) -> dict[str, Held]:
    return {row[0]: Held(*row[1:]) for row in connection.execute(sql.HELD, (to_json_list(ids),))}


def _written(plan: Plan, stale: Sequence[str], missing: Sequence[str]) -> Written:
    return Written(
        replaced=len(plan.replaced),
        chunks=sum(len(item.words) for item, _ in plan.replaced),
        deleted=len(plan.deleted),
        amended=len(plan.amended),
        stale=tuple(stale),
        missing=tuple(missing),
    )
