"""What an `access.yaml` with many readers costs: a sync of a folder, and a permission sync after one more reader.

    python -m tests.benchmarks.access_rules [files [readers]]

The hashing embedder is used, so that rights are measured and no model.
"""

import json
import resource
import sys
import time
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from backend.store.database import open_database, sqlite_url
from backend.store.sync import runs, schedule, sources
from backend.store.sync.runs import Run
from backend.sync.due_work import Engine
from backend.sync.foreground_run import sync
from connectors.registry import create_connector
from indexing.local import open_writer
from tests.benchmarks.rights_sync import EMBEDDER, Parts


def write_rules(folder: Path, readers: int) -> None:
    tokens = [f"user:p{number}@example.com" for number in range(readers)]
    # JSON is YAML.
    rules = {"rules": [{"match": "**", "readers": tokens}]}
    (folder / "access.yaml").write_text(json.dumps(rules))


def processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure(home: Path, count: int, readers: int) -> None:
    files = home / "files"
    files.mkdir()
    for number in range(count):
        (files / f"{number}.txt").write_text(f"Note {number} of the desk.")
    write_rules(files, readers)
    kept = home / "kept"
    kept.mkdir()
    with closing(open_database(sqlite_url(kept / "quarry.db"))) as database:
        settings = {"path": str(files)}
        source = sources.add(database, "desk", "folder", settings)
        made = create_connector("folder", "desk", settings, source_id=source.id)
        parts = Parts(database, open_writer(kept / "index", EMBEDDER.identity), made)
        began = processor_seconds()
        for _ in sync(database, source, made, parts.pipeline(source)):
            pass
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        print(
            f"{count:,} files, {readers:,} readers: {processor_seconds() - began:.1f} s of processor, {memory:.0f} MB"
        )
        write_rules(files, readers + 1)
        joined = add_reader(parts)
        print(f"{joined.counts.get('amended', 0):,} documents were rewritten")
    disk = sum(file.stat().st_size for file in kept.rglob("*") if file.is_file()) / 1e6
    print(f"disk {disk:.1f} MB")


def add_reader(parts: Parts) -> Run:
    schedule.request_run(parts.database, "desk", "permissions")
    began, used = time.perf_counter(), processor_seconds()
    assert Engine(lambda: parts).light_due("desk")
    print(
        f"one more reader, a permission sync: {time.perf_counter() - began:.2f} s, {processor_seconds() - used:.2f} s of processor"
    )
    last = runs.latest(parts.database)["desk"]
    assert (last.kind, last.state) == ("permissions", "done")
    return last


def main() -> None:
    count, readers = (
        *map(int, sys.argv[1:]),
        *(1_000, 5_000)[len(sys.argv) - 1 :],
    )
    with TemporaryDirectory() as name:
        measure(Path(name), count, readers)


if __name__ == "__main__":
    main()
