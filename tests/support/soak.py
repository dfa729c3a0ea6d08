"""Which tests run, and how deep: `make test`, or one slice of `make soak`.

A test marked `soak("SLICE")` runs in that slice alone. One marked `deep("SLICE")` runs in `make test` with small numbers
and again in the slice with those of `scaled`. What drives whole processes and servers, which is what `tests/acceptance`
and `tests/integration` hold, runs in the slice `slow` unless it is marked otherwise, and what drives a browser in the
slice `browser`; `smoke` marks those of them that run in `make test`.
"""

import os
from collections.abc import Iterable
from typing import TypeVar

import pytest

MARKERS = frozenset({"soak", "deep", "smoke"})
SLOW = "slow"
"""The slice that is run with `make test` whenever a change is checked."""
BROWSER = "browser"
SLICES = (SLOW, BROWSER, "engines", "faults", "connectors", "access", "release")
SLICE = os.environ.get("QUARRY_TEST_SOAK", "")
"""The slice that is run; empty in `make test`."""
NEWER_ENGINE = "opensearch-3"
"""In the ids of tests on the newer OpenSearch, which belong to the slice `engines`."""

_POSTGRESQL = "postgresql"
"""In the ids of tests on PostgreSQL, which belong to `make test` only where the database is what is tested."""
_OF_THE_DATABASE = (
    "tests/unit/backend/store/",
    "tests/unit/backend/sync/test_maintenance_lock.py",
    "tests/unit/backend/sync/test_document_set_updates.py",
    "tests/contract/test_ledger.py",
    "tests/acceptance/test_kill.py",
)
_BROWSER_FOLDERS = ("tests/acceptance/browser/", "tests/integration/chromium/")
_SLOW_FOLDERS = ("tests/acceptance/", "tests/integration/")

T = TypeVar("T")


def scaled(test: T, soak: T, slice_name: str) -> T:
    """Return the value for `make test`, or the deeper one in its slice."""
    return soak if slice_name == SLICE else test


def is_selected(item: pytest.Item) -> bool:
    """Return whether a test runs now."""
    only = _only_slices(item)
    if not SLICE:
        return not only
    return SLICE in only or (only <= {SLOW, BROWSER} and SLICE in _deep_slices(item))


def _only_slices(item: pytest.Item) -> set[str]:
    """Return the slices in which a test runs instead of in `make test`."""
    only = set(_slices(item, "soak"))
    if NEWER_ENGINE in item.nodeid:
        only = only - {SLOW} | {"engines"}
    if not only and _is_slow(item):
        only = {BROWSER if item.nodeid.startswith(_BROWSER_FOLDERS) else SLOW}
    return only


def _is_slow(item: pytest.Item) -> bool:
    if _POSTGRESQL in item.nodeid and not item.nodeid.startswith(_OF_THE_DATABASE):
        return True
    return item.nodeid.startswith(_SLOW_FOLDERS) and item.get_closest_marker("smoke") is None


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
