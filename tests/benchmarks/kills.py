"""The long forms of `tests/acceptance/test_kill.py`.

    .venv/bin/python -m tests.benchmarks.kills [KILLS] [DOCUMENTS] [SEED]
    .venv/bin/python -m tests.benchmarks.kills --scaled [KILLS] [DOCUMENTS] [SEED]

200 kills of one of two workers, while a folder of 2,000 documents is created, edited, moved, deleted and
shown to others between them. With `--scaled` it is one of two workers of each queue, or the beat, over PostgreSQL,
Redis and OpenSearch, of which the first and the last are those whose addresses `QUARRY_TEST_POSTGRESQL` and
`QUARRY_TEST_OPENSEARCH_2` name. It ends with an error where source, ledger and index do not agree.
"""

import argparse
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from backend.store.database import sqlite_url
from tests.support.databases import Databases, PostgreSql, shared
from tests.support.kills import Place, Site, Trial
from tests.support.opensearch_server import url_of
from tests.support.scaled_kills import scaled_place


@contextmanager
def embedded_site(folder: Path) -> Iterator[Site]:
    (folder / "files").mkdir()
    yield Place(folder, sqlite_url(folder / "quarry.db"))


@contextmanager
def scaled_site(folder: Path) -> Iterator[Site]:
    with (
        shared(PostgreSql) as postgresql,
        closing(Databases(postgresql)) as databases,
        databases.new() as database,
        scaled_place(folder, database, url_of("opensearch-2")) as place,
    ):
        yield place


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kills", type=int, nargs="?", default=200)
    parser.add_argument("documents", type=int, nargs="?", default=2_000)
    parser.add_argument("seed", type=int, nargs="?", default=1)
    parser.add_argument("--scaled", action="store_true")
    given = parser.parse_args()
    made = scaled_site if given.scaled else embedded_site
    with TemporaryDirectory() as home, made(Path(home)) as site:
        toll = Trial(site, documents=given.documents, seed=given.seed).run(given.kills)
    print(f"{toll.kills} kills over {toll.documents} documents in {toll.seconds:.0f} s: all agree")
    print("killed in the middle of:", dict(sorted(toll.stages.items())))
    print("how runs ended:", dict(sorted(toll.runs.items())))


if __name__ == "__main__":
    main()
