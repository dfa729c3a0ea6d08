"""One batch of changes into the index: planned, staged and flipped, not yet settled."""

from dataclasses import replace
from pathlib import Path

from indexing.index.protocols import Written
from indexing.index.validation import Batch
from indexing.local import row_mapping, sql
from indexing.local.database import Connection, read_state, transaction, write_state
from indexing.local.staging import Amendment, Staged, Version, store, take_in
from indexing.local.write_plan import Plan, planned


def write_batch(folder: Path, connection: Connection, batch: Batch) -> Written:
    """Only for who holds the writer's lock, and after `repair`."""
    plan = planned(connection, batch)
    staged = store(connection, plan)
    take_in(folder, connection, staged)
    flip(connection, plan, staged)
    return plan.written


def flip(connection: Connection, plan: Plan, staged: Staged) -> None:
    """What every reader sees from here on, in one transaction."""
    with transaction(connection):
        counter = _count(connection, plan, staged)
        connection.executemany(
            sql.PUT_DOCUMENT, (_document_row(version, counter) for version in staged.versions)
        )
        connection.executemany(sql.USE_ORDINAL, ((version.ordinal,) for version in staged.versions))
        connection.executemany(
            sql.AMEND_DOCUMENT, (_amended(amendment, counter) for amendment in staged.amendments)
        )
        for held in plan.deleted:
            connection.execute(sql.DELETE_DOCUMENT, (held.ordinal,))
            connection.execute(sql.ADD_TOMBSTONE, (held.ordinal, counter))
        _note(connection, plan, staged)


def _count(connection: Connection, plan: Plan, staged: Staged) -> int:
    """Write the state that follows; returns its counter."""
    state = read_state(connection)
    added = sum(version.count for version in staged.versions)
    outdated = [held for _, held in plan.replaced if held] + plan.deleted
    following = replace(
        state,
        slots=state.slots + added,
        chunks=state.chunks + added - sum(held.count for held in outdated),
    )
    return write_state(connection, following).counter


def _note(connection: Connection, plan: Plan, staged: Staged) -> None:
    """Into the outbox: the old versions, and what the full-text index knows by labels it has no more."""
    connection.executemany(sql.CLEAR_OUTBOX, ((version.first_row,) for version in staged.versions))
    outdated = [held for _, held in plan.replaced if held] + plan.deleted
    outdated += [a.held for a in staged.amendments if a.changes_labels]
    connection.executemany(
        sql.ADD_OUTBOX, ((held.first_row, held.count) for held in outdated if held.count)
    )


def _document_row(version: Version, counter: int) -> row_mapping.Row:
    change, said = version.prepared.change, version.said
    return (
        version.ordinal,
        change.document_id,
        change.generation,
        change.content_hash,
        version.first_row,
        version.count,
        version.first_slot,
        version.reader_set,
        version.label_set,
        version.source,
        version.media_type,
        version.people_set,
        said.boost,
        said.hidden,
        row_mapping.to_microseconds(said.created_at),
        row_mapping.to_microseconds(said.updated_at),
        counter,
        row_mapping.details(said),
    )


def _amended(amendment: Amendment, counter: int) -> dict[str, object]:
    return {
        "ordinal": amendment.held.ordinal,
        "reader_set": amendment.reader_set,
        "label_set": amendment.label_set,
        "boost": amendment.change.boost,
        "hidden": amendment.change.hidden,
        "details": amendment.details,
        "changed": counter,
    }
