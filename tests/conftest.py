"""No test reaches beyond this machine, and none is judged by how busy it is.

The fixture `database_url` runs a test on SQLite and on PostgreSQL, each time with a database of its own.
"""

import csv
import gc
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
import trustme
from hypothesis import Phase, settings
from pytest_socket import socket_allow_hosts
from sqlalchemy import URL, Engine, create_engine

from backend.store import database
from tests.support.databases import (
    Databases,
    PostgreSql,
    Redis,
    SharedStatements,
    copy_template_to,
    make_sqlite_engine,
    read_sqlite_template,
    shared,
    sqlite_in,
)
from tests.support.soak import MARKERS, SLICE, is_selected, scaled

EARLY = (
    "tests/unit/indexing/embedding/test_equality.py",
    "tests/unit/backend/api/test_protocol_leaks.py",
    "tests/contract/test_index.py",
    "tests/acceptance/test_servers_stop.py",
    "tests/acceptance/",
    "tests/contract/",
    "tests/integration/",
)
"""What takes longest, so that no process is left with it alone at the end; and first what imports torch."""
MAX_SECONDS = 5.0
"""A test of `make test` that takes longer is to be marked: `soak`, or `deep` with smaller numbers for `make test`."""

settings.register_profile("quick", deadline=None, max_examples=40)
settings.register_profile("unhurried", deadline=None)
settings.register_profile("thorough", deadline=None, max_examples=1_000)
# A mutant is noticed by the first example that fails: a smaller one is not looked for.
settings.register_profile("mutants", deadline=None, phases=(Phase.explicit, Phase.generate))
settings.load_profile(scaled("unhurried" if SLICE else "quick", "thorough", "engines"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--crowd",
        type=int,
        default=scaled(2_000, 100_000, "connectors"),
        help="items that pass through each source's memory",
    )


def pytest_collection() -> None:
    """Collect no garbage meanwhile: of a million objects, nearly all stay, and to look at them again and again takes a quarter of the time."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Leave them out of every later look for garbage, which is then for what the tests make, and look less often."""
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if not is_selected(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if is_selected(item)]
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    """Among those of one turn the order stays as it is."""
    turns = (turn for turn, begins in enumerate(EARLY) if item.nodeid.startswith(begins))
    return next(turns, len(EARLY))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the tests that took too long without a marker. A busy machine is no fault, so that none fails by it."""
    durations: defaultdict[str, float] = defaultdict(float)
    unmarked: set[str] = set()
    for report in _list_reports(terminalreporter):
        durations[report.nodeid] += report.duration
        if not SLICE and MARKERS.isdisjoint(report.keywords):
            unmarked.add(report.nodeid)
    ordered = sorted(durations.items(), key=lambda each: -each[1])
    slow = [(test, took) for test, took in ordered if took > MAX_SECONDS and test in unmarked]
    if slow:
        terminalreporter.section(f"over {MAX_SECONDS:g} s without a marker")
        for test, took in slow:
            terminalreporter.write_line(f"{took:.2f}s {test}")
    if folder := os.environ.get("QUARRY_DURATIONS"):
        _write_durations(Path(folder), ordered)


def _list_reports(terminalreporter: pytest.TerminalReporter) -> Iterator[pytest.TestReport]:
    """List those of set-ups and calls: what a test waits for is made by either. Those of all processes are here."""
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport) and report.when != "teardown":
                yield report


def _write_durations(folder: Path, durations: Sequence[tuple[str, float]]) -> None:
    """Write one file a run, named by its slice: a line a test, the longest first."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{SLICE or 'test'}.csv").open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["test", "seconds"])
        lines.writerows((test, f"{took:.2f}") for test, took in durations)


@pytest.fixture(autouse=True)
def _loopback_only() -> None:
    socket_allow_hosts(["127.0.0.1", "::1", "localhost"], allow_unix_socket=True)


@pytest.fixture(autouse=True, scope="session")
def _share_statements() -> Iterator[None]:
    """Compile each statement once for all databases of a process."""
    options = {"compiled_cache": SharedStatements()}
    with pytest.MonkeyPatch.context() as patched:
        create = partial(create_engine, execution_options=options)
        patched.setattr("backend.store.database.create_engine", create)
        yield


@pytest.fixture(autouse=True, scope="session")
def _trust_one_authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Spare each HTTP client the 40 ms in which it reads all public certificate authorities, none of which is met here."""
    file = tmp_path_factory.mktemp("authority") / "authority.pem"
    trustme.CA().cert_pem.write_to_path(file)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SSL_CERT_FILE", str(file))
        yield


@pytest.fixture(autouse=True, scope="session")
def _copy_databases() -> Iterator[None]:
    """Copy a migrated file where a home has no database yet: the migrations would take half the time of a short test."""
    read_sqlite_template()

    def make_engine(url: URL) -> Engine:
        if url.database:
            copy_template_to(Path(url.database))
        return make_sqlite_engine(url)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(database, "_sqlite", make_engine)
        yield


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Databases]:
    """A PostgreSQL to make databases on."""
    with shared(PostgreSql) as url, closing(Databases(url)) as databases:
        yield databases


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """A Redis that other tests use too: keep to keys or a database number of your own."""
    with shared(Redis) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database that is up to date and has nothing in it, on SQLite and on PostgreSQL."""
    if request.param == "sqlite":
        yield sqlite_in(tmp_path)
    else:
        databases: Databases = request.getfixturevalue("postgresql")
        with databases.new() as url:
            yield url
