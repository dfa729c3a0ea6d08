"""The local index: how chunks are kept and found on one machine, with nothing to install but Python."""

from indexing.local.open_index import open_index, open_keeper
from indexing.local.searcher import EmbeddedIndex
from indexing.local.versions import EmbeddedEditions
from indexing.local.writer import EmbeddedKeeper

__all__ = ["EmbeddedEditions", "EmbeddedIndex", "EmbeddedKeeper", "open_index", "open_keeper"]
