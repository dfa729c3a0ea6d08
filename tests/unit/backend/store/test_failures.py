"""The failures."""

from collections.abc import Iterator

import pytest

from backend.store import failures
from indexing.ingestion.ledger import Failed, VersionSeen
from tests.support.store import Store, store_at


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    with store_at(database_url, "desk", "web", "idle") as store:
        yield store


def failed(name: str, reason: str) -> Failed:
    return Failed(
        source=name.partition(":")[0],
        document_id=name,
        item=f"{name}.pdf",
        reason=reason,
        link=f"https://desk.test/{name}",
    )


def test_a_failure_counts_its_tries_and_tells_the_last_reason(store: Store) -> None:
    store.ledger.save([failed("desk:a", "it is locked")])
    store.ledger.save([failed("desk:a", "it is encrypted"), failed("desk:b", "it is empty")])
    first, second = failures.list_failures(store.database)
    assert (first.item, first.reason, first.tries) == ("desk:a.pdf", "it is encrypted", 2)
    assert (first.source, first.document_id) == ("desk", "desk:a")
    assert first.link == "https://desk.test/desk:a"
    assert first.first_at < first.last_at
    assert (second.reason, second.tries) == ("it is empty", 1)


def test_failures_of_all_sources_are_listed_and_counted(store: Store) -> None:
    store.ledger.save([failed(f"desk:{number:04}", "no") for number in range(1_100)])
    store.ledger.save([failed("web:a", "no"), VersionSeen("desk:0007", "2")])
    assert len(list(failures.list_failures(store.database))) == 1_100
    assert failures.counts(store.database) == {"desk": 1_099, "web": 1}
