"""A broken cluster or wrong settings: every error is one of ours, with a message that helps."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trustme
from opensearchpy import OpenSearch

from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.index.protocols import Amend, Delete, Filters, Written
from indexing.opensearch.client import OpenSearchSettings, Password, connect
from indexing.opensearch.mapping import IndexLayout, VectorSettings, index_body
from indexing.opensearch.naming import document_key, index_name
from indexing.opensearch.open_index import open_index, open_writer
from indexing.opensearch.searcher import OpenSearchIndex
from indexing.opensearch.writer import OpenSearchIndexWriter
from indexing.runtime.deadline import Deadline
from indexing.text.analysis import BY_LANGUAGE
from tests.support.chunks import DIMENSION, IDENTITY, document, query, vector, vectors
from tests.support.fault_index import IndexUnderTest, by_vector, versions
from tests.support.index_engines import PUBLIC
from tests.support.tls_proxy import Request, tls_proxy

pytestmark = pytest.mark.soak("faults")

NAMES = [f"document {n}" for n in range(10)]


@dataclass
class Gate:
    """Lets requests through, or answers with a status."""

    status: int = 0

    def __call__(self, _: Request) -> int:
        return self.status


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "refused the sign-in. Check the configured user and password"),
        (403, "does not permit this to the configured user: no reason given. Grant"),
    ],
)
def test_a_refused_sign_in_names_the_setting_to_check(
    url: str, prefix: str, tmp_path: Path, status: int, words: str
) -> None:
    """Whatever the operation: a password may be changed at any time."""
    authority, gate = trustme.CA(), Gate()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    with tls_proxy(url, authority, gate=gate) as proxy:
        signed = connect(
            OpenSearchSettings(
                urls=(proxy.url,),
                sign_in=Password("quarry", "changed"),
                ca_file=tmp_path / "ca.pem",
                verification="always",
            )
        )
        subject = IndexUnderTest(signed, prefix)
        subject.writer.write(versions(NAMES, 1))
        gate.status = status
        for call in (
            lambda: open_index(signed, prefix, IDENTITY),
            lambda: open_writer(signed, prefix, IDENTITY),
            subject.find,
            lambda: subject.index.facets(Filters(), PUBLIC, Deadline.after(20)),
            lambda: subject.writer.write(versions(NAMES, 2)),
            lambda: list(subject.writer.scan()),
        ):
            begun = time.monotonic()
            with pytest.raises(ActionRequiredError, match=words):
                call()
            assert time.monotonic() - begun < 10, "nothing is gained by asking again"
        gate.status = 0
        subject.check_holds(dict.fromkeys(NAMES, 1))
        signed.close()


def strange(client: OpenSearch, prefix: str, change: Callable[[dict[str, Any]], object]) -> None:
    """Create the index with another mapping, as another version would."""
    body = index_body(index_name(prefix, IDENTITY), IDENTITY, IndexLayout())
    change(body["mappings"]["properties"])
    client.indices.create(index=index_name(prefix, IDENTITY), body=body)


def test_a_mapping_without_a_field_has_an_error_with_the_document_and_the_remedy(
    client: OpenSearch, prefix: str
) -> None:
    strange(client, prefix, lambda fields: fields.pop("place"))
    writer = open_writer(client, prefix, IDENTITY)
    with pytest.raises(ActionRequiredError, match=r"^document \d: .*\[place\].*quarry reindex"):
        writer.write(versions(NAMES, 1))
    assert list(writer.scan()) == []


def test_a_field_of_another_type_has_an_error_with_the_document_and_the_remedy(
    client: OpenSearch, prefix: str
) -> None:
    strange(client, prefix, lambda fields: fields.update(words={"type": "integer"}))
    writer = open_writer(client, prefix, IDENTITY)
    with pytest.raises(ActionRequiredError, match=r"^document \d: .*\[words\].*quarry reindex"):
        writer.write(versions(NAMES, 1))
    assert list(writer.scan()) == []


def test_vectors_of_another_dimension_are_refused_before_anything_is_sent(
    client: OpenSearch, prefix: str
) -> None:
    subject = IndexUnderTest(client, prefix)
    subject.writer.write(versions(NAMES, 1))
    with pytest.raises(ValueError, match=r"\(7,\).*64 dimensions"):
        subject.find(asked=query("", vector=vector("any", 7), alpha=1.0))
    with pytest.raises(ValueError, match=r"vectors of shape \(2, 7\) where \(2, 64\) is expected"):
        subject.writer.write([document("a", "one", "two", vectors_of=vectors(["one", "two"], 7))])
    subject.check_holds(dict.fromkeys(NAMES, 1))


def test_an_index_of_another_dimension_has_a_readable_error(
    client: OpenSearch, prefix: str
) -> None:
    """Its metadata is as expected: only the cluster can notice."""
    strange(client, prefix, lambda fields: fields["vector"].update(dimension=7))
    writer = open_writer(client, prefix, IDENTITY)
    with pytest.raises(ActionRequiredError, match=r"^document \d: .*dimension.*quarry reindex"):
        writer.write(versions(NAMES, 1))
    index = OpenSearchIndex(
        client, index_name(prefix, IDENTITY), DIMENSION, VectorSettings(), BY_LANGUAGE
    )
    with pytest.raises(ActionRequiredError, match="dimension"):
        index.find([by_vector()], PUBLIC, Deadline.after(20))


def test_every_operation_on_a_deleted_index_says_that_it_is_gone(
    client: OpenSearch, prefix: str
) -> None:
    subject = IndexUnderTest(client, prefix)
    subject.writer.write(versions(NAMES, 1))
    client.indices.delete(index=subject.name)
    for call in (
        subject.find,
        lambda: subject.index.facets(Filters(), PUBLIC, Deadline.after(20)),
        lambda: subject.writer.write(versions(NAMES, 2)),
        lambda: subject.writer.write([Delete(NAMES[0])]),
        lambda: subject.writer.write([Amend(document_id=NAMES[0], boost=2.0)]),
        subject.writer.refresh,
        lambda: list(subject.writer.scan()),
        lambda: list(subject.writer.export()),
    ):
        with pytest.raises(ActionRequiredError, match=r"index does not exist.*sync its sources"):
            call()
    again = IndexUnderTest(client, prefix)
    again.writer.write(versions(NAMES, 2))
    again.check_holds(dict.fromkeys(NAMES, 2))


@pytest.fixture
def half(client: OpenSearch, prefix: str) -> tuple[OpenSearchIndexWriter, list[str]]:
    """A writer of an index with one of two shards unassigned, and the documents of the other."""
    name = index_name(prefix, IDENTITY)
    body = index_body(name, IDENTITY, IndexLayout(shards=2))
    body["settings"]["index"]["routing.allocation.total_shards_per_node"] = 1
    client.indices.create(index=name, body=body, params={"wait_for_active_shards": "0"})
    while client.cluster.health(index=name)["active_shards"] != 1:
        time.sleep(0.05)
    return (
        OpenSearchIndexWriter(client, name, DIMENSION, VectorSettings(), BY_LANGUAGE, patience=1.0),
        [each for each in NAMES if is_there(client, name, each)],
    )


def is_there(client: OpenSearch, name: str, document_id: str) -> bool:
    found = client.search_shards(index=name, params={"routing": document_key(document_id)})
    return any(copy["state"] == "STARTED" for copies in found["shards"] for copy in copies)


def test_what_a_missing_shard_holds_is_not_taken_for_deleted(
    client: OpenSearch, prefix: str, half: tuple[OpenSearchIndexWriter, list[str]]
) -> None:
    writer, there = half
    gone = [name for name in NAMES if name not in there]
    assert there
    assert gone
    with pytest.raises(TemporarilyUnavailableError, match="incomplete"):
        writer.write(versions(gone, 1))
    for whole in (writer.scan, writer.export):
        with pytest.raises(TemporarilyUnavailableError, match=r"incomplete.*missing shards"):
            next(iter(whole()))
    lift = {"index.routing.allocation.total_shards_per_node": None}
    client.indices.put_settings(index=index_name(prefix, IDENTITY), body=lift)
    client.cluster.health(index=index_name(prefix, IDENTITY), params={"wait_for_status": "green"})
    assert writer.write(versions(NAMES, 1)) == Written(replaced=10, chunks=30)
    IndexUnderTest(client, prefix).check_holds(dict.fromkeys(NAMES, 1))
