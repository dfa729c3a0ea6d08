"""Providers with a JSON API."""

from typing import Any

from tests.contract.provider_worlds.world import SECRET, Item, ProviderWorld
from tests.support.services.serving import ReceivedRequest, Reply, reply_json

_BROKEN = [{"title": "No address"}, "text", {"url": 7}, {"url": "https://example.org/bare"}]
_WHOLE = {"title": "Whole", "url": "https://example.org/whole", "content": "All of it."}


class TavilyWorld(ProviderWorld):
    """docs.tavily.com: "Tavily Search", POST /search."""

    kind = "tavily"
    takes_language = False

    def _answer(self) -> Reply:
        results = [
            {"title": one.title, "url": one.url, "content": one.summary, "score": 0.9}
            | ({"published_date": _mail_date(one)} if one.published else {})
            for one in self.items
        ]
        return reply_json(
            {"query": "q", "answer": None, "images": [], "results": results, "response_time": "1.1"}
        )

    def read_query(self, request: ReceivedRequest) -> dict[str, Any]:
        assert (request.method, request.path) == ("POST", "/search")
        assert request.headers["authorization"] == f"Bearer {SECRET}"
        body = request.json()
        assert body.keys() <= {"query", "max_results", "time_range", "include_domains"}
        return {
            "text": body["query"],
            "limit": body["max_results"],
            "freshness": body.get("time_range"),
            "sites": body.get("include_domains", []),
        }

    def rejected_key(self) -> Reply:
        return reply_json(
            {"detail": {"error": f"Unauthorized: missing or invalid API key {SECRET}."}}, status=401
        )

    def used_up(self) -> Reply:
        said = "This request exceeds your plan's set usage limit."
        return reply_json({"detail": {"error": said}}, status=432)

    def incomplete(self) -> Reply:
        return reply_json({"results": [*_BROKEN, _WHOLE]})


def _mail_date(one: Item) -> str:
    day = {"2026-03-02": "Mon, 02 Mar", "2026-01-31": "Sat, 31 Jan"}[one.published]
    return f"{day} 2026 10:00:00 GMT"


class BraveWorld(ProviderWorld):
    """api-dashboard.search.brave.com: "Web Search", GET /res/v1/web/search."""

    kind = "brave"

    def _answer(self) -> Reply:
        results = [
            {
                "type": "search_result",
                "title": _marked(one.title),
                "url": one.url,
                "description": _marked(one.summary),
                "profile": {"name": "Example"},
            }
            | (
                {"age": "March 2, 2026", "page_age": f"{one.published}T10:00:00"}
                if one.published
                else {}
            )
            for one in self.items
        ]
        found = {"web": {"type": "search", "results": results}} if results else {}
        return reply_json({"type": "search", "query": {"original": "q"}, **found})

    def read_query(self, request: ReceivedRequest) -> dict[str, Any]:
        assert (request.method, request.path) == ("GET", "/res/v1/web/search")
        assert request.headers["x-subscription-token"] == SECRET
        assert request.headers["accept"] == "application/json"
        names = {"pd": "day", "pw": "week", "pm": "month", "py": "year", "": None}
        return {
            "text": request.param("q"),
            "limit": int(request.param("count")),
            "freshness": names[request.param("freshness")],
            "language": request.param("search_lang") or None,
        }

    def rejected_key(self) -> Reply:
        error = {"code": "SUBSCRIPTION_TOKEN_INVALID", "status": 422, "id": "1"}
        error |= {"detail": f"The provided subscription token {SECRET} is invalid."}
        return reply_json({"type": "ErrorResponse", "error": error}, status=422)

    def limited(self, seconds: int) -> Reply:
        headers = {"X-RateLimit-Limit": "1, 15000", "X-RateLimit-Policy": "1;w=1, 15000;w=2592000"}
        headers |= {"X-RateLimit-Remaining": "0, 14523"}
        headers |= {"X-RateLimit-Reset": f"{seconds}, 1419704"}
        error = {"code": "RATE_LIMITED", "status": 429, "detail": "Request rate limit exceeded."}
        return reply_json({"type": "ErrorResponse", "error": error}, status=429, headers=headers)

    def used_up(self) -> Reply:
        headers = {"X-RateLimit-Remaining": "1, 0", "X-RateLimit-Reset": "1, 1419704"}
        error = {"code": "QUOTA_LIMITED", "status": 429, "detail": "Request quota exceeded."}
        return reply_json({"type": "ErrorResponse", "error": error}, status=429, headers=headers)

    def incomplete(self) -> Reply:
        whole = {"title": "Whole", "url": "https://example.org/whole", "description": "All of it."}
        return reply_json({"type": "search", "web": {"results": [*_BROKEN, whole]}})


def _marked(text: str) -> str:
    """As it marks words, in HTML."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace("'", "&#x27;")
    return escaped.replace("leave", "<strong>leave</strong>")


class SerperWorld(ProviderWorld):
    """serper.dev: POST /search."""

    kind = "serper"

    def _answer(self) -> Reply:
        dates = {"2026-03-02": "Mar 2, 2026", "2026-01-31": "Jan 31, 2026"}
        results = [
            {"title": one.title, "link": one.url, "snippet": one.summary, "position": number}
            | ({"date": dates[one.published]} if one.published else {})
            for number, one in enumerate(self.items, 1)
        ]
        found = {"organic": results} if results else {}
        return reply_json({"searchParameters": {"q": "q", "type": "search"}, **found, "credits": 1})

    def read_query(self, request: ReceivedRequest) -> dict[str, Any]:
        assert (request.method, request.path) == ("POST", "/search")
        assert request.headers["x-api-key"] == SECRET
        body = request.json()
        ages = {"qdr:d": "day", "qdr:w": "week", "qdr:m": "month", "qdr:y": "year", None: None}
        return {
            "text": body["q"],
            "limit": body["num"],
            "freshness": ages[body.get("tbs")],
            "language": body.get("hl"),
        }

    def rejected_key(self) -> Reply:
        return reply_json({"message": "Unauthorized.", "statusCode": 403}, status=403)

    def used_up(self) -> Reply:
        return reply_json({"message": "Not enough credits", "statusCode": 400}, status=400)

    def incomplete(self) -> Reply:
        broken = [
            {"title": "No address"},
            "text",
            {"link": 7},
            {"link": "https://example.org/bare"},
        ]
        whole = {"title": "Whole", "link": "https://example.org/whole", "snippet": "All of it."}
        return reply_json({"searchParameters": {}, "organic": [*broken, whole]})


class SearxngWorld(ProviderWorld):
    """docs.searxng.org: "Search API", GET /search."""

    kind = "searxng"
    takes_key = False

    def _answer(self) -> Reply:
        results = [
            {
                "title": one.title,
                "url": one.url,
                "content": one.summary,
                "engine": "mojeek",
                "engines": ["mojeek"],
                "publishedDate": f"{one.published}T00:00:00" if one.published else None,
            }
            for one in self.items
        ]
        return reply_json(
            {"query": "q", "number_of_results": 0, "results": results, "unresponsive_engines": []}
        )

    def read_query(self, request: ReceivedRequest) -> dict[str, Any]:
        assert (request.method, request.path) == ("GET", "/search")
        assert request.param("format") == "json"
        assert request.param("time_range") in {"", "day", "month", "year"}
        return {
            "text": request.param("q"),
            "freshness": request.param("time_range") or None,
            "language": request.param("language") or None,
        }

    def rejected_key(self) -> Reply:
        return Reply(status=403, headers={"Content-Type": "text/html"}, body=b"<h1>Forbidden</h1>")

    def incomplete(self) -> Reply:
        return reply_json({"results": [*_BROKEN, _WHOLE]})
