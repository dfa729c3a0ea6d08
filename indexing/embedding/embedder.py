"""Text to unit vectors."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from indexing.runtime.deadline import Deadline

Vectors: TypeAlias = NDArray[np.float32]
"""Shape (texts, dimension); every row has length 1."""
Vector: TypeAlias = NDArray[np.float32]
"""Shape (dimension,), of length 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderIdentity:
    """What makes vectors comparable; recorded with an index, which refuses any other."""

    model: str
    version: str
    """Of the weights: a hash, or what a remote endpoint calls itself."""
    precision: str = field(compare=False)
    """What the processor computes in; vectors of a model are compared with those of 32 bits before it is used in
    another precision, so that an index may move to a processor that has not the one it was made with."""
    dimension: int


class QueryEmbedder(Protocol):
    """What computes the vectors of sentences that are compared."""

    def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> Vectors:
        """Embed questions.

        Raises:
            DeadlineExceededError, ActionRequiredError
            TemporarilyUnavailableError: a remote model does not answer.
        """
        ...


class Embedder(QueryEmbedder, Protocol):
    @property
    def identity(self) -> EmbedderIdentity: ...

    @property
    def max_tokens(self) -> int:
        """Of one text, special tokens included; what is longer would be cut off."""
        ...

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of each text, special tokens included, nothing cut off."""
        ...

    def token_ends(self, text: str) -> Sequence[int]:
        """Return the end of each token of `text` in code points, ascending, without special tokens."""
        ...

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Embed passages. Raises TemporarilyUnavailableError (a remote model does not answer), NotConfiguredError."""
        ...
