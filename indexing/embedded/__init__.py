"""The local index: how chunks are kept and found on one machine, with nothing to install but Python."""

from indexing.embedded.editions import EmbeddedEditions
from indexing.embedded.keeper import EmbeddedKeeper
from indexing.embedded.opening import open_index, open_keeper
from indexing.embedded.reader import EmbeddedIndex

__all__ = ["EmbeddedEditions", "EmbeddedIndex", "EmbeddedKeeper", "open_index", "open_keeper"]
