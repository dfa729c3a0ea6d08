"""The index of one machine: SQLite, tantivy and memory-mapped vectors."""

from indexing.local.searcher import LocalIndex
from indexing.local.versions import LocalIndexVersions, open_index, open_writer
from indexing.local.writer import LocalIndexWriter

__all__ = [
    "LocalIndex",
    "LocalIndexVersions",
    "LocalIndexWriter",
    "open_index",
    "open_writer",
]
