"""The long form of `tests/acceptance/test_kill.py`.

    .venv/bin/python -m tests.benchmarks.kills [KILLS] [DOCUMENTS] [SEED]

200 kills of one of two workers, while a folder of 2,000 documents is created, edited, moved, deleted and
shown to others between them. It ends with an error where source, ledger and index do not agree.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from backend.store.database import sqlite_url
from tests.support.kills import Place, Trial


def main(kills: int = 200, documents: int = 2_000, seed: int = 1) -> None:
    with TemporaryDirectory() as home:
        folder = Path(home)
        (folder / "files").mkdir()
        place = Place(folder, sqlite_url(folder / "quarry.db"))
        toll = Trial(place, documents=documents, seed=seed).run(kills)
    print(f"{toll.kills} kills over {toll.documents} documents in {toll.seconds:.0f} s: all agree")
    print("killed in the middle of:", dict(sorted(toll.stages.items())))
    print("how runs ended:", dict(sorted(toll.runs.items())))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
