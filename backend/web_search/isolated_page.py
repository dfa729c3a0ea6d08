"""Reading large pages in a process of its own: markup can be made so that a parser takes minutes for it."""

import json
import sys
import threading
from dataclasses import asdict
from datetime import datetime
from typing import Any

from backend.web_search.html_content import read_html_page
from backend.web_search.obstacles import PageSigns
from backend.web_search.page_content import PageContent
from backend.web_search.results import PageDate, PageLink
from connectors.extraction.isolated import limit_process, run_isolated
from connectors.extraction.result import ExtractionError
from indexing.runtime.deadline import Deadline

LARGEST_HERE = 300_000
"""Characters. A process costs about a second; what is in a page of this size and so many tags takes little longer."""
MOST_TAGS_HERE = 15_000
_PROGRAM = f"from {__name__} import read_standard_input; read_standard_input()"
_PROCESSES = threading.BoundedSemaphore(2)


def read_page(page: str, url: str, server_language: str | None, deadline: Deadline) -> PageContent:
    """Read a page as `read_html_page` does, a large one, or one of many tags, in a process of its own.

    Raises:
        ExtractionError: it is nested too deeply, or takes more than it may.
    """
    if len(page) <= LARGEST_HERE and page.count("<") <= MOST_TAGS_HERE:
        return read_html_page(page, url, server_language)
    if not _PROCESSES.acquire(timeout=deadline.remaining()):
        raise ExtractionError("reading it takes too long")
    try:
        asked = json.dumps({"page": page, "url": url, "server_language": server_language})
        found = run_isolated(_PROGRAM, [], asked.encode("ascii"), deadline.remaining())
    finally:
        _PROCESSES.release()
    return _from_json(found)


def read_standard_input() -> None:
    """Write what the page on standard input says to standard output, in a process of its own."""
    limit_process()
    try:
        content = read_html_page(**json.load(sys.stdin.buffer))
    except ExtractionError as error:
        json.dump({"problem": str(error)}, sys.stdout)
        return
    json.dump(asdict(content), sys.stdout, default=datetime.isoformat)


def _from_json(found: dict[str, Any]) -> PageContent:
    published, signs = found["published"], found["signs"]
    date = published and PageDate(
        datetime.fromisoformat(published["at"]), is_guess=published["is_guess"]
    )
    links = tuple(PageLink(**link) for link in found["links"])
    fields = {**found, "published": date, "links": links, "signs": signs and PageSigns(**signs)}
    return PageContent(**fields)
