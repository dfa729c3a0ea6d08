"""A server of feeds on this machine, in each format; each feed has an ETag."""

import html
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import format_datetime
from hashlib import sha256
from xml.sax.saxutils import escape

from tests.support.services.faulty_service import FaultyService
from tests.support.services.serving import ReceivedRequest, Reply, reply_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """An entry of a feed."""

    id: str
    title: str
    html: str
    link: str
    at: datetime


def rss_2(posts: Iterable[Post]) -> str:
    items = "".join(
        f"<item><title>{escape(one.title)}</title><link>{escape(one.link)}</link>"
        f"<guid isPermaLink='false'>{escape(one.id)}</guid><description>{escape(one.html)}</description>"
        f"<pubDate>{format_datetime(one.at)}</pubDate></item>"
        for one in posts
    )
    head = "<title>News</title><link>https://news.test/</link><description>All.</description>"
    return f'<?xml version="1.0"?>\n<rss version="2.0"><channel>{head}{items}</channel></rss>'


def rss_1(posts: Iterable[Post]) -> str:
    items = "".join(
        f'<item rdf:about="{escape(one.id)}"><title>{escape(one.title)}</title>'
        f"<link>{escape(one.link)}</link><description>{escape(one.html)}</description>"
        f"<dc:date>{one.at.isoformat()}</dc:date></item>"
        for one in posts
    )
    return (
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"'
        ' xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><title>News</title></channel>'
        f"{items}</rdf:RDF>"
    )


def atom(posts: Iterable[Post]) -> str:
    entries = "".join(
        f"<entry><id>{escape(one.id)}</id><title>{escape(one.title)}</title>"
        f'<link href="{html.escape(one.link)}"/><content type="html">{escape(one.html)}</content>'
        f"<updated>{one.at.isoformat()}</updated></entry>"
        for one in posts
    )
    return f'<feed xmlns="http://www.w3.org/2005/Atom"><title>News</title>{entries}</feed>'


def json_feed(posts: Iterable[Post]) -> str:
    items = [
        {
            "id": one.id,
            "title": one.title,
            "url": one.link,
            "content_html": one.html,
            "date_published": one.at.isoformat(),
        }
        for one in posts
    ]
    version = "https://jsonfeed.org/version/1.1"
    return json.dumps({"version": version, "title": "News", "items": items})


FORMATS = (rss_2, rss_1, atom, json_feed)


class FeedServer(FaultyService):
    """Serves texts by their path; a request that has the ETag of a text is told that it is unchanged."""

    def __init__(self, feeds: Mapping[str, str]) -> None:
        super().__init__()
        self.feeds = dict(feeds)
        self.authorization: str | None = None
        """The required value of the header Authorization, if any."""

    def _answer(self, request: ReceivedRequest) -> Reply:
        if self.authorization not in (None, request.headers.get("authorization")):
            return reply_text("Sign in.", status=401, headers={"WWW-Authenticate": "Basic"})
        text = self.feeds.get(request.path)
        if text is None:
            return reply_text("Not here.", status=404)
        headers = {"ETag": f'"{sha256(text.encode()).hexdigest()[:16]}"'}
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Reply(status=304, headers=headers)
        return Reply(headers={"Content-Type": "application/xml", **headers}, body=text.encode())
