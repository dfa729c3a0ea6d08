"""The events of a search while it runs, in the order in which they come."""

from dataclasses import dataclass
from typing import TypeAlias

from backend.search.models import InferenceSection, InferredFilter, SearchResult, VariantQuery
from indexing.index.protocols import Filters


@dataclass(frozen=True, slots=True)
class Queries:
    """The variants that are searched; sent again once the model has added its own."""

    variants: tuple[VariantQuery, ...]


@dataclass(frozen=True, slots=True)
class FiltersApplied:
    filters: Filters
    """Nothing else is searched."""
    inferred: tuple[InferredFilter, ...] = ()
    """What these accept stands first."""


@dataclass(frozen=True, slots=True)
class FirstResults:
    """Results before any call to a model has returned."""

    sections: tuple[InferenceSection, ...]


@dataclass(frozen=True, slots=True)
class FusedResults:
    """Results after all variants and before selection."""

    sections: tuple[InferenceSection, ...]


@dataclass(frozen=True, slots=True)
class StepFailed:
    """A step failed or was late; the search goes on without what it would have added."""

    step: str
    reason: str


@dataclass(frozen=True, slots=True)
class SectionsSelected:
    sections: tuple[InferenceSection, ...]


@dataclass(frozen=True, slots=True)
class SearchDone:
    result: SearchResult


SearchEvent: TypeAlias = (
    Queries
    | FiltersApplied
    | FirstResults
    | FusedResults
    | StepFailed
    | SectionsSelected
    | SearchDone
)
