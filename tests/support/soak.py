"""Which tests run, and how deep: `make test`, or one slice of `make soak`.

A test marked `soak("SLICE")` runs in that slice alone. One marked `deep("SLICE")` runs in
`make test` with small numbers and again in the slice with those of `scaled`.
"""

import os
from collections.abc import Iterable
from typing import TypeVar

import pytest

MARKERS = frozenset({"soak", "deep"})
SLICES = ("engines", "connectors", "faults", "release")
SLICE = os.environ.get("QUARRY_TEST_SOAK", "")
"""The slice that is run; empty in `make test`."""
NEWER_ENGINE = "opensearch-3"
"""In the ids of tests on the newer OpenSearch, which belong to the slice `engines`."""

T = TypeVar("T")


def scaled(test: T, soak: T, slice_name: str) -> T:
    """Return the value for `make test`, or the deeper one in its slice."""
    return soak if slice_name == SLICE else test


def is_selected(item: pytest.Item) -> bool:
    """Return whether a test runs now."""
    only = set(_slices(item, "soak"))
    if NEWER_ENGINE in item.nodeid:
        only.add("engines")
    if not SLICE:
        return not only
    return SLICE in only or (not only and SLICE in _deep_slices(item))


def _deep_slices(item: pytest.Item) -> set[str]:
    slices = set(_slices(item, "deep"))
    test = getattr(item, "obj", None)
    if getattr(test, "is_hypothesis_test", False):
        slices.add("engines")
    return slices


def _slices(item: pytest.Item, marker: str) -> Iterable[str]:
    for mark in item.iter_markers(marker):
        (name,) = mark.args
        if name not in SLICES:
            raise ValueError(f"{item.nodeid}: there is no slice {name!r}; there are: {SLICES}")
        yield name
