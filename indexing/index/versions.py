"""The index versions of an index: one for each embedder that it is, or is about to be, searched with.

Vectors of two models do not compare, so a change of model needs another index version of the index. It is built
beside the active one, which is searched and written to all the time, and takes its place in one step.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.embedding.embedder import EmbedderIdentity
from indexing.index.protocols import Index, IndexWriter


@dataclass(frozen=True, slots=True)
class IndexVersion:
    embedder: EmbedderIdentity
    called: str
    """The model as its owner names it: a path, a package, a name of a hub or an endpoint. It loads the
    embedder, where `embedder.model` may be a mere name; two index versions do not differ by it."""


class IndexVersionReplacedError(TemporarilyUnavailableError):
    """Another index version has taken the place of this one since it was opened; open the index again."""

    def __init__(self, now: IndexVersion | None) -> None:
        made = f"built anew with the model {now.called}" if now else "removed"
        super().__init__(
            f"The index was {made} since it was opened. Start again; a server does so by itself.",
            retry_after=timedelta(seconds=1),
        )
        self.now = now


class IndexVersions(Protocol):
    """All index versions of one index. At most one is active, at most one is being built.

    Whatever is opened here raises `IndexVersionReplacedError` from every method once its index version is gone.
    """

    def active(self) -> IndexVersion | None:
        """The one that is searched; `None` before the first."""
        ...

    def building(self) -> IndexVersion | None:
        """The one that is being built; `None` where there is none."""
        ...

    def open_index(self, index_version: IndexVersion) -> Index:
        """The active index version, for askers; where there is none, `index_version` becomes it, empty.

        Raises:
            ActionRequiredError: the active one is of another embedder (see `of_another`).
        """
        ...

    def open_writer(self, index_version: IndexVersion) -> IndexWriter:
        """The active index version, for the pipeline. As `open_index`."""
        ...

    def start_build(self, index_version: IndexVersion) -> IndexWriter:
        """The index version that is being built, for who builds it: made if there is none, else gone on with.

        It may be of the same embedder as the active one, to build that anew.

        Raises:
            ActionRequiredError: one for another embedder is being built.
        """
        ...

    def open_build_writer(self) -> IndexWriter | None:
        """The index version that is being built, for who looks how far it is; `None` where there is none."""
        ...

    def open_build_index(self) -> Index:
        """The index version that is being built, to be looked at before the switch.

        Raises:
            ValueError: none is being built.
        """
        ...

    def activate(self, index_version: IndexVersion) -> None:
        """Make the index version that is being built the active one, in one step; the former is removed.

        May be repeated: where `index_version` is active and none is being built, only what a crash left over
        is removed.

        Raises:
            ValueError: `index_version` is neither being built nor active.
        """
        ...

    def discard_build(self) -> None:
        """Remove the index version that is being built, if there is one."""
        ...


def of_another(active: IndexVersion, asked: IndexVersion) -> ActionRequiredError:
    """What to tell where the active index version is not of the embedder that is set."""
    return ActionRequiredError(
        f"The index was made with {told(active.embedder)}; set is {told(asked.embedder)}. Their vectors do"
        f" not compare. To change over, while the search goes on: quarry reindex --model {asked.called}."
        f" To stay with the former one, set QUARRY_EMBEDDING_MODEL={active.called} or nothing."
    )


def already_building(building: IndexVersion, asked: IndexVersion) -> ActionRequiredError:
    return ActionRequiredError(
        f"An index for {told(building.embedder)} is being built; that for {told(asked.embedder)} has to"
        " wait. Go on with it: quarry reindex. Or give it up: quarry reindex --abandon."
    )


def told(identity: EmbedderIdentity) -> str:
    """In words, as much as tells two apart."""
    return (
        f"the model {identity.model} ({identity.version}, {identity.precision},"
        f" {identity.dimension} dimensions)"
    )
