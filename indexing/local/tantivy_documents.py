"""What the full-text index is to hold, read from the tables."""

from collections.abc import Iterator

from indexing.local import sql
from indexing.local.database import Connection
from indexing.local.label_ids import unpacked
from indexing.local.row_mapping import Row
from indexing.local.tantivy_index import Entry
from indexing.text import tokenizer


def entries_of(connection: Connection, version: int) -> Iterator[Entry]:
    return map(_entry, connection.execute(sql.ENTRIES_OF_VERSION, (version,)))


def all_entries(connection: Connection) -> Iterator[Entry]:
    return map(_entry, connection.execute(sql.ALL_ENTRIES))


def _entry(row: Row) -> Entry:
    number, ordinal, version, hidden, source, media_type, created, updated = row[:8]
    words, text, label_set, people_set, reader_set = row[8:]
    return Entry(
        row=number,
        document=ordinal,
        version=version,
        words=words,
        plain=" ".join(tokenizer.plain_words(text)),
        labels=[
            source,
            media_type,
            *unpacked(label_set),
            *unpacked(people_set),
            *readers_shown(hidden, reader_set),
        ],
        created=created,
        updated=updated,
    )


def readers_shown(hidden: int, reader_set: bytes) -> list[int]:
    """Whoever looks for a hidden document by its readers finds none."""
    return [] if hidden else unpacked(reader_set)
