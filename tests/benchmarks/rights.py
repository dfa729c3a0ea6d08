"""What rights by reference cost: documents in scopes, people in groups, and askers of few and of very many tokens.

    python -m tests.benchmarks.rights [documents]

The vectors are of the hashing embedder, so that rights are measured and no model.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

from backend.access.readers import resolve_readers
from backend.store.database import Database, open_database, sqlite_url
from backend.store.sync import sources
from connectors.access import EVERYBODY, Access, Readers
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.index.protocols import Index, IndexQuery
from indexing.local import open_index, open_writer
from indexing.runtime.deadline import Deadline
from tests.support.chunks import document
from tests.support.groups import save_groups

SCOPES, GROUPS, PEOPLE = 300, 400, 5_000
OPEN_TO_MANY = 30
"""Scopes whose documents those read who belong to very many."""
MANY, MOST = 3_000, 65_000
TIMES = 30
EMBEDDER = HashingEmbedder()
WORDS = ("travel", "leave", "invoice", "printer", "contract", "garden", "server", "winter")


def person(number: int) -> str:
    return f"user:p{number}@example.com"


def members() -> dict[str, list[str]]:
    """Return 400 groups of 50 people, 300 scopes of five groups and ten people, and two who belong to very many."""
    groups = {f"g{n}": [person((n * 50 + k) % PEOPLE) for k in range(50)] for n in range(GROUPS)}
    for n in range(SCOPES):
        few = [person((n * 37 + k) % PEOPLE) for k in range(10)]
        groups[f"s{n}"] = [f"g{(n * 5 + k) % GROUPS}" for k in range(5)] + few
        if n < OPEN_TO_MANY:
            groups[f"s{n}"] += ["user:many@example.com", "user:most@example.com"]
    for n in range(MOST):
        groups[f"x{n}"] = ["user:most@example.com"] + (
            ["user:many@example.com"] if n < MANY else []
        )
    return groups


def seconds(work: Callable[[], object]) -> float:
    """Return the median of some calls, after one that is not counted."""
    taken = []
    for _ in range(TIMES + 1):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken[1:])


def fill(folder: Path, documents: int, access: Callable[[int], Access]) -> float:
    """Write the documents to an index and return its size in megabytes."""
    writer = open_writer(folder, EMBEDDER.identity)
    for start in range(0, documents, 1_000):
        texts = [
            f"{WORDS[n % 8]} {WORDS[n // 8 % 8]} note {n}"
            for n in range(start, min(start + 1_000, documents))
        ]
        vectors = EMBEDDER.embed_passages(texts)
        writer.write(
            document(
                f"desk:{start + n}", text, vectors_of=vectors[n : n + 1], access=access(start + n)
            )
            for n, text in enumerate(texts)
        )
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


def measure_sync(database: Database, groups: Mapping[str, list[str]]) -> None:
    began = time.perf_counter()
    save_groups(database, "desk", groups)
    print(f"first listing of {len(groups):,} groups: {time.perf_counter() - began:.1f} s")
    changed = {name: list(of) for name, of in groups.items() if not name.startswith("x")}
    save_groups(database, "web", changed)
    for n in range(50):
        changed[f"g{n}"][0] = person(PEOPLE + n)
    began = time.perf_counter()
    save_groups(database, "web", changed)
    print(
        f"50 joiners and 50 leavers of {len(changed)} groups: {time.perf_counter() - began:.2f} s"
    )


def measure_find(index: Index, database: Database, empty: Database) -> None:
    query = "travel note of the winter garden"
    (vector,) = EMBEDDER.embed_queries([query], Deadline.after(30))
    asked = [IndexQuery(text=query, vector=vector, alpha=0.5, size=50)]

    def find(readers: Readers) -> object:
        return index.find(asked, readers, Deadline.after(30))

    for name, own in askers():
        held = resolve_readers(database, own)
        resolving = seconds(lambda own=own: resolve_readers(database, own))  # type: ignore[misc]
        finding = seconds(lambda held=held: find(held))  # type: ignore[misc]
        # Each request has a set of its own: what an index remembers is found by its value.
        whole = seconds(lambda own=own: find(resolve_readers(database, own)))  # type: ignore[misc]
        print(
            f"{name}: {len(held.tokens):,} tokens, resolved in {resolving * 1e3:.2f} ms,"
            f" find {finding * 1e3:.2f} ms, both {whole * 1e3:.2f} ms"
        )
    own = Readers.of(*(f"external:1:s{n}" for n in range(29)))
    plain = seconds(lambda: find(own))
    resolved = seconds(lambda: find(resolve_readers(empty, own)))
    print(f"no group in the database: find {plain * 1e3:.2f} ms, resolved {resolved * 1e3:.2f} ms")


def askers() -> Iterator[tuple[str, Readers]]:
    yield "a person", Readers.of(person(7))
    yield "one of many", Readers.of("user:many@example.com")
    yield "one of most", Readers.of("user:most@example.com")
    scopes = (f"external:1:s{n}" for n in range(OPEN_TO_MANY))
    yield "by itself", Readers.of(*scopes, *(f"group:{n}" for n in range(MOST)))


def open_store(path: Path) -> Database:
    database = open_database(sqlite_url(path))
    for name in ("desk", "web"):
        sources.add(database, name, "folder", {"path": f"/srv/{name}"})
    return database


def main() -> None:
    documents = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plain = fill(folder / "plain", documents, lambda _: EVERYBODY)
        scoped = fill(
            folder / "scoped", documents, lambda n: Access.to([f"external:1:s{n % SCOPES}"])
        )
        print(f"{documents:,} documents, disk: public {plain:.1f} MB, in scopes {scoped:.1f} MB")
        with (
            closing(open_store(folder / "quarry.db")) as database,
            closing(open_store(folder / "empty.db")) as empty,
            closing(open_index(folder / "scoped", EMBEDDER.identity)) as index,
        ):
            measure_sync(database, members())
            measure_find(index, database, empty)


if __name__ == "__main__":
    main()
