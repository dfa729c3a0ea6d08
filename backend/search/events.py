"""What a search tells while it runs, in this order."""

from dataclasses import dataclass
from typing import TypeAlias

from backend.search.models import InferenceSection, SearchResult, VariantName
from indexing.index.protocols import Filters


@dataclass(frozen=True, slots=True)
class VariantQuery:
    name: VariantName
    text: str
    weight: float


@dataclass(frozen=True, slots=True)
class Queries:
    """The variants that are searched; told again when the model has added its own."""

    variants: tuple[VariantQuery, ...]


@dataclass(frozen=True, slots=True)
class Narrowed:
    filters: Filters


@dataclass(frozen=True, slots=True)
class FirstResults:
    """Before any call to a model has returned."""

    sections: tuple[InferenceSection, ...]


@dataclass(frozen=True, slots=True)
class FusedResults:
    """After all variants, before selection."""

    sections: tuple[InferenceSection, ...]


@dataclass(frozen=True, slots=True)
class VariantLost:
    """A model call failed or was late; its variant, or the selection, is done without."""

    step: str
    reason: str


@dataclass(frozen=True, slots=True)
class Selected:
    sections: tuple[InferenceSection, ...]


@dataclass(frozen=True, slots=True)
class SearchDone:
    result: SearchResult


SearchEvent: TypeAlias = (
    Queries | Narrowed | FirstResults | FusedResults | VariantLost | Selected | SearchDone
)
