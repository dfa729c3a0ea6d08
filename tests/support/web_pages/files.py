"""Addresses that send something else than a page: files, feeds, redirects, too much, too slowly."""

import gzip
import json
import time
from collections.abc import Iterable, Iterator

from backend.web_search.results import Obstacle
from tests.support.files import pdf, word_document
from tests.support.web_pages import texts
from tests.support.web_pages.page import (
    HTML,
    Expected,
    Fails,
    IsBlocked,
    LocalPage,
    Reads,
    article,
    html,
)

_POOL_MOVED = Reads("A tidal pool", ("4.2 tonnes",), (), "en", ends_at="/en/pool")
_TOO_OFTEN = Fails("redirects too often")
_POOL = html("A tidal pool", article("A tidal pool", texts.EN), lang="en")
_FEED = """<?xml version="1.0"?><!DOCTYPE rss [<!ENTITY x SYSTEM "file:///etc/passwd">]><rss version="2.0"><channel><title>Harbour news</title>
<description>What is new &x;</description><item><title>Pool opens</title><link>https://news.test/en/pool</link><pubDate>Sat, 08 Jun 2024 05:30:00 GMT</pubDate>
<description>&lt;p&gt;The pool &lt;b&gt;fills&lt;/b&gt; by itself.&lt;/p&gt;</description></item><item><title>Gate replaced</title><link>https://news.test/en/gate</link></item></channel></rss>"""
_ATOM = """<?xml version="1.0" encoding="utf-8"?><feed xmlns="http://www.w3.org/2005/Atom"><title>Harbour log</title><entry><title>High water</title>
<link rel="alternate" href="https://news.test/log/1"/><updated>2024-06-08T05:30:00Z</updated><summary>At six in the morning.</summary></entry></feed>"""


def pages() -> Iterator[LocalPage]:
    yield from _files()
    yield from _not_text()
    yield from _redirects()
    yield from _refreshes()
    yield from _too_much()


def _files() -> Iterator[LocalPage]:
    yield LocalPage(
        "/files/tides.txt",
        b"The tide table of June.\nHigh water at six.",
        Reads("tides.txt", ("The tide table of June.\nHigh water at six.",), (), "en"),
        media_type="text/plain",
    )
    yield LocalPage(
        "/files/notes.md",
        b"# Notes on tides\n\nHigh water is **late** in [June](https://other.test/june).\n",
        Reads("Notes on tides", ("High water is",), (), "en"),
        media_type="text/markdown",
    )
    yield LocalPage(
        "/files/tides.json",
        json.dumps({"station": "Vellmar", "high": [6.1, 18.4]}).encode(),
        Reads("tides.json", ("Vellmar", "18.4")),
        media_type="application/json",
    )
    yield LocalPage(
        "/scripted/data.json",
        json.dumps({"paragraphs": texts.EN}).encode(),
        Reads("data.json", ("4.2 tonnes",), (), "en"),
        media_type="application/json",
    )
    yield LocalPage(
        "/files/tides.xml",
        b"<?xml version='1.0'?><tides><high at='06:10'>Vellmar</high></tides>",
        Reads("tides.xml", ("Vellmar",)),
        media_type="application/xml",
    )
    yield LocalPage(
        "/files/tides.csv",
        b"Station,High water\nVellmar,06:10\nAhrn,07:25\n",
        Reads("tides.csv", ("Vellmar", "07:25")),
        media_type="text/csv",
    )
    for path, feed, media_type in (
        ("/files/feed.rss", _FEED, "application/rss+xml"),
        ("/files/feed", _FEED, "text/xml; charset=utf-8"),
    ):
        yield LocalPage(
            path,
            feed.encode(),
            Reads("Harbour news", ("Pool opens", "The pool fills by itself.", "2024-06-08"), ("root:", "<p>"), "en", links=("https://news.test/en/pool", "https://news.test/en/gate")),
            media_type=media_type,
        )  # fmt: skip
    yield LocalPage(
        "/files/feed.atom",
        _ATOM.encode(),
        Reads("Harbour log", ("High water", "At six in the morning."), (), "en", links=("https://news.test/log/1",)),
        media_type="application/atom+xml",
    )  # fmt: skip
    report = pdf(*texts.EN, title="Report on the pool")
    read = Reads("Report on the pool", ("4.2 tonnes", "three crowns"), ("%PDF",), "en")
    for path, media_type in (
        ("/files/report.pdf", "application/pdf"),
        ("/files/download?id=7", "text/html"),
        ("/files/bytes", "application/octet-stream"),
    ):
        yield LocalPage(path, report, read, media_type=media_type)
    yield LocalPage(
        "/files/report.docx",
        word_document("# Report on the pool", *texts.EN),
        Reads("Report on the pool", ("4.2 tonnes",), (), "en"),
        media_type="application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    )
    yield LocalPage(
        "/files/broken.pdf", report[:200], Fails("cannot be read"), media_type="application/pdf"
    )
    yield LocalPage(
        "/files/gzip",
        gzip.compress(_POOL),
        Reads("A tidal pool", ("4.2 tonnes",), (), "en"),
        headers={"content-encoding": "gzip"},
    )


def _not_text() -> Iterator[LocalPage]:
    picture = b"\x89PNG\r\n\x1a\n" + bytes(64)
    yield LocalPage("/files/sea.png", picture, Fails("no text"), media_type="image/png")
    yield LocalPage("/files/sea", picture, Fails("no text"), media_type=HTML)
    yield LocalPage("/files/sea.zip", b"PK\x03\x04" + bytes(64), Fails("no text"), media_type="application/zip")  # fmt: skip
    yield LocalPage("/files/sea.mp4", bytes(64), Fails("no text"), media_type="video/mp4")
    yield LocalPage("/files/noise", bytes(range(256)) * 9, Fails("no text"), media_type=None)


def hops() -> Iterator[LocalPage]:
    """The steps of chains of redirects: `/hop/N` is N redirects away from the pool."""
    for left in range(1, 26):
        target = "/en/pool" if left == 1 else f"/hop/{left - 1}"
        yield _redirect(f"/hop/{left}", target, _POOL_MOVED if left <= 10 else _TOO_OFTEN)


def _redirects() -> Iterator[LocalPage]:
    yield from (page for page in hops() if page.path in ("/hop/5", "/hop/25"))
    yield _redirect("/moved/loop", "/moved/loop-back", _TOO_OFTEN)
    yield _redirect("/moved/loop-back", "/moved/loop", _TOO_OFTEN)
    yield LocalPage(
        "/moved/cookie",
        _POOL,
        Reads("A tidal pool", ("4.2 tonnes",), (), "en"),
        headers={"needs-cookie": "seen=1"},
    )
    for name, target in (
        ("private", "{internal}/secret"),
        ("loopback", "http://127.0.0.1:{internal_port}/secret"),
        ("localhost", "http://localhost:{internal_port}/secret"),
        ("decimal", "http://2130706433:{internal_port}/secret"),
        ("mapped", "http://[::ffff:127.0.0.1]:{internal_port}/secret"),
        ("metadata", "http://169.254.169.254/latest/meta-data/"),
        ("file", "file:///etc/passwd"),
        ("data", "data:text/html,<p>made up</p>"),
        ("script", "javascript:alert(1)"),
        ("user", "http://ann:secret@127.0.0.1:{internal_port}/secret"),
        ("port", "{web_host}:22/"),
        ("backslash", "/\\\\127.0.0.1:{internal_port}/secret"),
    ):
        yield _redirect(f"/moved/{name}", target, Fails("not on the public web"))


def _redirect(path: str, location: str, expected: Expected) -> LocalPage:
    return LocalPage(path, b"", expected, status=302, headers={"location": location})


def _refreshes() -> Iterator[LocalPage]:
    """Pages that send a browser on without a redirect."""
    for path, target, expected in (
        ("/refresh/pool", "0; url=/en/pool", _POOL_MOVED),
        ("/refresh/quoted", "1;URL='/en/pool'", _POOL_MOVED),
        ("/refresh/internal", "0; url={internal}/secret", Fails("not on the public web")),
        ("/refresh/file", "0; url=file:///etc/passwd", IsBlocked(Obstacle.EMPTY)),
        ("/refresh/self", "0; url=/refresh/self", IsBlocked(Obstacle.EMPTY)),
    ):
        head = f'<meta http-equiv="refresh" content="{target}">'
        yield LocalPage(path, html("Moved", "", head=head), expected)
    yield LocalPage(
        "/refresh/ticker",
        html("A tidal pool", article("A tidal pool", texts.EN), head='<meta http-equiv="refresh" content="60; url=/refresh/ticker?again">'),
        Reads("A tidal pool", ("4.2 tonnes",), (), "en"),
    )  # fmt: skip
    yield LocalPage(
        "/refresh/article",
        html("A tidal pool", article("A tidal pool", texts.EN), head='<meta http-equiv="refresh" content="5; url=/files/tides.txt">'),
        Reads("A tidal pool", ("4.2 tonnes",), ("tide table",), "en"),
    )  # fmt: skip
    yield LocalPage(
        "/refresh/frames",
        b"<html><head><title>Frames</title></head><frameset cols='20%,80%'><frame src='/plain/list'><frame src='/en/pool'></frameset></html>",
        IsBlocked(Obstacle.EMPTY),
    )


def _too_much() -> Iterator[LocalPage]:
    yield LocalPage("/large/20-mb", _twenty_megabytes, Fails("larger than"))
    yield LocalPage("/large/endless", _endless, Fails("larger than"))
    yield LocalPage("/large/endless.txt", _endless, Fails("larger than"), media_type="text/plain")
    yield LocalPage(
        "/large/bomb", _bomb, Fails("larger than"), headers={"content-encoding": "gzip"}
    )
    yield LocalPage(
        "/large/cut-off",
        gzip.compress(_POOL)[:-9],
        Fails("cannot be read"),
        headers={"content-encoding": "gzip"},
    )
    yield LocalPage(
        "/large/unknown-encoding",
        _POOL,
        Fails("cannot be read"),
        headers={"content-encoding": "br"},
    )
    attributes = " ".join(f"a{number}=1" for number in range(400_000))
    yield LocalPage("/slow/attributes", html("Slow", f"<p {attributes}>x</p>"), Fails("attributes"))
    yield LocalPage("/slow/drip", _drip, Fails("too long"))
    yield LocalPage("/slow/silent", _silence, Fails("too long"))


def _bomb() -> Iterable[bytes]:
    yield gzip.compress(bytes(100 << 20), 1)


def _twenty_megabytes() -> Iterable[bytes]:
    yield _POOL
    for _ in range(20):
        yield b"<p>" + b"tide " * 200_000


def _endless() -> Iterable[bytes]:
    while True:
        yield b"<p>the tide comes and goes</p>\n" * 2_000


def _drip() -> Iterable[bytes]:
    while True:
        yield b"<p>drop"
        time.sleep(0.05)


def _silence() -> Iterable[bytes]:
    yield b"<p>"
    time.sleep(3.0)
