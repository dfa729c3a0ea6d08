from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import ValidationError

from connectors.access import EVERYBODY
from connectors.connector import Change, Checkpoint, Deletion, DocumentListing, Unreadable
from connectors.document import Document
from connectors.errors import ActionRequiredError, SourceError, TemporarilyUnavailableError
from connectors.http_client.retry_policy import RetryPolicy
from connectors.http_client.sign_in import Header
from connectors.sources.feed.connector import FeedConnector
from connectors.sources.feed.settings import FeedCredential, FeedSettings, feed_key
from tests.contract.connector_worlds.held import Held, documents, list_documents, run
from tests.support.services.feed import FeedServer, Post, atom, json_feed, rss_2
from tests.support.services.serving import ReceivedRequest, Reply, RunningService, reply_text, serve

NOON = datetime(2026, 11, 2, 12, 0, tzinfo=UTC)


def _post(number: int, html: str = "<p>Said.</p>") -> Post:
    return Post(
        id=f"post {number}",
        title=f"Post {number}",
        html=html,
        link=f"https://news.test/{number}",
        at=NOON + timedelta(hours=number),
    )


@pytest.fixture
def server() -> FeedServer:
    return FeedServer({"/a": rss_2(map(_post, (3, 2, 1))), "/b": atom([_post(1)])})


@pytest.fixture
def service(server: FeedServer) -> Iterator[RunningService]:
    with serve(server) as running:
        yield running


def _connect(service: RunningService, *paths: str, **settings: object) -> FeedConnector:
    first, *more = (f"{service.url}{path}" for path in paths or ("/a", "/b"))
    chosen = {
        "url": first,
        "more": more,
        "readers": ["public"],
        "private_hosts": ["127.0.0.1"],
        **settings,
    }
    return FeedConnector(
        "news",
        FeedSettings.model_validate(chosen),
        FeedCredential(),
        retry_policy=RetryPolicy(max_attempts=1, base_delay=0.001),
    )


def _id(service: RunningService, path: str, key: str) -> str:
    return f"news:{feed_key(service.url + path)}/{key}"


def test_an_entry_is_a_document(service: RunningService) -> None:
    found = {one.id: one for one in documents(run(_connect(service), Held()))}
    assert found.keys() == {
        *(_id(service, "/a", f"post {number}") for number in (1, 2, 3)),
        _id(service, "/b", "post 1"),
    }
    one = found[_id(service, "/a", "post 2")]
    assert (one.title, one.link) == ("Post 2", "https://news.test/2")
    assert [section.text for section in one.sections] == ["Said."]
    assert one.access == EVERYBODY
    assert one.created_at == one.updated_at == NOON + timedelta(hours=2)
    assert one.parents == ("News",)
    assert one.metadata == {"feed": "News"}


def test_a_feed_that_is_unchanged_is_not_sent_again(
    service: RunningService, server: FeedServer
) -> None:
    held = Held()
    run(_connect(service), held)
    server.feeds["/b"] = atom([_post(1), _post(9)])
    service.log.clear()
    assert [one.title for one in documents(run(_connect(service), held))] == ["Post 9"]
    asked = {request.path: request.headers.get("if-none-match") for request in service.log}
    assert all(asked.values())
    # A listing has to know what the feed shows.
    service.log.clear()
    assert len(list(list_documents(_connect(service)))) == 5
    assert not any("if-none-match" in request.headers for request in service.log)


def test_what_rolled_out_is_not_reported_as_deleted(
    service: RunningService, server: FeedServer
) -> None:
    held = Held()
    run(_connect(service), held)
    server.feeds["/a"] = rss_2([_post(4), _post(3)])
    changes = run(_connect(service), held)
    assert [one.title for one in documents(changes)] == ["Post 4"]
    assert not [one for one in changes if isinstance(one, Deletion)]
    gone = _id(service, "/a", "post 1")
    (again,) = _connect(service).refetch([gone])
    assert isinstance(again, Unreadable)
    assert (again.document_id, again.item) == (gone, "post 1")
    assert "no longer shows it" in again.reason
    other = "news:000000000000/post 1"
    assert list(_connect(service).refetch([other])) == [Deletion(other)]


@pytest.mark.parametrize("bad", ["\\ud800", "\\u0000"])
def test_an_entry_that_cannot_be_stored_stops_no_feed_behind_it(
    service: RunningService, server: FeedServer, bad: str
) -> None:
    """JSON spells it in plain letters, so that no decoder of bytes sees it."""
    feed = json_feed([_post(1)]).replace("Said.", f"Said{bad}.")
    server.feeds["/a"] = feed.replace("https://news.test/1", f"https://news.test/{bad}")
    found = {one.id: one for one in documents(run(_connect(service), Held()))}
    assert found.keys() == {_id(service, path, "post 1") for path in ("/a", "/b")}
    mended = found[_id(service, "/a", "post 1")]
    assert [section.text for section in mended.sections] == ["Said\ufffd."]
    assert mended.link == "https://news.test/\ufffd"


def test_retention_covers_the_feeds_of_the_settings(service: RunningService) -> None:
    settings = FeedSettings(url=f"{service.url}/a", readers=("public",), keep_days=30)
    kept = settings.retention()
    local_id = _id(service, "/a", "post 1").removeprefix("news:")
    assert kept.keeps(local_id, timedelta(days=29))
    assert not kept.keeps(local_id, timedelta(days=30))
    assert not kept.keeps(_id(service, "/b", "post 1").removeprefix("news:"), timedelta(0))


def _failing(reply: Reply) -> FeedServer:
    """A server of a good feed, `/a`, and of an address, `/b`, that answers like this."""

    class Failing(FeedServer):
        def __call__(self, request: ReceivedRequest) -> Reply:
            return reply if request.path == "/b" else super().__call__(request)

    return Failing({"/a": rss_2([_post(1)])})


_PAGE = (
    "<!doctype html><html><head><title>News</title>"
    '<link rel="alternate" type="application/rss+xml" href="/feed.xml"></head><body>Read.</body></html>'
)


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (
            reply_text("No.", status=404),
            r"there is no feed at .*/b \(status 404\): correct the address",
        ),
        (
            reply_text("No.", status=410),
            r"there is no feed at .*/b \(status 410\): correct the address",
        ),
        (reply_text("No.", status=403), "enter a valid credential by quarry sources edit news"),
        (reply_text("No.", status=451), "the feed cannot be read: .*451"),
        (
            reply_text(_PAGE, media_type="text/html"),
            "/b is a web page, not a feed: .* is http.*/feed.xml",
        ),
        (reply_text("<html>Sign in", media_type="text/xml"), "/b is a web page, not a feed"),
        (reply_text("garbage"), "/b is not a feed: it is not valid XML"),
        (reply_text(rss_2([_post(1)])[:200]), "/b is not a feed: it is not valid XML"),
        (reply_text(""), "/b is not a feed: it is empty"),
        (Reply(body=b"\x01\x02\x03\x04" * 99), "/b is not a feed: it is not text"),
        (Reply(body=b"x" * 1001), "the feed cannot be read: .*1,?001|larger"),
    ],
)
def test_a_feed_that_cannot_be_read_says_so_after_the_others_were_read(
    reply: Reply, says: str
) -> None:
    with serve(_failing(reply)) as service:
        held = Held()
        with pytest.raises(ActionRequiredError, match=says) as caught:
            run(_connect(service, "/b", "/a", largest_feed=1000), held)
        assert "Nothing was deleted." in str(caught.value)
        assert [one.title for one in held.documents.values()] == ["Post 1"]
        with pytest.raises(ActionRequiredError, match=says):
            list(_connect(service, "/b", "/a", largest_feed=1000).listing(None))
        faults = [one.fault for one in _connect(service, "/b", "/a", largest_feed=1000).check()]
        assert all("Nothing was deleted." in (fault or "") for fault in faults[:2])


def test_a_listing_goes_on_with_the_feeds_that_could_not_be_read() -> None:
    server = _failing(reply_text("Later.", status=429, headers={"Retry-After": "1200"}))
    with serve(server) as service:
        items = _connect(service, "/b", "/a").listing(None)
        listed, reached = next(items), next(items)
        with pytest.raises(TemporarilyUnavailableError) as caught:
            next(items)
        assert caught.value.retry_after >= timedelta(minutes=20)
        assert isinstance(listed, DocumentListing)
        assert isinstance(reached, Checkpoint)
        service.log.clear()
        with pytest.raises(TemporarilyUnavailableError):
            list(_connect(service, "/b", "/a").listing(reached))
        assert {request.path for request in service.log} == {"/b"}


def test_several_feeds_that_cannot_be_read_are_all_named(service: RunningService) -> None:
    with pytest.raises(SourceError, match=r"/x .*/y ") as caught:
        run(_connect(service, "/x", "/y"), Held())
    assert "news.test" not in str(caught.value)


def test_what_only_a_server_may_mend_is_waited_for_and_what_a_person_must_mend_is_said() -> None:
    busy = reply_text("Later.", status=503)
    with serve(_failing(busy)) as service:
        with pytest.raises(TemporarilyUnavailableError):
            run(_connect(service, "/b", "/a"), Held())
        with pytest.raises(SourceError, match="/x "):
            run(_connect(service, "/b", "/x"), Held())


def test_an_address_is_not_shown_with_its_secret(service: RunningService) -> None:
    connector = _connect(service, "/missing?token=s3cret")
    with pytest.raises(ActionRequiredError) as caught:
        run(connector, Held())
    assert "s3cret" not in str(caught.value)


def test_documents_do_not_hold_the_secret_of_their_feed(
    service: RunningService, server: FeedServer
) -> None:
    server.feeds["/a"] = rss_2([replace(_post(1), link="")]).replace(
        "<link>https://news.test/</link>", ""
    )
    (one,) = documents(run(_connect(service, "/a?token=s3cret"), Held()))
    assert one.link == f"{service.url}/a"
    assert "s3cret" not in repr(one)


def _read(text: str) -> Change:
    server = FeedServer({"/a": text})
    with serve(server) as service:
        (change,) = (
            one for one in run(_connect(service, "/a"), Held()) if not isinstance(one, Checkpoint)
        )
    return change


def test_an_entry_that_only_names_a_page_says_its_title() -> None:
    one = _read(rss_2([_post(1, html="")]))
    assert isinstance(one, Document)
    assert [section.text for section in one.sections] == ["Post 1"]


def test_an_entry_that_says_nothing_is_unreadable_until_it_changes() -> None:
    one = _read(rss_2([replace(_post(1, html=""), title="")]))
    assert isinstance(one, Unreadable)
    assert one.reason == "the entry has neither a title nor a text"
    assert one.version


def test_an_encoding_is_read_as_the_feed_declares_it() -> None:
    text = rss_2([_post(1, html="Größe")]).replace(
        'version="1.0"', 'version="1.0" encoding="latin-1"', 1
    )
    reply = Reply(headers={"Content-Type": "text/xml; charset=utf-8"}, body=text.encode("latin-1"))
    with serve(lambda _: reply) as service:
        (one,) = documents(run(_connect(service, "/a"), Held()))
    assert [section.text for section in one.sections] == ["Größe"]


@pytest.mark.parametrize(
    "settings",
    [
        {"url": "feed.xml"},
        {"url": "file:///etc/passwd"},
        {"more": ["ftp://news.test/"]},
        {"more": ["https://news.test/"] * 50},
        {"keep_days": 0},
        {"readers": []},
    ],
)
def test_settings_that_cannot_work_are_refused(settings: Mapping[str, object]) -> None:
    with pytest.raises(ValidationError):
        FeedSettings.model_validate(
            {"url": "https://news.test/feed", "readers": ["public"], **settings}
        )


def test_a_credential_is_sent_encrypted_only() -> None:
    settings = FeedSettings(url="http://news.test/feed", readers=("public",))
    credential = FeedCredential.model_validate(
        {"sign_in": {"kind": "header", "name": "Authorization", "value": "Bearer x"}}
    )
    assert isinstance(credential.sign_in, Header)
    with pytest.raises(ValueError, match="https only"):
        FeedConnector("news", settings, credential)
